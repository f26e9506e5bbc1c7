// The single-core scheduler: a trampoline over a run queue (measured faster than symmetric transfer, and safe where that overflowed the
// stack). Woken from its own thread it links; from another it takes the waker through an inbox.
//
//   loop:  run the queue ─► empty: inbox ─► empty: timers ─► sleep (parking.hpp)
#pragma once
#include "group.hpp"

namespace weft::runtime {

class Scheduler final : public Executor {
 public:
  Run& run;

  // `host`: the thread process on which it runs, whose cancellation is served too; may be null.
  explicit Scheduler(Run& r, ProcessBase* host = nullptr) noexcept : run(r), host_(host) { parking_.activity = &r; }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler() = default;

  static Scheduler* current() noexcept { return this_scheduler; }

  // Only from this scheduler's thread.
  void push(core::Waker* w) noexcept {
    w->next = nullptr;
    if (tail_)
      tail_->next = w;
    else
      head_ = w;
    tail_ = w;
  }

  void post(core::Waker* w) noexcept override {
    if (this_scheduler == this) [[likely]]
      push(w);
    else
      post_remote(w);
  }
  void nudge() noexcept override { parking_.signal(Parking::nudged); }
  bool here() const noexcept override { return this_scheduler == this; }
  bool anything_ready() const noexcept { return head_ != nullptr; }

  // Run until stop() was called from within.
  void loop() {
    Context context;
    Context* const outer_context = std::exchange(this_context, &context);
    Scheduler* const outer = std::exchange(this_scheduler, this);
    stop_ = false;
    unsigned turn = 0;
    while (!stop_) {
      if (core::Waker* w = head_) [[likely]] {
        head_ = w->next;
        if (!head_) tail_ = nullptr;
        context.thrown = 0;
        w->ops->run(w);
        if (++turn % kLook == 0) look_around();
        continue;
      }
      context.running = nullptr;
      if (take_inbox()) continue;
      if (run.timers_due()) {
        run.fire_due();
        continue;
      }
      // Whoever concludes on this very thread that nothing can run (a virtual clock, a deadlock) wakes us as any other thread would.
      this_scheduler = nullptr;
      const std::uint32_t s = parking_.sleep();
      this_scheduler = this;
      if (s & Parking::nudged) serve();
      if (run.timers_due()) run.fire_due();
    }
    this_scheduler = outer;
    this_context = outer_context;
  }
  void stop() noexcept { stop_ = true; }

  // Everything in small steps, for a host that has its own loop: at most `steps` of the run queue. True: more is ready.
  bool turn(unsigned steps) {
    Context context;
    Context* const outer_context = std::exchange(this_context, &context);
    Scheduler* const outer = std::exchange(this_scheduler, this);
    look_around();
    while (head_ && steps-- > 0) {
      core::Waker* w = head_;
      head_ = w->next;
      if (!head_) tail_ = nullptr;
      context.thrown = 0;
      w->ops->run(w);
    }
    this_scheduler = outer;
    this_context = outer_context;
    return head_ != nullptr;
  }

 private:
  static constexpr unsigned kLook = 64;  // steps between two looks at the inbox and the clock

  void look_around() noexcept {
    if (parking_.signalled() && (parking_.take() & Parking::nudged)) serve();
    take_inbox();
    if (run.timers_due()) run.fire_due();
  }

  void serve() noexcept {
    run.serve_cancellations(*this);
    if (host_ && host_->op && host_->cancel.load(std::memory_order_acquire)) host_->op->withdraw(*host_);
  }

  // A stack (many threads push), turned round so that the order of arrival is kept.
  void post_remote(core::Waker* w) noexcept {
    core::Waker* head = inbox_.load(std::memory_order_relaxed);
    do w->next = head;
    while (!inbox_.compare_exchange_weak(head, w, std::memory_order_seq_cst));
    parking_.signal(Parking::woken);
  }
  bool take_inbox() noexcept {
    if (!inbox_.load(std::memory_order_seq_cst)) return false;
    core::Waker* w = inbox_.exchange(nullptr, std::memory_order_acquire);
    core::Waker* in_order = nullptr;
    while (w) {
      core::Waker* next = w->next;
      w->next = in_order;
      in_order = w;
      w = next;
    }
    while (in_order) {
      core::Waker* next = in_order->next;
      push(in_order);
      in_order = next;
    }
    return true;
  }

  static inline constinit thread_local Scheduler* this_scheduler = nullptr;

  ProcessBase* const host_;
  core::Waker* head_ = nullptr;
  core::Waker* tail_ = nullptr;
  bool stop_ = false;
  Parking parking_;
  prim::atomic<core::Waker*> inbox_{nullptr};
};

}  // namespace weft::runtime
