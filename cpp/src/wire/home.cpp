// The definitions of wire/home.hpp.
#include <weft/wire/home.hpp>
#include <weft/wire/lender.hpp>
#include <weft/wire/space.hpp>
#include <weft/wire/spanned.hpp>

namespace weft::inline WEFT_ABI::wire {

constexpr core::WakerOps Decided::kOps{&Decided::wake, nullptr, nullptr, 0};

void Decided::wake(core::Waker* w) noexcept {
  // Once the waker is in the list, another thread can answer and destroy the waker. The space must
  // outlive the waker.
  const std::shared_ptr<Space> s = static_cast<Decided*>(w)->space;
  s->decided(w);
}

Visitor::Visitor(Home& h, std::uint64_t number)
    : Decided(h.space.shared_from_this()), home(&h), op(number) {
  // The visitor's process is in another program, and might have a time limit there.
  set(core::NodeFlags::limited);
}
Visitor::Visitor(std::shared_ptr<Space> s, std::shared_ptr<Spanned> part)
    : Decided(std::move(s)), op(0), span(std::move(part)) {
  set(core::NodeFlags::limited);  // An attempt can be withdrawn at any moment.
}

void Visitor::notified() noexcept {
  look();
  if (span)
    span->decided();
  else if (home)
    home->answer(*this);
  else if (has_happened())
    Back::end(space->unbury(*this), keeps);
  else {
    if (to_make()) fail();
    space->bury(*this);
  }
}

void Back::end(std::unique_ptr<Visitor> g, bool back) {
  Visitor& visitor = *g;
  Port& port = *visitor.at[0].port;
  if (!back) {
    port.end_extended(visitor);
    return;
  }
  std::unique_ptr<Back> b(new Back(std::move(g)));
  const Status s = port.give_back(visitor, *b);
  if (s == Status::pending)
    static_cast<void>(b.release());  // notified() will be called, in a later step.
  else if (!port.buffered())
    port.end_extended(visitor);
}
// Called when a reader has read the value, or no reader ever will. The writer of the value, which
// was held until now, can continue.
void Back::notified() noexcept {
  const std::unique_ptr<Back> me(this);
  visitor_->at[0].port->end_extended(*visitor_);
}

bool Visitor::bind() noexcept {
  if (at.size() < 2) return true;
  guards = std::make_unique<core::Guard[]>(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    guards[i].enabled = !at[i].off;
    // A guard is off only in a choice that spans. Such a guard is not armed: the check below
    // searches for a choice that holds both ends of one channel, and a guard that is off does not
    // count.
    if (at[i].off) continue;
    at[i].port->arm(guards[i]);
    guards[i].node.slot = at[i].room->slot();
    if (at[i].later) guards[i].node.set(core::NodeFlags::compute);
  }
  const auto fault = core::find_fault(guards.get(), static_cast<std::uint32_t>(at.size())).what;
  return fault != core::Fault::both_ends && fault != core::Fault::barrier_twice;
}

bool Visitor::begin() noexcept {
  if (at.size() == 1) {
    slot = at[0].room->slot();
    if (at[0].later) set(core::NodeFlags::compute);
    status = Status::ok;
    outcome = at[0].port->begin(*this);
    return outcome != Status::pending && decide(0, outcome);
  }
  select.bind(guards.get(), static_cast<std::uint32_t>(at.size()), Mode::priority, this, 0);
  int r = select.scan([] { return std::int64_t{0}; });
  if (r == core::Select::none) r = select.enrol();
  if (r == core::Select::parked) return false;
  return decide(r, select.status());
}

bool Visitor::decide(int guard, Status s) noexcept {
  chosen = guard;
  outcome = s;
  const Seat& there = at[static_cast<std::size_t>(guard)];
  if (s == Status::ok && !there.port->writes()) there.room->filled();
  return true;
}

bool Visitor::withdraw() noexcept {
  if (at.size() == 1) return at[0].port->withdraw(*this);
  if (select.held() || !select.choice.finish_as(core::CANCELLED)) return false;
  select.finish();
  return true;
}

bool Visitor::has_met() noexcept {
  if (at.size() == 1) return at[0].port->has_met(*this);
  const int k = select.committed_to();
  if (k < 0) return false;
  const auto i = static_cast<std::size_t>(k);
  return at[i].port->has_met(guards[i].node);
}

void Visitor::look() noexcept {
  // If the stage is `delivering`, this function was called because the block of the extended read
  // that held the visitor has ended.
  if (stage == Stage::delivering) return;
  if (at.size() == 1) {
    decide(0, status);
    return;
  }
  const int r = select.finish();
  decide(r, select.status());
}

struct Home::Part final : Spanned::Seat {
  Part(Home& h, std::uint64_t o) noexcept : home(h), op(o) {}
  Home& home;
  const std::uint64_t op;
  detail::Untaken untaken;
  std::shared_ptr<Spanned> span;

  void say(Kind k, std::uint32_t where, std::uint64_t val) {
    home.session_.send(Frame{k, 0, where, 0, op, val, {}});
  }
  void ready() override { say(Kind::ready, 0, 0); }
  void silent(std::uint32_t guard) override { say(Kind::ready, guard, 1); }
  void not_ready() override { say(Kind::not_ready, 0, 0); }
  void commit(std::uint32_t guard) override { say(Kind::commit, guard, 0); }
  void over(std::uint32_t guard, Status s, Visitor::Seat& at) override {
    const auto me = home.parts_.extract(op);
    if (s == Status::ok)
      home.tell_done(op, guard, at);
    else
      home.tell_ended(op, guard, s, *at.port);
  }
};

std::uint32_t Home::give(std::shared_ptr<Port> p, const std::string& type, const std::string& name,
                         std::uint64_t capacity) {
  // lost() was called already, so the end dies as the session's other ends did.
  if (session_.is_over()) {
    p->close(true);
    return 0;
  }
  const bool writes = p->writes();
  const auto [end, key] = lend(std::move(p));
  Buffer body;
  detail::put(body, key);
  detail::put(body, std::as_bytes(std::span(type)));
  body.push_back(std::byte{0});
  detail::put(body, std::as_bytes(std::span(name)));
  session_.send(Frame{Kind::give, static_cast<std::uint8_t>(writes ? Flag::write : 0), end, 0,
                      capacity, body.size(), body});
  return end;
}

void Home::add(std::uint32_t end, std::uint64_t key, std::shared_ptr<Port> p) {
  if (p) space.know(key, *this, end);
  ends_.emplace(end, Given{std::move(p), key, nullptr});
}
void Home::close(Given& g, bool died) {
  if (!g.port) return;
  if (const auto lender = std::move(g.lender)) lender->close();
  space.forget(g.key, *this);
  g.port->close(died);
}
Home::Numbered Home::lend(std::shared_ptr<Port> p) {
  const Numbered n{next_++, space.random()};
  add(n.number, n.key, std::move(p));
  return n;
}
void Home::unlend(std::uint32_t end) {
  if (const auto node = ends_.extract(end)) close(node.mapped(), false);
}

const char* Home::adopt(const Frame& f) {
  if (f.where != next_adopted_) return "an ADOPT whose number is not the next";
  const std::uint64_t text = std::uint64_t{8} + f.txn;
  if (text > f.body.size()) return "an ADOPT without its key or type";
  const std::size_t names = padded(static_cast<std::size_t>(text));
  const std::size_t before = (f.body.size() - names) / 8;
  if (before >= FarEnd::kBefore || !detail::holds(f.body.first(names), text))
    return "an ADOPT that does not add up";
  if (ends_.size() == kEnds) return "more ends than a peer may hold";
  next_adopted_ = (next_adopted_ + 1) | kAdopted;
  std::vector<std::uint64_t> keys{f.op};
  for (std::size_t i = 0; i < before; ++i)
    keys.push_back(detail::get<std::uint64_t>(f.body.data() + names + 8 * i));
  const auto from = space.lent(keys);
  const std::string type(reinterpret_cast<const char*>(f.body.data()) + 8, f.txn);
  // An end of another type is dead for the peer that adopts it. Other peers are not affected.
  add(f.where, detail::get<std::uint64_t>(f.body.data()),
      from.port && from.port->type() == type ? from.port->another() : nullptr);
  if (from.first) from.peer->session.send(Frame{Kind::adopted, 0, 0, 0, 0, f.val, {}});
  // This home might not know the sender of the end yet, or might no longer know it. Then the
  // adopter must notify the sender.
  const bool tell = !from.first;
  session_.send(Frame{Kind::adopted, 0, f.where, 0, 0, tell ? 1u : 0u, {}});
  return nullptr;
}

std::size_t Home::untaken() const noexcept {
  std::size_t all = 0;
  for (const Before& b : before_) all += b.untaken.bytes();
  for (const auto& [op, visitor] : open_) all += visitor->untaken.bytes();
  for (const auto& [op, part] : parts_) all += part->untaken.bytes();
  return all;
}
// Returns null if the peer holds an end to write to; otherwise a text that says what is wrong.
// `end` is 0, or one more than the end's number.
const char* Home::may_send(std::uint64_t end) const noexcept {
  const auto writes = [](const Given& g) { return !g.port || g.port->writes(); };
  if (const auto it = ends_.find(static_cast<std::uint32_t>(end - 1));
      end != 0 && end - 1 <= ~std::uint32_t{0} && it != ends_.end() && writes(it->second))
    return nullptr;
  for (const auto& [number, given] : ends_)
    if (writes(given)) return nullptr;
  return "a VALUE from a peer that holds no end to write to";
}

// Handles a piece of a value that comes before the value's OFFER or PUT (WIRE.md 9.1).
const char* Home::value(const Frame& f) {
  if (f.where >= kGuards || (!before_.empty() && f.where < before_.back().guard))
    return "a VALUE of a guard that is not the next";
  std::uint64_t all = f.val;
  for (const Before& b : before_) all += b.size;
  if (all > kMaxBytes) return "a value of more than a gibibyte";
  if (before_.empty() || before_.back().guard != f.where) {
    if (before_.empty())
      if (const char* wrong = may_send(f.op)) return wrong;
    // At most one room is prepared, so the memory for values that might never arrive is bounded.
    auto room = before_.empty() ? room_for(f) : nullptr;
    before_.push_back({f.where, {}, static_cast<std::uint32_t>(f.op - 1), std::move(room)});
    if (before_.back().room)
      before_.back().to_come = f.txn;
    else
      before_.back().bytes = spare_.take();
  }
  Before& b = before_.back();
  const std::size_t comes = b.room ? b.size == 0 ? b.to_come : 0 : static_cast<std::size_t>(f.val);
  if (counts) {
    if (const char* wrong = space.relieve(*this, comes)) return wrong;
    b.untaken.add(space.untaken, comes);
  }
  const Bytes piece = f.body.first(static_cast<std::size_t>(f.val));
  b.size += piece.size();
  if (!b.room) {
    detail::put(b.bytes, piece);
    return nullptr;
  }
  if (piece.size() > b.to_come) return "a VALUE of more than it said";
  b.to_come -= piece.size();
  b.room->more(piece);
  return nullptr;
}
// Returns the room for the value of which this frame is the first piece; null if the room is not
// known yet.
std::unique_ptr<Room> Home::room_for(const Frame& f) {
  if (f.op == 0 || f.op - 1 > ~std::uint32_t{0} || f.txn == 0 || f.txn > kMaxBytes) return nullptr;
  const Given* const g = held(static_cast<std::uint32_t>(f.op - 1));
  if (!g || !g->port || !g->port->writes()) return nullptr;
  auto room = g->port->room();
  return room->will_come(f.txn) ? std::move(room) : nullptr;
}
// Joins the pieces that arrived before with the values of these guards. Returns null, or a text
// that says what is wrong.
const char* Home::complete(std::vector<Before>& before, std::span<Asked> guards, bool offered) {
  for (Before& b : before) {
    Payload* const p =
        b.guard < guards.size() && guards[b.guard].writes ? &guards[b.guard].value : nullptr;
    if (!p || !p->in_body || p->leased) return "a VALUE of a guard that takes no bytes";
    if (b.room) {
      if (!offered || guards[b.guard].end != b.end) return "a VALUE of another end";
      if (p->bytes.size() != b.to_come) return "a value that is not as long as its VALUE said";
      continue;
    }
    detail::put(b.bytes, p->bytes);
    p->bytes = b.bytes;
  }
  return nullptr;
}

const char* Home::asked(const Frame& f) {
  if (f.op <= last_) return "an OFFER's number is not above those before it";
  last_ = f.op;
  if (open() == kOffers) return "more offers are open than a peer may have";
  std::vector<Visitor::Seat> at;
  bool dead = false;
  // The number of bytes that this home holds for the OFFER, if they are counted.
  std::size_t bytes = f.body.size();
  if (counts)
    for (const Before& b : before_) bytes += b.size;
  if (const char* wrong = seats(f, at, dead)) return wrong;
  if (dead) return nullptr;
  bytes += kVisitor * at.size();
  if (counts)
    if (const char* wrong = space.relieve(*this, bytes)) return wrong;
  const bool spanning = (f.flags & Flag::spans) != 0;
  std::unique_ptr<Visitor> g;
  if (!spanning || at.size() > 1) {
    g = std::make_unique<Visitor>(*this, f.op);
    g->at = std::move(at);
    // bind() fails if the choice holds both ends of one channel. The place of the choice might not
    // know that, because it might know the channel by two names. Such a choice is bad use.
    if (!g->bind()) {
      tell_bad_use(f.op, 5);
      return nullptr;
    }
  }
  std::vector<Visitor::Seat>& mine = g ? g->at : at;
  for (const Visitor::Seat& s : mine) {
    core::BarrierEngine<Shared>* const b = s.port ? s.port->barrier() : nullptr;
    if (!b) continue;
    if (spanning || asked_[0].holds)
      return "a barrier in a choice that spans, or in an extended read";
    if (b->enrolled() > 0 || b->has_died()) continue;
    tell_bad_use(f.op, 6);
    return nullptr;
  }
  if (spanning) return spans(f, std::move(mine), bytes);
  if (counts) g->untaken.add(space.untaken, bytes);
  if (asked_[0].holds) g->will_hold(asked_[0].keeps);
  Visitor& visitor = *g;
  open_.emplace(f.op, std::move(g));
  if (!visitor.begin()) return nullptr;
  // If this write has met a reader, that reader is in the list already, and is answered first.
  if (visitor.chose_a_write()) space.answer_decided();
  answer(visitor);
  return nullptr;
}

// Fills `at` with the seats for an OFFER's guards. Returns null, or a text that says what is wrong.
// Sets `dead` if an end had died before the peer received it; the OFFER has then been answered.
const char* Home::seats(const Frame& f, std::vector<Visitor::Seat>& at, bool& dead) {
  static constexpr const char* kSides =
      "an OFFER to write at a reader end, or to read at a writer end";
  if (const char* wrong = guards_of(f, asked_)) return wrong;
  Came before(*this);
  if (const char* wrong = complete(before.all, asked_, true)) return wrong;
  auto come = before.all.begin();  // the pieces that arrived before, in the order of the guards
  at.reserve(asked_.size());
  for (const Asked& a : asked_) {
    Given* const given = held(a.end);
    if (!given) return "an OFFER at an end that this peer does not hold";
    if (given->lender) offered(*given);
    if (a.off) {
      if (given->port && given->port->writes() != a.writes) return kSides;
      at.push_back({given->port, nullptr, a.end, true});
      continue;
    }
    if (!given->port) {
      session_.send(Frame{Kind::ended, 0, static_cast<std::uint32_t>(at.size()), 0, f.op, 3, {}});
      dead = true;
      return nullptr;
    }
    if (given->port->writes() != a.writes) return kSides;
    const auto guard = static_cast<std::uint32_t>(at.size());
    while (come != before.all.end() && come->guard < guard) ++come;
    const bool there = come != before.all.end() && come->guard == guard && come->room;
    at.push_back(
        {given->port, there ? std::move(come->room) : given->port->room(), a.end, false, a.later});
    if (!a.writes || a.later) continue;
    Room& room = *at.back().room;
    if (!(there ? room.last(a.value.bytes) : room.load(a.value, carrier_)))
      return carrier_.wrong("an OFFER with a value that is not of its channel's type");
  }
  return nullptr;
}

void Home::answer(Visitor& g) {
  if (g.to_make()) {
    g.stage = Visitor::Stage::making;
    session_.send(Frame{Kind::commit, 0, static_cast<std::uint32_t>(g.chosen), 0, g.op, 0, {}});
    return;
  }
  auto node = open_.extract(g.op);
  const auto where = static_cast<std::uint32_t>(g.chosen);
  Visitor::Seat& at = g.at[where];
  if (g.outcome != Status::ok) return tell_ended(g.op, where, g.outcome, *at.port);
  const auto lender = may_lend(g);
  // The value is copied: it might be given back and must then be unchanged, but the peer can write
  // to memory that it shares with this program.
  carrier_.by_copy(g.keeps);
  const bool slots = lender && at.port->buffered();
  const bool sent = tell_done(g.op, where, at, slots ? 1 + std::uint64_t{lender->lent()} : 0);
  carrier_.by_copy(false);
  if (lender) lender->go_on();
  if (!g.holds) return;
  if (!g.keeps) at.room = at.port->room();  // The old room's value belongs to the peer.
  if (sent)
    held_.emplace(g.op, std::move(node.mapped()));
  else
    Back::end(std::move(node.mapped()), false);
}
// Handles the value that a COMMIT has asked for.
const char* Home::made(const Frame& f) {
  static constexpr const char* kNone =
      "a MADE of an operation that has not committed without its value";
  static constexpr const char* kOther = "a MADE with a value that is not of its channel's type";
  if (f.where > 1) return "a MADE that says neither made nor failed";
  Came before(*this);
  Asked it{0, true, f.payload()};
  if (const char* wrong = complete(before.all, std::span(&it, 1))) return wrong;
  if (const auto p = parts_.find(f.op); p != parts_.end()) {
    const auto part = p->second;
    if (!part->span->making()) return kNone;
    if (f.where == 0)
      return part->span->made(it.value, carrier_) ? nullptr : carrier_.wrong(kOther);
    parts_.erase(f.op);
    part->span->close();
    return nullptr;
  }
  const auto o = open_.find(f.op);
  if (o == open_.end() || o->second->stage != Visitor::Stage::making) return kNone;
  Visitor& g = *o->second;
  if (f.where == 1) {
    g.fail();
    open_.erase(o);
    return nullptr;
  }
  if (!g.at[static_cast<std::size_t>(g.chosen)].room->load(it.value, carrier_))
    return carrier_.wrong(kOther);
  if (g.made() == Status::pending) return nullptr;
  space.answer_decided();  // The reader is answered first (WIRE.md 4.2).
  answer(g);
  return nullptr;
}
const char* Home::held_end(const Frame& f) {
  if (f.val > 1) return "a HELD-END that says neither over nor back";
  const auto it = held_.find(f.op);
  if (it == held_.end()) return "a HELD-END of no read whose end is awaited";
  if (f.val == 1 && !it->second->keeps) return "a HELD-END that gives back what was not to be kept";
  std::unique_ptr<Visitor> visitor = std::move(it->second);
  held_.erase(it);
  Back::end(std::move(visitor), f.val == 1);
  return nullptr;
}
bool Home::tell_done(std::uint64_t op, std::uint32_t where, Visitor::Seat& at,
                     std::uint64_t lending) {
  Frame f{Kind::done, 0, where, 0, op, lending, {}};
  Keeper keeper;
  if (!at.port->writes()) {
    carrier_.begin(0);
    const Payload p = at.room->unload(keep_, carrier_);
    if (p.bytes.size() > kMaxBytes) {
      carrier_.take_back();
      session_.send(Frame{Kind::ended, 0, where, 0, op, 4, {}});
      return false;
    }
    Bytes rest = p.bytes;
    if (p.lasts && !carrier_.copies() && session_.lends(rest.size())) {
      keeper = at.room->keeper();
      // The value belongs to the peer now.
      if (!keeper) keeper = std::shared_ptr<Room>(std::move(at.room));
      f.keeper = &keeper;
    }
    const auto all = static_cast<std::uint32_t>(rest.size());
    for (const std::size_t piece = session_.largest() - kHeader; rest.size() > piece;
         rest = rest.subspan(piece))
      session_.send(Frame{Kind::value, 0, 0, all, op, piece, rest.first(piece), f.keeper});
    f.val = p.in_body ? rest.size() : p.small;
    f.flags = p.flags();
    f.body = rest;
    carrier_.sent(0);
    told_a_reader = true;
  } else {
    space.readers_first(*this);
  }
  session_.send(f);
  return true;
}
void Home::tell_ended(std::uint64_t op, std::uint32_t where, Status s, const Port& at) {
  const std::uint64_t how = s == Status::retired ? 1 : s == Status::poisoned ? 2 : 3;
  const std::uint64_t strength = how == 2 ? at.strength() : 0;
  session_.send(Frame{Kind::ended, 0, where, 0, op, how | strength << 8, {}});
}

const char* Home::withdraw(const Frame& f) {
  if (const auto part = parts_.find(f.op); part != parts_.end()) {
    part->second->span->withdraw();
    return nullptr;
  }
  const auto it = open_.find(f.op);
  if (it == open_.end()) return nullptr;  // The operation was answered before its WITHDRAW arrived.
  if (!it->second->withdraw()) return nullptr;
  open_.erase(it);
  session_.send(Frame{Kind::withdrawn, 0, 0, 0, f.op, 0, {}});
  return nullptr;
}

const char* Home::retire(const Frame& f) {
  if (!held(f.where)) return "a RETIRE of an end that this peer does not hold";
  if (f.val > 1) return "a RETIRE that says neither retired nor died";
  const auto node = ends_.extract(f.where);
  Given& g = node.mapped();
  close(g, f.val == 1);
  return nullptr;
}

// Handles a message about the parties of a barrier (WIRE.md 4.9).
const char* Home::parties(const Frame& f) {
  Given* const g = held(f.where);
  if (!g || (g->port && !g->port->barrier()))
    return "a PARTIES at what is not a barrier of this peer";
  if (f.op <= last_) return "a PARTIES whose number is not above those before it";
  if (f.val > 2) return "a PARTIES that neither asks, nor enrols, nor takes away";
  last_ = f.op;
  core::BarrierEngine<Shared>* const b = g->port ? g->port->barrier() : nullptr;
  if (!b || b->has_died()) {
    session_.send(Frame{Kind::ended, 0, 0, 0, f.op, 3, {}});
    return nullptr;
  }
  if (f.val == 1) b->enrol_party();
  if (f.val == 2 && !b->resign()) {
    tell_bad_use(f.op, 6);
    return nullptr;
  }
  session_.send(Frame{Kind::done, 0, 0, 0, f.op, b->enrolled(), {}});
  return nullptr;
}

const char* Home::poison(const Frame& f) {
  Given* const g = held(f.where);
  if (!g) return "a POISON through an end that this peer does not hold";
  if (g->port && g->port->barrier()) return "a POISON of a barrier";
  if (f.val < 1 || f.val > 255) return "a POISON whose strength is not between 1 and 255";
  if (g->port) g->port->poison(static_cast<std::uint8_t>(f.val));
  return nullptr;
}

void Home::lost() noexcept {
  before_.clear();
  for (auto& [op, visitor] : open_) {
    visitor->home = nullptr;
    if (visitor->stage == Visitor::Stage::making) {
      visitor->fail();
      continue;
    }
    if (visitor->withdraw()) continue;
    space.adopt(std::move(visitor));
  }
  open_.clear();
  auto held = std::exchange(held_, {});
  for (auto it = held.rbegin(); it != held.rend(); ++it) {
    // The newest value is given back first, so the next readers receive the values in the order in
    // which they were read.
    it->second->home = nullptr;
    const bool back = it->second->keeps;
    Back::end(std::move(it->second), back);
  }
  for (const auto& [op, part] : std::exchange(parts_, {})) part->span->close();
  auto ends = std::exchange(ends_, {});
  for (auto& [end, g] : ends) close(g, true);
}

// --- credits (WIRE.md 6) -------------------------------------------------------------------------

std::shared_ptr<Lender> Home::may_lend(const Visitor& visitor) {
  if (!(session_.theirs().profile & Profile::credits)) return {};
  if (visitor.at.size() > 1 || !visitor.at[0].port->writes()) return {};
  Given* const g = held(visitor.at[0].end);
  if (!g) return {};
  if (g->lender && !g->lender->is_over()) return {};
  g->lender = nullptr;
  if (!visitor.at[0].port->buffered()) {
    if (!lends_places || !(session_.theirs().profile & Profile::places)) return {};
    if (g->later > 0 && g->later-- > 0) return {};
  }
  const int n = g->port->lend(nullptr, 1);
  if (n < 0) return {};
  return g->lender = std::make_shared<Lender>(*this, session_, visitor.at[0].end, g->port,
                                              static_cast<std::uint32_t>(n));
}
// Handles an OFFER at an end with credits. Such an OFFER comes only at a rendezvous, since credits
// of a buffer are given up before an OFFER.
void Home::offered(Given& g) {
  if (!g.lender->crossed()) return;
  g.lender = nullptr;
  if (g.late < 6) ++g.late;
  g.later = static_cast<std::uint8_t>(1u << g.late);
}
const char* Home::put(const Frame& f) {
  Given* const g = held(f.where);
  if (!g || !g->lender) return "a PUT at an end without credits";
  Came before(*this);
  Asked it{f.where, true, f.payload()};
  if (const char* wrong = complete(before.all, std::span(&it, 1))) return wrong;
  g->late = 0;
  return g->lender->put(it.value, carrier_);
}
const char* Home::want(const Frame& f) {
  Given* const g = held(f.where);
  if (!g || !g->lender) return "a WANT of an end without credits";
  g->lender->want();
  return nullptr;
}
const char* Home::recalled(const Frame& f) {
  Given* const g = held(f.where);
  if (!g || !g->lender) return "a RECALLED of an end without credits";
  const auto lender = std::move(g->lender);
  lender->close();
  return nullptr;
}

// --- choices that span several homes (WIRE.md 5) ----------------------------------------------

const char* Home::spans(const Frame& f, std::vector<Visitor::Seat> at, std::size_t bytes) {
  if (f.txn == 0) return "an OFFER that spans without its place in the order";
  auto part = std::make_shared<Part>(*this, f.op);
  if (counts) part->untaken.add(space.untaken, bytes);
  part->span =
      std::make_shared<Spanned>(space, *part, Spanned::Rank{session_.theirs().incarnation, f.txn},
                                std::move(at), (f.flags & Flag::now) != 0);
  parts_.emplace(f.op, part);
  part->span->begin((f.flags & Flag::tries) != 0);
  return nullptr;
}
const char* Home::gone(const Frame& f) {
  if (const auto part = parts_.extract(f.op)) part.mapped()->span->close();
  return nullptr;
}
const char* Home::try_it(const Frame& f) {
  const auto it = parts_.find(f.op);
  if (it == parts_.end()) return nullptr;  // The part ended before the TRY arrived.
  const auto part = it->second;
  if (f.val == 0 || f.where >= part->span->size() || f.val > part->span->size() - f.where)
    return "a TRY of guards that were not offered";
  if (part->span->trying()) return "a TRY while another one is not answered";
  part->span->attempt(f.where, static_cast<std::uint32_t>(f.val));
  return nullptr;
}

}  // namespace weft::inline WEFT_ABI::wire
