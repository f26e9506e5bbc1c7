// Tests extended reads at far ends, and values that are given back (WIRE.md 4.6, 4.7, rule 1.6).
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/held.hpp"
#include "weft/wire/large.hpp"
#include "weft/wire/shm.hpp"
#include "weft/wire/stream.hpp"
#include "wire_pair.hpp"
#include "wire_world.hpp"

namespace wire_held {
namespace {
using namespace weft;
using weft::test::Op;
using weft::test::Wire;
namespace w = weft::wire;

// A home, and three spaces; each test puts the ends of one channel where it needs them.
struct World {
  std::shared_ptr<w::Space> home = w::Space::make("home", 1), far = w::Space::make("far", 2),
                            third = w::Space::make("third", 3);
  Wire a{*home, *far}, b{*home, *third};
  World() { pump(); }
  void pump() {
    for (bool any = true; any;) any = a.up() || a.down() || b.up() || b.down();
  }
  bool good() { return !a.at_home.session.is_over() && !b.at_home.session.is_over(); }
};

struct Rendezvous : World {
  Channel<int> c;
  std::uint32_t w = a.give(c.writer()), r = b.give(c.reader());
  Rendezvous() { pump(); }
};
struct Buffered : World {
  Channel<int> c{buffer(2)};
  std::uint32_t w = a.give(c.writer()), r = b.give(c.reader());
  Buffered() { pump(); }
};

TEST_CASE(
    "wire 4.6: the writer is told that its write is done when the block of an extended read is "
    "over (rule 1.6)") {
  Rendezvous t;
  Op write, read;
  write.write(t.w, 7).begin(t.a.at_party);
  read.hold(t.r).begin(t.b.at_party);
  t.pump();
  REQUIRE(read.ok());
  CHECK(read.value() == 7);
  CHECK_FALSE(write.is_over);
  write.withdraw();
  t.pump();
  CHECK_FALSE(write.is_over);  // The write has committed, and is held (rule 6.3).
  read.end_block();
  t.pump();
  CHECK((write.ok() && write.times == 1 && t.a.at_home.home.open() == 0 &&
         t.b.at_home.home.open() == 0 && t.good()));
}

TEST_CASE("wire 4.6: a write that comes second is held too, and so is one of the home's own") {
  Rendezvous t;
  Op read, write;
  read.hold(t.r).begin(t.b.at_party);
  t.pump();
  write.write(t.w, 7).begin(t.a.at_party);
  t.pump();
  CHECK((read.ok() && !write.is_over));
  read.end_block();
  t.pump();
  CHECK(write.ok());
  Op again;
  again.hold(t.r).begin(t.b.at_party);
  t.pump();
  std::atomic<bool> done{false};
  std::thread local([&, to = t.c.writer(), token = Outside()] {
    to(8);
    done = true;
  });
  while (!again.is_over) t.pump();
  CHECK((again.value() == 8 && !done));
  again.end_block();
  t.pump();
  local.join();
  CHECK(done);
}

TEST_CASE("wire 4.6: at a buffer the slot stays occupied until the block is over (rule 1.6)") {
  Buffered t;
  Op read, one, two, three;
  one.write(t.w, 1).begin(t.a.at_party);
  t.pump();
  read.hold(t.r).begin(t.b.at_party);
  t.pump();
  REQUIRE((one.ok() && read.ok()));
  two.write(t.w, 2).begin(t.a.at_party);
  t.pump();
  three.write(t.w, 3).begin(t.a.at_party);
  t.pump();
  CHECK((two.ok() && !three.is_over));
  read.end_block();
  t.pump();
  CHECK((three.ok() && t.good()));
}

TEST_CASE(
    "wire 4.6, 8.1: a reader that dies in its block: the writer goes on, its value had been taken "
    "(rule 1.6)") {
  Rendezvous t;
  Op write, read;
  write.write(t.w, 7).begin(t.a.at_party);
  read.hold(t.r).begin(t.b.at_party);
  t.pump();
  REQUIRE((read.ok() && !write.is_over));
  t.b.tell(t.b.at_home);
  t.pump();
  CHECK(write.ok());
}

TEST_CASE(
    "wire 4.7: a reader that dies in its block, and had asked for it: the next one reads the "
    "value, and the writer is held on") {
  Rendezvous t;
  const auto own = t.a.give(t.c.reader());
  t.pump();
  Op write, read, next;
  write.write(t.w, 7).begin(t.a.at_party);
  read.hold(t.r, true).begin(t.b.at_party);
  t.pump();
  REQUIRE((read.ok() && !write.is_over));
  SUBCASE("who waits already") {
    next.hold(own).begin(t.a.at_party);
    t.pump();
    CHECK_FALSE(next.is_over);
    t.b.tell(t.b.at_home);
  }
  SUBCASE("who comes later") {
    t.b.tell(t.b.at_home);
    t.pump();
    CHECK_FALSE(write.is_over);
    next.hold(own).begin(t.a.at_party);
  }
  t.pump();
  REQUIRE(next.ok());
  CHECK((next.value() == 7 && !write.is_over));
  next.end_block();
  t.pump();
  CHECK((write.ok() && write.times == 1));
}

TEST_CASE(
    "wire 4.7: what comes back goes before all that was written later, and several in the order in "
    "which they were read") {
  Buffered t;
  const auto own = t.a.give(t.c.reader());
  t.pump();
  std::array<Op, 4> write, read;
  for (int i = 0; i < 2; ++i) {
    write[static_cast<std::size_t>(i)].write(t.w, i).begin(t.a.at_party);
    t.pump();
    read[static_cast<std::size_t>(i)].hold(t.r, true).begin(t.b.at_party);
    t.pump();
  }
  REQUIRE((read[0].ok() && read[1].ok()));
  write[2].write(t.w, 2).begin(t.a.at_party);
  t.pump();
  CHECK_FALSE(write[2].is_over);  // Readers still hold both slots.
  t.b.tell(t.b.at_home);
  t.pump();
  for (int i = 0; i < 3; ++i) {
    Op next;
    next.read(own).begin(t.a.at_party);
    t.pump();
    REQUIRE(next.ok());
    CHECK(next.value() == i);
  }
  CHECK((write[2].ok() && t.c.dropped() == 0));
}

TEST_CASE(
    "wire 4.7: a value that a reader gives back is the next to be read; nobody has read it, so the "
    "channel has not ended meanwhile") {
  Buffered t;
  const auto own = t.a.give(t.c.reader());
  t.pump();
  Op write, read, next, last;
  write.write(t.w, 7).begin(t.a.at_party);
  t.pump();
  read.hold(t.r, true).begin(t.b.at_party);
  t.pump();
  next.read(own).begin(t.a.at_party);
  t.pump();
  t.a.retire(t.w);
  t.pump();
  REQUIRE((read.ok() && !next.is_over));  // No writer is left, but the value may be given back.
  SUBCASE("given back") {
    read.end_block(true);
    t.pump();
    REQUIRE(next.ok());
    CHECK(next.value() == 7);
    last.read(own).begin(t.a.at_party);
    t.pump();
    CHECK(last.status() == Status::retired);
  }
  SUBCASE("used") {
    read.end_block();
    t.pump();
    CHECK(next.status() == Status::retired);
  }
  CHECK(t.good());
}

TEST_CASE(
    "wire 4.7: what comes back to a poisoned channel, or when nobody will read it, is dropped, and "
    "its writer goes on (rule 1.6)") {
  const auto with = [](auto& t, bool poison) {
    Op write, read;
    write.write(t.w, 7).begin(t.a.at_party);
    t.pump();
    read.hold(t.r, true).begin(t.b.at_party);
    t.pump();
    poison ? t.b.poison(t.r, 1) : t.b.retire(t.r);
    t.pump();
    read.end_block(true);
    t.pump();
    CHECK((write.ok() && t.good() && t.b.at_home.home.open() == 0));
    return t.c.dropped();
  };
  for (const bool poison : {true, false}) {
    Rendezvous r;
    with(r, poison);
    Buffered b;
    CHECK(with(b, poison) == 1);
  }
}

TEST_CASE(
    "wire 4.6, 14.2: an extended read in a choice or to write, and a HELD-END of none, twice or "
    "that gives back what is not kept") {
  const auto why = [](auto&& does) {
    Rendezvous t;
    Op write, read;
    write.write(t.w, 7).begin(t.a.at_party);
    read.hold(t.r).begin(t.b.at_party);
    t.pump();
    REQUIRE(read.ok());
    does(t, read);
    t.pump();
    CHECK((t.b.at_home.session.is_over() && !t.a.at_home.session.is_over()));
    CHECK(write.ok());
    return t.b.at_home.session.why();
  };
  using F = w::Frame;
  CHECK(why([](auto& t, Op&) {
          t.b.to_home(F{w::Kind::held_end, 0, 0, 0, 99, 0, {}});
        }).find("of no read") != std::string::npos);
  CHECK(why([](auto&, Op& r) { r.end_block(), r.end_block(); }).find("of no read") !=
        std::string::npos);
  CHECK(why([](auto&, Op& r) { r.end_block(true); }).find("not to be kept") != std::string::npos);
  CHECK(why([](auto& t, Op&) {
          t.b.to_home(F{w::Kind::held_end, 0, 0, 0, 1, 2, {}});
        }).find("neither") != std::string::npos);
  CHECK(why([](auto& t, Op&) {
          t.b.to_home(F{w::Kind::offer, w::Flag::hold, 0, 0, 9, 2, {}});
        }).find("add up") != std::string::npos);
  CHECK(why([](auto& t, Op&) {
          t.b.to_home(F{w::Kind::offer, w::Flag::hold | w::Flag::write, 0, 0, 9, 0, {}});
        }).find("add up") != std::string::npos);
  CHECK(why([](auto& t, Op&) {
          const w::Buffer more(w::kMore);
          t.b.to_home(F{w::Kind::offer, w::Flag::hold, 0, 0, 9, 0, more});
        }).find("a choice") != std::string::npos);
}

TEST_CASE(
    "wire 4.6: a session that ends while the block is on: what is said of its end after that is "
    "nobody's business") {
  Rendezvous t;
  Op write, read;
  write.write(t.w, 7).begin(t.a.at_party);
  read.hold(t.r, true).begin(t.b.at_party);
  t.pump();
  t.b.tell(t.b.at_party);
  read.end_block(true);
  t.a.tell(t.a.at_home);  // The writer, whose write is held, is notified too.
  t.b.tell(t.b.at_home);
  CHECK(t.c.core()->transfers() == 1);
}

// --- programs (held.hpp) -------------------------------------------------------------------------

using test::Pair;

Process works(w::FarReader<int> r, Writer<int> done, std::atomic<bool>& inside) {
  for (;;) {
    auto x = co_await r.extended();
    inside = true;
    co_await done.write(*x * 2);
    inside = false;
  }
}

TEST_CASE_TEMPLATE(
    "wire 4.6: extended reads of a coroutine: its writer goes on when each block is over (rule "
    "1.6)",
    L, w::StreamLink, w::ShmLink) {
  Pair<L> p;
  Channel<int> c, results;
  p.h->give(c.reader(), "jobs");
  std::atomic<bool> inside{false};
  std::thread worker([&, out = results.writer()]() mutable {
    CHECK_THROWS_AS(run(works(p.f->template reader<int>("jobs"), std::move(out), inside)), Retired);
  });
  std::thread reads([&, in = results.reader(), token = Outside()] {
    for (int i = 0; i < 100; ++i) CHECK(in() == 2 * i);
  });
  Writer<int> to = c.writer();
  for (int i = 0; i < 100; ++i) {
    to(i);
    CHECK_FALSE(inside);
  }
  to.retire();
  reads.join();
  worker.join();
}

TEST_CASE_TEMPLATE(
    "wire 4.7: a worker that is gone in its block: what it had is read by the next one, whole, in "
    "a slot or not",
    L, w::StreamLink, w::ShmLink) {
  Channel<w::Large<int>> c;
  Reader<w::Large<int>> r = c.reader();
  auto first = std::make_unique<Pair<L>>();
  first->h->give(c.reader(), "jobs");
  std::thread writer([to = c.writer(), token = Outside()] {
    w::Large<int> all(20'000);
    for (int i = 0; i < 20'000; ++i) all[static_cast<std::size_t>(i)] = i;
    to(std::move(all));
  });
  {
    auto r = first->f->template reader<w::Large<int>>("jobs");
    auto x = r.extended(w::redeliver)();
    // The program dies when half of its work is done.
    for (std::size_t i = 0; i < 10'000; ++i) (*x)[i] = -1;
    first->f->bye("it is gone");
  }
  const w::Large<int> again = r();
  writer.join();
  REQUIRE(again.size() == 20'000);
  for (std::size_t i = 0; i < 20'000; ++i) REQUIRE(again[i] == static_cast<int>(i));
}

TEST_CASE(
    "wire 4.7: give_back() of a read without redeliver, and twice, is bad use; after it the next "
    "reader has the value") {
  Pair<w::StreamLink> p;
  Channel<std::string> c{buffer(4)};
  p.h->give(c.reader(), "jobs");
  Channel<std::string> d{buffer(1)};
  p.h->give(d.reader(), "more");
  Writer<std::string> to = c.writer(), more = d.writer();
  more("c");
  to("a"), to("b");
  auto r = p.f->reader<std::string>("jobs");
  {
    auto x = r.extended()();
    CHECK(*x == "a");
    CHECK_THROWS_AS(x.give_back(), BadUse);
  }
  {
    auto x = r.extended(w::redeliver)();
    CHECK(x->size() == 1);
    x.give_back();
    CHECK_THROWS_AS(x.give_back(), BadUse);
    CHECK(r() == "b");
  }
  {
    auto other = p.f->reader<std::string>("more");
    auto x = other.extended()();
    CHECK(*x == "c");
    other.retire();  // Only now, in the block, does the channel learn of the end.
    CHECK_THROWS_AS(more("d"), Retired);
  }
  to.retire();
  CHECK_THROWS_AS(r.extended()(), Retired);
  r.retire();
  CHECK_THROWS_AS(static_cast<void>(r.extended()), BadUse);
}

}  // namespace
}  // namespace wire_held
