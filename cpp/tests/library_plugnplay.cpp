// Compares the plug-and-play processes with their stream equations: over random streams and
// channels, as coroutines on local and shared channels and on threads. The seed of each case is
// printed when it fails. library_plugnplay_ends.cpp tests how they end.
#include "plugnplay.hpp"

#include <algorithm>
#include <map>
#include <sstream>

using namespace test;
namespace pnp = weft::plugnplay;

namespace {

// Returns the stream that a process with one input makes of the stream `input`.
template <class Form, class U = int, class Make>
std::vector<U> through(Random& random, const Ints& input, Make make) {
  using P = typename Form::P;
  weft::Channel<int, P> a{random.options()};
  weft::Channel<U, P> b{random.options()};
  std::vector<U> output;
  weft::par{feed(a.writer(), input), Form::as(make(a, b)), gather(b.reader(), &output)}();
  return output;
}
template <class Form, class Make>
Ints through2(Random& random, const Ints& x, const Ints& y, Make make) {
  using P = typename Form::P;
  weft::Channel<int, P> a{random.options()}, b{random.options()}, c{random.options()};
  Ints output;
  weft::par{feed(a.writer(), x), feed(b.writer(), y), Form::as(make(a, b, c)),
            gather(c.reader(), &output)}();
  return output;
}
template <class F>
Ints mapped(const Ints& in, F f) {
  Ints r;
  for (int x : in) r.push_back(f(x));
  return r;
}
template <class F>
Ints zipped(const Ints& x, const Ints& y, F f) {
  Ints r;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) r.push_back(f(x[i], y[i]));
  return r;
}
template <class F>
void cases(int n, F f) {
  for (unsigned seed = 1; seed <= static_cast<unsigned>(n); ++seed) {
    CAPTURE(seed);
    Random random(seed);
    f(random);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("plug and play: each output of one input", Form, FORMS) {
  cases(6, [](Random& r) {
    const Ints in = r.stream();
    CHECK(through<Form>(r, in, [](auto a, auto b) { return pnp::identity<int>(a, b); }) == in);
    CHECK(through<Form>(r, in, [](auto a, auto b) { return pnp::successor<int>(a, b); }) ==
          mapped(in, [](int x) { return x + 1; }));
    const int n = r.below(9) - 4;
    CHECK(through<Form>(r, in, [n](auto a, auto b) { return pnp::mult<int>(n, a, b); }) ==
          mapped(in, [n](int x) { return n * x; }));
    CHECK(through<Form>(r, in, [n](auto a, auto b) { return pnp::substitute<int>(a, b, n); }) ==
          mapped(in, [n](int) { return n; }));
    CHECK(through<Form>(r, in, [](auto a, auto b) {
            return pnp::transform(a, b, [](int x) { return x * x; });
          }) == mapped(in, [](int x) { return x * x; }));
    const auto signs =
        through<Form, std::string>(r, in, [](auto a, auto b) { return pnp::sign(a, b, "= "); });
    REQUIRE(signs.size() == in.size());
    for (std::size_t i = 0; i < in.size(); ++i) CHECK(signs[i] == "= " + std::to_string(in[i]));
  });
}

TEST_CASE_TEMPLATE("plug and play: shifted streams", Form, FORMS) {
  cases(6, [](Random& r) {
    const Ints in = r.stream();
    Ints prefixed{7};
    prefixed.insert(prefixed.end(), in.begin(), in.end());
    CHECK(through<Form>(r, in, [](auto a, auto b) { return pnp::prefix<int>(7, a, b); }) ==
          prefixed);
    CHECK(through<Form>(r, in, [](auto a, auto b) { return pnp::tail<int>(a, b); }) ==
          (in.empty() ? Ints() : Ints(in.begin() + 1, in.end())));
    Ints sums;
    for (std::size_t i = 1; i < in.size(); ++i) sums.push_back(in[i - 1] + in[i]);
    CHECK(through<Form>(r, in, [](auto a, auto b) { return pnp::pairs<int>(a, b); }) == sums);
  });
}

TEST_CASE_TEMPLATE("plug and play: each output of two inputs; it ends with the shorter", Form,
                   FORMS) {
  cases(5, [](Random& r) {
    const Ints x = r.stream(), y = r.stream();
    const auto check = [&](auto make, auto f) {
      CHECK(through2<Form>(r, x, y, make) == zipped(x, y, f));
    };
    check([](auto a, auto b, auto c) { return pnp::plus<int>(a, b, c); },
          [](int p, int q) { return p + q; });
    check([](auto a, auto b, auto c) { return pnp::times<int>(a, b, c); },
          [](int p, int q) { return p * q; });
    check([](auto a, auto b, auto c) { return pnp::and_<int>(a, b, c); },
          [](int p, int q) { return p & q; });
    check([](auto a, auto b, auto c) { return pnp::or_<int>(a, b, c); },
          [](int p, int q) { return p | q; });
    check([](auto a, auto b, auto c) { return pnp::xor_<int>(a, b, c); },
          [](int p, int q) { return p ^ q; });
    check([](auto a, auto b, auto c) { return pnp::nand<int>(a, b, c); },
          [](int p, int q) { return ~(p & q); });
    check([](auto a, auto b, auto c) { return pnp::nor<int>(a, b, c); },
          [](int p, int q) { return ~(p | q); });
  });
}

TEST_CASE("plug and play: the gates of bool") {
  for (int i = 0; i < 4; ++i) {
    const bool x = i & 1, y = i & 2;
    weft::Channel<bool> a, b, c, d;
    std::vector<bool> nands, nors;
    auto one = [](weft::Writer<bool> w, bool v) -> Process { co_await w.write(v); };
    auto get = [](weft::Reader<bool> in, std::vector<bool>* into) -> Process {
      into->push_back(co_await in.read());
    };
    weft::run(one(a, x), one(b, y), pnp::nand<bool>(a, b, c), get(c, &nands));
    weft::Channel<bool> e, f;
    weft::run(one(e, x), one(f, y), pnp::nor<bool>(e, f, d), get(d, &nors));
    CHECK(nands.at(0) == !(x && y));
    CHECK(nors.at(0) == !(x || y));
  }
}

TEST_CASE_TEMPLATE("plug and play: sources, and their end when the reader has gone", Form, FORMS) {
  using P = typename Form::P;
  weft::Channel<int, P> a, b;
  Ints counted, same;
  weft::par{Form::as(pnp::numbers<int>(a)), gather(a.reader(), &counted, 5),
            Form::as(pnp::generate<int>(b, 9)), gather(b.reader(), &same, 20)}();
  CHECK(counted == Ints{0, 1, 2, 3, 4});
  CHECK(same == Ints(20, 9));
  weft::Channel<int, P> c;
  weft::par{feed(c.writer(), counted), Form::as(pnp::black_hole<int>(c))}();
  CHECK(c.transfers() == 5);
}

TEST_CASE_TEMPLATE("plug and play: printer", Form, FORMS) {
  weft::Channel<int, typename Form::P> c;
  std::ostringstream text;
  weft::run(feed(c.writer(), Ints{1, 2}), Form::as(pnp::printer<int>(c, "<", ">", text)));
  CHECK(text.str() == "<1><2>");
}

TEST_CASE_TEMPLATE("plug and play: merge is the union of ascending streams", Form, FORMS) {
  using P = typename Form::P;
  cases(8, [](Random& r) {
    std::vector<weft::Channel<int, P>> ins;
    std::vector<Process> feeders;
    std::map<int, int> all;
    const int n = 1 + r.below(4);
    for (int i = 0; i < n; ++i) {
      std::map<int, int> ascending;
      for (int x : r.stream(15, 40)) ascending[x] = 1;
      Ints values;
      for (auto [x, one] : ascending) values.push_back(x), all[x] = 1;
      ins.emplace_back(r.options());
      feeders.push_back(feed(ins.back().writer(), values));
    }
    Ints expected, output;
    for (auto [x, one] : all) expected.push_back(x);
    weft::Channel<int, P> out{r.options()};
    weft::par{weft::par{std::move(feeders)}, Form::as(pnp::merge<int>(ins, out)),
              gather(out.reader(), &output)}();
    CHECK(output == expected);
  });
}

TEST_CASE_TEMPLATE("plug and play: delta copies to all; an output that has gone ends it", Form,
                   FORMS) {
  using P = typename Form::P;
  cases(6, [](Random& r) {
    const Ints in = r.stream();
    weft::Channel<int, P> a{r.options()}, b{r.options()}, c{r.options()}, d{r.options()},
        e{r.options()};
    Ints p, q, s, t;
    weft::par{feed(a.writer(), in),   Form::as(pnp::delta<int>(a, {b, c})),
              gather(b.reader(), &p), Form::as(pnp::sequential_delta<int>(c, {d, e})),
              gather(d.reader(), &q), gather(e.reader(), &s)}();
    CHECK(p == in);
    CHECK(q == in);
    CHECK(s == in);
    weft::Channel<int, P> f, g, h;
    weft::par{feed(f.writer(), Ints{1, 2, 3, 4}), Form::as(pnp::delta<int>(f, {g, h})),
              gather(g.reader(), &t, 2), Form::as(pnp::black_hole<int>(h))}();
    CHECK(t == Ints{1, 2});
  });
}

TEST_CASE_TEMPLATE("plug and play: dynamic_delta adds and takes out outputs; news go before input",
                   Form, FORMS) {
  using P = typename Form::P;
  using End = weft::Writer<int, P>;
  weft::Channel<int, P> in, b;
  weft::Channel<End, P> config;
  Ints got_b, got_c;
  auto driver = [](End w, weft::Writer<End, P> conf, weft::Channel<int, P> to) -> Process {
    co_await w.write(1);  // Only b gets the value 1.
    co_await conf.write(to.writer());
    co_await w.write(2);
    co_await conf.write(to.writer());  // The delta drops a writer that it knows already; c retires.
    conf.retire();
    co_await w.write(3);
  };
  weft::Channel<int, P> c;
  weft::run(driver(in.writer(), config.writer(), c),
            Form::as(pnp::dynamic_delta<int>(in, config, {b})), gather(b.reader(), &got_b),
            gather(c.reader(), &got_c));
  CHECK(got_b == Ints{1, 2, 3});
  CHECK(got_c == Ints{2});
}

TEST_CASE_TEMPLATE(
    "plug and play: news of dynamic_delta that are there go before input that is there", Form,
    FORMS) {
  using P = typename Form::P;
  using End = weft::Writer<int, P>;
  for (int round = 0; round < 8; ++round) {
    weft::Channel<int, P> in{weft::buffer(3)}, b, c;
    weft::Channel<End, P> config{weft::buffer(1)};
    auto tell = [](weft::Writer<End, P> to, weft::Channel<int, P> of) -> Process {
      co_await to.write(of.writer());
    };
    Ints got_b, got_c;
    weft::run(feed(in.writer(), Ints{1, 2, 3}), tell(config.writer(), c));
    weft::run(Form::as(pnp::dynamic_delta<int>(in, config, {b})), gather(b.reader(), &got_b),
              gather(c.reader(), &got_c));
    CHECK(got_b == Ints{1, 2, 3});
    CHECK(got_c == Ints{1, 2, 3});
  }
}

TEST_CASE_TEMPLATE("plug and play: sequential_delta serves its outputs in order; plex is fair",
                   Form, FORMS) {
  using P = typename Form::P;
  weft::Channel<int, P> a, b, c;
  Ints got;
  auto in_turn = [](weft::Reader<int, P> x, weft::Reader<int, P> y, Ints* into) -> Process {
    for (int i = 0; i < 2; ++i) {
      into->push_back(co_await x.read());
      into->push_back(co_await y.read());
    }
  };
  weft::par{feed(a.writer(), Ints{1, 2}), Form::as(pnp::sequential_delta<int>(a, {b, c})),
            in_turn(b.reader(), c.reader(), &got)}();
  CHECK(got == Ints{1, 1, 2, 2});
  // The buffers are full when the process begins. With two guards that are always ready, each guard
  // is chosen once in every two selects (rule 5.4).
  weft::Channel<int, P> d{weft::buffer(8)}, e{weft::buffer(8)}, f;
  Ints merged;
  weft::par{feed(d.writer(), Ints(8, 1)), feed(e.writer(), Ints(8, 2))}();
  weft::par{Form::as(pnp::plex<int>({d, e}, f)), gather(f.reader(), &merged)}();
  REQUIRE(merged.size() == 16);
  for (std::size_t i = 0; i + 2 < 16; ++i)
    CHECK((merged[i] != merged[i + 1] || merged[i] != merged[i + 2]));
}

TEST_CASE_TEMPLATE(
    "plug and play: multiplex and demultiplex, plex: nothing lost, each input in order", Form,
    FORMS) {
  using P = typename Form::P;
  cases(5, [](Random& r) {
    const Ints x = r.stream(), y = r.stream(), z = r.stream();
    weft::Channel<int, P> a{r.options()}, b{r.options()}, c{r.options()}, d, e, f;
    weft::Channel<pnp::Packet<int>, P> m{r.options()};
    Ints p, q, s;
    weft::par{feed(a.writer(), x),
              feed(b.writer(), y),
              feed(c.writer(), z),
              Form::as(pnp::multiplex<int>({a, b, c}, m)),
              Form::as(pnp::demultiplex<int>(m, {d, e, f})),
              gather(d.reader(), &p),
              gather(e.reader(), &q),
              gather(f.reader(), &s)}();
    CHECK(p == x);
    CHECK(q == y);
    CHECK(s == z);
    weft::Channel<int, P> g, h, o;
    Ints mixed;
    weft::par{feed(g.writer(), x), feed(h.writer(), y), Form::as(pnp::plex<int>({g, h}, o)),
              gather(o.reader(), &mixed)}();
    Ints all = x;
    all.insert(all.end(), y.begin(), y.end());
    std::sort(all.begin(), all.end());
    std::sort(mixed.begin(), mixed.end());
    CHECK(mixed == all);
  });
}

TEST_CASE("plug and play: a packet without an output, a vector of another length, an empty list") {
  weft::Channel<pnp::Packet<int>> m;
  weft::Channel<int> d;
  auto send = [](weft::Writer<pnp::Packet<int>> w) -> Process { co_await w.write({3, 1}); };
  CHECK_THROWS_WITH_AS(weft::run(send(m), pnp::demultiplex(m, {d})),
                       doctest::Contains("output 3 of 1"), weft::BadUse);
  weft::Channel<std::vector<int>> v;
  weft::Channel<int> e, f;
  auto send_three = [](weft::Writer<std::vector<int>> w) -> Process {
    std::vector<int> three{1, 2, 3};  // g++ 12 accepts no braced list of values inside a co_await.
    co_await w.write(std::move(three));
  };
  CHECK_THROWS_WITH_AS(weft::run(send_three(v), pnp::deparaplex(v, {e, f})),
                       doctest::Contains("2 writers and 3 values"), weft::BadUse);
  weft::Channel<int> o;
  CHECK_THROWS_WITH_AS(static_cast<void>(pnp::plex(std::vector<weft::Reader<int>>(), o)),
                       doctest::Contains("at least one"), weft::BadUse);
}

TEST_CASE_TEMPLATE("plug and play: paraplex and deparaplex", Form, FORMS) {
  using P = typename Form::P;
  cases(5, [](Random& r) {
    const Ints x = r.stream(), y = r.stream();
    weft::Channel<int, P> a{r.options()}, b{r.options()}, c, d;
    weft::Channel<std::vector<int>, P> v{r.options()};
    Ints p, q;
    weft::par{feed(a.writer(), x),
              feed(b.writer(), y),
              Form::as(pnp::paraplex<int>({a, b}, v)),
              Form::as(pnp::deparaplex<int>(v, {c, d})),
              gather(c.reader(), &p),
              gather(d.reader(), &q)}();
    const std::size_t n = std::min(x.size(), y.size());
    CHECK(p == Ints(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)));
    CHECK(q == Ints(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(n)));
  });
}

TEST_CASE_TEMPLATE("plug and play in virtual time: fixed_delay, regular, regulate", Form, FORMS) {
  using P = typename Form::P;
  auto stamps = [](weft::Reader<int, P> r, Ints* at, int most) -> Process {
    while (most-- != 0) {
      co_await r.read();
      at->push_back(static_cast<int>(weft::now() / 1'000'000));
    }
  };
  auto at_times = [](weft::Writer<int, P> w, Ints when) -> Process {
    for (int t : when) {
      co_await weft::sleep_until(t * 1'000'000LL);
      co_await w.write(t);
    }
  };
  auto reset_at = [](weft::Writer<weft::Span, P> w, int when, weft::Span to) -> Process {
    co_await weft::sleep_until(when * 1'000'000LL);
    co_await w.write(to);
  };
  Ints delayed, regular, regulated;
  weft::Channel<int, P> a, b, c, d, e;
  weft::Channel<weft::Span, P> reset;
  weft::run(virtually,
            weft::par{at_times(a.writer(), {1, 2, 30}), Form::as(pnp::fixed_delay<int>(10ms, a, b)),
                      stamps(b, &delayed, -1)});
  weft::run(virtually, weft::par{Form::as(pnp::regular<int>(c, 1, 7ms)), stamps(c, &regular, 4)});
  CHECK(delayed == Ints{11, 21, 40});
  CHECK(regular == Ints{0, 7, 14, 21});
  // The reader is late once; the later values are not sent faster to make up for the delay.
  weft::Channel<int, P> g;
  Ints late;
  auto sluggish = [](weft::Reader<int, P> r, Ints* at) -> Process {
    for (int i = 0; i < 4; ++i) {
      co_await r.read();
      at->push_back(static_cast<int>(weft::now() / 1'000'000));
      if (i == 0) co_await weft::sleep(10ms);
    }
  };
  weft::run(virtually,
            weft::par{Form::as(pnp::regular<int>(g, 1, 7ms)), sluggish(g.reader(), &late)});
  CHECK(late == Ints{0, 10, 14, 21});
  weft::run(
      virtually,
      weft::par{at_times(d.writer(), {1, 2, 3, 100, 101, 102}), reset_at(reset.writer(), 50, 5ms),
                Form::as(pnp::regulate<int>(d, reset, e, 10ms)), stamps(e, &regulated, -1)});
  CHECK(regulated == Ints{10, 20, 30, 100, 105, 110});
  weft::Channel<int, P> none;
  CHECK_THROWS_AS(static_cast<void>(pnp::regular<int>(none, 1, 0ms)), weft::BadUse);
}
// Rule 8.5: the second value is never written.
TEST_CASE("plug and play: a second value that is due beyond the end of the clock") {
  weft::Channel<int> c;
  Ints got;
  auto net = [&] {
    weft::par{pnp::regular<int>(c, 1, weft::Span::max()), gather(c.reader(), &got, 2)}();
  };
  CHECK_THROWS_AS(net(), weft::Deadlock);
  CHECK(got == Ints{1});
}
TEST_CASE("plug and play: CommsTime, as the paper's Listing 18") {
  weft::Channel<int> a, b, c, d;
  Ints got;
  weft::par{pnp::prefix<int>(0, c, a), pnp::delta<int>(a, {b, d}), pnp::successor<int>(b, c),
            gather(d.reader(), &got, 100)}();
  REQUIRE(got.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(got[static_cast<std::size_t>(i)] == i);
}
