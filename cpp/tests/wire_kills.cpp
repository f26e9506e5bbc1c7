// Tests programs that are killed at any moment, and what the other programs learn (WIRE.md 2.4,
// 4.2, 8; rules 4.5, 6.4).
//
//   wire_kills N [SEED]     N programs are started, and each is killed while numbers pass, half of
//                           them over a socket, half over shared memory. Last line: N passed, N
//                           failed.
//
// The started program has one of several parts. It writes 1, 2, 3, … to a channel of this program
// (also to a buffer, on credit, WIRE.md 6), or reads them, or is the home of a channel to which
// this program writes and from which another thread of this program reads. Or it is such a home
// while both threads select over that channel and a channel of this program, so that two choices
// span the same two homes (WIRE.md 5). Or it is one of three parties of a barrier of this program,
// the third in another program, and all three sync and select in turn: then the other parties learn
// that the started program has died, and are at most one phase apart (WIRE.md 4.11). Each time the
// test checks that the values 1, 2, 3, … arrive without a gap; that every write that was reported
// as done has arrived if the reader lives; and that of the writes that failed at most one has
// arrived, and that write is in doubt. Nothing hangs, and no descriptor and no zombie is left.
#include <dirent.h>

#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/shm.hpp"

namespace {
using namespace weft;
namespace w = weft::wire;

// --- the program that is killed ------------------------------------------------------------------

template <class L>
int part(const std::string& which, int socket) {
  L link(w::Space::make(which), socket);
  try {
    if (which == "writer" || which == "lent") {
      auto to = link.template writer<std::uint64_t>("c");
      for (std::uint64_t i = 1;; ++i) to(i);
    } else if (which == "reader") {
      auto from = link.template reader<std::uint64_t>("c");
      for (;;) from();
    } else if (which == "barrier" || which == "party") {
      const w::FarBarrier b = link.barrier("b");
      const auto never = link.template reader<std::uint64_t>("never");
      std::uint64_t phases = 0;
      try {
        for (;; ++phases) {
          w::FarSelect s;
          phases % 2 ? b.sync()() : static_cast<void>(s.in(never).meet(b)());
        }
      } catch (const PeerDied&) {
      }
      if (which == "party") link.template writer<std::uint64_t>("phases")(phases);
    } else {  // The started program is the home.
      Channel<std::uint64_t> c{which == "buffer" ? buffer(4) : ChannelOptions{}};
      link.give(c.writer(), "to");
      link.give(c.reader(), "from");
      link.wait();
    }
  } catch (const ChannelEnd&) {
  }
  return 0;
}

// --- the program that kills ----------------------------------------------------------------------

struct WriteCounts {
  std::uint64_t done = 0;  // how many writes were reported as done; their values are 1 to `done`
  bool died = false, doubt = false;
};

// Writes 1, 2, 3, … until the other program dies.
template <class W>
WriteCounts write_all(W to) {
  WriteCounts t;
  try {
    for (;; ++t.done) to(t.done + 1);
  } catch (const PeerDied& e) {
    t.died = true;
    t.doubt = e.in_doubt;
  }
  return t;
}
// Returns how many values were read until the other program died, or 0 if there was a gap.
template <class R>
std::uint64_t read_all(R from) {
  std::uint64_t last = 0;
  try {
    for (;;) {
      const std::uint64_t v = from();
      if (v != last + 1) return 0;
      last = v;
    }
  } catch (const PeerDied&) {
  }
  return last;
}

std::size_t descriptors() {
  std::size_t n = 0;
  DIR* const d = ::opendir("/proc/self/fd");
  while (d && ::readdir(d)) ++n;
  if (d) ::closedir(d);
  return n;
}

template <class L>
const char* killed_once(const std::string& which, unsigned after) {
  const auto space = w::Space::make("killer");
  constexpr bool shm = std::is_same_v<L, w::ShmLink>;
  w::ProgramOver<L> p(space, {"/proc/self/exe", which, shm ? "shm" : "stream"});
  std::atomic<bool> begun{false};
  // Kills the program a while after the first value has passed, at any moment of the traffic.
  std::thread killer([&] {
    while (!begun.load()) std::this_thread::yield();
    for (volatile unsigned i = 0; i < after;) i = i + 1;
    p.kill();
  });
  const auto started = [&](std::uint64_t v) {
    begun = true;
    return v;
  };
  const char* wrong = nullptr;
  if (which == "writer" || which == "lent") {
    Channel<std::uint64_t> c{which == "lent" ? buffer(8) : ChannelOptions{}};
    p.link().give(c.writer(), "c");
    Reader<std::uint64_t> r = c.reader();
    if (read_all([&] { return started(r()); }) == 0) wrong = "a value was lost or doubled";
  } else if (which == "reader") {
    Channel<std::uint64_t> c;
    p.link().give(c.reader(), "c");
    Writer<std::uint64_t> to = c.writer();
    const WriteCounts t = write_all([&](std::uint64_t v) { to(v), started(v); });
    if (!t.died) wrong = "the writer was not told";
    if (t.doubt) wrong = "a write at home is never in doubt";
  } else if (which == "barrier") {
    Barrier b(3);
    Channel<std::uint64_t> never, phases;
    const Writer<std::uint64_t> keep = never.writer();
    const Reader<std::uint64_t> told = phases.reader(), quiet = never.reader();
    w::ProgramOver<L> q(space, {"/proc/self/exe", "party", shm ? "shm" : "stream"});
    for (auto* link : {&p.link(), &q.link()})
      link->give(b, "b"), link->give(never.reader(), "never");
    q.link().give(phases.writer(), "phases");
    std::uint64_t ours = 0;
    try {
      for (;; ++ours) {
        ours % 2 ? static_cast<void>(select(quiet, b)()) : b.sync()();
        started(0);
      }
    } catch (const PeerDied&) {
    }
    const std::uint64_t theirs = told();
    if (ours != b.phases()) wrong = "the home has not been through all phases";
    if (theirs != ours) wrong = "who was told of a phase has not been through it";
    if (!b.core()->has_died()) wrong = "the barrier has not died";
  } else {
    auto to = p.link().template writer<std::uint64_t>("to");
    auto from = p.link().template reader<std::uint64_t>("from");
    const bool spans = which == "spans";
    Channel<std::uint64_t> own;
    Writer<std::uint64_t> own_writer = own.writer();
    Reader<std::uint64_t> own_reader = own.reader();
    std::uint64_t got = 0;
    std::thread reader([&, token = Outside()] {
      got = read_all([&] {
        if (!spans) return started(from());
        w::FarSelect s;
        s.in(from).in(own_reader);
        s();
        return started(s.value<std::uint64_t>());
      });
    });
    const WriteCounts t = write_all([&](std::uint64_t v) {
      if (!spans) return to(v);
      w::FarSelect s;
      s.out(own_writer, v).out(to, v);
      s();
    });
    reader.join();
    // The values in the home's buffer were lost with the home.
    const std::uint64_t slack = which == "buffer" ? 4 : 0;
    if (got + slack < t.done) wrong = "a write was told to be done, and its value is gone";
    if (got > t.done + 1) wrong = "a value arrived that nobody has written";
    if (got == t.done + 1 && !t.doubt) wrong = "a write that failed arrived, and was not in doubt";
    if (!t.died) wrong = "the writer was not told";
  }
  begun = true;
  killer.join();
  return wrong;
}
}  // namespace

int main(int argc, char** argv) {
  if (const int socket = w::inherited(); socket >= 0) {
    const std::string which = argc > 1 ? argv[1] : "";
    return argc > 2 && std::string(argv[2]) == "shm" ? part<w::ShmLink>(which, socket)
                                                     : part<w::StreamLink>(which, socket);
  }
  const long n = argc > 1 ? std::atol(argv[1]) : 40;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atol(argv[2])) : 1;
  std::mt19937 random(seed);
  const char* const parts[] = {"writer", "reader", "home", "buffer", "spans", "lent", "barrier"};
  long passed = 0, failed = 0;
  const std::size_t before = descriptors();
  for (long i = 0; i < n; ++i) {
    const std::string which = parts[i % 7];
    const unsigned after = random() % 2'000'000;
    const bool shm = i / 7 % 2 == 0;
    if (const char* wrong = shm ? killed_once<w::ShmLink>(which, after)
                                : killed_once<w::StreamLink>(which, after)) {
      ++failed;
      std::printf("FAIL kill %ld (seed %u, %s, %s): %s\n", i, seed, which.c_str(),
                  shm ? "shared memory" : "socket", wrong);
    } else {
      ++passed;
    }
    if (i % 50 == 49) std::fprintf(stderr, "%ld kills\n", i + 1);
  }
  const bool clean = descriptors() == before && ::waitpid(-1, nullptr, WNOHANG) < 0;
  if (!clean) std::printf("FAIL descriptors or zombies are left\n");
  std::printf("%ld passed, %ld failed\n", passed + clean, failed + !clean);
  return failed || !clean;
}
