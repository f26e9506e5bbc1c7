// One run of a checked program: at each point a Strategy decides, within bounds, which process
// runs.
//
//   begin() ──go(), take()…──► end()
//                └──► stopped: the program is to be ended; nothing more is recorded or decided
//
// The caller (the checked points of a language) knows which processes are ready, and lets one run.
// This code does not know the program itself.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "record.hpp"

namespace weft::checking {

enum class Stopped : std::uint8_t {
  no,
  different,  // a step of the schedule is not possible: the program differs from run to run
  blocked,    // another schedule represents this one
  limit,      // there were too many steps
  deadlock,
};

struct Settings {
  bool any_time = false;  // whether a time can be reached while a process can run
  bool park = false;      // whether another process can run first only where a process parks
  // A run has at most `limit` steps, and `limit_each` for each of its processes.
  unsigned limit = 20000;
  unsigned limit_each = 100;
  // the maximum number of deadlines in a run that are reached while a process could run
  unsigned early = 2;
};

enum class Kind : std::uint8_t { go, time, guard, fault };

struct Decision {
  int process;    // the process that had run last
  unsigned step;  // the number of that process's last step
  unsigned nth;   // of a guard or fault: how many decisions of its kind the step made before
  Kind kind;
  // the process that runs next (kNone if a deadline is reached), or the number of the option that
  // was taken
  int choice;
  unsigned options, index;  // index: the option taken; 0 is the usual one
  bool goes_on;             // whether the usual choice would continue with that process
};

class Run;

// A Strategy makes the decisions that a run leaves open.
class Strategy {
 public:
  Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  virtual ~Strategy() = default;

  virtual bool keeps_events() const noexcept { return false; }
  virtual bool cancels() const noexcept { return false; }  // Record::cancels
  virtual bool crowds() const noexcept { return false; }   // Record::crowds
  virtual void begin(Run&) {}
  // Returns the index of the chosen one of the run.options(). Called only if there are several
  // options, or if events are kept.
  virtual unsigned go(Run& run) = 0;
  // Returns which of these options is chosen within a step.
  virtual unsigned take(Run& run, unsigned options, Kind kind) = 0;
  virtual void end(Run&) {}
  // Prepares the next schedule. Returns false if there is none.
  virtual bool advance() { return true; }
  // Returns true if the last run does not count and the search starts again.
  virtual bool restarts(const Run&) { return false; }
};

class Run {
 public:
  Settings settings;
  Record record;

  void begin(Strategy& strategy);
  void end();
  bool stopped() const noexcept { return stopped_ != Stopped::no; }
  Stopped why() const noexcept { return stopped_; }
  void stop(Stopped why) noexcept;
  // called when the run differs from the schedule that it was to repeat; the run stops
  void differs(std::string how);

  // Returns the index of the ready process that runs next; the first ready process is the usual
  // choice. Returns ready.size() if a deadline is reached first. `goes_on` says that the first
  // ready process is the one that ran last, and that it could continue; `timer` says whether there
  // is a timer.
  unsigned go(std::span<const int> ready, bool goes_on, bool timer);
  // Called when a step of the process begins.
  void goes(int process);
  // Called when the first of the awaited deadlines is reached. `early` says that it is reached
  // although a process could run.
  void time_comes(bool early);
  // Called when the process lets these ready processes run first.
  void yields(int process, std::span<const int> ready);
  // Called when an operation of the process that runs has begun. `polled`: the operation was a
  // yield, or a select that took its skip, so it has changed nothing.
  void begun(bool polled) noexcept {
    if (polled) return poll();
    idle_ = 0;
  }
  // With the grain `park`: called when an operation of the process that runs has ended at once.
  // Returns whether the process must let the others run first (rule 7.7).
  bool has_gone_on_for_long() noexcept;
  // Returns whether a time may be reached although a process can run.
  bool early_times() const noexcept { return settings.any_time || idle_ >= kPolls; }
  // Makes a choice within a step.
  unsigned take(unsigned options, Kind kind);

  // --- for strategies ---
  unsigned options() const noexcept { return static_cast<unsigned>(ready_.size()) + clock_; }
  Uid option(unsigned i) const noexcept {
    return i < ready_.size() ? record.at(ready_[i]).uid : kClock;
  }
  // Returns whether the options are those of `uids`, in the same order.
  bool same_options(std::span<const Uid> uids) const noexcept {
    if (uids.size() != options()) return false;
    const Uid* uid = uids.data();
    for (const int n : ready_)
      if (record.at(n).uid != *uid++) return false;
    return !clock_ || *uid == kClock;
  }
  int option_process(unsigned i) const noexcept { return i < ready_.size() ? ready_[i] : kNone; }
  bool goes_on() const noexcept { return goes_on_; }
  unsigned nth() const noexcept { return nth_; }  // the Decision::nth of the next decision
  const Process& last() const noexcept { return record.at(record.running); }

  unsigned steps = 0, early = 0, switches = 0;
  bool early_cut = false;  // whether Settings::early has kept a deadline from being reached
  bool polls_cut = false;  // whether a deadline was reached because the ready processes only poll
  bool too_large = false;  // whether the strategy has left the run unanalysed because of its size
  double chances = 1;      // the product of the numbers of options
  std::span<const Decision> decisions() const noexcept { return {decisions_.data(), decided_}; }
  std::string difference;

 private:
  // After this many polls in a row, a process lets the others run first.
  static constexpr unsigned kPolls = 20;
  // After this many steps a process lets the others run first. Each of 1,000 operations has two
  // steps (rule 7.7).
  static constexpr unsigned kStepsAtOnce = 2000;

  unsigned go_rarely(std::span<const int> ready, bool goes_on, bool timer);
  void let_others_run(std::span<const int> ready);
  void poll() noexcept;
  void leave_out_who_yields(std::span<const int> ready);
  void went_first(int process);
  void decided(Kind kind, int choice, unsigned options, unsigned index, bool goes_on);
  void step_begins() noexcept { nth_ = guards_ = faults_ = 0; }
  void switched() noexcept {
    ++switches;
    goes_until(steps + kStepsAtOnce);
  }
  void goes_until(unsigned step) noexcept {
    until_ = step;
    rarely_from_ = yielding_ != 0 || stopped() ? 0 : std::min(step, settings.limit);
  }

  // The first `decided_` are those of this run; the others are kept so that their memory is reused.
  std::vector<Decision> decisions_;
  std::size_t decided_ = 0;
  Strategy* strategy_ = nullptr;
  Stopped stopped_ = Stopped::no;
  std::span<const int> ready_;  // the processes that can run next; valid only in a decision
  // the array that ready_ refers to if processes that yield are left out
  std::vector<int> some_;
  // the positions in ready_, if some processes are left out
  std::vector<unsigned> positions_;
  // by process: the processes that are to run before that process
  std::vector<std::vector<int>> yields_to_;
  unsigned yielding_ = 0;
  unsigned until_ = 0;  // the step from which the process that runs lets the others run first
  // The step from which go() calls go_rarely(): the lower one of `until_` and the limit of steps; 0
  // while a process yields, and once the run has stopped.
  unsigned rarely_from_ = 0;
  // polls_: how often a process has polled since another process ran; idle_: how often all
  // processes have polled since a process did anything else; polls_at_: the number of switches at
  // the last poll.
  unsigned polls_ = 0, idle_ = 0, polls_at_ = 0;
  unsigned at_once_ = 0, at_once_at_ = 0;  // for the grain `park`: operations, and switches
  bool all_poll_ = false;  // whether a deadline is reached because the ready processes only poll
  unsigned nth_ = 0, guards_ = 0, faults_ = 0;  // guards_, faults_: decisions of this step, by kind
  bool clock_ = false, goes_on_ = false;
};

// The functions below run at each step, so they are inlined into the code that decides.

[[gnu::always_inline]] inline void Run::decided(Kind kind, int choice, unsigned options,
                                                unsigned index, bool goes_on) {
  if (decided_ == decisions_.size()) [[unlikely]]
    decisions_.resize(2 * decided_ + 64);
  decisions_[decided_++] = {record.running, last().steps, nth_,  kind,
                            choice,         options,      index, goes_on};
  chances *= options;
}

[[gnu::always_inline]] inline unsigned Run::go(std::span<const int> ready, bool goes_on,
                                               bool timer) {
  if (steps >= rarely_from_ || ready.empty() || timer) [[unlikely]]
    return go_rarely(ready, goes_on, timer);
  ++steps;
  ready_ = ready;
  goes_on_ = goes_on;
  clock_ = false;
  nth_ = 0;
  const auto several = static_cast<unsigned>(ready.size());
  if (several == 1 && !record.kept) return 0;
  const unsigned i = strategy_->go(*this);
  if (stopped()) return 0;
  if (several > 1) decided(Kind::go, ready[i], several, i, goes_on);
  return i;
}
inline void Run::goes(int n) {
  if (stopped()) return;
  record.at(n).ready = false;
  if (n != record.running) switched();
  step_begins();
  record.step(n);
  if (yielding_ != 0) went_first(n);
}

}  // namespace weft::checking
