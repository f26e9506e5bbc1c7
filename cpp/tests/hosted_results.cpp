// Tests that the place of a result shows how its process ended: Result and NoResult, and the
// exceptions of run (rules 2.5, 3.5, 4.3, 7.1).
#include "hosted.hpp"

using namespace test;

namespace {

// Each of the following processes ends by an exception before it has a result.
ProcessOf<double> average(weft::Reader<int> in) {
  double sum = 0;
  int n = 0;
  for (; n < 100; ++n) sum += co_await in.read();
  co_return sum / n;
}
ProcessOf<int> cancelled() {
  throw weft::Cancelled();
  co_return 1;
}
ProcessOf<int> seven() { co_return 7; }
Process source(weft::Writer<int> out, int n) {
  for (int i = 0; i < n; ++i) co_await out.write(i);
}

struct Retired {  // a channel whose writers have been closed
  weft::Channel<int> c{weft::named("data")};
  weft::Reader<int> in = c.reader();
  Retired() { c.writer().retire(); }
};
struct Poisoned : Retired {
  Poisoned() { c.poison(3); }
};

// Returns the exception that f throws, which must be a NoResult.
template <class F>
weft::NoResult no_result_of(F&& f) {
  try {
    f();
  } catch (const weft::NoResult& e) {
    return e;
  }
  FAIL("no NoResult");
  throw std::logic_error("unreachable");
}

}  // namespace

TEST_CASE(
    "rules 3.5, 7.1: who ended without a result: its Result names it, how it ended and where") {
  weft::Channel<int> c(weft::named("data"));
  auto [mean, sent, other] =
      weft::run(average(c.reader()).named("mean"), source(c.writer(), 3), seven());
  static_assert(std::is_same_v<decltype(sent), std::monostate>);
  CHECK_FALSE(mean.has_value());
  CHECK_FALSE(mean);
  CHECK_FALSE(mean == 0.0);
  CHECK(mean.value_or(-1) == -1);
  REQUIRE(mean.missing() != nullptr);
  const weft::NoResult e = no_result_of([&r = mean] { return r.value(); });
  CHECK(e.process == "main/mean");
  CHECK(e.how == weft::Ending::retired);
  CHECK(has(e.where, "hosted_results.cpp:"));
  CHECK_THROWS_AS(std::rethrow_exception(e.reason), weft::Retired);
  for (const char* part : {"main/mean", "read on channel 'data'", "retired", "hosted_results.cpp:"})
    CHECK(has(e.what(), part));
  CHECK_THROWS_AS(*mean, weft::NoResult);
  CHECK_THROWS_AS(*std::move(mean), weft::NoResult);
  CHECK(other.has_value());
  CHECK(*other == 7);
  CHECK(other == 7);
  CHECK(other.missing() == nullptr);
}

TEST_CASE("rules 3.5, 4.3, 6.5, 7.1: of every kind of end and of process") {
  Retired r;
  Poisoned p, q;
  const weft::Cores pool(2);
  auto [a, b, d, e, f] = weft::run(
      average(p.in), cancelled(), weft::thread([in = r.in] { return in(); }),
      average(q.in).on(pool), weft::thread([in = q.in] { return std::make_unique<int>(in()); }));
  CHECK(no_result_of([&x = a] { *x; }).how == weft::Ending::poisoned);
  CHECK(no_result_of([&x = b] { *x; }).how == weft::Ending::cancelled);
  CHECK(no_result_of([&x = d] { *x; }).how == weft::Ending::retired);
  // The name has an index only if the other thread process had begun when this thread process ended
  // (rule 7.8).
  const std::string thread = no_result_of([&x = d] { *x; }).process;
  CHECK((thread == "main/thread[0]" || thread == "main/thread"));
  CHECK(no_result_of([&x = e] { *x; }).how == weft::Ending::poisoned);
  CHECK(no_result_of([&x = f] { x->get(); }).how == weft::Ending::poisoned);
}

TEST_CASE("rule 7.1: of a vector, a sequence and a block within a block") {
  Retired r, s, t;
  std::vector<ProcessOf<double>> ps;
  ps.push_back(average(r.in));
  const auto of_vector = weft::run(weft::par(std::move(ps)));
  REQUIRE(of_vector.size() == 1);
  CHECK(no_result_of([&] { *of_vector[0]; }).how == weft::Ending::retired);
  const auto [first, second] = weft::run(weft::seq(average(s.in), seven()));
  CHECK_FALSE(first);
  CHECK(second == 7);
  const auto [inner, own] = weft::par{weft::par{average(t.in), seven()}, seven()}();
  CHECK(inner.has_value());  // The inner block ended well, although one of its processes did not.
  CHECK_FALSE(std::get<0>(*inner));
  CHECK(std::get<1>(*inner) == 7);
  CHECK(own == 7);
}

TEST_CASE(
    "rule 7.1: run of exactly one process throws what left it, whatever kind of process it is") {
  Retired r;
  Poisoned p;
  const weft::Cores pool(2);
  const auto reads = [](weft::Reader<int> in) -> Process { co_await in.read(); };
  CHECK_THROWS_AS(weft::run(average(r.in)), weft::Retired);
  CHECK_THROWS_AS(weft::run(average(p.in)), weft::Poisoned);
  CHECK_THROWS_AS(weft::run(reads(r.in)), weft::Retired);
  CHECK_THROWS_AS(weft::run(virtually, reads(r.in)), weft::Retired);
  CHECK_THROWS_AS(weft::run(reads(r.in).on(pool)), weft::Retired);
  CHECK_THROWS_AS(weft::run(weft::on(pool), reads(p.in)), weft::Poisoned);
  CHECK_THROWS_AS(weft::run(weft::thread([in = r.in] { in(); })), weft::Retired);
  CHECK_THROWS_AS(weft::run(weft::thread([in = p.in] { return in(); })), weft::Poisoned);
  CHECK_THROWS_AS(weft::run(weft::thread(average(r.in))), weft::Retired);
  CHECK_THROWS_AS(weft::run(cancelled()), weft::Cancelled);
  CHECK(weft::run(seven()) == 7);
  // A run within a thread process ends by the same exception, and so does the thread process.
  bool met = false;
  auto both = [](Process q, bool& m) {
    return weft::thread([q = std::make_shared<Process>(std::move(q)), &m]() mutable {
      try {
        weft::run(std::move(*q));
      } catch (const weft::ChannelEnd& e) {
        m = e.met;
        throw;
      }
    });
  };
  weft::run(weft::par(both(reads(r.in), met)));
  CHECK(met);
}

TEST_CASE(
    "rule 7.1: of several, of a parallel of one, in a group and spawned a quiet end stays quiet") {
  Retired r;
  const auto reads = [](weft::Reader<int> in) -> Process { co_await in.read(); };
  weft::run(reads(r.in), nothing());
  weft::run(weft::par(reads(r.in)));
  weft::par{reads(r.in)}();
  weft::run(weft::seq(reads(r.in), reads(r.in)));
  bool on = false;
  const auto composes = [](auto p, weft::Reader<int> in, bool& done) -> Process {
    co_await weft::par(p(in), p(in));
    co_await p(in);
    weft::Group g;
    g.start(p(in));
    co_await g.wait();
    weft::spawn(p(in));
    done = true;
  };
  weft::run(composes(reads, r.in, on));
  CHECK(on);
}

TEST_CASE("rules 4.3, 7.1: what left it is thrown after its ends are let go or poisoned") {
  Retired r;
  weft::Channel<int> out, out2;
  const auto rest = out.reader(), rest2 = out2.reader();
  const auto relay = [](weft::Reader<int> in, weft::Writer<int> to) -> Process {
    co_await to.write(co_await in.read());
  };
  CHECK_THROWS_AS(weft::run(relay(r.in, out.writer())), weft::Retired);
  CHECK_THROWS_AS(rest(), weft::Retired);
  Poisoned p;
  try {
    weft::run(relay(p.in, out2.writer()));
    CHECK(false);
  } catch (const weft::Poisoned& e) {
    CHECK(e.strength == 3);
  }
  CHECK_THROWS_AS(rest2(), weft::Poisoned);
}

TEST_CASE(
    "rules 4.3, 7.1: who awaits a value in a coroutine gets what left the process that was to give "
    "it, and ends by it") {
  Poisoned p;
  weft::Channel<int> local, given;
  const auto of_local = local.reader(), of_given = given.reader();
  const auto asks = [](weft::Reader<int> in, weft::Channel<int> l, weft::Writer<int> w) -> Process {
    // `mine` is not among the process's arguments, and is closed when the poison passes.
    const auto mine = l.writer();
    co_await w.write(static_cast<int>(co_await average(in)));
  };
  weft::run(weft::par(asks(p.in, local, given.writer())));
  CHECK_THROWS_AS(of_local(), weft::Poisoned);
  CHECK_THROWS_AS(of_given(), weft::Poisoned);
  Retired r;
  bool caught = false;
  const auto catches = [](weft::Reader<int> in, bool& c) -> Process {
    try {
      co_await average(in);
    } catch (const weft::Retired& e) {
      c = e.met;
    }
    const auto closure = [in] { return average(in); };
    const auto [x] = co_await weft::par{closure};
    CHECK_FALSE(x);
  };
  weft::run(catches(r.in, caught));
  CHECK(caught);
}

TEST_CASE(
    "rules 2.5, 3.5: an end raised by asking for a new end is a failure when uncaught; what "
    "operations raise is met") {
  Retired r;
  bool others_ended = false;
  const auto other = [](bool& ended) -> Process {
    try {
      co_await weft::sleep(1h);
    } catch (const weft::Cancelled&) {
      ended = true;
    }
  };
  const auto asks = [](weft::Channel<int> c) -> Process {
    co_await weft::yield();
    co_await c.writer().write(1);
  };
  const auto is_unmet = [](auto&& f) {
    try {
      f();
    } catch (const weft::ChannelEnd& e) {
      return !e.met;
    }
    return false;
  };
  CHECK(is_unmet([&] { weft::run(virtually, asks(r.c), other(others_ended)); }));
  CHECK(others_ended);
  others_ended = false;
  CHECK(is_unmet([&] {
    weft::run(virtually, weft::thread([c = r.c] { c.writer()(1); }), other(others_ended));
  }));
  CHECK(others_ended);
  CHECK(is_unmet([&] { r.c.writer(); }));
  r.in.retire();
  CHECK(is_unmet([&] { r.c.reader(); }));
  Poisoned p;
  CHECK(is_unmet([&] { p.c.reader(); }));
  CHECK_FALSE(is_unmet([&] { p.in(); }));
  CHECK(is_unmet([&] { weft::run(asks(p.c), nothing()); }));
}

TEST_CASE(
    "rules 3.5, 4.3: one that was not met fails its process, and a poison poisons its ends all the "
    "same") {
  Poisoned p;
  weft::Channel<int> out;
  const auto rest = out.reader();
  const auto asks = [](weft::Channel<int> c, weft::Writer<int>) -> Process {
    c.reader();
    co_return;
  };
  CHECK_THROWS_AS(weft::run(asks(p.c, out.writer()), nothing()), weft::Poisoned);
  CHECK_THROWS_AS(rest(), weft::Poisoned);
}

TEST_CASE(
    "rule 3.5: raised again, also elsewhere or as a copy, a met end is met; one that a program "
    "makes is not") {
  Retired r;
  std::exception_ptr kept;
  try {
    r.in();
  } catch (...) {
    kept = std::current_exception();
  }
  const auto again = [](std::exception_ptr e) -> Process {
    std::rethrow_exception(e);
    co_return;
  };
  const auto copied = [](std::exception_ptr e) -> Process {
    try {
      std::rethrow_exception(e);
    } catch (const weft::Retired& x) {
      throw weft::Retired(x);
    }
    co_return;
  };
  const auto made = []() -> Process {
    throw weft::Retired("by hand", -1);
    co_return;
  };
  weft::run(again(kept), copied(kept));
  CHECK_THROWS_WITH(weft::run(made(), nothing()), "by hand");
}

TEST_CASE(
    "rule 3.5: an operation of a ChannelHandle meets the end, although its first one takes the "
    "end") {
  weft::ChannelHandle<int> h;
  h.writer();
  const_cast<weft::Writer<int>&>(h.writer()).retire();
  weft::run(weft::par(weft::thread([h] { h(); }), nothing()));
  bool met = false;
  weft::run(weft::par(weft::thread([h, &met] {
    try {
      h();
    } catch (const weft::Retired& e) {
      met = e.met;
    }
  })));
  CHECK(met);
}
