// An OS thread as a process. The process is its own executor, and parks on one word.
#pragma once
#include <utility>

#include "group.hpp"
#include "observer.hpp"

namespace weft::inline WEFT_ABI::runtime {

#if WEFT_CHECKED
class CheckedCall;
#endif

class ThreadProcess : public ProcessBase, public Executor {
 public:
  // Null if the thread is not a process of any run (a foreign thread at a channel).
  Run* run = nullptr;
  Context context;

  explicit ThreadProcess(Run* r = nullptr) noexcept : run(r) {
    ops = &kOps;
    parking_.activity = r;
    context.running = r ? this : nullptr;
  }

  // Returns the process of the calling thread; a foreign thread receives a process without a run.
  static ThreadProcess& self() noexcept;
  // Called on a thread that belongs to no run and has waited for patience() (rule 10.6), while the
  // thread counts as asleep. If the function returns true, it is called again after the same time.
  // The pointer can be null.
  static inline bool (*stands_alone)(ThreadProcess&) noexcept = nullptr;
  static ThreadProcess* current_or_null() noexcept { return current; }
  // Sets the process that this thread represents, and returns the previous process. become() is for
  // a checker, which runs several threads in turn on one thread.
  static ThreadProcess* become(ThreadProcess* p) noexcept { return std::exchange(current, p); }
  // Returns the process of this thread, if the thread runs nothing else at the moment (no
  // coroutine); otherwise null.
  static ThreadProcess* plain() noexcept {
    return current && this_context == &current->context ? current : nullptr;
  }

  // Makes this thread represent that process within a scope.
  class Scope {
   public:
    [[gnu::noinline]] explicit Scope(ThreadProcess& p) noexcept
        : outer_(std::exchange(current, &p)),
          outer_context_(std::exchange(this_context, &p.context)) {
      BriefWait::one_more();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    [[gnu::noinline]] ~Scope() {
      BriefWait::one_less();
      current = outer_;
      this_context = outer_context_;
    }

   private:
    ThreadProcess* outer_;
    Context* outer_context_;
  };

  // Called when the executor on which the process ran is destroyed. The process is then its own
  // executor again.
  void on_its_own() noexcept { ops = &kOps; }

  // Polls, and returns whether `ready` became true without waiting (waiting.hpp). Called before the
  // beginning of an operation that would have to wait. Where threads that wait serve other
  // programs, the thread does that instead of polling.
  template <class F>
  bool worth_waiting(F&& ready) noexcept {
    if (attending.load(std::memory_order_relaxed)) return ready();
    return !around_sleep.begin && brief_wait_.until(ready);
  }

  // Within this scope an executor runs on this thread. Since it is the executor that sleeps, the
  // executor must be nudged.
  class Hosting {
   public:
    [[gnu::noinline]] Hosting(ThreadProcess& self, Executor& e) noexcept
        : self_(self),
          executor_(e),
          outer_(self.hosting_.exchange(&e, std::memory_order_seq_cst)) {}
    Hosting(const Hosting&) = delete;
    Hosting& operator=(const Hosting&) = delete;
    [[gnu::noinline]] ~Hosting() {
      self_.op = nullptr;
      self_.hosting_.store(outer_, std::memory_order_seq_cst);
      // Another thread that has found the executor here might still be using it; the executor is
      // destroyed after this.
      self_.nudging_.wait_until_none();
    }
    // Called when the process is about to wait by `op` at `place`. The executor then withdraws the
    // operation when it is nudged. An earlier request was sent to the thread's own parking, or
    // found nothing to withdraw.
    void waits(const OpKind& op, void* place) noexcept;

   private:
    ThreadProcess& self_;
    Executor& executor_;
    Executor* const outer_;
  };

  // Sleeps until the operation that has begun has its outcome. Serves cancellations and timers
  // meanwhile.
  void block(const OpKind& kind) noexcept;
  // Called when a signal of the host language (Ctrl-C) arrived while the thread was parked. Returns
  // true to ask for withdrawal.
  bool (*interrupted)(ThreadProcess&) = nullptr;

  void post(core::Waker*) noexcept override { parking_.signal(Parking::woken); }
  void nudge() noexcept override;
  bool here() const noexcept override { return current == this; }
  bool sleeps() const noexcept override { return parking_.has_sleeper(); }
  Poller* poller(Poller& (*make)()) override {
    if (!parking_.poller()) parking_.poll_by(make());
    return parking_.poller();
  }
#if WEFT_CHECKED
  CheckedCall* call = nullptr;  // the operation in which the process is; null outside a check
#endif
  // The clock of the thread's CPU time, once the thread runs; 0 means that it is not known.
  prim::atomic<std::int32_t> cpu_clock{0};

 private:
  struct NoRunActivity;  // the Activity of a thread in no run
  static void wake(core::Waker* w) noexcept { self_of(w)->parking_.signal(Parking::woken); }
  static ThreadProcess* self_of(core::Waker* w) noexcept {
    return static_cast<ThreadProcess*>(static_cast<ProcessBase*>(w));
  }
  static Executor* executor_of(ProcessBase& p) noexcept { return static_cast<ThreadProcess*>(&p); }
  static const ProcessOps kOps;
  static inline constinit thread_local ThreadProcess* current = nullptr;

  Parking parking_;
  BriefWait brief_wait_;
  prim::atomic<Executor*> hosting_{nullptr};
  Posting nudging_;
};

inline const ProcessOps ThreadProcess::kOps{{&ThreadProcess::wake, nullptr, nullptr, 0},
                                            &ThreadProcess::executor_of};

}  // namespace weft::inline WEFT_ABI::runtime
