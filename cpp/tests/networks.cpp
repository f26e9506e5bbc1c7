// Sends messages through random networks, with checksums: no message may be lost, doubled or
// changed, and every network must close down by itself.
//
//   networks [--messages N] [--seconds S] [--seed X] [--values V] [--quiet]
// With few values (V, of all sources together; threads have a twentieth) there are many networks,
// which tests the ends of channels.
//
// A network has sources, layers of workers, and sinks. Between two layers there are some channels,
// each with writers before and readers behind it, some of them buffered. A worker reads from its
// inputs (plainly, or by choice in one of the modes, or by a standing alternative) and writes to
// its outputs (in turn, or by a choice of outputs). All workers of a network are local coroutines,
// or shared coroutines on one core or on two or three, or shared coroutines and threads. The sum of
// a hash of all values sent must equal the sum for all values received (the sum does not depend on
// order), and so must the count. A message counts once for every channel that it passes. The seed
// of a network that fails is printed; with the same seed, a network has the same shape.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "../explorer/progress.hpp"
#include "random.hpp"
#include "relay.hpp"

namespace {

using weft::test::Random;
using weft::test::Relay;
using weft::test::Value;
using weft::test::Wrong;

struct Tally {
  std::atomic<std::uint64_t> count{0}, sum{0};
  void add(std::uint64_t n, std::uint64_t s) noexcept {
    count += n;
    sum += s;
  }
};
struct Books {
  Tally sent, received;
  std::atomic<std::uint64_t> ended{0};  // guards that ended while a select used them
};

enum class Take { plain, fair, priority, random, standing, relay };

template <class P>
struct Ends {
  std::vector<weft::Reader<Value, P>> in;
  std::vector<weft::Writer<Value, P>> out;
  Take take = Take::plain;
  bool choose_output = false;
  bool loud = false;        // whether the worker selects with ends() on each input
  bool leaving = false;     // whether its outputs can end first; if it has outputs, it is a relay
  std::uint64_t stays = 0;  // a relay leaves after this number of values, if it is not 0
  std::uint64_t seed = 0;
};
template <class P>
using SomeInputs = decltype(weft::Alternative(std::vector<weft::Reader<Value, P>>{}));
template <class P>
using StandingInputs = decltype(weft::StandingAlternative(std::vector<weft::Reader<Value, P>>{}));

template <class P>
const weft::Writer<Value, P>& next_output(const Ends<P>& e, std::size_t& turn) {
  return e.out[turn++ % e.out.size()];
}

weft::Mode mode_of(Take t) {
  return t == Take::priority ? weft::Mode::priority
         : t == Take::random ? weft::Mode::random
                             : weft::Mode::fair;
}

template <class P>
weft::Process source(Ends<P> e, Books& books, std::uint64_t seed, long n) {
  Random random(seed);
  std::uint64_t sum = 0;
  std::size_t turn = 0;
  long i = 0;
  try {
    for (; i < n; ++i) {
      const Value v = random.next();
      if (e.choose_output && e.out.size() > 1)
        co_await weft::select(weft::out(e.out[0], v), weft::out(e.out[1], v));
      else
        co_await next_output(e, turn).write(v);
      sum += Random::mix(v);
    }
  } catch (const weft::Retired&) {
    if (!e.leaving) throw Wrong("a source's channel has ended though nobody leaves");
  }
  books.sent.add(static_cast<std::uint64_t>(i), sum);
}

// Called when the select of a merge has thrown Retired with this guard. Marks in `over` the inputs
// that must have ended then (rule 5.6), and checks that each of these inputs reports its end
// immediately.
template <class P>
weft::Process have_ended(const Ends<P>& e, int guard, std::vector<bool>& over) {
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (over[i] || (e.loud && static_cast<int>(i) != guard)) continue;
    bool ended = false;
    try {
      co_await weft::select(weft::Mode::priority, weft::in(e.in[i]).ends(), weft::skip());
    } catch (const weft::Retired&) {
      ended = true;
    }
    if (!ended) throw Wrong("a merge was told of an end that is none");
    over[i] = true;
  }
}

// A worker without outputs is a sink. A sink ends with the last of its inputs; the select of a loud
// sink throws Retired for each input that ends, and the sink switches the guard of that input off.
template <class P, class Inputs>
weft::Process choosing(Ends<P> e, Books& books, Inputs& inputs) {
  std::uint64_t count = 0, sum = 0;
  std::size_t turn = 0, left = e.in.size();
  std::vector<bool> over(left);
  if (e.loud) inputs.ends();
  while (left > 0) {
    int ended = -1;
    Value v = 0;
    try {
      auto chosen = co_await inputs.select();
      v = *chosen.value;
    } catch (const weft::Retired& r) {
      ended = r.guard;
    }
    if (ended >= 0) {
      if (over[static_cast<std::size_t>(ended)]) throw Wrong("a merge was told of one end twice");
      co_await have_ended(e, ended, over);
      left = static_cast<std::size_t>(std::count(over.begin(), over.end(), false));
      if (left > 0) inputs.enable(static_cast<std::uint32_t>(ended), false);
    } else if (e.out.empty()) {
      ++count;
      sum += Random::mix(v);
    } else if (e.choose_output && e.out.size() > 1) {
      co_await weft::select(weft::out(e.out[0], v), weft::out(e.out[1], v));
    } else {
      co_await next_output(e, turn).write(v);
    }
  }
  books.received.add(count, sum);
  books.ended += e.in.size();
}

template <class P>
void settle(const Relay<P>& r, Books& books) {
  books.received.add(r.kept(), r.kept_sum());
  books.ended += r.retired;
}
template <class P>
weft::Process worker(Ends<P> e, Books& books) {
  if (e.take == Take::relay) {
    Relay<P> relay(e.in, e.out, e.seed, e.stays);
    co_await weft::test::drive(relay);
    settle(relay, books);
  } else if (e.take == Take::standing) {
    StandingInputs<P> inputs(e.in);
    co_await choosing<P>(std::move(e), books, inputs);
  } else if (e.take != Take::plain) {
    SomeInputs<P> inputs(e.in, mode_of(e.take));
    co_await choosing<P>(std::move(e), books, inputs);
  } else {
    std::uint64_t count = 0, sum = 0;
    std::size_t turn = 0;
    for (auto& in : e.in) {
      while (auto v = co_await in.next()) {
        if (e.out.empty()) {
          ++count;
          sum += Random::mix(*v);
        } else if (e.choose_output && e.out.size() > 1) {
          co_await weft::select(weft::out(e.out[0], *v), weft::out(e.out[1], *v));
        } else {
          co_await next_output(e, turn).write(*v);
        }
      }
    }
    books.received.add(count, sum);
  }
}

// A relay on a thread.
struct ThreadWorker {
  Ends<weft::Shared> e;
  Books* books = nullptr;
  void operator()() {
    Relay<weft::Shared> relay(e.in, e.out, e.seed, e.stays);
    weft::test::drive_in_thread(relay);
    settle(relay, *books);
  }
};

// Chooses how a worker reads. A worker that may find its outputs ended is a relay.
template <class P>
void take_at_random(Ends<P>& e, Random& random) {
  // If a worker read one input to its end before the next, a cycle of merges could block forever.
  // Therefore a worker reads plainly only if it has one input.
  e.take = e.in.size() == 1 && random.below(2) == 0 ? Take::plain
                                                    : static_cast<Take>(1 + random.below(5));
  if (e.leaving && !e.out.empty()) e.take = Take::relay;
  e.loud = random.below(2) == 0;
  e.seed = random.next();
}

template <class P>
std::uint64_t network(std::uint64_t seed, unsigned cores, bool with_threads, long values,
                      Books& books) {
  Random random(seed);
  std::vector<weft::Process> all;
  using Thread = decltype(weft::thread(ThreadWorker{}));
  std::vector<Thread> threads;
  std::vector<weft::Channel<Value, P>> channels;
  const int layers = 2 + random.below(5);
  // Some sinks leave early; then nothing is buffered, because buffered values would be dropped.
  const bool leaving = random.below(3) == 0;
  // The layer whose outputs are being made.
  std::vector<Ends<P>> before(static_cast<std::size_t>(1 + random.below(4)));
  const std::size_t sources = before.size();
  for (int layer = 1; layer <= layers; ++layer) {
    std::vector<Ends<P>> here(static_cast<std::size_t>(1 + random.below(5)));
    const int between = 1 + random.below(6);
    for (int c = 0; c < between; ++c) {
      const int capacity = !leaving && random.below(3) == 0 ? 1 + random.below(20) : 0;
      weft::Channel<Value, P> channel{capacity ? weft::buffer(static_cast<std::uint32_t>(capacity))
                                               : weft::ChannelOptions{}};
      for (int k = 1 + random.below(2); k > 0; --k)
        before[static_cast<std::size_t>(random.below(static_cast<int>(before.size())))]
            .out.push_back(channel.writer());
      for (int k = 1 + random.below(2); k > 0; --k)
        here[static_cast<std::size_t>(random.below(static_cast<int>(here.size())))].in.push_back(
            channel.reader());
      channels.push_back(std::move(channel));
    }
    // Every worker needs an input, and every worker of the layer before needs an output. The
    // workers that lack an input or an output share the first channel of this layer.
    auto& shared = channels[channels.size() - static_cast<std::size_t>(between)];
    for (auto& e : before)
      if (e.out.empty()) e.out.push_back(shared.writer());
    for (auto& e : here)
      if (e.in.empty()) e.in.push_back(shared.reader());
    for (auto& e : before) {
      e.choose_output =
          random.below(3) == 0 && e.out.size() > 1 && e.out[0].core() != e.out[1].core();
      e.leaving = leaving;
      if (layer == 1) {
        all.push_back(
            source<P>(std::move(e), books, random.next(), values / static_cast<long>(sources)));
        continue;
      }
      take_at_random(e, random);
      if constexpr (P::shared) {
        if (with_threads && random.below(3) == 0) {
          threads.push_back(weft::thread(ThreadWorker{std::move(e), &books}));
          continue;
        }
      }
      all.push_back(worker<P>(std::move(e), books));
    }
    before = std::move(here);
  }
  for (auto& e : before) {
    take_at_random(e, random);
    if (leaving && random.below(2) == 0)
      e.take = Take::relay,
      e.stays = static_cast<std::uint64_t>(1 + random.below(static_cast<int>(values)));
    all.push_back(worker<P>(std::move(e), books));
  }
  const auto together = [](std::vector<weft::Process> ps) -> weft::Process {
    co_await weft::par(std::move(ps));
  };
  const auto on_threads = [](std::vector<Thread> ts) -> weft::Process {
    co_await weft::par(std::move(ts));
  };
  weft::run({.cores = cores}, together(std::move(all)), on_threads(std::move(threads)));
  std::uint64_t messages = 0;
  for (const auto& c : channels) messages += c.transfers();
  return messages;
}

std::uint64_t number(const char* text) {
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(text, &end, 0);
  if (end == text || *end != '\0') {
    std::fprintf(stderr, "networks: '%s' is not a number\n", text);
    std::exit(2);
  }
  return n;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t wanted = 1'000'000, seconds = 3600, seed = 1, values = 0;
  bool quiet = false;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--quiet")
      quiet = true;
    else if (a == "--messages" && i + 1 < argc)
      wanted = number(argv[++i]);
    else if (a == "--seconds" && i + 1 < argc)
      seconds = number(argv[++i]);
    else if (a == "--seed" && i + 1 < argc)
      seed = number(argv[++i]);
    else if (a == "--values" && i + 1 < argc)
      values = number(argv[++i]);
    else {
      std::fprintf(
          stderr,
          "usage: networks [--messages N] [--seconds S] [--seed X] [--values V] [--quiet]\n");
      return 2;
    }
  }
  using Steady = std::chrono::steady_clock;
  const auto start = Steady::now();
  auto said = start;
  std::uint64_t messages = 0, networks = 0, ended = 0;
  // The number of values that all sources of a network send together.
  const long base = values ? static_cast<long>(values) : wanted >= 10'000'000 ? 100'000 : 5'000;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  while (messages < wanted && Steady::now() - start < std::chrono::seconds(seconds)) {
    weft::progress::begin("networks");
    const std::uint64_t mine = Random::mix(seed + networks);
    Books books;
    const char* kind = "local";
    const auto several = static_cast<unsigned>(2 + mine % 2);
    try {
      switch (networks % 8) {
        case 7:
          kind = "threads";
          messages += network<weft::Shared>(mine, 1, true, base / 20, books);
          break;
        case 3:
          kind = "several cores and threads";
          messages += network<weft::Shared>(mine, several, true, base / 20, books);
          break;
        case 1:
        case 5:
          kind = "several cores";
          messages += network<weft::Shared>(mine, several, false, base, books);
          break;
        case 2:
          kind = "shared";
          messages += network<weft::Shared>(mine, 1, false, base, books);
          break;
        default: messages += network<weft::Local>(mine, 1, false, base, books);
      }
    } catch (const std::exception& e) {
      std::printf("network %llu (%s) failed: %s\nagain by --seed %llu\n",
                  static_cast<unsigned long long>(networks), kind, e.what(),
                  static_cast<unsigned long long>(seed));
      return 1;
    }
    if (books.sent.count != books.received.count || books.sent.sum != books.received.sum) {
      std::printf(
          "network %llu (%s): sent %llu, received %llu, checksums %s\nagain by --seed %llu\n",
          static_cast<unsigned long long>(networks), kind,
          static_cast<unsigned long long>(books.sent.count),
          static_cast<unsigned long long>(books.received.count),
          books.sent.sum == books.received.sum ? "agree" : "differ",
          static_cast<unsigned long long>(seed));
      return 1;
    }
    ++networks;
    ended += books.ended;
    if (!quiet && Steady::now() - said > std::chrono::seconds(5)) {
      said = Steady::now();
      std::fprintf(stderr, "%llu networks, %.1f million messages\n",
                   static_cast<unsigned long long>(networks), static_cast<double>(messages) / 1e6);
    }
  }
  std::printf("%llu networks, %llu messages, %llu guards ended in a select, all checksums agree\n",
              static_cast<unsigned long long>(networks), static_cast<unsigned long long>(messages),
              static_cast<unsigned long long>(ended));
  return networks > 0 ? 0 : 1;
}
