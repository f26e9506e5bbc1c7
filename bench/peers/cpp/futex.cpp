// A bound: one word is handed back and forth between two threads with FUTEX_WAIT and FUTEX_WAKE,
// without spinning.
//
// Invariant: `turn` names the thread that may continue; only that thread changes it. The threads
// are pinned by pin.hpp, as in Weft's own program.
#include <atomic>
#include <climits>
#include <thread>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "../../cpp/pin.hpp"
#include "../../cpp/sampler.hpp"

namespace {

std::atomic<int> turn{0};

void wait_for(int mine) {
  for (int seen; (seen = turn.load(std::memory_order_acquire)) != mine;)
    syscall(SYS_futex, reinterpret_cast<int*>(&turn), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr,
            0);
}

void hand_to(int other) {
  turn.store(other, std::memory_order_release);
  syscall(SYS_futex, reinterpret_cast<int*>(&turn), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) bench::fail("usage: futex SAMPLES PER");
  const long samples = bench::number(argv[1]), per = bench::number(argv[2]);
  const long rounds = per * (samples + 1);
  const bench::Placement place;
  std::thread other([&] {
    place.pin(1);
    for (long i = 0; i < rounds; ++i) {
      wait_for(1);
      hand_to(0);
    }
  });
  place.pin(0);
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) {
      hand_to(1);
      wait_for(0);
    }
    if (k > 0) s.end(2.0 * static_cast<double>(per));  // stretch 0 warms up
  }
  other.join();
  s.print();
}
