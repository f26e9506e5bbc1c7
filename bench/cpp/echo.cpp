// An echo server with weft::io: a process for each connection (echo.hpp contains the other parts).
//
//   echo SAMPLES PER CONNECTIONS
#include <weft/io.hpp>

#include "common.hpp"
#include "echo.hpp"

namespace {

namespace io = weft::io;

weft::Process echoes(io::Stream s) {
  char b[4096];
  try {
    while (const std::size_t n = co_await s.read_some(b)) co_await s.write_all({b, n});
  } catch (const std::system_error&) {
    // The clients have ended.
  }
}

weft::Process serves(int listening, long connections) {
  weft::Group all;
  for (long i = 0; i < connections; ++i) {
    co_await io::readable(listening);
    const int fd = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) bench::fail("echo: accept");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    all.start(echoes(io::Stream::adopt(fd)));
  }
  co_await all.wait();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) bench::fail("usage: echo SAMPLES PER CONNECTIONS");
  return bench::echo(bench::number(argv[3]), bench::number(argv[1]), bench::number(argv[2]),
                     [](int fd, long n) { weft::run(serves(fd, n)); });
}
