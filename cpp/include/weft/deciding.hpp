// A Deciding decides which process runs next in a checked program, in C++ and in Python. The
// scheduler asks it (runtime/chooser.hpp), and so does each point in an operation at which another
// process may run first. The engine of weft/check makes the decision.
//
//   scheduler ──next()──► decide() ──Run::go()──► the process leaves the queue; its step begins
//   operation ──another_goes()──► decide_aside() ──its own process──► that process continues
//                                     └──another──► its own is suspended; next() returns the other
//
// Invariants
//  1 A process in the run queue is `ready` in the record, from the time when look() first finds it
//    there.
//  2 The process `decided_` has left the queue already. The scheduler takes that process before
//    anything else is decided.
//  3 After the run has stopped, all processes are cancelled, and run in the order of the queue.
//  4 If `queue_` is set, ready_[1], ready_[2], … are the processes in that queue that were pushed
//    before `seen_` was its end, in the order of the queue. links_[1], links_[2], … are the links
//    of their wakers, and links_[0] is where the queue begins. So look() visits only the processes
//    that were pushed later. If `queue_` is null, look() makes the list anew.
//  5 A process that stands aside is the one that runs now: it is in no queue. If it is chosen, it
//    continues at once; if another process is chosen, it enters the queue.
#pragma once
#include <algorithm>
#include <span>
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
//   void wakes(int n)                     records that process n has become ready
//   void passes_over(std::span<const int> ready, std::size_t chosen)
//                                         records that the decision has taken ready[chosen], and
//                                         none of the others
//   bool concludes() const                returns whether a run that is deadlocked detects its
//                                         deadlock by itself
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
    queue_ = nullptr;
    cancelled_ = false;
    yields_.clear();
  }

  // Notes which processes are ready. Returns a waker that is no process of the check, and so runs
  // first; null if there is none.
  core::Waker* look(core::RunQueue& queue) noexcept {
    return queue_ == &queue && seen_ == queue.end() ? nullptr : look_at_new(queue);
  }

  // Called when the process that runs reaches a point. Returns whether another process runs first;
  // if so, the calling process is in the queue. `goes_on` says whether the process continues at
  // once in the usual order.
  bool another_goes(core::RunQueue& queue, core::Waker* w, int n, bool goes_on) noexcept {
    run.record.ready(n);
    core::Waker* first;
    if (goes_on) {
      first = decide_aside(queue, w, n);
    } else {
      queue.push(w);
      first = decide(queue, checking::kNone);
    }
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
      run.yields(n, ready());
    }
    return another_goes(queue, w, n, false);
  }

  runtime::Run* program_ = nullptr;

 private:
  Language& self() noexcept { return static_cast<Language&>(*this); }

  // The processes that are ready, in the order of the queue.
  std::span<const int> ready() const noexcept { return std::span(ready_).subspan(1); }

  // Decides whether process n, which stands aside and whose waker is w, continues. Returns w, or
  // the waker that runs before it; then w is in the queue.
  core::Waker* decide_aside(core::RunQueue& queue, core::Waker* w, int n) noexcept {
    if (look(queue) || run.stopped() || (program_ && program_->deadlocked())) [[unlikely]] {
      queue.push(w);
      return decide(queue, n);
    }
    ready_[0] = n;
    const std::size_t i = run.go(ready_, true, any_timer());
    if (run.stopped() || i == ready_.size()) [[unlikely]] {
      queue.push(w);
      if (!run.stopped()) time_comes();
      return decide(queue, n);
    }
    self().passes_over(ready_, i);
    run.goes(ready_[i]);
    if (i == 0) return w;
    core::Waker* const other = leaves(queue, i);
    queue.push(w);
    links_.back() = &w->next;
    ready_.back() = n;
    seen_ = queue.end();
    return other;
  }

  // Removes the process that runs next from the queue, and returns it. `goes_on` is the process in
  // the queue that runs first in the usual order; kNone if there is none.
  [[gnu::noinline]] core::Waker* decide(core::RunQueue& queue, int goes_on) noexcept {
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
      if (ready().empty()) {
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
        i = run.go(ready(), can, any_timer());
        if (run.stopped()) continue;
        if (i == ready().size()) {
          time_comes();
          continue;
        }
        self().passes_over(ready(), i);
      }
      run.goes(ready_[i + 1]);
      core::Waker* const w = leaves(queue, i + 1);
      links_.pop_back();
      ready_.pop_back();
      seen_ = queue.end();
      return w;
    }
  }

  // Returns whether a time may be reached although a process can run: a timer is set, and either
  // the settings allow it, or the ready processes only poll.
  bool any_timer() noexcept { return run.early_times() && program_ && self().any_timer(*program_); }
  void time_comes() noexcept {
    run.time_comes(true);
    self().fire_one(*program_);
  }

  // Visits the wakers in the queue that look() has not visited yet. Returns what look() returns.
  [[gnu::noinline]] core::Waker* look_at_new(core::RunQueue& queue) noexcept {
    if (queue_ != &queue) {
      links_.assign(1, queue.begin());
      ready_.resize(1);
      seen_ = nullptr;
    }
    core::Waker* other = nullptr;
    queue.from_here(seen_, [&](core::Waker* w) {
      const int n = self().number_in(w);
      if (n == checking::kNone) {
        if (!other) other = w;
        return;
      }
      links_.push_back(&w->next);
      ready_.push_back(n);
      if (!run.record.at(n).ready) self().wakes(n);
    });
    queue_ = other ? nullptr : &queue;
    seen_ = queue.end();
    return other;
  }

  // Removes the process ready_[i] from the queue, and returns its waker. The caller removes the
  // last element of both lists, which no longer counts, or sets it.
  core::Waker* leaves(core::RunQueue& queue, std::size_t i) noexcept {
    // A waker begins with its link.
    auto* const w = static_cast<core::Waker*>(reinterpret_cast<core::Link*>(links_[i]));
    if (queue_)
      queue.take_at(links_[i - 1], w);
    else
      queue.take(w);
    // The list is short, so a loop is quicker than two calls that move memory. (The compiler would
    // make such calls of a loop that only copies.)
    for (const std::size_t last = ready_.size() - 1; i < last; ++i) {
      std::swap(links_[i], links_[i + 1]);
      std::swap(ready_[i], ready_[i + 1]);
    }
    return w;
  }

  // Puts process n before the other ready processes in the list, which is then no longer in the
  // order of the queue. Returns false if the process is not ready.
  bool puts_first(int n) noexcept {
    std::size_t at = ready_.size() - 1;
    while (at > 0 && ready_[at] != n) --at;  // process n is usually the last one
    if (at == 0) return false;
    const auto to_front = [at](auto& list) {
      std::rotate(list.begin() + 1, list.begin() + static_cast<std::ptrdiff_t>(at),
                  list.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    };
    to_front(links_);
    to_front(ready_);
    queue_ = nullptr;
    return true;
  }

  struct Yields {
    unsigned count = 0;  // how often the process has yielded since another process ran
    unsigned at = 0;     // the number of switches at the process's last yield
  };
  std::vector<Yields> yields_;  // the index is the number of the process

  // The processes that are ready, from the second element on (invariant 4). The first is for the
  // process that stands aside.
  std::vector<core::Link**> links_ = {nullptr};
  std::vector<int> ready_ = {checking::kNone};
  core::RunQueue* queue_ = nullptr;
  core::Link** seen_ = nullptr;

  core::Waker* decided_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace weft::inline WEFT_ABI::runtime
