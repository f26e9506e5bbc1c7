// Sockets, pipes and other descriptors as operations, and as guards of a select beside channels
// (section 18 of SEMANTICS.md; the page cpp/docs/io.md). Only for Linux.
//
//   weft::io::Listener door(weft::io::Address("127.0.0.1:8080"));
//   weft::io::Stream s = co_await door.accept();
//   std::size_t n = co_await s.read_some(buffer);
//   auto [which, text] = co_await weft::select(weft::io::readable(s), outbox);
//
// weft.hpp does not include this header. A program that does not include it has no engine, and its
// executors sleep as usual.
#pragma once
#if defined(__linux__)
#include "io/child.hpp"
#include "io/datagrams.hpp"
#include "io/stream.hpp"

namespace weft::inline WEFT_ABI::io {

// Returns a guard, which is also an operation. It is ready when a read of the descriptor would not
// block: there is something to read, the end of the stream, or an error, or the descriptor was
// closed. As with poll(), another process can be the first to read. `x` is a Stream, a Listener,
// Datagrams, a Child (readable when it has ended), or any descriptor.
template <class X>
[[nodiscard]] detail::Ready<detail::Side::in> readable(const X& x) {
  if constexpr (std::is_convertible_v<const X&, int>)
    return detail::Ready<detail::Side::in>(detail::Watched::of(x));
  else
    return detail::Ready<detail::Side::in>(x.watched());
}
// Returns a guard, which is also an operation. It is ready when a write to the descriptor would not
// block; `x` is as in readable().
template <class X>
[[nodiscard]] detail::Ready<detail::Side::out> writable(const X& x) {
  if constexpr (std::is_convertible_v<const X&, int>)
    return detail::Ready<detail::Side::out>(detail::Watched::of(x));
  else
    return detail::Ready<detail::Side::out>(x.watched());
}

}  // namespace weft::inline WEFT_ABI::io
#endif
