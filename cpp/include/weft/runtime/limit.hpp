// A time limit on what a process does in a block of its code (rule 7.12): when its time comes it
// asks the process, once, to give up its operation. It is a timer of the run and one more source of
// requests; how a request ends an operation is as for any other (rule 6).
//
//   open() ──► armed ──its time──► asked ──take()──► met
//                │                   └──close(), move(): the request is taken back
//                └──close()
//
// Invariants
//  1 State, chain and place in the timers are under the run's mutex; only the process's own thread
//    opens, closes and takes.
//  2 The limits of a process are a chain, the innermost first, which the run keeps: a process that
//    has none pays nothing.
//  3 `asked` and not yet met ⇔ the process's Cancel::limit is set on its account; a request of
//    somebody else's that is met at the same moment takes all limits' with it.
//  4 Who fires a limit refers to it until it has told so (told_): close() waits for that, which is
//    a matter of some instructions.
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

  // On what `p`, which runs, does from now on. `deadline`: ns of its run's clock, prim::forever:
  // none; one that has passed asks at once.
  void open(ProcessBase& p, std::int64_t deadline);
  bool is_open() const noexcept { return process_ != nullptr; }
  bool of(const ProcessBase& p) const noexcept { return process_ == &p; }
  // Is it that process's, and has it opened none since?
  bool innermost(ProcessBase& p) noexcept;
  // Its process does no more under it. A request that was not met is taken back.
  void close() noexcept;
  // Another time. False: its request has been met already.
  bool move(std::int64_t deadline);
  // Its time has come and its request stands, or was met.
  bool expired() const noexcept { return asked_.load(std::memory_order_relaxed) || met_; }
  std::int64_t deadline() const noexcept { return timer_.deadline; }

  // A process meets what it was asked: taken. Null: at least one request was not a limit's. Else
  // the limit it was, of several the outermost.
  static Limit* take(ProcessBase& p) noexcept;

  // The process ends, or its thread is another one's: what it left open is over.
  static void close_all(ProcessBase& p, Run& r) noexcept;
  // May a limit of its own still make it go on?
  static bool any_armed(ProcessBase& p, Run& r) noexcept;
  // The limits on `from`, ordinary code that becomes process `to` of a run for a time, are lent to
  // that with what was left of their time; and given back at its end, when those that it opened
  // itself and left open are over.
  static void lend(ProcessBase& from, Run& old, ProcessBase& to, Run& now);
  static void give_back(ProcessBase& to, Run& now, ProcessBase& from, Run& old);
  bool lent() const noexcept { return lent_; }

 private:
  // The run's mutex is held for these; first_of() takes it.
  void arm(std::int64_t deadline);
  bool disarm() noexcept;
  static Limit* first_of(ProcessBase& p, Run& r) noexcept;
  static Limit* innermost_of(const ProcessBase& p, const Run& r) noexcept;
  static void exchange(ProcessBase& p, Run& r, Limit* now);  // as the innermost; null: none

  void await_firing() noexcept;
  void take_back() noexcept;
  void rehome_after_outer(ProcessBase& to, Run& now, bool lent);

  static void fire(core::Node* n) noexcept;
  static void nothing(core::Node*) {}
  static constexpr core::WakerOps kOps{&fire, &nothing, nullptr, 0};

  core::Choice choice_;
  TimerNode timer_;
  ProcessBase* process_ = nullptr;  // null: not open
  Run* run_ = nullptr;
  Limit* outer_ = nullptr;
  prim::atomic<bool> asked_{false};  // and not met
  prim::atomic<bool> told_{false};
  bool met_ = false;
  bool lent_ = false;
};

}  // namespace weft::inline WEFT_ABI::runtime
