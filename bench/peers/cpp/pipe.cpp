// A peer that sends ints over pipes between two processes, with blocking reads and writes.
//
//   pipe int MICROSECONDS SAMPLES PER     the other process answers after this much work;
//                                         ns a round trip beyond that work
//   pipe stream SAMPLES PER               one way; ns an int
#include <sys/wait.h>

#include <csignal>

#include "../../cpp/pin.hpp"

namespace {

void get(int fd, int& x) {
  if (::read(fd, &x, sizeof(x)) != sizeof(x)) ::_exit(0);  // the other process has ended
}
void put(int fd, int x) {
  if (::write(fd, &x, sizeof(x)) != sizeof(x)) ::_exit(0);
}
void work(long us) {
  const auto end = bench::Clock::now() + std::chrono::microseconds(us);
  while (us > 0 && bench::Clock::now() < end) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool stream = what == "stream";
  if (!(stream && argc == 4) && !(what == "int" && argc == 5))
    bench::fail("usage: pipe int US SAMPLES PER | pipe stream SAMPLES PER");
  const long us = stream ? 0 : std::atol(argv[2]), samples = bench::number(argv[argc - 2]),
             per = bench::number(argv[argc - 1]);
  const bench::Placement place;
  int there[2], back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) bench::fail("no pipe");
  const pid_t other = ::fork();
  if (other == 0) {
    place.pin(1);
    ::close(there[1]), ::close(back[0]);
    for (int x = 0; stream; ++x) put(back[1], x);
    for (int x;;) {
      get(there[0], x);
      work(us);
      put(back[1], x + 1);
    }
  }
  place.pin(0);
  ::close(there[0]), ::close(back[1]);
  bench::Sampler s(samples);
  int x = 0;
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i, ++x) {
      int v;
      if (!stream) put(there[1], x);
      get(back[0], v);
      if (v != (stream ? x : x + 1)) bench::fail("a wrong value");
    }
    if (k > 0)
      s.end(static_cast<double>(per), 1e3 * static_cast<double>(us));  // stretch 0 warms up
  }
  s.print();
  std::fflush(stdout);
  ::close(there[1]), ::close(back[0]);
  ::signal(SIGPIPE, SIG_IGN);
  ::waitpid(other, nullptr, 0);
}
