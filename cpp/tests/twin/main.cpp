// A twin for conformance: plays a network on coroutines and prints its history, a JSON object a
// line (play.hpp).
//
//   twin [--local | --cores N | --hosts N --link shm|stream|tcp|serial|lossy] [--seed N] < network
//
//   --local   the channels are weft::Local      --cores   on a multi-core executor
//   --hosts   2 or 3 programs, the first of which starts the others; joined by shared memory, by
//             sockets, by TCP on loopback, by lines that carry all, or by lines that lose, double, spoil or hold back
//             three packets in eight (hosts.hpp, lines.hpp). Time is real.
//
// On several cores a process may close only the ends that it alone was given: one end in two
// processes is two ends here, and the other process may be using its end at this moment. So
// networks for --cores and --hosts are made without "nested", "sequence", "spawn" and "mobile";
// placed.hpp lists what else --hosts does not allow.
#include <iostream>
#include <iterator>

#include "hosts.hpp"
#include "near.hpp"
#include "play.hpp"

namespace {

template <class P>
void play(const std::string& text, unsigned cores = 0) {
  std::istringstream in(text);
  const twin::Network net(in);
  twin::Near<P> near(net);
  twin::Play<twin::Near<P>> all(net, near, cores);
  all.run();
  all.tell_dropped(near.dropped());
}

}  // namespace

int main(int argc, char** argv) {
  bool local = false;
  unsigned cores = 0;
  twin::Spread spread;
  std::string text;
  try {
    for (int i = 1; i < argc; ++i) {
      const std::string option = argv[i];
      const auto value = [&]() -> std::string {
        if (i + 1 == argc) throw std::invalid_argument(option + ": a value is missing");
        return argv[++i];
      };
      if (option == "--local")
        local = true;
      else if (option == "--cores")
        cores = static_cast<unsigned>(std::stoul(value()));
      else if (option == "--seed")
        spread.seed = value();
      else if (option == "--hosts")
        spread.programs = static_cast<unsigned>(std::stoul(value()));
      else if (option == "--link")
        spread.link = value();
      else if (option == "--host")  // The first program gives these three options to the others.
        spread.me = std::stoi(value());
      else if (option == "--control")
        spread.control = std::stoi(value());
      else if (option == "--network")
        text = value();
      else
        throw std::invalid_argument("unknown argument '" + option +
                                    "'; use: twin [--local | --cores N | --hosts N --link "
                                    "shm|stream|tcp|serial|lossy] [--seed N] < network");
    }
    if (spread.me == 0)
      text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
    if (spread.programs) return twin::spread_network(text, spread);
    if (local)
      play<weft::Local>(text);
    else
      play<weft::Shared>(text, cores);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "twin: %s\n", e.what());
    return 2;
  }
  return 0;
}
