// The definitions of wire/asking.hpp.
#include <weft/wire/asking.hpp>

namespace weft::inline WEFT_ABI::wire {

Asking::Asking(std::shared_ptr<Space> space)
    : space_(std::move(space)), me_(space_->greeting().incarnation) {
  const Space::Step step(*space_);
  space_->may_be_asked(*this);
}
void Asking::close() noexcept {
  const Space::Step step(*space_);
  space_->inquirer = nullptr;
}

// --- this program's own rounds, and its answers --------------------------------------------------

std::uint32_t Asking::ask(bool all) {
  gatherings_[me_] = {};
  gatherings_[me_].all = all;
  return gatherings_[me_].round = ++round_;
}
void Asking::say(std::uint64_t asker, std::uint32_t round, Bytes mine, bool waits, bool whole) {
  const auto it = gatherings_.find(asker);
  if (it == gatherings_.end() || it->second.round != round || it->second.said) return;
  Gathering& g = it->second;
  g.said = true;
  g.whole = whole;
  detail::put(g.got, mine);
  const std::shared_ptr<Peer> from = g.from.lock();
  for (Peer* p : space_->peers()) {
    if (p == from.get() || !p->session.may_ask()) continue;
    // If one program does not wait, there is no deadlock, so the question is answered already.
    if (!waits && !g.all) {
      g.whole = false;
      break;
    }
    p->session.send(Frame{Kind::ask, 0, g.all ? 0u : 1u, round, asker, 0, {}});
    g.awaited.push_back(p);
  }
  finish_if_done(asker, g);
}
Buffer Asking::give_up() {
  Gathering& g = gatherings_[me_];
  g.open = false;
  return g.got;
}
void Asking::finish_if_done(std::uint64_t asker, Gathering& g) {
  if (!g.open || !g.said || !g.awaited.empty()) return;
  g.open = false;
  if (asker != me_) {
    if (const auto from = g.from.lock())
      send(*from, Kind::said, asker, g.round, g.got, g.whole ? 0 : 2);
    g.got.clear();
    return;
  }
  found(g.round, g.got, g.whole);
}
// Sends the body in as many frames as needed. `where` is `last` in the last frame, and 1 in the
// others.
void Asking::send(Peer& to, Kind k, std::uint64_t asker, std::uint32_t round, Bytes body,
                  std::uint32_t last) {
  const std::size_t most = to.session.largest() - kHeader;
  while (body.size() > most) {
    to.session.send(Frame{k, 0, 1, round, asker, most, body.first(most)});
    body = body.subspan(most);
  }
  to.session.send(Frame{k, 0, last, round, asker, body.size(), body});
}
void Asking::tell_all(std::uint64_t asker, std::uint32_t round, Bytes what, const Peer* but) {
  for (Peer* p : space_->peers())
    if (p != but && p->session.may_ask()) send(*p, Kind::tell, asker, round, what, 0);
}

// --- what other programs send --------------------------------------------------------------------

const char* Asking::heard(Peer& from, const Frame& f) {
  if (f.kind == Kind::ask) return heard_ask(from, f);
  return f.kind == Kind::said ? heard_said(from, f) : heard_tell(from, f);
}
const char* Asking::heard_ask(Peer& from, const Frame& f) {
  const auto it = gatherings_.find(f.op);
  const bool known =
      it != gatherings_.end() && static_cast<std::int32_t>(f.txn - it->second.round) <= 0;
  if (f.op == me_ || known) {
    send(from, Kind::said, f.op, f.txn, {}, 0);
    return nullptr;
  }
  if (it == gatherings_.end() && gatherings_.size() == kAskers)
    return "more programs ask than a program answers";
  Gathering& g = gatherings_[f.op] = {};
  g.round = f.txn;
  g.from = from.weak_from_this();
  g.all = f.where == 0;
  asked_first(f.op, f.txn);
  return nullptr;
}
const char* Asking::heard_said(Peer& from, const Frame& f) {
  if (f.where > 2) return "a SAID that says neither that more comes nor that this was all";
  const auto it = gatherings_.find(f.op);
  // If the round is not found, the answer belongs to an earlier round.
  if (it == gatherings_.end() || it->second.round != f.txn) return nullptr;
  Gathering& g = it->second;
  const auto at = std::find(g.awaited.begin(), g.awaited.end(), &from);
  if (at == g.awaited.end()) return "a SAID that was not asked for";
  Buffer& part = g.parts[&from];
  if (g.got.size() + part.size() + f.val > kMaxAnswerBytes)
    return "more than a program says of itself";
  detail::put(part, f.body.first(static_cast<std::size_t>(f.val)));
  if (f.where == 1) return nullptr;
  g.whole = g.whole && f.where == 0;
  detail::put(g.got, Bytes(part));
  g.parts.erase(&from);
  g.awaited.erase(at);
  finish_if_done(f.op, g);
  return nullptr;
}
const char* Asking::heard_tell(Peer& from, const Frame& f) {
  if (f.where > 1) return "a TELL that says neither that more comes nor that this was all";
  Buffer& what = telling_[{&from, f.op}];
  if (what.size() + f.val > kMaxAnswerBytes || telling_.size() > kAskers)
    return "more than a program says of itself";
  detail::put(what, f.body.first(static_cast<std::size_t>(f.val)));
  if (f.where == 1) return nullptr;
  const auto whole = telling_.extract({&from, f.op});
  if (heard_of_.size() == kAskers) heard_of_.clear();
  if (std::exchange(heard_of_[f.op], f.txn) == f.txn || f.op == me_) return nullptr;
  tell_all(f.op, f.txn, whole.mapped(), &from);
  on_tell(whole.mapped());
  return nullptr;
}
void Asking::gone(Peer& p) noexcept {
  std::erase_if(telling_, [&](const auto& t) { return t.first.first == &p; });
  for (auto& [asker, g] : gatherings_) {
    g.parts.erase(&p);
    if (std::erase(g.awaited, &p) == 0) continue;
    g.whole = false;
    finish_if_done(asker, g);
  }
}

}  // namespace weft::inline WEFT_ABI::wire
