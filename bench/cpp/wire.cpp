// Two or three programs, and channels between them over shared memory. Each program is an OS
// process, with one thread that works and the threads of the wire.
//
//   wire int MICROSECONDS SAMPLES PER        the other program answers after this much work; ns a
//                                            round trip beyond that work
//   wire relay SAMPLES PER                   the home is a third program; ns a round trip
//   wire choice|spanning SAMPLES PER         the read is a choice of two channels, at one home or
//                                            at two; ns a round trip
//   wire buffer CAPACITY SAMPLES PER         one way, through a buffer at the reader; ns an int
//   wire threads THREADS SAMPLES PER         that many threads of one program write to a channel of
//                                            another; ns a communication
//   wire copy|place SAMPLES PER              a megabyte one way, from the writer's array to the
//                                            reader's, or filled and summed in place; ns
//   wire alone SAMPLES PER                   the same as `place`, within one program; ns
//   wire idle SECONDS                        two programs that wait; ns of CPU of both
//
// Every value is checked by its reader.
#include <sys/resource.h>
#include <sys/wait.h>
#include <cstring>
#include <string>
#include <thread>

#include <weft/weft.hpp>
#include <weft/wire/large.hpp>
#include <weft/wire/shm.hpp>

#include "pin.hpp"

namespace {
namespace w = weft::wire;
using weft::Outside;
using weft::Reader;
using weft::Writer;

void work(long us) {
  const auto end = bench::Clock::now() + std::chrono::microseconds(us);
  while (us > 0 && bench::Clock::now() < end) {
  }
}
std::pair<int, int> pair() {
  int s[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0) bench::fail("no socket pair");
  return {s[0], s[1]};
}
// Runs F in a process of its own on a CPU of its own. Of this program's data, that process contains
// only the data that F holds.
template <class F>
pid_t start(const bench::Placement& place, std::size_t cpu, F&& f) {
  const pid_t p = ::fork();
  if (p != 0) return p;
  place.pin(cpu);
  try {
    f();
  } catch (const weft::ChannelEnd&) {
  }
  ::_exit(0);
}
void join(pid_t p) {
  int status = 0;
  if (::waitpid(p, &status, 0) != p || status != 0) bench::fail("the other program has failed");
}
template <class F>
void stretches(long samples, long per, F&& once, double less = 0) {
  bench::Sampler s(samples);
  int x = 0;
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) once(x++);
    if (k > 0) s.end(static_cast<double>(per), less);
  }
  s.print();
}

// How the other program reads. The home of the channel back is this program. The home of the
// channel to the other program is the other program with `plainly`, otherwise this program.
enum class Reads { plainly, from_afar, by_choice, by_spanning_choice };
void round_trips(const bench::Placement& place, Reads how, long us, long samples, long per) {
  const bool afar = how != Reads::plainly;
  const auto [here, there] = pair();
  const pid_t other = start(place, 1, [&, fd = there] {
    ::close(here);
    const auto space = w::Space::make("other");
    w::ShmLink link(space, fd);
    weft::Channel<int> to, never;
    if (afar) {
      auto in = link.reader<int>("there"), nothing = link.reader<int>("never");
      auto back = link.writer<int>("back");
      const Writer<int> keep = never.writer();
      const Reader<int> here_too = never.reader();
      while (how == Reads::from_afar) back(in() + 1);
      for (;;) {
        w::FarSelect s;
        if (how == Reads::by_choice)
          // both channels have their home in the first program, which commits
          s.in(in).in(nothing);
        else
          s.in(in).in(here_too);  // the channels have two homes
        s();
        back(s.value<int>() + 1);
      }
    }
    Reader<int> in = to.reader();
    link.give(to.writer(), "there");
    auto back = link.writer<int>("back");
    for (;;) {
      const int x = in();
      work(us);
      back(x + 1);
    }
  });
  ::close(there);
  place.pin(0);
  {
    const auto space = w::Space::make("first");
    w::ShmLink link(space, here);
    weft::Channel<int> back, to, never;
    Reader<int> in = back.reader();
    link.give(back.writer(), "back");
    const auto run = [&](auto& out) {
      const auto once = [&](int x) {
        out(x);
        if (in() != x + 1) bench::fail("a wrong answer");
      };
      stretches(samples, per, once, 1e3 * static_cast<double>(us));
    };
    if (afar) {
      Writer<int> out = to.writer(), keep = never.writer();
      link.give(to.reader(), "there");
      link.give(never.reader(), "never");
      run(out);
    } else {
      auto out = link.writer<int>("there");
      run(out);
    }
  }
  join(other);
}

void relay(const bench::Placement& place, long samples, long per) {
  const auto [a, at_a] = pair();
  const auto [b, at_b] = pair();
  const pid_t home = start(place, 0, [&, x = at_a, y = at_b] {
    ::close(a), ::close(b);
    const auto space = w::Space::make("home");
    w::ShmLink first(space, x), second(space, y);
    weft::Channel<int> there, back;
    first.give(there.writer(), "there");
    second.give(there.reader(), "there");
    second.give(back.writer(), "back");
    first.give(back.reader(), "back");
    first.wait();
  });
  const pid_t other = start(place, 1, [&, fd = b] {
    ::close(a), ::close(at_a), ::close(at_b);
    w::ShmLink link(w::Space::make("other"), fd);
    auto in = link.reader<int>("there");
    auto out = link.writer<int>("back");
    for (;;) out(in() + 1);
  });
  ::close(b), ::close(at_a), ::close(at_b);
  place.pin(0);
  {
    w::ShmLink link(w::Space::make("first"), a);
    auto out = link.writer<int>("there");
    auto in = link.reader<int>("back");
    stretches(samples, per, [&](int x) {
      out(x);
      if (in() != x + 1) bench::fail("a wrong answer");
    });
  }
  join(home);
  join(other);
}

// `writers` threads of the other program write. This program reads, and is the channel's home.
void one_way(const bench::Placement& place, long capacity, long writers, long samples, long per) {
  const auto [here, there] = pair();
  const pid_t other = start(place, 1, [&, fd = there] {
    ::close(here);
    w::ShmLink link(w::Space::make("other"), fd);
    const auto out = link.writer<int>("in");
    std::vector<std::thread> threads;
    for (long t = 0; t < writers; ++t)
      threads.emplace_back([&out, token = Outside()] {
        try {
          for (int x = 0;; ++x) out(x);
        } catch (const weft::ChannelEnd&) {
        }
      });
    for (std::thread& t : threads) t.join();
  });
  ::close(there);
  place.pin(0);
  {
    w::ShmLink link(w::Space::make("first"), here);
    weft::Channel<int> c{capacity ? weft::buffer(static_cast<std::size_t>(capacity))
                                  : weft::ChannelOptions{}};
    Reader<int> in = c.reader();
    link.give(c.writer(), "in", static_cast<std::uint64_t>(capacity));
    stretches(samples, per, [&](int x) {
      const int v = in();
      if (writers == 1 ? v != x : v < 0)
        bench::fail(
            ("read " + std::to_string(v) + ", and the next one written was " + std::to_string(x))
                .c_str());
    });
  }
  join(other);
}

// A megabyte of 64-bit numbers. Each call of fill() gives a different sum.
using Number = std::uint64_t;
constexpr std::size_t kNumbers = (1 << 20) / sizeof(Number);
void fill(std::span<Number> a, Number first) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = first + i;
}
Number sum(std::span<const Number> a) {
  Number s = 0;
  for (const Number n : a) s += n;
  return s;
}
constexpr Number sum_of(Number first) { return kNumbers * first + kNumbers * (kNumbers - 1) / 2; }

// Measures a megabyte. The other program writes without a pause; this program reads.
void megabyte(const bench::Placement& place, bool in_place, long samples, long per) {
  const auto [here, there] = pair();
  const pid_t other = start(place, 1, [&, fd = there] {
    ::close(here);
    w::ShmLink link(w::Space::make("other"), fd);
    auto out = link.writer<w::Large<Number>>("in");
    std::vector<Number> ours(kNumbers);
    for (Number first = 0;; ++first) {
      w::Large<Number> a(kNumbers);
      if (in_place) {
        fill(a.span(), first);
      } else {
        ours[kNumbers - 1] = first;
        std::memcpy(a.data(), ours.data(), kNumbers * sizeof(Number));
      }
      out(std::move(a));
    }
  });
  ::close(there);
  place.pin(0);
  {
    w::ShmLink link(w::Space::make("first"), here);
    weft::Channel<w::Large<Number>> c{weft::buffer(4)};
    Reader<w::Large<Number>> in = c.reader();
    link.give(c.writer(), "in", 4);
    std::vector<Number> ours(kNumbers);
    stretches(samples, per, [&](int x) {
      const auto first = static_cast<Number>(x);
      const w::Large<Number> a = in();
      if (!in_place) std::memcpy(ours.data(), a.data(), kNumbers * sizeof(Number));
      if (in_place ? sum(a.span()) != sum_of(first) : ours[kNumbers - 1] != first)
        bench::fail("a wrong value");
    });
  }
  join(other);
}
void alone(const bench::Placement& place, long samples, long per) {
  place.pin(0);
  std::vector<Number> a(kNumbers);
  stretches(samples, per, [&](int x) {
    fill(a, static_cast<Number>(x));
    if (sum(a) != sum_of(static_cast<Number>(x))) bench::fail("a wrong sum");
  });
}

double cpu_ns(int who) {
  rusage u;
  ::getrusage(who, &u);
  return 1e9 * static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e3 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
// Both programs wait in a read. A run of zero length measures the CPU time of starting the
// programs, which is subtracted.
void idle(const bench::Placement& place, long seconds) {
  const auto [here, there] = pair();
  int go[2];
  if (::pipe(go) != 0) bench::fail("no pipe");
  const pid_t other = start(place, 1, [&, fd = there] {
    ::close(here);
    w::ShmLink link(w::Space::make("other"), fd);
    auto in = link.reader<int>("there");
    in();
    const double before = cpu_ns(RUSAGE_SELF);
    in();
    const double spent = cpu_ns(RUSAGE_SELF) - before;
    if (::write(go[1], &spent, sizeof(spent)) != sizeof(spent)) bench::fail("no answer");
  });
  ::close(there);
  place.pin(0);
  {
    w::ShmLink link(w::Space::make("first"), here);
    weft::Channel<int> c;
    Writer<int> out = c.writer();
    link.give(c.reader(), "there");
    out(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const double before = cpu_ns(RUSAGE_SELF);
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    const double ours = cpu_ns(RUSAGE_SELF) - before;
    out(2);
    double theirs = 0;
    if (::read(go[0], &theirs, sizeof(theirs)) != sizeof(theirs)) bench::fail("no answer");
    std::printf("ns %.0f\n", ours + theirs);
  }
  join(other);
}
}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bench::Placement place;
  const auto arg = [&](int i) { return i < argc ? std::atol(argv[i]) : 0; };
  if (what == "int" && argc == 5)
    round_trips(place, Reads::plainly, arg(2), arg(3), arg(4));
  else if (what == "far" && argc == 4)
    round_trips(place, Reads::from_afar, 0, arg(2), arg(3));
  else if (what == "choice" && argc == 4)
    round_trips(place, Reads::by_choice, 0, arg(2), arg(3));
  else if (what == "spanning" && argc == 4)
    round_trips(place, Reads::by_spanning_choice, 0, arg(2), arg(3));
  else if (what == "relay" && argc == 4)
    relay(place, arg(2), arg(3));
  else if (what == "buffer" && argc == 5)
    one_way(place, arg(2), 1, arg(3), arg(4));
  else if (what == "threads" && argc == 5)
    one_way(place, 0, arg(2), arg(3), arg(4));
  else if ((what == "copy" || what == "place") && argc == 4)
    megabyte(place, what == "place", arg(2), arg(3));
  else if (what == "alone" && argc == 4)
    alone(place, arg(2), arg(3));
  else if (what == "idle" && argc == 3)
    idle(place, arg(2));
  else
    bench::fail(
        "usage: wire int US SAMPLES PER | far|choice|spanning SAMPLES PER | relay SAMPLES PER | "
        "buffer CAPACITY SAMPLES PER | "
        "threads N SAMPLES PER | copy|place|alone SAMPLES PER | "
        "idle SECONDS");
}
