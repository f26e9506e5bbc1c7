// The definitions of runtime/waiting.hpp.
#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#else
#include <thread>
#endif

#include <weft/runtime/waiting.hpp>

namespace weft::inline WEFT_ABI::runtime {

std::int32_t usable_cpus() noexcept {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  // The main thread's, since a thread may have been held to one of them.
  return sched_getaffinity(getpid(), sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
#else
  const unsigned n = std::thread::hardware_concurrency();
  return n > 0 ? static_cast<std::int32_t>(n) : 1;
#endif
}

}  // namespace weft::inline WEFT_ABI::runtime
