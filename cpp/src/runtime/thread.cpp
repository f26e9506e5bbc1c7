// The definitions of runtime/thread.hpp.
#include <weft/runtime/checked_call.hpp>
#include <weft/runtime/thread.hpp>

namespace weft::inline WEFT_ABI::runtime {

struct ThreadProcess::NoRunActivity final : Activity {
  ThreadProcess process;
  explicit NoRunActivity(Run& r) noexcept {
    process.run = &r;
    process.parking_.activity = this;
  }
  void activated() noexcept override { process.run->activated(); }
  std::uint32_t deactivated() noexcept override {
    process.run->deactivated();
    return stands_alone && patience().load(std::memory_order_relaxed) != 0;
  }
  std::int64_t wake_time() noexcept override { return process.run->wake_time(); }
  bool stood_still(std::uint32_t) noexcept override { return stands_alone(process); }
};

ThreadProcess& ThreadProcess::self() noexcept {
  if (current) return *current;
  struct TimersOutsideRuns {  // a run for the timers of threads in no run; it declares no deadlock
    Run run;
    TimersOutsideRuns() noexcept { run.detect_deadlock = false; }
  };
  static TimersOutsideRuns made;
  static thread_local NoRunActivity guest(made.run);
  return guest.process;
}

void ThreadProcess::block(const OpKind& kind) noexcept {
  waits_in(&kind);
  if (cancel().load(std::memory_order_acquire) && kind.withdraw(*this)) {
    waits_in(nullptr);
    return;
  }
#if WEFT_CHECKED
  if (points && call) {  // The scheduler of the check serves timers and cancellations.
    call->parks();
    waits_in(nullptr);
    return;
  }
#endif
  if (Observer* const o = watched()) o->suspended(this, nullptr, false);
  for (;;) {
    BriefWait::one_less();
    const std::uint32_t s = parking_.sleep();
    BriefWait::one_more();
    if (s & Parking::woken) break;
    if (run && run->timers_due()) run->fire_due();
    if ((s & Parking::nudged) && cancel().load(std::memory_order_acquire) && kind.withdraw(*this))
      break;
    if ((s & Parking::nudged) && interrupted && interrupted(*this) && kind.withdraw(*this)) break;
  }
  if (Observer* const o = watched()) o->resumes(*this, nullptr);
  waits_in(nullptr);
}

void ThreadProcess::nudge() noexcept {
  const Posting::Now now(nudging_);
  if (Executor* h = hosting_.load(std::memory_order_seq_cst))
    h->nudge();
  else
    parking_.signal(Parking::nudged);
}

void ThreadProcess::Hosting::waits(const OpKind& op, void* place) noexcept {
  self_.place = place;
  self_.op = &op;
  if (self_.cancel().load(std::memory_order_seq_cst)) executor_.nudge();
}

}  // namespace weft::inline WEFT_ABI::runtime
