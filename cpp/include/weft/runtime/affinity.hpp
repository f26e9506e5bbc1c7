// Restricts threads to CPUs. Restriction works on Linux only; elsewhere a request for a CPU is
// refused with a message.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../config.hpp"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace weft::inline WEFT_ABI::runtime {

#if defined(__linux__)
// Binds the calling thread to one CPU while the object lives; after that the thread may run on the
// same CPUs as before. If `cpu` is negative, nothing is changed.
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

#else
class Pinned {
 public:
  explicit Pinned(int) {}
};
#endif

#if defined(__linux__)
// Returns the CPUs that the calling thread may use, in ascending order.
std::vector<int> cpus();
#endif
// Returns the clock of the CPU time that the calling thread has used; 0 if there is none.
std::int32_t clock_of_this_thread() noexcept;
// Returns the time in ns of `clock`, which clock_of_this_thread() has returned on any thread; -1 if
// it is 0, or the clock's thread has ended.
std::int64_t cpu_time(std::int32_t clock) noexcept;
// Returns why this program may not use `cpu`; the text is empty if it may.
std::string cpu_refused(int cpu);

}  // namespace weft::inline WEFT_ABI::runtime
