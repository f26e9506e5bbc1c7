// A run: all the processes under one outermost network. The run knows whether anything can still
// happen, keeps time, and declares deadlocks.
//
// active_  executors that have something to do (a thread that gives an executor something to do
//          counts the executor before it wakes it; see parking.hpp)
// outside_ things beyond the run that may wake it: io calls, foreign tasks (rule 10.3)
//
// active_ falls to 0 ──► quiescent(): outside_ > 0 → wait
//                                   │ a timer → steady: wait, virtual: jump
//                                   │ a process waits at a source (source.hpp) → wait
//                                   │ nothing is due, and yet no deadlock is proven → a standstill
//                                   │   begins (rule 10.6)
//                                   │ else deadlock: cancel every process
//
// Each standstill has a number. The executor whose sleep began a standstill checks once, after
// patience(), whether the standstill still lasts: Parking::sleep() calls stood_still(). If no sleep
// began the standstill (because a thread ended), one sleeping executor is woken, so that its next
// sleep begins it.
#pragma once
#include <array>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <atomic>
#include <memory>
#include <thread>
#include "parking.hpp"
#include "process.hpp"
#include "timer.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Group;
class Limit;

// How many tokens Outside(Outside::due) there are (outside.hpp).
inline prim::atomic<std::int32_t> due_tokens{0};
// Whether each of the tokens in due_tokens is a link to another program that can be asked whether
// it is at a standstill too (WIRE.md 10). If so, a run that waits for nothing else acts as at a
// standstill, but sooner.
inline prim::atomic<bool> links_are_asked{false};
// link_tokens is the number of tokens in due_tokens that are links. links_stand is called when a
// run waits only for links, and asks the programs at their other ends; it is null if no function
// asks them (wire/rounds.hpp).
inline std::atomic<std::int32_t> link_tokens{0};
inline std::atomic<void (*)() noexcept> links_stand{nullptr};

class Run;
// Serves looks from outside that await an executor, on the executor's own thread, in
// Run::serve_cancellations(). Null means that there has never been a look (look.hpp).
inline std::atomic<void (*)(Run&, Executor&) noexcept> serve_looks{nullptr};
// Returns whether a process of the run waits where a source brings values (source.hpp). The pointer
// is null if there has never been a source.
inline std::atomic<bool (*)(Run&) noexcept> source_is_expected{nullptr};

enum class Clock : std::uint8_t { steady, virtual_time };

// An object that a run owns, and destroys when it ends.
struct Part {
  virtual ~Part() = default;  // joins the part's threads
};

// An executor with threads of its own, which belongs to a run and ends with it.
class RunExecutor {
 public:
  // Called when nothing is ready any more; stops its threads and joins them.
  virtual ~RunExecutor() = default;
  virtual Executor& executor() noexcept = 0;
};

class Run final : public Activity {
 public:
  explicit Run(Clock clock = Clock::steady) noexcept;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  // --- activity ----------------------------------------------------------------------------------
  void activated() noexcept override { active_.fetch_add(1, std::memory_order_seq_cst); }
  std::uint32_t deactivated() noexcept override;
  // Called in place of deactivated() by a thread that does not sleep afterwards.
  void gone() noexcept;
  std::int64_t wake_time() noexcept override;

  // Declares that something outside might wake the run from now on, until leave_outside(). `due`
  // says that it will certainly act, or is expected to take time (an io call, a socket). Something
  // that is not due might never act, so there can be a standstill.
  void enter_outside(bool due = true) noexcept {
    if (!due) not_due_.fetch_add(1, std::memory_order_seq_cst);
    outside_.fetch_add(1, std::memory_order_seq_cst);
  }
  void leave_outside(bool due = true) noexcept;
  // Decides for a host whose event loop is idle whether the run is deadlocked or at a standstill.
  // The host has called enter_outside() for the things that the loop waits for, none of which is
  // due. Returns the number of the standstill that begins, or 0.
  std::uint32_t conclude() noexcept;
  // Called when nothing can run and nothing is known outside. Returns whether something outside
  // might wake the run nevertheless (threads that are not processes, rule 10.3).
  bool (*anything_outside)(Run&) noexcept = nullptr;

  // --- standstill (rule 10.6) --------------------------------------------------------------------
  // The findings at a standstill. They are reported afterwards, when all executors can run again.
  struct Standstill {
    virtual ~Standstill() = default;
    virtual void tell() noexcept = 0;
  };
  // Finds which processes wait where, while everything in the run sleeps; the caller deletes the
  // result. Returns null if no process waits, or if the standstill was reported before. If the
  // pointer to the function is null, no standstill is reported. It can be set during the run
  // (look_by()).
  using Look = Standstill* (*)(Run&) noexcept;
  std::atomic<Look> look_at_standstill{nullptr};
  // Sets the function, if the run has none yet.
  void look_by(Look f) noexcept {
    Look none = nullptr;
    look_at_standstill.compare_exchange_strong(none, f);
  }
  bool stood_still(std::uint32_t number) noexcept override;
  std::int64_t waits_before() const noexcept override;
  static constexpr std::int64_t kSoon = 50'000'000;  // in ns; the patience of a run that asks links
  // Returns whether no process of the run can continue, and nothing is due except what links might
  // bring.
  bool waits_for_links() noexcept;
  // Returns how often the run has reached a standstill.
  std::uint32_t rests() noexcept {
    const std::lock_guard g(mutex_);
    return standstill_;
  }
  // Declares a deadlock, with this report, because another part of the library knows that nothing
  // will ever wake the run. Returns false if something runs.
  bool declare(std::string report, std::vector<std::string> knot);
  // condemn() and carry_out() are the two parts of declare(). From condemn() on, the run will end
  // with Deadlock. carry_out(), which must follow, cancels its processes.
  bool condemn(std::string report, std::vector<std::string> knot);
  void carry_out() noexcept;
  // Returns whether no process of the run can continue, and nothing is due.
  bool stands_still() noexcept;
  bool is_standstill(std::uint32_t number) noexcept;
  // Calls f if all executors sleep; an executor that is woken meanwhile waits until f has returned.
  // Returns whether all executors slept.
  template <class F>
  bool while_all_sleep(F&& f) {
    const std::lock_guard g(door_);
    return behind_the_door(f);
  }
  // Calls f like while_all_sleep(), for a thread that owns a lock which other threads take within
  // f. Returns false also if another thread is in such a call now.
  template <class F>
  bool try_while_all_sleep(F&& f) {
    const std::unique_lock g(door_, std::try_to_lock);
    return g.owns_lock() && behind_the_door(f);
  }
  void awoken() noexcept override;
  // Calls f while the door is closed. An executor that sleeps can continue only after f; other
  // executors run.
  template <class F>
  void while_door_closed(F&& f) {
    const std::lock_guard g(door_);
    closed_.store(1, std::memory_order_seq_cst);
    f();
    closed_.store(0, std::memory_order_release);
  }
  // Returns whether this is the first standstill of the run at which these processes wait at these
  // places. `places` is a hash of the places.
  bool first_of(std::uint64_t places);

  // --- time --------------------------------------------------------------------------------------
  Clock clock() const noexcept { return clock_; }
  std::int64_t now() const noexcept {
    return clock_ == Clock::steady ? prim::now() : virtual_now_.load(std::memory_order_relaxed);
  }
  void arm(TimerNode& t);
  void disarm(TimerNode& t) noexcept;
  std::int64_t earliest() const noexcept { return earliest_.load(std::memory_order_seq_cst); }
  bool timers_due() const noexcept {
    const std::int64_t e = earliest_.load(std::memory_order_relaxed);
    return e != prim::forever && clock_ == Clock::steady && e <= prim::now();
  }
  void fire_due() noexcept;
  // any_timer() and fire_one() are for virtual time: the code that decides when time passes uses
  // them (chooser.hpp). any_timer() returns whether there is a deadline. fire_one() fires the
  // earliest deadline, and no other.
  bool any_timer() noexcept {
    const std::lock_guard g(mutex_);
    timers_.drop_dead();
    return !timers_.empty();
  }
  void fire_one() noexcept {
    core::Wakes wakes;
    {
      const std::lock_guard g(mutex_);
      const std::int64_t at = timers_.earliest();
      if (at > now()) virtual_now_.store(at, std::memory_order_relaxed);
      core::Choice* const c = timers_.pop()->choice;
      if (c->finish_as(core::TIMED_OUT)) wakes.add(c->waker);
      set_earliest();
    }
    wakes.run();
  }

  // The group of spawned processes (rule 7.4). While there is an outermost network, it owns the
  // group.
  Group* spawned = nullptr;

  // --- executors beside the one that the run began with ------------------------------------------
  Executor& executor_at(RunsAt at) const noexcept {
    return *executors_[index_of(at)].load(std::memory_order_acquire);
  }
  // Returns the executor of that key. `make` (→ unique_ptr<RunExecutor>) makes it when it is first
  // used. Returns RunsAt::group if there is no room for another executor.
  template <class Make>
  RunsAt hire(const std::shared_ptr<const void>& key, Make&& make) {
    const std::lock_guard g(hiring_);
    for (std::size_t i = 0; i < hired_; ++i)
      if (keys_[i] == key.get()) return at_of(i);
    if (hired_ == executors_.size()) return RunsAt::group;
    own_executors_.emplace_back(key, make());
    enlist(key.get(), own_executors_.back().second->executor());
    return at_of(hired_ - 1);
  }
  // Lists the executor e, with which the run began, under its key. The owner of the key must keep
  // it during the run.
  void list(const void* key, Executor& e);
  // Returns the place of e in the list; RunsAt::group if e is not in the list.
  RunsAt which_executor(const Executor& e) const noexcept;
  // Returns the run's part of type T, which is made when it is first used. Parts own further
  // threads that end with the run.
  template <class T>
  T& part() {
    const std::lock_guard g(hiring_);
    for (const auto& p : parts_)
      if (T* const t = dynamic_cast<T*>(p.get())) return *t;
    return static_cast<T&>(*parts_.emplace_back(std::make_unique<T>()));
  }
  void dismiss() noexcept;

  // --- groups, for reports and cancellation ------------------------------------------------------
  void add_group(Group&) noexcept;
  void remove_group(Group&) noexcept;
  void cancel_everybody() noexcept;
  // Called after a nudge: withdraws the operations of this executor's processes that were
  // cancelled.
  void serve_cancellations(Executor&) noexcept;
  // Makes `owner` meet the requests of its blocks whose groups failed (rule 7.5). Returns false if
  // there were no such requests.
  bool meet_blocks(ProcessBase& owner) noexcept;
  // Called when a block ends that has asked its owner to end: withdraws the request, unless another
  // block has asked too.
  void withdraw_block(ProcessBase& owner) noexcept;
  template <class F>
  void each_process(F&& f);
  // Calls f while no group is made, ends or changes its owner. So f can follow the groups above a
  // live process up to the outermost one.
  template <class F>
  void still(F&& f);
  // Calls f like still(), but returns false immediately if another thread works on the groups now.
  // try_still() is for a thread that owns a lock which other threads take within f.
  template <class F>
  bool try_still(F&& f);
  // These functions are for use within still() or try_still().
  template <class F>
  void each_process_still(F&& f);
  template <class F>
  void each_group_still(F&& f);

  // --- threads of thread processes ---------------------------------------------------------------
  // Starts a thread that is joined before the run ends. Finished threads are joined when the next
  // thread is made: a run that makes threads forever must not keep them all. Throws
  // std::system_error if the system cannot start a thread.
  void keep(void (*body)(void*), void* of);
  // Called when the process of the calling thread has ended; the thread itself ends soon
  // afterwards.
  void thread_done() noexcept;
  std::size_t threads_kept() noexcept;
  void join_threads() noexcept;

  // --- deadlock ----------------------------------------------------------------------------------
  bool deadlocked() const noexcept { return deadlocked_.load(std::memory_order_acquire); }
  const std::string& deadlock_report() const noexcept { return report_; }
  const std::vector<std::string>& knot() const noexcept { return knot_; }
  // Called once, by the code that throws the Deadlock.
  std::vector<std::string> take_knot() noexcept { return std::move(knot_); }
  bool detect_deadlock = true;
  // Called before any process is cancelled, with no lock held.
  void (*on_deadlock)(const std::string& report) noexcept = nullptr;

 private:
  friend struct Report;
  friend class Limit;
  friend class Group;

  std::uint32_t quiescent() noexcept;
  template <class F>
  bool behind_the_door(F& f) {
    // A signaller first counts a sleeper active and then checks whether the door is closed. So
    // either the signaller finds the door closed, or this function finds the sleeper counted.
    closed_.store(1, std::memory_order_seq_cst);
    const bool all = active_.load(std::memory_order_seq_cst) == 0;
    if (all) f();
    closed_.store(0, std::memory_order_release);
    return all;
  }
  // Returns the function that asks links, if the run waits only for links; otherwise null.
  auto asks_links() const noexcept -> void (*)() noexcept {
    return link_tokens.load(std::memory_order_relaxed) != 0
               ? links_stand.load(std::memory_order_acquire)
               : nullptr;
  }
  // Returns how many of the things in outside_ might never act, as far as is known here.
  std::int32_t unsure() const noexcept {
    return not_due_.load(std::memory_order_seq_cst) +
           (links_are_asked.load(std::memory_order_relaxed)
                ? due_tokens.load(std::memory_order_seq_cst)
            : links_stand.load(std::memory_order_relaxed)
                ? link_tokens.load(std::memory_order_seq_cst)
                : 0);
  }
  // Returns whether a process waits at a source (source.hpp). Also returns true if something runs:
  // the run will be at rest again later.
  bool expects() noexcept;
  // Wakes a sleeping thread, so that it sleeps anew. Called when a standstill has begun and no
  // thread is about to sleep.
  void find_watch() noexcept;

  void fire(std::int64_t now, core::Wakes& wakes) noexcept;

  void set_earliest() noexcept { earliest_.store(timers_.earliest(), std::memory_order_seq_cst); }
  bool anybody_blocked() noexcept;
  void describe() noexcept;
  void tell_who_is_held() const noexcept;  // writes to stderr

  prim::atomic<std::int32_t> active_{0};
  prim::atomic<std::int32_t> outside_{0};
  prim::atomic<std::int32_t> not_due_{0};  // how many of outside_ are not due
  // The door: while it is closed, threads that wake up wait (written under door_).
  prim::atomic<std::uint32_t> closed_{0};
  prim::Mutex door_;
  prim::atomic<bool> deadlocked_{false};
  // true once on_deadlock was called, or the report was written to stderr
  prim::atomic<bool> told_{false};
  prim::atomic<std::int64_t> earliest_{prim::forever};
  prim::atomic<std::int64_t> virtual_now_{0};
  const Clock clock_;
  // Protects timers_, limits_, report_, threads_, threads_done_, standstill_, told_of_.
  prim::Mutex mutex_;
  std::uint32_t standstill_ = 0;
  std::vector<std::uintptr_t> told_of_;  // has few entries, since a standstill takes patience()
  TimerHeap timers_;
  // The innermost limit of each process.
  std::unordered_map<const ProcessBase*, class Limit*> limits_;
  prim::atomic<std::uint32_t> limits_open_{0};
  std::string report_;
  std::vector<std::string> knot_;
  std::list<std::thread> threads_, threads_done_;

  // Protects groups_, the requests of blocks, and what the groups of the blocks know of these
  // requests (Group::block_).
  prim::Mutex groups_mutex_;
  Group* groups_ = nullptr;

  static std::size_t index_of(RunsAt at) noexcept {
    return static_cast<std::size_t>(at) - static_cast<std::size_t>(RunsAt::first);
  }
  static RunsAt at_of(std::size_t i) noexcept {
    return static_cast<RunsAt>(i + static_cast<std::size_t>(RunsAt::first));
  }
  void enlist(const void* key, Executor& e) noexcept {
    keys_[hired_] = key;
    executors_[hired_++].store(&e, std::memory_order_release);
  }
  prim::Mutex hiring_;  // protects hired_, keys_ and the two lists
  std::size_t hired_ = 0;
  // each executor with its key, which exists as long as the executor is in the list
  std::list<std::pair<std::shared_ptr<const void>, std::unique_ptr<RunExecutor>>> own_executors_;
  std::list<std::unique_ptr<Part>> parts_;
  std::array<const void*, static_cast<std::size_t>(RunsAt::last)> keys_{};
  std::array<std::atomic<Executor*>, static_cast<std::size_t>(RunsAt::last)> executors_{};
};

}  // namespace weft::inline WEFT_ABI::runtime
