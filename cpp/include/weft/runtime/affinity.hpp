// What the system knows about a thread: the CPUs to which the thread is restricted, the clock of
// its CPU time, and its name. Restriction works on Linux only; elsewhere a request for a CPU is
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
// Binds the calling thread to one CPU while the object exists; afterwards the thread may run on the
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
// `clock` is 0, or the clock's thread has ended.
std::int64_t cpu_time(std::int32_t clock) noexcept;
// Returns the reason why this program may not use `cpu`; an empty text if the program may use it.
std::string cpu_refused(int cpu);

class ProcessBase;
// Gives the calling thread a name that system tools show: the last 15 bytes of `name`, without a
// character that is cut in two. On Linux the main thread keeps its name, which is the
// program's name. Where threads have no names, the call has no effect.
void name_this_thread(const char* name) noexcept;
// Names the calling thread after the process that it runs (rule 14.13).
void name_this_thread(const ProcessBase& process) noexcept;
// Names the calling thread as thread `index` of an executor on which the network of `host` runs
// (rule 14.13). If `host` is null, the executor belongs to the whole run.
void name_worker(const ProcessBase* host, unsigned index) noexcept;

}  // namespace weft::inline WEFT_ABI::runtime
