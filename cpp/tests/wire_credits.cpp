// Tests credits: writes to a far buffer that do not wait for an answer (WIRE.md 6.2 to 6.5), with
// links that the test schedules.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "wire_world.hpp"

namespace wire_credits {
namespace {
using namespace weft;
using weft::test::Op;
using weft::test::Wire;
namespace w = weft::wire;

// A buffer at its home, and a far writer.
struct Lent : weft::test::Written {
  explicit Lent(std::size_t capacity) : Written(buffer(capacity)) {}
  // Makes one write that is answered. From then on there are credits.
  void begin_lending() {
    REQUIRE_FALSE(write(-1).is_over);
    pump();
    REQUIRE(ops.back().ok());
    REQUIRE(r() == -1);
    pump();
  }
};

TEST_CASE(
    "wire 6.2: after the first answer a write is over at once while there are credits, and no "
    "later than the buffer is full") {
  Lent t(4);
  t.begin_lending();
  CHECK(t.write(0).ok());
  t.pump();
  CHECK(t.r() == 0);
  t.pump();  // Half of the buffer is free, and its credits arrive: all slots are lent now.
  for (int v = 1; v < 5; ++v) CHECK(t.write(v).ok());
  Op& fifth = t.write(5);
  CHECK_FALSE(fifth.is_over);
  t.pump();
  CHECK_FALSE(fifth.is_over);
  // The visitor waits at the far place, so no offer is open at home.
  CHECK(t.a.at_home.home.open() == 0);
  CHECK(t.r() == 1);
  t.pump();
  CHECK(fifth.ok());  // No writer waits at a buffer with room (rule 1.4).
  for (int v = 2; v < 6; ++v) CHECK(t.r() == v);
}

TEST_CASE(
    "wire 6.2: slots come back by halves while nobody waits for them, so that not each read sends "
    "a frame") {
  Lent t(8);
  t.begin_lending();
  for (int v = 0; v < 3; ++v) CHECK(t.write(v).ok());
  t.pump();
  int frames = 0;
  for (int v = 0; v < 3; ++v) {
    CHECK(t.r() == v);
    frames += t.a.can_down();
  }
  // One CREDIT arrives, when half of the eight slots are free. (The values so far are -1, 0, 1, 2.)
  CHECK(frames == 1);
}

TEST_CASE("wire 6.2: many who wait are served as slots come, in their order") {
  Lent t(2);
  t.begin_lending();
  std::vector<Op*> all;
  for (int v = 0; v < 9; ++v) all.push_back(&t.write(v));
  t.pump();
  for (int v = 0; v < 9; ++v) {
    CHECK(t.r() == v);
    t.pump();
  }
  for (const Op* o : all) CHECK((o->ok() && o->times == 1));
}

TEST_CASE("wire 6.2: a buffer of one slot lends it, and gets it back each time") {
  Lent t(1);
  t.begin_lending();
  for (int v = 0; v < 5; ++v) {
    CHECK(t.write(v).ok());
    Op& next = t.write(100);
    CHECK_FALSE(next.is_over);
    next.withdraw();
    // The write is cancelled immediately, since no other party knows of the write.
    CHECK(next.status() == Status::cancelled);
    t.pump();
    CHECK(t.r() == v);
    t.pump();
  }
}

TEST_CASE(
    "wire 6.2: a reader that waits gets what was written on credit, straight away (rule 1.5)") {
  Lent t(2);
  t.begin_lending();
  const auto reading = t.b.give(t.c.reader());
  t.pump();
  Op read;
  read.read(reading).begin(t.b.at_party);
  t.pump();
  CHECK(t.write(7).ok());
  CHECK(t.write(8).ok());
  t.pump();
  REQUIRE(read.ok());
  CHECK(read.value() == 7);
  CHECK(t.write(9).ok());  // The slot of value 7 was returned.
  t.pump();
  CHECK(t.r() == 8);
  CHECK(t.r() == 9);
}

TEST_CASE("wire 6.2: a rendezvous, and a buffer that drops, lend nothing (wire 6.5)") {
  for (const ChannelOptions& o :
       {ChannelOptions{}, buffer(2, Overflow::drop_oldest), buffer(2, Overflow::unbounded)}) {
    const auto home = w::Space::make("home", 1), far = w::Space::make("far", 2);
    Channel<int> c(o);
    Reader<int> r = c.reader();
    Wire a(*home, *far);
    const auto end = a.give(c.writer());
    a.pump();
    for (int v = 0; v < 3; ++v) {
      Op o1;
      o1.write(end, v).begin(a.at_party);
      CHECK_FALSE(o1.is_over);
      a.pump();
      CHECK(r() == v);
      a.pump();
      CHECK(o1.ok());
    }
  }
}

TEST_CASE(
    "wire 6.2, 2.6: a peer whose HELLO does not say that it knows credits gets none, however it "
    "writes") {
  for (const std::uint32_t profile : {0u, w::Profile::home, w::Profile::credits}) {
    const auto home = w::Space::make("home", 1);
    Channel<int> c(buffer(4));
    Reader<int> r = c.reader();
    w::Peer p(*home);
    w::Buffer bytes;
    const w::Buffer lease(8);
    w::append(
        bytes,
        {w::Kind::hello, 0, w::kMagic, 0x0001'0001, 5, profile | std::uint64_t{4096} << 32, lease},
        0);
    const bool knows = profile == w::Profile::credits;
    // A peer that knows credits would not offer a second time, and this test has no peer that
    // answers the RECALL.
    const std::uint32_t writes = knows ? 1 : 3;
    for (std::uint32_t n = 1; n <= writes; ++n)
      w::append(bytes, {w::Kind::offer, w::Flag::write, 0, 0, n, n, {}}, n);
    {
      const w::Space::Step step(*home);
      p.session.greet();
      p.home.give(std::make_shared<w::PortOf<int, core::Side::out>>(c.writer()),
                  w::Value<int>::type(), "end", 0);
      p.session.input(bytes);
    }
    // The writes can continue: more than half of the buffer is free again.
    for (std::uint32_t v = 1; v <= writes; ++v) CHECK(r() == static_cast<int>(v));
    const w::Space::Step step(*home);
    std::uint32_t done = 0, lending = 0;
    const w::Bytes out = p.session.output();
    for (std::size_t at = 0; at < out.size();
         at += w::detail::get<std::uint16_t>(out.data() + at)) {
      const auto kind = static_cast<w::Kind>(out[at + 2]);
      done += kind == w::Kind::done;
      lending += kind == w::Kind::credit || kind == w::Kind::recall;
      lending += kind == w::Kind::done && w::detail::get<std::uint64_t>(out.data() + at + 24) != 0;
    }
    CHECK(done == writes);
    CHECK((lending > 0) == knows);
    p.session.lost("the test is over");
  }
}

TEST_CASE("wire 6.3: while somebody else has a writer end nothing is lent") {
  Lent t(4);
  Writer<int> mine = t.c.writer();
  Op& o = t.write(1);
  t.pump();
  CHECK(o.ok());
  CHECK(t.r() == 1);
  CHECK_FALSE(t.write(2).is_over);
  t.pump();
  mine.retire();
  Op& last = t.write(3);  // The home answers `last` when only one writer end is left.
  CHECK_FALSE(last.is_over);
  t.pump();
  CHECK(last.ok());
  CHECK(t.write(4).ok());
}

TEST_CASE(
    "wire 6.3: what another writes comes after all that was written on credit before it (rule "
    "1.3)") {
  // The other writer learns of the first write before the value of that write has arrived.
  for (const bool reader_waits : {false, true}) {
    CAPTURE(reader_waits);
    Lent t(4);
    t.begin_lending();
    const auto reading = t.b.give(t.c.reader());
    const auto other = t.b.give(t.c.writer());
    t.pump();
    Op first_read, second_read;
    if (reader_waits) {
      first_read.read(reading).begin(t.b.at_party);
      t.pump();
    }
    CHECK(t.write(1).ok());  // The value has not arrived yet.
    Op second;
    second.write(other, 2).begin(t.b.at_party);
    while (t.b.up()) {
    }
    CHECK_FALSE(first_read.is_over);
    CHECK_FALSE(second.is_over);
    t.pump();
    CHECK(second.ok());
    if (reader_waits)
      CHECK(first_read.value() == 1);
    else
      CHECK(t.r() == 1);
    CHECK(t.r() == 2);
    // From now on all writers use offers.
    Op& later = t.write(3);
    CHECK_FALSE(later.is_over);
    t.pump();
    CHECK(later.ok());
    CHECK(t.r() == 3);
  }
}

TEST_CASE("wire 6.3: so it is with a process at the home, whose write waits for the recall") {
  Lent t(4);
  t.begin_lending();
  CHECK(t.write(1).ok());
  CHECK(t.write(2).ok());
  Writer<int> mine = t.c.writer();
  std::atomic<bool> done{false};
  std::thread other([&] {
    mine(3);
    done = true;
  });
  while (!weft::test::somebody_waits(*t.r.core())) std::this_thread::yield();
  CHECK_FALSE(done.load());
  const auto recalled = [&] {
    const w::Space::Step step(*t.home);
    return t.a.can_down();
  };
  while (!recalled()) std::this_thread::yield();
  t.pump();
  other.join();
  CHECK(t.r() == 1);
  CHECK(t.r() == 2);
  CHECK(t.r() == 3);
}

TEST_CASE(
    "wire 6.3: a write that waits for a credit when they are recalled is offered, and happens "
    "once") {
  Lent t(2);
  t.begin_lending();
  CHECK(t.write(1).ok());
  CHECK(t.write(2).ok());
  Op& waits = t.write(3);
  const auto other = t.b.give(t.c.writer());
  t.pump();
  Op second;
  second.write(other, 4).begin(t.b.at_party);
  t.pump();
  CHECK_FALSE(waits.is_over);
  CHECK_FALSE(second.is_over);
  std::vector<int> got;
  for (int i = 0; i < 4; ++i) {
    got.push_back(t.r());
    t.pump();
  }
  CHECK(waits.ok());
  CHECK(second.ok());
  CHECK(waits.times == 1);
  CHECK((got[0] == 1 && got[1] == 2 && got[2] + got[3] == 7));
}

TEST_CASE("wire 6.3: a choice with the end gives the credits up, and is decided by the home") {
  Lent t(2);
  t.begin_lending();
  Channel<int> d;
  const auto rd = t.a.give(d.reader());
  t.pump();
  CHECK(t.write(1).ok());
  CHECK(t.write(2).ok());
  Op& waits = t.write(3);
  Op choice;
  choice.read(rd).write(t.end, 4).begin(t.a.at_party);
  t.pump();
  CHECK_FALSE(choice.is_over);
  std::vector<int> got{t.r(), t.r()};
  t.pump();
  CHECK(waits.ok());
  REQUIRE(choice.ok());
  CHECK(choice.outcome.guard == 1);
  CHECK(got == std::vector{1, 2});
  CHECK(t.r() == 3);
  CHECK(t.r() == 4);
  t.pump();
}

TEST_CASE("wire 6.3: a CREDIT that crosses the RECALLED is passed over") {
  Lent t(2);
  t.begin_lending();
  CHECK(t.write(1).ok());
  CHECK(t.write(2).ok());
  t.pump();
  CHECK(t.r() == 1);  // A CREDIT has now been sent.
  CHECK(t.a.can_down());
  Op choice;
  choice.write(t.end, 3).write(t.a.give(Channel<int>().writer()), 9);
  {
    const w::Space::Step step(*t.far);
    t.a.at_party.far.give_up(t.end);
  }
  t.a.down();
  Op& later = t.write(3);
  CHECK_FALSE(later.is_over);
  t.pump();
  CHECK(later.ok());
  CHECK(t.r() == 2);
  CHECK(t.r() == 3);
  CHECK(t.a.at_home.session.state() == w::Session::State::open);
  CHECK(t.a.at_party.session.state() == w::Session::State::open);
}

TEST_CASE(
    "wire 6.4: poison: what is written on credit before the recall arrives is lost with the "
    "buffer; then a write is told") {
  Lent t(4);
  t.begin_lending();
  CHECK(t.write(1).ok());
  t.r.poison(2);
  CHECK(t.write(2).ok());
  t.pump();
  Op& told = t.write(3);
  t.pump();
  CHECK(told.status() == Status::poisoned);
  CHECK(told.outcome.strength == 2);
}

TEST_CASE("wire 6.3: poison through the end itself: the next write is told (rule 4.2)") {
  Lent t(4);
  t.begin_lending();
  CHECK(t.write(1).ok());
  t.a.poison(t.end, 1);
  Op& told = t.write(2);
  CHECK_FALSE(told.is_over);
  t.pump();
  CHECK(told.status() == Status::poisoned);
}

TEST_CASE(
    "wire 6.4: the readers go: a write is told, also one that waits for a credit (rule 3.3)") {
  Lent t(1);
  t.begin_lending();
  CHECK(t.write(1).ok());
  Op& waits = t.write(2);
  t.r.retire();
  t.pump();
  CHECK(waits.status() == Status::retired);
  Op& later = t.write(3);
  t.pump();
  CHECK(later.status() == Status::retired);
}

TEST_CASE("wire 6.3: an end that is given back before its write is answered keeps no credits") {
  Lent t(2);
  Op& o = t.write(1);
  t.a.retire(t.end);
  t.pump();
  CHECK(o.ok());
  CHECK(t.a.at_party.far.lendings() == 0);
  CHECK(t.r() == 1);
  CHECK_THROWS_AS(t.r(), Retired);
}

TEST_CASE(
    "wire 7.3: the end is given back: what was written on credit, and what waits for one, is read "
    "first (rules 3.1, 3.2)") {
  Lent t(2);
  t.begin_lending();
  CHECK(t.write(1).ok());
  CHECK(t.write(2).ok());
  Op& waits = t.write(3);
  t.a.retire(t.end);
  t.pump();
  for (int v = 1; v <= 3; ++v) CHECK(t.r() == v);
  t.pump();
  CHECK(waits.ok());
  CHECK_THROWS_AS(t.r(), Retired);
}

TEST_CASE(
    "wire 6.4, 8: the writer's space dies: what has arrived is read, then the end has died (rule "
    "4.5)") {
  Lent t(4);
  t.begin_lending();
  CHECK(t.write(1).ok());
  CHECK(t.write(2).ok());
  t.a.up();
  t.a.cut = true;  // Value 2 is lost.
  t.a.tell(t.a.at_home);
  CHECK(t.r() == 1);
  CHECK_THROWS_AS(t.r(), PeerDied);
}

TEST_CASE(
    "wire 6.4, 8: the home dies: success stands, who waits for a credit is told, and is not in "
    "doubt") {
  Lent t(1);
  t.begin_lending();
  CHECK(t.write(1).ok());
  Op& waits = t.write(2);
  t.a.cut = true;
  t.a.tell(t.a.at_party);
  REQUIRE(waits.status() == Status::died);
  CHECK(waits.outcome.lost);
  CHECK_FALSE(waits.outcome.in_doubt);
  CHECK(t.write(3).status() == Status::died);
}

TEST_CASE(
    "wire 6.2, 14.2: a PUT or RECALLED without credits, and a PUT with a strange value, end the "
    "session") {
  struct Bad {
    bool lent;
    w::Frame frame;
    const char* says;
  };
  static const std::array<std::byte, 8> body{};
  const Bad all[] = {
      {false, {w::Kind::put, 0, 0, 0, 0, 1, {}}, "without credits"},
      {false, {w::Kind::recalled, 0, 0, 0, 0, 0, {}}, "without credits"},
      {true, {w::Kind::put, 0, 7, 0, 0, 1, {}}, "without credits"},
      {true, {w::Kind::put, 0, 0, 0, 0, 1ull << 40, {}}, "not of its channel's type"},
      {true, {w::Kind::put, w::Flag::body, 0, 0, 0, 8, body}, "not of its channel's type"},
  };
  for (const Bad& bad : all) {
    CAPTURE(bad.says);
    Lent t(2);
    if (bad.lent) t.begin_lending();
    t.a.to_home(bad.frame);
    t.pump();
    CHECK(t.a.at_home.session.is_over());
    CHECK(t.a.at_home.session.why().find(bad.says) != std::string::npos);
    // The end of that space has died, and the lent slots belong to no one.
    CHECK_THROWS_AS(t.r(), PeerDied);
  }
  Lent t(2);
  t.begin_lending();
  for (int v = 0; v < 3; ++v) t.a.to_home({w::Kind::put, 0, 0, 0, 0, 1, {}});
  t.pump();
  CHECK(t.a.at_home.session.why().find("a PUT without a credit") != std::string::npos);
  CHECK(t.r() == 1);
  CHECK(t.r() == 1);
  CHECK_THROWS_AS(t.r(), PeerDied);
}

TEST_CASE("wire 6.2, 14.2: a CREDIT that makes no sense ends the session at the writer's side") {
  const w::Frame all[] = {
      {w::Kind::credit, 0, 0, 0, 0, 0, {}},
      {w::Kind::credit, 0, 0, 0, 0, 1ull << 40, {}},
  };
  for (const w::Frame& f : all) {
    Lent t(2);
    t.begin_lending();
    {
      const w::Space::Step step(*t.home);
      t.a.at_home.session.send(f);
    }
    t.pump();
    CHECK(t.a.at_party.session.is_over());
  }
  // A lending begins with the DONE of a plain write, and never during another lending.
  for (const bool choice : {true, false}) {
    Lent t(2);
    t.begin_lending();
    const auto d = t.a.give(Channel<int>().writer());
    t.pump();
    Op o, later;
    if (choice) {
      o.write(t.end, 1).write(d, 2).begin(t.a.at_party);
    } else {
      o.write(d, 1).begin(t.a.at_party);
      later.write(d, 2).begin(t.a.at_party);
    }
    t.a.up();  // The RECALLED or the first OFFER arrives; no write is answered yet.
    const auto done = [&](std::uint64_t op) {
      const w::Space::Step step(*t.home);
      t.a.at_home.session.send({w::Kind::done, 0, 0, 0, op, 3, {}});
    };
    done(2);
    if (!choice) {
      t.a.down();
      CHECK(o.ok());
      CHECK_FALSE(t.a.at_party.session.is_over());
      done(3);
    }
    t.a.down();
    CHECK(t.a.at_party.session.is_over());
  }
}

// All spaces write and read at random, all at the same time. The values of one space are read in
// their order, each once; values are lost only where the rules allow it.
TEST_CASE(
    "wire 6: random writes, reads, choices, withdrawals and second writers: in order, once, and "
    "never more than the buffer holds") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 rnd(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<int>(rnd() % n); };
    const std::size_t capacity = 1 + rnd() % 5;
    Lent t(capacity);
    std::uint32_t other = 0;
    bool two = false;
    std::deque<Op> theirs;
    struct Written {
      Op* op;
      int v;
      int begun, over = 1000;  // the steps at which the write began and ended
    };
    std::vector<Written> mine;
    std::vector<int> read;
    int next = 1, foreign = 1'000'000;
    const auto ready = [&] {
      bool now = false;
      t.r.core()->look<core::Side::in>(now);
      return now;
    };
    for (int step = 0; step < 60; ++step) {
      switch (below(7)) {
        case 0:
        case 1:
        case 2: {
          Op& o = t.write(next);
          mine.push_back({&o, next++, step});
          break;
        }
        case 3:
          if (ready()) read.push_back(t.r());
          break;
        case 4:
          for (int n = below(4); n > 0; --n) {
            const bool any = below(2) == 0 ? t.a.up() || t.b.up() : t.a.down() || t.b.down();
            static_cast<void>(any);
          }
          break;
        case 5:
          if (!mine.empty() && below(2) == 0) mine.back().op->withdraw();
          break;
        case 6:
          if (below(4) != 0) break;
          if (!two) {
            two = true;
            other = t.b.give(t.c.writer());
            t.b.pump();
          }
          theirs.emplace_back().write(other, foreign++).begin(t.b.at_party);
          break;
      }
      for (Written& x : mine)
        if (x.op->is_over && x.over == 1000) x.over = step;
      const auto in =
          std::count_if(mine.begin(), mine.end(), [](const Written& x) { return x.op->ok(); });
      std::size_t taken = 0;
      for (const int v : read) taken += v < 1'000'000;
      REQUIRE(static_cast<std::size_t>(in) <= taken + capacity);
    }
    for (t.pump(); ready(); t.pump()) read.push_back(t.r());
    for (const Written& x : mine) {
      REQUIRE(x.op->is_over);
      REQUIRE(x.op->times == 1);
      REQUIRE(std::count(read.begin(), read.end(), x.v) == (x.op->ok() ? 1 : 0));
    }
    // A value whose write began after another write had ended is read after the other write's
    // value.
    std::vector<Written> in_order;
    for (const int v : read)
      if (v < 1'000'000) in_order.push_back(mine[static_cast<std::size_t>(v - 1)]);
    for (std::size_t i = 0; i < in_order.size(); ++i)
      for (std::size_t j = i + 1; j < in_order.size(); ++j)
        REQUIRE(in_order[j].over >= in_order[i].begun);
    for (const Op& o : theirs) REQUIRE(o.ok());
  }
}

}  // namespace
}  // namespace wire_credits
