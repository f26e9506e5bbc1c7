// Partial deadlock: the processes that nothing that can still run will ever wake (rules 10.5,
// 14.3).
//
// A look is taken by a process of one executor, while no other of its processes starts to run: so
// those that do not run cannot change state. Those that run, and all others of the run (threads,
// other executors), count as able to go on, and what they hold as held by nobody that is known.
// They may commit and drop ends meanwhile: so first who waits where, then the ends, then again who
// waits. Whoever is still waiting at the second look was not woken by an end that was dropped in
// between.
//
//   able: runs, is ready, sleeps, was cancelled, is elsewhere ──solve() (going_on.hpp)──► also whom they may wake; the rest are stuck
//
// At a standstill (rule 10.6) all executors sleep, so all their processes stand still: everybody is
// looked at, and told where he waits.
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
  // those of the places at which something outside the run may come
  std::vector<std::string> open;
};

}  // namespace weft::inline WEFT_ABI

namespace weft::inline WEFT_ABI::runtime {

class Run;

struct Found {
  std::vector<Waits> processes;    // those that wait for an operation of their own, by path
  std::vector<std::uint32_t> ids;  // theirs
  std::uint64_t places = 0;        // at a standstill: where they wait, as one number; 0: none
};

// `waits`: the operation of a process that waits for a group, its place.
// Who is stuck. By a process that runs on `here`, or on its thread.
Found look_for_stuck(Run& run, Executor& here, const OpKind& waits);
// Everybody, at a standstill: while all executors sleep. Nobody, if somebody can go on.
Found look_at_rest(Run& run, const OpKind& waits);

// Its line in a report: what it is in, where.
std::string line_of(const Waits& w);
// If there are very many, only the first ones.
std::string listed(const std::vector<std::string>& names, const char* between);

}  // namespace weft::inline WEFT_ABI::runtime
