// The multi-core executor of a run: a crew (crew.hpp) with threads. The crew's first worker may be
// the thread that started the run.
//
//   Cores ──start(from)──► threads for the workers from `from` on ──~Cores()──► stopped and joined
//   worker 0 in the run's own thread: loop() until release()
//
// A process is resumed by whichever worker took it, so nothing that belongs to a thread may be kept
// across a suspension: the worker and its Context are found again through thread-local pointers,
// which are set once for each thread.
#pragma once
#include <coroutine>
#include <vector>

#include <thread>
#include "affinity.hpp"
#include "crew.hpp"
#include "group.hpp"
#include "observer.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Cores final : public Executor, public RunExecutor, private Crew<Cores> {
  using Base = Crew<Cores>;
  friend Base;
  using Base::call, Base::poll_by, Base::look_everywhere, Base::look_outside, Base::ready,
      Base::ready_from_elsewhere, Base::size, Base::while_held, Base::work, Base::worker;
  using typename Base::Worker;

 public:
  // `cpus` lists the CPUs to which the threads are bound, one for each thread; if it is empty, they
  // are not bound. `host` is the thread process whose thread is worker 0, or null.
  Cores(Run& run, unsigned workers, std::vector<int> cpus, ProcessBase* host = nullptr)
      : Base(workers, &run), run_(run), cpus_(std::move(cpus)), host_(host) {}
  ~Cores() override {
    stop();
    for (const Homed* h = homed_.load(std::memory_order_relaxed); h;)
      delete std::exchange(h, h->next);
  }

  // Starts threads for the workers from `from` on. Throws std::system_error if the system cannot
  // start a thread.
  void start(unsigned from) {
    for (unsigned i = from; i < size(); ++i) {
      run_.activated();
      try {
        threads_.emplace_back([this, i] { help(i); });
      } catch (...) {
        run_.deactivated();
        throw;
      }
    }
  }

  Executor& executor() noexcept override { return *this; }
  bool multi() const noexcept override { return true; }
  // A process of this executor can be on any of the executor's threads.
  bool here() const noexcept override { return false; }
  void post(core::Waker* w) noexcept override {
    if (this_crew == this) [[likely]]
      ready(*this_worker, w);
    else
      post_remote(w);
  }
  // Returns operations for processes that start here; through them a thread that wakes such a
  // process finds this executor immediately. Can be called from any thread.
  const ProcessOps& ops_here(const ProcessOps& base) override {
    for (const Homed* known = nullptr;;) {
      const Homed* const first = homed_.load(std::memory_order_acquire);
      for (const Homed* h = first; h != known; h = h->next)
        if (h->run == base.run && h->executor == base.executor && h->frame == base.frame) return *h;
      known = first;
      auto* const made = new Homed(base, *this, first);
      const Homed* expected = first;
      if (homed_.compare_exchange_strong(expected, made, std::memory_order_release)) return *made;
      delete made;
    }
  }
  void nudge() noexcept override {
    const Posting::Now now(posting_);
    Base::nudge();
    if (host_ && host_->cancel().load(std::memory_order_acquire)) {
      host_asked_.store(1, std::memory_order_release);
      call(0);
    }
  }
  bool sleeps() const noexcept override { return Base::all_sleep(); }
  Poller* poller(Poller& (*make)()) override {
    polling_.lock();
    try {
      if (!Base::poller()) poll_by(make());
    } catch (...) {
      polling_.unlock();
      throw;
    }
    polling_.unlock();
    return Base::poller();
  }
  void held(void (*f)(void*), void* x) override {
    while_held(*this_worker, [&] { f(x); });
  }
  bool nobody_ready() noexcept override { return !look_everywhere(*this_worker); }
  void give_way(core::Waker* w) noexcept override {
    look_outside(*this_worker);
    ready(*this_worker, w);
  }

  // Works as worker i on the calling thread until stop(). The run must have counted the thread as
  // active.
  void help(unsigned i) noexcept {
    name_worker(host_, i);
    {
      const Pinned pinned(cpus_.empty() ? -1 : cpus_[i % cpus_.size()]);
      const Seat seat(*this, i);
      work(worker(i), [this] { return stopping_.load(std::memory_order_acquire) != 0; });
    }
    run_.deactivated();
  }
  void stop() noexcept {
    stopping_.store(1, std::memory_order_release);
    for (unsigned i = 0; i < size(); ++i) call(i);
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  // Works as worker 0 on the calling thread, until release().
  void loop() {
    const Pinned pinned(cpus_.empty() ? -1 : cpus_[0]);
    const Seat seat(*this, 0);
    work(worker(0), [this] {
      if (host_asked_.load(std::memory_order_relaxed) != 0 && host_asked_.exchange(0) != 0 &&
          host_->op)
        host_->op->withdraw(*host_);
      return released_.load(std::memory_order_acquire) != 0;
    });
    released_.store(0, std::memory_order_relaxed);
  }
  void release() noexcept {
    const Posting::Now now(posting_);
    released_.store(1, std::memory_order_release);
    call(0);
  }

  // A waiter that ends worker 0's loop when it is woken.
  struct Release : core::Waiter {
    Cores* c;
    explicit Release(Cores& of) noexcept : c(&of) { ops = &kOps; }

   private:
    static void wake(core::Waker* w) noexcept { static_cast<Release*>(w)->c->release(); }
    static constexpr core::WakerOps kOps{&wake, nullptr, nullptr, 0};
  };

  // The worker that runs on this thread, and its executor; null while the worker sleeps.
  static inline constinit thread_local Worker* this_worker = nullptr;
  static inline constinit thread_local const Cores* this_crew = nullptr;

 private:
  struct Homed final : ProcessOps {
    Homed(const ProcessOps& of, Cores& c, const Homed* after) noexcept
        : ProcessOps(of), cores(&c), next(after) {
      wake = &woken;
    }
    static void woken(core::Waker* w) noexcept {
      static_cast<const Homed*>(w->ops)->cores->post(w);
    }
    Cores* const cores;
    const Homed* const next;
  };

  // Makes the calling thread act as a worker while the object lives.
  struct Seat {
    explicit Seat(Cores& c, unsigned i) noexcept
        : outer_context(std::exchange(this_context, &context)),
          outer_worker(std::exchange(this_worker, &c.worker(i))),
          outer_crew(std::exchange(this_crew, &c)),
          outer_queue(std::exchange(core::current_run_queue, nullptr)) {
      prim::bias_to_this_thread();
      context.executor = &c;
      context.moves = true;
    }
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat() {
      this_context = outer_context;
      this_worker = outer_worker;
      this_crew = outer_crew;
      core::current_run_queue = outer_queue;
    }
    Context context;
    Context* const outer_context;
    Worker* const outer_worker;
    const Cores* const outer_crew;
    core::RunQueue* const outer_queue;
  };

  [[gnu::noinline]] void post_remote(core::Waker* w) noexcept {
    const Posting::Now now(posting_);
    ready_from_elsewhere(w, dozing_ && dozing_->crew == this ? dozing_ : nullptr);
  }

  // --- functions that the crew calls -------------------------------------------------------------
  [[gnu::always_inline]] void step(Worker&, ProcessBase* p) {
    Context& c = *this_context;
    if (c.attention) [[unlikely]]
      return step_attentively(c, p);
    resume(c, p);
    // If the process has ended (Final), it no longer exists. Otherwise it is suspended; from here
    // on another thread can resume it.
    if (c.running) p->runs_on.store(0, std::memory_order_release);
  }
  [[gnu::always_inline]] static void resume(Context& c, ProcessBase* p) {
    c.running = p;
    if (p->is(core::NodeFlags::framed)) [[likely]] {
      // The process is no longer parked. An operation that is over at once sees that in op, which
      // is null (PlainAwaiter).
      p->op = nullptr;
      std::coroutine_handle<>::from_address(reinterpret_cast<char*>(static_cast<core::Waker*>(p)) -
                                            core::kFrame)
          .resume();
    } else {
      p->ops->run(p);
    }
  }
  [[gnu::noinline]] void step_attentively(Context& c, ProcessBase* p) {
    c.attended();
    Observer* const o = watched();
    if (o && p->ops->frame) o->resumes(*p, &c);
    resume(c, p);
    if (o) {
      c.attention = true;
      o->suspended(c.running ? p : nullptr, &c, false);
    }
    if (c.running) p->runs_on.store(0, std::memory_order_release);
  }
  // Checks whether there is an observer; if so, the next steps pay attention to it.
  void heed() noexcept {
    if (watched()) [[unlikely]]
      this_context->attention = true;
  }
  void withdraw_cancelled(Worker&) noexcept { run_.serve_cancellations(*this); }
  void withdraw(ProcessBase& p) noexcept override {
    // The process might have handled the request itself, in the step during which the cancellation
    // was noticed, and might wait for something else by now.
    Base::withdraw(p, [](ProcessBase& q) {
      if (q.cancel().load(std::memory_order_relaxed) != 0 && q.op && q.op->withdraw(q))
        q.ops->wake(&q);
    });
  }
  bool fire_due() noexcept {
    bool any = false;
    if (Poller* const io = Base::poller()) [[unlikely]]
      any = io->glance();
    if (!run_.timers_due()) return any;
    run_.fire_due();
    return true;
  }
  // whether a worker must wait for a time or a descriptor while a step runs
  bool timers_armed() const noexcept {
    return run_.wake_time() != prim::forever || Base::poller() != nullptr;
  }
  std::int64_t earliest() const noexcept { return run_.wake_time(); }
  std::int64_t clock() const noexcept { return prim::now(); }
  // A thread that falls asleep here might find that nothing can run. It then wakes the worker as
  // any other thread would.
  void asleep(Worker& w) noexcept {
    this_context->running = nullptr;
    this_worker = nullptr;
    this_crew = nullptr;
    dozing_ = &w;
  }
  void awake(Worker& w) noexcept {
    this_worker = &w;
    this_crew = this;
    dozing_ = nullptr;
  }

  // the worker that sleeps on this thread
  static inline constinit thread_local const Worker* dozing_ = nullptr;

  Run& run_;
  core::SpinLock polling_;  // held while the poller is made
  const std::vector<int> cpus_;
  ProcessBase* const host_;
  prim::atomic<const Homed*> homed_{nullptr};
  prim::atomic<std::uint8_t> released_{0};
  prim::atomic<std::uint8_t> stopping_{0};
  // Not 0 once the host was cancelled. Worker 0, which runs on the host's thread, acts on the
  // request.
  prim::atomic<std::uint8_t> host_asked_{0};
  std::vector<std::thread> threads_;
  Posting posting_;  // the last member, so it is destroyed first
};

}  // namespace weft::inline WEFT_ABI::runtime
