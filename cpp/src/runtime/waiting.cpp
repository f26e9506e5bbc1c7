// The definitions of runtime/waiting.hpp.
#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#else
#include <thread>
#endif

#include <algorithm>

#include <weft/runtime/waiting.hpp>

namespace weft::inline WEFT_ABI::runtime {

std::int32_t usable_cpus() noexcept {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  // The call asks about the main thread, since a worker can be bound to one CPU.
  return sched_getaffinity(getpid(), sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
#else
  const unsigned n = std::thread::hardware_concurrency();
  return n > 0 ? static_cast<std::int32_t>(n) : 1;
#endif
}

std::int64_t SpinTime::now() noexcept {
  return ++waits_ % kRetry == 0 ? std::max(ns_, kLongest) : ns_;
}

void SpinTime::in_vain() noexcept { ns_ = std::max(kLeast, ns_ / 2); }

void SpinTime::came(std::int64_t after) noexcept {
  answered(after);
  ns_ = std::max(kLongest, is_steady() ? std::min(kAnswer, longest() + longest() / 2) : 0);
}

void SpinTime::slept(std::int64_t after) noexcept {
  answered(after);
  if (is_steady()) ns_ = std::max(ns_, longest());
}

void SpinTime::answered(std::int64_t after) noexcept {
  near_ = after > kAnswer ? 0 : std::min(near_ + 1, kSteady);
  last_[next_++ % kSteady] = after;
}

std::int64_t SpinTime::longest() const noexcept { return std::ranges::max(last_); }

}  // namespace weft::inline WEFT_ABI::runtime
