// The result of a look from outside (rules 14.9 to 14.11): samples of what each process does, and
// how many values have passed through the channels. A thread of the door (door.hpp) takes the
// samples while the program continues to run.
//
//   Look ──begin(): an interval──► sample(), as often as wanted ──► end(): rows ──► begin() …
//
// No process counts or records anything for a look. A sample reads, from another thread, what the
// runtime keeps in any case: the operation of a process, its status, and its place. The place is
// read as an address, and the object there is not read. So a process that was woken counts as
// waiting until it continues. Where processes wait, and which ends they hold, is read while they
// are at rest:
//
//   executor sleeps ──the run's door is closed, so it stays asleep──► the looking thread reads
//   executor is busy ──hurry()──► Run::serve_cancellations() reads, on the executor's own thread
//                        └──not in time──► what was known before is used
//
// Invariants
//  1 A look takes no lock of a channel, so a lock that is biased to a thread stays biased to it.
//    Therefore the numbers of a channel are only approximately those of the moment of the look.
//  2 At most kPiece processes are read at a time; between two pieces the program continues to run.
//  3 Between two samples processes and channels begin and end. A process is known by its id. A
//    channel is known by its address and by its counts, which never fall: if a count is smaller
//    than before, another channel is at the address.
//  4 A Look drops what it keeps of a process when the samples no longer find the process.
//  5 The program neither forks nor ends while something is read (at_work()).
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "partial.hpp"
#include "process.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Look {
 public:
  // What a process was doing when it was sampled.
  enum Now : std::uint8_t { runs, due, reads, writes, either, timed, barrier, waits, io, kStates };
  // a channel, by its address, and whether the end is a writer
  using Place = std::pair<const core::SyncObject*, bool>;

  struct Row {
    std::uint32_t id = 0, parent = 0;
    std::string path;
    const char* kind = "";
    Now now = runs;
    std::int64_t ns = 0;  // for how long the process has been in state `now`
    bool before = true;   // whether the process was in that state at the first look
    std::string does;
    std::array<std::uint32_t, kStates> found{};  // samples by state, in the interval
    std::int64_t cpu = -1;                       // CPU time since the last row in ns, or -1
    std::vector<Place> holds, waits;
  };
  struct Channel {
    const core::SyncObject* key = nullptr;
    std::string name;
    std::uint64_t passed = 0, dropped = 0;  // in the interval
    std::uint64_t depth = 0, capacity = 0;
    std::array<std::uint32_t, 2> waits{};  // samples in which a process waited to read, to write
    std::array<std::uint32_t, 2> line{};   // how many processes wait now to read, to write
  };
  struct Found {
    std::vector<Row> rows;
    std::vector<Channel> channels;
    std::uint32_t samples = 0;
    std::size_t left_out = 0;  // processes without a row
  };

  void begin();
  void sample();
  // Ends the interval. Returns the rows of at most `most` processes; if there are more, processes
  // that did more than wait for others are preferred.
  Found end(std::size_t most);
  // Returns how many processes the last sample found.
  std::size_t count() const noexcept { return count_; }

  // Returns the processes of all runs that can never continue (rule 14.3). `wait` is as in
  // look_for_stuck().
  static runtime::Found stuck(const OpKind& wait);

  // The mutex that is held while something is read.
  static std::mutex& at_work() noexcept;
  // Called in the child of a fork, because threads of the parent might have held the locks.
  static void forget() noexcept;

 private:
  struct Seen {
    std::array<std::uint32_t, kStates> found{};
    std::uint32_t selects = 0;   // samples in which the process waited in a select
    std::uint64_t sample = 0;    // the number of the last sample that has found the process
    std::int64_t since = 0;      // when the present state began, as far as known
    std::int64_t cpu = -1;       // CPU time of the process's thread at the last rows
    std::string path, function;  // empty until a row needs them
    const char* kind = nullptr;
    Now now = runs, chooses = either;  // `chooses`: what the process's select waits for
    bool before = true;
    bool woken = false;  // whether the process's operation had ended at the last reading
    std::vector<Place> holds, waits;
    bool has_weight() const noexcept { return found[runs] + found[timed] + found[io] > 0; }
  };
  struct Flow {
    std::string name;
    std::uint64_t seen = 0;  // the last round in which the channel was found
    std::uint64_t transfers = 0, dropped = 0, depth = 0, capacity = 0;
    std::uint64_t transfers_before = 0, dropped_before = 0;
    std::uint32_t reader = 0, writer = 0;  // the processes that last used the channel's ends
    std::uint64_t sample = 0;
    std::array<std::uint32_t, 2> waits{}, line{};
    bool known = false;  // whether the channel's numbers have been read
    bool has_moved() const noexcept {
      return transfers != transfers_before || dropped != dropped_before;
    }
  };
  class Gather;

  void note(ProcessBase& p, std::int64_t at);
  void take_over(Gather& g);
  void wait_at(const core::SyncObject* place, bool writing, std::uint32_t samples = 1);

  std::unordered_map<std::uint32_t, Seen> seen_;
  std::unordered_map<const core::SyncObject*, Flow> flows_;
  std::uint64_t samples_ = 0, round_ = 1;
  std::uint32_t in_round_ = 0;
  std::uint64_t stride_ = 1;  // a sample examines one of each `stride_` processes, in turn
  std::size_t count_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
