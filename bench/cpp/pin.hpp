// Distributes the CPUs to which this process was pinned among the two threads of a hand-over.
#pragma once

#include <sched.h>

#include <vector>

#include "sampler.hpp"

namespace bench {

// The CPUs that this process was allowed to use when the object was made. With one CPU, all threads
// share it; with two or more, each of the two threads has a CPU of its own.
class Placement {
 public:
  Placement() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) fail("cannot read the CPUs of this process");
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus_.push_back(cpu);
  }
  /// Pins the calling thread, which is the `index`-th thread of the program, to a CPU.
  void pin(std::size_t index) const {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus_[index % cpus_.size()], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("cannot pin a thread to its CPU");
  }

 private:
  std::vector<int> cpus_;
};

}  // namespace bench
