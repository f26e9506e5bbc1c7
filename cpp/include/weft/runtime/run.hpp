// A run: all the processes under one outermost network. It knows whether anything can still happen,
// keeps time, and declares deadlock.
//
// active_  executors that have something to do (counted up by whoever gives it to them, before they are woken; see parking.hpp)
// outside_ things beyond the run that may wake it: io calls, foreign tasks (rule 10.3)
//
// active_ falls to 0 ──► quiescent(): outside_ > 0 → wait │ a timer → steady: wait, virtual: jump │ else deadlock: cancel everybody
//                                     a process waits at a source (source.hpp) → wait
//                                     nothing is due, and yet no deadlock is proven → a standstill
//                                     begins (rule 10.6)
//
// A standstill has a number. The executor whose sleep began it looks once, when patience() is over,
// whether it still lasts: Parking::sleep() calls stood_still(). If it was no sleep that began it (a
// thread ended), somebody who sleeps is woken, to begin it by his next sleep.
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
// Is each of them a link to another program, which can be asked whether all stand still there too
// (WIRE.md 10)? Then a run that waits for nothing else looks, as at a standstill, but soon.
inline prim::atomic<bool> links_are_asked{false};
// How many of them are links, and who is told when a run waits for these alone, so that he asks
// them; null: nobody does (wire/rounds.hpp).
inline std::atomic<std::int32_t> link_tokens{0};
inline std::atomic<void (*)() noexcept> links_stand{nullptr};

class Run;
// Does a process of the run wait where a source brings values (source.hpp)? Null: there never was a
// source.
inline std::atomic<bool (*)(Run&) noexcept> source_is_expected{nullptr};

enum class Clock : std::uint8_t { steady, virtual_time };

// What a run owns and ends.
struct Part {
  virtual ~Part() = default;  // joins its threads
};

// An executor with threads of its own, which a run uses and ends.
class RunExecutor {
 public:
  virtual ~RunExecutor() = default;  // nothing is ready any more: stops its threads and joins them
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
  // The same by who does not sleep then.
  void gone() noexcept;
  std::int64_t wake_time() noexcept override;

  // Something beyond the run may wake it, from now on until leave_outside(). `due`: it will, or is
  // meant to take its time (an io call, a socket); of others nobody knows, and there may be a
  // standstill.
  void enter_outside(bool due = true) noexcept {
    if (!due) strangers_.fetch_add(1, std::memory_order_seq_cst);
    outside_.fetch_add(1, std::memory_order_seq_cst);
  }
  void leave_outside(bool due = true) noexcept;
  // For a host whose loop is idle, and that has entered outside for what the loop holds: nothing
  // there is due. Concludes what follows; the number of the standstill that begins, or 0.
  std::uint32_t conclude() noexcept;
  // Asked when nothing can run and nothing is known outside: is there something after all (threads
  // that are no processes, rule 10.3)?
  bool (*anything_outside)(Run&) noexcept = nullptr;

  // --- standstill (rule 10.6) --------------------------------------------------------------------
  // What was found when it was looked at; told afterwards, when all may go on.
  struct Standstill {
    virtual ~Standstill() = default;
    virtual void tell() noexcept = 0;
  };
  // Who waits where, while all of the run sleep; the caller deletes it. Null: nobody, or it was
  // told before. A null function: standstills are not told. It may come while the run goes on
  // (look_by()).
  using Look = Standstill* (*)(Run&) noexcept;
  std::atomic<Look> look_at_standstill{nullptr};
  // By this one, if there is none yet.
  void look_by(Look f) noexcept {
    Look none = nullptr;
    look_at_standstill.compare_exchange_strong(none, f);
  }
  bool stood_still(std::uint32_t number) noexcept override;
  std::int64_t waits_before() const noexcept override;
  static constexpr std::int64_t kSoon = 50'000'000;  // ns; where links are asked
  // Nothing of it can run, and nothing is due but what links may bring.
  bool waits_for_links() noexcept;
  // How often it has come to rest.
  std::uint32_t rests() noexcept {
    const std::lock_guard g(mutex_);
    return standstill_;
  }
  // It is known from elsewhere that nothing will ever wake it: a deadlock, told so. False:
  // something runs.
  bool declare(std::string report, std::vector<std::string> knot);
  // The same in two parts: from the first on it ends with Deadlock; the second, which is to come,
  // cancels its processes.
  bool condemn(std::string report, std::vector<std::string> knot);
  void carry_out() noexcept;
  bool stands_still() noexcept;  // nothing of it can run, and nothing is due
  bool is_standstill(std::uint32_t number) noexcept;
  // Calls f if all executors sleep; who is woken meanwhile goes on after it.
  template <class F>
  bool while_all_sleep(F&& f) {
    const std::lock_guard g(door_);
    return behind_the_door(f);
  }
  // The same for who has a lock that others take there: false also while somebody else looks.
  template <class F>
  bool try_while_all_sleep(F&& f) {
    const std::unique_lock g(door_, std::try_to_lock);
    return g.owns_lock() && behind_the_door(f);
  }
  void awoken() noexcept override;
  // Is it the first standstill of this run with those who wait, where they wait?
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
  // With virtual time, for who decides when it passes (chooser.hpp): is there a deadline; let the
  // earliest come, that one alone.
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

  // Where spawned processes go (rule 7.4): the outermost network's, while there is one.
  Group* spawned = nullptr;

  // --- executors beside the one that the run began with ------------------------------------------
  Executor& executor_at(RunsAt at) const noexcept {
    return *executors_[index_of(at)].load(std::memory_order_acquire);
  }
  // The executor of that key, made by `make` (→ unique_ptr<RunExecutor>) at its first use.
  // At::group: there is no room for another.
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
  // The run began with this one, which has that key; whoever has the key keeps it during the run.
  void list(const void* key, Executor& e);
  // At::group: it is none of the list.
  RunsAt which_executor(const Executor& e) const noexcept;
  // Whatever else has threads that end with the run.
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
  // On a nudge: withdraw what the processes of this executor wait for, if they were cancelled.
  void serve_cancellations(Executor&) noexcept;
  // The owner of blocks meets the requests of groups that failed while it was in them (rule 7.5).
  // False: there was none.
  bool meet_blocks(ProcessBase& owner) noexcept;
  // one that asked has ended: unless another asks too
  void withdraw_block(ProcessBase& owner) noexcept;
  template <class F>
  void each_process(F&& f);
  // No group comes, goes or changes its owner meanwhile: those above a live process can be walked.
  template <class F>
  void still(F&& f);
  // The same, unless somebody is at the groups now: false. For who has a lock that others take
  // there.
  template <class F>
  bool try_still(F&& f);
  // Within one of these.
  template <class F>
  void each_process_still(F&& f);

  // --- threads of thread processes ---------------------------------------------------------------
  // Joined before the run ends; those that are done, when the next is made: a run that makes them
  // for ever must not keep them all.
  void keep(void (*body)(void*), void* of);
  // The calling thread's process has ended; it does little more.
  void thread_done() noexcept;
  std::size_t threads_kept() noexcept;
  void join_threads() noexcept;

  // --- deadlock ----------------------------------------------------------------------------------
  bool deadlocked() const noexcept { return deadlocked_.load(std::memory_order_acquire); }
  const std::string& deadlock_report() const noexcept { return report_; }
  const std::vector<std::string>& knot() const noexcept { return knot_; }
  // Once, by who throws it.
  std::vector<std::string> take_knot() noexcept { return std::move(knot_); }
  bool detect_deadlock = true;
  // told before anybody is cancelled, under no lock
  void (*on_deadlock)(const std::string& report) noexcept = nullptr;

 private:
  friend struct Report;
  friend class Limit;
  friend class Group;

  std::uint32_t quiescent() noexcept;
  template <class F>
  bool behind_the_door(F& f) {
    // After a signaller has counted a sleeper, that looks whether the door is closed: so either it
    // finds it so or we find it counted.
    closed_.store(1, std::memory_order_seq_cst);
    const bool all = active_.load(std::memory_order_seq_cst) == 0;
    if (all) f();
    closed_.store(0, std::memory_order_release);
    return all;
  }
  // Who may be asked, if it waits for links alone; else null.
  auto asks_links() const noexcept -> void (*)() noexcept {
    return link_tokens.load(std::memory_order_relaxed) != 0
               ? links_stand.load(std::memory_order_acquire)
               : nullptr;
  }
  // Of outside_: what may or may not come, and nobody here can tell.
  std::int32_t unsure() const noexcept {
    return strangers_.load(std::memory_order_seq_cst) +
           (links_are_asked.load(std::memory_order_relaxed)
                ? due_tokens.load(std::memory_order_seq_cst)
            : links_stand.load(std::memory_order_relaxed)
                ? link_tokens.load(std::memory_order_seq_cst)
                : 0);
  }
  // Does a process wait at a source (source.hpp)? True also if something runs: it will come here
  // again.
  bool expects() noexcept;
  // A standstill began, and nobody is about to sleep: who sleeps does so anew.
  void find_watch() noexcept;

  void fire(std::int64_t now, core::Wakes& wakes) noexcept;

  void set_earliest() noexcept { earliest_.store(timers_.earliest(), std::memory_order_seq_cst); }
  bool anybody_blocked() noexcept;
  void describe() noexcept;
  void tell_who_is_held() const noexcept;  // to stderr

  prim::atomic<std::int32_t> active_{0};
  prim::atomic<std::int32_t> outside_{0};
  prim::atomic<std::int32_t> strangers_{0};  // of them, those that are not due
  prim::atomic<std::uint32_t> closed_{0};    // the door: who wakes waits (written under door_)
  prim::Mutex door_;
  prim::atomic<bool> deadlocked_{false};
  prim::atomic<bool> told_{false};  // on_deadlock was called, or stderr was told
  prim::atomic<std::int64_t> earliest_{prim::forever};
  prim::atomic<std::int64_t> virtual_now_{0};
  const Clock clock_;
  prim::Mutex mutex_;  // timers_, limits_, report_, threads_, threads_done_, standstill_, told_of_
  std::uint32_t standstill_ = 0;
  std::vector<std::uintptr_t> told_of_;  // few: a standstill takes patience()
  TimerHeap timers_;
  std::unordered_map<const ProcessBase*, class Limit*> limits_;  // the innermost of each
  prim::atomic<std::uint32_t> limits_open_{0};
  std::string report_;
  std::vector<std::string> knot_;
  std::list<std::thread> threads_, threads_done_;

  // groups_; and the requests of blocks, with what their groups know of them (Group::block_)
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
  prim::Mutex hiring_;  // hired_, keys_ and the two lists
  std::size_t hired_ = 0;
  // each with its key, which lives as long as it is known
  std::list<std::pair<std::shared_ptr<const void>, std::unique_ptr<RunExecutor>>> own_executors_;
  std::list<std::unique_ptr<Part>> parts_;
  std::array<const void*, static_cast<std::size_t>(RunsAt::last)> keys_{};
  std::array<std::atomic<Executor*>, static_cast<std::size_t>(RunsAt::last)> executors_{};
};

}  // namespace weft::inline WEFT_ABI::runtime
