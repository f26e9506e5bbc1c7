// Dining philosophers. Every fork is a process. With `deadlock` each philosopher takes the left
// fork first, and the report says which process waits for which. Without it, a butler lets at most
// four of the five sit down.
//
//   philosopher ──up, down──► fork          philosopher ──sit, rise──► butler
//
//   philosophers [MEALS] [deadlock]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <weft/weft.hpp>

using Channel = weft::Channel<int>;
using Reader = weft::Reader<int>;
using Writer = weft::Writer<int>;

constexpr int kSeats = 5;

// A fork is taken by one philosopher, and put down by the same philosopher. When one of its two
// philosophers has left for good, the fork serves the other; it ends when both have left.
weft::Process fork(Reader left, Reader right) {
  for (;;) {
    auto taken = co_await weft::select(left, right);
    co_await (taken.index == 0 ? left : right).read();
  }
}

// A philosopher who wants to sit is let in while there is room; a philosopher who rises is always
// let out.
weft::Process butler(Reader sit, Reader rise, bool strict) {
  int seated = 0;
  for (;;) {
    auto c = co_await weft::select(weft::in(sit).when(!strict || seated < kSeats - 1), rise);
    seated += c.index == 0 ? 1 : -1;
  }
}

weft::Process philosopher(int i, int meals, Writer left, Writer right, Writer sit, Writer rise) {
  for (int n = 0; n < meals; ++n) {
    co_await sit.write(i);
    co_await left.write(i);
    co_await weft::yield();  // so that every philosopher has taken the left fork first
    co_await right.write(i);
    co_await left.write(i);
    co_await right.write(i);
    co_await rise.write(i);
  }
  std::printf("philosopher %d has eaten %d times\n", i, meals);
}

int main(int argc, char** argv) {
  const int meals = argc > 1 ? std::atoi(argv[1]) : 3;
  const bool deadlock = argc > 2 && std::strcmp(argv[2], "deadlock") == 0;
  if (meals < 1 || (argc > 2 && !deadlock)) {
    std::fprintf(stderr,
                 "philosophers: MEALS must be a positive number; then nothing or `deadlock`\n");
    return 2;
  }
  Channel sit{weft::named("sit")}, rise{weft::named("rise")};
  std::vector<Channel> left, right;  // the channels of philosopher i
  for (int i = 0; i < kSeats; ++i) {
    left.emplace_back(weft::named(("left of " + std::to_string(i)).c_str()));
    right.emplace_back(weft::named(("right of " + std::to_string(i)).c_str()));
  }
  std::vector<weft::Process> ps;
  for (std::size_t i = 0; i < kSeats; ++i) {
    ps.push_back(philosopher(static_cast<int>(i), meals, left[i].writer(), right[i].writer(),
                             sit.writer(), rise.writer()));
    // Fork i lies to the left of philosopher i and to the right of the philosopher before.
    ps.push_back(fork(left[i].reader(), right[(i + kSeats - 1) % kSeats].reader()));
  }
  ps.push_back(butler(sit.reader(), rise.reader(), !deadlock));
  try {
    weft::run(weft::par(std::move(ps)));
  } catch (const weft::Deadlock& d) {
    std::printf("%s\n", d.what());
    return deadlock ? 0 : 1;
  }
}
