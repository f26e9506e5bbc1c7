// Counts the system calls that wait, yield and wake, for a communication between two programs over
// shared memory.
//
//   wire_calls MICROSECONDS SAMPLES PER      as `wire int`; calls for a communication, of both
//                                            programs; two communications are a round trip
//
// Weft uses only syscall(2) to wait or wake, and sched_yield(2) to let others run. Therefore the
// calls of these two functions are counted, in both programs, in memory that they share. Calls that
// the watching threads make at the beginning and at the end are not counted.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>

#include <weft/weft.hpp>
#include <weft/wire/shm.hpp>

#include "pin.hpp"

namespace {
std::atomic<long>* counted = nullptr;
}

extern "C" int sched_yield() noexcept {
  return static_cast<int>(::syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0));
}
extern "C" long syscall(long number, ...) noexcept {
  if (counted) counted->fetch_add(1, std::memory_order_relaxed);
  va_list arguments;
  va_start(arguments, number);
  const long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long);
  register long d asm("r10") = va_arg(arguments, long);
  register long e asm("r8") = va_arg(arguments, long);
  register long f asm("r9") = va_arg(arguments, long);
  va_end(arguments);
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e), "r"(f)
               : "rcx", "r11", "memory");
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

namespace {
namespace w = weft::wire;

void work(long us) {
  const auto end = bench::Clock::now() + std::chrono::microseconds(us);
  while (us > 0 && bench::Clock::now() < end) {
  }
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) bench::fail("usage: wire_calls MICROSECONDS SAMPLES PER");
  const long us = std::atol(argv[1]), samples = bench::number(argv[2]),
             per = bench::number(argv[3]);
  const bench::Placement place;
  void* const shared =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) bench::fail("no memory");
  counted = ::new (shared) std::atomic<long>(0);
  int s[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0) bench::fail("no socket pair");
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(s[0]);
    place.pin(1);
    try {
      w::ShmLink link(w::Space::make("other"), s[1]);
      weft::Channel<int> to;
      weft::Reader<int> in = to.reader();
      link.give(to.writer(), "there");
      auto back = link.writer<int>("back");
      for (;;) {
        const int x = in();
        work(us);
        back(x + 1);
      }
    } catch (const weft::ChannelEnd&) {
    }
    ::_exit(0);
  }
  ::close(s[1]);
  place.pin(0);
  std::vector<double> calls;
  {
    w::ShmLink link(w::Space::make("first"), s[0]);
    weft::Channel<int> back;
    weft::Reader<int> in = back.reader();
    link.give(back.writer(), "back");
    auto out = link.writer<int>("there");
    int x = 0;
    for (long k = 0; k <= samples; ++k) {
      const long before = counted->load();
      for (long i = 0; i < per; ++i, ++x) {
        out(x);
        if (in() != x + 1) bench::fail("a wrong answer");
      }
      if (k > 0)
        calls.push_back(static_cast<double>(counted->load() - before) /
                        static_cast<double>(2 * per));
    }
  }
  int status = 0;
  if (::waitpid(other, &status, 0) != other || status != 0)
    bench::fail("the other program has failed");
  std::printf("ns");
  for (const double c : calls)
    std::printf(" %.6f", std::max(c, 1e-6));  // the harness accepts no sample that is zero
  std::printf("\n");
}
