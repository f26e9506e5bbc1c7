// Tests the twins of the conformance scenarios: producer/consumer × {one, many} × {one, many} ×
// {plain, choosing} at both ends × {no delay, staggered}, on coroutines in virtual time and on
// threads. No value is lost or doubled, each producer's values keep their order, and all processes
// end by themselves (rules 1.1, 1.2, 2.3, 3.4, 5.1, 5.6).
#include <algorithm>
#include <mutex>

#include "hosted.hpp"

using namespace test;

namespace {

constexpr int kEach = 12;  // the number of values of each producer

struct Scenario {
  int producers, consumers;
  bool choosing_out, choosing_in, staggered;
};

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  for (int bits = 0; bits < 32; ++bits)
    all.push_back(
        {bits & 1 ? 3 : 1, bits & 2 ? 3 : 1, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0});
  return all;
}

// The values that the consumers of a scenario have read, and the check of these values.
struct Got {
  std::mutex lock;
  std::vector<std::vector<int>> by_consumer;

  void add(int consumer, int v) {
    const std::lock_guard g(lock);
    by_consumer[static_cast<std::size_t>(consumer)].push_back(v);
  }
  void check(const Scenario& s) {
    std::vector<int> all, want;
    for (const auto& one : by_consumer) {
      all.insert(all.end(), one.begin(), one.end());
      for (int p = 0; p < s.producers; ++p) {
        std::vector<int> mine;
        std::copy_if(one.begin(), one.end(), std::back_inserter(mine),
                     [&](int v) { return v / 100 == p; });
        CHECK(std::is_sorted(mine.begin(), mine.end()));
      }
    }
    for (int p = 0; p < s.producers; ++p)
      for (int i = 0; i < kEach; ++i) want.push_back(100 * p + i);
    std::sort(all.begin(), all.end());
    CHECK(all == want);
  }
};

// `never` is the second channel of a party that chooses: no process reads it or writes to it.
template <class P>
Process producer(int p, Scenario s, weft::Writer<int, P> w, weft::Writer<int, P> never) {
  for (int i = 0; i < kEach; ++i) {
    if (s.staggered) co_await weft::sleep(std::chrono::milliseconds(1 + p));
    if (s.choosing_out) {
      auto c = co_await weft::select(weft::out(never, 0), weft::out(w, 100 * p + i));
      CHECK(c.index == 1);
    } else {
      co_await w.write(100 * p + i);
    }
  }
}

template <class P>
Process consumer(int k, Scenario s, weft::Reader<int, P> r, weft::Reader<int, P> never, Got& got) {
  for (;;) {
    if (s.staggered) co_await weft::sleep(std::chrono::milliseconds(2 + k));
    int v = 0;
    if (s.choosing_in) {
      // Retired ends the process quietly.
      auto c = co_await weft::select(never, weft::in(r).ends());
      v = *c.value;
    } else {
      v = co_await r.read();
    }
    got.add(k, v);
  }
}

template <class P>
void on_coroutines(const Scenario& s, std::uint32_t capacity) {
  weft::Channel<int, P> c{weft::buffer(capacity)}, never_out, never_in;
  const auto keep_reader = never_out.reader();
  const auto keep_writer = never_in.writer();
  Got got;
  got.by_consumer.resize(static_cast<std::size_t>(s.consumers));
  std::vector<Process> ps;
  for (int p = 0; p < s.producers; ++p)
    ps.push_back(producer<P>(p, s, c.writer(), never_out.writer()));
  for (int k = 0; k < s.consumers; ++k)
    ps.push_back(consumer<P>(k, s, c.reader(), never_in.reader(), got));
  weft::run(virtually, weft::par(std::move(ps)));
  got.check(s);
  CHECK(c.transfers() == static_cast<std::uint64_t>(s.producers * kEach));
}

void on_threads(const Scenario& s, std::uint32_t capacity) {
  weft::Channel<int> c{weft::buffer(capacity)}, never_out, never_in;
  const auto keep_reader = never_out.reader();
  const auto keep_writer = never_in.writer();
  Got got;
  got.by_consumer.resize(static_cast<std::size_t>(s.consumers));
  auto produce = [&s](int p, weft::Writer<int> w, weft::Writer<int> never) {
    return weft::thread([p, s, w = std::move(w), never = std::move(never)] {
      for (int i = 0; i < kEach; ++i) {
        if (s.staggered) weft::sleep(std::chrono::milliseconds(1 + p))();
        if (s.choosing_out)
          weft::select(weft::out(never, 0), weft::out(w, 100 * p + i))();
        else
          w(100 * p + i);
      }
    });
  };
  auto consume = [&](int k, weft::Reader<int> r, weft::Reader<int> never) {
    return weft::thread([k, s, &got, r = std::move(r), never = std::move(never)] {
      for (;;) {
        if (s.staggered) weft::sleep(std::chrono::milliseconds(2 + k))();
        if (s.choosing_in) {
          auto x = weft::select(never, weft::in(r).ends())();
          got.add(k, *x.value);
        } else {
          got.add(k, r());
        }
      }
    });
  };
  std::vector<decltype(produce(0, c.writer(), never_out.writer()))> producers;
  std::vector<decltype(consume(0, c.reader(), never_in.reader()))> consumers;
  for (int p = 0; p < s.producers; ++p)
    producers.push_back(produce(p, c.writer(), never_out.writer()));
  for (int k = 0; k < s.consumers; ++k)
    consumers.push_back(consume(k, c.reader(), never_in.reader()));
  auto all = [](auto p, auto q) -> Process {
    weft::Group g;
    for (auto& x : p) g.start(std::move(x));
    for (auto& x : q) g.start(std::move(x));
    co_await g.wait();
  };
  weft::run(virtually, all(std::move(producers), std::move(consumers)));
  got.check(s);
}

}  // namespace

TEST_CASE_TEMPLATE("the scenarios on coroutines", P, POLICIES) {
  for (const Scenario& s : scenarios())
    for (std::uint32_t capacity : {0u, 2u}) {
      CAPTURE(s.producers);
      CAPTURE(s.consumers);
      CAPTURE(s.choosing_out);
      CAPTURE(s.choosing_in);
      CAPTURE(s.staggered);
      on_coroutines<P>(s, capacity);
    }
}

TEST_CASE("the scenarios on threads") {
  for (const Scenario& s : scenarios()) {
    CAPTURE(s.producers);
    CAPTURE(s.consumers);
    CAPTURE(s.choosing_out);
    CAPTURE(s.choosing_in);
    CAPTURE(s.staggered);
    on_threads(s, 0);
  }
}
