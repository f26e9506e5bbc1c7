// Accesses a channel by name between machines (cpp/docs/net.md): temperatures go to the program
// that keeps them.
//
//   lab keeps [SERVER]            makes the channel, and prints the mean of all values that arrive
//   lab measures N [SERVER]       sends N temperatures. Any number of programs may do so, on any
//                                 machine, in C++ or in Python:
//       with weft.net.join() as network: network.writer("lab/temperatures").write(21.5)
#include <cstdio>
#include <cstdlib>
#include <string>

#include "weft/net.hpp"

namespace {
using Celsius = weft::Typed<double>;

void keeps(const std::string& server) {
  auto network = weft::join(server, {.name = "keeper"});
  const weft::Channel<Celsius> temperatures(weft::named("temperatures"));
  const auto in = temperatures.reader();
  network.offer("lab/temperatures", temperatures, {.writers = true});
  std::puts("here");
  std::fflush(stdout);
  double sum = 0;
  long n = 0;
  try {
    for (;; ++n) sum += in();
  } catch (const weft::Retired&) {  // all measuring programs have left
    std::printf("%ld temperatures, %.2f on average\n", n, n ? sum / static_cast<double>(n) : 0.0);
  }
}

void measures(const std::string& server, long n) {
  auto network = weft::join(server, {.name = "thermometer"});
  auto out = network.at("lab/temperatures").writer<Celsius>();
  for (long i = 0; i < n; ++i) out(20.0 + static_cast<double>(i % 5));
}
}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const long n = what == "measures" && argc > 2 ? std::atol(argv[2]) : 0;
  if (what != "keeps" && n < 1) {
    std::fprintf(stderr, "usage: lab keeps [SERVER] | lab measures N [SERVER], N at least 1\n");
    return 2;
  }
  try {
    if (what == "keeps")
      keeps(argc > 2 ? argv[2] : "");
    else
      measures(argc > 3 ? argv[3] : "", n);
    return 0;
  } catch (const weft::Error& e) {
    std::fprintf(stderr, "lab: %s\n", e.what());
    return 1;
  }
}
