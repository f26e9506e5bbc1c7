// Ends processes in time (rule 7.12), and by signals.
//
//   weft::Timeout limit(2s);  // to the end of this block the process's operations throw TimedOut
//                             // once 2 s have passed
//   auto r = co_await weft::timeout(2s, p(…));  // p's result if p ended in time, else nothing
//   weft::signals stop{SIGINT, SIGTERM};        // co_await weft::select(stop.reader(), work)
//
// Invariants of `signals`: the signal handler only writes to a pipe. A thread of the object reads
// the pipe and writes to a buffered channel that drops the oldest value. So neither the handler nor
// the thread ever waits for a reader. A signal belongs to one object at a time; afterwards the
// signal is handled as before.
//
//   claim() ──a signal──► pipe ──pass_on()──► the channel has a reader, or had none yet: written there
//      ▲                                      all readers have gone: give_back(), and the signal is
//      └────────────new_reader()───────────── raised again, for the handler that there is now
#pragma once
#include <signal.h>

#include <array>
#include <initializer_list>
#include <optional>

#include <thread>
#include "alt.hpp"
#include "outside.hpp"
#include "runtime/source.hpp"
#include "time.hpp"

namespace weft::inline WEFT_ABI {

// A time limit on what its process does while the object exists. When the limit has expired, the
// operation that waits, or the next operation, is withdrawn and throws TimedOut, once. If no
// operation has met the request when the object is destroyed, the request is withdrawn. A
// cancellation from outside still throws Cancelled. The object belongs to the process that made it,
// and must be destroyed there. With `again` each operation throws from then on, as long as the
// object exists.
class Timeout {
 public:
  // Makes a limit that expires s from now. If s ≤ 0 the limit expires at the first operation; if s
  // is Span::max() it never expires.
  explicit Timeout(detail::Lasting s, bool again = false) {
    limit_.open(process(), from_now(s), again);
  }
  // Makes a limit that expires at this time of the run's clock, in ns of now().
  static Timeout until(std::int64_t at, bool again = false) { return Timeout(at, again, 0); }
  Timeout(const Timeout&) = delete;
  Timeout& operator=(const Timeout&) = delete;
  ~Timeout() = default;

  // Returns whether the limit has expired and has asked the process to abandon its operation.
  bool expired() const noexcept { return limit_.expired(); }
  // Moves the limit to s from now. Throws BadUse if the limit has already thrown.
  void reschedule(detail::Lasting s) {
    if (!limit_.move(from_now(s)))
      detail::bad_use("reschedule of a Timeout that has thrown already: make another");
  }

 private:
  friend class TimedOut;
  Timeout(std::int64_t at, bool again, int) { limit_.open(process(), at, again); }
  static runtime::ProcessBase& process() {
    if (runtime::ProcessBase* p = runtime::this_process()) return *p;
    return runtime::ThreadProcess::self();
  }
  static std::int64_t from_now(Span s) {
    const std::int64_t t = runtime::Limit::run_of(process()).now();
    return s.count() <= 0 ? t : runtime::later(t, s.count());
  }
  runtime::Limit limit_;
};
inline bool TimedOut::of(const Timeout& t) const noexcept { return limit_ == &t.limit_; }

namespace detail {
template <class P>
struct Awaited {
  P p;
  explicit Awaited(P&& x) : p(std::move(x)) {}  // g++ 12 destroys an aggregate in a co_await twice.
  auto bind(runtime::ProcessBase* me) && { return One<P>(std::move(p), me); }
};
template <class P>
using InTime = std::conditional_t<std::is_void_v<typename P::result_type>, bool,
                                  std::optional<typename P::result_type>>;
template <class P>
BasicProcess<InTime<P>> in_time(Lasting s, P p) {
  Timeout limit(s);
  try {
    if constexpr (std::is_void_v<typename P::result_type>) {
      co_await Awaited<P>(std::move(p));
      co_return true;
    } else {
      co_return co_await Awaited<P>(std::move(p));
    }
  } catch (const TimedOut& e) {
    if (!e.of(limit)) throw;
  }
  co_return InTime<P>{};
}
}  // namespace detail

// A process that runs p for at most s. Its result is p's result, or nothing if the limit expired
// and p was cancelled (if p has no result: true, or false). The process throws what p throws. It
// can be used wherever a process can be used: awaited, in a par, or given to run().
template <Startable P>
BasicProcess<detail::InTime<P>> timeout(detail::Lasting s, P p) {
  return detail::in_time(s, std::move(p)).named("timeout");
}
template <class X>
  requires(!Startable<std::remove_cvref_t<X>>)
auto timeout(detail::Lasting s, X&& x) {
  return timeout(s, detail::to_process(std::forward<X>(x)));
}

// Turns signals into values of a channel. Each signal is read once, in the order in which they
// arrived; the last 16 that have not been read are kept, even those that arrived before the first
// read. When all reader ends are closed or the object is destroyed, signals have their previous
// effect again; with the next reader end they become values again. Signals that the last reader has
// not read are lost when it is closed.
//
// While a process waits for a signal, its run is neither deadlocked nor at a standstill (rules
// 10.3, 10.6). Code that is not a process needs a weft::Outside while it waits for a signal, as it
// does for all its other operations.
class signals {
 public:
  // Claims these signals. Throws std::system_error if the system cannot provide a pipe or a thread,
  // and BadUse if another object has one of the signals, or if there is no such signal.
  signals(std::initializer_list<int> which);
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;
  ~signals();

  // Makes a reader end, to be given to a process, which reads the numbers of the signals. Throws
  // BadUse if all ends had been closed, and another object has claimed one of the signals since.
  Reader<int> reader() const;
  // read() and operator() use an end that belongs to the object, and is made at the first call.
  auto read() { return own().read(); }        // used as: co_await stop.read()
  int operator()() const { return own()(); }  // reads in a thread

 private:
  static constexpr int kSignals = 65;
  // Returns, for each signal, the pipe to which the signal's handler writes, or -1.
  static std::array<std::atomic<int>, kSignals>& to() noexcept;
  static void handle(int n);
  [[noreturn]] static void refuse(int n);
  void claim() const;
  void give_back() const noexcept;
  void open() const;
  Reader<int> new_reader() const;
  const Reader<int>& own() const;
  void pass_on() noexcept;
  void close_pipe() noexcept;

  mutable std::mutex mutex_;  // protects the mutable members
  mutable std::optional<Channel<int>> channel_;
  mutable std::optional<runtime::Source> source_;
  mutable Writer<int> writer_;
  mutable Reader<int> own_;
  mutable std::array<bool, kSignals> claimed_{};
  mutable std::array<struct sigaction, kSignals> before_{};
  std::array<bool, kSignals> which_{};
  int pipe_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI
