// Measures, in isolation, each method by which a thread may wait before it sleeps
// (runtime/waiting.hpp): two threads hand a word back and forth, or a byte over a pair of sockets.
//
//   waiting WAY WORK BESIDE SAMPLES PER
//
// WAY: sleep (at once, on a futex), blind (spins for 20 us each time, whether or not that has
// helped), yield (GivingWay), brief (BriefWait), spin (SpinTime); over sockets poll (sleeps at
// once) and lookout (wire/lookout.hpp). prompt: sleep, by threads with a short slice
// (wire/prompt.hpp). WORK: the us of work before each answer. BESIDE: the number of other threads
// that compute on the CPU of the measuring thread. The program prints the ns that a round trip
// takes beyond the work.
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <thread>

#include <weft/runtime/waiting.hpp>
#include <weft/wire/lookout.hpp>
#include <weft/wire/prompt.hpp>

#include "pin.hpp"

namespace {
namespace prim = weft::prim;
namespace runtime = weft::runtime;

// A word that one thread sets and another waits for and clears. The thread that sets the word wakes
// the waiting thread only if the waiting thread sleeps.
struct Word {
  static constexpr std::uint32_t kNothing = 0, kHere = 1, kAsleep = 2;
  prim::atomic<std::uint32_t> word{kNothing};

  void set() {
    if (word.exchange(kHere, std::memory_order_seq_cst) == kAsleep) prim::unpark(word);
  }
  bool here() const { return word.load(std::memory_order_acquire) == kHere; }
  void clear() { word.store(kNothing, std::memory_order_relaxed); }
  void sleep() {
    std::uint32_t nothing = kNothing;
    if (!word.compare_exchange_strong(nothing, kAsleep, std::memory_order_seq_cst)) return;
    while (!here()) prim::park(word, kAsleep, prim::forever);
  }
};

// The methods of waiting. Each has wait(Word&), which returns when the word has been set.
struct Sleep {
  void wait(Word& w) { w.sleep(); }
};
struct Blind {
  void wait(Word& w) {
    for (const std::int64_t end = prim::now() + 20'000; prim::now() < end && !w.here();)
      prim::relax();
    w.sleep();
  }
};
struct Yield {
  runtime::GivingWay ways;
  void wait(Word& w) {
    if (!ways.worth_trying() || !ways.until([&] { return w.here(); })) w.sleep();
  }
};
struct Brief {
  runtime::BriefWait ways;
  void wait(Word& w) {
    if (w.here() || ways.until([&] { return w.here(); })) return;
    runtime::BriefWait::one_less();
    w.sleep();
    runtime::BriefWait::one_more();
  }
};
struct Spin {
  runtime::SpinTime time;
  void wait(Word& w) {
    const std::int64_t began = prim::now(), end = began + time.now();
    do {
      for (int i = 0; i < 16 && !w.here(); ++i) prim::relax();
    } while (!w.here() && prim::now() < end);
    if (w.here()) return time.came(prim::now() - began);
    time.in_vain();
    w.sleep();
    time.slept(prim::now() - began);
  }
};

// The two sides: a word for each direction, or a socket for each thread.
template <class Way>
class Words {
 public:
  void send(int to) { words_[to].set(); }
  void receive(int me, Way& way) {
    way.wait(words_[me]);
    words_[me].clear();
  }

 private:
  Word words_[2];
};
struct Poll {
  int poll(pollfd* fds, nfds_t n, int ms) { return ::poll(fds, n, ms); }
};
template <class Way>
class Sockets {
 public:
  Sockets() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd_) != 0) bench::fail("no sockets");
  }
  void send(int to) {
    const char byte = 1;
    if (::write(fd_[1 - to], &byte, 1) != 1) bench::fail("waiting: a byte was not written");
  }
  void receive(int me, Way& way) {
    pollfd p{fd_[me], POLLIN, 0};
    char byte = 0;
    if (way.poll(&p, 1, -1) != 1 || ::read(fd_[me], &byte, 1) != 1 || byte != 1)
      bench::fail("waiting: a byte was not read");
  }

 private:
  int fd_[2];
};

void work(long us) {
  const auto end = bench::Clock::now() + std::chrono::microseconds(us);
  while (us > 0 && bench::Clock::now() < end) {
  }
}

struct Amounts {
  long work, beside, samples, per;
};

template <class Way, template <class> class Line>
void measure(const Amounts& n, bool prompt) {
  const bench::Placement place;
  Line<Way> line;
  prim::atomic<bool> over{false};
  std::vector<std::thread> beside;
  for (long i = 0; i < n.beside; ++i)
    beside.emplace_back([&] {
      place.pin(0);
      while (!over.load(std::memory_order_relaxed)) prim::relax();
    });
  const auto begin = [&](std::size_t index) {
    place.pin(index);
    runtime::BriefWait::one_more();
    if (prompt) weft::wire::detail::be_prompt();
  };
  std::thread answers([&] {
    begin(1);
    Way way{};
    for (long i = 0; i < n.per * (n.samples + 1); ++i) {
      line.receive(1, way);
      work(n.work);
      line.send(0);
    }
  });
  std::thread asks([&] {
    begin(0);
    Way way{};
    bench::Sampler s(n.samples);
    for (long k = 0; k <= n.samples; ++k) {
      s.begin();
      for (long i = 0; i < n.per; ++i) {
        line.send(1);
        line.receive(0, way);
      }
      // stretch 0 warms up
      if (k > 0) s.end(static_cast<double>(n.per), static_cast<double>(n.work) * 1000.0);
    }
    s.print();
  });
  asks.join();
  answers.join();
  over.store(true, std::memory_order_relaxed);
  for (std::thread& t : beside) t.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) bench::fail("usage: waiting WAY WORK BESIDE SAMPLES PER");
  const std::string_view way = argv[1];
  const Amounts n{std::atol(argv[2]), std::atol(argv[3]), bench::number(argv[4]),
                  bench::number(argv[5])};
  if (way == "sleep" || way == "prompt")
    measure<Sleep, Words>(n, way == "prompt");
  else if (way == "blind")
    measure<Blind, Words>(n, false);
  else if (way == "yield")
    measure<Yield, Words>(n, false);
  else if (way == "brief")
    measure<Brief, Words>(n, false);
  else if (way == "spin")
    measure<Spin, Words>(n, false);
  else if (way == "poll")
    measure<Poll, Sockets>(n, false);
  else if (way == "lookout")
    measure<weft::wire::detail::Lookout, Sockets>(n, false);
  else
    bench::fail("waiting: there is no such way of waiting");
}
