// Exploration of credits (wire 6; conformance/models/wire_credits.pml): the code of the home and of
// the writer's place, in every order of frames, writes and reads.
#include <deque>

#include "engine.hpp"
#include "explore_events.hpp"
#include "wire_world.hpp"

namespace weft::test {
namespace {

using explorer::engine;

// A buffer at its home. The far space has written once, and since then the home lends slots.
struct Lending : FreshPooled, Written {
  std::vector<int> read;

  explicit Lending(std::uint32_t capacity) : Written(buffer(capacity)) {
    write(0);
    a.pump();
    read_one();
    a.pump();
    REQUIRE_THAT(read.size() == 1 && ops.front().ok());
  }
  bool ready() {
    bool now = false;
    r.core()->look<core::Side::in>(now);
    return now;
  }
  void read_one() {
    w::RoomOf<int> room;
    core::Waker me;
    me.slot = room.slot();
    REQUIRE_THAT(r.core()->begin<core::Side::in>(me) == Status::ok);
    room.filled();
    read.push_back(room.take());
  }
};

SCENARIO(
    "wire: credits: a second space writes what it was told to write next: in this order (wire 6.3, "
    "rule 1.3)",
    0) {
  Lending n(1);
  const auto reading = n.b.give(n.c.reader());
  const auto second = n.b.give(n.c.writer());
  n.b.pump();
  // In some executions a reader waits already. The order also holds for a value that is handed
  // directly to that reader.
  Op first_read, theirs;
  if (engine().choose(2) == 1) {
    first_read.read(reading).begin(n.b.at_party);
    n.b.pump();
  }
  int begun = 0;
  bool told = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(begun < 2 && n.ops.back().is_over, [&] { n.write(++begun); });
    e.may(begun >= 1 && n.ops[1].ok() && !told,
          [&] { told = true, theirs.write(second, 9).begin(n.b.at_party); });
    e.may(n.ready(), [&] { n.read_one(); });
  } while (e.one());
  REQUIRE_THAT(n.sessions_are_good());
  REQUIRE_THAT(begun == 2 && n.ops[1].ok() && n.ops[2].ok() && theirs.ok());
  std::vector<int> all(n.read.begin() + 1, n.read.end());
  if (first_read.ok()) {
    REQUIRE_THAT(first_read.value() == 1);  // This read began before all writes.
    all.insert(all.begin(), 1);
  }
  REQUIRE_THAT(all.size() == 3 && all[0] == 1 && all[1] + all[2] == 11);
}

SCENARIO(
    "wire: credits: a reader reads on only once a later write is over: a buffer with room keeps "
    "nobody waiting (wire 6.2, rule 1.4)",
    0) {
  Lending n(3);
  int begun = 0;
  Events e;
  do {
    e.frames(n.a);
    e.may(begun < 5 && n.ops.back().is_over, [&] { n.write(++begun); });
    const bool may = n.read.size() != 1 || (begun >= 3 && n.ops[3].is_over);
    e.may(may && n.ready(), [&] { n.read_one(); });
  } while (e.one());
  REQUIRE_THAT(n.sessions_are_good());
  REQUIRE_THAT(n.read == (std::vector{0, 1, 2, 3, 4, 5}));
  for (const Op& o : n.ops) REQUIRE_THAT(o.ok() && o.times == 1);
}

SCENARIO(
    "wire: credits: they are given up unasked, withdrawn from, and the end is closed: what is over "
    "is read once (wire 6.3, 7.3)",
    0) {
  Lending n(1);
  int begun = 0;
  bool gave = false, asked = false, closed = false;
  Events e;
  do {
    e.frames(n.a);
    e.may(begun < 2 && !closed && n.ops.back().is_over, [&] { n.write(++begun); });
    e.may(!gave && !closed && begun >= 1, [&] {
      gave = true;
      const w::Space::Step step(*n.far);
      n.a.at_party.far.give_up(n.end);
    });
    e.may(!asked && begun == 2 && !n.ops.back().is_over,
          [&] { asked = true, n.ops.back().withdraw(); });
    e.may(!closed && begun == 2, [&] { closed = true, n.a.retire(n.end); });
    e.may(n.ready(), [&] { n.read_one(); });
  } while (e.one());
  REQUIRE_THAT(n.sessions_are_good());
  REQUIRE_THAT(begun == 2 && closed);
  std::vector<int> expected{0};
  for (int v = 1; v <= 2; ++v) {
    const Op& o = n.ops[static_cast<std::size_t>(v)];
    REQUIRE_THAT(o.times == 1);
    if (o.ok()) expected.push_back(v);
    REQUIRE_THAT(o.ok() || (v == 2 && asked && o.status() == Status::cancelled));
  }
  REQUIRE_THAT(n.read == expected);
  REQUIRE_THAT(n.r.core()->how_ended<core::Side::in>() == Status::retired);
  REQUIRE_THAT(n.a.at_party.far.lendings() == 0);
}

}  // namespace
}  // namespace weft::test
