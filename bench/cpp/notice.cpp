// Measures how long after a SIGKILL a program learns that another program, which has MB megabytes
// in use, is dead. The first program waits in a read of a channel whose home is the other program.
//
//   notice MB SAMPLES       ns from kill() to PeerDied, a figure for each kill
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <thread>

#include <weft/weft.hpp>
#include <weft/wire/shm.hpp>

#include "sampler.hpp"

namespace {
namespace w = weft::wire;

[[noreturn]] void victim(int socket, std::size_t bytes) {
  std::vector<char> used(bytes, 1);
  const auto space = w::Space::make("victim");
  w::ShmLink link(space, socket);
  weft::Channel<int> c;
  link.give(c.reader(), "never");
  weft::Writer<int> keep = c.writer();
  link.wait();
  ::_exit(used[bytes / 2]);
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) bench::fail("usage: notice MB SAMPLES");
  const std::size_t bytes = static_cast<std::size_t>(bench::number(argv[1])) << 20;
  bench::Sampler s(bench::number(argv[2]));
  for (long k = bench::number(argv[2]); k > 0; --k) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      bench::fail("no socket pair");
    const pid_t p = ::fork();
    if (p == 0) ::close(pair[0]), victim(pair[1], bytes);
    ::close(pair[1]);
    w::ShmLink link(w::Space::make("first"), pair[0]);
    auto in = link.reader<int>("never");
    std::thread kills([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      s.begin();
      ::kill(p, SIGKILL);
    });
    try {
      in();
      bench::fail("notice: a value that nobody has written");
    } catch (const weft::PeerDied&) {
      s.end(1);
    }
    kills.join();
    ::waitpid(p, nullptr, 0);
  }
  s.print();
}
