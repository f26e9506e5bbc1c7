// Tests far operations that are awaited twice, and links that are given no space, or a socket that
// carries no stream (rule 11.2).
#include <doctest/doctest.h>

#include <netinet/in.h>

#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/moving.hpp"
#include "weft/wire/shm.hpp"
#include "weft/wire/stream.hpp"
#include "wire_pair.hpp"

namespace wire_twice {
namespace {
using namespace weft;
using namespace std::chrono_literals;
namespace w = weft::wire;

using Pair = test::Pair<>;

#define TWICE(op)                                                           \
  do {                                                                      \
    static_cast<void>(co_await std::move(op));                              \
    CHECK_THROWS_WITH_AS(static_cast<void>(co_await std::move(op)),         \
                         doctest::Contains("was awaited already"), BadUse); \
  } while (false)

Process reads(w::FarReader<std::string> r) {
  auto read = r.read();
  TWICE(read);
  auto extended = r.extended();
  TWICE(extended);
}
Process writes(Writer<std::string> to) {
  co_await to.write("one");
  co_await to.write("two");
}
Process writes_far(w::FarWriter<std::string> to) {
  auto write = to.write("one");
  co_await std::move(write);
  CHECK_THROWS_WITH_AS(co_await std::move(write), doctest::Contains("was awaited already"), BadUse);
}
Process writes_anywhere(w::WriterEnd<std::string> to) {
  auto write = to.write("two");
  co_await std::move(write);
  CHECK_THROWS_WITH_AS(co_await std::move(write), doctest::Contains("was awaited already"), BadUse);
}
Process collects(Reader<std::string> r, std::vector<std::string>& into) {
  while (auto s = co_await r.next()) into.push_back(*s);
}

TEST_CASE("rule 11.2: a far operation is awaited once") {
  Pair p;
  Channel<std::string> c, d;
  p.h->give(c.reader(), "r");
  run(reads(p.f->reader<std::string>("r")), writes(c.writer()));
  p.h->give(d.writer(), "w");
  p.h->give(d.writer(), "x");
  std::vector<std::string> got;
  auto w1 = p.f->writer<std::string>("w");
  auto w2 = p.f->writer_end<std::string>("x");
  run(seq(writes_far(std::move(w1)), writes_anywhere(std::move(w2))), collects(d.reader(), got));
  CHECK(got == std::vector<std::string>{"one", "two"});
}

TEST_CASE("rule 11.2: so is one at a far barrier, and a write at an end that is here") {
  Pair p;
  Barrier b(1);
  p.h->give(b, "b");
  Channel<std::string> c{buffer(1)};
  const w::WriterEnd<std::string> here(c.writer());
  auto process = [](w::FarBarrier far, const w::WriterEnd<std::string>& end) -> Process {
    auto sync = far.sync();
    co_await std::move(sync);
    CHECK_THROWS_WITH_AS(co_await std::move(sync), doctest::Contains("was awaited already"),
                         BadUse);
    auto write = end.write("one");
    co_await std::move(write);
    CHECK_THROWS_WITH_AS(co_await std::move(write), doctest::Contains("was awaited already"),
                         BadUse);
  };
  run(process(p.f->barrier("b"), here));
}

TEST_CASE("rule 11.2: strengths that are none, at far ends") {
  Pair p;
  Channel<int> c;
  p.h->give(c.reader(), "r");
  const auto r = p.f->reader<int>("r");
  const w::ReaderEnd<int> here(c.reader());
  for (const int strength : {-1, 0, 256}) {
    CHECK_THROWS_WITH_AS(r.poison(strength), doctest::Contains("from 1 to 255"), BadUse);
    CHECK_THROWS_WITH_AS(here.poison(strength), doctest::Contains("from 1 to 255"), BadUse);
  }
}

TEST_CASE_TEMPLATE("rule 11.2: a link that is given no space says so", L, w::StreamLink,
                   w::ShmLink) {
  CHECK_THROWS_WITH_AS(L(std::shared_ptr<w::Space>(), -1), doctest::Contains("there is no space"),
                       BadUse);
}

TEST_CASE("rule 11.2: a socket by which no stream can come is refused, and not waited for") {
  const auto space = w::Space::make("here");
  const int listens = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::listen(listens, 1) == 0);
  int datagrams[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) == 0);
  for (const int fd : {listens, datagrams[0], datagrams[1], ::open("/dev/null", O_RDWR), -1})
    CHECK_THROWS_WITH_AS(w::StreamLink(space, fd),
                         doctest::Contains("not a connected stream socket"), BadUse);
  w::StreamLink never_connected(space, ::socket(AF_INET, SOCK_STREAM, 0));
  CHECK(never_connected.wait() != "");
}

}  // namespace
}  // namespace wire_twice
