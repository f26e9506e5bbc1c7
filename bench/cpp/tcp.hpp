// The two ends of a TCP connection over loopback, and functions for the programs at its ends.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "sampler.hpp"

namespace bench {

inline std::pair<int, int> tcp_pair() {
  const int listens = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int here = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(listens, address, size) != 0 || ::listen(listens, 1) != 0 ||
      ::getsockname(listens, address, &size) != 0 || ::connect(here, address, size) != 0)
    fail("no TCP connection over loopback");
  const int there = ::accept4(listens, nullptr, nullptr, SOCK_CLOEXEC);
  ::close(listens);
  const int on = 1;
  for (const int fd : {here, there})
    if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("no TCP_NODELAY");
  return {here, there};
}

// Prints the mean of each stretch, in ns.
inline void print_means(const std::vector<double>& means) {
  std::printf("ns");
  for (const double m : means) std::printf(" %.1f", m);
  std::printf("\n");
}

// Waits for the program at the other end, and fails unless it exited with status 0.
inline void ended_well(pid_t other, const std::string& who) {
  int status = 0;
  if (::waitpid(other, &status, 0) != other || status != 0) fail(who + ": the other failed");
}

}  // namespace bench
