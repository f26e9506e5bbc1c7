// One run of a checked program: who goes on at each point, as a strategy says, within bounds.
//
//   begin() ──go(), take()…──► end()
//                └──► stopped: the program is to be ended, nothing is recorded or decided any more
//
// Whoever calls it (a language's points) knows who is ready and lets them run; here is no program.
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
  bool any_time = false;  // times come although somebody could run
  bool park = false;      // somebody else goes first only where a process parks
  unsigned limit = 20000;
  unsigned early = 2;  // times that come although somebody could run, at most
};

enum class Kind : std::uint8_t { go, time, guard, fault };

struct Decision {
  int process;  // that had run last
  unsigned step;
  Kind kind;
  int choice;  // a process, or the number of what was taken
  unsigned options, index;
  bool goes_on;  // the usual choice is to go on with that process
};

class Run;

// Who decides.
class Strategy {
 public:
  Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  virtual ~Strategy() = default;

  virtual bool keeps_events() const noexcept { return false; }
  virtual bool cancels() const noexcept { return false; }  // Record::cancels
  virtual void begin(Run&) {}
  // Who goes, of run.options() ones; asked only if there are several, or events are kept.
  virtual unsigned go(Run& run) = 0;
  virtual unsigned take(Run& run, unsigned options, Kind kind) = 0;
  virtual void end(Run&) {}
  // Sets up the next schedule; false: there is none.
  virtual bool advance() { return true; }
  // The last run does not count, and the search begins anew.
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
  void differs(std::string how);  // and it stops

  // Which of those that are ready goes, the usual one first; ready.size(): a time comes first.
  // `goes_on`: the first is the one that has run, and could go on. `timer`: is there one?
  unsigned go(std::span<const int> ready, bool goes_on, bool timer);
  // It goes: its step begins.
  void goes(int process);
  // The first time comes: `early`, or as nobody can run.
  void time_comes(bool early);
  // The process lets those go first that are ready.
  void yields(int process, std::span<const int> ready);
  // A choice within a step.
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
  bool early_cut = false;
  double chances = 1;
  std::vector<Decision> decisions;
  std::string difference;

 private:
  void decided(Kind kind, int choice, unsigned options, unsigned index, bool goes_on);

  Strategy* strategy_ = nullptr;
  Stopped stopped_ = Stopped::no;
  std::vector<int> ready_;
  std::vector<unsigned> positions_;
  std::vector<std::vector<int>> yields_to_;  // by process: who goes before it
  unsigned yielding_ = 0;
  bool clock_ = false, goes_on_ = false;
};

}  // namespace weft::checking
