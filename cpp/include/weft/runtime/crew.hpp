// The crew of a multi-core executor: how its workers share out the processes that are ready, sleep
// and wake. This file has no threads, no clock and no run, so that the protocol can be explored by
// itself; the Host (cores.hpp) supplies them.
//
//   A worker (work()), again and again (the first arrow only after a notice, asymmetric.hpp):
//
//     signals, cancellations ──► take() from its queue ──► Host::step() ──► let go: runs_on := 0
//                                   │ queue empty
//                                   ▼
//                   inbox ──► timers that are due ──► steal() from others
//                                   │ nothing found
//                                   ▼
//     idle(): bit set ──► look again ──► Parking::sleep() ──signal, or time──► bit cleared
//
//   A process:
//
//                   ┌──────────────── take(): runs_on := worker ──────────────┐
//                   │                                                         ▼
//     ready: in one queue, or in the inbox                                 running
//                   ▲                                                         │
//                   │ by a worker: ready(), to its queue                      │ suspends,
//                   │ otherwise: ready_from_elsewhere(), to the inbox         │ and is let go
//                   └───────────────────────── parked ◄───────────────────────┘
//
// Terms. A worker's steps are *long* if they take more than kLong on average. The *keeper* is the
// idle worker that wakes by the clock (5). A worker is *woken* if there may be a process for it to
// run, and *nudged* if it is to check cancellations or the time again (Parking's signals).
//
// The Host, a class derived from this one, provides
//   step(worker, process)     runs the process until it suspends or ends, and lets go of it
//   withdraw_cancelled(w)     calls withdraw() for each cancelled process, while all are held
//   clock()                   the time in ns
//   fire_due()                fires the timers that are due; returns whether there were any
//   heed()                    is called now and then by a worker that is at work
//   timers_armed()            whether there is any timer
//   earliest()                when the first timer is due; prim::forever if there is none
//   asleep(w), awake(w)       are called before and after the sleep of a worker
//
// Invariants
//  1 A process is in at most one queue, and is run only by the worker that took it. A process that
//    is woken before its suspension is complete is not taken until its worker has let go of it
//    (runs_on == 0, stored after the suspension with release, read before the resumption with
//    acquire).
//  2 Only a worker that is not idle has anything in its queue.
//  3 No process is forgotten in the inbox: a thread that puts a process there checks for idle
//    workers afterwards and signals one; a worker sets its idle bit first and checks the inbox
//    afterwards (sequentially consistent on both sides). The same holds for `pending_`.
//  4 The sleep of an idle worker is counted by its Parking; a signal that gives the worker
//    something to do is counted before the worker wakes (parking.hpp).
//  5 One idle worker, the keeper, keeps time: it wakes for timers, and while other workers are busy
//    it takes over processes that wait behind a process whose step does not end. The other idle
//    workers sleep without a limit.
//
// Which workers are woken, and when. Waking another core takes microseconds, and separating
// processes that talk to each other costs more than it gains. So a surplus of ready processes at a
// worker wakes another worker only if the steps of the first have recently been long or kMany
// processes wait; and at most one woken worker at a time is on its way to search (as in Go's
// scheduler). The keeper finds the processes that are left, on rounds whose period doubles while
// they do not help.
#pragma once

#include <memory>
#include "deque.hpp"
#include "parking.hpp"

namespace weft::inline WEFT_ABI::runtime {

template <class Host>
class Crew {
 public:
  class alignas(64) Worker final : public Activity {
   public:
    unsigned index = 0;
    Crew* crew = nullptr;
    StealQueue queue;

    // How many steps the worker has begun.
    std::uint32_t steps() const noexcept { return queue.taken(); }

   private:
    friend class Crew;
    // A worker is an Activity: it passes on to the run what the worker's Parking reports.
    void activated() noexcept override { crew->run_->activated(); }
    std::uint32_t deactivated() noexcept override { return crew->run_->deactivated(); }
    bool stood_still(std::uint32_t number) noexcept override {
      return crew->run_->stood_still(number);
    }
    void awoken() noexcept override { crew->run_->awoken(); }
    std::int64_t wake_time() noexcept override { return crew->wake_time(*this); }

    Parking parking_;
    // Whether the worker's steps are long, as far as is known. The worker itself writes this; other
    // workers read it as a hint.
    prim::atomic<bool> long_steps_{true};
    // Used by the worker alone:
    // whether it has stolen processes and does not know yet whether the theft was worth it
    bool stole_ = false;
    unsigned round_ = 0;  // how often in a row it has found only processes that cannot be taken yet
    std::uint32_t stolen_at_ = 0;  // steps() at the time of the worker's last theft
    // The measurement of the worker's steps: busy_ is the time in ns that the steps since
    // since_steps_ took, up to the time since_.
    std::int64_t since_ = 0;
    std::uint32_t since_steps_ = 0;
    std::int64_t busy_ = 0;
    // The steps() of all workers at the time when this worker went to sleep.
    std::unique_ptr<std::uint32_t[]> noted_;
  };

  // `run` is notified when workers stop or start having something to do. `long_steps` is what is
  // assumed about the workers' steps before they have been measured.
  Crew(unsigned workers, Activity* run, bool long_steps = true)
      : n_(workers), run_(run), workers_(new Worker[workers]) {
    for (unsigned i = 0; i < n_; ++i) {
      Worker& w = workers_[i];
      w.index = i;
      w.crew = this;
      w.parking_.activity = &w;
      w.long_steps_.store(long_steps, std::memory_order_relaxed);
      w.noted_.reset(new std::uint32_t[n_]());
    }
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  unsigned size() const noexcept { return n_; }
  Worker& worker(unsigned i) noexcept { return workers_[i]; }

  // --- from a worker's own thread ----------------------------------------------------------------

  [[gnu::always_inline]] void ready(Worker& w, core::Waker* p) noexcept {
    if (!w.queue.push_cheaply(p)) [[unlikely]]
      ready_slowly(w, p);
  }

  // Works until `done()` returns true. The worker calls done() at first and after every signal, so
  // a thread that changes its answer must call() this worker.
  template <class Done>
  void work(Worker& w, Done&& done) noexcept {
    w.since_ = host().clock();
    w.since_steps_ = w.steps();
    w.queue.lock().notify(OwnersLock::kLook);
    const std::uint8_t me = mark(w);
    for (;;) {
      // As long as nobody wants anything of this worker, it stays in this loop.
      while (ProcessBase* p = w.queue.take_cheaply(me)) step(w, p);
      if (w.queue.lock().notified(OwnersLock::kLook)) {
        attend(w);
        if (done()) return;
      }
      if (ProcessBase* p = w.queue.take(me)) {
        if (w.queue.lock().notified(OwnersLock::kIdle) && somebody_idle(w)) appoint(w);
        step(w, p);
        continue;
      }
      // If the queue is not empty, its processes are still being suspended by their last workers.
      if (w.queue.size() != 0) {
        prim::pause(w.round_++);
        continue;
      }
      w.round_ = 0;
      if (take_inbox(w) || host().fire_due() || steal(w, false)) continue;
      idle(w);
    }
  }

  // Searches all queues for a ready process, on behalf of a process that gives way. Returns true if
  // there is a ready process, which is then in this worker's queue.
  bool look_everywhere(Worker& w) noexcept {
    if (w.queue.size() != 0) return true;
    look_outside(w);
    return w.queue.size() != 0 || steal(w, false);
  }
  // Takes the processes in the inbox, and fires the timers that are due.
  void look_outside(Worker& w) noexcept {
    take_inbox(w);
    host().fire_due();
  }

  // Prevents all workers of this crew from starting to run a process until resume_all(); a process
  // with runs_on == 0 then stays suspended. Called by at most one worker at a time (serve() ensures
  // that).
  void hold_all(Worker& me) noexcept {
    for (unsigned i = 0; i < n_; ++i)
      for (unsigned round = 0; !workers_[i].queue.lock().try_book();) prim::pause(round++);
    for (unsigned i = 0; i < n_; ++i)
      if (i != me.index) workers_[i].queue.lock().announce();
    OwnersLock::fence();
    for (unsigned i = 0; i < n_; ++i)
      if (i != me.index) workers_[i].queue.lock().await_owner();
  }
  void resume_all(Worker& me) noexcept {
    for (unsigned i = 0; i < n_; ++i) {
      if (i == me.index)
        workers_[i].queue.lock().unbook();
      else
        workers_[i].queue.lock().depart();
    }
  }
  // Calls f() while all workers are held. Called from within a step.
  template <class F>
  void while_held(Worker& me, F&& f) {
    for (unsigned round = 0; serving_.exchange(1, std::memory_order_seq_cst) != 0;)
      prim::pause(round++);
    hold_all(me);
    struct Resume {
      Crew& crew;
      Worker& me;
      ~Resume() {
        crew.resume_all(me);
        crew.serving_.store(0, std::memory_order_seq_cst);
        // While `serving_` was set, other workers left new cancellations to this worker, so it must
        // check for them again.
        if (crew.pending_.load(std::memory_order_seq_cst) != 0) crew.signal(me, Parking::nudged);
      }
    } resume{*this, me};
    f();
  }
  // Handles one cancelled process while all workers are held. If the process is suspended, calls f
  // to withdraw it; otherwise the worker that runs the process checks again when the process has
  // been suspended.
  template <class Withdraw>
  void withdraw(ProcessBase& p, Withdraw&& f) noexcept {
    if (const std::uint8_t by = p.runs_on.load(std::memory_order_acquire); by == 0)
      f(p);
    else
      signal(workers_[by - 1], Parking::nudged);
  }

  // --- from any thread ---------------------------------------------------------------------------

  // Called by a thread that is not a worker of this crew.
  // `dozing` is the worker that sleeps on the calling thread, and is then signalled; if it is null,
  // any idle worker is.
  void ready_from_elsewhere(core::Waker* p, const Worker* dozing = nullptr) noexcept {
    core::Waker* head = inbox_.load(std::memory_order_relaxed);
    do p->next = head;
    while (!inbox_.compare_exchange_strong(head, p, std::memory_order_seq_cst));
    if (dozing)
      call(dozing->index);
    else
      signal_one(Parking::woken);
  }
  // Tells the crew that a process was cancelled.
  void nudge() noexcept {
    pending_.store(1, std::memory_order_seq_cst);
    for (unsigned i = 0; i < n_; ++i) workers_[i].queue.lock().notify(OwnersLock::kLook);
    signal_one(Parking::nudged);
  }
  // Returns whether all workers sleep.
  bool all_sleep() const noexcept {
    for (unsigned i = 0; i < n_; ++i)
      if (!workers_[i].parking_.has_sleeper()) return false;
    return true;
  }
  // Makes the workers sleep in that poller, one at a time, as long as any worker is idle
  // (appoint()). Called once.
  void poll_by(Poller& p) noexcept {
    for (unsigned i = 0; i < n_; ++i) workers_[i].parking_.poll_by(p);
  }
  Poller* poller() const noexcept { return workers_[0].parking_.poller(); }
  // Makes that worker call its `done` soon.
  void call(unsigned worker) noexcept { signal(workers_[worker], Parking::woken); }

 private:
  // The number of steps between two checks of the inbox and the clock.
  static constexpr unsigned kLookEvery = 64;
  // The number of waiting processes for which it is worth waking another core.
  static constexpr std::uint32_t kMany = 4;
  // In ns. A worker whose steps take more than this on average has long steps.
  static constexpr std::int64_t kLong = 3'000;
  // The least time in ns between two rounds of the keeper.
  static constexpr std::int64_t kSoonest = 200'000;
  // The maximum time in ns between two rounds of the keeper.
  static constexpr std::int64_t kLatest = 6'400'000;
  // The number of steps after which a theft was worth it.
  static constexpr std::uint32_t kWorthwhile = 256;
  // A bit of keeper_: the keeper wakes to search for waiting processes, not only for timers.
  static constexpr std::uint32_t kWatching = 0x100;

  Host& host() noexcept { return static_cast<Host&>(*this); }
  static std::uint8_t mark(const Worker& w) noexcept {
    return static_cast<std::uint8_t>(w.index + 1);
  }
  static std::uint64_t bit(const Worker& w) noexcept { return std::uint64_t{1} << w.index; }
  std::uint64_t all_bits() const noexcept {
    return n_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n_) - 1;
  }

  [[gnu::always_inline]] void step(Worker& w, ProcessBase* p) noexcept {
    host().step(w, p);
    if (w.steps() % kLookEvery == 0) [[unlikely]]
      look_around(w);
  }

  // Signals a worker, which may be at work. A worker that is at work looks at its signals once it
  // finds the notice.
  void signal(Worker& w, std::uint32_t what) noexcept {
    w.parking_.signal(what);
    w.queue.lock().notify(OwnersLock::kLook);
  }
  // Does what a worker must do after a notice, but for the check whether it is done.
  [[gnu::noinline]] void attend(Worker& w) noexcept {
    w.queue.lock().take_notice(OwnersLock::kLook);
    if (w.parking_.signalled()) heed(w.parking_.take());
    host().heed();
    if (pending_.load(std::memory_order_seq_cst) != 0) serve(w);
  }
  // After a nudge, makes the worker check for cancelled processes.
  void heed(std::uint32_t s) noexcept {
    if (s & Parking::nudged) pending_.store(1, std::memory_order_seq_cst);
  }
  // Returns whether some worker is idle. If none is, takes the notice, and then checks once more: a
  // worker first sets its bit of idle_, and then leaves the notice.
  bool somebody_idle(Worker& w) noexcept {
    if (idle_.load(std::memory_order_relaxed) != 0) return true;
    w.queue.lock().take_notice(OwnersLock::kIdle);
    if (idle_.load(std::memory_order_seq_cst) == 0) return false;
    w.queue.lock().notify(OwnersLock::kIdle);
    return true;
  }

  // Serves cancellations, in one pass at a time; a request that comes meanwhile is served in
  // another pass.
  void serve(Worker& w) noexcept {
    while (pending_.load(std::memory_order_seq_cst) != 0) {
      if (serving_.exchange(1, std::memory_order_seq_cst) != 0) {
        // The worker that serves cancellations checks for more of them afterwards.
        prim::pause(0);
        return;
      }
      pending_.store(0, std::memory_order_seq_cst);
      hold_all(w);
      host().withdraw_cancelled(w);
      resume_all(w);
      serving_.store(0, std::memory_order_seq_cst);
    }
  }

  // Moves all of the inbox to this worker's queue. The inbox is a stack, so it is reversed to keep
  // the order of arrival.
  bool take_inbox(Worker& w) noexcept {
    if (!inbox_.load(std::memory_order_relaxed)) return false;
    core::Waker* p = inbox_.exchange(nullptr, std::memory_order_seq_cst);
    core::Waker* in_order = nullptr;
    while (p) {
      core::Waker* next = core::next_of(p);
      p->next = in_order;
      in_order = p;
      p = next;
    }
    return take_over(w, in_order);
  }
  bool take_over(Worker& w, core::Waker* list) noexcept {
    if (!list) return false;
    if (on_the_way_.load(std::memory_order_relaxed) != 0)
      on_the_way_.store(0, std::memory_order_release);
    while (list) {
      core::Waker* next = core::next_of(list);
      ready(w, list);
      list = next;
    }
    return true;
  }

  // Steals from the queue of another worker that has enough processes waiting. With `on_a_round`,
  // which the keeper uses, it also steals from a worker whose present step does not end. If a queue
  // has only one group, a part of that group is taken only with `split`, and only if the processes
  // there have waited for long.
  bool steal(Worker& w, bool on_a_round) noexcept {
    for (unsigned k = 1; k < n_; ++k) {
      const unsigned i = w.index + k < n_ ? w.index + k : w.index + k - n_;
      Worker& v = workers_[i];
      const std::uint32_t waiting = v.queue.size();
      if (waiting == 0) continue;
      bool worth = waiting >= kMany || v.long_steps_.load(std::memory_order_relaxed);
      bool split = worth;
      if (on_a_round && !worth) {
        // The worker's step has not ended.
        split = v.steps() == w.noted_[i];
        // A single process is not worth a theft, unless the step has not ended.
        worth = split || waiting >= 2;
      }
      if (!worth) continue;
      if (core::Waker* list = v.queue.steal(split)) {
        w.stole_ = true;
        w.stolen_at_ = w.steps();
        return take_over(w, list);
      }
    }
    return false;
  }
  void note_steps(Worker& w) noexcept {
    for (unsigned i = 0; i < n_; ++i) w.noted_[i] = workers_[i].steps();
  }

  [[gnu::noinline]] void look_around(Worker& w) noexcept {
    take_inbox(w);
    host().fire_due();
    host().heed();
    measure(w);
  }
  // Measures the mean length of the worker's steps, over at least kLookEvery of them, without its
  // sleep.
  void measure(Worker& w) noexcept {
    const std::int64_t now = host().clock();
    w.busy_ += now - w.since_;
    w.since_ = now;
    const std::uint32_t steps = w.steps() - w.since_steps_;
    if (steps < kLookEvery) return;
    w.long_steps_.store(w.busy_ / steps > kLong, std::memory_order_relaxed);
    w.since_steps_ += steps;
    w.busy_ = 0;
  }

  [[gnu::noinline]] void ready_slowly(Worker& w, core::Waker* p) noexcept {
    w.queue.push(p);
    if (w.queue.lock().notified(OwnersLock::kIdle) && somebody_idle(w)) surplus(w, w.queue.size());
  }
  // Called when more processes are ready at this worker than run, and some worker is idle.
  [[gnu::noinline]] void surplus(Worker& w, std::uint32_t waiting) noexcept {
    if (waiting < kMany && !w.long_steps_.load(std::memory_order_relaxed)) return appoint(w);
    if (on_the_way_.load(std::memory_order_relaxed) != 0 ||
        on_the_way_.exchange(1, std::memory_order_acq_rel) != 0)
      return;
    if (!signal_one(Parking::woken)) on_the_way_.store(0, std::memory_order_release);
  }
  // Called before a step, and when a step leaves others waiting. Some worker must take care of the
  // timers and the waiting processes, which a long step would otherwise hold up.
  [[gnu::noinline]] void appoint(Worker& w) noexcept {
    if (keeper_.load(std::memory_order_relaxed) & kWatching) return;
    if (w.queue.size() == 0 && !host().timers_armed()) return;
    if (const std::uint32_t k = keeper_.load(std::memory_order_relaxed))
      signal(workers_[(k & ~kWatching) - 1], Parking::nudged);
    else
      signal_one(Parking::nudged);
  }
  // Signals an idle worker, if there is any, preferably a worker that is not the keeper. Returns
  // whether there was an idle worker.
  bool signal_one(std::uint32_t what) noexcept {
    std::uint64_t idle = idle_.load(std::memory_order_seq_cst);
    if (idle == 0) return false;
    if (const std::uint32_t k = keeper_.load(std::memory_order_relaxed)) {
      const std::uint64_t others = idle & ~(std::uint64_t{1} << ((k & ~kWatching) - 1));
      if (others != 0) idle = others;
    }
    signal(workers_[static_cast<unsigned>(__builtin_ctzll(idle))], what);
    return true;
  }

  void idle(Worker& w) noexcept {
    measure(w);
    if (w.stole_) {  // Whether the theft was worth it is known now.
      w.stole_ = false;
      const bool was =
          w.steps() - w.stolen_at_ >= kWorthwhile || w.long_steps_.load(std::memory_order_relaxed);
      std::int64_t p = period_.load(std::memory_order_relaxed);
      p = was ? kSoonest : p * 2 < kLatest ? p * 2 : kLatest;
      period_.store(p, std::memory_order_relaxed);
    }
    if (on_the_way_.load(std::memory_order_relaxed) != 0)
      on_the_way_.store(0, std::memory_order_release);
    idle_.fetch_or(bit(w), std::memory_order_seq_cst);
    if (inbox_.load(std::memory_order_seq_cst) || pending_.load(std::memory_order_seq_cst) != 0) {
      idle_.fetch_and(~bit(w), std::memory_order_seq_cst);
      w.queue.lock().notify(OwnersLock::kLook);
      return;
    }
    begin_keeping(w);
    // The others must not see this worker idle before it keeps time: they would wake it at once.
    for (unsigned i = 0; i < n_; ++i)
      if (i != w.index) workers_[i].queue.lock().notify(OwnersLock::kIdle);
    host().asleep(w);
    const std::uint32_t s = w.parking_.sleep();
    host().awake(w);
    const bool kept = end_keeping(w);
    idle_.fetch_and(~bit(w), std::memory_order_seq_cst);
    w.since_ = host().clock();
    heed(s);
    w.queue.lock().notify(OwnersLock::kLook);
    if (s == 0 && kept) steal(w, true);
  }

  // Makes this worker the keeper if there is none, or if the keeper would sleep past a timer that
  // was armed since.
  void begin_keeping(Worker& w) noexcept {
    note_steps(w);
    time_lock_.lock();
    if (keeper_.load(std::memory_order_relaxed) == 0 || host().earliest() < keeper_until_) {
      keeper_.store((w.index + 1) | watching(), std::memory_order_relaxed);
      keeper_until_ = prim::forever;
    }
    time_lock_.unlock();
  }
  bool is_keeper(const Worker& w) const noexcept {
    return (keeper_.load(std::memory_order_relaxed) & ~kWatching) == w.index + 1;
  }
  bool end_keeping(Worker& w) noexcept {
    time_lock_.lock();
    const bool kept = is_keeper(w);
    if (kept) keeper_.store(0, std::memory_order_relaxed);
    time_lock_.unlock();
    return kept;
  }
  // Returns kWatching if some worker is busy, so that the keeper must look at it.
  std::uint32_t watching() const noexcept {
    return idle_.load(std::memory_order_seq_cst) != all_bits() ? kWatching : 0;
  }
  // Returns the time, in ns, at which this worker's sleep, which is beginning, must end.
  std::int64_t wake_time(Worker& w) noexcept {
    std::int64_t until = prim::forever;
    time_lock_.lock();
    // The keeper may have gone to work since begin_keeping(), and before this worker left its
    // notice that it is idle. A keeper that goes to work later finds that notice, and appoints this
    // worker.
    if (keeper_.load(std::memory_order_relaxed) == 0)
      keeper_.store(w.index + 1, std::memory_order_relaxed);
    if (is_keeper(w)) {
      until = host().earliest();
      const std::uint32_t watches = watching();
      keeper_.store((w.index + 1) | watches, std::memory_order_relaxed);
      if (watches != 0) {
        const std::int64_t look = host().clock() + period_.load(std::memory_order_relaxed);
        if (look < until) until = look;
      }
      keeper_until_ = until;
    }
    time_lock_.unlock();
    return until;
  }

  const unsigned n_;
  Activity* const run_;
  const std::unique_ptr<Worker[]> workers_;
  alignas(64) prim::atomic<std::uint64_t> idle_{0};  // a bit for each idle worker
  core::SpinLock time_lock_;
  // 0, or the keeper's index plus 1, with kWatching. It is written under time_lock_, and otherwise
  // read as a hint.
  prim::atomic<std::uint32_t> keeper_{0};
  // When the keeper wakes; `forever` if it has not gone to sleep yet (protected by time_lock_).
  std::int64_t keeper_until_ = prim::forever;
  prim::atomic<std::uint8_t> pending_{0};  // whether cancellations are to be served
  // Whether a worker holds all others, to serve cancellations or to examine all processes.
  prim::atomic<std::uint8_t> serving_{0};
  // whether a worker that was woken to search is still searching
  prim::atomic<std::uint8_t> on_the_way_{0};
  prim::atomic<std::int64_t> period_{kSoonest};  // ns between two rounds of the keeper
  alignas(64) prim::atomic<core::Waker*> inbox_{nullptr};
};

}  // namespace weft::inline WEFT_ABI::runtime
