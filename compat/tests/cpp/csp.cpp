// <weft/compat/csp.hpp>: the listings of the C++CSP paper (8 to 27) as programs that end, and tests
// for faults that were found in csp.hpp.
#include "hosted.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <mutex>
#include <sstream>

#include <weft/compat/csp_plugnplay.hpp>

namespace {

using namespace csp;
using namespace csp::plugnplay;
using std::function;
using std::string;
using std::vector;
using namespace std::chrono_literals;

// The paper's listings loop forever. In these tests the last reader stops the other processes by
// poison.
template <class T>
using chan = one2one_chan<T, true>;

void first(chan_in<int, true> in, std::size_t n, vector<int>* into) {
  while (into->size() < n) into->push_back(in());
  in.poison(1);
}
const vector<int> naturals{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

// Each process forwards the poison that it meets, as C++CSP programs do.
template <class F, class... C>
auto forwarding(F f, C... c) {
  return [=] {
    try {
      f();
    } catch (const poison_exception& e) {
      (c.poison(e.get_strength()), ...);
      throw;
    }
  };
}

}  // namespace

TEST_CASE("csp, Listings 8, 9, 16: call operators; make_proc") {
  auto prefix = [](int value, chan_in<int, true> in, chan_out<int, true> out) {
    forwarding(
        [=] {
          out(value);
          while (true) out(in());
        },
        in, out)();
  };
  auto successor = [](chan_in<int, true> in, chan_out<int, true> out) {
    forwarding(
        [=] {
          while (true) {
            auto val = in();
            out(++val);
          }
        },
        in, out)();
  };
  auto delta = [](chan_in<int, true> in, vector<chan_out<int, true>> out) {
    forwarding(
        [=] {
          while (true) {
            auto value = in();
            par_for(out.begin(), out.end(), [&](chan_out<int, true> c) { c(value); });  // Listing 9
          }
        },
        in, out[0], out[1])();
  };
  chan<int> a, b, c, d;
  vector<int> got;
  par{make_proc(prefix, 0, c, a), make_proc(delta, a, vector<chan_out<int, true>>{b, d}),
      make_proc(successor, b, c), make_proc(first, d, std::size_t{10}, &got)}();
  CHECK(got == naturals);
}

TEST_CASE("csp, Listing 10: par_read and par_write over lists, vectors and ranges") {
  one2one_chan<int> a, b;
  vector<int> got;
  auto reader = [=, &got] {
    for (int v : par_read({b, a})) got.push_back(v);
  };
  par{[=] { par_write({a, b}, {1, 2}); }, reader}();
  vector<chan_in<int>> ins{a.in(), b.in()};
  par{[=] {
        vector<chan_out<int>> outs{a, b};
        par_write(outs, vector<int>{3, 4});
        par_write(outs.begin(), outs.end(), vector<int>{5, 6});
      },
      [&] {
        for (int v : par_read(ins)) got.push_back(v);
        for (int v : par_read<int>(ins.begin(), ins.end())) got.push_back(v);
      }}();
  CHECK(got == vector<int>{2, 1, 3, 4, 5, 6});
  vector<chan_out<int>> outs{a, b};
  CHECK_THROWS_AS(par_write(outs, vector<int>{1}), weft::BadUse);
}

TEST_CASE("csp, Listings 11 to 13, 28: a rendezvous; values copied, moved, mobile") {
  one2one_chan<vector<int>> c;
  one2one_chan<std::unique_ptr<string>> m;
  vector<int> kept{1, 2}, moved{3, 4};
  vector<vector<int>> got;
  string text;
  const int* where = moved.data();
  const int* arrived = nullptr;
  par{[&] {
        c(kept);
        c(std::move(moved));
        m(std::make_unique<string>("mobile"));
      },
      [&] {
        got.push_back(c());
        got.push_back(c());
        arrived = got[1].data();
        text = *m();
      }}();
  CHECK(kept == vector<int>{1, 2});
  CHECK(got == vector<vector<int>>{{1, 2}, {3, 4}});
  CHECK(arrived == where);  // the vector itself has moved; it was not copied
  CHECK(text == "mobile");
}

TEST_CASE("csp, Listings 14, 18: channels become ends; CommsTime of process objects") {
  class consumer : public process {
    chan_in<unsigned long long> in_;
    vector<unsigned long long>* got_;

   public:
    consumer(chan_in<unsigned long long> in, vector<unsigned long long>* got)
        : in_(in), got_(got) {}
    void run() override {
      for (int i = 0; i < 50; ++i) got_->push_back(in_());
    }
  };
  one2one_chan<unsigned long long> a, b, c, d;
  vector<unsigned long long> got;
  // The consumer ends and the other processes wait forever: Weft reports the deadlock, where
  // C++CSP hangs.
  const par network{csp::plugnplay::prefix<unsigned long long>(0, c, a),
                    csp::plugnplay::delta<unsigned long long>(a, {b, d}),
                    csp::plugnplay::successor<unsigned long long>(b, c), consumer(d, &got)};
  CHECK_THROWS_WITH_AS(par(network).run(), doctest::Contains("deadlock: 3 processes"),
                       weft::Deadlock);
  REQUIRE(got.size() == 50);
  for (unsigned i = 0; i < 50; ++i) CHECK(got[i] == i);
}

TEST_CASE("csp, Listing 21: a deadlock is told by the lines of the program, not of the library") {
  one2one_chan<int> a, b;
  const unsigned channels = __LINE__ - 1;
  any2one_chan<int> c;
  std::string text;
  unsigned processes = 0;
  try {
    processes = __LINE__ + 1;
    const par network{[=] { a(b()); }, [=] { b(a()); }, [=] { c(); }};
    par(network).run();
  } catch (const weft::Deadlock& e) {
    text = e.what();
  }
  const auto at = [](unsigned line) { return "csp.cpp:" + std::to_string(line); };
  CAPTURE(text);
  CHECK(text.find("read " + at(channels) + " at " + at(processes)) != std::string::npos);
  CHECK(text.find("read " + at(channels + 2) + " at " + at(processes)) != std::string::npos);
  CHECK(text.find("csp.hpp") == std::string::npos);

  const vector<int> three{1, 2, 3};
  const std::string here = at(__LINE__ + 1);
  const auto deadlocks = [&] { par_for(three.begin(), three.end(), [=](int) { c(); }); };
  CHECK_THROWS_WITH_AS(deadlocks(), doctest::Contains(here.c_str()), weft::Deadlock);
}

TEST_CASE("csp: a deadlock is told before a process that is declared noexcept ends the program") {
  // rules 10.1, 10.2
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], 2);
    signal(SIGABRT, SIG_DFL);
    one2one_chan<int> a, b;
    par{[=]() noexcept { a(b()); }, [=]() noexcept { b(a()); }}();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CAPTURE(text);
  CHECK(WIFSIGNALED(status));
  CHECK(text.find("deadlock: 2 processes are blocked") != std::string::npos);
  CHECK(text.find("knot:") != std::string::npos);
}

TEST_CASE("csp, Listing 15: a barrier; it can be used by several pars") {
  barrier bar(3);
  std::atomic<int> arrived{0};
  std::array<int, 3> seen{};
  auto worker = [&](int i) {
    for (int phase = 1; phase <= 20; ++phase) {
      ++arrived;
      bar();
      if (arrived.load() < 3 * phase) ++seen[static_cast<std::size_t>(i)];
      bar();
    }
  };
  par{[&] { worker(0); }, [&] { worker(1); }, [&] { worker(2); }}();
  CHECK(seen == std::array<int, 3>{0, 0, 0});
  CHECK(arrived == 60);
}

#define SEQ [=]()
TEST_CASE("csp, Listings 17, 21: CommsTime of lambdas that capture channels by copy") {
  chan<int> a, b, c, d;
  vector<int> got;
  par{forwarding(
          SEQ {
            a(0);
            while (true) a(c());
          },
          a.out(), c.in()),
      forwarding(
          SEQ {
            while (true) {
              auto value = a();
              par_write({b, d}, {value, value});
            }
          },
          a.in(), b.out(), d.out()),
      forwarding(
          SEQ {
            while (true) {
              auto value = b();
              c(++value);
            }
          },
          b.in(), c.out()),
      [=, &got] { first(d, 10, &got); }}();
  CHECK(got == naturals);
}

TEST_CASE("csp, Listing 19: alt, fair and with preconditions as a list; priority") {
  one2one_chan<int> a, b, c, d;
  alt fair{a.in(), b.in(), c.in(), d.in()};
  auto writer = [](one2one_chan<int> to, int v, int n) {
    return [=] {
      for (int i = 0; i < n; ++i) to(v);
    };
  };
  vector<int> order;
  par{writer(a, 0, 6), writer(b, 1, 6), writer(c, 2, 6), writer(d, 3, 6), [&] {
        auto all = std::array{a, b, c, d};
        for (int i = 0; i < 8; ++i) {
          const int k = fair({true, true, false, true});
          CHECK(k != 2);
          CHECK(all[static_cast<std::size_t>(k)]() == k);
        }
        for (int i = 0; i < 16; ++i) {
          const int k = fair();
          CHECK(all[static_cast<std::size_t>(k)]() == k);
          order.push_back(k);
        }
      }}();
  CHECK(std::count(order.begin(), order.end(), 2) == 6);
  one2one_chan<int> e, f;
  par{writer(e, 1, 2), writer(f, 2, 2), [&] {
        while (!e.in().pending() || !f.in().pending()) weft::yield()();
        alt a2{skip(), e.in(), f.in()};
        CHECK(a2.pri_select() == 0);
        CHECK(a2.pri_select({false, true, true}) == 1);
        // the guard was selected and not read, so it is still ready
        CHECK(a2.pri_select({false, true, true}) == 1);
        CHECK(e() == 1);
        CHECK(a2.pri_select(vector<bool>{false, false, true}) == 2);
        CHECK(f() == 2);
        CHECK_THROWS_AS(a2.pri_select({false, false, false}), weft::BadUse);
        CHECK_THROWS_WITH_AS(a2.pri_select({true}),
                             doctest::Contains("3 guards and 1 preconditions"), weft::BadUse);
        e(), f();
      }}();
}

TEST_CASE("csp, Listing 20: timer, and as a guard") {
  timer t;
  auto now = t();
  const auto future = now + 2ms;
  par{[&] {
    t(future);
    CHECK(t() >= future);
    t(1ms);
    CHECK(t() >= future + 1ms);
    one2one_chan<int> never;
    timer alarm;
    alarm += 1ms;
    CHECK(alarm.get_alarm() > t());
    alt a{never.in(), alarm};
    CHECK(a() == 1);
    CHECK(a() == 1);  // the time has passed, so the alarm is ready immediately
  }}();
}

TEST_CASE("csp, Listings 22 to 25: the dining philosophers, each eating three times") {
  constexpr int N = 5, meals = 3;
  any2one_chan<string, true> report;
  auto FORK = [=](alting_chan_in<int, true> left, alting_chan_in<int, true> right) {
    alt a{left, right};
    while (true) {
      switch (a()) {
        case 0: left(), left(); break;
        case 1: right(), right(); break;
      }
    }
  };
  auto PHIL = [=](int i, chan_out<int, true> left, chan_out<int, true> right,
                  chan_out<int, true> down, chan_out<int, true> up) {
    timer t;
    for (int meal = 0; meal < meals; ++meal) {
      t(std::chrono::microseconds(i));
      down(i);
      par_write({left, right}, {i, i});
      report(std::to_string(i) + " eating");
      par_write({left, right}, {i, i});
      up(i);
    }
  };
  auto SECURITY = [=](alting_chan_in<int, true> down, alting_chan_in<int, true> up) {
    alt a{down, up};
    int sitting = 0;
    while (true) {
      switch (a({sitting < N - 1, true})) {
        case 0:
          down();
          ++sitting;
          CHECK(sitting < N);
          break;
        case 1:
          up();
          --sitting;
          break;
      }
    }
  };
  one2one_chan<int, true> left[N], right[N];
  any2one_chan<int, true> down, up;
  vector<function<void()>> fork(N), phil(N);
  for (int i = 0; i < N; ++i)
    fork[static_cast<std::size_t>(i)] = make_proc(FORK, left[i].in(), right[(i + 1) % N].in());
  for (int i = 0; i < N; ++i)
    phil[static_cast<std::size_t>(i)] = make_proc(PHIL, i, left[i], right[i], down, up);
  int eaten = 0;
  par{[&] {
        par{phil}();
        for (auto& c : left) c.out().poison(1);
        for (auto& c : right) c.out().poison(1);
        down.out().poison(1);
        up.out().poison(1);
        report.out().poison(1);
      },
      par(fork), make_proc(SECURITY, down, up),
      [&] {
        for (;;) {
          report();
          ++eaten;
        }
      }}();
  CHECK(eaten == N * meals);
}

TEST_CASE("csp: choice, as the demo's philosophers use it") {
  one2one_chan<int> a, b;
  int from_a = 0, from_b = 0;
  par{[=] { a(1), a(2); }, [=] { b(3), b(4); },
      [&] {
        for (int i = 0; i < 4; ++i)
          choice{{a.in(), [&] { from_a += a(); }}, {b.in(), [&] { from_b += b(); }}}();
      }}();
  CHECK(from_a == 3);
  CHECK(from_b == 7);
  par{[=] { a(1); }, [=] { b(3); },
      [&] {
        choice{{a.in(), false, [&] { CHECK(false); }}, {b.in(), true, [&] { CHECK(b() == 3); }}}();
        a();
      }}();
}

TEST_CASE(
    "csp, Listing 26: workers into one any2one channel, a par of a vector in a par, run twice") {
  any2one_chan<double> c;
  vector<function<void()>> workers;
  auto work = [](chan_out<double> out, unsigned n) { out(1.0 / n); };
  for (int i = 0; i < 4; ++i) workers.push_back(make_proc(work, c, 4u));
  double sum = 0;
  auto calculate = [&sum](chan_in<double> in, unsigned n) {
    for (unsigned i = 0; i < n; ++i) sum += in();
  };
  for (int round = 0; round < 2; ++round) par{par(workers), make_proc(calculate, c, 4u)}();
  CHECK(sum == 2.0);
}

TEST_CASE("csp, Listing 27: producer, workers and consumer over one2any and any2one") {
  struct packet {
    int line = 0;
    vector<double> data;
  };
  one2any_chan<int> lines;
  any2one_chan<packet> data;
  constexpr int DIM = 16, WORKERS = 3;
  auto worker = [](chan_in<int> in, chan_out<packet> out) {
    for (int line = in(); line != -1; line = in()) {
      packet p;
      p.line = line;
      p.data.assign(DIM, line);
      out(std::move(p));
    }
  };
  vector<function<void()>> workers;
  for (int i = 0; i < WORKERS; ++i) workers.push_back(make_proc(worker, lines, data));
  vector<vector<double>> results(DIM);
  auto producer = [](chan_out<int> out) {
    for (int i = 0; i < DIM; ++i) out(i);
    for (int i = 0; i < WORKERS; ++i) out(-1);
  };
  auto consumer = [&results](chan_in<packet> in) {
    for (int i = 0; i < DIM; ++i) {
      auto p = in();
      results[static_cast<std::size_t>(p.line)] = std::move(p.data);
    }
  };
  par{make_proc(producer, lines), par(workers), make_proc(consumer, data)}();
  for (int i = 0; i < DIM; ++i)
    CHECK(results[static_cast<std::size_t>(i)] == vector<double>(DIM, i));
}

TEST_CASE(
    "csp, broken there: end_read ends the extended read, and the writer goes on then, not before") {
  one2one_chan<int> c;
  std::atomic<bool> written{false};
  par{[&] {
        c(1);
        written = true;
      },
      [&] {
        CHECK_THROWS_AS(c.in().end_read(), std::logic_error);
        CHECK(c.in().start_read() == 1);
        CHECK_THROWS_AS(c.in().start_read(), std::logic_error);
        for (int i = 0; i < 100; ++i) weft::yield()();
        CHECK_FALSE(written);
        c.in().end_read();
        CHECK_THROWS_AS(c.in().end_read(), std::logic_error);
      }}();
  CHECK(written);
}

TEST_CASE("csp, broken there: a poisoned writer gets an exception; strength and immunity") {
  one2one_chan<int, true> c, immune(5);
  unsigned writer = 0, reader = 0;
  par{[&] {
        try {
          c(1);
        } catch (const poison_exception& e) {
          writer = e.get_strength();
          immune.out().poison(3);  // the poison is weaker than the channel's immunity
          immune(7);
          immune.out().poison(9);
        }
      },
      [&] {
        while (!c.in().pending()) weft::yield()();
        c.in().poison(2);
        CHECK(immune() == 7);
        try {
          immune();
        } catch (const poison_exception& e) {
          reader = e.get_strength();
        }
      }}();
  CHECK(writer == 2);
  CHECK(reader == 9);
  // An alt selects a poisoned channel, and the read reports the poison.
  alt a{c.in()};
  CHECK(a() == 0);
  CHECK_THROWS_AS(c(), poison_exception);
}

TEST_CASE(
    "csp: buffers, alting barriers, ends over channels, an empty par, an exception out of par") {
  buffer<int> two(2);
  overwrite_oldest_buffer<int> newest(1);
  overwriting_buffer<int> first_and_last(2);
  one2one_chan<int> c(two), o(newest), f(first_and_last);
  par{[&] {
    c(1), c(2);  // no process reads yet
    CHECK(c() == 1);
    o(1), o(2), o(3);
    CHECK(o() == 3);
    f(1), f(2), f(3);
    CHECK(f() == 1);
    CHECK(f() == 3);
  }}();
  auto bars = alting_barrier::create(2);
  int met = 0;
  par{[&] { bars[0].sync(); },
      [&] {
        one2one_chan<int> never;
        alt a{never.in(), bars[1]};
        met = a();
      }}();
  CHECK(met == 1);
  one2one_chan<chan_out<int>> ends;
  int got = 0;
  par{[&] {
        one2one_chan<int> mine;
        ends(mine);
        got = mine();
      },
      [&] { ends()(42); }}();
  CHECK(got == 42);
  par{}();
  CHECK_THROWS_WITH_AS((par{[] { throw std::runtime_error("out"); }, [] {}}()), "out",
                       std::runtime_error);
}

TEST_CASE("csp: the plug-and-play classes") {
  one2one_chan<int> a, b, c, d, e, f, g;
  one2one_chan<multiplex_packet<int>> m;
  one2one_chan<chan_out<int>> config;
  std::ostringstream text;
  vector<int> got;
  // Two streams are added, doubled, and printed without the first value. In the end the network is
  // deadlocked, and reports the deadlock.
  const par network{[=] { a(1), a(2), a(3); },
                    [=] { b(10), b(20), b(30); },
                    csp::plugnplay::plus<int>(a, b, c),
                    mult<int>(2, c, d),
                    tail<int>(d, e),
                    printer<int>(e, "<", ">", text)};
  CHECK_THROWS_AS(par(network).run(), weft::Deadlock);
  CHECK(text.str() == "<44>\n<66>\n");
  one2one_chan<int> p, q, r, s;
  const par packets{[=] { p(1); }, [=] { q(2); }, multiplex<int>({p, q}, m),
                    demultiplex<int>(m, {r, s}),
                    [&] {
                      got = par_read({r, s});
                    }};
  CHECK_THROWS_AS(par(packets).run(), weft::Deadlock);
  CHECK(got == vector<int>{1, 2});
  const par dynamic{[=] { config(g), f(5); }, dynamic_delta<int>(f, config),
                    [&] { got.push_back(g()); }};
  CHECK_THROWS_AS(par(dynamic).run(), weft::Deadlock);
  CHECK(got.back() == 5);
}
