// The clients of an echo server, and the two OS processes of a bench: N connections over the
// loopback, on each of which 64 bytes are sent and returned, again and again. The server runs on
// one CPU, and the clients, in an OS process of their own, on another.
//
// The clients measure the CPU time that the server's OS process takes for each request, by the CPU
// clock of that process. They keep all connections busy, so the server never waits for long. (If
// there is only one CPU, server and clients share it; the figure is still the server's CPU time.)
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "sampler.hpp"

namespace bench {

constexpr std::size_t kBytes = 64;

// Returns a socket that listens on the loopback, and its port.
inline std::pair<int, int> listens() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(fd, address, size) != 0 || ::listen(fd, 4096) != 0 ||
      ::getsockname(fd, address, &size) != 0)
    fail("no listening socket");
  return {fd, ntohs(at.sin_port)};
}

// Keeps this thread on the n-th of the CPUs that the program is allowed to use.
inline void on_cpu(int n) {
  cpu_set_t may, one;
  sched_getaffinity(0, sizeof may, &may);
  const int count = CPU_COUNT(&may);
  for (int cpu = 0, k = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &may) && k++ == n % count) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
    }
}

inline double cpu_ns_of(clockid_t clock) {
  timespec t{};
  if (clock_gettime(clock, &t) != 0) fail("echo: no clock of the server's");
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Runs the clients. Prints the server's CPU time in ns a request, for each stretch of `per`
// requests.
inline void clients(pid_t server, int port, long connections, long samples, long per) {
  clockid_t clock{};
  if (clock_getcpuclockid(server, &clock) != 0) fail("echo: no clock of the server's");
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<int> all;
  const std::string sent(kBytes, 'x');
  for (long i = 0; i < connections; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
      fail("echo: a client cannot connect");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.fd = fd;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
    all.push_back(fd);
  }
  for (const int fd : all)
    if (::send(fd, sent.data(), sent.size(), 0) != static_cast<ssize_t>(sent.size()))
      fail("echo: a client cannot send");
  std::vector<double> ns;
  double before = 0;
  long done = 0, sample = -1;  // stretch -1 warms up
  std::vector<epoll_event> events(1024);
  char answer[kBytes];
  while (sample < samples) {
    const int n = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (::recv(fd, answer, sizeof answer, MSG_WAITALL) != static_cast<ssize_t>(kBytes) ||
          answer[0] != 'x' || answer[kBytes - 1] != 'x')
        fail("echo: a wrong answer");
      if (::send(fd, sent.data(), sent.size(), 0) != static_cast<ssize_t>(sent.size()))
        fail("echo: a client cannot send");
      if (++done % per == 0) {
        const double now = cpu_ns_of(clock);
        if (sample >= 0) ns.push_back((now - before) / static_cast<double>(per));
        before = now;
        if (++sample == samples) break;
      }
    }
  }
  std::printf("ns");
  for (const double v : ns) std::printf(" %.3f", v);
  std::printf("\n");
}

// Keeps all threads of another OS process on the n-th of the CPUs that this program may use.
inline void puts_on_cpu(pid_t server, int n) {
  cpu_set_t may;
  sched_getaffinity(0, sizeof may, &may);
  on_cpu(n);
  cpu_set_t one;
  sched_getaffinity(0, sizeof one, &one);
  const std::string folder = "/proc/" + std::to_string(server) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(folder))
    sched_setaffinity(std::stoi(task.path().filename()), sizeof one, &one);
  sched_setaffinity(0, sizeof may, &may);
}

// Allows this OS process as many descriptors as the system does.
inline void many_descriptors() {
  rlimit r{};
  getrlimit(RLIMIT_NOFILE, &r);
  r.rlim_cur = r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
}

// Runs serve(listening socket, connections) here, and the clients in an OS process of their own.
// The clients close all connections when they have measured.
template <class F>
int echo(long connections, long samples, long per, F&& serve) {
  many_descriptors();
  const auto [fd, port] = listens();
  const pid_t server = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    on_cpu(1);
    clients(server, port, connections, samples, per);
    std::fflush(stdout);
    _exit(0);
  }
  on_cpu(0);
  serve(fd, connections);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) fail("echo: the clients failed");
  return 0;
}

}  // namespace bench
