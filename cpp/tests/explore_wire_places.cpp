// Exploration of credits at a rendezvous (wire 6.6; conformance/models/wire_places.pml): the code
// of the home and of the writer's place, in every order of frames, writes, reads and withdrawals.
#include <deque>

#include "engine.hpp"
#include "explore_events.hpp"
#include "wire_here.hpp"
#include "wire_world.hpp"

namespace weft::test {
namespace {

// A rendezvous at its home. The far space has written once, and since then the home lends places.
struct Places : FreshPooled, Written {
  std::deque<Here> readers;

  Places() {
    read();
    write(0);
    a.pump();
    REQUIRE_THAT(ops.front().ok() && readers.front().value() == 0);
  }
  ~Places() {
    for (Wire* wire : {&a, &b}) wire->tell(wire->at_home);
  }
  Here& read() { return readers.emplace_back(*r.core()); }
  bool reads() const { return !readers.back().done(); }
  // Checks that the values of all writes that have ended were read, each once and in the order of
  // the writes.
  void all_are_read() {
    std::vector<int> written, got;
    for (std::size_t v = 0; v < ops.size(); ++v) {
      REQUIRE_THAT(ops[v].times <= 1);
      if (ops[v].ok()) written.push_back(static_cast<int>(v));
    }
    for (Here& h : readers)
      if (h.has_value() && h.value() < 100) got.push_back(h.value());
    REQUIRE_THAT(written == got);
  }
};

SCENARIO(
    "wire: places: a reader comes and goes: what is over is read once, and who leaves has left "
    "(wire 6.6)",
    0) {
  Places n;
  int begun = 0;
  bool gave = false, left = false, asked = false;
  Events e;
  do {
    e.frames(n.a);
    e.may(begun < 2 && n.ops.back().is_over, [&] { n.write(++begun); });
    e.may(!n.reads() && n.readers.size() < 5, [&] { n.read(); });
    e.may(n.reads() && !left, [&] { left = true, n.readers.back().withdraw(); });
    e.may(!gave && n.a.at_party.far.lendings() == 1, [&] {
      gave = true;
      const w::Space::Step step(*n.far);
      n.a.at_party.far.give_up(n.end);
    });
    e.may(!asked && begun == 2 && !n.ops.back().is_over,
          [&] { asked = true, n.ops.back().withdraw(); });
  } while (e.one());
  REQUIRE_THAT(n.sessions_are_good());
  REQUIRE_THAT(begun == 2 && n.ops[1].is_over && n.ops[2].is_over);
  if (n.reads()) {  // The last reader end is closed too.
    n.readers.back().withdraw();
    n.a.pump();
  }
  for (const Here& h : n.readers) REQUIRE_THAT(h.done());
  n.all_are_read();
  REQUIRE_THAT(n.a.at_party.far.lendings() == 0);
}

SCENARIO(
    "wire: places: a second space writes what it was told to write next: in this order (wire 6.6, "
    "rule 1.1)",
    0) {
  Places n;
  const auto second = n.b.give(n.c.writer());
  n.b.pump();
  Op theirs;
  int begun = 0;
  bool told = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(begun < 2 && n.ops.back().is_over, [&] { n.write(++begun); });
    e.may(begun >= 1 && n.ops[1].is_over && !told,
          [&] { told = true, theirs.write(second, 100).begin(n.b.at_party); });
    e.may(!n.reads() && n.readers.size() < 4, [&] { n.read(); });
  } while (e.one());
  REQUIRE_THAT(n.sessions_are_good());
  REQUIRE_THAT(begun == 2 && n.ops[1].ok() && n.ops[2].ok() && theirs.ok());
  n.all_are_read();
  REQUIRE_THAT(n.readers[1].value() == 1);  // The far space's read began after this read.
}

SCENARIO(
    "wire: places: a second space comes while one is lent: nobody is passed over, nothing is lost "
    "(wire 6.6)",
    0) {
  Places n;
  n.read();
  n.a.pump();
  Op theirs;
  std::uint32_t second = 0;
  bool gone = false;
  int begun = 0;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(begun < 1 && n.ops.back().is_over, [&] { n.write(++begun); });
    e.may(second == 0 && !gone, [&] {
      gone = true;
      const bool promised = n.reads() && n.readers.back().is(core::NodeFlags::promised);
      second = n.b.give(n.c.writer());
      n.b.pump();
      theirs.write(second, 100).begin(n.b.at_party);
      n.b.pump();
      REQUIRE_THAT(!promised || n.reads());  // The read waits until `a` has answered.
    });
    e.may(!n.reads() && n.readers.size() < 3, [&] { n.read(); });
  } while (e.one());
  REQUIRE_THAT(n.sessions_are_good());
  REQUIRE_THAT(begun == 1 && n.ops[1].ok() && theirs.ok());
  n.all_are_read();
  for (const Here& h : n.readers) REQUIRE_THAT(h.done());
}

SCENARIO(
    "wire: places: the channel is poisoned while one is lent: what is over has been read, all "
    "others "
    "are told (wire 6.6, rule 3.1)",
    0) {
  Places n;
  int begun = 0;
  bool poisoned = false;
  Events e;
  do {
    e.frames(n.a);
    e.may(begun < 2 && n.ops.back().is_over && !is_end(n.ops.back().status()),
          [&] { n.write(++begun); });
    e.may(!n.reads() && n.readers.size() < 3 && !poisoned, [&] { n.read(); });
    e.may(!poisoned && begun >= 1, [&] { poisoned = true, n.r.core()->poison(1); });
  } while (e.one());
  REQUIRE_THAT(n.sessions_are_good());
  for (const Here& h : n.readers)
    REQUIRE_THAT(h.over() && (h.has_value() || h.status == Status::poisoned));
  for (const Op& o : n.ops) REQUIRE_THAT(o.is_over && (o.ok() || o.status() == Status::poisoned));
  // A write may end without learning of the poison, if it had a credit and its reader waited.
  n.all_are_read();
}

}  // namespace
}  // namespace weft::test
