// The definitions of wire/moving.hpp.
#include <weft/wire/moving.hpp>
#include <weft/wire/space.hpp>
#if defined(__linux__)
#include <weft/wire/slot.hpp>
#endif

namespace weft::inline WEFT_ABI::wire {

FarEnd::FarEnd(std::shared_ptr<Peer> p, std::uint32_t n, std::uint64_t k, std::string name)
    : peer(std::move(p)), number(n), key(k), name_(std::move(name)) {
  place.name = name_.c_str();
  const Space::Step step(*peer->space);
  peer->space->far_ends.insert(this);
}
FarEnd::~FarEnd() {
  const std::shared_ptr<Space> space = peer->space;
  // A closed end passes a poison on (rule 4.3).
  const std::uint8_t s = weft::detail::poison_under_way();
  const Space::Step step(*space);
  space->far_ends.erase(this);
  if (s) peer->poison(number, s);
  peer->retire(number, died_);
  space->bury(std::move(peer));
}
void FarEnd::poison(std::uint8_t strength) {
  const Space::Step step(*peer->space);
  peer->poison(number, strength);
}

bool Carrier::passes() const noexcept { return !by_copy_ && peer_.link && peer_.link->passes(); }
void Carrier::pass(int descriptor) noexcept { peer_.link->pass(descriptor); }
std::uint64_t Carrier::mine() const noexcept { return peer_.session.mine().incarnation; }
std::uint64_t Carrier::theirs() const noexcept { return peer_.session.theirs().incarnation; }
int Carrier::passed() noexcept { return peer_.link ? peer_.link->passed() : -1; }

#if defined(__linux__)
bool detail::lease(Bytes value, Buffer& description, Carrier& by) {
  const std::unique_ptr<Slot> slot = by.passes() ? Slot::make(value.size()) : nullptr;
  if (!slot) return false;
  std::memcpy(slot->data(), value.data(), value.size());
  return slot->lend_to(by, description);
}
detail::Leased detail::leased(Bytes description, Carrier& by) {
  std::shared_ptr<Slot> slot = Slot::take(description, by);
  if (!slot) return {};
  const Bytes bytes(slot->data(), slot->size());
  return {bytes, std::move(slot)};
}
#else
bool detail::lease(Bytes, Buffer&, Carrier&) { return false; }
detail::Leased detail::leased(Bytes, Carrier&) { return {}; }
#endif

namespace detail {
// The layout of an end in a value, with the sizes of the fields in bytes: home 8, key 8, token 8,
// number 4, flags 1, length of the name 1, number of earlier keys 1, zero 1; then the name, padded;
// then the earlier keys.
constexpr std::size_t kDescribed = 32;
constexpr unsigned kWrites = 1, kDead = 2, kBarrier = 4;  // flags
// The maximum number of bytes of a name that are sent with an end.
constexpr std::size_t kNameHere = 96;
}  // namespace detail

void Carrier::describe(Buffer& out, std::uint64_t home, std::uint64_t key, std::uint64_t token,
                       std::uint32_t number, unsigned flags, const char* name,
                       std::span<const std::uint64_t> before) {
  const std::size_t n = std::min(std::strlen(name), detail::kNameHere);
  detail::put(out, home);
  detail::put(out, key);
  detail::put(out, token);
  detail::put(out, number);
  detail::put(out, static_cast<std::uint8_t>(flags));
  detail::put(out, static_cast<std::uint8_t>(n));
  detail::put(out, static_cast<std::uint8_t>(before.size()));
  detail::put(out, std::uint8_t{0});
  const std::size_t at = out.size();
  out.resize(at + padded(n));
  std::memcpy(out.data() + at, name, n);
  for (const std::uint64_t k : before) detail::put(out, k);
}

void Carrier::put_local(std::shared_ptr<Port> p, const core::SyncObject& place, Buffer& out) {
  const unsigned flags = p->writes() ? detail::kWrites : p->barrier() ? detail::kBarrier : 0;
  const auto [number, key] = peer_.home.lend(std::move(p));
  lent_.push_back(number);
  describe(out, peer_.session.mine().incarnation, key, 0, number, flags,
           place.line == 0 && place.name ? place.name : runtime::name_of(place).c_str());
}

void Carrier::put_far(const std::shared_ptr<FarEnd>& e, bool writes, Buffer& out, bool barrier) {
  latest_ = 0;
  unsigned flags = writes ? detail::kWrites : barrier ? detail::kBarrier : 0;
  if (!e) return describe(out, 0, 0, 0, 0, flags | detail::kDead, "");
  Peer& home = *e->peer;
  std::uint64_t token = 0;
  std::span<const std::uint64_t> before;
  if (home.session.is_over()) {
    flags |= detail::kDead;
  } else if (&home != &peer_) {
    if (!peer_.space->introduce(peer_, home)) {
      trouble_ =
          "an end in it has its home in a third program, and no link here can introduce the two: "
          "links over Unix sockets can";
      flags |= detail::kDead;
    } else if (e->before.size() >= FarEnd::kBefore) {
      trouble_ =
          "an end in it has moved 16 times, and its home has answered none of these moves yet: "
          "send it on when its home answers again";
      flags |= detail::kDead;
    } else {
      before = e->before;
      token = latest_ = peer_.space->next_token();
      moving_.push_back({token, e, 0, guard_, false});
      ++unsent_;
    }
  }
  describe(out, home.session.theirs().incarnation, e->key, token, e->number, flags, e->place.name,
           before);
}

bool Carrier::is_barrier(Bytes in) noexcept {
  return in.size() >= detail::kDescribed &&
         (std::to_integer<unsigned>(in[28]) & detail::kBarrier) != 0;
}
std::optional<Carrier::Got> Carrier::take(Bytes& in, bool writes, const std::string& type) {
  if (in.size() < detail::kDescribed) return {};
  const std::byte* const p = in.data();
  const auto home = detail::get<std::uint64_t>(p), key = detail::get<std::uint64_t>(p + 8),
             token = detail::get<std::uint64_t>(p + 16);
  const auto number = detail::get<std::uint32_t>(p + 24);
  const auto flags = std::to_integer<unsigned>(p[28]);
  const auto length = std::to_integer<std::size_t>(p[29]);
  std::vector<std::uint64_t> keys(1 + std::to_integer<std::size_t>(p[30]), key);
  if (flags > 7 || ((flags & detail::kWrites) != 0) != writes ||
      ((flags & detail::kBarrier) != 0) != (type == kBarrierType) ||
      keys.size() > FarEnd::kBefore || p[31] != std::byte{0})
    return {};
  const std::size_t text = detail::kDescribed + padded(length), all = text + 8 * (keys.size() - 1);
  if (length > detail::kNameHere || all > in.size()) return {};
  const std::string name(reinterpret_cast<const char*>(p + detail::kDescribed), length);
  for (std::size_t i = 1; i < keys.size(); ++i)
    keys[i] = detail::get<std::uint64_t>(p + text + 8 * (i - 1));
  in = in.subspan(all);
  Space& space = *peer_.space;
  if (!(flags & detail::kDead)) {
    if (home == space.greeting().incarnation) {
      if (const auto [q, port, first] = space.lent(keys);
          port && port->writes() == writes && port->type() == type) {
        if (token && first) q->session.send(Frame{Kind::adopted, 0, 0, 0, 0, token, {}});
        if (token && !first) peer_.session.send(Frame{Kind::dropped, 0, 0, 0, 0, token, {}});
        return Got{port, nullptr};
      }
    } else if (home == peer_.session.theirs().incarnation && token == 0) {
      return Got{nullptr, std::make_shared<FarEnd>(peer_.shared_from_this(), number, key, name)};
    } else if (Peer* const q = space.session_with(home)) {
      return Got{nullptr, q->adopt(std::move(keys), token, type, name, peer_)};
    }
    if (token) peer_.session.send(Frame{Kind::dropped, 0, 0, 0, 0, token, {}});
  }
  return Got{nullptr, std::make_shared<FarEnd>(space.nobody(), 0, 0, name)};
}

void Carrier::begin(std::uint32_t guard) noexcept {
  guard_ = guard;
  if (guard > 0) return;
  lent_.clear();
  unsent_ = 0;
  trouble_ = nullptr;
}
void Carrier::sent(std::uint64_t op) noexcept {
  for (std::size_t i = moving_.size() - unsent_; i < moving_.size(); ++i)
    moving_[i].op = op, moving_[i].delivered = op == 0;
  unsent_ = 0;
}
void Carrier::take_back() {
  for (const std::uint32_t n : lent_) peer_.home.unlend(n);
  lent_.clear();
  moving_.resize(moving_.size() - unsent_);
  unsent_ = 0;
}

void Carrier::settled(std::uint64_t op, int taken) {
  std::erase_if(moving_, [&](Moving& m) {
    if (m.delivered || m.op != op) return false;
    m.delivered = taken >= 0 && m.guard == static_cast<std::uint32_t>(taken);
    return !m.delivered;
  });
}
bool Carrier::adopted(std::uint64_t token, const Peer& by) {
  return std::erase_if(moving_, [&](const Moving& m) {
           return m.token == token && m.end->peer.get() == &by;
         }) > 0;
}
void Carrier::dropped(std::uint64_t token) {
  std::erase_if(moving_, [&](const Moving& m) { return m.token == token; });
}
void Carrier::lost() {
  lent_.clear();  // The session's Home gives these ends back.
  unsent_ = 0;
  for (const Moving& m : moving_)
    if (m.delivered) m.end->will_have_died();
  moving_.clear();
}

}  // namespace weft::inline WEFT_ABI::wire
