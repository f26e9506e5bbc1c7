// Processes for servers (rules 20.1 to 20.4): batch() collects values, rate_limit() limits their
// rate, keyed_pool() gives them to workers by their keys, and broadcast() gives them to readers
// that join and leave. Times are those of the run's clock, which can be virtual.
#pragma once
#include <functional>

#include "plexing.hpp"

namespace weft::inline WEFT_ABI::plugnplay {

// What a broadcast does if the channel of a reader has no room: it waits, or it poisons that
// channel and continues without the reader.
enum class Slow : std::uint8_t { wait, cut_off };

namespace detail {

template <class T, class P, class Q>
Process batching(Reader<T, P> in, Writer<std::vector<T>, Q> out, std::size_t n, Span longest) {
  for (bool ended = false; !ended;) {
    std::vector<T> values;
    values.push_back(co_await in.read());
    const std::int64_t due = runtime::later(now(), longest.count());
    // The loop itself checks the time, since a ready guard takes precedence over an expired timer
    // (rule 5.7).
    while (!ended && values.size() < n && now() < due) {
      try {
        auto c = co_await weft::select(weft::in(in).ends(), at(due));
        if (c.index == 0) values.push_back(std::move(*c.value));
      } catch (const Retired&) {
        ended = true;
      }
    }
    co_await out.write(std::move(values));
  }
}
// The generic cell rate algorithm (ITU-T I.371): a token bucket that is kept as one number.
template <class T, class P, class Q>
Process limiting(Reader<T, P> in, Writer<T, Q> out, std::int64_t each, std::int64_t ahead) {
  std::int64_t due = now();  // when the bucket will be full again
  while (auto v = co_await in.next()) {
    if (due - ahead > now()) co_await weft::sleep_until(due - ahead);
    co_await out.write(std::move(*v));
    // The time counts from the moment at which the write is done, however slow the reader is.
    due = runtime::later(std::max(due, now()), each);
  }
}
template <class T, class P, class Key>
Process to_workers(Reader<T, P> in, std::vector<Writer<T, P>> outs, Key key) {
  while (auto v = co_await in.next()) {
    using K = std::remove_cvref_t<decltype(key(std::as_const(*v)))>;
    const std::size_t which = std::hash<K>{}(key(std::as_const(*v))) % outs.size();
    co_await outs[which].write(std::move(*v));
  }
}
template <class T, class P, class U, class Q, class Worker, class Key>
Process pooling(Reader<T, P> in, Writer<U, Q> out, Worker worker, std::size_t n, Key key,
                ChannelOptions before_each) {
  std::vector<Process> all;
  std::vector<Writer<T, P>> outs;
  for (std::size_t i = 0; i < n; ++i) {
    Channel<T, P> c{before_each};
    outs.push_back(c.writer());
    all.push_back(worker(c.reader(), Writer<U, Q>(out)));
  }
  all.push_back(to_workers(std::move(in), std::move(outs), std::move(key)).named("to_workers"));
  co_await weft::par(std::move(all));
}
template <class T, class P>
Process casting(Reader<T, P> in, Reader<Writer<T, P>, P> joins, Slow slow) {
  static_assert(std::is_copy_constructible_v<T>,
                "weft: broadcast gives each reader a copy of the value, and this type cannot be "
                "copied");
  std::vector<Writer<T, P>> outs;
  for (;;) {
    // When `in` ends, this process ends. When `joins` ends, this process continues.
    auto c = co_await weft::select(Mode::priority, joins, weft::in(in).ends());
    if (c.index == 0) {
      outs.push_back(std::get<1>(std::move(c.value)));
      continue;
    }
    const T value = std::get<2>(std::move(c.value));
    for (std::size_t i = 0; i < outs.size();) {
      bool stays = true;
      try {
        if (slow == Slow::wait) {
          co_await outs[i].write(value);
        } else {
          auto sent =
              co_await weft::select(Mode::priority, weft::out(outs[i], value).ends(), weft::skip());
          stays = sent.index == 0;
          if (!stays) outs[i].poison();
        }
      } catch (const Retired&) {
        stays = false;
      }
      if (stays)
        ++i;
      else
        outs.erase(outs.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}
inline std::size_t counted(std::int64_t n, const char* says) {
  if (n < 1) weft::detail::bad_use(says);
  return static_cast<std::size_t>(n);
}

}  // namespace detail

// Writes vectors of n values (rule 20.1). A vector with fewer values is written when `longest` has
// passed since its first value was read, or when the input has ended. Throws BadUse if n < 1 or
// `longest` is not positive.
template <class T = void, class I, class O>
Process batch(I&& in, O&& out, std::int64_t n, weft::detail::Lasting longest = Span::max()) {
  const std::size_t most = detail::counted(n, "batch: n must be at least 1");
  if (longest.count() <= 0) weft::detail::bad_use("batch: the time must be positive");
  return detail::batching(detail::reader_of<T>(std::forward<I>(in)),
                          detail::writer_of<void>(std::forward<O>(out)), most, longest)
      .named("batch");
}
// Copies each value, but at most n + burst - 1 values in any time `per` (rule 20.2). One value is
// written each per / n (rounded up to a nanosecond), and after a pause up to `burst` values without
// a gap. Throws BadUse if n < 1, burst < 1, or `per` is not positive.
template <class T = void, class I, class O>
Process rate_limit(I&& in, O&& out, std::int64_t n, weft::detail::Lasting per,
                   std::int64_t burst = 1) {
  detail::counted(n, "rate_limit: n must be at least 1");
  detail::counted(burst, "rate_limit: the burst must be at least 1");
  if (per.count() <= 0) weft::detail::bad_use("rate_limit: the time must be positive");
  const std::int64_t each = per.count() / n + (per.count() % n != 0);
  if (burst - 1 > std::numeric_limits<std::int64_t>::max() / 4 / each)
    weft::detail::bad_use("rate_limit: the burst lasts longer than the clock");
  return detail::limiting(detail::reader_of<T>(std::forward<I>(in)),
                          detail::writer_of<T>(std::forward<O>(out)), each, (burst - 1) * each)
      .named("rate_limit");
}
// Runs n processes worker(reader, writer of out). std::hash of key(value) says to which worker a
// value goes: all values of one key reach one worker, in order (rule 20.3). `before_each` are the
// options of the channel before each worker. Throws BadUse if n < 1.
template <class T = void, class I, class O, class Worker, class Key>
Process keyed_pool(I&& in, O&& out, Worker worker, std::int64_t n, Key key,
                   ChannelOptions before_each = {}) {
  const std::size_t workers = detail::counted(n, "keyed_pool: n must be at least 1");
  return detail::pooling(detail::reader_of<T>(std::forward<I>(in)),
                         detail::writer_of<void>(std::forward<O>(out)), std::move(worker), workers,
                         std::move(key), std::move(before_each))
      .named("keyed_pool");
}
// Writes each value to every writer that it has read from `joins` before (rule 20.4). A reader
// leaves by retiring its end. The capacity of a reader's channel is the number of values by which
// the reader may be behind. `slow` says what happens to a reader that is further behind.
template <class T = void, class I, class C>
Process broadcast(I&& in, C&& joins, Slow slow = Slow::wait) {
  return detail::casting(detail::reader_of<T>(std::forward<I>(in)),
                         detail::reader_of<void>(std::forward<C>(joins)), slow)
      .named("broadcast");
}

}  // namespace weft::inline WEFT_ABI::plugnplay
