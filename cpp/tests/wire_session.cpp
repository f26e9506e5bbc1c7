// Tests sessions, homes and far operations, with links that the test schedules (WIRE.md 2, 4, 7, 8,
// 14).
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "wire_world.hpp"

namespace wire_session {
namespace {
using namespace weft;
using weft::test::Op;
using weft::test::Wire;
namespace w = weft::wire;

struct Two {
  std::shared_ptr<w::Space> home = w::Space::make("home", 1), far = w::Space::make("far", 2),
                            third = w::Space::make("third", 3);
  Wire a{*home, *far}, b{*home, *third};
  Two() { pump(); }
  void pump() {
    for (bool any = true; any;) any = a.up() || a.down() || b.up() || b.down();
  }
};

TEST_CASE("wire 2.3: two spaces greet each other, and know each other's names") {
  Two t;
  CHECK(t.a.at_home.session.state() == w::Session::State::open);
  CHECK(t.a.at_party.session.state() == w::Session::State::open);
  CHECK(t.a.at_home.session.theirs().name == "far");
  CHECK(t.a.at_party.session.theirs().incarnation == 1);
}

TEST_CASE("wire 7.1, 7.2: an end that is handed out arrives with number, side, type and name") {
  Two t;
  Channel<int> c;
  CHECK(t.a.give(c.writer()) == 0);
  CHECK(t.a.give(c.reader()) == 1);
  t.pump();
  const auto& got = t.a.at_party.offered;
  REQUIRE(got.size() == 2);
  CHECK((got[0].writes && !got[1].writes));
  CHECK((got[1].end == 1 && got[1].type == "i4" && got[1].name == "end"));
}

TEST_CASE(
    "wire 4.1: a remote write meets a remote read; a write is done when a reader has the value "
    "(rule 1.1)") {
  Two t;
  Channel<int> c;
  const auto w = t.a.give(c.writer());
  const auto r = t.b.give(c.reader());
  t.pump();
  Op write, read;
  write.write(w, 7).begin(t.a.at_party);
  t.pump();
  CHECK_FALSE(write.is_over);
  read.read(r).begin(t.b.at_party);
  t.pump();
  REQUIRE((read.ok() && write.ok()));
  CHECK(read.value() == 7);
  CHECK(t.a.at_home.home.open() == 0);
  CHECK((write.times == 1 && read.times == 1));
}

// Takes the frames that are flushed, and records them in one order over all links.
struct Recorder final : w::Link {
  struct Went {
    int link;
    w::Kind kind;
    std::uint64_t op;
    bool operator==(const Went&) const = default;
  };
  static inline std::vector<Went> order;
  int me;
  w::Peer& peer;
  Recorder(int n, w::Peer& p) : me(n), peer(p) { p.link = this; }
  ~Recorder() { peer.link = nullptr; }
  void flush() noexcept override {
    while (!peer.session.output().empty()) {
      const w::Bytes out = peer.session.output();
      const auto n = w::detail::get<std::uint16_t>(out.data());
      order.push_back(
          {me, static_cast<w::Kind>(out[2]), w::detail::get<std::uint64_t>(out.data() + 16)});
      peer.session.went(n);
    }
  }
};

TEST_CASE(
    "wire 4.2: the reader's answer goes out before the writer's, whichever came last and whatever "
    "else the step has to say") {
  for (const int last : {0, 1, 2}) {
    CAPTURE(last);
    Two t;
    Channel<int> c, full{buffer(1)};
    const auto w = t.a.give(c.writer()), put = t.a.give(full.writer());
    const auto r = t.b.give(c.reader());
    t.pump();
    Recorder::order.clear();
    Recorder a(0, t.a.at_home), b(1, t.b.at_home);
    Op write, other, read;
    if (last == 0) {  // The reader is the last party.
      write.write(w, 7).begin(t.a.at_party);
      t.a.up();
      read.read(r).begin(t.b.at_party);
      t.b.up();
    } else {
      read.read(r).begin(t.b.at_party);
      t.b.up();
      // The writer is the last party. In case 2 the writer's session already has an answer to send,
      // from the same step.
      if (last == 2) other.write(put, 1).begin(t.a.at_party);
      write.write(w, 7).begin(t.a.at_party);
      const w::Buffer all(t.a.at_party.session.output().begin(),
                          t.a.at_party.session.output().end());
      t.a.at_party.session.went(all.size());
      const w::Space::Step step(*t.home);
      t.a.at_home.session.input(all);
    }
    const auto at = [&](int link, std::uint64_t op) {
      return std::find(Recorder::order.begin(), Recorder::order.end(),
                       Recorder::Went{link, w::Kind::done, op}) -
             Recorder::order.begin();
    };
    const std::uint64_t write_op = last == 2 ? 2 : 1;
    REQUIRE(at(0, write_op) < static_cast<std::ptrdiff_t>(Recorder::order.size()));
    CHECK(at(1, 1) < at(0, write_op));
  }
}

struct Foreign : core::Waker {
  static constexpr core::WakerOps kOps{
      .wake = [](core::Waker*) noexcept {}, .run = nullptr, .tell = [](core::Waker*) noexcept {}};
  Foreign() { ops = &kOps; }
};

TEST_CASE("wire 4.2: so it is when a third party's leaving lets the two meet, who both sleep") {
  Two t;
  Channel<int> c;
  const auto w = t.a.give(c.writer());
  const auto r = t.b.give(c.reader());
  t.pump();
  // A foreign reader (rule 6.6) is first in the waiting queue. It is notified, and then withdraws.
  Foreign foreign;
  weft::detail::Slot<int> slot;
  foreign.slot = &slot;
  Reader<int> mine = c.reader();
  REQUIRE(mine.core()->begin_foreign(foreign) == Status::pending);
  Op write, read;
  read.read(r).begin(t.b.at_party);
  t.pump();
  write.write(w, 7).begin(t.a.at_party);
  t.pump();
  CHECK((!write.is_over && !read.is_over));
  Recorder::order.clear();
  Recorder a(0, t.a.at_home), b(1, t.b.at_home);
  REQUIRE(mine.core()->withdraw<core::Side::in>(foreign));
  REQUIRE(Recorder::order.size() == 2);
  CHECK(Recorder::order[0] == Recorder::Went{1, w::Kind::done, 1});
  CHECK(Recorder::order[1] == Recorder::Went{0, w::Kind::done, 1});
}

TEST_CASE(
    "wire 1.4: a remote party is a visitor like any other: a local read takes a remote write, and "
    "the other way round") {
  Two t;
  Channel<int> c, d{buffer(1)};
  const auto w = t.a.give(c.writer());
  const auto r = t.a.give(d.reader());
  t.pump();
  Op write, read;
  write.write(w, 5).begin(t.a.at_party);
  read.read(r).begin(t.a.at_party);
  t.pump();
  Reader<int> here = c.reader();
  Writer<int> there = d.writer();
  CHECK(here() == 5);  // The read of a thread finds the write waiting.
  there(6);            // The waiting reader gets the value (rule 1.5).
  t.pump();
  REQUIRE((write.ok() && read.ok()));
  CHECK(read.value() == 6);
}

TEST_CASE(
    "wire 4.3: a withdrawal is a question; asked too late, the operation has happened (rules 6.2, "
    "6.3)") {
  Two t;
  Channel<int> c;
  const auto w = t.a.give(c.writer());
  t.pump();
  Reader<int> r = c.reader();
  Op first, second;
  first.write(w, 1).begin(t.a.at_party);
  t.pump();
  first.withdraw();
  CHECK_FALSE(first.is_over);
  t.pump();
  CHECK(first.status() == Status::cancelled);
  second.write(w, 2).begin(t.a.at_party);
  t.pump();
  second.withdraw();  // The withdrawal has not arrived when the value is taken.
  CHECK(r() == 2);
  t.pump();
  CHECK(second.ok());
  CHECK((first.times == 1 && second.times == 1));
}

TEST_CASE(
    "wire 4.5: a choice of one home: exactly one of its guards, and the others leave no trace "
    "(rules 5.1, 5.10)") {
  Two t;
  Channel<int> c, d;
  const auto rc = t.a.give(c.reader());
  const auto wd = t.a.give(d.writer());
  t.pump();
  Writer<int> to_c = c.writer();
  Reader<int> from_d = d.reader();
  Op choice;
  choice.read(rc).write(wd, 9).begin(t.a.at_party);
  t.pump();
  CHECK_FALSE(choice.is_over);
  CHECK(from_d() == 9);
  t.pump();
  REQUIRE(choice.ok());
  CHECK(choice.outcome.guard == 1);
  Op again;
  again.read(rc).write(wd, 10).begin(t.a.at_party);
  t.pump();
  to_c(3);
  t.pump();
  REQUIRE(again.ok());
  CHECK(again.outcome.guard == 0);
  CHECK(again.value() == 3);
  Op off;
  off.read(rc).write(wd, 11).begin(t.a.at_party);
  t.pump();
  off.withdraw();
  t.pump();
  CHECK(off.status() == Status::cancelled);
}

TEST_CASE("wire 4.5: a choice that is ready at once takes the first that is (rule 5.4)") {
  Two t;
  Channel<int> c{buffer(1)}, d{buffer(1)};
  const auto rc = t.a.give(c.reader());
  const auto rd = t.a.give(d.reader());
  t.pump();
  Writer<int> wc = c.writer(), wd = d.writer();
  wc(1), wd(2);
  Op choice;
  choice.read(rd).read(rc).begin(t.a.at_party);
  t.pump();
  REQUIRE(choice.ok());
  CHECK(choice.outcome.guard == 0);
  CHECK(choice.value() == 2);
}

TEST_CASE(
    "wire 6.1: a write to a buffer is done once it is in it; a full one makes it wait (rule 1.3)") {
  Two t;
  Channel<int> c{buffer(1)};
  const auto w = t.a.give(c.writer());
  t.pump();
  Reader<int> r = c.reader();
  Op one, two;
  one.write(w, 1).begin(t.a.at_party);
  two.write(w, 2).begin(t.a.at_party);
  t.pump();
  CHECK((one.ok() && !two.is_over));
  CHECK(r() == 1);
  t.pump();
  CHECK(two.ok());
  CHECK(r() == 2);
}

TEST_CASE(
    "wire 7.3: a write that waits when its end is closed still delivers; then the channel has "
    "retired (rules 3.1, 3.2)") {
  Two t;
  Channel<int> c;
  const auto w = t.a.give(c.writer());
  const auto r = t.b.give(c.reader());
  t.pump();
  Op write, read, more;
  write.write(w, 4).begin(t.a.at_party);
  t.a.retire(w);
  t.pump();
  read.read(r).begin(t.b.at_party);
  t.pump();
  CHECK((write.ok() && read.ok()));
  more.read(r).begin(t.b.at_party);
  t.pump();
  CHECK(more.status() == Status::retired);
}

TEST_CASE(
    "wire 3.4: poison comes back with its strength, to those who wait and to those who come (rule "
    "4.2)") {
  Two t;
  Channel<int> c;
  const auto w = t.a.give(c.writer());
  const auto r = t.b.give(c.reader());
  t.pump();
  Op read, later;
  read.read(r).begin(t.b.at_party);
  t.pump();
  t.a.poison(w, 3);
  t.pump();
  CHECK((read.status() == Status::poisoned && read.outcome.strength == 3));
  later.write(w, 1).begin(t.a.at_party);
  t.pump();
  CHECK((later.status() == Status::poisoned && !later.outcome.in_doubt));
}

TEST_CASE(
    "wire 2.5, 8: when a party's session ends its offers vanish and its ends have died (rule "
    "4.5)") {
  Two t;
  Channel<int> c;
  const auto w = t.a.give(c.writer());
  const auto r = t.b.give(c.reader());
  t.pump();
  Op write, read;
  write.write(w, 1).begin(t.a.at_party);
  t.pump();
  t.a.cut = true;
  t.a.tell(t.a.at_home);
  read.read(r).begin(t.b.at_party);
  t.pump();
  CHECK(read.status() == Status::died);
  CHECK_FALSE(write.is_over);  // The writer's side has not yet been notified.
  t.a.tell(t.a.at_party);
  CHECK((write.status() == Status::died && write.outcome.in_doubt));
}

TEST_CASE(
    "wire 8.1, 8.3: a read that loses its home is not in doubt, and an operation after the end was "
    "never sent") {
  Two t;
  Channel<int> c;
  const auto r = t.a.give(c.reader());
  const auto w = t.a.give(c.writer());
  t.pump();
  Op read, late;
  read.read(r).begin(t.a.at_party);
  t.a.tell(t.a.at_party);
  CHECK((read.status() == Status::died && !read.outcome.in_doubt));
  late.write(w, 1).begin(t.a.at_party);
  CHECK((late.is_over && late.status() == Status::died && !late.outcome.in_doubt));
}

TEST_CASE("wire 8.2: a choice with an output among its guards is in doubt as a whole") {
  Two t;
  Channel<int> c, d;
  const auto r = t.a.give(c.reader());
  const auto w = t.a.give(d.writer());
  t.pump();
  Op choice;
  choice.read(r).write(w, 1).begin(t.a.at_party);
  t.a.tell(t.a.at_party);
  CHECK((choice.status() == Status::died && choice.outcome.in_doubt));
}

TEST_CASE(
    "wire 2.4: what arrived whole before the notice is processed first; the other side's BYE says "
    "why") {
  Two t;
  Channel<int> c;
  const auto w = t.a.give(c.writer());
  t.pump();
  Reader<int> r = c.reader();
  Op write;
  write.write(w, 8).begin(t.a.at_party);
  t.a.up();
  t.a.tell(t.a.at_home);  // The offer had arrived at the home, which withdraws it.
  {
    const w::Space::Step step(*t.far);
    t.a.at_party.session.bye("it is late");
  }
  CHECK(t.a.at_party.session.why() == "it is late");
  CHECK_THROWS_AS(r(), PeerDied);
  Two u;
  {
    const w::Space::Step step(*u.far);
    u.a.at_party.session.bye("it is late");
  }
  u.pump();
  CHECK(u.a.at_home.session.why() == "the peer said: it is late");
}

// --- hostile peers (WIRE.md 14) ------------------------------------------------------------------

struct Hostile : Two {
  Channel<int> c, other;
  std::uint32_t writer, reader;
  Writer<int> keeps_writers = c.writer();
  Reader<int> keeps_readers = c.reader();
  Hostile() : writer(a.give(c.writer())), reader(a.give(c.reader())) {
    b.give(other.writer());
    pump();
  }
  // Sends a frame that is refused, and returns the reason. The other session and the channel
  // continue to work.
  std::string refused(const w::Frame& f) {
    a.to_home(f);
    pump();
    REQUIRE(a.at_home.session.is_over());
    REQUIRE(a.at_party.session.is_over());
    REQUIRE_FALSE(b.at_home.session.is_over());
    CHECK(a.at_home.home.open() == 0);
    return a.at_home.session.why();
  }
};

TEST_CASE("wire 14.1, 14.2: what a peer may not do ends its session and no other, with a reason") {
  const auto refused = [](auto&& make) { return Hostile().refused(make(Hostile())); };
  const auto frame = [&](const w::Frame& f) { return refused([&](const Hostile&) { return f; }); };
  CHECK(frame({w::Kind::offer, 0, 2, 0, 1, 0, {}}) ==
        "an OFFER at an end that this peer does not hold");
  CHECK(frame({w::Kind::offer, 0, 0xFFFFFFFF, 0, 1, 0, {}}) ==
        "an OFFER at an end that this peer does not hold");
  CHECK(frame({w::Kind::offer, 0, 0, 0, 1, 0, {}}) ==
        "an OFFER to write at a reader end, or to read at a writer end");
  CHECK(frame({w::Kind::offer, w::Flag::write, 1, 0, 1, 0, {}}) ==
        "an OFFER to write at a reader end, or to read at a writer end");
  CHECK(frame({w::Kind::offer, w::Flag::write, 0, 0, 0, 0, {}}) ==
        "an OFFER's number is not above those before it");
  CHECK(frame({w::Kind::offer, w::Flag::write, 0, 0, 1, std::uint64_t{1} << 40, {}}) ==
        "an OFFER with a value that is not of its channel's type");
  CHECK(frame({w::Kind::offer, 0, 1, 0, 1, 7, {}}) == "an OFFER's guards do not add up");
  CHECK(frame({w::Kind::retire, 0, 5, 0, 0, 0, {}}) ==
        "a RETIRE of an end that this peer does not hold");
  CHECK(frame({w::Kind::retire, 0, 0, 0, 0, 2, {}}) ==
        "a RETIRE that says neither retired nor died");
  CHECK(frame({w::Kind::poison, 0, 5, 0, 0, 1, {}}) ==
        "a POISON through an end that this peer does not hold");
  CHECK(frame({w::Kind::poison, 0, 0, 0, 0, 0, {}}) ==
        "a POISON whose strength is not between 1 and 255");
  CHECK(frame({w::Kind::poison, 0, 0, 0, 0, 256, {}}) ==
        "a POISON whose strength is not between 1 and 255");
  CHECK(frame({w::Kind::hello, 0, w::kMagic, 0, 9, 0, {}}) == "a second HELLO");
}

TEST_CASE(
    "wire 14.2: both ends of one channel in an offer are bad use at its place, and the session "
    "goes on") {
  Two t;
  Channel<int> c;
  const auto w = t.a.give(c.writer()), r = t.a.give(c.reader());
  t.pump();
  Op both;
  both.read(r).write(w, 1).begin(t.a.at_party);
  t.pump();
  CHECK(both.outcome.status == Status::pending);
  CHECK(std::string(both.refused).find("both ends of one channel") != std::string::npos);
  CHECK_FALSE(t.a.at_party.session.is_over());
  Op write;
  write.write(w, 2).begin(t.a.at_party);
  t.pump();
  CHECK(c.reader()() == 2);
}

TEST_CASE(
    "wire 3.6: answers to what is not open are passed over; answers that lie end the session") {
  Two t;
  Channel<int> c;
  const auto r = t.a.give(c.reader());
  t.pump();
  const auto from_home = [&](const w::Frame& f) {
    const w::Space::Step step(*t.home);
    t.a.at_home.session.send(f);
  };
  from_home({w::Kind::done, 0, 0, 0, 77, 0, {}});
  from_home({w::Kind::withdrawn, 0, 0, 0, 77, 0, {}});
  from_home({w::Kind::ended, 0, 0, 0, 77, 1, {}});
  t.a.to_home({w::Kind::withdraw, 0, 0, 0, 77, 0, {}});
  t.pump();
  CHECK_FALSE(t.a.at_party.session.is_over());
  const std::pair<w::Frame, const char*> lies[] = {
      {{w::Kind::done, 0, 1, 0, 1, 0, {}}, "a DONE of a guard that was not offered"},
      {{w::Kind::done, 0, 0, 0, 1, std::uint64_t{1} << 33, {}},
       "a DONE with a value that is not of its channel's type"},
      {{w::Kind::withdrawn, 0, 0, 0, 1, 0, {}}, "a WITHDRAWN that was not asked for"},
      {{w::Kind::ended, 0, 9, 0, 1, 1, {}}, "an ENDED of a guard that was not offered"},
      {{w::Kind::ended, 0, 0, 0, 1, 7, {}}, "an ENDED that does not say how"},
      {{w::Kind::ended, 0, 0, 0, 1, 2, {}}, "an ENDED that does not say how"},
      {{w::Kind::give, 0, 5, 0, 0, 0, {}}, "a GIVE without its key"},
  };
  for (const auto& [lie, reason] : lies) {
    Two u;
    Channel<int> d;
    const auto e = u.a.give(d.reader());
    u.pump();
    Op read;
    read.read(e).begin(u.a.at_party);
    {
      const w::Space::Step step(*u.home);
      u.a.at_home.session.send(lie);
    }
    u.a.down();
    CHECK(u.a.at_party.session.why() == reason);
    CHECK((read.status() == Status::died && read.times == 1));
  }
  (void)r;
}

TEST_CASE(
    "wire 9: pieces of a value: those that belong to nothing are passed over, those that do not "
    "add up end the session") {
  const std::pair<bool, const char*> cases[] = {
      {true, "a DONE with a value that is not of its channel's type"},
      {false, "a DONE that is not the last piece of its value"}};
  for (const auto& [body, reason] : cases) {
    Two t;
    Channel<int> c;
    const auto r = t.a.give(c.reader());
    t.pump();
    Op read;
    read.read(r).begin(t.a.at_party);
    const w::Buffer bytes(8);
    const w::Space::Step step(*t.home);
    t.a.at_home.session.send({w::Kind::value, 0, 0, 0, 77, 8, bytes});
    t.a.at_home.session.send({w::Kind::value, 0, 0, 0, 1, 8, bytes});
    t.a.at_home.session.send(w::Frame{w::Kind::done, body ? w::Flag::body : std::uint8_t{0}, 0, 0,
                                      1, body ? 8u : 0u, body ? w::Bytes(bytes) : w::Bytes()});
    while (t.a.down()) {
    }
    CHECK(t.a.at_party.session.why() == reason);
    CHECK(read.times == 1);
  }
  // The home reports that the value would be too large: the read is refused, and the session stays
  // open.
  Two t;
  Channel<int> c;
  const auto r = t.a.give(c.reader());
  t.pump();
  Op read;
  read.read(r).begin(t.a.at_party);
  {
    const w::Space::Step step(*t.home);
    t.a.at_home.session.send({w::Kind::ended, 0, 0, 0, 1, 4, {}});
  }
  t.a.down();
  CHECK(read.is_over);
  REQUIRE(read.refused != nullptr);
  CHECK(std::string(read.refused).find("gibibyte") != std::string::npos);
  CHECK_FALSE(t.a.at_party.session.is_over());
}

TEST_CASE("wire 14.2: an end given back is gone; a second RETIRE, or an OFFER there, is a fault") {
  for (const bool offers : {false, true}) {
    Hostile h;
    h.a.retire(h.reader);
    const std::string why = offers ? h.refused({w::Kind::offer, 0, h.reader, 0, 1, 0, {}})
                                   : h.refused({w::Kind::retire, 0, h.reader, 0, 0, 0, {}});
    CHECK(why.find("does not hold") != std::string::npos);
  }
}

TEST_CASE("wire 14.2: more offers than the limit end the session, and all of them vanish") {
  Hostile h;
  for (std::uint64_t op = 1; op <= w::Home::kOffers; ++op)
    h.a.to_home({w::Kind::offer, 0, h.reader, 0, op, 0, {}});
  h.pump();
  CHECK(h.a.at_home.home.open() == w::Home::kOffers);
  CHECK(h.refused({w::Kind::offer, 0, h.reader, 0, w::Home::kOffers + 1, 0, {}}) ==
        "more offers are open than a peer may have");
}

// Feeds a home raw bytes, which no space has written. Returns why the session has ended; "" if the
// session is open.
std::string after(const w::Buffer& bytes) {
  auto home = w::Space::make("home", 1);
  w::Peer p(*home);
  const w::Space::Step step(*home);
  p.session.greet();
  p.session.input(bytes);
  return p.session.is_over() ? p.session.why() : "";
}
w::Buffer hello(std::uint32_t magic, std::uint32_t versions, std::uint64_t incarnation,
                std::uint32_t largest) {
  w::Buffer b;
  const w::Buffer lease(8);
  w::append(
      b, {w::Kind::hello, 0, magic, versions, incarnation, std::uint64_t{largest} << 32, lease}, 0);
  return b;
}

TEST_CASE("wire 2.3: a HELLO that will not do is refused, and says why; both versions are named") {
  CHECK(after(hello(w::kMagic, 0x0001'0001, 5, 4096)) == "");
  CHECK(after(hello(0x12345678, 0x0001'0001, 5, 4096)) == "the peer does not speak Weft's wire");
  CHECK(after(hello(w::kMagic, 0x0004'0002, 5, 4096)) ==
        "no common version: this space speaks 1 to 1, the peer 2 to 4");
  CHECK(after(hello(w::kMagic, 0x0001'0001, 0, 4096)) ==
        "the peer's incarnation is none, or this space's own");
  CHECK(after(hello(w::kMagic, 0x0001'0001, 1, 4096)) ==
        "the peer's incarnation is none, or this space's own");
  CHECK(after(hello(w::kMagic, 0x0001'0001, 5, 8)) ==
        "the peer's largest frame is not between 256 and 65528");
  w::Buffer other;
  w::append(other, {w::Kind::poison, 0, 0, 0, 0, 1, {}}, 0);
  CHECK(after(other) == "the first frame is not a HELLO");
}

TEST_CASE(
    "wire 14.2: random peers, with frames made up of plausible fields, crash nothing and stall "
    "nobody (seeds 0 to 199)") {
  std::size_t over = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Hostile h;
    const w::Kind kinds[] = {w::Kind::offer,     w::Kind::offer,  w::Kind::offer, w::Kind::withdraw,
                             w::Kind::retire,    w::Kind::poison, w::Kind::done,  w::Kind::ended,
                             w::Kind::withdrawn, w::Kind::give,   w::Kind::made,  w::Kind::made,
                             w::Kind::held_end,  w::Kind::commit};
    for (int i = 0; i < 40 && !h.a.at_home.session.is_over(); ++i) {
      w::Frame f;
      f.kind = kinds[random() % std::size(kinds)];
      f.where = random() % 3;
      f.op = static_cast<std::uint64_t>(i) + random() % 2 + (random() % 8 == 0 ? 100 : 0);
      f.val = random() % 4 ? random() % 3 : random();
      f.flags = f.kind == w::Kind::offer && f.where == 0 ? w::Flag::write : 0;
      if (f.kind == w::Kind::offer && random() % 3 == 0) {
        // The value is missing, or the read is extended.
        f.flags |= f.where == 0 ? w::Flag::later : w::Flag::hold;
        f.val = f.where == 0 ? 0 : f.val & 1;
      }
      w::Buffer body(random() % 5 == 0 ? 16 : 0);
      if (!body.empty())
        body[0] = static_cast<std::byte>(random() % 3),
        body[4] = static_cast<std::byte>(random() % 2);
      if (f.kind == w::Kind::offer) f.body = body;
      h.a.to_home(f);
      h.a.up();
    }
    over += h.a.at_home.session.is_over();
    h.a.tell(h.a.at_home);
    // The channel and the honest peer are unchanged, unless the other peer poisoned the end that it
    // held.
    Op honest;
    honest.write(0, 3).begin(h.b.at_party);
    h.b.pump();
    Reader<int> r = h.other.reader();
    CHECK(r() == 3);
    h.b.pump();
    CHECK(honest.ok());
  }
  CHECK(over > 50);
}
}  // namespace
}  // namespace wire_session
