// A Rare has what only few processes need. It is kept apart, so that the others are smaller.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "processes/outcome.hpp"
#include "processes/process.hpp"

namespace weft::py {

// Who waits for a process's end (rule 7.11).
struct Watch {
  // its name points into `name`, its last_writer is the process's id
  core::LatchEngine<Shared> latch;
  std::string name;
  ProcessObject* process;                      // which has it
  std::vector<Owned<ProcessObject>> watchers;  // until the process has ended
  bool beyond = false;                         // somebody watches who is no process
  bool watched = false;                        // its failure is its watchers'
  Owned<> why;                                 // of such a failure (no_result.cpp)
};

// Where the ad-hoc selects of one process begin, by their guards, so that repeated ones are fair
// (rule 5.4).
struct SelectMemory {
  std::uint64_t key = 0;
  std::uint32_t start = 0;
  std::unique_ptr<std::vector<std::pair<std::uint64_t, std::uint32_t>>> more;
  std::uint32_t& of(std::uint64_t k);  // choice.cpp
};

struct Rare {
  SelectMemory selects;
  std::unique_ptr<Watch> watch;  // null: nobody has asked for the process's end
  Outcome kept;                  // of an operation that gives way
};

inline Watch* ProcessObject::watch() const noexcept { return rare ? rare->watch.get() : nullptr; }

}  // namespace weft::py
