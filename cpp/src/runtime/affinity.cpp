// The definitions of runtime/affinity.hpp.
#if defined(__linux__)
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread.h>
#endif

#include <cstring>

#include <weft/runtime/affinity.hpp>
#include <weft/runtime/names.hpp>
#include <weft/runtime/text.hpp>

namespace weft::inline WEFT_ABI::runtime {

#if defined(__linux__)
std::vector<int> cpus() {
  std::vector<int> r;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) r.push_back(i);
  return r;
}
std::string cpu_refused(int cpu) {
  const std::vector<int> may = cpus();
  for (const int c : may)
    if (c == cpu) return {};
  std::string list;
  for (const int c : may) put(list, {list.empty() ? "" : ", ", std::to_string(c)});
  return joined(
      {"CPU ", std::to_string(cpu), " is not one that this program may use; it may use ", list});
}
std::int32_t clock_of_this_thread() noexcept {
  clockid_t clock;
  return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : 0;
}
std::int64_t cpu_time(std::int32_t clock) noexcept {
  timespec t{};
  if (clock == 0 || clock_gettime(clock, &t) != 0) return -1;
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
#else
std::int32_t clock_of_this_thread() noexcept { return 0; }
std::int64_t cpu_time(std::int32_t) noexcept { return -1; }
std::string cpu_refused(int) {
  return "pinning a thread to a CPU is not supported on this system: leave the CPU out";
}
#endif

void name_this_thread(const char* name) noexcept {
  constexpr std::size_t kLongest = 15;  // in bytes; a limit of Linux
  const std::size_t n = std::strlen(name);
  const char* tail = name + (n > kLongest ? n - kLongest : 0);
  // skips to the start of a character
  while ((static_cast<unsigned char>(*tail) & 0xC0) == 0x80) ++tail;
#if defined(__linux__)
  if (::syscall(SYS_gettid) != getpid()) pthread_setname_np(pthread_self(), tail);
#elif defined(__APPLE__)
  pthread_setname_np(tail);
#endif
}

void name_this_thread(const ProcessBase& process) noexcept {
  try {
    name_this_thread(path_of(process).c_str());
  } catch (...) {  // no memory is left: the thread keeps its name
  }
}

void name_worker(const ProcessBase* host, unsigned index) noexcept {
  try {
    name_this_thread(
        joined({host ? path_of(*host) : "main", "/cores[", std::to_string(index), "]"}).c_str());
  } catch (...) {  // no memory is left: the thread keeps its name
  }
}

}  // namespace weft::inline WEFT_ABI::runtime
