// A time limit on what a process does in a block of its code (rule 7.12). When the limit's deadline
// is reached, the limit asks the process, once, to abandon its operation. A limit is a timer of the
// run and one more source of requests to cancel; its request ends an operation as any other request
// does (rule 6).
//
//   open() ──► armed ──its time──► asked ──take()──► met
//                │                   └──close(), move(): the request is taken back
//                └──close()
//
// A limit that asks *again* asks its process to abandon each operation from then on: take() leaves
// its request set, until close() withdraws it.
//
// Invariants
//  1 State, chain and place in the timers are protected by the run's mutex; only the process's own
//    thread opens, closes and takes a limit.
//  2 The limits of a process form a chain, the innermost first. The run keeps this chain, so that a
//    process without limits pays nothing.
//  3 A limit is `asked` ⇔ the process's Cancel::limit is set because of it. If the process meets
//    the request of another source at the same moment, it meets the requests of all limits too.
//  4 A thread that fires a limit refers to the limit until the thread has set told_. close() waits
//    for that, which takes a few instructions.
//  5 A limit that asks again repeats the request that the process met first, or that of a limit
//    further out which has asked since. So the Cancelled of an inner block never hides the one for
//    which an outer block waits. `as_` is that limit; null for a request of another source.
#pragma once
#include <atomic>

#include "thread.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Limit final : public core::Waker {
 public:
  Limit() noexcept {
    ops = &kOps;
    choice_.waker = this;
    timer_.choice = &choice_;
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() {
    if (process_) close();
  }

  static Run& run_of(ProcessBase& p) noexcept {
    return p.group ? p.group->run : *static_cast<ThreadProcess&>(p).run;
  }

  // Limits what `p`, the process that runs here, does from now on. `deadline` is in ns of the clock
  // of p's run. If it is prim::forever, there is no limit; if it has passed, the request is made at
  // once. If `again` is set, the limit asks at each operation after its deadline.
  void open(ProcessBase& p, std::int64_t deadline, bool again = false);
  bool is_open() const noexcept { return process_ != nullptr; }
  bool of(const ProcessBase& p) const noexcept { return process_ == &p; }
  // Returns whether this is the innermost limit of p.
  bool innermost(ProcessBase& p) noexcept;
  // Ends the limit. A request that was not met is withdrawn.
  void close() noexcept;
  // Moves the deadline. Returns false if the limit has already taken effect.
  bool move(std::int64_t deadline);
  // Returns whether the deadline was reached, so that the request is set or was met.
  bool expired() const noexcept { return asked_.load(std::memory_order_relaxed) || met_; }
  std::int64_t deadline() const noexcept { return timer_.deadline; }

  // Called when a process meets its requests. Returns the limit that has asked, the outermost if
  // there are several; null if at least one request was not made by a limit.
  static Limit* take(ProcessBase& p) noexcept;

  // Closes the limits that p left open. Called when p ends, or when its thread becomes another
  // process.
  static void close_all(ProcessBase& p, Run& r) noexcept;
  // Returns whether any limit of p is armed, so that p might still continue.
  static bool any_armed(ProcessBase& p, Run& r) noexcept;
  // Ordinary code, `from`, becomes process `to` of a run for a time. lend() gives the limits of
  // `from` to `to`, with the time that they have left. give_back() returns them at the end of `to`,
  // after closing the limits that `to` opened itself and left open.
  static void lend(ProcessBase& from, Run& old, ProcessBase& to, Run& now);
  static void give_back(ProcessBase& to, Run& now, ProcessBase& from, Run& old);
  bool lent() const noexcept { return lent_; }

 private:
  // These functions are called with the run's mutex held, except first_of(), which locks it.
  void arm(std::int64_t deadline);
  bool disarm() noexcept;
  static Limit* first_of(ProcessBase& p, Run& r) noexcept;
  static Limit* innermost_of(const ProcessBase& p, const Run& r) noexcept;
  // Returns the outer one of two limits of a process.
  static Limit* outer_of(Limit* a, Limit* b) noexcept;
  // Makes `now`, which can be null, the innermost limit.
  static void exchange(ProcessBase& p, Run& r, Limit* now);

  void await_firing() noexcept;
  void take_back() noexcept;
  void rehome_after_outer(ProcessBase& to, Run& now, bool lent);

  static void fire(core::Node* n) noexcept;
  static void nothing(core::Node*) {}
  static constexpr core::WakerOps kOps{&fire, &nothing, nullptr, 0};

  core::Choice choice_;
  TimerNode timer_;
  ProcessBase* process_ = nullptr;  // null if the limit is not open
  Run* run_ = nullptr;
  Limit* outer_ = nullptr;
  Limit* as_ = nullptr;              // set once a limit that asks again was met: see invariant 5
  prim::atomic<bool> asked_{false};  // true while the limit's request has not been met
  prim::atomic<bool> told_{false};
  bool met_ = false;
  bool lent_ = false;
  bool again_ = false;
};

}  // namespace weft::inline WEFT_ABI::runtime
