// For threads that sleep, and pass on what comes (WIRE.md 17.24). The system lets a thread that
// computes finish its slice, a millisecond or more, before one that has been woken gets the CPU. A
// thread that has asked for a short slice itself need not wait for that (Linux 6.12 and later;
// before, the system does not mind).
#pragma once
#include <cstdint>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "../config.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {
struct Attributes {  // as Linux has it, of its first version
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

// This thread has a short slice from now on; those that it starts have the usual one. A thread
// whose priority somebody has raised, or that is scheduled in another way, stays as it is.
inline void be_prompt() noexcept {
#if defined(SYS_sched_setattr) && defined(SYS_sched_getattr)
  static_assert(sizeof(Attributes) == 48);
  constexpr std::uint32_t kOrdinary = 0;        // SCHED_OTHER
  constexpr std::uint64_t kNotForOthers = 1;    // SCHED_FLAG_RESET_ON_FORK
  constexpr std::uint64_t kShortest = 100'000;  // ns
  Attributes a{};
  if (::syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) != 0) return;
  if (a.policy != kOrdinary || a.nice < 0) return;  // who it starts would lose a raised priority
  a.size = sizeof(a);
  a.flags |= kNotForOthers;
  a.runtime = kShortest;
  ::syscall(SYS_sched_setattr, 0, &a, 0);  // where that is forbidden it stays as it is
#endif
}
}  // namespace detail

}  // namespace weft::inline WEFT_ABI::wire
