// One run of a checked program: who goes on at each point, as a Strategy says, within bounds.
//
//   begin() ──go(), take()…──► end()
//                └──► stopped: the program is to be ended; nothing is recorded or decided any more
//
// The caller, which is the points of a language, knows which processes are ready, and lets one run.
// The program itself is not known here.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "record.hpp"

namespace weft::checking {

enum class Stopped : std::uint8_t {
  no,
  different,  // what a schedule was to repeat is not there: the program is not the same twice
  blocked,    // another schedule stands for this one
  limit,      // too many steps
  deadlock,
};

struct Settings {
  bool any_time = false;  // may times come although a process could run?
  bool park = false;      // may another process go first only where one parks?
  // A run has at most `limit` steps, and `limit_each` for each of its processes.
  unsigned limit = 20000;
  unsigned limit_each = 100;
  unsigned early = 2;  // times of a run that come although a process could run, at most
};

enum class Kind : std::uint8_t { go, time, guard, fault };

struct Decision {
  int process;    // the one that had run last
  unsigned step;  // its last one
  Kind kind;
  int choice;  // the process that goes (kNone: a time comes), or the number of what was taken
  unsigned options, index;  // how many choices there were; which was taken, 0 is the usual one
  bool goes_on;             // would the usual choice go on with that process?
};

class Run;

// A Strategy decides what a run leaves open.
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
  // Which of the run.options() options goes. It is asked only if there are several, or if events
  // are kept.
  virtual unsigned go(Run& run) = 0;
  // Which of these options is taken within a step.
  virtual unsigned take(Run& run, unsigned options, Kind kind) = 0;
  virtual void end(Run&) {}
  // Sets up the next schedule. False: there is none.
  virtual bool advance() { return true; }
  // True: the last run does not count, and the search begins anew.
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
  void differs(std::string how);  // from what was to be repeated; the run stops

  // Which of these ready processes goes: its index. The first of them is the usual one. Returns
  // ready.size() if a time comes first. `goes_on`: the first is the process that ran last, and it
  // could go on. `timer`: is there a timer?
  unsigned go(std::span<const int> ready, bool goes_on, bool timer);
  // The process goes: its step begins.
  void goes(int process);
  // The first time comes: `early`, or because nobody can run.
  void time_comes(bool early);
  // The process lets these ready processes go first.
  void yields(int process, std::span<const int> ready);
  // Makes a choice within a step.
  unsigned take(unsigned options, Kind kind);

  // --- for strategies ---
  unsigned options() const noexcept { return static_cast<unsigned>(ready_.size()) + clock_; }
  Uid option(unsigned i) const noexcept {
    return i < ready_.size() ? record.at(ready_[i]).uid : kClock;
  }
  int option_process(unsigned i) const noexcept { return i < ready_.size() ? ready_[i] : kNone; }
  bool goes_on() const noexcept { return goes_on_; }
  const Process& last() const noexcept { return record.at(record.running); }

  unsigned steps = 0, early = 0, switches = 0;
  bool early_cut = false;  // was a time kept from coming by Settings::early?
  bool too_large = false;  // has the strategy not analysed the run, for its size?
  double chances = 1;      // the product of the numbers of options
  std::vector<Decision> decisions;
  std::string difference;

 private:
  void leave_out_who_yields(std::span<const int> ready);
  void decided(Kind kind, int choice, unsigned options, unsigned index, bool goes_on);

  Strategy* strategy_ = nullptr;
  Stopped stopped_ = Stopped::no;
  std::vector<int> ready_;
  std::vector<unsigned> positions_;          // of ready_, if some are left out
  std::vector<std::vector<int>> yields_to_;  // by process: who is to go before it
  unsigned yielding_ = 0;
  bool clock_ = false, goes_on_ = false;
};

}  // namespace weft::checking
