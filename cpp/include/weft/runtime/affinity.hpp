// On which CPUs a thread may run. Linux only; elsewhere asking for it is refused with a message.
#pragma once
#include <string>
#include <vector>

#include "../errors.hpp"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace weft::runtime {

#if defined(__linux__)
// Holds the calling thread on one CPU while it lives. Moved by nobody.
class Pinned {
 public:
  explicit Pinned(int cpu) {
    if (cpu < 0) return;
    held_ = pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) == 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    held_ = pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0 && held_;
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() {
    if (held_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
  }

 private:
  cpu_set_t before_{};
  bool held_ = false;
};

// The CPUs that the calling thread may use, ascending.
inline std::vector<int> cpus() {
  std::vector<int> r;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) r.push_back(i);
  return r;
}
inline void check_cpu(int cpu) {
  const std::vector<int> may = cpus();
  for (const int c : may)
    if (c == cpu) return;
  std::string list;
  for (const int c : may) list += (list.empty() ? "" : ", ") + std::to_string(c);
  throw BadUse("CPU " + std::to_string(cpu) + " is none that this program may use; it may use " + list);
}
#else
class Pinned {
 public:
  explicit Pinned(int) {}
};
inline void check_cpu(int) { throw BadUse("holding a thread on a CPU is not supported on this system: leave the CPU out"); }
#endif

}  // namespace weft::runtime
