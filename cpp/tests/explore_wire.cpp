// Exploration of the wire: the code of the home and of the far end, over a link that the explorer
// schedules. The next event is one frame on one session, a withdrawal, a cut, or the moment at
// which one side learns of the cut: every order of these events is run. The mutants are those of
// the models (conformance/models/MUTANTS.md) and two of the code itself.
#include <algorithm>

#include "engine.hpp"
#include "explore_events.hpp"
#include "weft/wire/end.hpp"
#include "weft/wire/resend.hpp"
#include "wire_world.hpp"

namespace weft::test {
namespace {

using explorer::engine;

// A home and up to three other spaces; the home and each of them have greeted each other.
struct Net {
  std::shared_ptr<w::Space> home = w::Space::make("home", 1);
  std::array<std::shared_ptr<w::Space>, 3> far{w::Space::make("a", 2), w::Space::make("b", 3),
                                               w::Space::make("c", 4)};
  Wire a{*home, *far[0]}, b{*home, *far[1]}, c{*home, *far[2]};
  void settle() {
    for (Wire* l : {&a, &b, &c}) l->pump();
  }
};

SCENARIO("wire: a writer withdraws: it has happened or it has not (wire 4.3, rules 6.2-6.4)", 0) {
  runtime::FreshPool fresh;
  Channel<int> c;
  Net n;
  const auto w = n.a.give(c.writer()), r = n.b.give(c.reader());
  n.settle();
  Op write, read;
  write.write(w, 7).begin(n.a.at_party);
  read.read(r).begin(n.b.at_party);
  bool asked = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(!asked && !write.is_over, [&] { asked = true, write.withdraw(); });
  } while (e.one());
  REQUIRE_THAT(write.times == 1 && read.times <= 1);
  REQUIRE_THAT(write.ok() == read.ok());
  REQUIRE_THAT(write.ok() || (asked && write.status() == Status::cancelled && !read.is_over));
  REQUIRE_THAT(!read.ok() || read.value() == 7);
}

SCENARIO(
    "wire: a cut at every step: taken once, and no writer is told that its value was not taken if "
    "it was (wire 2.4, 2.5, 8)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c;
  Net n;
  const auto w = n.a.give(c.writer()), r = n.b.give(c.reader()), s = n.c.give(c.reader());
  n.settle();
  Op write, first, second;
  write.write(w, 7).begin(n.a.at_party);
  first.read(r).begin(n.b.at_party);
  second.read(s).begin(n.c.at_party);
  Wire& victim = engine().choose(2) == 0 ? n.a : n.b;
  bool home_knows = false, party_knows = false, known_before = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.frames(n.c);
    e.may(!victim.cut, [&] { victim.cut = true; });
    e.may(victim.cut && !home_knows, [&] {
      home_knows = true;
      known_before = n.a.at_home.home.open() == 0 && n.a.can_up();  // The OFFER has not arrived.
      victim.tell(victim.at_home);
    });
    e.may(victim.cut && !party_knows, [&] { party_knows = true, victim.tell(victim.at_party); });
  } while (e.one());
  const int taken = first.ok() + second.ok();
  REQUIRE_THAT(taken <= 1);
  REQUIRE_THAT(!(write.status() == Status::died && !write.outcome.in_doubt && taken));
  REQUIRE_THAT(write.status() != Status::retired && first.status() != Status::retired &&
               second.status() != Status::retired);
  if (&victim == &n.a) {
    REQUIRE_THAT(write.is_over && (write.ok() ? taken == 1 : write.outcome.in_doubt));
    // If the value has not been received, the reader's side learns that the writer died.
    REQUIRE_THAT(first.is_over && second.is_over);
  } else {
    // There is a second reader. Neither reader may be left waiting while a value could be given to
    // it.
    REQUIRE_THAT(first.is_over && write.ok());
    if (known_before) REQUIRE_THAT(second.ok());
  }
}

// Records the frames that the home's links flush, in one order over all links.
struct Flushed final : w::Link {
  struct Sent {
    Wire* to;
    w::Buffer frame;
  };
  static inline std::vector<Sent> all;
  Wire& wire;
  explicit Flushed(Wire& l) : wire(l) { l.at_home.link = this; }
  ~Flushed() { wire.at_home.link = nullptr; }
  void flush() noexcept override {
    const w::Bytes out = wire.at_home.session.output();
    if (out.empty()) return;
    all.push_back({&wire, w::Buffer(out.begin(), out.end())});
    wire.at_home.session.went(out.size());
  }
  // Delivers the first `count` frames, as if the home had died after it had sent these frames.
  static void deliver(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const w::Space::Step step(*all[i].to->at_party.space);
      all[i].to->at_party.session.input(all[i].frame);
    }
  }
};

SCENARIO(
    "wire: a home that dies between any two frames: who was told that it was taken was told the "
    "truth (wire 4.2)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c;
  Net n;
  const auto w = n.a.give(c.writer()), r = n.b.give(c.reader());
  n.settle();
  Flushed::all.clear();
  Op write, read;
  {
    const Flushed to_a(n.a), to_b(n.b);
    write.write(w, 7).begin(n.a.at_party);
    read.read(r).begin(n.b.at_party);
    const bool reader_last = engine().choose(2) == 0;
    (reader_last ? n.a : n.b).up();
    (reader_last ? n.b : n.a).up();
    const auto sent = static_cast<std::uint32_t>(Flushed::all.size());
    REQUIRE_THAT(sent == 2);
    Flushed::deliver(engine().choose(sent + 1));
    for (Wire* l : {&n.a, &n.b}) l->tell(l->at_party);
  }
  Flushed::all.clear();
  REQUIRE_THAT(write.is_over && read.is_over);
  REQUIRE_THAT(!write.ok() || read.ok());
  REQUIRE_THAT(write.ok() || write.outcome.in_doubt);
}

struct Asleep : core::Waker {
  static constexpr core::WakerOps kOps{
      .wake = [](core::Waker*) noexcept {}, .run = nullptr, .tell = [](core::Waker*) noexcept {}};
  Asleep() { ops = &kOps; }
};

SCENARIO(
    "wire: two who sleep are let to meet by one who leaves: the reader is told first (wire 4.2, "
    "rule 6.6)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c;
  Net n;
  const auto w = n.a.give(c.writer()), r = n.b.give(c.reader());
  n.settle();
  Reader<int> mine = c.reader();
  Asleep foreign;
  detail::Slot<int> slot;
  foreign.slot = &slot;
  REQUIRE_THAT(mine.core()->begin_foreign(foreign) == Status::pending);
  Op write, read;
  read.read(r).begin(n.b.at_party);
  write.write(w, 7).begin(n.a.at_party);
  n.settle();
  Flushed::all.clear();
  {
    const Flushed to_a(n.a), to_b(n.b);
    REQUIRE_THAT(mine.core()->withdraw<core::Side::in>(foreign));
    REQUIRE_THAT(Flushed::all.size() == 2 && Flushed::all[0].to == &n.b);
    Flushed::deliver(2);
  }
  Flushed::all.clear();
  REQUIRE_THAT(write.ok() && read.ok() && read.value() == 7);
}

SCENARIO(
    "wire: a waiting write and its closed end: it delivers, then the channel has retired (wire "
    "7.3, rules 3.1, 3.2)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c;
  Net n;
  const auto w = n.a.give(c.writer()), r = n.b.give(c.reader());
  n.settle();
  Op write, first, second;
  write.write(w, 7).begin(n.a.at_party);
  n.a.retire(w);
  first.read(r).begin(n.b.at_party);
  second.read(r).begin(n.b.at_party);
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
  } while (e.one());
  REQUIRE_THAT(write.ok() && first.ok() && first.value() == 7);
  REQUIRE_THAT(second.is_over && second.status() == Status::retired);
}

SCENARIO(
    "wire: two choices at one home meet, or one withdraws: exactly one guard on each side (wire "
    "4.5, rules 5.1, 5.3)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Net n;
  const auto cw = n.a.give(c.writer()), dr = n.a.give(d.reader());
  const auto cr = n.b.give(c.reader()), dw = n.b.give(d.writer());
  n.settle();
  Op x, y;
  x.write(cw, 1).read(dr).begin(n.a.at_party);
  y.write(dw, 2).read(cr).begin(n.b.at_party);
  bool asked = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(!asked && !x.is_over, [&] { asked = true, x.withdraw(); });
  } while (e.one());
  REQUIRE_THAT(x.times == 1 && y.times <= 1);
  REQUIRE_THAT(x.ok() == y.ok());
  if (!x.ok()) return;
  REQUIRE_THAT(x.outcome.guard != y.outcome.guard);
  REQUIRE_THAT(x.outcome.guard == 0 ? y.value() == 1 : x.value() == 2);
}

// --- ends that move (wire 7.4; conformance/models/wire_ends.pml) ---------------------------------

using OutEnd = w::WriterEnd<int>;

// Space 0 is the home of `c`, whose only writer end is at space 1, which sends the end to space 2;
// space 2 drops the end or keeps it.
struct MovingNet {
  runtime::FreshPool fresh;
  std::shared_ptr<World> world = World::of(3);
  Wire& ab = world->join(0, 1);
  Wire& cb = world->join(2, 1);
  Channel<int> c;
  Channel<OutEnd> carry{buffer(1)};
  Reader<int> home = c.reader();
  OpOf<OutEnd> write;
  MovingNet() {
    ab.give(c.writer());
    const auto to = cb.give(carry.writer());
    world->pump();
    const auto& o = ab.at_party.offered[0];
    write.write(to, OutEnd(w::FarWriter<int>(std::make_shared<w::FarEnd>(
                        ab.at_party.shared_from_this(), o.end, o.key, o.name))));
  }
  Status seen() { return c.core()->how_ended<core::Side::in>(); }
};

SCENARIO(
    "wire: an end moves to a third space, or its write is withdrawn: while anybody has it the "
    "channel has not ended (wire 7.4, 7.5)",
    0) {
  MovingNet n;
  Reader<OutEnd> ends = n.carry.reader();
  n.write.begin(n.cb.at_party);
  const bool withdraws = engine().choose(2) != 0;
  bool asked = !withdraws, dropped = false;
  std::optional<OutEnd> got;
  Events e;
  do {
    for (Wire& l : n.world->wires) e.frames(l);
    e.may(!asked && !n.write.is_over && !n.cb.can_up(), [&] { asked = true, n.write.withdraw(); });
    if (n.write.ok()) n.write.forget();
    if (n.write.ok() && !got) {
      w::RoomOf<OutEnd> room;
      core::Waker me;
      me.slot = room.slot();
      REQUIRE_THAT(ends.core()->begin<core::Side::in>(me) == Status::ok);
      room.filled();
      got.emplace(room.take());
    }
    e.may(got && !dropped, [&] { dropped = true, got.emplace(); });
    REQUIRE_THAT(dropped || n.seen() == Status::ok);
  } while (e.one());
  if (n.write.ok()) {
    REQUIRE_THAT(dropped && n.seen() == Status::retired);
  } else {
    REQUIRE_THAT(withdraws && n.write.status() == Status::cancelled);
    n.write.forget();
    n.world->pump();
    REQUIRE_THAT(n.seen() == Status::retired);
  }
  REQUIRE_THAT(n.cb.at_party.carrier.under_way() == 0);
}

SCENARIO(
    "wire: an end moves, and its receiver, its sender or nobody dies at any step: the home learns "
    "how it ended (wire 7.4, rule 4.5)",
    0) {
  MovingNet n;
  n.write.begin(n.cb.at_party);
  const std::uint32_t victim = 1 + engine().choose(2);  // 1: the sender, 2: the receiver
  const std::uint64_t dead = victim + 1;                // the incarnation of `victim`
  bool killed = false;
  std::vector<w::Peer*> to_tell;
  Events e;
  do {
    if (n.write.ok()) n.write.forget();
    for (Wire& l : n.world->wires) e.frames(l);
    e.may(!killed, [&] {
      killed = true;
      for (Wire& l : n.world->wires) {
        const bool home_dies = l.at_home.space->greeting().incarnation == dead,
                   party_dies = l.at_party.space->greeting().incarnation == dead;
        if (!home_dies && !party_dies) continue;
        l.cut = true;
        to_tell.push_back(home_dies ? &l.at_party : &l.at_home);
      }
    });
    for (std::size_t i = 0; i < to_tell.size(); ++i)
      if (to_tell[i])
        e.may(true, [&, i] { std::exchange(to_tell[i], nullptr)->session.lost("it died"); });
  } while (e.one());
  if (!killed) return;
  // Either no surviving space holds the end, or a surviving space holds it; the home's outcome
  // shows which. `kept` is whether the end has been returned to the sender.
  const bool kept = victim == 2 && n.write.is_over && !n.write.ok();
  if (kept) {
    REQUIRE_THAT(n.seen() == Status::ok);
    n.write.forget();
    n.world->pump();
    REQUIRE_THAT(is_end(n.seen()));
  } else if (victim == 2) {
    REQUIRE_THAT(n.seen() == Status::died);
  } else {
    // The receiver took the end in time, or the end died with the sender.
    REQUIRE_THAT(n.seen() == Status::ok || n.seen() == Status::died);
  }
}

SCENARIO(
    "wire: an end moves, its receiver closes it and says BYE to both, at any step: the home learns "
    "of a retirement and of no death (wire 7.4, rule 4.5)",
    0) {
  MovingNet n;
  n.write.begin(n.cb.at_party);
  n.cb.pump();
  n.write.forget();
  Wire& ca = *n.world->between(0, 2);
  REQUIRE_THAT(ca.up() && ca.down());  // The greetings pass first.
  const bool home_first = engine().choose(2) != 0;
  const auto leave = [&](Wire& l) {
    w::Peer& p = l.at_home.space == n.world->spaces[2] ? l.at_home : l.at_party;
    const w::Space::Step step(*p.space);
    p.session.bye("it is done");
  };
  std::optional<OutEnd> got;
  {
    w::RoomOf<OutEnd> room;
    core::Waker me;
    me.slot = room.slot();
    Reader<OutEnd> ends = n.carry.reader();
    REQUIRE_THAT(ends.core()->begin<core::Side::in>(me) == Status::ok);
    room.filled();
    got.emplace(room.take());
  }
  bool left = false;
  Events e(8);
  do {
    for (Wire& l : n.world->wires) e.frames(l);
    e.may(!left, [&] {
      left = true;
      got.emplace();
      leave(home_first ? ca : n.cb);
      leave(home_first ? n.cb : ca);
    });
    REQUIRE_THAT(n.seen() == Status::ok || (left && n.seen() == Status::retired));
  } while (e.one());
  REQUIRE_THAT(left && n.seen() == Status::retired);
}

SCENARIO(
    "wire: an end goes on at once to a fourth space, whose ADOPT may overtake: it is found, and "
    "nobody keeps a share (wire 7.4)",
    0) {
  runtime::FreshPool fresh;
  const auto world = World::of(4);
  Wire &ab = world->join(0, 1), &cb = world->join(2, 1), &dc = world->join(3, 2);
  Channel<int> c;
  Channel<OutEnd> carry{buffer(1)}, on{buffer(1)};
  Reader<int> home = c.reader();
  Reader<OutEnd> ends = carry.reader(), last = on.reader();
  const auto seen = [&] { return c.core()->how_ended<core::Side::in>(); };
  const auto take = [](Reader<OutEnd>& from) {
    w::RoomOf<OutEnd> room;
    core::Waker me;
    me.slot = room.slot();
    REQUIRE_THAT(from.core()->begin<core::Side::in>(me) == Status::ok);
    room.filled();
    return room.take();
  };
  ab.give(c.writer());
  const auto to = cb.give(carry.writer()), to_last = dc.give(on.writer());
  world->pump();
  OpOf<OutEnd> first, second;
  const auto& o = ab.at_party.offered[0];
  first.write(to, OutEnd(w::FarWriter<int>(std::make_shared<w::FarEnd>(
                      ab.at_party.shared_from_this(), o.end, o.key, o.name))));
  first.begin(cb.at_party);
  cb.pump();
  first.forget();
  second.write(to_last, take(ends)).begin(dc.at_party);
  dc.pump();
  second.forget();
  {
    // Both spaces hold an end, and the home knows of neither end.
    for (const std::size_t i : {2, 3}) {  // The greetings pass first.
      Wire& l = *world->between(0, i);
      REQUIRE_THAT(l.up() && l.down());
    }
    const OutEnd e = take(last);
    Events events;
    do {
      for (Wire& l : world->wires) events.frames(l);
      REQUIRE_THAT(seen() == Status::ok);
    } while (events.one());
    REQUIRE_THAT(c.core()->writer_ends() == 1);
    REQUIRE_THAT(cb.at_party.carrier.under_way() == 0 && dc.at_party.carrier.under_way() == 0);
  }
  world->pump();
  REQUIRE_THAT(seen() == Status::retired);
}

SCENARIO(
    "wire: an end moves, and those who were introduced lose each other at any step: nobody has it, "
    "and the home learns that (wire 7.4)",
    0) {
  MovingNet n;
  n.write.begin(n.cb.at_party);
  Wire& lost = *n.world->between(0, 2);
  bool home_knows = false, party_knows = false;
  Events e;
  do {
    if (n.write.ok()) n.write.forget();
    for (Wire& l : n.world->wires) e.frames(l);
    e.may(!home_knows, [&] { lost.cut = home_knows = true, lost.tell(lost.at_home); });
    e.may(!party_knows, [&] { lost.cut = party_knows = true, lost.tell(lost.at_party); });
  } while (e.one());
  REQUIRE_THAT(n.write.ok() && is_end(n.seen()));
  REQUIRE_THAT(n.cb.at_party.carrier.under_way() == 0);
}

// --- resending (wire 13.1; conformance/models/wire_resend.pml) -----------------------------------

SCENARIO(
    "wire: packets come in any order, twice or never: what is taken is what was sent, from the "
    "first on (wire 13.1)",
    0) {
  using w::detail::Resender;
  static constexpr std::string_view kAll = "abc";
  Resender sender(2, 1), receiver(2, 1);
  // An acknowledgement of a packet that was never sent, as a hostile receiver may invent it.
  w::Buffer lie;
  {
    Resender liar(2, 1, 50, 7);
    liar.queue(std::as_bytes(std::span(kAll)).first(1));
    liar.next(lie);
    for (const std::size_t zero : {4, 5, 6, 7, 12, 14}) lie[zero] = std::byte{0};
    lie.resize(Resender::kPacketHeader);
    const std::uint32_t sum = w::detail::crc32(w::Bytes(lie).subspan(4));
    for (std::size_t k = 0; k < 4; ++k) lie[k] = static_cast<std::byte>(sum >> (8 * k) & 0xFF);
  }
  std::size_t queued = 0;
  w::Buffer got, none;
  std::vector<w::Buffer> data, answers;  // packets under way, which may arrive any number of times
  const auto look = [&] {
    const std::string_view so_far(reinterpret_cast<const char*>(got.data()), got.size());
    REQUIRE_THAT(kAll.starts_with(so_far) && none.empty());
    REQUIRE_THAT(sender.under_way() <= 2 && queued - sender.under_way() <= got.size());
  };
  int whiles = 1, lies = 1;
  for (int left = 6; left > 0; --left) {
    queued += sender.queue(std::as_bytes(std::span(kAll)).subspan(queued));
    w::Buffer packet;
    while (sender.next(packet)) data.push_back(packet);
    Events e;
    for (std::size_t k = 0; k < data.size(); ++k)
      e.may(true, [&, k] {
        receiver.input(data[k], got);
        w::Buffer answer;
        if (receiver.next(answer) &&
            std::find(answers.begin(), answers.end(), answer) == answers.end())
          answers.push_back(answer);
        if (answers.size() > 2) answers.erase(answers.begin());
      });
    for (std::size_t k = 0; k < answers.size(); ++k)
      e.may(true, [&, k] { sender.input(answers[k], none); });
    e.may(whiles > 0, [&] { --whiles, data.clear(), sender.waited(); });
    e.may(lies > 0 && left < 4, [&] { --lies, sender.input(lie, none); });
    if (!e.one()) break;
    look();
  }
  // From here on no packet is lost.
  for (int rounds = 0; rounds < 5; ++rounds) {
    queued += sender.queue(std::as_bytes(std::span(kAll)).subspan(queued));
    sender.waited();
    w::Buffer packet;
    while (sender.next(packet)) receiver.input(packet, got);
    while (receiver.next(packet)) sender.input(packet, none);
    look();
  }
  REQUIRE_THAT(got.size() == kAll.size() && sender.under_way() == 0);
}

}  // namespace
}  // namespace weft::test
