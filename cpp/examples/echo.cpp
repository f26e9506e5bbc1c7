// An echo server: each client gets back what it sends. On SIGTERM or Ctrl-C the server takes no
// more clients, serves the clients that it has to their end, and ends.
//
//   echo [ADDRESS]       (default 127.0.0.1:7777; port 0: the system chooses one)
#include <cstdio>
#include <string>

#include <weft/io.hpp>
#include <weft/weft.hpp>

namespace io = weft::io;

weft::Process echo(io::Stream client) {
  char buffer[16 * 1024];
  try {
    while (const std::size_t n = co_await client.read_some(buffer))
      co_await client.write_all({buffer, n});
  } catch (const std::system_error&) {
    // The client has reset the connection, or reads no more.
  }
}

weft::Process serve(io::Listener door, weft::Reader<int> stop) {
  weft::Group clients;
  while ((co_await weft::select(weft::Mode::priority, stop, io::readable(door))).index != 0)
    clients.start(echo(co_await door.accept()));
  door.close();
  std::puts("no more clients");
  std::fflush(stdout);
  co_await clients.wait();
}

int main(int argc, char** argv) try {
  io::Listener door(io::Address(argc > 1 ? argv[1] : "127.0.0.1:7777"));
  weft::signals stop{SIGTERM, SIGINT};
  std::printf("listening at %s\n", door.address().text().c_str());
  std::fflush(stdout);
  weft::run(serve(std::move(door), stop.reader()));
  std::puts("drained");
} catch (const std::exception& e) {
  std::fprintf(stderr, "echo: %s\n", e.what());
  return 2;
}
