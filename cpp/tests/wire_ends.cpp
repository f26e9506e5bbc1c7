// Ends that move between spaces as values, with links that the test schedules (WIRE.md 7.4, 7.5; rule 2.4).
#include <doctest/doctest.h>

#include "weft/weft.hpp"
#include "weft/wire/end.hpp"
#include "wire_world.hpp"

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

// The far end that was handed to this peer, as a program takes it.
Out taken(w::Peer& p, std::size_t i = 0) {
  const auto& o = p.offered[i];
  return Out(w::FarWriter<int>(std::make_shared<w::FarEnd>(p.shared_from_this(), o.end, o.key, o.name)));
}

// Space 0 is the home of `c`, the channel whose end moves; `carrier` is that of the channel which carries it.
struct Moving {
  std::shared_ptr<World> world;
  Channel<int> c{named("c")};
  Reader<int> home = c.reader();
  explicit Moving(std::size_t spaces) : world(World::of(spaces)) {}
  // One value through an end that is elsewhere.
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

TEST_CASE("wire 7.4: an end in a value goes to the space that reads it, and is used there; then it is not the sender's any more") {
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
    CHECK(runtime::name_of(e.there()->checked("test")->place) == "c");
    CHECK(m.passes(e, 7));
    CHECK(m.passes(e, 8));
  }
  m.world->pump();
  CHECK_THROWS_AS(m.home(), Retired);  // it was the only one
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
  write.write(to, taken(l.at_party, 1)).begin(l.at_party);
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

// c's home is space 0; space 1 has its writer end and sends it to space 2, the home of `carry`.
struct Third : Moving {
  Wire& ab = world->join(0, 1);
  Wire& cb = world->join(2, 1);
  Channel<Out> carry{buffer(2)};
  Reader<Out> out = carry.reader();
  std::uint32_t to;
  OpOf<Out> write;
  Third() : Moving(3) {
    ab.give(c.writer());
    to = cb.give(carry.writer());
    world->pump();
    write.write(to, taken(ab.at_party));
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
  // The sender has nothing to do with it any more.
  t.ab.tell(t.ab.at_home);
  t.ab.tell(t.ab.at_party);
  CHECK(t.passes(e, 4));
  e.retire();
  t.world->pump();
  CHECK_THROWS_AS(t.home(), Retired);  // and its death is not the end's
}
}  // namespace
