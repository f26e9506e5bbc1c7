// Tests outputs whose value is made after the commit, at far ends (WIRE.md 4.8, rule 5.8).
#include <doctest/doctest.h>

#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/link_base.hpp"
#include "weft/wire/stream.hpp"
#include "wire_pair.hpp"
#include "wire_world.hpp"

namespace wire_later {
namespace {
using namespace weft;
using weft::test::Op;
using weft::test::Wire;
namespace w = weft::wire;

struct World {
  std::shared_ptr<w::Space> home = w::Space::make("home", 1), far = w::Space::make("far", 2),
                            third = w::Space::make("third", 3);
  Wire a{*home, *far}, b{*home, *third};
  Channel<int> c, d;
  std::uint32_t cw = a.give(c.writer()), cr = b.give(c.reader()), dr = a.give(d.reader());
  Writer<int> dw = d.writer();
  World() { pump(); }
  void pump() {
    for (bool any = true; any;) any = a.up() || a.down() || b.up() || b.down();
  }
  bool quiet() {
    return a.at_home.home.open() == 0 && b.at_home.home.open() == 0 && !a.at_home.session.is_over();
  }
};

TEST_CASE(
    "wire 4.8: COMMIT, then the value: alone or in a choice, whoever comes first; it is not "
    "withdrawn any more (rules 5.8, 6.3)") {
  for (const bool choice : {false, true})
    for (const bool reader_first : {false, true}) {
      World t;
      Op write, read;
      if (choice) write.read(t.dr);
      write.later(t.cw);
      if (reader_first) read.read(t.cr).begin(t.b.at_party);
      t.pump();
      write.begin(t.a.at_party);
      t.pump();
      if (!reader_first) read.read(t.cr).begin(t.b.at_party);
      t.pump();
      CHECK((write.has_committed && !write.is_over && !read.is_over));
      write.withdraw();
      t.pump();
      CHECK_FALSE(write.is_over);
      write.make(42);
      t.pump();
      REQUIRE((write.ok() && read.ok()));
      CHECK((write.outcome.guard == (choice ? 1u : 0u) && read.value() == 42 && write.times == 1 &&
             t.quiet()));
    }
}

TEST_CASE(
    "wire 4.8: one that is withdrawn in time, or whose other guard is chosen, makes nothing (rules "
    "5.1, 5.8)") {
  World t;
  Op write, read;
  write.read(t.dr).later(t.cw).begin(t.a.at_party);
  t.pump();
  write.withdraw();
  t.pump();
  CHECK((write.status() == Status::cancelled && !write.has_committed));
  read.read(t.cr).begin(t.b.at_party);
  t.pump();
  CHECK((!read.is_over && t.b.at_home.home.open() == 1));
  read.withdraw();
  t.pump();
}

TEST_CASE(
    "wire 4.8: a value that could not be made: nothing is sent, and the reader gets PeerDied; so "
    "if its maker's program dies") {
  for (const bool dies : {false, true}) {
    World t;
    Op write, read;
    write.later(t.cw).begin(t.a.at_party);
    read.read(t.cr).begin(t.b.at_party);
    t.pump();
    REQUIRE(write.has_committed);
    if (dies)
      t.a.tell(t.a.at_home);
    else
      write.fail();
    t.pump();
    CHECK(read.status() == Status::died);
    if (!dies) CHECK(t.quiet());
    t.a.tell(t.a.at_party);
    if (dies) CHECK((write.is_over && !write.outcome.in_doubt));  // The value had not been sent.
  }
}

TEST_CASE("wire 4.8, 8.1: a home that is gone once the value was sent leaves the writer in doubt") {
  World t;
  Op write, read;
  write.later(t.cw).begin(t.a.at_party);
  read.read(t.cr).begin(t.b.at_party);
  t.pump();
  write.make(1);
  t.a.tell(t.a.at_party);
  CHECK((write.is_over && write.outcome.lost && write.outcome.in_doubt));
}

TEST_CASE(
    "wire 4.6, 4.8: an extended reader holds who made the value until its block is over (rules "
    "1.6, 5.8)") {
  World t;
  Op write, read;
  write.later(t.cw).begin(t.a.at_party);
  read.hold(t.cr).begin(t.b.at_party);
  t.pump();
  write.make(7);
  t.pump();
  REQUIRE(read.ok());
  CHECK((read.value() == 7 && !write.is_over));
  read.end_block();
  t.pump();
  CHECK((write.ok() && t.quiet()));
}

TEST_CASE(
    "wire 14.2: a MADE of nothing or of another type, a COMMIT of a guard that has its value, a "
    "DONE before the value") {
  using F = w::Frame;
  World t;
  t.a.to_home(F{w::Kind::made, 0, 0, 0, 5, 1, {}});
  t.pump();
  CHECK(t.a.at_home.session.why().find("has not committed") != std::string::npos);
  const auto lies = [](w::Kind k, bool later) {
    World u;
    Op write;
    later ? write.later(u.cw).begin(u.a.at_party) : write.write(u.cw, 1).begin(u.a.at_party);
    u.pump();
    {
      const w::Space::Step step(*u.home);
      u.a.at_home.session.send(F{k, 0, 0, 0, write.number(), 0, {}});
    }
    u.pump();
    CHECK(write.is_over);
    return u.a.at_party.session.why();
  };
  CHECK(lies(w::Kind::commit, false).find("has its value") != std::string::npos);
  CHECK(lies(w::Kind::done, true).find("has not been made") != std::string::npos);
  World v;
  Op write, read;
  write.later(v.cw).begin(v.a.at_party);
  read.read(v.cr).begin(v.b.at_party);
  v.pump();
  // The value of the MADE is not an int.
  v.a.to_home(F{w::Kind::made, 0, 0, 0, write.number(), std::uint64_t{1} << 40, {}});
  v.pump();
  CHECK(v.a.at_home.session.why().find("of its channel's type") != std::string::npos);
  CHECK(read.status() == Status::died);
}

// --- programs ------------------------------------------------------------------------------------

using Pair = test::Pair<>;

Process makes(w::FarWriter<std::string> to, Writer<std::string> own, bool spans, int& made) {
  for (int i = 0; i < 20; ++i) {
    w::FarSelect s;
    s.out_with(to, [&] { return std::string(static_cast<std::size_t>(++made * 10'000), 'x'); });
    if (spans) s.out_with(own, [&] { return std::to_string(++made); });
    CHECK(co_await s.go() >= 0);
  }
}

TEST_CASE(
    "wire 4.8: out_with() of a FarSelect in coroutines and threads, over one home and several: "
    "made once for each that is chosen") {
  for (const bool spans : {false, true})
    for (const bool thread : {false, true}) {
      CAPTURE(spans);
      CAPTURE(thread);
      Pair p;
      Channel<std::string> c, own;
      p.h->give(c.writer(), "to");
      auto to = p.f->writer<std::string>("to");
      int made = 0;
      std::thread other([&, w = own.writer()]() mutable {
        if (!thread) return run(makes(std::move(to), std::move(w), spans, made));
        const Outside token;
        for (int i = 0; i < 20; ++i) {
          w::FarSelect s;
          s.out_with(to,
                     [&] { return std::string(static_cast<std::size_t>(++made * 10'000), 'x'); });
          if (spans) s.out_with(w, [&] { return std::to_string(++made); });
          CHECK(s() >= 0);
        }
        to.retire();
        w.retire();
      });
      int got = 0;
      {
        Reader<std::string> r = c.reader(), o = own.reader();
        for (int i = 0; i < 20; ++i) {
          const std::string v = spans && i % 2 ? o() : r();
          got += spans && i % 2 ? v == std::to_string(i + 1)
                                : v.size() == static_cast<std::size_t>((i + 1) * 10'000);
        }
      }
      other.join();
      CHECK((got == 20 && made == 20));
    }
}

TEST_CASE(
    "wire 4.8: a function that throws is what the select throws; the reader gets PeerDied, and the "
    "channel goes on (rule 5.8)") {
  for (const bool spans : {false, true}) {
    Pair p;
    Channel<int> c, own;
    p.h->give(c.writer(), "to");
    auto to = p.f->writer<int>("to");
    Reader<int> unread = own.reader();
    std::thread other([&, w = own.writer(), token = Outside()]() mutable {
      w::FarSelect s;
      s.out_with(to, []() -> int { throw std::runtime_error("no value"); });
      if (spans) s.out(w, 1);
      CHECK_THROWS_WITH_AS(s(), "no value", std::runtime_error);
      to(8);
    });
    Reader<int> r = c.reader();
    CHECK_THROWS_AS(r(), PeerDied);
    CHECK(r() == 8);
    other.join();
  }
}

}  // namespace
}  // namespace wire_later
