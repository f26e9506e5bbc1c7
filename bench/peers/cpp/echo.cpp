// The echo server of ../../cpp/echo.cpp in plain C++: one loop over epoll_wait(), edge-triggered,
// one read and one write a request. This program is the floor: it has no processes, and it fails if
// the system does not take an answer at once.
//
//   echo SAMPLES PER CONNECTIONS
#include "../../cpp/echo.hpp"

namespace {

void serve(int listening, long connections) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  for (long i = 0; i < connections; ++i) {
    const int fd = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) bench::fail("echo: accept");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event e{};
    e.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    e.data.fd = fd;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
  }
  std::vector<epoll_event> events(256);
  char b[4096];
  for (long open = connections; open > 0;) {
    const int n = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      const ssize_t k = ::recv(fd, b, sizeof b, 0);
      if (k < 0 && errno == EAGAIN) continue;
      if (k > 0 && ::send(fd, b, static_cast<std::size_t>(k), MSG_NOSIGNAL) == k) continue;
      if (k > 0 && errno == EAGAIN) bench::fail("echo: the system takes no answer");
      ::close(fd);
      --open;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) bench::fail("usage: echo SAMPLES PER CONNECTIONS");
  return bench::echo(bench::number(argv[3]), bench::number(argv[1]), bench::number(argv[2]), serve);
}
