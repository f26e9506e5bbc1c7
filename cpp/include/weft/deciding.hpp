// A Deciding decides which process runs next in a checked program, in C++ and in Python. The
// scheduler asks it (runtime/chooser.hpp), and so does each point in an operation at which another
// process may go first. The engine of weft/check makes the decision.
//
//   scheduler ──next()──► decide() ──Run::go()──► the process leaves the queue; its step begins
//   operation ──another_goes()──► decide() ──its own process──► that process goes on at once
//                                     └──another──► its own is suspended; next() gives the other
//
// Invariants
//  1 A process in the run queue is `ready` in the record, from the time when look() first finds it
//    there.
//  2 The process `decided_` has left the queue already. The scheduler takes that process before
//    anything else is decided.
//  3 After the run has stopped, all processes are cancelled, and run in the order of the queue.
#pragma once
#include <utility>
#include <vector>

#include "check/run.hpp"
#include "core/policy.hpp"
#include "runtime/scheduler.hpp"

namespace weft::inline WEFT_ABI::runtime {

// `Language` derives from this class. It provides these functions, which may be private to its
// friends:
//   int number_in(core::Waker*) const     returns the number of the waker's process; kNone if that
//                                         is no process of the check
//   void wakes(int n)                     tells the record that process n has become ready
//   void passes_over(std::size_t chosen)  notes that the decision has taken ready_[chosen], and
//                                         none of the others
//   bool concludes() const                returns whether a run that cannot go on concludes by
//                                         itself that it is deadlocked
//   cancel(Run&), any_timer(Run&), fire_one(Run&)   those of runtime::Run
template <class Language>
class Deciding : public runtime::Chooser {
 public:
  checking::Run run;

  core::Waker* next(runtime::Scheduler& s, core::RunQueue& queue) noexcept final {
    program_ = &s.run;
    if (decided_) return std::exchange(decided_, nullptr);
    return decide(queue, checking::kNone);
  }

 protected:
  Deciding() = default;
  ~Deciding() = default;

  void begin_deciding() noexcept {
    decided_ = nullptr;
    program_ = nullptr;
    cancelled_ = false;
    yields_.clear();
  }

  // Notes which processes are ready. Returns a waker that is no process of the check, and so runs
  // first; null if there is none.
  core::Waker* look(core::RunQueue& queue) noexcept {
    core::Waker* other = nullptr;
    wakers_.clear();
    ready_.clear();
    queue.each([&](core::Waker* w) {
      const int n = self().number_in(w);
      if (n == checking::kNone) {
        if (!other) other = w;
        return;
      }
      wakers_.push_back(w);
      ready_.push_back(n);
      if (!run.record.at(n).ready) self().wakes(n);
    });
    return other;
  }

  // Puts the process that runs into the queue. Returns whether another process runs first.
  // `goes_on`: whether in the usual order the process goes on immediately.
  bool another_goes(core::RunQueue& queue, core::Waker* w, int n, bool goes_on) noexcept {
    run.record.ready(n);
    queue.push(w);
    core::Waker* const first = decide(queue, goes_on ? n : checking::kNone);
    if (first == w) return false;
    decided_ = first;
    return true;
  }

  // Called when the process that runs yields (rule 7.7). Returns whether another process runs
  // first. In the usual order all ready processes run first. Other orders are allowed: if a yield
  // had to let all of them run first, the yield would commute with no step. But if the process has
  // yielded `often` times and no other process has run, the others must run first.
  bool yields(core::RunQueue& queue, core::Waker* w, int n) noexcept {
    constexpr unsigned often = 5;
    const auto at = static_cast<std::size_t>(n);
    if (yields_.size() <= at) yields_.resize(at + 1);
    Yields& y = yields_[at];
    y.count = y.at == run.switches ? y.count + 1 : 0;
    y.at = run.switches;
    if (y.count >= often) {
      look(queue);
      run.yields(n, ready_);
    }
    return another_goes(queue, w, n, false);
  }

  // The processes that are ready, and their numbers.
  std::vector<core::Waker*> wakers_;
  std::vector<int> ready_;
  runtime::Run* program_ = nullptr;

 private:
  Language& self() noexcept { return static_cast<Language&>(*this); }

  // Removes the process that runs next from the queue, and returns it. `goes_on`: a process that
  // has just been put into the queue, and that goes on in the usual order; kNone if there is none.
  core::Waker* decide(core::RunQueue& queue, int goes_on) noexcept {
    using checking::Stopped;
    for (;;) {
      if (program_ && program_->deadlocked()) run.stop(Stopped::deadlock);
      core::Waker* const other = look(queue);
      if (run.stopped() && program_ && !std::exchange(cancelled_, true)) {
        self().cancel(*program_);
        continue;
      }
      if (other) {
        queue.take(other);
        return other;
      }
      if (queue.empty()) {
        if (run.stopped() || !program_) return nullptr;
        if (!self().any_timer(*program_)) {
          if (self().concludes()) return nullptr;
          run.stop(Stopped::deadlock);
          continue;
        }
        run.go({}, false, true);
        if (run.stopped()) continue;
        run.time_comes(false);
        self().fire_one(*program_);
        continue;
      }
      const bool can = goes_on != checking::kNone && puts_first(goes_on);
      std::size_t i = 0;
      if (!run.stopped()) {
        const bool timer = run.settings.any_time && program_ && self().any_timer(*program_);
        i = run.go(ready_, can, timer);
        if (run.stopped()) continue;
        if (i == ready_.size()) {
          run.time_comes(true);
          self().fire_one(*program_);
          continue;
        }
        self().passes_over(i);
      }
      queue.take(wakers_[i]);
      run.goes(ready_[i]);
      return wakers_[i];
    }
  }

  // Puts this process before the other ready ones. Returns false if it is not ready.
  bool puts_first(int n) noexcept {
    std::size_t at = ready_.size();
    while (at > 0 && ready_[at - 1] != n) --at;  // process n is usually the last one
    if (at-- == 0) return false;
    core::Waker* const w = wakers_[at];
    for (; at > 0; --at) {
      wakers_[at] = wakers_[at - 1];
      ready_[at] = ready_[at - 1];
    }
    wakers_[0] = w;
    ready_[0] = n;
    return true;
  }

  struct Yields {
    unsigned count = 0;  // how often the process has yielded since another process ran
    unsigned at = 0;     // the number of switches at the process's last yield
  };
  std::vector<Yields> yields_;  // the index is the number of the process
  core::Waker* decided_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace weft::inline WEFT_ABI::runtime
