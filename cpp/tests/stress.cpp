// Runs the cases of the exploration with real threads, at random: choices with mixed guards, plain
// and extended reads, computed outputs, cancellations, time limits, poison, retirement, buffers of
// every policy, standing alternatives, foreign readers. The program is meant for ThreadSanitizer,
// AddressSanitizer and plain optimised builds. Every value is accounted for: for each channel, the
// values sent are the values received, dropped or left; no Item leaks or is destroyed twice; no
// party is left in a waiting queue.
//
//   stress [--seed N] [--operations N] [--threads N]     prints the seed; the same seed gives the same programs (not the same schedule)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../explorer/progress.hpp"
#include "foreigner.hpp"

namespace weft::test {
namespace {

struct Random {
  std::uint64_t state;
  std::uint64_t next() noexcept {  // splitmix64 (Steele, Lea, Flood 2014)
    std::uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::uint32_t n) noexcept { return static_cast<std::uint32_t>(next() % n); }
};

constexpr std::uint32_t kChannels = 4;

struct Totals {
  // How many values were sent and received.
  std::uint64_t sent[kChannels] = {}, received[kChannels] = {};
  std::uint64_t sent_sum[kChannels] = {}, received_sum[kChannels] = {};
  std::uint64_t operations = 0, cancelled = 0, timed_out = 0, ended = 0;
};

// One round: fresh channels, and every thread runs its program on these channels until its
// operations are used up.
struct Round {
  struct Line {
    std::unique_ptr<Buffered<Chan>> buffered;
    std::unique_ptr<Chan> plain;
    Chan* c = nullptr;
  };
  Line lines[kChannels];

  explicit Round(Random& r, unsigned threads) {
    for (Line& l : lines) {
      const std::uint32_t kind = r.below(6);
      if (kind < 3) {
        l.plain = std::make_unique<Chan>();
        l.c = l.plain.get();
      } else {
        static constexpr Overflow policies[] = {Overflow::block, Overflow::drop_oldest,
                                                Overflow::drop_newest};
        l.buffered = std::make_unique<Buffered<Chan>>(1 + r.below(4), policies[kind - 3]);
        l.c = &l.buffered->c;
      }
      l.c->first_reader();
      l.c->first_writer();
      for (unsigned t = 1; t < threads; ++t) l.c->another_reader(), l.c->another_writer();
    }
  }
};

class Player {
 public:
  Process me;
  Foreigner foreign;
  Totals t;

  void play(Round& round, std::uint64_t seed, std::uint64_t operations, bool foreigners,
            bool standing, bool poison, bool retire) {
    Random r{seed};
    foreign.computed = true;
    bool reads[kChannels], writes[kChannels];
    for (std::uint32_t i = 0; i < kChannels; ++i) reads[i] = writes[i] = true;
    for (std::uint64_t k = 0; k < operations; ++k) {
      ++t.operations;
      const std::uint32_t i = r.below(kChannels), j = (i + 1 + r.below(kChannels - 1)) % kChannels;
      Chan& c = *round.lines[i].c;
      Chan& d = *round.lines[j].c;
      const std::uint32_t v = 1 + r.below(1000);
      const std::uint32_t what = r.below(11);
      const bool needs_read = what != 1 && what != 3 && what < 9;
      if ((needs_read && !reads[i]) || ((what == 1 || what == 3) && !writes[i]) ||
          (what >= 4 && what <= 8 && (!reads[j] || !writes[j])))
        continue;
      switch (what) {
        case 0: got(i, me.read(c)); break;
        case 1: sent(i, me.write(c, v), v); break;
        case 2: {
          std::uint32_t x = 0;
          const Status s = me.extended(c, [&](std::uint32_t y) { x = y; });
          got(i, {s, x});
          break;
        }
        case 3: {
          const std::uint32_t w = r.below(8) ? v : 0;
          const Status s = me.compute(c, [&] { return w; });
          // At a buffer a computed value may find its channel ended; then the value counts as
          // dropped.
          if (w) sent(i, s, w);
          break;
        }
        case 4:
        case 5:
        case 6: {
          // Every select has an input and an output, in either order, and sometimes a limit.
          const bool flip = r.below(2) != 0;
          const std::uint32_t more = r.below(4);
          if (flip)
            me.in(c), me.out(d, v);
          else
            me.out(d, v), me.in(c);
          if (more == 1) me.timer(prim::now() + 20'000);
          if (more == 2) me.in(d);
          if (more == 3) me.skip();
          static constexpr Mode modes[] = {Mode::fair, Mode::priority, Mode::random};
          const Process::Chosen x = me.go(modes[r.below(3)], r.below(2), r.next());
          const int in = flip ? 0 : 1;
          if (x.index == in)
            got(i, {x.status, x.value});
          else if (x.index == 1 - in)
            sent(j, x.status, v);
          else if (x.index == 2 && more == 2)
            got(j, {x.status, x.value});
          else if (x.index < 0)
            ++t.cancelled;
          else
            ++t.timed_out;
          break;
        }
        case 7:
          if (standing) stand(i, c, j, d, v, r);
          break;
        case 8:
          if (foreigners) {
            if (r.below(2)) {
              got(i, foreign.read(c));
            } else {
              const Process::Chosen x = foreign.select(c, d, v);
              if (x.index == 0)
                got(i, {x.status, x.value});
              else if (x.index == 1)
                sent(j, x.status, v);
              else
                ++t.cancelled;
            }
          }
          break;
        case 9:
          if (poison && r.below(400) == 0) c.poison(1);
          // An end is closed early: other parties may still wait at the channel, or the channel may
          // end for them.
          if (retire && reads[i] && r.below(40) == 0) reads[i] = false, c.drop_reader();
          if (retire && writes[i] && r.below(40) == 0) writes[i] = false, c.drop_writer();
          break;
        case 10: among(round, reads, writes, v, r); break;
      }
    }
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      if (writes[i]) round.lines[i].c->drop_writer();
      if (reads[i]) round.lines[i].c->drop_reader();
    }
  }

 private:
  void stand(std::uint32_t i, Chan& c, std::uint32_t j, Chan& d, std::uint32_t v, Random& r) {
    const bool out_flat_first = r.below(2) != 0;
    me.in(c), me.out(d, v);
    if (out_flat_first) me.timer(prim::now() + 50'000);
    me.stand();
    for (int k = 0; k < 4; ++k) {
      const Process::Chosen x = me.next();
      if (x.index == 0)
        got(i, {x.status, x.value});
      else if (x.index == 1) {
        sent(j, x.status, v);
        if (x.status == Status::ok) me.refill(1, v);
      } else if (x.index == 2) {
        ++t.timed_out;
        break;
      } else {
        ++t.cancelled;
      }
    }
    me.unstand();
  }
  // Makes a select over any of the channels, at one end of each. Some guards are off, and some have
  // ends() (rule 5.6). The outcome can be checked afterwards: a channel that has ended stays ended.
  void among(Round& round, const bool* reads, const bool* writes, std::uint32_t v, Random& r) {
    struct {
      std::uint32_t channel;
      bool input, on, ends, over;
    } g[kChannels];
    std::uint32_t n = 0;
    bool on = false;
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      const bool input = r.below(2) != 0;
      if (!(input ? reads : writes)[i] || r.below(4) == 0) continue;
      g[n] = {i, input, r.below(5) != 0, r.below(4) == 0, false};
      on |= g[n++].on;
    }
    if (!on) return;
    for (std::uint32_t k = 0; k < n; ++k) {
      if (g[k].input)
        me.in(*round.lines[g[k].channel].c);
      else
        me.out(*round.lines[g[k].channel].c, v);
      me.guard(k).enabled = g[k].on;
      me.guard(k).ends = g[k].ends;
    }
    const bool timed = r.below(4) == 0;
    if (timed) me.timer(prim::now() + 20'000);
    static constexpr Mode modes[] = {Mode::fair, Mode::priority, Mode::random};
    const Process::Chosen x = me.go(modes[r.below(3)], n ? r.below(n) : 0, r.next());
    if (x.index < 0) {
      ++t.cancelled;
      return;
    }
    const auto at = static_cast<std::uint32_t>(x.index);
    if (at >= n) {
      ++t.timed_out;
      return;
    }
    if (!g[at].on) wrong("a guard that is off was chosen");
    if (x.status == Status::retired) {
      bool outputs = false, output_off = false, input_off = false, open_input = false, all = true;
      for (std::uint32_t k = 0; k < n; ++k) {
        Chan& c = *round.lines[g[k].channel].c;
        g[k].over = (g[k].input ? c.how_ended<core::Side::in>() : c.how_ended<core::Side::out>()) !=
                    Status::ok;
        outputs |= g[k].on && !g[k].input;
        output_off |= !g[k].on && !g[k].input && !g[k].over;
        input_off |= !g[k].on && g[k].input && !g[k].over;
        open_input |= g[k].on && g[k].input && !g[k].over;
      }
      for (std::uint32_t k = 0; k < n; ++k) all &= !g[k].on || g[k].input == outputs || g[k].over;
      if (!g[at].over) wrong("a select was told of an end that is none");
      if (!g[at].ends && (!all || g[at].input == outputs))
        wrong("a select was over though a guard that decides was open");
      if (!g[at].ends && outputs && output_off && open_input)
        wrong("a select was over though an output that is off held it open");
      if (!g[at].ends && timed && input_off)
        wrong("a select was over though an input that is off held it open");
    }
    if (g[at].input)
      got(g[at].channel, {x.status, x.value});
    else
      sent(g[at].channel, x.status, v);
  }
  [[noreturn]] static void wrong(const char* what) {
    std::fprintf(stderr, "stress: %s\n", what);
    std::abort();
  }
  void got(std::uint32_t i, Got g) {
    if (g.ok())
      ++t.received[i], t.received_sum[i] += g.value;
    else
      count(g.status);
  }
  void sent(std::uint32_t i, Status s, std::uint32_t v) {
    if (s == Status::ok)
      ++t.sent[i], t.sent_sum[i] += v;
    else
      count(s);
  }
  void count(Status s) {
    if (s == Status::cancelled)
      ++t.cancelled;
    else if (s != Status::died)
      ++t.ended;
  }
};

[[noreturn]] void wrong(const char* what, std::uint64_t seed, std::uint64_t round) {
  std::fprintf(stderr, "stress: %s (seed %llu, round %llu)\n", what,
               static_cast<unsigned long long>(seed), static_cast<unsigned long long>(round));
  std::abort();
}

int run(std::uint64_t seed, std::uint64_t operations, unsigned threads) {
  std::printf("stress: seed %llu, %u threads\n", static_cast<unsigned long long>(seed), threads);
  Random r{seed};
  Totals all;
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t round_number = 0;
  for (; all.operations < operations; ++round_number) {
    progress::begin("stress");
    Item::alive = 0;
    std::uint64_t dropped[kChannels] = {}, left[kChannels] = {}, left_sum[kChannels] = {};
    Totals sum;
    {
      Round round{r, threads};
      const bool foreigners = r.below(2) != 0, standing = r.below(2) != 0, poison = r.below(3) == 0,
                 retire = r.below(2) != 0;
      std::vector<std::unique_ptr<Player>> players;
      for (unsigned i = 0; i < threads; ++i) players.push_back(std::make_unique<Player>());
      std::vector<std::thread> running;
      std::atomic<unsigned> over{0};
      for (auto& p : players)
        running.emplace_back([&, player = p.get(), s = r.next()] {
          player->play(round, s, 500, foreigners, standing, poison, retire);
          ++over;
        });
      // No party may wait forever: each party is cancelled again and again, whether it waits or is
      // committing at that moment.
      for (std::uint64_t k = r.next(); over.load() < threads; ++k) {
        Player& p = *players[k % threads];
        p.me.cancel();
        if (foreigners) p.foreign.cancel();
        std::this_thread::yield();
      }
      for (std::thread& x : running) x.join();
      for (std::uint32_t i = 0; i < kChannels; ++i) {
        Round::Line& l = round.lines[i];
        if (!empty(*l.c)) wrong("somebody is left in a line", seed, round_number);
        if (l.buffered) {
          dropped[i] = l.buffered->ring.dropped;
          left[i] = l.buffered->ring.size;
          if (left[i] != 0) wrong("a buffer without ends still holds values", seed, round_number);
          if (l.buffered->ring.held || l.buffered->ring.reserved)
            wrong("a slot was not given back", seed, round_number);
        }
      }
      for (auto& p : players) {
        for (std::uint32_t i = 0; i < kChannels; ++i) {
          sum.sent[i] += p->t.sent[i], sum.received[i] += p->t.received[i];
          sum.sent_sum[i] += p->t.sent_sum[i], sum.received_sum[i] += p->t.received_sum[i];
        }
        all.operations += p->t.operations, all.cancelled += p->t.cancelled;
        all.timed_out += p->t.timed_out, all.ended += p->t.ended;
      }
    }
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      if (sum.sent[i] != sum.received[i] + dropped[i] + left[i])
        wrong("a value was lost or doubled", seed, round_number);
      if (dropped[i] == 0 && sum.sent_sum[i] != sum.received_sum[i] + left_sum[i])
        wrong("a value was changed", seed, round_number);
      all.sent[i] += sum.sent[i];
    }
    if (Item::alive != 0) wrong("a value leaked or was destroyed twice", seed, round_number);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::uint64_t sent = 0;
  for (const std::uint64_t n : all.sent) sent += n;
  std::printf(
      "stress: %llu operations in %llu rounds, %.1f s: %llu values sent, %llu cancelled, %llu "
      "timed out, %llu ended; all accounted for\n",
      static_cast<unsigned long long>(all.operations),
      static_cast<unsigned long long>(round_number), seconds, static_cast<unsigned long long>(sent),
      static_cast<unsigned long long>(all.cancelled),
      static_cast<unsigned long long>(all.timed_out), static_cast<unsigned long long>(all.ended));
  return 0;
}

}  // namespace
}  // namespace weft::test

int main(int argc, char** argv) {
  std::uint64_t seed = 20260101, operations = 100'000;
  unsigned threads = 4;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string a = argv[i];
    const std::uint64_t v = std::strtoull(argv[i + 1], nullptr, 0);
    if (a == "--seed")
      seed = v;
    else if (a == "--operations")
      operations = v;
    else if (a == "--threads")
      threads = static_cast<unsigned>(v);
    else {
      std::fprintf(
          stderr,
          "stress: unknown option %s; known: --seed --operations --threads, each with a number\n",
          a.c_str());
      return 2;
    }
  }
  if (threads < 2 || threads > 64 || operations == 0) {
    std::fprintf(stderr, "stress: --threads must be 2 to 64, --operations at least 1\n");
    return 2;
  }
  return weft::test::run(seed, operations, threads);
}
