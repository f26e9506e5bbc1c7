// The clients of an echo server in another language: the server starts this program when it
// listens, and passes it the id of its own OS process, and its port. echo.hpp describes the
// figures.
//
//   echo_clients SAMPLES PER CONNECTIONS SERVER PORT
#include "common.hpp"
#include "echo.hpp"

int main(int argc, char** argv) {
  if (argc != 6) bench::fail("usage: echo_clients SAMPLES PER CONNECTIONS SERVER PORT");
  bench::many_descriptors();
  const auto server = static_cast<pid_t>(bench::number(argv[4]));
  bench::puts_on_cpu(server, 0);
  bench::on_cpu(1);
  bench::clients(server, static_cast<int>(bench::number(argv[5])), bench::number(argv[3]),
                 bench::number(argv[1]), bench::number(argv[2]));
}
