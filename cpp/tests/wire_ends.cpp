// Tests ends that move between spaces as values, with links that the test schedules (WIRE.md 7.4,
// 7.5; rule 2.4).
#include <doctest/doctest.h>

#include "weft/weft.hpp"
#include "weft/wire/end.hpp"
#include "wire_world.hpp"

namespace wire_ends {
namespace {
using namespace weft;
using weft::test::Op;
using weft::test::OpOf;
using weft::test::Wire;
using weft::test::World;
namespace w = weft::wire;
using Out = w::WriterEnd<int>;
using In = w::ReaderEnd<int>;

std::uint32_t number(const Out& e) { return e.there()->checked("test")->number; }
w::Peer& peer(const Out& e) { return *e.there()->checked("test")->peer; }

// Takes the far end that was given to this peer, as a program takes it.
Out take_far_end(w::Peer& p, std::size_t i = 0) {
  const auto& o = p.offered[i];
  return Out(
      w::FarWriter<int>(std::make_shared<w::FarEnd>(p.shared_from_this(), o.end, o.key, o.name)));
}

// Space 0 is the home of `c`, the channel whose end moves. `carrier` is the carrier of the channel
// that carries the end.
struct Moving {
  std::shared_ptr<World> world;
  Channel<int> c{named("c")};
  Reader<int> home = c.reader();
  explicit Moving(std::size_t spaces) : world(World::of(spaces)) {}
  // Returns whether one value passes through an end that is in another space.
  bool passes(const Out& e, int v) {
    Op op;
    op.write(number(e), v).begin(peer(e));
    world->pump();
    if (op.is_over) return false;
    const bool same = home() == v;
    world->pump();
    return same && op.ok();
  }
};

TEST_CASE(
    "wire 7.4: an end in a value goes to the space that reads it, and is used there; then it is "
    "not the sender's any more") {
  Moving m(2);
  Wire& l = m.world->join(0, 1);
  Channel<Out> carry;
  const auto r = l.give(carry.reader());
  m.world->pump();
  OpOf<Out> read;
  read.read(r).begin(l.at_party);
  m.world->pump();
  {
    Writer<Out> to = carry.writer();
    to(Out(m.c.writer()));
  }
  m.world->pump();
  REQUIRE(read.ok());
  {
    const Out e = read.value();
    CHECK(e.here() == nullptr);
    CHECK(runtime::name_of(e.there()->checked("test")->place) == "'c'");
    CHECK(m.passes(e, 7));
    CHECK(m.passes(e, 8));
  }
  m.world->pump();
  CHECK_THROWS_AS(m.home(), Retired);  // e was the only writer end.
}

TEST_CASE("wire 7.4: an end that comes home is one of this space again") {
  Moving m(2);
  Wire& l = m.world->join(0, 1);
  Channel<Out> carry;
  const auto to = l.give(carry.writer());
  l.give(m.c.writer());
  m.world->pump();
  Reader<Out> from = carry.reader();
  OpOf<Out> write;
  const auto& o = l.at_party.offered[1];
  write.write(to, take_far_end(l.at_party, 1)).begin(l.at_party);
  m.world->pump();
  CHECK(o.end == 1);
  {
    const Out e = from();
    m.world->pump();
    REQUIRE(write.ok());
    write.forget();
    m.world->pump();
    REQUIRE(e.here() != nullptr);
    std::thread t([&, token = Outside()] { e(5); });
    CHECK(m.home() == 5);
    t.join();
  }
  CHECK_THROWS_AS(m.home(), Retired);
}

// The home of c is space 0. Space 1 holds the writer end of c and sends the end to space 2, the
// home of `carry`.
struct Third : Moving {
  Wire& ab = world->join(0, 1);
  Wire& cb = world->join(2, 1);
  Channel<Out> carry{buffer(2)};
  Reader<Out> out = carry.reader();
  std::uint32_t to;
  OpOf<Out> write;
  explicit Third(std::size_t spaces = 3) : Moving(spaces) {
    ab.give(c.writer());
    to = cb.give(carry.writer());
    world->pump();
    write.write(to, take_far_end(ab.at_party));
  }
  std::size_t ends() { return c.core()->writer_ends(); }
  // Sends the end to the reader of `out`. Afterwards the home has not yet learned of the move.
  void send() {
    write.begin(cb.at_party);
    cb.pump();
    REQUIRE(write.ok());
    write.forget();
  }
};

TEST_CASE("wire 7.5: an end goes on to a space that did not know its home: they are introduced") {
  Third t;
  CHECK(t.world->between(0, 2) == nullptr);
  t.write.begin(t.cb.at_party);
  t.world->pump();
  REQUIRE(t.write.ok());
  t.write.forget();
  t.world->pump();
  Out e = t.out();
  REQUIRE(t.world->between(0, 2) != nullptr);
  CHECK(peer(e).session.theirs().incarnation == 1);
  CHECK(peer(e).space == t.world->spaces[2]);
  CHECK(t.ab.at_party.carrier.under_way() == 0);
  CHECK(t.cb.at_party.carrier.under_way() == 0);
  // The sender has no share in the end any more: its sessions are cut.
  t.ab.tell(t.ab.at_home);
  t.ab.tell(t.ab.at_party);
  CHECK(t.passes(e, 4));
  e.retire();
  t.world->pump();
  CHECK_THROWS_AS(t.home(), Retired);  // The sender's death is not the death of the end.
}

TEST_CASE(
    "wire 7.4: the sender's count stays until the home has said that the receiver has its own") {
  Third t;
  t.write.begin(t.cb.at_party);
  t.cb.up();  // Delivers the OFFER: the receiver asks the home immediately, on the new wire.
  Wire& ca = *t.world->between(0, 2);
  t.cb.down();
  t.cb.down();
  REQUIRE(t.write.ok());
  t.write.forget();
  // All frames of the sender arrive before the receiver's ADOPT. Meanwhile the channel must not
  // count as ended.
  t.ab.pump();
  CHECK(t.cb.at_party.carrier.under_way() == 1);
  CHECK(t.c.core()->writer_ends() == 1);
  ca.pump();
  CHECK(t.c.core()->writer_ends() == 2);
  t.ab.pump();
  CHECK(t.cb.at_party.carrier.under_way() == 0);
  CHECK(t.c.core()->writer_ends() == 1);
  const Out e = t.out();
  CHECK(t.passes(e, 9));
}

TEST_CASE(
    "wire 7.4, rule 2.4: a write that is withdrawn leaves the end with its sender, and the "
    "receiver's count goes") {
  Third t;
  Channel<Out> nobody;
  const auto to = t.cb.give(nobody.writer());
  t.world->pump();
  OpOf<Out> write;
  write.write(to, t.write.value(0)).begin(t.cb.at_party);
  t.world->pump();
  CHECK(t.c.core()->writer_ends() == 2);
  write.withdraw();
  t.world->pump();
  REQUIRE(write.status() == Status::cancelled);
  CHECK(t.c.core()->writer_ends() == 1);
  CHECK(t.cb.at_party.carrier.under_way() == 0);
  const Out e = write.value(0);
  CHECK(t.passes(e, 3));
}

TEST_CASE(
    "wire 7.4: a choice that sends ends by several outputs: the end of the guard that was chosen "
    "goes, the others stay") {
  Third t;
  Channel<Out> nobody;
  const auto never = t.cb.give(nobody.writer());
  Channel<int> d{named("d")};
  Reader<int> from_d = d.reader();
  t.ab.give(d.writer());
  t.world->pump();
  OpOf<Out> choice;
  choice.write(never, take_far_end(t.ab.at_party, 1))
      .write(t.to, t.write.value(0))
      .begin(t.cb.at_party);
  t.world->pump();
  REQUIRE(choice.ok());
  CHECK(choice.outcome.guard == 1);
  CHECK(d.core()->writer_ends() == 1);
  const Out kept = choice.value(0);
  choice.forget();
  t.world->pump();
  CHECK(t.c.core()->writer_ends() == 1);
  const Out went = t.out();
  CHECK(peer(went).space == t.world->spaces[2]);
  CHECK(peer(kept).space == t.world->spaces[1]);
  CHECK(t.passes(went, 1));
}

TEST_CASE("wire 7.4: an end dropped by a buffer that ends is retired (rules 2.4, 4.2)") {
  Third t;
  t.write.begin(t.cb.at_party);
  t.world->pump();
  t.write.forget();
  t.world->pump();
  t.carry.poison();
  t.world->pump();
  CHECK_THROWS_AS(t.home(), Retired);
}

TEST_CASE(
    "wire 7.4, rule 4.5: who has got an end and dies takes it along, at the home and on the way") {
  for (const bool adopted : {false, true}) {
    CAPTURE(adopted);
    Third t;
    t.send();
    Wire& ca = *t.world->between(0, 2);
    if (adopted) t.world->pump();
    // The receiver has died.
    ca.cut = t.cb.cut = true;
    for (Wire* l : {&ca, &t.cb})
      l->tell(&l->at_home == &t.cb.at_home || l->at_home.space == t.world->spaces[2] ? l->at_party
                                                                                     : l->at_home);
    t.world->pump();
    CHECK_THROWS_AS(t.home(), PeerDied);
  }
}

TEST_CASE(
    "wire 7.4: who has got an end, closes it and says BYE before its sender has heard the home's "
    "word has not died") {
  for (const bool adopted : {false, true})
    for (const bool poisoned : {false, true}) {
      CAPTURE(adopted);
      CAPTURE(poisoned);
      Third t;
      t.send();
      Wire& ca = *t.world->between(0, 2);
      if (adopted) ca.pump();
      {
        const Out e = t.out();
        if (poisoned) e.poison();
      }
      {
        const w::Space::Step step(*t.world->spaces[2]);
        t.cb.at_home.session.bye("it is done");
      }
      // The home receives the sender's frames about the receiver's death before any frame from
      // the receiver itself.
      t.cb.pump();
      CHECK(t.cb.at_party.carrier.under_way() == 0);
      while (t.ab.up()) {
      }
      t.world->pump();
      if (!poisoned)
        CHECK_THROWS_AS(t.home(), Retired);
      else if (adopted)
        CHECK_THROWS_AS(t.home(), Poisoned);
      else
        // The poison arrived too late, so the end died.
        CHECK_THROWS_AS(t.home(), PeerDied);
    }
}

TEST_CASE(
    "wire 7.4: the sender dies before the receiver's ADOPT is at the home: the end has died, and "
    "the receiver's first use says so") {
  Third t;
  t.write.begin(t.cb.at_party);
  t.cb.pump();
  Out e = t.out();
  for (Wire* l : {&t.ab, &t.cb}) l->cut = true;
  t.ab.tell(t.ab.at_home);
  t.cb.tell(t.cb.at_home);
  CHECK_THROWS_AS(t.home(), PeerDied);
  t.world->pump();
  Op op;
  op.write(number(e), 1).begin(peer(e));
  t.world->pump();
  CHECK(op.status() == Status::died);
  op.forget();
}

TEST_CASE(
    "wire 7.5: spaces that cannot be introduced: the write is refused, says why, and sends "
    "nothing") {
  Third t;
  t.world->refuses = true;
  t.write.begin(t.cb.at_party);
  CHECK(t.write.is_over);
  CHECK(t.write.status() == Status::pending);
  REQUIRE(t.write.refused != nullptr);
  CHECK(std::string(t.write.refused).find("third program") != std::string::npos);
  CHECK(t.cb.at_party.carrier.under_way() == 0);
  CHECK(t.cb.at_party.session.output().empty());
  const Out e = t.write.value(0);
  CHECK(t.passes(e, 2));
}

TEST_CASE("wire 7.4: an end whose home has gone moves all the same; its first use says PeerDied") {
  Third t;
  t.ab.tell(t.ab.at_party);
  t.write.begin(t.cb.at_party);
  t.world->pump();
  REQUIRE(t.write.ok());
  Out e = t.out();
  CHECK_THROWS_WITH_AS(e(1), doctest::Contains("out of reach"), PeerDied);
  w::WriterEnd<int> closed = Writer<int>();
  OpOf<Out> write;
  write.write(t.to, std::move(closed)).begin(t.cb.at_party);
  t.world->pump();
  REQUIRE(write.ok());
  CHECK_THROWS_AS(t.out()(1), PeerDied);
}

// --- an end that goes on before its home has heard of the move -----------------------------------

// As soon as space 2 has taken the end, it sends the end on to space 3, the home of `on`, while the
// ADOPT of space 2 has not arrived yet.
struct Fourth : Third {
  Wire& dc = world->join(3, 2);
  Channel<Out> on{buffer(2)};
  Reader<Out> last = on.reader();
  OpOf<Out> again;
  Fourth() : Third(4) {
    const auto to_last = dc.give(on.writer());
    world->pump();
    write.begin(cb.at_party);
    cb.pump();
    REQUIRE(write.ok());
    write.forget();
    again.write(to_last, out());
    again.begin(dc.at_party);
    dc.pump();
    REQUIRE(again.ok());
    again.forget();
  }
  Wire& from_c() { return *world->between(0, 2); }
  Wire& from_d() { return *world->between(0, 3); }
  std::size_t under_way() {
    return cb.at_party.carrier.under_way() + dc.at_party.carrier.under_way();
  }
  // Makes this space die, and all other spaces learn of its death.
  void dies(std::size_t space) {
    for (Wire& l : world->wires) {
      const bool home = l.at_home.space == world->spaces[space];
      if (!home && l.at_party.space != world->spaces[space]) continue;
      l.cut = true;
      l.tell(home ? l.at_party : l.at_home);
    }
    world->pump();
  }
};

TEST_CASE(
    "wire 7.4: an end goes on before its home has heard of the move; the last one's ADOPT is there "
    "first, and finds it") {
  for (const bool in_order : {false, true}) {
    CAPTURE(in_order);
    Fourth t;
    if (in_order) t.from_c().pump();
    t.from_d().pump();
    CHECK(t.ends() == (in_order ? 3 : 2));
    const Out e = t.last();
    t.world->pump();
    CHECK(t.under_way() == 0);
    CHECK(t.ends() == 1);
    CHECK(t.passes(e, 4));
    t.dies(1);
    t.dies(2);
    CHECK(t.passes(e, 5));
  }
}

TEST_CASE(
    "wire 7.4: the sender of an end whose home has not heard of him yet dies before its ADOPT is "
    "there: what was sent on lives") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    Fourth t;
    if (before) t.from_d().pump();
    t.dies(2);
    if (!before) t.from_d().pump();
    const Out e = t.last();
    t.world->pump();
    CHECK(t.cb.at_party.carrier.under_way() == 0);
    if (before) {
      CHECK(t.ends() == 1);
      CHECK(t.passes(e, 4));
    } else {  // The space that held the end before has given up the end, so the end died.
      REQUIRE(t.ends() == 0);
      CHECK_THROWS_AS(t.home(), PeerDied);
      Op op;
      op.write(number(e), 1).begin(peer(e));
      t.world->pump();
      CHECK(op.status() == Status::died);
      op.forget();
    }
  }
}

TEST_CASE(
    "wire 7.4: the first sender dies while two who have the end after him are not known at the "
    "home: the end has died, and nobody waits") {
  Fourth t;
  t.dies(1);
  REQUIRE(t.ends() == 0);
  CHECK_THROWS_AS(t.home(), PeerDied);
  const Out e = t.last();
  CHECK(t.dc.at_party.carrier.under_way() == 0);
  Op op;
  op.write(number(e), 1).begin(peer(e));
  t.world->pump();
  CHECK(op.status() == Status::died);
  op.forget();
}

TEST_CASE(
    "wire 7.4: the receiver of an end that was sent on at once dies, or the home: no count and no "
    "sender is left") {
  for (const std::size_t dead : {0, 3})
    for (const bool adopted : {false, true}) {
      CAPTURE(dead);
      CAPTURE(adopted);
      Fourth t;
      if (adopted) t.from_d().pump();
      t.dies(dead);
      CHECK(t.under_way() == 0);
      CHECK(t.ab.at_party.carrier.under_way() == 0);
      if (dead == 0) {
        CHECK_THROWS_AS(t.last()(1), PeerDied);
        continue;
      }
      REQUIRE(t.ends() == 0);
      CHECK_THROWS_AS(t.home(), PeerDied);
    }
}

TEST_CASE(
    "wire 7.4: an end goes to and fro and its home answers nothing: 16 times, then it stays where "
    "it is") {
  Third t;
  Channel<Out> back{buffer(2)};
  Reader<Out> returned = back.reader();
  // The wire between the sender (space 1) and the receiver (space 2), which is the home of `back`.
  Wire& bc = t.world->join(1, 2);
  const auto to_back = bc.give(back.writer());
  bc.pump();
  std::optional<Out> e(t.write.value(0));
  t.write.forget();
  for (int moves = 0; moves < 17; ++moves) {
    CAPTURE(moves);
    const bool there = moves % 2 == 0;
    Wire& l = there ? t.cb : bc;
    OpOf<Out> op;
    op.write(there ? t.to : to_back, std::move(*e)).begin(l.at_party);
    for (Wire* w : {&t.cb, &bc}) w->pump();
    REQUIRE(op.is_over);
    if (moves == 16) {
      REQUIRE(op.refused != nullptr);
      CHECK(std::string(op.refused).find("its home has answered none") != std::string::npos);
      e.emplace(op.value(0));
      break;
    }
    REQUIRE(op.ok());
    op.forget();
    e.emplace(there ? t.out() : returned());
  }
  t.world->pump();
  CHECK(t.ends() == 1);
  CHECK(t.passes(*e, 8));
  OpOf<Out> op;  // By now the receiver has answered.
  op.write(t.to, std::move(*e)).begin(t.cb.at_party);
  t.world->pump();
  REQUIRE(op.ok());
  op.forget();
  const Out last = t.out();
  t.world->pump();
  CHECK(t.ends() == 1);
  CHECK(t.passes(last, 9));
}

// --- the channel of an end that is sent out: parties that wait there, full buffers ---

struct Sent : Moving {
  Wire& l = world->join(0, 1);
  Channel<In> carry;
  Writer<In> to = carry.writer();
  std::uint32_t from = l.give(carry.reader());
  OpOf<In> read;
  Sent() : Moving(2) {
    world->pump();
    read.read(from).begin(l.at_party);
    world->pump();
  }
  In sends(Reader<int> r) {
    to(In(std::move(r)));
    world->pump();
    REQUIRE(read.ok());
    return read.value();
  }
  // A far read: returns the value that was read, or -1 if the read waits.
  int reads(const In& e) {
    Op op;
    op.read(e.there()->checked("test")->number).begin(l.at_party);
    world->pump();
    if (op.ok()) return op.value();
    if (!op.is_over) op.withdraw();
    world->pump();
    return op.ok() ? op.value() : -1;
  }
};

TEST_CASE(
    "wire 7.4: the reader end of a channel with a full buffer and a writer that waits goes out; "
    "nothing is lost, the order stays (rule "
    "1.5)") {
  Sent s;
  Channel<int> full{buffer(2)};
  Writer<int> w = full.writer();
  w(1), w(2);
  std::thread waits([&, token = Outside()] { w(3); });
  Reader<int> r = full.reader();
  while (!weft::test::somebody_waits(*full.core())) std::this_thread::yield();
  const In e = s.sends(std::move(r));
  CHECK(s.reads(e) == 1);
  waits.join();
  CHECK(s.reads(e) == 2);
  CHECK(s.reads(e) == 3);
  CHECK(s.reads(e) == -1);
}

Process picks(Reader<int> a, Reader<int> b, std::vector<int>& got) {
  for (int i = 0; i < 2; ++i) {
    auto [which, v] = co_await select(a, b);
    got.push_back(which * 100 + *v);
  }
}
Process writes(Writer<int> w, int from, int n) {
  for (int i = 0; i < n; ++i) co_await w.write(from + i);
}

TEST_CASE(
    "wire 7.4: its readers and writers who wait, and a select, wait on as they did (rules 1.2, "
    "5.1)") {
  Sent s;
  Channel<int> c, d;
  std::vector<int> got;
  Writer<int> wc = c.writer(), wd = d.writer();
  const Outside outside;
  std::thread selects([&] { run(picks(c.reader(), d.reader(), got)); });
  while (!weft::test::somebody_waits(*c.core()) || !weft::test::somebody_waits(*d.core()))
    std::this_thread::yield();
  const In e = s.sends(c.reader());
  // The select is first in the waiting queue, and the far reader is behind the select.
  Op op;
  op.read(e.there()->checked("test")->number).begin(s.l.at_party);
  s.world->pump();
  wc(7);
  wd(8);
  selects.join();
  CHECK(got == std::vector<int>{7, 108});
  CHECK_FALSE(op.is_over);
  std::thread other([w = c.writer()] { run(writes(w, 50, 2)); });
  while (!op.is_over) s.world->pump();
  CHECK(op.value() == 50);
  Reader<int> mine = c.reader();
  CHECK(mine() == 51);
  other.join();
}

TEST_CASE("wire 7.4, rule 1.8: the only end of a restricted channel moves too") {
  Sent s;
  auto c = one2one<int>(buffer(1));
  Writer<int> w = c.writer();
  w(4);
  const In e = s.sends(c.reader());
  CHECK(s.reads(e) == 4);
  CHECK(c.core()->reader_ends() == 1);
  CHECK_THROWS_AS((void)c.reader(), BadUse);
}

// --- hostile peers -------------------------------------------------------------------------------

TEST_CASE(
    "wire 14.1, 14.2: who adopts what was not told to him gets a dead end; who cannot count ends "
    "his session") {
  Moving m(2);
  Wire& l = m.world->join(0, 1);
  l.give(m.c.writer());
  m.world->pump();
  const auto adopt = [&](std::uint32_t number, std::uint64_t key, const std::string& type) {
    w::Buffer body;
    w::detail::put(body, std::uint64_t{77});
    w::detail::put(body, std::as_bytes(std::span(type)));
    l.to_home({w::Kind::adopt, 0, number, static_cast<std::uint32_t>(type.size()), key, 1, body});
    m.world->pump();
  };
  const std::uint64_t key = l.at_party.offered[0].key;
  adopt(w::Home::kAdopted, key + 1, "i4");  // The key is wrong.
  adopt(w::Home::kAdopted + 1, key, "f8");  // The type is wrong.
  adopt(w::Home::kAdopted + 2, key, "i4");  // All fields are right.
  REQUIRE_FALSE(l.at_home.session.is_over());
  CHECK(m.c.core()->writer_ends() == 2);
  for (const std::uint32_t dead : {w::Home::kAdopted, w::Home::kAdopted + 1}) {
    Op op;
    op.write(dead, 1).begin(l.at_party);
    l.poison(dead, 1);
    l.retire(dead);
    m.world->pump();
    CHECK(op.status() == Status::died);
  }
  Op op;
  op.write(w::Home::kAdopted + 2, 6).begin(l.at_party);
  m.world->pump();
  CHECK(m.home() == 6);
  m.world->pump();
  CHECK(op.ok());
  adopt(w::Home::kAdopted + 2, key, "i4");
  CHECK(l.at_home.session.why() == "an ADOPT whose number is not the next");
}

TEST_CASE(
    "wire 14.2: a description of an end that is none is no value; ADOPTED and DROPPED that nobody "
    "waits for say nothing") {
  for (const int wrong : {0, 1, 2, 3, 4, 5, 6, 7}) {
    CAPTURE(wrong);
    Moving m(2);
    Wire& l = m.world->join(0, 1);
    Channel<Out> carry{buffer(1)};
    const auto to = l.give(carry.writer());
    m.world->pump();
    l.to_home({w::Kind::adopted, 0, 0, 0, 0, 5, {}});
    l.to_home({w::Kind::dropped, 0, 0, 0, 0, 5, {}});
    m.world->pump();
    REQUIRE_FALSE(l.at_home.session.is_over());
    w::Buffer body(40);
    body[28] = std::byte{1};  // The body is that of a writer end that belongs to no program.
    body[29] = std::byte{8};
    if (wrong == 1) body[28] = std::byte{0};
    if (wrong == 2) body[28] = std::byte{9};
    if (wrong == 3) body[29] = std::byte{97};
    if (wrong == 4) body.resize(24);
    if (wrong == 5) body[30] = std::byte{1};   // The body lacks the earlier key that it announces.
    if (wrong == 6) body[30] = std::byte{16};  // The number of earlier keys is too large.
    if (wrong == 6) body.resize(40 + 16 * 8);
    if (wrong == 7) body[31] = std::byte{1};
    l.to_home({w::Kind::offer, w::Flag::write | w::Flag::body, to, 0, 1, body.size(), body});
    m.world->pump();
    CHECK(l.at_home.session.is_over() == (wrong != 0));
    if (wrong)
      CHECK(l.at_home.session.why() == "an OFFER with a value that is not of its channel's type");
  }
}

TEST_CASE(
    "wire 14.2: an INTRODUCE where nobody can take it, and a PASS that does not add up, end the "
    "session") {
  const std::pair<w::Frame, const char*> lies[] = {
      {{w::Kind::introduce, 0, 0, 0, 9, 4096, {}}, "not in a test"},
      {{w::Kind::pass, 0, 0, 0, 0, 0, {}}, "a PASS that does not add up"},
      {{w::Kind::pass, 0, 0, 0, 1000, 0, {}}, "a PASS that does not add up"},
  };
  for (const auto& [lie, reason] : lies) {
    Moving m(2);
    Wire& l = m.world->join(0, 1);
    l.to_home(lie);
    m.world->pump();
    CHECK(l.at_home.session.why() == reason);
  }
}
}  // namespace
}  // namespace wire_ends
