// The definitions of wire/space.hpp.
#include <weft/wire/space.hpp>
#include <weft/wire/spanned.hpp>

namespace weft::inline WEFT_ABI::wire {

namespace detail {
// The maximum size in bytes of an end's type and name in GIVE and PASS.
constexpr std::size_t kLongest = 4096;
}  // namespace detail

void Space::decided(core::Waker* w) noexcept {
  core::Waker* before = fresh_.load(std::memory_order_relaxed);
  do w->next = before;
  while (!fresh_.compare_exchange_weak(before, w, std::memory_order_acq_rel));
  if (stepping == this) return;  // This thread's own step woke the visitor.
  if (!lock_.try_lock()) return;
  Space* const outer = std::exchange(stepping, this);
  end_step(outer);
}

void Space::gather() noexcept {
  if (!fresh_.load(std::memory_order_relaxed)) return;
  core::Waker* w = fresh_.exchange(nullptr, std::memory_order_acquire);
  core::Waker* const latest = w;
  core::Waker* oldest = nullptr;
  while (w) {
    core::Waker* const next = core::next_of(w);
    w->next = std::exchange(oldest, w);
    w = next;
  }
  if (last_)
    last_->next = oldest;
  else
    first_ = oldest;
  last_ = latest;
}
void Space::answer_decided() noexcept {
  for (gather(); core::Waker* const w = first_; gather()) {
    first_ = core::next_of(w);
    if (!first_) last_ = nullptr;
    static_cast<Decided*>(w)->notified();
  }
}

void Space::readers_first(const Home& h) noexcept {
  for (Peer* p : peers_)
    if (&p->home != &h && std::exchange(p->home.told_a_reader, false) && p->link) p->link->flush();
}

void Space::end_step(Space* outer) noexcept {
  for (;;) {
    answer_decided();
    for (Peer* p : peers_) {
      p->home.told_a_reader = false;
      if (p->link && (!p->session.output().empty() || p->session.is_over())) p->link->flush();
    }
    stepping = outer;
    // A visitor whose session has ended might have been the last owner of the space.
    const std::shared_ptr<Space> me = weak_from_this().lock();
    const auto buried = std::exchange(buried_, {});
    lock_.unlock();
    if (!anybody_decided() || !lock_.try_lock()) return;
    stepping = this;
  }
}

void Space::reconsider() {
  const std::vector<Spanned*> all = spans;
  for (Spanned* s : all)
    if (std::find(spans.begin(), spans.end(), s) != spans.end()) s->reconsider();
}

const char* Space::relieve(const Home& h, std::size_t more) noexcept {
  static constexpr const char* kMuch =
      "of all peers it has sent most that nobody has read, and what all of them have sent is more "
      "than this machine has room for";
  while (untaken.load(std::memory_order_relaxed) + more > most_untaken) {
    Peer* greatest = nullptr;
    std::size_t most = h.untaken() + more;
    for (Peer* p : peers_)
      if (const std::size_t n = p->home.untaken(); &p->home != &h && n > most) {
        greatest = p;
        most = n;
      }
    if (!greatest) return kMuch;
    greatest->session.bye(kMuch);
  }
  return nullptr;
}

bool Space::introduce(Peer& a, Peer& b) {
  const std::uint64_t x = a.session.theirs().incarnation, y = b.session.theirs().incarnation;
  const auto pair = std::minmax(x, y);
  if (x == 0 || y == 0) return false;  // One of the two peers has not identified itself.
  if (x == y || acquainted_.contains(pair)) return true;
  const auto by = introducer.lock();
  if (!by || !by->introduce(a, b)) return false;
  acquainted_.insert(pair);
  return true;
}
Peer* Space::session_with(std::uint64_t incarnation) const noexcept {
  for (Peer* p : peers_)
    if (incarnation != 0 && p->session.theirs().incarnation == incarnation && !p->session.is_over())
      return p;
  return nullptr;
}
Space::Lent Space::lent(std::span<const std::uint64_t> keys) const noexcept {
  for (const std::uint64_t& key : keys) {
    const auto it = keys_.find(key);
    if (it == keys_.end()) continue;
    for (Peer* p : peers_)
      if (&p->home == it->second.at)
        return {p, p->home.port_of(it->second.end), &key == keys.data()};
  }
  return {};
}
std::shared_ptr<Peer> Space::nobody() {
  auto p = std::make_shared<Peer>(*this);
  p->session.lost("the home of this end was gone, or out of reach, when it arrived");
  return p;
}

std::shared_ptr<FarEnd> Peer::adopt(std::vector<std::uint64_t> keys, std::uint64_t token,
                                    const std::string& type, const std::string& name, Peer& from) {
  const std::uint64_t mine = Space::random();
  const std::uint32_t number = next_adopted_;
  next_adopted_ = (next_adopted_ + 1) | Home::kAdopted;
  Buffer body;
  detail::put(body, mine);
  detail::put(body, std::as_bytes(std::span(type)));
  if (keys.size() > 1) detail::pad(body);
  for (std::size_t i = 1; i < keys.size(); ++i) detail::put(body, keys[i]);
  session.send(
      Frame{Kind::adopt, 0, number, static_cast<std::uint32_t>(type.size()), keys[0], token, body});
  auto e = std::make_shared<FarEnd>(shared_from_this(), number, mine, name);
  adopting_.push_back({number, token, from.weak_from_this(), e, false, false});
  e->before = std::move(keys);
  return e;
}
// Handles the home's answer to this space's ADOPT. This space also notifies the end's earlier
// holder at once, because the home's own message to that holder might arrive after this space's
// BYE.
void Peer::adopted(const Frame& f) {
  const Adopting* const a = adopting(f.where);
  if (!a) return;
  if (const auto e = a->end.lock()) e->before.clear();
  if (const auto from = a->from.lock())
    from->session.send(Frame{Kind::dropped, 0, 0, 0, 0, a->token, {}}, f.val == 0);
  adopting_.erase(adopting_.begin() + (a - adopting_.data()));
}
// An end that arrived from this peer might have been closed again before the ADOPT of this space
// reached its home. Then only the peer's share must be reported, and the end did not die.
void Peer::before_bye() noexcept {
  for (const Peer* home : space->peers_)
    for (const Adopting& a : home->adopting_)
      if (a.closed && a.from.lock().get() == this)
        session.send(Frame{Kind::dropped, 0, 0, 0, 0, a.token, {}});
}

const char* Peer::received(const Frame& f) {
  switch (f.kind) {
    case Kind::offer: return home.asked(f);
    case Kind::withdraw: return home.withdraw(f);
    case Kind::put: return home.put(f);
    case Kind::want: return home.want(f);
    case Kind::recalled: return home.recalled(f);
    case Kind::held_end: return home.held_end(f);
    case Kind::made: return home.made(f);
    case Kind::commit: return far.commit(f);
    case Kind::retire: return home.retire(f);
    case Kind::poison: return home.poison(f);
    case Kind::done: return far.done(f);
    case Kind::value: return f.flags & Flag::write ? home.value(f) : far.value(f);
    case Kind::withdrawn: return far.withdrawn(f);
    case Kind::ended: return far.ended(f);
    case Kind::credit: return far.credit(f);
    case Kind::recall: return far.recall(f);
    case Kind::give: return given(f);
    case Kind::gone: return home.gone(f);
    case Kind::try_it: return home.try_it(f);
    case Kind::parties: return home.parties(f);
    case Kind::ready:
    case Kind::not_ready: return far.hint(f);
    case Kind::adopt: return home.adopt(f);
    case Kind::adopted:
      if (f.where & Home::kAdopted) return adopted(f), nullptr;
      for (Peer* p : space->peers_)
        if (p->carrier.adopted(f.val, *this)) {
          if (p->news) p->news(*p);
          break;
        }
      return nullptr;
    case Kind::dropped:
      carrier.dropped(f.val);
      if (news) news(*this);
      return nullptr;
    case Kind::introduce: {
      const auto by = space->introducer.lock();
      return by ? by->introduced(*this, f) : "an INTRODUCE, and nobody here can take it";
    }
    case Kind::pass: return passed(f);
    case Kind::ask:
    case Kind::said:
    case Kind::tell:
      if (!session.may_ask()) return "a question from a peer that answers none";
      if (space->inquirer) return space->inquirer->heard(*this, f);
      // This program answers no more questions, so the round must not find a deadlock.
      if (f.kind == Kind::ask) session.send(Frame{Kind::said, 0, 2, f.txn, f.op, 0, {}});
      return nullptr;
    case Kind::hello:
    case Kind::bye: break;
  }
  return "a frame that is not for this program";
}

const char* Peer::given(const Frame& f) {
  if (f.where < next_given_) return "a GIVE whose number is not above those before it";
  if (offered.size() == Home::kOffers) return "more ends were handed out than a space takes";
  if (f.val < 8) return "a GIVE without its key";
  next_given_ = f.where + 1;
  const auto key = detail::get<std::uint64_t>(f.body.data());
  const std::string text(reinterpret_cast<const char*>(f.body.data()) + 8,
                         static_cast<std::size_t>(f.val) - 8);
  const std::size_t zero = text.find('\0');
  if (zero == std::string::npos) return "a GIVE without its type or name";
  if (text.size() > detail::kLongest) return "a GIVE whose type and name are too long";
  offered.push_back({f.where,
                     (f.flags & Flag::write) != 0,
                     f.op,
                     text.substr(0, zero),
                     text.substr(zero + 1),
                     false,
                     key,
                     {}});
  if (news) news(*this);
  return nullptr;
}

const char* Peer::passed(const Frame& f) {
  static constexpr const char* kBad = "a PASS that does not add up";
  if (offered.size() == Home::kOffers) return "more ends were handed out than a space takes";
  Bytes rest = f.body.first(static_cast<std::size_t>(f.val));
  if (f.op > rest.size() || padded(static_cast<std::size_t>(f.op)) > rest.size()) return kBad;
  const std::string text(reinterpret_cast<const char*>(rest.data()),
                         static_cast<std::size_t>(f.op));
  const std::size_t zero = text.find('\0');
  if (zero == std::string::npos || text.size() > detail::kLongest) return kBad;
  rest = rest.subspan(padded(static_cast<std::size_t>(f.op)));
  Offered o{
      0, (f.flags & Flag::write) != 0, 0, text.substr(0, zero), text.substr(zero + 1), false, 0,
      {}};
  auto got = carrier.take(rest, o.writes, o.type);
  if (!got || !rest.empty()) return kBad;
  o.got = std::move(*got);
  offered.push_back(std::move(o));
  if (news) news(*this);
  return nullptr;
}
const char* Peer::pass(const std::shared_ptr<FarEnd>& e, bool writes, const std::string& type,
                       const std::string& name) {
  Buffer body;
  detail::put(body, std::as_bytes(std::span(type)));
  body.push_back(std::byte{0});
  detail::put(body, std::as_bytes(std::span(name)));
  const std::size_t text = body.size();
  detail::pad(body);
  carrier.begin(0);
  carrier.put_far(e, writes, body, type == kBarrierType);
  if (carrier.trouble()) {
    carrier.take_back();
    return carrier.trouble();
  }
  session.send(Frame{Kind::pass, static_cast<std::uint8_t>(writes ? Flag::write : 0), 0, 0, text,
                     body.size(), body});
  carrier.sent(0);
  return nullptr;
}

void Peer::session_over() noexcept {
  traffic_.over();
  far.lost();
  carrier.lost();
  home.lost();
  for (const Adopting& a : std::exchange(adopting_, {}))
    if (const auto from = a.from.lock())
      from->session.send(Frame{Kind::dropped, 0, 0, 0, 0, a.token, {}});
  if (space->inquirer) space->inquirer->gone(*this);
  if (ended) ended(*this);
  if (news) news(*this);
}

}  // namespace weft::inline WEFT_ABI::wire
