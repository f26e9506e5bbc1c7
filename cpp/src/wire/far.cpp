// The definitions of wire/far.hpp.
#include <weft/wire/far.hpp>

namespace weft::inline WEFT_ABI::wire {

namespace detail {
constexpr const char* kTooLong = "a value of more than a gibibyte: send it in pieces";
constexpr const char* kTooMany = "more guards than fit into a frame of the session";
}  // namespace detail

bool Far::begin(FarOp& o) {
  if (session_.is_over()) {
    o.outcome = when_lost(Word::unsent, false);
    o.word_ = Word::over;
    return true;
  }
  for (const FarGuard& g : o.guards) {
    if (credits_.empty()) break;
    if (!g.writes || g.off) continue;
    const auto it = credits_.find(g.end);
    if (it == credits_.end()) continue;
    if (o.guards.size() > 1 || o.rank || g.later) {
      give_up(g.end);
    } else if (it->second.n == 0) {
      o.in_line_ = true;
      it->second.line.push_back(&o);
      want(g.end, it->second);
      return false;
    } else {
      const bool place = it->second.place;
      if (!put(o, !place)) return true;
      --it->second.n;
      if (place) credits_.erase(it);
      return true;
    }
  }
  return !offer_it(o);
}
bool Far::offer_it(FarOp& o) {
  if (const auto what = o.guards[0].parties; what != FarGuard::Parties::none) {
    o.op_ = next_++;
    o.word_ = Word::open;
    open_.emplace(o.op_, &o);
    session_.send(Frame{
        Kind::parties, 0, o.guards[0].end, 0, o.op_, static_cast<std::uint64_t>(what) - 1, {}});
    return true;
  }
  if (keep_.size() < o.guards.size()) keep_.resize(o.guards.size());
  asked_.clear();
  for (std::size_t i = 0; i < o.guards.size(); ++i) {
    const FarGuard& g = o.guards[i];
    carrier_.begin(static_cast<std::uint32_t>(i));
    asked_.push_back(
        {g.end, g.writes,
         g.writes && !g.off && !g.later ? g.room->unload(keep_[i], carrier_) : Payload{}, g.holds,
         g.keeps, g.off, g.later && !g.off});
  }
  std::size_t all = kHeader;  // the size of the frame in bytes, before any value is copied into it
  for (std::size_t i = 0; i < asked_.size(); ++i)
    all +=
        (i == 0 ? 0 : kMore) + (asked_[i].value.in_body ? padded(asked_[i].value.bytes.size()) : 0);
  std::vector<Payload> before;  // for each guard, the value that is sent before the frame
  if (all > session_.largest()) {
    for (Asked& a : asked_) {
      if (a.value.bytes.size() > kMaxBytes) o.refused = detail::kTooLong;
      before.push_back(a.value.leased ? Payload{} : a.value);
      if (!a.value.leased) a.value.bytes = {};
    }
  }
  Frame f = offer(next_, asked_, body_);
  if (kHeader + padded(f.body.size()) > session_.largest()) o.refused = detail::kTooMany;
  if (o.rank) {
    f.flags |= Flag::spans | (o.looks ? Flag::now : 0) | (o.trying ? Flag::tries : 0);
    f.txn = o.rank;
  }
  if (o.guards.size() > kGuards) o.refused = "more than 255 guards";
  if (carrier_.trouble()) o.refused = carrier_.trouble();
  if (o.refused) {
    carrier_.take_back();
    return false;
  }
  o.op_ = next_++;
  o.word_ = Word::open;
  open_.emplace(o.op_, &o);
  for (const FarGuard& g : o.guards)
    if (g.writes) {
      Offered& at = offered_[g.end];
      at.last = o.op_;
      ++at.open;
    }
  for (std::size_t i = 0; i < before.size(); ++i)
    // A value that no keeper owns stays in place until the operation has ended.
    send_before(static_cast<std::uint32_t>(i), before[i], *o.guards[i].room, true,
                std::uint64_t{1} + o.guards[i].end);
  session_.send(f);
  carrier_.sent(o.op_);
  return true;
}

// Sends the VALUE frames that come before an OFFER, PUT or MADE (WIRE.md 9.1).
void Far::send_before(std::uint32_t guard, const Payload& p, const Room& room, bool stays,
                      std::uint64_t end) {
  const std::size_t piece = session_.largest() - kHeader;
  const Keeper keeper = keeper_of(p, room);
  for (Bytes value = p.bytes; !value.empty();
       value = value.subspan(std::min(piece, value.size()))) {
    const Bytes now = value.first(std::min(piece, value.size()));
    session_.send(Frame{Kind::value, Flag::write, guard, static_cast<std::uint32_t>(p.bytes.size()),
                        end, now.size(), now, keeper || (stays && p.lasts) ? &keeper : nullptr},
                  true);
  }
}
Keeper Far::keeper_of(const Payload& p, const Room& room) const {
  return p.lasts && session_.lends(p.bytes.size()) ? room.keeper() : Keeper{};
}

// Sends a PUT. `later` says that no party waits for the value at the home.
bool Far::put(FarOp& o, bool later) {
  const FarGuard& g = o.guards[0];
  if (keep_.empty()) keep_.resize(1);
  carrier_.begin(0);
  const Payload p = g.room->unload(keep_[0], carrier_);
  Bytes rest = p.bytes;
  if (rest.size() > kMaxBytes) o.refused = detail::kTooLong;
  if (carrier_.trouble()) o.refused = carrier_.trouble();
  if (o.refused) {
    carrier_.take_back();
    return false;
  }
  // The write ends immediately, so its value can be destroyed before the value has been sent,
  // unless a keeper owns it.
  const Keeper keeper = keeper_of(p, *g.room);
  if (kHeader + padded(rest.size()) > session_.largest()) {
    send_before(0, p, *g.room, false);
    rest = {};
  }
  session_.send(Frame{Kind::put, p.flags(), g.end, 0, 0, p.in_body ? rest.size() : p.small, rest,
                      keeper ? &keeper : nullptr},
                later);
  carrier_.sent(0);  // The value belongs to the home now.
  o.word_ = Word::over;
  o.outcome = {Status::ok, 0, 0, false, false};
  return true;
}
const char* Far::credit(const Frame& f) {
  if (f.val == 0 || f.val > std::uint64_t{1} << 31) return "a CREDIT that does not say how many";
  if (f.op != 0) return credit_of_place(f);
  const auto it = credits_.find(f.where);
  // If the end has no credits, the home sent this CREDIT before it knew that this side has given
  // them back (RECALLED).
  if (it == credits_.end()) return nullptr;
  Credits& c = it->second;
  c.n += f.val;
  c.wanted = false;
  while (c.n > 0 && !c.line.empty()) {
    FarOp& o = *c.line.front();
    c.line.pop_front();
    o.in_line_ = false;
    if (put(o, true)) --c.n;
    finish(o, Outcome(o.outcome));
  }
  if (!c.line.empty()) want(f.where, c);
  return nullptr;
}
// Handles a CREDIT at a rendezvous. The credit stands for the place of a reader that waits at the
// home.
const char* Far::credit_of_place(const Frame& f) {
  const auto offered = offered_.find(f.where);
  if (f.op >= next_) return "a CREDIT that knows of an OFFER to come";
  // The home sent this CREDIT before it knew an OFFER of this side, or the end has been given back.
  if (offered == offered_.end() || f.op < offered->second.last) return nullptr;
  const auto [it, fresh] = credits_.try_emplace(f.where);
  if (!fresh || f.val != 1) return "a CREDIT at a rendezvous beside another";
  it->second.n = 1;
  it->second.place = true;
  // Writes that wait at this end are offered to the home as usual.
  if (offered->second.open > 0) give_up(f.where);
  return nullptr;
}
void Far::want(std::uint32_t end, Credits& c) {
  if (std::exchange(c.wanted, true)) return;
  // Once half of the slots are free the home lends them without being asked, so this WANT is seldom
  // needed.
  session_.send(Frame{Kind::want, 0, end, 0, 0, 0, {}}, true);
}
const char* Far::recall(const Frame& f) {
  give_up(f.where);
  return nullptr;
}
void Far::closing(std::uint32_t end) {
  give_up(end);
  offered_.erase(end);
  for (auto& [op, o] : open_)
    if (o->guards[0].end == end) o->last_ = true;
}
void Far::give_up(std::uint32_t end) {
  const auto node = credits_.extract(end);
  if (!node) return;
  session_.send(Frame{Kind::recalled, 0, end, 0, 0, 0, {}});
  for (FarOp* const o : node.mapped().line) {
    o->in_line_ = false;
    if (!offer_it(*o)) finish(*o, Outcome(o->outcome));
  }
}

void Far::held_end(std::uint64_t number, bool back) {
  // send() does nothing if the session has ended.
  session_.send(Frame{Kind::held_end, 0, 0, 0, number, back ? 1u : 0u, {}});
}

const char* Far::commit(const Frame& f) {
  FarOp* const o = find(f.op);
  if (!o) return nullptr;
  if (f.where >= o->guards.size() || !o->guards[f.where].later)
    return "a COMMIT of a guard that has its value, or was not offered";
  if (o->word_ != Word::open && o->word_ != Word::asked) return "a second COMMIT of an operation";
  if (o->rank && !o->trying) return "a COMMIT of a choice that this home was not asked to try";
  o->word_ = Word::making;
  o->making_ = f.where;
  o->committed(f.where);
  return nullptr;
}
bool Far::made(FarOp& o) {
  if (o.word_ != Word::making) return true;  // The session ended meanwhile.
  if (keep_.empty()) keep_.resize(1);
  carrier_.begin(0);
  const Payload p = o.guards[o.making_].room->unload(keep_[0], carrier_);
  Bytes rest = p.bytes;
  if (rest.size() > kMaxBytes) o.refused = detail::kTooLong;
  if (carrier_.trouble()) o.refused = carrier_.trouble();
  if (o.refused) {
    carrier_.take_back();
    failed(o);
    o.outcome = {Status::pending, o.making_, 0, false, false};
    return true;
  }
  if (kHeader + padded(rest.size()) > session_.largest()) {
    send_before(0, p, *o.guards[o.making_].room, true);
    rest = {};
  }
  session_.send(Frame{Kind::made, p.flags(), 0, 0, o.op_, p.in_body ? rest.size() : p.small, rest});
  carrier_.sent(0);  // The value belongs to the home, whatever follows.
  o.word_ = Word::sent;
  return false;
}
void Far::failed(FarOp& o) {
  if (o.word_ != Word::making) return;
  session_.send(Frame{Kind::made, 0, 1, 0, o.op_, 0, {}});
  session_.own();
  forget(o);
  if (carrier_.under_way() > 0) carrier_.settled(o.op_, -1);
  o.word_ = Word::over;
}

void Far::attempt(FarOp& o, std::uint32_t first, std::uint32_t n) {
  session_.send(Frame{Kind::try_it, 0, first, 0, o.op_, n, {}});
}
void Far::gone(FarOp& o) {
  if (o.word_ == Word::making) return failed(o);
  if (o.word_ == Word::unsent || o.word_ == Word::over) return;
  if (o.word_ != Word::sent) session_.send(Frame{Kind::gone, 0, 0, 0, o.op_, 0, {}});
  session_.own();
  forget(o);
  if (carrier_.under_way() > 0) carrier_.settled(o.op_, -1);
  o.word_ = Word::over;
}
const char* Far::hint(const Frame& f) {
  FarOp* const o = find(f.op);
  if (!o) return nullptr;
  if (!o->rank) return "a READY or NOTREADY of an operation that does not span";
  if (f.kind == Kind::not_ready && !o->trying) return "a NOTREADY that was not asked for";
  if (f.kind == Kind::not_ready)
    o->not_ready();
  else if (f.val == 0)
    o->ready();
  else if (f.where < o->guards.size())
    o->silent(f.where);
  else
    return "a READY of a guard that was not offered";
  return nullptr;
}

void Far::withdraw(FarOp& o) {
  if (o.in_line_) {
    std::erase(credits_.find(o.guards[0].end)->second.line, &o);
    o.in_line_ = false;
    return finish(o, {Status::cancelled, 0, 0, false, false});
  }
  if (o.word_ != Word::open) return;
  // For a part of a choice the answer is NOTREADY, and the part stays open.
  if (!o.rank) o.word_ = Word::asked;
  session_.send(Frame{Kind::withdraw, 0, 0, 0, o.op_, 0, {}});
}

const char* Far::done(const Frame& f) {
  FarOp* const o = find(f.op);
  if (!o) return nullptr;
  if (f.where >= o->guards.size()) return "a DONE of a guard that was not offered";
  if (o->rank && !o->trying) return "a DONE of a choice that this home was not asked to try";
  FarGuard& g = o->guards[f.where];
  if (g.later != (o->word_ == Word::sent)) return "a DONE of a value that has not been made";
  Payload whole = f.payload();
  if (o->to_come_ > 0 && (!whole.in_body || whole.leased || whole.bytes.size() != o->to_come_))
    return "a DONE that is not the last piece of its value";
  if (!o->pieces_.empty()) {
    if (!whole.in_body || whole.leased || g.writes)
      return "a DONE that is not the last piece of its value";
    detail::put(o->pieces_, whole.bytes);
    whole.bytes = o->pieces_;
  }
  if (g.writes) {
    if (f.flags || f.val > std::uint64_t{1} << 31 || (f.val && (o->guards.size() > 1 || o->rank)))
      return "a DONE of a write with a value";
    if (f.val && !o->last_) {  // The home begins to lend slots to this end.
      const auto [it, fresh] = credits_.try_emplace(g.end);
      if (!fresh) return "a DONE that begins a lending within another";
      it->second.n = f.val - 1;
    }
  } else if (!(o->to_come_ > 0 ? g.room->last(whole.bytes) : g.room->load(whole, carrier_))) {
    return carrier_.wrong("a DONE with a value that is not of its channel's type");
  }
  spare_.keep(std::move(o->pieces_));
  finish(*o, {Status::ok, f.where, 0, false, false});
  return nullptr;
}

const char* Far::value(const Frame& f) {
  FarOp* const o = find(f.op);
  if (!o) return nullptr;
  if (std::all_of(o->guards.begin(), o->guards.end(), [](const auto& g) { return g.writes; }))
    return "a VALUE of an operation that reads nothing";
  const Bytes piece = f.body.first(static_cast<std::size_t>(f.val));
  // Only one guard reads, so the place of the value is known. The last piece arrives in the DONE.
  if (o->pieces_.empty() && o->to_come_ == 0 && f.val < f.txn && f.txn <= kMaxBytes &&
      o->guards.size() == 1 && !o->guards[0].writes && o->guards[0].room->will_come(f.txn))
    o->to_come_ = f.txn;
  if (o->to_come_ > 0) {
    if (f.val >= o->to_come_) return "a VALUE of more than it said";
    o->to_come_ -= static_cast<std::size_t>(f.val);
    o->guards[0].room->more(piece);
    return nullptr;
  }
  if (o->pieces_.size() + f.val > kMaxBytes) return "a value of more than a gibibyte";
  if (o->pieces_.empty()) o->pieces_ = spare_.take();
  detail::put(o->pieces_, piece);
  return nullptr;
}

const char* Far::withdrawn(const Frame& f) {
  FarOp* const o = find(f.op);
  if (!o) return nullptr;
  if (o->word_ != Word::asked) return "a WITHDRAWN that was not asked for";
  finish(*o, {Status::cancelled, 0, 0, false, false});
  return nullptr;
}

const char* Far::ended(const Frame& f) {
  FarOp* const o = find(f.op);
  if (!o) return nullptr;
  const std::uint64_t how = f.val & 0xFF, strength = f.val >> 8;
  if (f.where >= o->guards.size()) return "an ENDED of a guard that was not offered";
  if (how >= 4 && how <= 6 && strength == 0) {
    static constexpr const char* kWhy[] = {
        "the value that was there has more than a gibibyte, and is lost: send it in pieces",
        ("two guards are both ends of one channel, or one barrier: a process cannot talk to "
         "itself, and is one party; give one end to another process, each barrier once"),
        "nobody is enrolled at the barrier: make it with parties, or enrol() first"};
    o->refused = kWhy[how - 4];
    finish(*o, {Status::pending, 0, 0, false, false});
    return nullptr;
  }
  if (how < 1 || how > 3 || strength > 255 || (how == 2) != (strength > 0))
    return "an ENDED that does not say how";
  finish(*o, {how == 1   ? Status::retired
              : how == 2 ? Status::poisoned
                         : Status::died,
              f.where, static_cast<std::uint8_t>(strength), false, false});
  return nullptr;
}

void Far::lost() noexcept {
  for (auto& [end, c] : std::exchange(credits_, {}))
    for (FarOp* const o : c.line) {
      o->in_line_ = false;
      finish(*o, when_lost(Word::unsent, true));
    }
  while (!open_.empty()) {
    FarOp& o = *open_.begin()->second;
    finish(o, when_lost(o.word_, o.writes()));
  }
}

}  // namespace weft::inline WEFT_ABI::wire
