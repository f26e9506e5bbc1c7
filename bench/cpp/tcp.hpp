// Two ends of a TCP connection over loopback.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

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

}  // namespace bench
