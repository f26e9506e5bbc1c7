// The definitions of span.hpp; see ../../config.hpp.
#pragma once
#include "../space.hpp"
#include "../span.hpp"
#include "../spanned.hpp"

namespace weft::inline WEFT_ABI::wire {

// The guards at one home.
struct Span::Part {
  Part(Span& s, Peer* p) noexcept : span(s), home(p) {}
  virtual ~Part() = default;
  virtual void add(Guard& g) = 0;
  virtual bool offer(std::uint32_t rank) = 0;  // false: it cannot be, whole_ knows why
  virtual void attempt(std::uint32_t first, std::uint32_t n) = 0;
  virtual void stop_trying() = 0;  // not_ready() comes, or it was too late
  virtual void gone() = 0;
  virtual bool made() = 0;  // true: it is over at once, and whole_ knows why
  virtual void failed() = 0;

  Span& span;
  Peer* const home;  // null: this space
  std::uint32_t size = 0;
  bool ready = false;  // its home has said so since it was tried last
  // all its guards are: it is asked whether their channels are open, and its loss means that they
  // are not
  bool off = true;

  void was_ready() {
    ready = true;
    span.go_on();
  }
  void was_not_ready() {
    if (span.trying_ != this) return;
    span.trying_ = nullptr;
    if (span.fell_silent_) span.asked_ = span.asked_from_;
    span.go_on();
  }
};

struct Span::There final : Part, FarOp {
  There(Span& s, Peer& p) noexcept : Part(s, &p), peer(p) {}
  Peer& peer;
  std::vector<FarGuard> mine;

  void add(Guard& g) override {
    mine.push_back(
        {g.end, g.writes, g.off ? nullptr : g.room->get(), false, false, g.off, g.later});
  }
  bool offer(std::uint32_t r) override {
    rank = r;
    looks = span.looks_;
    FarOp::guards = mine;
    if (!peer.far.begin(*this)) return true;
    span.whole_.outcome = outcome;
    span.whole_.outcome.guard = span.guard_of(*this, 0);
    span.whole_.refused = refused;
    return false;
  }
  void attempt(std::uint32_t first, std::uint32_t n) override {
    trying = true;
    peer.far.attempt(*this, first, n);
  }
  void stop_trying() override { peer.far.withdraw(*this); }
  void gone() override { peer.far.gone(*this); }
  bool made() override {
    if (!peer.far.made(*this)) return false;
    span.whole_.refused = refused;
    return true;
  }
  void failed() override { peer.far.failed(*this); }
  void committed(std::uint32_t at) noexcept override { span.part_commits(*this, at); }

  void ready() noexcept override { was_ready(); }
  void silent(std::uint32_t at) noexcept override { span.part_silent(*this, at); }
  void not_ready() noexcept override {
    trying = false;
    was_not_ready();
  }
  void over() noexcept override {
    span.whole_.refused = refused;
    outcome.lost ? span.part_lost(*this) : span.part_over(*this, outcome);
  }
};

struct Span::Here final : Part, Spanned::Seat {
  explicit Here(Span& s) noexcept : Part(s, nullptr) {}
  std::vector<Guest::Seat> at;
  std::vector<std::unique_ptr<Room>*> rooms;
  std::shared_ptr<Spanned> part;

  void add(Guard& g) override {
    rooms.push_back(g.room);
    at.push_back({std::move(g.port), g.off ? nullptr : std::move(*g.room), 0, g.off, g.later});
  }
  bool offer(std::uint32_t rank) override {
    part = std::make_shared<Spanned>(span.space_, *this,
                                     Spanned::Rank{span.space_.greeting().incarnation, rank},
                                     std::move(at), span.looks_);
    part->begin();
    return true;
  }
  void attempt(std::uint32_t first, std::uint32_t n) override { part->attempt(first, n); }
  void stop_trying() override { part->withdraw(); }
  void gone() override {
    if (part) part->close();
    part.reset();
  }
  bool made() override {
    const auto keep = part;
    part->made();
    return false;
  }
  void failed() override { gone(); }
  void commit(std::uint32_t at) override { span.part_commits(*this, at); }
  void ready() override { was_ready(); }
  void silent(std::uint32_t guard) override { span.part_silent(*this, guard); }
  void not_ready() override { was_not_ready(); }
  void over(std::uint32_t guard, Status s, Guest::Seat& a) override {
    const std::uint8_t strength = s == Status::poisoned ? a.port->strength() : 0;
    if (s == Status::ok) *rooms[guard] = std::move(a.room);
    const auto keep = std::move(part);
    span.part_over(*this, {s, guard, strength, false, false});
  }
};

WEFT_IMPL Span::Span(Space& s, FarOp& whole, std::vector<Guard> guards, std::uint32_t first,
                     Kept kept, bool only_looks)
    : space_(s),
      whole_(whole),
      guards_(std::move(guards)),
      first_(first),
      kept_(kept),
      looks_(only_looks) {
  parts_.reserve(std::min(guards_.size(), kUsual));
  seats_.reserve(guards_.size());
  for (Guard& g : guards_) {
    Part* at = nullptr;
    for (const auto& p : parts_)
      if (p->home == g.peer) at = p.get();
    if (!at) {
      at = g.peer ? static_cast<Part*>(new There(*this, *g.peer)) : new Here(*this);
      parts_.emplace_back(at);
    }
    seats_.push_back({at, at->size++});
    at->off = at->off && g.off;
    at->add(g);
  }
}
WEFT_IMPL Span::~Span() {
  if (!began_ || over_) return;
  const Space::Step step(space_);
  for (const auto& p : parts_) p->gone();
}

WEFT_IMPL std::uint32_t Span::guard_of(const Part& p, std::uint32_t at) const {
  std::uint32_t i = 0;
  while (seats_[i].part != &p || seats_[i].at != at) ++i;
  return i;
}

WEFT_IMPL bool Span::begin() {
  const std::uint32_t rank = space_.next_rank();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i]->offer(rank)) continue;
    if (parts_[i]->off) {
      silence(*parts_[i]);
      continue;
    }
    over_ = true;
    for (std::size_t k = 0; k < i; ++k) parts_[k]->gone();
    return true;
  }
  began_ = silently_ = true;
  go_on();
  silently_ = false;
  return over_;
}

WEFT_IMPL void Span::go_on() {
  if (trying_ || over_ || !began_) return;
  const auto n = static_cast<std::uint32_t>(seats_.size());
  std::uint32_t gone = 0;
  if (failed_) return end(failure_, failed_at_);
  if (unwanted_) return end({Status::cancelled, 0, 0, false, false}, nullptr);
  if (all_silent(gone)) return end({Status::retired, gone, 0, false, false}, nullptr);
  const auto attempt = [&](Part& p, std::uint32_t first, std::uint32_t count) {
    // What it has said may be of those that are not tried now.
    if (count == p.size) p.ready = false;
    trying_ = &p;
    trying_writes_ = fell_silent_ = false;
    for (std::uint32_t i = 0; i < n; ++i)
      if (seats_[i].part == &p && seats_[i].at >= first && seats_[i].at < first + count)
        trying_writes_ |= guards_[i].writes && !guards_[i].off;
    if (!late_) return p.attempt(first, count);
    // It may be over in there, and then whoever waits for it has perhaps destroyed it.
    bool over = false;
    bool* const outer = std::exchange(over_within_, &over);
    p.attempt(first, count);
    if (over) {
      if (outer) *outer = true;
      return;
    }
    over_within_ = outer;
    if (trying_ == &p && !making_) p.stop_trying();
  };
  // In the order of the guards, neighbours of one home at once.
  while (asked_ < n) {
    const Seat& s = seats_[(first_ + asked_) % n];
    std::uint32_t count = 1;
    asked_from_ = asked_;
    while (asked_ + count < n && first_ % n + asked_ + count != n &&
           seats_[(first_ + asked_ + count) % n].part == s.part)
      ++count;
    bool all_silent = true;
    for (std::uint32_t i = 0; i < count; ++i)
      all_silent = all_silent && seats_[(first_ + asked_ + i) % n].silent;
    asked_ += count;
    if (all_silent && (count == 1 || s.part->off)) continue;
    return attempt(*s.part, s.at, count);
  }
  if (looks_ || late_) return end({Status::cancelled, 0, 0, false, false}, nullptr);
  asked_from_ = n;
  for (const auto& p : parts_)
    if (p->ready) return attempt(*p, 0, p->size);
}

// With the outcome: of which part, null: of none.
WEFT_IMPL void Span::end(const Outcome& how, Part* at) {
  over_ = true;
  trying_ = nullptr;
  for (const auto& p : parts_)
    if (p.get() != at) p->gone();
  whole_.outcome = how;
  whole_.word_ = Word::over;
  if (over_within_) *over_within_ = true;
  if (!silently_) whole_.over();
}

// Was a guard that is off open when this began? What is not known yet is.
WEFT_IMPL bool Span::open_though_off(bool writes) const noexcept {
  for (std::uint32_t i = 0; i < seats_.size(); ++i)
    if (guards_[i].off && guards_[i].writes == writes && !seats_[i].silent) return true;
  return false;
}
// Have all that keep it open retired (rule 5.6)? `guard`: the first of those that decide, the
// outputs; if they do not, the inputs.
WEFT_IMPL bool Span::all_silent(std::uint32_t& guard) const {
  if (kept_.by_inputs_off && open_though_off(false)) return false;
  const bool inputs = kept_.by_inputs || (kept_.by_outputs_off && open_though_off(true));
  bool found = false;
  for (std::uint32_t i = 0; i < seats_.size(); ++i) {
    if (guards_[i].off || !(guards_[i].writes ? kept_.by_outputs : inputs)) continue;
    if (!seats_[i].silent) return false;
    if (guards_[i].writes == kept_.by_outputs && !std::exchange(found, true)) guard = i;
  }
  return found;
}

WEFT_IMPL void Span::part_silent(Part& p, std::uint32_t at) {
  const std::uint32_t guard = guard_of(p, at);
  if (trying_ == &p && !guards_[guard].off && !std::exchange(seats_[guard].silent, true))
    fell_silent_ = true;
  seats_[guard].silent = true;
  if (guards_[guard].ends && !guards_[guard].off && !std::exchange(failed_, true))
    failure_ = {Status::retired, guard, 0, false, false};
  go_on();
}
// What did not happen waits for whoever is trying.
WEFT_IMPL void Span::part_over(Part& p, const Outcome& how) {
  if (over_) return;
  Outcome mine = how;
  mine.guard = guard_of(p, how.guard);
  if (trying_ == &p) return end(mine, &p);
  failed_ = true;
  failed_at_ = &p;
  failure_ = mine;
  go_on();
}
// The value that it was asked for is made by whoever this belongs to. Nobody else can commit
// meanwhile.
WEFT_IMPL void Span::part_commits(Part& p, std::uint32_t at) {
  making_ = true;
  whole_.committed(guard_of(p, at));
}
WEFT_IMPL bool Span::made() {
  if (over_) return true;
  making_ = false;
  silently_ = true;
  if (trying_->made()) {  // it could not be sent, and its home knows
    Part* const p = trying_;
    end({Status::pending, 0, 0, false, false}, p);
  }
  silently_ = false;
  return over_;
}
WEFT_IMPL void Span::failed() {
  if (over_) return;
  trying_->failed();
  silently_ = true;
  end({Status::pending, 0, 0, false, false}, trying_);
  silently_ = false;
}
WEFT_IMPL void Span::silence(const Part& p) noexcept {
  for (Seat& s : seats_) s.silent = s.silent || s.part == &p;
}
WEFT_IMPL void Span::part_lost(Part& p) {
  if (p.off) {
    silence(p);
    if (trying_ == &p) trying_ = nullptr;
    return go_on();
  }
  part_over(p, when_lost(trying_ == &p && !making_ ? Word::open : Word::unsent, trying_writes_));
}

WEFT_IMPL void Span::look_once() {
  if (asked_ >= seats_.size()) return withdraw();
  if (over_ || unwanted_ || std::exchange(late_, true)) return;
  if (trying_) {
    if (!making_) trying_->stop_trying();
    return;
  }
  go_on();
}
WEFT_IMPL void Span::withdraw() {
  if (over_ || unwanted_) return;
  unwanted_ = true;
  if (!trying_) return go_on();
  if (making_) return;  // too late
  trying_->stop_trying();
}

}  // namespace weft::inline WEFT_ABI::wire
