// The echo server of ../../cpp/echo.cpp with Asio (stand-alone): a coroutine for each connection, by
// co_spawn and use_awaitable, on one thread.
//
//   echo_asio SAMPLES PER CONNECTIONS
#include <asio.hpp>

#include "../../cpp/echo.hpp"

namespace {

using asio::ip::tcp;

asio::awaitable<void> echoes(tcp::socket s) {
  char b[4096];
  asio::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  for (;;) {
    const std::size_t n = co_await s.async_read_some(asio::buffer(b), token);
    if (error) break;  // the clients have ended
    co_await asio::async_write(s, asio::buffer(b, n), token);
    if (error) break;
  }
}

asio::awaitable<void> serves(tcp::acceptor& door, long connections) {
  for (long i = 0; i < connections; ++i) {
    tcp::socket s = co_await door.async_accept(asio::use_awaitable);
    s.set_option(tcp::no_delay(true));
    asio::co_spawn(door.get_executor(), echoes(std::move(s)), asio::detached);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) bench::fail("usage: echo_asio SAMPLES PER CONNECTIONS");
  return bench::echo(bench::number(argv[3]), bench::number(argv[1]), bench::number(argv[2]),
                     [](int fd, long n) {
                       asio::io_context one(1);  // one thread: fewer locks
                       tcp::acceptor door(one, tcp::v4(), fd);
                       asio::co_spawn(one, serves(door, n), asio::detached);
                       one.run();
                     });
}
