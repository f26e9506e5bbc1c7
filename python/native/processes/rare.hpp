// A Rare has the fields that only a few processes need. They are stored separately, so that all
// other processes are smaller.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "processes/outcome.hpp"
#include "processes/process.hpp"

namespace weft::py {

// The watchers of a process's end (rule 7.11).
struct Watch {
  // The latch's name points into `name`; its last_writer is the id of the process.
  core::LatchEngine<Shared> latch;
  std::string name;
  ProcessObject* process;                      // the watched process
  std::vector<Owned<ProcessObject>> watchers;  // kept until the process has ended
  bool beyond = false;                         // whether code that is not a process watches too
  // whether the failure of the process is reported to its watchers
  bool watched = false;
  Owned<> why;  // the reason of such a failure (no_result.cpp)
};

// For each set of guards, the guard at which the process's next one-shot select over these guards
// begins. This memory makes repeated selects fair (rule 5.4).
struct SelectMemory {
  std::uint64_t key = 0;
  std::uint32_t start = 0;
  std::unique_ptr<std::vector<std::pair<std::uint64_t, std::uint32_t>>> more;
  std::uint32_t& of(std::uint64_t k);  // defined in choice.cpp
};

struct Rare {
  SelectMemory selects;
  std::unique_ptr<Watch> watch;  // null if no code has asked for the end of the process
  Outcome kept;                  // the outcome of an operation that gives way
};

inline Watch* ProcessObject::watch() const noexcept { return rare ? rare->watch.get() : nullptr; }

}  // namespace weft::py
