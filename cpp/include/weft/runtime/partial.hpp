// Partial deadlock: finds the processes that no process that can still run will ever wake (rules
// 10.5, 14.3).
//
// A process of one executor makes the search, while no other process of that executor starts to
// run. So processes that do not run cannot change state. Processes that run, and all others of the
// run (threads, other executors), count as able to continue, and no holder counts as known for the
// ends that they hold. These processes may commit and drop ends meanwhile. So the search first
// records which process waits where, then the ends, then again which process waits. A process that
// is still waiting the second time was not woken by an end that was dropped in between.
//
//   able: runs, is ready, sleeps, was cancelled, is elsewhere ──solve() (going_on.hpp)──► able, and
//         those that they may wake; the rest are stuck
//
// At a standstill (rule 10.6) all executors sleep, so none of their processes can change: every
// process is examined, and reported with the place where it waits.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "process.hpp"

namespace weft::inline WEFT_ABI {

// A process that waits, as a report describes it (standstill.hpp, observe.hpp).
struct Waits {
  std::string path;
  std::string operation;
  std::string at;                      // file:line
  std::vector<std::string> places;     // the names of channels and barriers
  std::vector<std::string> waits_for;  // the paths of the processes that hold ends at these places
  // the places at which a party from outside the run might arrive
  std::vector<std::string> open;
};

}  // namespace weft::inline WEFT_ABI

namespace weft::inline WEFT_ABI::runtime {

class Run;

struct Found {
  // The processes that wait for an operation of their own, sorted by path.
  std::vector<Waits> processes;
  std::vector<std::uint32_t> ids;  // the ids of `processes`
  // At a standstill: a hash of the places where the processes wait, or 0 if there are none.
  std::uint64_t places = 0;
};

// Finds the processes that are stuck. Called by a process that runs on `here`, or on the thread of
// `here`. `waits` is the operation of a process that waits for a group; the group is then the
// process's place.
Found look_for_stuck(Run& run, Executor& here, const OpKind& waits);
// Finds the processes that are stuck, like look_for_stuck(), but is called while no process of
// `here` can begin to run: on the thread of `here`, or while that executor sleeps and the run's
// door is closed.
Found look_for_stuck_held(Run& run, Executor& here, const OpKind& waits);
// Returns all processes at a standstill, while all executors sleep; returns none if some process
// can continue.
Found look_at_rest(Run& run, const OpKind& waits);

// Returns the line of a process in a report: its operation, and where it waits.
std::string line_of(const Waits& w);
// Joins the names; if there are many, only the first ones.
std::string listed(const std::vector<std::string>& names, const char* between);

}  // namespace weft::inline WEFT_ABI::runtime
