// <weft/compat/csp.hpp>: the arguments of its call operators, the lines that its reports name, and
// twelve programs like C++CSP's twelve demos (CommsTime six ways, the philosophers, Mandelbrot
// three ways, Monte Carlo, StressedAlt). Unlike the demos, all of them end.
#include "hosted.hpp"

#include <any>
#include <functional>
#include <map>

#include <weft/compat/csp_plugnplay.hpp>

namespace {

using namespace csp;
using namespace csp::plugnplay;
using std::function;
using std::string;
using std::vector;

// Returns the values that arrive when `send` writes to a channel, and then to a writer end.
template <class T, class F>
vector<T> sent(F send) {
  one2one_chan<T> c;
  any2any_chan<T> d;
  vector<T> got;
  par{[=] {
        send(c);
        send(d.out());
      },
      [&] {
        got.push_back(c());
        got.push_back(d.in()());
      }}();
  return got;
}

struct Pair {
  const char* text;
  std::uint32_t n;
};
struct Nested {
  struct Empty {
  } empty;
  const char* text;
  std::uint32_t n;
};
struct ToAnything {
  template <class U>
  operator U() const {
    return U{7};
  }
};
struct OfAnything {
  string text;
  OfAnything(const char* t) : text(t) {}
  OfAnything(int) {}
};

// Returns the report of the deadlock in which f ends.
template <class F>
string report_of(F f) {
  try {
    f();
  } catch (const weft::Deadlock& e) {
    return e.what();
  }
  return "no deadlock";
}
string at(unsigned line) { return "csp_programs.cpp:" + std::to_string(line); }
bool no_header(const string& report) {
  for (const char* header :
       {"csp.hpp", "csp_choice.hpp", "blocks.hpp", "stl_", "unique_ptr", "functional", "std_"})
    if (report.find(header) != string::npos) return false;
  return true;
}

}  // namespace

TEST_CASE("csp: c(v) writes and c() reads, whatever v is") {
  CHECK(sent<string>([](const auto& c) { c("hello"); }) == vector<string>{"hello", "hello"});
  CHECK(sent<const char*>([](const auto& c) { c("text"); })[0] == string("text"));
  CHECK(sent<const char*>([](const auto& c) { c(nullptr); })[0] == nullptr);
  CHECK(sent<const char*>([](const auto& c) { c(0); })[1] == nullptr);
  CHECK(sent<unsigned long long>([](const auto& c) { c(0); })[0] == 0);
  CHECK(sent<int>([](const auto& c) { c({}); })[1] == 0);
  CHECK(sent<double>([](const auto& c) { c(0); })[0] == 0);
  CHECK(sent<bool>([](const auto& c) { c("true"); })[0]);
  CHECK(sent<void*>([](const auto& c) { c(0); })[0] == nullptr);
  CHECK(sent<Pair>([](const auto& c) { c({"x", 1}); })[1].n == 1);
  CHECK(sent<Pair>([](const auto& c) { c({0, 2}); })[0].n == 2);
  CHECK(sent<Pair>([](const auto& c) { c({}); })[0].n == 0);
  CHECK(sent<Nested>([](const auto& c) { c({{}, "x", 3}); })[0].n == 3);
  CHECK(sent<int>([](const auto& c) { c(ToAnything()); })[0] == 7);
  CHECK(std::any_cast<const char*>(sent<std::any>([](const auto& c) { c("x"); })[0]) ==
        string("x"));
  CHECK(sent<OfAnything>([](const auto& c) { c("x"); })[1].text == "x");
  CHECK(sent<OfAnything>([](const auto& c) { c(1); })[1].text.empty());
  CHECK(sent<std::optional<int>>([](const auto& c) { c(0); })[0] == 0);
  CHECK(!sent<std::optional<int>>([](const auto& c) { c({}); })[0]);
  CHECK(!sent<function<void()>>([](const auto& c) { c(nullptr); })[0]);
}

TEST_CASE("ChannelHandle: c(v) writes and c() reads, whatever v is") {
  weft::ChannelHandle<string> c;
  weft::ChannelHandle<unsigned long long> n;
  string text;
  unsigned long long number = 1;
  weft::par{[=] {
              c("hello");
              n(0);
            },
            [=, &text, &number] {
              text = c();
              number = n();
            }}();
  CHECK(text == "hello");
  CHECK(number == 0);
}

// Each check is on the very line that it expects in the report.
// clang-format off
TEST_CASE("csp: a deadlock is told by the program's lines, whatever was used") {  // rule 10.2
  one2one_chan<int> c;
  const unsigned made = __LINE__ - 1;
  const string read = "read " + at(made) + " at ";
  const auto names = [&](const string& report, const string& part) {
    CAPTURE(report);
    CAPTURE(part);
    CHECK(report.find(part) != string::npos);
    CHECK(no_header(report));
  };
  names(report_of([&] { par{[=] { c(); }}(); }), read + at(__LINE__));
  names(report_of([&] { par{[=] { c.in().read(); }}(); }), read + at(__LINE__));
  names(report_of([&] { par{[=] { c.in().start_read(); }}(); }), at(made) + " at " + at(__LINE__));
  names(report_of([&] { par{[=] { c(1); }}(); }), "write " + at(made) + " at " + at(__LINE__));
  names(report_of([&] { par{[=] { c.out().write(1); }}(); }), "write " + at(made) + " at " + at(__LINE__));
  const vector<function<void()>> list{[=] { c(); }};
  names(report_of([&] { (par(list))(); }), read + at(__LINE__ - 1));
  names(report_of([&] { par(list.begin(), list.end())(); }), read + at(__LINE__ - 2));
  const auto worker = [](chan_in<int> in) { in(); };
  names(report_of([&] { par{make_proc(worker, c)}(); }), read + at(__LINE__ - 1));
  struct Object : process {
    chan_in<int> in;
    explicit Object(chan_in<int> i) : in(std::move(i)) {}
    void run() override { in(); }
  };
  names(report_of([&] { par{Object(c)}(); }), read + at(__LINE__ - 2));
  names(report_of([&] { par{[=] { alt{c.in()}(); }}(); }), "select " + at(made) + " at " + at(__LINE__));
  names(report_of([&] { par{[=] { choice{{c.in(), [] {}}}(); }}(); }), "select " + at(made) + " at " + at(__LINE__));
  names(report_of([&] { par{[=] { par_read({c}); }}(); }), read + at(__LINE__));
  names(report_of([&] { par{[=] { par_write({c}, {1}); }}(); }), "write " + at(made) + " at " + at(__LINE__));
  barrier two(2);
  names(report_of([&] { par{[=] { two(); }}(); }), "sync " + at(__LINE__ - 1) + " at " + at(__LINE__));
  names(report_of([&] { par{[] { stop()(); }}(); }), "read 'stop' at " + at(__LINE__));
  names(report_of([&] { par{c}(); }), read + at(__LINE__));
}

TEST_CASE("csp: what a container or make_unique made is told by the line that first uses it") {
  // rule 10.2
  const auto names = [&](const string& report, const string& part) {
    CAPTURE(report);
    CAPTURE(part);
    CHECK(report.find(part) != string::npos);
    CHECK(no_header(report));
  };
  const auto worker = [](chan_in<int> in) { in(); };
  const unsigned used = __LINE__ - 1;
  vector<one2one_chan<int>> many(3);
  names(report_of([&] { par{make_proc(worker, many[0])}(); }), "read " + at(used) + " at " + at(used));
  names(report_of([&] { par{[&] { alt{many[1].in()}(); }}(); }), "select " + at(__LINE__));
  names(report_of([&] { par{[&] { par_write({many[2]}, {1}); }}(); }), "write " + at(__LINE__));
  const auto one = std::make_unique<any2one_chan<int>>();
  names(report_of([&] { par{[&] { (*one)(); }}(); }), "read " + at(__LINE__));
  std::map<int, one2any_chan<int>> byKey;
  names(report_of([&] { par{[&] { byKey[1](1); }}(); }), "write " + at(__LINE__));
}

// clang-format on

// --- the twelve programs -------------------------------------------------------------------------

namespace {

using number = unsigned long long;
constexpr number kLast = 20;

// A consumer that ends its network by poisoning its channel: the poison then ends the other
// processes.
struct consumer : process {
  chan_in<number, true> in;
  vector<number>* got;
  consumer(chan_in<number, true> i, vector<number>* into) noexcept : in(std::move(i)), got(into) {}
  void run() noexcept final {
    while (got->size() < kLast) got->push_back(in());
    in.poison(1);
  }
};
void prefix_f(number first, chan_in<number, true> in, chan_out<number, true> out) {
  try {
    out(first);
    while (true) out(in());
  } catch (const poison_exception&) {
    in.poison(1);
    out.poison(1);
  }
}
void successor_f(chan_in<number, true> in, chan_out<number, true> out) {
  try {
    while (true) {
      auto v = in();
      out(++v);
    }
  } catch (const poison_exception&) {
    in.poison(1);
    out.poison(1);
  }
}
template <bool SEQUENTIAL>
void delta_f(chan_in<number, true> in, vector<chan_out<number, true>> out) {
  try {
    while (true) {
      const auto v = in();
      if (SEQUENTIAL) {
        out[0](v);
        out[1](v);
      } else {
        par_for(out.begin(), out.end(), [&](chan_out<number, true> c) { c(v); });
      }
    }
  } catch (const poison_exception&) {
    in.poison(1);
    for (auto& o : out) o.poison(1);
  }
}
vector<number> first_numbers() {
  vector<number> r;
  for (number i = 0; i < kLast; ++i) r.push_back(i);
  return r;
}

// CommsTime with process objects. The plug-and-play classes accept only channels that cannot be
// poisoned, so the network ends by a deadlock once the consumer has ended.
template <bool SEQUENTIAL>
vector<number> commstime_of_objects() {
  one2one_chan<number> a, b, c, d;
  vector<number> got;
  struct reader : process {
    chan_in<number> in;
    vector<number>* into;
    reader(chan_in<number> i, vector<number>* g) noexcept : in(std::move(i)), into(g) {}
    void run() noexcept override final {
      while (into->size() < kLast) into->push_back(in());
    }
  };
  const auto network = [&] {
    par{prefix<number>(0, c, a), delta<number, SEQUENTIAL>(a, {b, d}), successor<number>(b, c),
        reader(d, &got)}();
  };
  CHECK_THROWS_AS(network(), weft::Deadlock);
  return got;
}
template <bool SEQUENTIAL>
vector<number> commstime_of_functions() {
  one2one_chan<number, true> a, b, c, d;
  vector<number> got;
  par{make_proc(prefix_f, 0, c, a),
      make_proc(delta_f<SEQUENTIAL>, a, vector<chan_out<number, true>>{b, d}),
      make_proc(successor_f, b, c), consumer(d, &got)}();
  return got;
}
template <bool SEQUENTIAL>
vector<number> commstime_of_lambdas() {
  one2one_chan<number> a, b, c, d;
  vector<number> got;
  par{[=] {
        a(0);
        for (number i = 1; i < kLast; ++i) a(c());
        c();
      },
      [=] {
        vector<chan_out<number>> out{b, d};
        for (number i = 0; i < kLast; ++i) {
          auto value = a();
          if (SEQUENTIAL) {
            b(value);
            d(value);
          } else {
            par_for(out.begin(), out.end(), [&](chan_out<number> c) { c(value); });
          }
        }
      },
      [=] {
        for (number i = 0; i < kLast; ++i) {
          auto value = b();
          c(++value);
        }
      },
      [=, &got] {
        for (number i = 0; i < kLast; ++i) got.push_back(d());
      }}();
  return got;
}

struct line_packet {
  int line = 0;
  vector<int> data;
};
const line_packet& packet_of(const line_packet& p) { return p; }
const line_packet& packet_of(const std::unique_ptr<line_packet>& p) { return *p; }

// Workers compute the lines of a picture, and send each line as a P.
template <class P, class Make>
int picture(Make make) {
  constexpr int lines = 12, workers = 2;
  one2any_chan<int> work;
  any2one_chan<P> data;
  int sum = 0;
  auto worker = [make](chan_in<int> in, chan_out<P> out) noexcept {
    for (int line = in(); line != -1; line = in()) make(out, line);
  };
  auto producer = [](chan_out<int> out, int count, int ends) noexcept {
    for (int i = 0; i < count; ++i) out(i);
    for (int i = 0; i < ends; ++i) out(-1);
  };
  auto reader = [&sum](chan_in<P> in, int count) noexcept {
    for (int i = 0; i < count; ++i) {
      auto p = in();
      for (int v : packet_of(p).data) sum += v;
    }
  };
  vector<function<void()>> crew;
  for (int i = 0; i < workers; ++i) crew.push_back(make_proc(worker, work, data));
  par{make_proc(producer, work, lines, workers), par(crew), make_proc(reader, data, lines)}();
  return sum;
}
line_packet packet(int line) { return {line, vector<int>(4, line)}; }

struct stressed_packet {
  unsigned writer;
  unsigned n;
};

}  // namespace

TEST_CASE("csp programs 1 to 6: CommsTime of objects, of functions, of lambdas") {
  CHECK(commstime_of_objects<false>() == first_numbers());
  CHECK(commstime_of_objects<true>() == first_numbers());
  CHECK(commstime_of_functions<false>() == first_numbers());
  CHECK(commstime_of_functions<true>() == first_numbers());
  CHECK(commstime_of_lambdas<false>() == first_numbers());
  CHECK(commstime_of_lambdas<true>() == first_numbers());
}

TEST_CASE("csp program 7: philosophers of lambdas, who report by texts") {
  constexpr int N = 3;
  any2one_chan<string> report;
  auto FORK = [](alting_chan_in<int> left, alting_chan_in<int> right) {
    for (int meals = 0; meals < 2; ++meals)
      choice{{left,
              [=] {
                left();
                left();
              }},
             {right, [=] {
                right();
                right();
              }}}();
  };
  auto PHIL = [=](int i, chan_out<int> left, chan_out<int> right, chan_out<int> down,
                  chan_out<int> up) {
    timer t;
    report("thinking");
    t(std::chrono::nanoseconds(i));
    down(i);
    par_write({left, right}, {i, i});
    report(std::to_string(i) + " eating");
    par_write({left, right}, {i, i});
    up(i);
  };
  auto SECURITY = [](alting_chan_in<int> down, alting_chan_in<int> up) {
    int sitting = 0;
    for (int i = 0; i < 2 * N; ++i)
      choice{{down, sitting < N - 1,
              [&] {
                down();
                ++sitting;
              }},
             {up, true, [&] {
                up();
                --sitting;
              }}}();
  };
  one2one_chan<int> left[N], right[N];
  any2one_chan<int> down, up;
  vector<function<void()>> forks(N), philosophers(N);
  for (int i = 0; i < N; ++i) {
    forks[i] = make_proc(FORK, left[i], right[(i + 1) % N]);
    philosophers[i] = make_proc(PHIL, i, left[i], right[i], down, up);
  }
  vector<string> said;
  par{par(philosophers), par(forks), make_proc(SECURITY, down, up), [=, &said] {
        for (int i = 0; i < 2 * N; ++i) said.push_back(report());
      }}();
  std::sort(said.begin(), said.end());
  CHECK(said ==
        vector<string>{"0 eating", "1 eating", "2 eating", "thinking", "thinking", "thinking"});
}

TEST_CASE("csp programs 8 to 10: lines of a picture, copied, moved, mobile") {
  CHECK(picture<line_packet>([](const auto& out, int line) {
          auto p = packet(line);
          out(p);
        }) == 264);
  CHECK(picture<line_packet>([](const auto& out, int line) {
          auto p = packet(line);
          out(std::move(p));
        }) == 264);
  CHECK(picture<std::unique_ptr<line_packet>>([](const auto& out, int line) {
          out(std::make_unique<line_packet>(packet(line)));
        }) == 264);
}

TEST_CASE("csp program 11: workers that send one number each, in a par that runs again") {
  any2one_chan<double> chan;
  const auto work = [](chan_out<double> out, unsigned n) noexcept { out(n / 2.0); };
  double sum = 0;
  const auto calculate = [&sum](chan_in<double> in, unsigned n) noexcept {
    for (unsigned i = 0; i < n; ++i) sum += in();
  };
  vector<function<void()>> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(make_proc(work, chan, 5u));
  for (int i = 0; i < 2; ++i) par{par(workers), make_proc(calculate, chan, 3u)}();
  CHECK(sum == 15);
}

TEST_CASE("csp program 12: several writers of each channel, one alt over all") {
  constexpr unsigned channels = 3, writers = 2, rounds = 4;
  const auto writer = [](chan_out<stressed_packet> out, unsigned me) {
    for (unsigned n = 0; n < rounds; ++n) out({me, n});
  };
  unsigned got = 0, sum = 0;
  const auto reader = [&](vector<alting_chan_in<stressed_packet>> c, unsigned total) {
    alt a(vector<guard>(c.begin(), c.end()));
    for (; got < total; ++got) {
      const auto i = static_cast<std::size_t>(a());
      sum += c[i]().n;
    }
  };
  vector<any2one_chan<stressed_packet>> c(channels);
  vector<function<void()>> all;
  for (unsigned i = 0; i < channels; ++i)
    for (unsigned j = 0; j < writers; ++j) all.push_back(make_proc(writer, c[i], j));
  par{par(all), make_proc(reader, vector<alting_chan_in<stressed_packet>>(c.begin(), c.end()),
                          channels * writers * rounds)}();
  CHECK(got == 24);
  CHECK(sum == 36);
}
