// The definitions of wire/spanned.hpp.
#include <weft/wire/space.hpp>
#include <weft/wire/spanned.hpp>

namespace weft::inline WEFT_ABI::wire {

struct Spanned::Watch final : Decided {
  Watch(std::shared_ptr<Space> s, std::uint32_t i) noexcept : Decided(std::move(s)), guard(i) {}
  const std::uint32_t guard;
  std::shared_ptr<Spanned> out;  // not null while the watch is queued, or its wake-up is under way
  void notified() noexcept override {
    const auto me = std::move(out);
    me->happened(guard, status);
  }
};

Spanned::Spanned(Space& s, Seat& p, Rank r, std::vector<Visitor::Seat> at, bool looks)
    : space_(s.shared_from_this()), place_(&p), rank_(r), looks_(looks), at_(std::move(at)) {
  space_->spans.push_back(this);
}
Spanned::~Spanned() { std::erase(space_->spans, this); }

void Spanned::begin(bool tries) {
  const auto me = shared_from_this();
  // Guards that are off are checked once, here: whether their channels were open when the choice
  // began decides whether they hold the choice open (rule 5.6).
  for (std::uint32_t i = 0; i < size() && place_; ++i)
    if (at_[i].off && (!at_[i].port || is_end(at_[i].port->ended()))) happened(i, Status::retired);
  if (tries) return attempt(0, size());
  for (std::uint32_t i = 0; i < size() && place_; ++i) watch(i);
}

void Spanned::watch(std::uint32_t guard) {
  if (at_[guard].silent || at_[guard].off) return;
  if (watches_.empty()) watches_.resize(size());
  if (!watches_[guard]) watches_[guard] = std::make_unique<Watch>(space_, guard);
  Watch& w = *watches_[guard];
  if (w.out) return;
  w.out = shared_from_this();
  if (at_[guard].later) w.set(core::NodeFlags::compute);
  const Status s = at_[guard].port->watch(w);
  if (s == Status::pending) return;
  w.out.reset();
  happened(guard, s);
}
void Spanned::happened(std::uint32_t guard, Status s) {
  if (!place_ || at_[guard].silent) return;
  if (s == Status::retired) {
    at_[guard].silent = true;
    place_->silent(guard);
  } else {
    place_->ready();
  }
}

void Spanned::attempt(std::uint32_t first, std::uint32_t n) {
  const auto me = shared_from_this();
  tried_.clear();
  for (std::uint32_t i = first; i < first + n; ++i) {
    if (at_[i].silent || at_[i].off) continue;
    tried_.push_back(i);
  }
  if (tried_.empty()) return place_->not_ready();
  attempt_.emplace(space_, me);
  attempt_->at.reserve(tried_.size());
  for (const std::uint32_t i : tried_)
    attempt_->at.push_back({at_[i].port, std::move(at_[i].room), 0, false, at_[i].later});
  attempt_->bind();
  if (attempt_->begin()) {
    // If the attempt has met a reader, that reader is answered first (WIRE.md 4.2).
    if (attempt_->chose_a_write()) space_->answer_decided();
    finish();
    return;
  }
  if (has_committed()) return space_->reconsider();
  // The attempt has woken the choices that watch these channels. It stays queued only if one of
  // them is after this choice in the order.
  if (!must_wait()) leave();
}
bool Spanned::must_wait() const {
  for (const Spanned* s : space_->spans) {
    if (s == this || !s->place_ || rank_ >= s->rank_) continue;
    if (looks_ && s->looks_) continue;  // Neither choice waits, so the two do not meet (rule 5.7).
    if (s->has_committed()) continue;
    for (const Visitor::Seat& mine : attempt_->at)
      for (const Visitor::Seat& theirs : s->at_)
        if (!theirs.off && mine.port->channel() == theirs.port->channel() &&
            mine.port->writes() != theirs.port->writes())
          return true;
  }
  return false;
}

void Spanned::take_back_rooms() {
  for (std::size_t i = 0; i < attempt_->at.size(); ++i)
    at_[tried_[i]].room = std::move(attempt_->at[i].room);
}
void Spanned::finish() {
  const auto me = shared_from_this();
  if (attempt_->stage == Visitor::Stage::delivering) return taken();
  take_back_rooms();
  const std::uint32_t guard = met_ = tried_[static_cast<std::size_t>(attempt_->chosen)];
  const Status s = attempt_->outcome;
  if (attempt_->to_make()) {
    if (!place_) {
      attempt_->fail();
      attempt_.reset();
      return;
    }
    attempt_->stage = Visitor::Stage::making;
    place_->commit(guard);
    return space_->reconsider();
  }
  attempt_.reset();
  if (!place_) return;
  if (s == Status::retired) {
    // For an ordinary choice this could be the end (rule 5.6). Here the choice's place decides
    // that, and asks the other homes.
    happened(guard, s);
    // The watches report to the place which guards have retired.
    for (std::uint32_t i = 0; i < size() && place_; ++i) watch(i);
    if (place_) place_->not_ready();
    return;
  }
  Seat& p = *place_;
  close();
  p.over(guard, s, at_[guard]);
}
bool Spanned::made(const Payload& value, Carrier& by) {
  if (!at_[met_].room->load(value, by)) return false;
  made();
  return true;
}
void Spanned::made() {
  // If made() returns `pending`, an extended reader holds the visitor: decided() will be called.
  if (attempt_->made() == Status::pending) return;
  space_->answer_decided();  // The reader is answered first (WIRE.md 4.2).
  taken();
}
void Spanned::taken() {
  const auto me = shared_from_this();
  attempt_.reset();
  if (!place_) return;
  Seat& p = *place_;
  close();
  p.over(met_, Status::ok, at_[met_]);
}
void Spanned::leave() {
  const auto me = shared_from_this();
  if (attempt_->stage != Visitor::Stage::offered) return;
  if (!attempt_->withdraw()) return;  // The attempt has its outcome, and is in the space's list.
  take_back_rooms();
  attempt_.reset();
  for (std::uint32_t i = 0; i < size() && place_; ++i) watch(i);
  if (place_) place_->not_ready();
}
void Spanned::withdraw() {
  if (attempt_) leave();
}
void Spanned::decided() { finish(); }
void Spanned::reconsider() {
  if (attempt_ && place_ && !must_wait()) leave();
}

void Spanned::close() {
  const auto me = shared_from_this();
  if (!std::exchange(place_, nullptr)) return;
  std::erase(space_->spans, this);
  for (const auto& w : watches_)
    if (w && w->out && at_[w->guard].port->withdraw(*w)) w->out.reset();
  if (making()) {
    attempt_->fail();
    attempt_.reset();
  } else if (attempt_ && attempt_->stage == Visitor::Stage::offered && attempt_->withdraw()) {
    take_back_rooms();
    attempt_.reset();
  }
  space_->reconsider();
}

}  // namespace weft::inline WEFT_ABI::wire
