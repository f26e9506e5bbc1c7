// Tests choices over several homes, in threads and coroutines, over real sockets (wire 5, 12).
#include <doctest/doctest.h>

#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/program.hpp"

namespace wire_spans_stream {
namespace {
using namespace weft;
namespace w = weft::wire;

// Two homes, and one program with a session to each.
struct Three {
  std::shared_ptr<w::Space> one = w::Space::make("one"), two = w::Space::make("two"),
                            me = w::Space::make("me");
  int a[2], b[2];
  std::optional<w::StreamLink> h1, m1, h2, m2;
  Three() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, a) == 0);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);
    h1.emplace(one, a[0]);
    m1.emplace(me, a[1]);
    h2.emplace(two, b[0]);
    m2.emplace(me, b[1]);
  }
};

TEST_CASE(
    "wire 5: a merge of two homes and a channel of one's own: every value once, in order of its "
    "source; it ends with the last (rule 5.6)") {
  Three t;
  Channel<int> c, d, own;
  t.h1->give(c.reader(), "c");
  t.h2->give(d.reader(), "d");
  auto rc = t.m1->reader<int>("c"), rd = t.m2->reader<int>("d");
  auto ro = own.reader();
  const auto source = [](Writer<int> to, int from) {
    return std::thread([to = std::move(to), from, token = Outside()]() mutable {
      for (int i = 0; i < 50; ++i) to(from + i);
    });
  };
  std::thread sources[] = {source(c.writer(), 0), source(d.writer(), 100),
                           source(own.writer(), 200)};
  int next[3] = {0, 100, 200}, first = 0;
  CHECK_THROWS_AS(
      [&] {
        for (;;) {
          w::FarSelect s;
          s.in(rc).in(rd).in(ro).from(first);
          const int i = s();
          CHECK(s.value<int>() == next[i]++);
          first = (i + 1) % 3;
        }
      }(),
      Retired);
  for (std::thread& s : sources) s.join();
  CHECK((next[0] == 50 && next[1] == 150 && next[2] == 250));
}

Process sends(w::FarWriter<int> a, w::FarWriter<int> b, int times, int& done) {
  for (int i = 0; i < times; ++i) {
    w::FarSelect s;
    s.out(a, i).out(b, i);
    co_await s.go();
    ++done;
  }
}
Process takes(w::FarReader<int> a, w::FarReader<int> b, int times, int& right) {
  for (int i = 0; i < times; ++i) {
    w::FarSelect s;
    s.in(b).in(a);
    co_await s.go();
    right += s.value<int>() == i;
  }
}

TEST_CASE(
    "wire 5.4: two processes that both choose between two homes go on meeting; both in "
    "coroutines") {
  Three t;
  Channel<int> c, d;
  t.h1->give(c.reader(), "r"), t.h1->give(c.writer(), "w");
  t.h2->give(d.reader(), "r"), t.h2->give(d.writer(), "w");
  int done = 0, right = 0;
  run(sends(t.m1->writer<int>("w"), t.m2->writer<int>("w"), 50, done),
      takes(t.m1->reader<int>("r"), t.m2->reader<int>("r"), 50, right));
  CHECK((done == 50 && right == 50));
}

Process waits(w::FarReader<int> a, w::FarReader<int> b, std::string& how) {
  try {
    w::FarSelect s;
    s.in(a).in(b);
    co_await s.go();
    how = "value";
  } catch (const Cancelled&) {
    how = "cancelled";
    throw;
  }
}
Process fails_after(Reader<int> go) {
  co_await go.read();
  throw std::runtime_error("enough");
}

TEST_CASE("wire 5.5: a cancelled choice over two homes ends, and takes nothing (rules 6.2, 6.4)") {
  Three t;
  Channel<int> c, d, go;
  t.h1->give(c.reader(), "c");
  t.h2->give(d.reader(), "d");
  Writer<int> wc = c.writer(), wd = d.writer();
  std::string how;
  auto rc = t.m1->reader<int>("c"), rd = t.m2->reader<int>("d");
  std::thread other([w = go.writer(), token = Outside()] { w(1); });
  CHECK_THROWS_AS(run(waits(std::move(rc), std::move(rd), how), fails_after(go.reader())),
                  std::runtime_error);
  other.join();
  CHECK(how == "cancelled");
}

TEST_CASE("wire 5: a select of local ends alone, and a guard that there is not, are bad use") {
  Three t;
  Channel<int> c, d;
  t.h1->give(d.reader(), "d");
  auto r = c.reader();
  auto far = t.m1->reader<int>("d");
  w::FarSelect s, e;
  s.in(r);
  CHECK_THROWS_AS(s(), BadUse);
  e.in(far).from(1);
  CHECK_THROWS_AS(e(), BadUse);
}

}  // namespace
}  // namespace wire_spans_stream
