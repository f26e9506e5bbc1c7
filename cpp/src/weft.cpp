// The compiled form of the library: everything of include/weft/impl/, once. See
// include/weft/config.hpp.
#if !defined(WEFT_COMPILED)
#error \
    "weft.cpp is compiled with WEFT_COMPILED defined, as is whoever links it: use CMake's weft::compiled"
#endif
#include <weft/observe.hpp>
#include <weft/weft.hpp>
#include <weft/wire/rounds.hpp>
#include <weft/wire/space.hpp>
#include <weft/wire/span.hpp>

#include <weft/impl/affinity.ipp>
#include <weft/impl/blocking.ipp>
#include <weft/impl/brief_wait.ipp>
#include <weft/impl/channel.ipp>
#include <weft/impl/compose.ipp>
#include <weft/impl/coroutine.ipp>
#include <weft/impl/errors.ipp>
#include <weft/impl/executors.ipp>
#include <weft/impl/function_info.ipp>
#include <weft/impl/going_on.ipp>
#include <weft/impl/group.ipp>
#include <weft/impl/guards.ipp>
#include <weft/impl/here.ipp>
#include <weft/impl/limit.ipp>
#include <weft/impl/names.ipp>
#include <weft/impl/outside.ipp>
#include <weft/impl/parking.ipp>
#include <weft/impl/partial.ipp>
#include <weft/impl/pool.ipp>
#include <weft/impl/report.ipp>
#include <weft/impl/run.ipp>
#include <weft/impl/source.ipp>
#include <weft/impl/standstill.ipp>
#include <weft/impl/stopping.ipp>
#include <weft/impl/thread.ipp>
#include <weft/impl/timer.ipp>
#include <weft/impl/usual.ipp>
#include <weft/impl/visiting.ipp>
#include <weft/wire/impl/asking.ipp>
#include <weft/wire/impl/everywhere.ipp>
#include <weft/wire/impl/far.ipp>
#include <weft/wire/impl/home.ipp>
#include <weft/wire/impl/lender.ipp>
#include <weft/wire/impl/moving.ipp>
#include <weft/wire/impl/rounds.ipp>
#include <weft/wire/impl/session.ipp>
#if defined(__linux__)
#include <weft/wire/impl/shared.ipp>
#include <weft/wire/impl/slot.ipp>
#endif
#include <weft/wire/impl/space.ipp>
#include <weft/wire/impl/span.ipp>
#include <weft/wire/impl/spanned.ipp>
