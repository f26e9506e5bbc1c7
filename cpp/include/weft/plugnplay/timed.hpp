// Processes that use the clock of their run, which can be virtual (rule 8.6).
#pragma once
#include "ends.hpp"

namespace weft::inline WEFT_ABI::plugnplay {

namespace detail {

template <class T, class P, class Q>
Process delaying(Span delay, Reader<T, P> in, Writer<T, Q> out) {
  while (auto v = co_await in.next()) {
    co_await weft::sleep(delay);
    co_await out.write(std::move(*v));
  }
}
template <class T, class P>
Process ticking(Writer<T, P> out, T value, Span interval) {
  for (std::int64_t next = now();;) {
    co_await out.write(value);
    next = runtime::later(next, interval.count());
    co_await weft::sleep_until(next);
  }
}
template <class T, class P, class Q>
Process regulating(Reader<T, P> in, Reader<Span, P> reset, Writer<T, Q> out, Span interval) {
  bool resettable = true;
  std::optional<T> value;
  for (std::int64_t due = runtime::later(now(), interval.count());;) {
    bool send = false;
    try {
      // The process notices the retirement of each input: after that of `reset` it continues, and a
      // value that it holds is written although `in` has ended.
      auto c =
          co_await weft::select(Mode::priority, weft::in(reset).ends().when(resettable),
                                at(due).when(value.has_value()), weft::in(in).ends().when(!value));
      if (c.index == 0)
        interval = std::get<Span>(c.value);
      else if (c.index == 1)
        send = true;
      else
        value.emplace(std::get<T>(std::move(c.value)));
    } catch (const Retired& e) {
      if (e.guard != 0) throw;
      resettable = false;
    }
    if (!send) continue;
    co_await out.write(std::move(*value));
    value.reset();
    due = runtime::later(now(), interval.count());
  }
}

}  // namespace detail

// Writes each value of the input `delay` after the value arrived.
template <class T = void, class I, class O>
Process fixed_delay(weft::detail::Lasting delay, I&& in, O&& out) {
  return detail::delaying(delay, detail::reader_of<T>(std::forward<I>(in)),
                          detail::writer_of<T>(std::forward<O>(out)))
      .named("fixed_delay");
}
// Writes `value` now and every interval, without drift: the values that a slow reader missed follow
// immediately. Throws BadUse if `interval` is not positive.
template <class T = void, class O>
Process regular(O&& out, std::type_identity_t<detail::value_of<O>> value,
                weft::detail::Lasting interval) {
  if (interval.count() <= 0) weft::detail::bad_use("regular: the interval must be positive");
  return detail::ticking(detail::writer_of<T>(std::forward<O>(out)), std::move(value), interval)
      .named("regular");
}
// Copies each value, but none sooner than an interval after the previous one (for the first value:
// after the start). An interval that is read from `reset` is used from the next output on. A stream
// of Span itself cannot be regulated. Throws BadUse if `interval` is negative.
template <class T = void, class I, class C, class O>
Process regulate(I&& in, C&& reset, O&& out, weft::detail::Lasting interval) {
  static_assert(!std::is_same_v<detail::value_of<I>, Span>,
                "weft: regulate cannot tell a stream of weft::Span from its resets");
  if (interval.count() < 0) weft::detail::bad_use("regulate: the interval must not be negative");
  return detail::regulating(detail::reader_of<T>(std::forward<I>(in)),
                            detail::reader_of<Span>(std::forward<C>(reset)),
                            detail::writer_of<T>(std::forward<O>(out)), interval)
      .named("regulate");
}

}  // namespace weft::inline WEFT_ABI::plugnplay
