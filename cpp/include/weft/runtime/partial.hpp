// Partial deadlock: the processes that no process that can still run will ever wake (rules 10.5,
// 14.3).
//
// A look is taken by a process of one executor, while no other of its processes starts to run: so
// processes that do not run cannot change state. Those that run, and all others of the run
// (threads, other executors), count as able to go on, and the ends they hold as held by nobody that
// is known. They may commit and drop ends meanwhile: so the look first notes which process waits
// where, then the ends, then again who waits. A process that is still waiting at the second look
// was not woken by an end that was dropped in between.
//
//   able: runs, is ready, sleeps, was cancelled, is elsewhere ──solve() (going_on.hpp)──► able, and
//         those that they may wake; the rest are stuck
//
// At a standstill (rule 10.6) all executors sleep, so all their processes stand still: every
// process is looked at, and reported with the place where it waits.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "process.hpp"

namespace weft::inline WEFT_ABI {

// One process that waits, in a report (standstill.hpp, observe.hpp).
struct Waits {
  std::string path;
  std::string operation;
  std::string at;                      // file:line
  std::vector<std::string> places;     // channels and barriers
  std::vector<std::string> waits_for;  // paths of the processes that hold ends there
  // those of the places at which a party from outside the run may come
  std::vector<std::string> open;
};

}  // namespace weft::inline WEFT_ABI

namespace weft::inline WEFT_ABI::runtime {

class Run;

struct Found {
  std::vector<Waits> processes;    // those that wait for an operation of their own, by path
  std::vector<std::uint32_t> ids;  // the ids of these processes
  std::uint64_t places = 0;        // at a standstill: a hash of where they wait, or 0 for none
};

// Which processes are stuck. Called by a process that runs on `here`, or on its thread. `waits` is
// the operation of a process that waits for a group; its place is the group.
Found look_for_stuck(Run& run, Executor& here, const OpKind& waits);
// The same, called while no process of `here` can begin to run: on its thread, or while it sleeps and
// the run's door is closed.
Found look_for_stuck_held(Run& run, Executor& here, const OpKind& waits);
// All processes at a standstill, while all executors sleep. None if some process can go on.
Found look_at_rest(Run& run, const OpKind& waits);

// The line of a process in a report: its operation, and where.
std::string line_of(const Waits& w);
// Joins the names; if there are very many, only the first ones.
std::string listed(const std::vector<std::string>& names, const char* between);

}  // namespace weft::inline WEFT_ABI::runtime
