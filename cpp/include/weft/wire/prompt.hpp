// Makes a thread run as soon as it is woken (WIRE-NETWORKS.md 17.24). be_prompt() is for a thread
// that mostly sleeps, and passes on what arrives. The system lets a thread that computes finish its
// time slice, a millisecond or more, before a thread that was woken can run. A thread that has
// asked for a short slice need not wait for that (on Linux 6.12 and later; earlier systems ignore
// the request).
#pragma once
#include <cstdint>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "../config.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {
struct Attributes {  // has the size of the first version of Linux's struct
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

// Gives this thread a short time slice. Threads that this thread starts have the usual slice.
// Nothing changes for a thread whose priority was raised, or that has another scheduling policy.
inline void be_prompt() noexcept {
#if defined(SYS_sched_setattr) && defined(SYS_sched_getattr)
  static_assert(sizeof(Attributes) == 48);
  constexpr std::uint32_t kOrdinary = 0;        // SCHED_OTHER
  constexpr std::uint64_t kNotForOthers = 1;    // SCHED_FLAG_RESET_ON_FORK
  constexpr std::uint64_t kShortest = 100'000;  // in ns
  Attributes a{};
  if (::syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) != 0) return;
  // A thread with a raised priority is left alone: threads that it starts would lose the priority.
  if (a.policy != kOrdinary || a.nice < 0) return;
  a.size = sizeof(a);
  a.flags |= kNotForOthers;
  a.runtime = kShortest;
  ::syscall(SYS_sched_setattr, 0, &a, 0);  // Where the system forbids the call, nothing changes.
#endif
}
}  // namespace detail

}  // namespace weft::inline WEFT_ABI::wire
