// A single-core executor of a run that has a thread of its own, on which a Scheduler runs.
//
//   OwnThread() ──► thread: Scheduler::loop() ──~OwnThread(): a Stop is posted──► joined
#pragma once

#include <thread>
#include "affinity.hpp"
#include "scheduler.hpp"

namespace weft::inline WEFT_ABI::runtime {

// A waiter that ends a scheduler's loop when it is posted to the scheduler.
struct Stop : core::Waiter {
  Scheduler* s;
  explicit Stop(Scheduler& to) noexcept : s(&to) { ops = &kOps; }

 private:
  static Stop* self(core::Waker* w) noexcept { return static_cast<Stop*>(w); }
  static void wake(core::Waker* w) noexcept { self(w)->s->post(w); }
  static void run(core::Waker* w) { self(w)->s->stop(); }
  static const core::WakerOps kOps;
};
inline constexpr core::WakerOps Stop::kOps{&Stop::wake, &Stop::run, nullptr, 0};

class OwnThread final : public RunExecutor {
 public:
  OwnThread(Run& run, int cpu) : scheduler_(run), stop_(scheduler_) {
    run.activated();
    try {
      thread_ = std::thread([this, cpu, &run] {
        name_this_thread("main/core");
        const Pinned pinned(cpu);
        scheduler_.loop();
        run.deactivated();
      });
    } catch (...) {
      run.deactivated();
      throw;
    }
  }
  ~OwnThread() override {
    scheduler_.post(&stop_);
    thread_.join();
  }
  Executor& executor() noexcept override { return scheduler_; }

 private:
  Scheduler scheduler_;
  Stop stop_;
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::runtime
