// The engines of the usual channels, which are compiled in the library: channels of text, and of
// scalars of four or eight bytes (core/stored.hpp). A file that uses such a channel compiles only
// the parts that it inlines. All other engines are compiled where they are used.
#pragma once
#include <string>

#include "coroutine.hpp"

#define WEFT_ENGINE_OF_SIDE(EXTERN, V, P, SIDE)                                                    \
  EXTERN template Status core::ChannelEngine<V, P>::begin_slow<SIDE>(core::Node&) noexcept;        \
  EXTERN template bool core::ChannelEngine<V, P>::withdraw<SIDE>(core::Node&) noexcept;            \
  EXTERN template core::Attempt core::ChannelEngine<V, P>::scan<SIDE>(core::Node&) noexcept;       \
  EXTERN template core::Attempt core::ChannelEngine<V, P>::scan_slow<SIDE>(core::Node&) noexcept;  \
  EXTERN template core::Attempt core::ChannelEngine<V, P>::enrol<SIDE>(core::Node&) noexcept;      \
  EXTERN template core::Attempt core::ChannelEngine<V, P>::enrol_slow<SIDE>(core::Node&) noexcept; \
  EXTERN template core::Attempt core::ChannelEngine<V, P>::retry<SIDE>(core::Node&) noexcept;      \
  EXTERN template Status core::ChannelEngine<V, P>::look<SIDE>(bool&) noexcept;                    \
  EXTERN template bool core::ChannelEngine<V, P>::link_standing<SIDE>(                             \
      core::StandingNode&) noexcept;                                                               \
  EXTERN template void core::ChannelEngine<V, P>::set_enabled<SIDE>(core::StandingNode&,           \
                                                                    bool) noexcept;                \
  EXTERN template Status detail::begin_waiting<SIDE>(core::ChannelEngine<V, P>*,                   \
                                                     runtime::ThreadProcess&, void*);              \
  EXTERN template const runtime::ProcessBase*                                                      \
  detail::begin_in_full<core::ChannelEngine<V, P>, SIDE>(core::SyncObject*, void*, std::uint32_t); \
  EXTERN template bool detail::withdraw_plain<core::ChannelEngine<V, P>, SIDE>(                    \
      runtime::ProcessBase&) noexcept;                                                             \
  EXTERN template void                                                                             \
  detail::undecided_plain<core::ChannelEngine<V, P>, SIDE == core::Side::out>(                     \
      runtime::ProcessBase&, runtime::WaitVisitor&);                                               \
  EXTERN template void detail::passed_plain<core::ChannelEngine<V, P>, SIDE == core::Side::out>(   \
      runtime::ProcessBase&, runtime::Passed&);

#define WEFT_ENGINE(EXTERN, V, P)                                                                \
  EXTERN template class core::Rendezvous<V, P>;                                                  \
  EXTERN template class core::Buffered<V, P, core::ChannelEngine<V, P>>;                         \
  EXTERN template class core::Notifier<V, P, core::ChannelEngine<V, P>>;                         \
  EXTERN template class core::Lending<V, P, core::ChannelEngine<V, P>>;                          \
  EXTERN template class core::ChannelEngine<V, P>;                                               \
  EXTERN template struct detail::HeapRing<V>;                                                    \
  WEFT_ENGINE_OF_SIDE(EXTERN, V, P, core::Side::in)                                              \
  WEFT_ENGINE_OF_SIDE(EXTERN, V, P, core::Side::out)                                             \
  EXTERN template core::Attempt core::Rendezvous<V, P>::meet<core::Side, core::FreeParty>(       \
      core::Side, core::Node&, core::FreeParty, core::Wakes&) noexcept;                          \
  EXTERN template Status core::ChannelEngine<V, P>::begin_queued<core::Side>(                    \
      core::Side, core::Node&) noexcept;                                                         \
  EXTERN template void core::ChannelEngine<V, P>::withdrawn<core::Side>(core::Side, core::Node&, \
                                                                        bool) noexcept;          \
  EXTERN template Status core::ChannelEngine<V, P>::how_ended<core::Side>(core::Side) noexcept;  \
  EXTERN template detail::EngineFor<V, P>* detail::make_core<V, P>(const ChannelOptions&);       \
  EXTERN template detail::EngineFor<V, P>* detail::make_plain_core<V, P>();                      \
  EXTERN template void detail::destroy<V, P>(detail::EngineFor<V, P>*) noexcept;                 \
  EXTERN template void detail::give_up<V, P>(core::ChannelEngine<V, P>*, core::Side,             \
                                             bool) noexcept;                                     \
  EXTERN template void detail::drop<V, P>(core::ChannelEngine<V, P>*, core::Side) noexcept;      \
  EXTERN template void detail::count_end<V, P>(core::ChannelEngine<V, P>*, core::Side, bool);    \
  EXTERN template void detail::read_failed<core::ChannelEngine<V, P>>();                         \
  EXTERN template void detail::throw_end_of<core::ChannelEngine<V, P>>(                          \
      core::ChannelEngine<V, P>*, Status, const char*, int, bool);

#define WEFT_USUAL_ENGINES(EXTERN)                 \
  EXTERN template class core::ChannelBase<Shared>; \
  WEFT_ENGINE(EXTERN, core::Bits<4>, Shared)       \
  WEFT_ENGINE(EXTERN, core::Bits<8>, Shared)       \
  WEFT_ENGINE(EXTERN, std::string, Shared)

namespace weft::inline WEFT_ABI {
WEFT_USUAL_ENGINES(extern)
}
