// How an executor (a scheduler or a thread process) sleeps, and how the run knows that it does.
//
//   0 ──sleep()──► idle ──signal(woken │ nudged)──► awake again: the signaller has already counted
//                   │                               it active
//                   └───time is up────────────────► 0: it counts itself active
//      idle ──disturb()──► idle│disturbed ──sleep() asks what disturbed it──► idle │ awake again
//      idle ──patience is over: stood_still()──► idle   (once in a sleep, by the one whose sleep
//                                                       began a standstill; rule 10.6)
//
// A host with a loop of its own does not sleep here: it rests (0 ──end_turn()──► idle), goes back to
// its loop, and rises in its next turn; the signaller rings its bell where it would have woken a
// sleeper.
//
// A signal to the program may come after the sleeper looked for signals and before the kernel has
// put it to sleep, and would then wait for somebody else to wake it: so the handler changes the
// word the kernel compares, by disturb().
//
// Counting before waking is what makes `active == 0` mean that nothing can run (rules 8.6 and
// 10.1).
#pragma once
#include <atomic>
#include <utility>

#include "waiting.hpp"

namespace weft::inline WEFT_ABI::runtime {

// ns for which nothing has run before a standstill is told (rule 10.6); 0: never.
prim::atomic<std::int64_t>& patience() noexcept;

// Who is told when an executor stops and starts to have something to do.
struct Activity {
  virtual void activated() noexcept = 0;
  // Not 0: the number of the standstill that begins with it; who sleeps now is to call
  // stood_still(), once patience() is over.
  virtual std::uint32_t deactivated() noexcept = 0;
  // steady ns of the earliest timer, prim::forever: none
  virtual std::int64_t wake_time() noexcept = 0;
  // ns until then.
  virtual std::int64_t waits_before() const noexcept {
    return runtime::patience().load(std::memory_order_relaxed);
  }
  // While asleep, and counted so. True: look again after as long.
  virtual bool stood_still(std::uint32_t /*number*/) noexcept { return false; }
  // By who has slept, and is counted active again: may it go on? It may have to wait for the end of
  // a look at all that sleep.
  virtual void awoken() noexcept {}

 protected:
  ~Activity() = default;
};

class Parking;

// A language runtime with a global lock gives it up around a real sleep.
struct AroundSleep {
  void* (*begin)(Parking&) = nullptr;  // null: do not sleep, as if nudged
  void (*end)(void*) = nullptr;
  // Between the two, when the sleep was disturbed (by a signal to the program, or by nothing): true
  // ends it, as a nudge does.
  bool (*disturbed)(void*) = nullptr;
  // The lock alone, for the time of some yields before the sleep. Null: there are no yields.
  void* (*step_aside)() = nullptr;
  void (*step_back)(void*) = nullptr;
  // The lock, around what a run concludes when the last of it falls asleep: by a thread that may
  // not have it. Under no lock of ours.
  void* (*conclude)() = nullptr;
  void (*concluded)(void*) = nullptr;
};
inline AroundSleep around_sleep;

// Who serves what comes from other programs while a thread of ours would only wait
// (wire/attendant.hpp). Null: nobody.
struct Attending {
  // Before a sleep: true if the word is no longer 0. No need to sleep then.
  bool (*attend)(prim::atomic<std::uint32_t>& word) noexcept;
  // In place of prim::park(). `spins`: the thread has not attended first.
  void (*park)(prim::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t until,
               bool spins) noexcept;
};
inline prim::atomic<const Attending*> attending{nullptr};

// Who is just posting something to an executor, which must not go before they have done: what they
// post may be what ends it.
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
  static constexpr std::uint32_t disturbed = 8;  // beside idle only

  Activity* activity = nullptr;  // null outside any run
  // of a host with a loop of its own: called in place of waking a sleeper, from any thread
  void (*bell)(Parking&) noexcept = nullptr;
  void* host = nullptr;  // the bell's

  // Sleep until signalled or until the earliest timer. Returns the signals; 0: only time has
  // passed.
  std::uint32_t sleep() noexcept;

  // From a signal's handler, on any thread, while we may be asleep: let sleep() ask at once what
  // disturbed it. Needs no lock where prim::wakes_from_handlers.
  void disturb() noexcept;

  // False: there are signals, so there is no resting.
  bool end_turn() noexcept;
  // After end_turn(), whatever the reason: counted active again. The signals are left for take().
  void begin_turn() noexcept;

  // Signals that came without our sleeping.
  std::uint32_t take() noexcept {
    return word_.exchange(0, std::memory_order_acq_rel) & (woken | nudged);
  }
  bool signalled() const noexcept { return word_.load(std::memory_order_relaxed) != 0; }

  void signal(std::uint32_t bit) noexcept;
  // Has the calling thread woken a sleeper by signal(), since it last asked?
  static bool woke_another() noexcept { return std::exchange(woke_another_, false); }

 private:
  static constexpr bool sleeps(std::uint32_t s) noexcept { return (s & ~disturbed) == idle; }
  bool asleep() const noexcept { return sleeps(word_.load(std::memory_order_acquire)); }
  // Where a handler cannot wake us, look for ourselves.
  static std::int64_t nap(std::int64_t until) noexcept;
  static constexpr std::int64_t kNap = 50'000'000;  // ns
  // Unless somebody has signalled.
  bool leave_idle() noexcept;
  // Lets whoever is to signal us run first. Under a global lock it pays more: who is woken runs into
  // the lock that the waker holds, sleeps again, and is woken again.
  bool give_way() noexcept;

  // what this thread sleeps by, while it serves other programs instead
  static inline thread_local const Parking* serves_ = nullptr;
  static inline thread_local bool woke_another_ = false;

  prim::atomic<std::uint32_t> word_{0};
  GivingWay giving_way_;  // ours alone
};

}  // namespace weft::inline WEFT_ABI::runtime
