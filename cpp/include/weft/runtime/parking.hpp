// How an executor (a scheduler or a thread process) sleeps, and how the run knows that it sleeps.
//
//   0 ──sleep()──► idle ──signal(woken │ nudged)──► awake again: the signaller has already counted
//                   │                               it active
//                   └───time is up────────────────► 0: the sleeper counts itself active
//      idle ──disturb()──► idle│disturbed ──sleep() asks what disturbed it──► idle │ awake again
//      idle ──patience elapsed: stood_still()──► idle   (once in a sleep, by the thread whose sleep
//                                                       began a standstill; rule 10.6)
//
// A host with an event loop of its own does not sleep here. It rests (0 ──end_turn()──► idle),
// returns to its loop, and counts itself active again in its next turn. The signaller calls the
// host's bell instead of waking a sleeper.
//
// A signal to the program may arrive after the sleeper has checked for signals and before the
// kernel has put it to sleep. That signal would then wait until some other event wakes the sleeper.
// So the handler changes the word that the kernel compares, by disturb().
//
// Because executors are counted as active before they are woken, `active == 0` means that nothing
// can run (rules 8.6 and 10.1).
#pragma once
#include <atomic>
#include <utility>

#include "waiting.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Returns the time in ns during which nothing must have run before a standstill is reported (rule
// 10.6); 0 means never.
prim::atomic<std::int64_t>& patience() noexcept;

// Is notified when an executor begins or ceases to have something to do. A run implements this
// interface.
struct Activity {
  virtual void activated() noexcept = 0;
  // If the result is not 0, it is the number of the standstill that begins: the thread that sleeps
  // now must call stood_still() once patience() has elapsed.
  virtual std::uint32_t deactivated() noexcept = 0;
  // Returns the steady time in ns of the earliest timer; prim::forever if there is none.
  virtual std::int64_t wake_time() noexcept = 0;
  // Returns how many ns a standstill must last before stood_still() is called.
  virtual std::int64_t waits_before() const noexcept {
    return runtime::patience().load(std::memory_order_relaxed);
  }
  // Called by a sleeper that is counted as asleep. If stood_still() returns true, it is called
  // again after the same time.
  virtual bool stood_still(std::uint32_t /*number*/) noexcept { return false; }
  // Called by a thread that has slept and is counted active again. If another thread is examining
  // all sleepers, awoken() can wait until that thread has finished.
  virtual void awoken() noexcept {}

 protected:
  ~Activity() = default;
};

class Parking;

// Waits for descriptors (io/engine.hpp). An executor of which a process has waited for a descriptor
// sleeps in a poller, instead of sleeping by itself. A poller is never destroyed, because a thread
// that wakes the poller does not keep the executor alive.
class Poller {
 public:
  // Called instead of prim::park(): sleeps until the word has changed, an event has arrived, or the
  // time `until` has been reached. It also wakes the processes whose events have arrived.
  virtual void sleep(const Parking& who, prim::atomic<std::uint32_t>& word, std::uint32_t expected,
                     std::int64_t until) noexcept = 0;
  // Called now and then by an executor that is busy: wakes the processes whose events have arrived.
  // Returns whether any event had arrived.
  virtual bool glance() noexcept = 0;
  // Called when an executor begins to use the poller, and when the executor ceases to use it.
  virtual void join() noexcept = 0;
  virtual void leave() noexcept = 0;

  // Ends the sleep of `who` if it sleeps in a poller; otherwise returns false. `which` is the
  // poller of `who`. `which` is null if `who` had no poller when the caller checked; `who` may have
  // received one since.
  static bool rouse(const Parking& who, Poller* which) noexcept {
    if (which) return which->rouse_if(who);
    return all_.load(std::memory_order_seq_cst) && rouse_any(who);
  }

 protected:
  Poller() noexcept = default;
  ~Poller() = default;
  // Makes the poller known to rouse(), once.
  void enlist() noexcept;
  virtual void ring() noexcept = 0;
  // The executor that sleeps in the poller. A sleeper stores itself here, and then checks its word
  // once more; a signaller changes the word, and then checks this pointer.
  std::atomic<const Parking*> sleeper_{nullptr};

 private:
  bool rouse_if(const Parking& who) noexcept {
    if (sleeper_.load(std::memory_order_seq_cst) != &who) return false;
    ring();
    return true;
  }
  static bool rouse_any(const Parking& who) noexcept;
  static inline std::atomic<Poller*> all_{nullptr};
  Poller* next_ = nullptr;
};

// The functions of a language runtime with a global lock that are called around a real sleep.
struct AroundSleep {
  // Releases the lock. If begin() returns null, the thread does not sleep, as if it had been
  // nudged.
  void* (*begin)(Parking&) = nullptr;
  void (*end)(void*) = nullptr;
  // Called between begin and end when the sleep was disturbed (by a signal to the program, or
  // spuriously). Returns true to end the sleep, as a nudge does.
  bool (*disturbed)(void*) = nullptr;
  // Releases only the lock, for some yields before the sleep. If step_aside is null, the thread
  // does not yield.
  void* (*step_aside)() = nullptr;
  void (*step_back)(void*) = nullptr;
  // Takes the lock while a run decides whether it is deadlocked because its last executor falls
  // asleep, on a thread that might not have the lock. Called with no other lock held.
  void* (*conclude)() = nullptr;
  void (*concluded)(void*) = nullptr;
};
inline AroundSleep around_sleep;

// Serves messages of other programs while a thread of this program would only wait
// (wire/attendant.hpp). `attending` is null if no function serves them.
struct Attending {
  // Called before a sleep. Returns true if the word is no longer 0, so that the thread need not
  // sleep.
  bool (*attend)(prim::atomic<std::uint32_t>& word) noexcept;
  // Called instead of prim::park(). `spins` means that the thread has not called attend() before.
  void (*park)(prim::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t until,
               bool spins) noexcept;
};
inline prim::atomic<const Attending*> attending{nullptr};

// Counts the threads that are posting something to an executor at the moment. The executor must not
// be destroyed before those threads have finished: what they post may be what ends the executor.
class Posting {
 public:
  Posting() = default;
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;
  ~Posting() { wait_until_none(); }
  void wait_until_none() noexcept {
    for (unsigned round = 0; n_.load(std::memory_order_seq_cst) != 0;) prim::pause(round++);
  }
  class Now {
   public:
    explicit Now(Posting& p) noexcept : p_(p) { p_.n_.fetch_add(1, std::memory_order_seq_cst); }
    Now(const Now&) = delete;
    Now& operator=(const Now&) = delete;
    ~Now() { p_.n_.fetch_sub(1, std::memory_order_release); }

   private:
    Posting& p_;
  };

 private:
  prim::atomic<std::uint32_t> n_{0};
};

class Parking {
 public:
  static constexpr std::uint32_t woken = 1;
  static constexpr std::uint32_t nudged = 2;
  static constexpr std::uint32_t idle = 4;
  static constexpr std::uint32_t disturbed = 8;  // set only together with idle

  Activity* activity = nullptr;  // null outside any run
  // Called for a host with an event loop, from any thread, instead of waking a sleeper.
  void (*bell)(Parking&) noexcept = nullptr;
  void* host = nullptr;  // for use by the bell

  Parking() = default;
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;
  ~Parking() {
    if (Poller* const p = poller()) p->leave();
  }

  // Returns the poller in which this executor sleeps; null if none of its processes has waited for
  // a descriptor.
  Poller* poller() const noexcept { return poller_.load(std::memory_order_acquire); }
  // Sets the poller, once.
  void poll_by(Poller& p) noexcept {
    p.join();
    poller_.store(&p, std::memory_order_release);
  }

  // Sleeps until a signal arrives or the earliest timer is due. Returns the signals; 0 if only time
  // has passed.
  std::uint32_t sleep() noexcept;

  // Called by a signal handler, on any thread, while the executor may be asleep. Makes sleep() ask
  // immediately what disturbed it. disturb() takes no lock if prim::wakes_from_handlers is true.
  void disturb() noexcept;

  // Begins to rest. Returns false if signals have arrived, so that the host must not rest.
  bool end_turn() noexcept;
  // Counts the host active again. Called after end_turn(), for whatever reason the rest ends.
  // take() still returns the signals.
  void begin_turn() noexcept;

  // Returns and clears the signals that arrived while the executor was not asleep.
  std::uint32_t take() noexcept {
    return word_.exchange(0, std::memory_order_acq_rel) & (woken | nudged);
  }
  bool signalled() const noexcept { return word_.load(std::memory_order_relaxed) != 0; }
  // Returns whether a thread sleeps here; any thread may call this. The load is sequentially
  // consistent, as is the end of a sleep: a thread that first closes the run's door, and then sees
  // a sleeper, holds the sleeper there (run.hpp).
  bool has_sleeper() const noexcept {
    return !bell && sleeps(word_.load(std::memory_order_seq_cst));
  }

  void signal(std::uint32_t bit) noexcept;
  // Returns whether the calling thread has woken a sleeper by signal() since its last call.
  static bool woke_another() noexcept { return std::exchange(woke_another_, false); }

 private:
  static constexpr bool sleeps(std::uint32_t s) noexcept { return (s & ~disturbed) == idle; }
  bool asleep() const noexcept { return sleeps(word_.load(std::memory_order_acquire)); }
  // Where a signal handler cannot wake the sleeper, the sleeper checks by itself at intervals of
  // kNap.
  static std::int64_t nap(std::int64_t until) noexcept;
  static constexpr std::int64_t kNap = 50'000'000;  // in ns
  // Leaves the idle state. Returns false if another thread has signalled.
  bool leave_idle() noexcept;
  // Lets the thread that is going to signal this thread run first. That pays most under a global
  // lock: otherwise the woken thread finds that its waker holds the lock, sleeps again, and is
  // woken again.
  bool give_way() noexcept;

  // The Parking in which this thread would sleep, while the thread serves other programs instead.
  static inline thread_local const Parking* serves_ = nullptr;
  static inline thread_local bool woke_another_ = false;

  prim::atomic<std::uint32_t> word_{0};
  std::atomic<Poller*> poller_{nullptr};
  GivingWay giving_way_;  // used by the sleeper alone
};

}  // namespace weft::inline WEFT_ABI::runtime
