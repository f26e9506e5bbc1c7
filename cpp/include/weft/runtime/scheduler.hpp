// The single-core scheduler: a trampoline over a run queue. (A trampoline was measured to be faster
// than symmetric transfer, and is safe where symmetric transfer overflowed the stack.) A wake-up
// from the scheduler's own thread links the waker into the run queue; a wake-up from another thread
// puts it into an inbox.
//
//   loop:  run_ready() ─► empty: inbox ─► empty: timers ─► sleep (parking.hpp)
#pragma once
#include <coroutine>
#include <forward_list>
#include <mutex>
#include <utility>

#include "chooser.hpp"
#include "group.hpp"
#include "observer.hpp"
#include "pages.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Scheduler final : public Executor {
 public:
  Run& run;

  // Makes a scheduler. `host` is the thread process on which the scheduler runs, and whose
  // cancellation it also serves; it may be null.
  [[gnu::noinline, gnu::cold]] explicit Scheduler(Run& r, ProcessBase* host = nullptr) noexcept
      : run(r), host_(host) {
    parking_.activity = &r;
  }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  static Scheduler* current() noexcept { return this_scheduler; }

  // Makes w runnable. Called only from this scheduler's thread.
  void push(core::Waker* w) noexcept { queue_.push(w); }

  void post(core::Waker* w) noexcept override {
    if (this_scheduler == this) [[likely]]
      push(w);
    else
      post_remote(w);
  }
  void nudge() noexcept override { parking_.signal(Parking::nudged); }
  bool here() const noexcept override { return this_scheduler == this; }
  bool sleeps() const noexcept override { return parking_.has_sleeper(); }
  const ProcessBase* runs_now() const noexcept override {
    return prim::load_from(context_.running, std::memory_order_relaxed);
  }
  void hurry() noexcept override {
    nudge();
    // The scheduler reads the flag plainly at each step: an atomic read would cost an instruction.
    // If the flag is stored at this moment, the scheduler still checks it after some steps.
    prim::store_to(context_.attention, true, std::memory_order_relaxed);
  }
  // Returns the operations for processes whose home is this scheduler. Can be called from any
  // thread.
  const ProcessOps& ops_here(const ProcessOps& base) override {
    const std::lock_guard g(homed_lock_);
    for (const ProcessOps& ops : homed_)
      if (ops.executor == base.executor && ops.run == base.run) return ops;
    ProcessOps& made = homed_.emplace_front(base);
    made.home = &queue_;
    return made;
  }
  bool anything_ready() const noexcept { return !queue_.empty(); }
  // Returns the waker that runs next, if it is already known; otherwise null.
  const core::Waker* next_ready() const noexcept {
    return queue_.empty() ? nullptr : queue_.front();
  }
  bool nobody_ready() noexcept override {
    if (queue_.empty()) look_around();
    return queue_.empty();
  }
  void give_way(core::Waker* w) noexcept override {
    look_around();
    push(w);
  }
  Poller* poller(Poller& (*make)()) override {
    if (parking_.bell) return nullptr;  // a host's loop waits, not this scheduler
    if (!parking_.poller()) parking_.poll_by(make());
    return parking_.poller();
  }
  // Handles what has arrived from elsewhere: cancellations, wake-ups from other threads, timers,
  // descriptors.
  [[gnu::noinline]] void look_around() noexcept {
    if (parking_.signalled() && (parking_.take() & Parking::nudged)) serve();
    take_inbox();
    if (run.timers_due()) run.fire_due();
    if (Poller* const io = parking_.poller()) [[unlikely]]
      io->glance();
    heed();
  }
  // Checks whether there is an observer. Called on the scheduler's own thread.
  void heed() noexcept {
    if (watched()) [[unlikely]] {
      halt_ |= kWatched;
      context_.attention = true;
    }
  }

  // Runs until stop() is called from within.
  void loop() {
    prim::bias_to_this_thread();
    Context& context = context_;
    context = {};
    context.executor = this;
    Context* const outer_context = std::exchange(this_context, &context);
    Scheduler* const outer = std::exchange(this_scheduler, this);
    core::RunQueue* const outer_queue = std::exchange(core::current_run_queue, &queue_);
    halt_ = chooser ? kWatched : 0;
    heed();
    looping_ = true;
    while (!halt_ || observed(context)) {
      run_ready(context);
      // With an observer, observed() has called idle() when nothing is ready, and then the
      // scheduler sleeps.
      if ((halt_ & kStop) != 0 || !queue_.empty()) continue;
      context.running = nullptr;
      if (take_inbox()) continue;
      if (run.timers_due()) {
        run.fire_due();
        continue;
      }
      // A thread that falls asleep here might find that nothing can run, and let virtual time jump
      // or declare a deadlock. It then wakes the scheduler as any other thread would.
      this_scheduler = nullptr;
      const std::uint32_t s = parking_.sleep();
      this_scheduler = this;
      if (s & Parking::nudged) serve();
      if (run.timers_due()) run.fire_due();
      heed();
    }
    looping_ = false;
    this_scheduler = outer;
    this_context = outer_context;
    core::current_run_queue = outer_queue;
  }
  void stop() noexcept {
    halt_ |= kStop;
    context_.attention = true;
  }

  // Removes the next waker from the queue and returns it, if `kind` runs it. Otherwise returns
  // null, and control returns to the loop. take() is for a process that has a stack of its own and
  // passes control on as it parks.
  core::Waker* take(void (*kind)(core::Waker*)) noexcept {
    // In a turn the steps are counted, so control must return to the loop.
    if (!looping_) return nullptr;
    if (++handed_on_ % kLook == 0) look_around();
    return queue_.empty() || queue_.front()->ops->run != kind ? nullptr : queue_.pop();
  }

  // Does one turn, for a host that has an event loop of its own: runs steps until the run queue is
  // empty or `budget` ns have passed. Returns true if more processes are ready. If steps are short,
  // the clock is read every 4 to 8 µs, at the latest after kLook steps: the number of steps between
  // two readings follows the pace of the last steps.
  bool turn(std::int64_t budget) {
    prim::bias_to_this_thread();
    Context& context = context_;
    context = {};
    context.executor = this;
    Context* const outer_context = std::exchange(this_context, &context);
    Scheduler* const outer = std::exchange(this_scheduler, this);
    core::RunQueue* const outer_queue = std::exchange(core::current_run_queue, &queue_);
    look_around();
    std::int64_t last = prim::now();
    const std::int64_t until = last + budget;
    while (!queue_.empty()) {
      for (unsigned n = stride_; n > 0 && !queue_.empty(); --n) {
        core::Waker* w = queue_.pop();
        if (context.attention) context.attended();
        step(w, context);
      }
      const std::int64_t now = prim::now();
      stride_ = now - last > kGlance                          ? stride_ / 2 + (stride_ == 1)
                : stride_ < kLook && now - last < kGlance / 2 ? stride_ * 2
                                                              : stride_;
      if (now >= until) break;
      last = now;
      if (parking_.signalled() || inbox_.load(std::memory_order_relaxed)) look_around();
    }
    if (queue_.empty()) look_around();
    this_scheduler = outer;
    this_context = outer_context;
    core::current_run_queue = outer_queue;
    return !queue_.empty();
  }
  // Between two turns the scheduler rests: see Parking. end_turn() returns true if nothing is ready
  // and nothing has arrived meanwhile. After the rest, begin_turn() begins a turn.
  bool end_turn() noexcept {
    return queue_.empty() && !inbox_.load(std::memory_order_seq_cst) && parking_.end_turn();
  }
  void begin_turn() noexcept { parking_.begin_turn(); }
  void host_by(void (*bell)(Parking&) noexcept, void* host) noexcept {
    parking_.bell = bell;
    parking_.host = host;
  }
  void* host() const noexcept { return parking_.host; }

 private:
  // The number of steps between two checks of the inbox and the clock.
  static constexpr unsigned kLook = 64;
  // The maximum time in ns between two readings of the clock in a turn, if steps are short.
  static constexpr std::int64_t kGlance = 8000;

  // Runs until no process is ready or the loop is to halt. The head of the queue stays in a
  // register: a step stores only which process runs, and that this process is no longer parked.
  [[gnu::always_inline]] void run_ready(Context& context) {
    unsigned left = kLook;
    core::Waker* w = queue_.front();
    while (w) {
      core::Waker* next = queue_.advance(w);
      if (w->is(core::NodeFlags::framed)) [[likely]] {
        resume(w, context);
      } else {  // A process with a stack of its own can pass control to the next process itself:
                // take().
        if (next) queue_.rest_at(next);
        w->ops->run(w);
        next = nullptr;
      }
      if (!next) next = queue_.front();
      if (context.attention || --left == 0) [[unlikely]] {
        left = kLook;
        if (next) queue_.rest_at(next);
        if (context.attention) context.attended();
        if (!halt_) look_around();
        if (halt_) return;
        next = queue_.front();
      }
      w = next;
    }
  }
  [[gnu::always_inline]] static void step(core::Waker* w, Context& context) {
    if (w->is(core::NodeFlags::framed)) [[likely]]
      resume(w, context);
    else
      w->ops->run(w);
  }
  // Resumes a coroutine, whose frame begins at a constant offset.
  [[gnu::always_inline]] static void resume(core::Waker* w, Context& context) {
    ProcessBase* const p = static_cast<ProcessBase*>(w);
    context.running = p;
    p->op = nullptr;  // no longer parked; this is cleared here, so that no operation needs to
    std::coroutine_handle<>::from_address(reinterpret_cast<char*>(w) - core::kFrame).resume();
  }

  static constexpr std::uint8_t kStop = 1;
  static constexpr std::uint8_t kWatched = 2;
  // Runs the loop while there is an observer and something to do. Returns false if the loop is to
  // stop.
  [[gnu::cold, gnu::noinline]] bool observed(Context& context) {
    if (chooser) return checked(context);
    while (!(halt_ & kStop)) {
      Observer* const o = watched();
      if (!o) {
        halt_ = 0;
        return true;
      }
      if (queue_.empty()) {
        context.running = nullptr;
        look_around();
        if (!queue_.empty()) continue;
        o->idle(run, *this);
        if (queue_.empty()) return true;
        continue;
      }
      core::Waker* const w = queue_.pop();
      if (context.attention) context.attended();
      context.running = nullptr;
      if (w->ops->frame) o->resumes(*static_cast<ProcessBase*>(w), &context);
      // A process without a frame to resume notifies the observer itself that it resumes.
      step(w, context);
      o->suspended(context.running, &context, !queue_.empty());
      if (++handed_on_ % kLook == 0 || parking_.signalled()) look_around();
    }
    return false;
  }

  // Replaces observed() while the program is checked: runs one step at a time, of the process that
  // the chooser names.
  [[gnu::cold, gnu::noinline]] bool checked(Context& context) {
    // A process with a stack of its own passes control to no other process: take().
    looping_ = false;
    while (!(halt_ & kStop)) {
      context.running = nullptr;
      if (parking_.signalled() || inbox_.load(std::memory_order_relaxed)) look_around();
      core::Waker* const w = chooser->next(*this, queue_);
      if (!w) return true;
      if (context.attention) context.attended();
      step(w, context);
    }
    return false;
  }

  [[gnu::noinline, gnu::cold]] void serve() noexcept {
    run.serve_cancellations(*this);
    if (host_ && host_->op && host_->cancel().load(std::memory_order_acquire))
      host_->op->withdraw(*host_);
  }

  // The inbox is a stack, because many threads push to it; it is reversed to keep the order of
  // arrival.
  [[gnu::noinline]] void post_remote(core::Waker* w) noexcept {
    const Posting::Now now(posting_);
    core::Waker* head = inbox_.load(std::memory_order_relaxed);
    do w->next = head;
    while (!inbox_.compare_exchange_weak(head, w, std::memory_order_seq_cst));
    parking_.signal(Parking::woken);
  }
  [[gnu::noinline]] bool take_inbox() noexcept {
    if (!inbox_.load(std::memory_order_seq_cst)) return false;
    core::Waker* w = inbox_.exchange(nullptr, std::memory_order_acquire);
    core::Waker* in_order = nullptr;
    while (w) {
      core::Waker* next = core::next_of(w);
      w->next = in_order;
      in_order = w;
      w = next;
    }
    while (in_order) {
      core::Waker* next = core::next_of(in_order);
      push(in_order);
      in_order = next;
    }
    return true;
  }

  static inline constinit thread_local Scheduler* this_scheduler = nullptr;

  ProcessBase* const host_;
  // The context is a member, because a process with a stack of its own might be on another stack
  // when it asks for the context.
  alignas(kLine) Context context_;
  core::RunQueue queue_;
  core::SpinLock homed_lock_;
  std::forward_list<ProcessOps> homed_;
  std::uint8_t halt_ = 0;  // what the loop must check before it continues: kStop, kWatched
  bool looping_ = false;
  unsigned handed_on_ = 0;
  unsigned stride_ = 1;  // how many steps of a turn pass between two readings of the clock
  Parking parking_;
  prim::atomic<core::Waker*> inbox_{nullptr};
  Posting posting_;  // the last member, so it is destroyed first
};

}  // namespace weft::inline WEFT_ABI::runtime
