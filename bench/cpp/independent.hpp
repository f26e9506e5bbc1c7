// The reference for a speed-up: the same work in N processes of the system that do not communicate.
// The processes are released together. The time is measured from the release until the last of the
// processes has finished its work, so it includes neither their start nor their end.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "sampler.hpp"

namespace bench {

// Runs work(0) … work(n - 1), each in a process of its own, and returns the nanoseconds from their
// release to the end of the last process. The program fails if work() returns false.
inline double independently(int n, const std::function<bool(int)>& work) {
  struct Board {
    std::atomic<int> ready;
    std::atomic<std::int64_t> start;  // 0 means that the process must wait
    std::atomic<std::int64_t> end[64];
  };
  if (n < 1 || n > 64) fail("independently: 1 to 64 processes");
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("cannot map shared memory");
  Board& board = *new (memory) Board{};
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
        .count();
  };
  std::vector<pid_t> children;
  for (int i = 0; i < n; ++i) {
    const pid_t child = fork();
    if (child < 0) fail("cannot fork");
    if (child == 0) {
      ++board.ready;
      while (board.start == 0) sched_yield();
      const bool good = work(i);
      board.end[i] = now();
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  while (board.ready < n) sched_yield();
  const std::int64_t start = now();
  board.start = start;
  bool good = true;
  for (pid_t child : children) {
    int status = 0;
    good = waitpid(child, &status, 0) == child && status == 0 && good;
  }
  if (!good) fail("a process of the yardstick failed");
  std::int64_t last = 0;
  for (int i = 0; i < n; ++i) last = std::max<std::int64_t>(last, board.end[i]);
  munmap(memory, sizeof(Board));
  return static_cast<double>(last - start);
}

}  // namespace bench
