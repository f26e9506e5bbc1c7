// A select of a socket that is ready and a channel, with the read that follows; or, as the floor, a
// bare epoll_wait() and read. In both cases the byte has been written before the time begins.
//
//   io_select SAMPLES PER weft|epoll
#include <sys/epoll.h>
#include <sys/socket.h>

#include <string_view>

#include <weft/io.hpp>

#include "common.hpp"

namespace {

namespace io = weft::io;

// Writes `n` bytes, so that each of `n` reads of one byte finds its byte.
void fill(int fd, long n) {
  const std::string bytes(static_cast<std::size_t>(n), 'x');
  if (::send(fd, bytes.data(), bytes.size(), 0) != n) bench::fail("io_select: cannot write");
}

weft::Process selects(io::Stream s, int peer, weft::Reader<int> other, long samples, long per) {
  bench::Sampler times(samples);
  char b[1];
  for (long k = 0; k <= samples; ++k) {
    fill(peer, per);
    times.begin();
    for (long i = 0; i < per; ++i) {
      const auto [which, value] =
          co_await weft::select(weft::Mode::priority, other, io::readable(s));
      if (which != 1 || co_await s.read_some(b) != 1) bench::fail("io_select: nothing came");
    }
    if (k > 0) times.end(static_cast<double>(per));  // stretch 0 warms up
  }
  times.print();
}

void bare(int fd, int peer, long samples, long per) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event e{};
  e.events = EPOLLIN;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
  bench::Sampler times(samples);
  char b[1];
  for (long k = 0; k <= samples; ++k) {
    fill(peer, per);
    times.begin();
    for (long i = 0; i < per; ++i)
      if (epoll_wait(epoll, &e, 1, -1) != 1 || ::recv(fd, b, 1, 0) != 1)
        bench::fail("io_select: nothing came");
    if (k > 0) times.end(static_cast<double>(per));
  }
  times.print();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc == 4 ? argv[3] : "";
  if (how != "weft" && how != "epoll") bench::fail("usage: io_select SAMPLES PER weft|epoll");
  const long samples = bench::number(argv[1]), per = bench::number(argv[2]);
  auto [a, b] = io::Stream::pair();
  if (how == "epoll") {
    bare(a.fd(), b.fd(), samples, per);
    return 0;
  }
  weft::Channel<int> c;
  const auto keep = c.writer();
  weft::run(selects(a, b.fd(), c.reader(), samples, per));
}
