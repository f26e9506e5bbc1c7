// The definitions of wire/span.hpp.
#include <weft/wire/space.hpp>
#include <weft/wire/span.hpp>
#include <weft/wire/spanned.hpp>

namespace weft::inline WEFT_ABI::wire {

// The part of a choice at one home: the guards that belong to that home.
struct Span::Part {
  Part(Span& s, Peer* p) noexcept : span(s), home(p) {}
  virtual ~Part() = default;
  virtual void add(Guard& g) = 0;
  // Offers the part to its home. `tries` says that the home is to try all guards of the part
  // together. Returns false if the offer is not possible; whole_ then says why.
  virtual bool offer(bool tries) = 0;
  // Returns whether the session with the part's home is known to be lost.
  virtual bool is_lost() const noexcept = 0;
  virtual void attempt(std::uint32_t first, std::uint32_t n) = 0;
  virtual void stop_trying() = 0;  // not_ready() follows, or the call was too late
  virtual void gone() = 0;
  virtual bool made() = 0;  // returns true if the choice ends immediately; whole_ says why
  virtual void failed() = 0;

  Span& span;
  Peer* const home;  // null for this space
  std::uint32_t size = 0;
  bool offered = false;
  bool ready = false;  // whether the part's home has said READY since it was last tried
  bool writes = false, some_off = false;
  // All guards of the part are off. The part's home is asked whether their channels are open; they
  // are not if the session with the home is lost.
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
  InlineVector<FarGuard, 2> mine;

  void add(Guard& g) override {
    mine.push_back(
        {g.end, g.writes, g.off ? nullptr : g.room->get(), false, false, g.off, g.later});
  }
  bool is_lost() const noexcept override { return peer.session.is_over(); }
  bool offer(bool tries) override {
    rank = span.rank_;
    looks = span.looks_;
    trying = tries;
    FarOp::guards = std::span(mine.begin(), mine.size());
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
  std::shared_ptr<Spanned> part;

  void add(Guard&) override {}
  bool is_lost() const noexcept override { return false; }
  bool offer(bool tries) override {
    std::vector<Visitor::Seat> at;
    at.reserve(size);
    for (std::size_t i = 0; i < span.seats_.size(); ++i) {
      if (span.seats_[i].part != this) continue;
      Guard& g = span.guards_[i];
      at.push_back({std::move(g.port), g.off ? nullptr : std::move(*g.room), 0, g.off, g.later});
    }
    part = std::make_shared<Spanned>(span.space_, *this,
                                     Spanned::Rank{span.space_.greeting().incarnation, span.rank_},
                                     std::move(at), span.looks_);
    const auto keep = part;
    keep->begin(tries);
    return true;
  }
  void attempt(std::uint32_t first, std::uint32_t n) override { part->attempt(first, n); }
  void stop_trying() override { part->withdraw(); }
  void gone() override {
    if (part) part->close();
    if (part) take_back(*std::exchange(part, nullptr));
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
  // Takes the rooms back, with the received values and the values that were not sent.
  void take_back(Spanned& from) {
    for (std::uint32_t i = 0; i < size; ++i)
      if (auto& room = from.room(i)) *span.guards_[span.guard_of(*this, i)].room = std::move(room);
  }
  void over(std::uint32_t guard, Status s, Visitor::Seat& a) override {
    const std::uint8_t strength = s == Status::poisoned ? a.port->strength() : 0;
    const auto keep = std::move(part);
    take_back(*keep);
    span.part_over(*this, {s, guard, strength, false, false});
  }
};

template <class P, class... A>
Span::Part& Span::add_part(A&&... a) {
  static_assert(sizeof(P) <= kPart && alignof(P) <= alignof(std::max_align_t));
  const std::size_t n = parts_.size();
  Part* const p = n < kHere ? ::new (static_cast<void*>(here_[n])) P(*this, std::forward<A>(a)...)
                            : new P(*this, std::forward<A>(a)...);
  return *parts_.push_back(p);
}
Span::Span(Space& s, FarOp& whole, Guards guards, std::uint32_t first, Kept kept, bool only_looks)
    : space_(s),
      whole_(whole),
      guards_(std::move(guards)),
      first_(first),
      kept_(kept),
      looks_(only_looks) {
  for (Guard& g : guards_) {
    Part* at = nullptr;
    for (Part* p : parts_)
      if (p->home == g.peer) at = p;
    if (!at) at = g.peer ? &add_part<There>(*g.peer) : &add_part<Here>();
    seats_.push_back({at, at->size++});
    at->off = at->off && g.off;
    at->writes = at->writes || g.writes;
    at->some_off = at->some_off || g.off;
    at->add(g);
  }
}
Span::~Span() {
  if (began_ && !over_) {
    const Space::Step step(space_);
    for (Part* p : parts_) p->gone();
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i < kHere)
      parts_[i]->~Part();
    else
      delete parts_[i];
  }
}

std::uint32_t Span::guard_of(const Part& p, std::uint32_t at) const {
  std::uint32_t i = 0;
  while (seats_[i].part != &p || seats_[i].at != at) ++i;
  return i;
}

bool Span::begin() {
  rank_ = space_.next_rank();
  const Part* const next = seats_[first_ % seats_.size()].part;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& p = *parts_[i];
    // Most parts are offered when they are asked. But guards that are off are checked now, and a
    // value that cannot be sent is reported before any home is asked.
    if (!p.some_off && (!p.writes || &p == next) && !p.is_lost()) continue;
    p.offered = p.offer(false);
    if (p.offered) continue;
    if (p.off) {
      silence(p);
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
// Asks a part, which becomes trying_. Returns false if the part cannot be asked; the choice has
// then ended.
bool Span::ask(Part& p, std::uint32_t first, std::uint32_t count) {
  if (!std::exchange(p.offered, true)) {
    const bool whole = count == p.size;
    if (!p.offer(whole)) {
      end(Outcome(whole_.outcome), &p);
      return false;
    }
    if (whole) return true;
  }
  p.attempt(first, count);
  return true;
}

void Span::go_on() {
  if (trying_ || over_ || !began_) return;
  const auto n = static_cast<std::uint32_t>(seats_.size());
  std::uint32_t gone = 0;
  if (failed_) return end(failure_, failed_at_);
  if (unwanted_) return end({Status::cancelled, 0, 0, false, false}, nullptr);
  if (all_silent(gone)) return end({Status::retired, gone, 0, false, false}, nullptr);
  const auto attempt = [&](Part& p, std::uint32_t first, std::uint32_t count) {
    // A READY that arrived before this attempt might have been about guards that the attempt does
    // not try. So the READY is forgotten only if all guards of the part are tried.
    if (count == p.size) p.ready = false;
    trying_ = &p;
    trying_writes_ = fell_silent_ = false;
    for (std::uint32_t i = 0; i < n; ++i)
      if (seats_[i].part == &p && seats_[i].at >= first && seats_[i].at < first + count)
        trying_writes_ |= guards_[i].writes && !guards_[i].off;
    if (!late_) return void(ask(p, first, count));
    // The choice can end within ask(). Then the process that waits for the choice might already
    // have destroyed the choice.
    bool over = false;
    bool* const outer = std::exchange(over_within_, &over);
    ask(p, first, count);
    if (over) {
      if (outer) *outer = true;
      return;
    }
    over_within_ = outer;
    if (trying_ == &p && !making_) p.stop_trying();
  };
  // Guards are asked in their order, and adjacent guards of one home together.
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
  for (Part* p : parts_)
    if (p->ready) return attempt(*p, 0, p->size);
}

// Ends the choice with the outcome of part `at`. If `at` is null, no part has given the outcome.
void Span::end(const Outcome& how, Part* at) {
  over_ = true;
  trying_ = nullptr;
  for (Part* p : parts_)
    if (p != at) p->gone();
  whole_.outcome = how;
  whole_.word_ = Word::over;
  if (over_within_) *over_within_ = true;
  if (!silently_) whole_.over();
}

// Returns whether a guard that is off was open when the choice began. A guard whose state is not
// known yet counts as open.
bool Span::open_though_off(bool writes) const noexcept {
  for (std::uint32_t i = 0; i < seats_.size(); ++i)
    if (guards_[i].off && guards_[i].writes == writes && !seats_[i].silent) return true;
  return false;
}
// Returns whether all guards that keep the choice open have retired (rule 5.6). Sets `guard` to the
// first of the guards that decide: the outputs, or the inputs if there are no outputs.
bool Span::all_silent(std::uint32_t& guard) const {
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

void Span::part_silent(Part& p, std::uint32_t at) {
  const std::uint32_t guard = guard_of(p, at);
  if (trying_ == &p && !guards_[guard].off && !std::exchange(seats_[guard].silent, true))
    fell_silent_ = true;
  seats_[guard].silent = true;
  if (guards_[guard].ends && !guards_[guard].off && !std::exchange(failed_, true))
    failure_ = {Status::retired, guard, 0, false, false};
  go_on();
}
// Receives the outcome of a part. If another part is trying, this outcome takes effect only if that
// part does not commit.
void Span::part_over(Part& p, const Outcome& how) {
  if (over_) return;
  Outcome mine = how;
  mine.guard = guard_of(p, how.guard);
  if (trying_ == &p) return end(mine, &p);
  failed_ = true;
  failed_at_ = &p;
  failure_ = mine;
  go_on();
}
// The owner of the choice makes the value for which the home asks. No other part can commit
// meanwhile.
void Span::part_commits(Part& p, std::uint32_t at) {
  making_ = true;
  whole_.committed(guard_of(p, at));
}
bool Span::made() {
  if (over_) return true;
  making_ = false;
  silently_ = true;
  if (trying_->made()) {  // The value could not be sent, and the part's home has been notified.
    Part* const p = trying_;
    end({Status::pending, 0, 0, false, false}, p);
  }
  silently_ = false;
  return over_;
}
void Span::failed() {
  if (over_) return;
  trying_->failed();
  silently_ = true;
  end({Status::pending, 0, 0, false, false}, trying_);
  silently_ = false;
}
void Span::silence(const Part& p) noexcept {
  for (Seat& s : seats_) s.silent = s.silent || s.part == &p;
}
void Span::part_lost(Part& p) {
  if (p.off) {
    silence(p);
    if (trying_ == &p) trying_ = nullptr;
    return go_on();
  }
  part_over(p, when_lost(trying_ == &p && !making_ ? Word::open : Word::unsent, trying_writes_));
}

void Span::look_once() {
  if (asked_ >= seats_.size()) return withdraw();
  if (over_ || unwanted_ || std::exchange(late_, true)) return;
  if (trying_) {
    if (!making_) trying_->stop_trying();
    return;
  }
  go_on();
}
void Span::withdraw() {
  if (over_ || unwanted_) return;
  unwanted_ = true;
  if (!trying_) return go_on();
  if (making_) return;  // It is too late: the choice has committed.
  trying_->stop_trying();
}

}  // namespace weft::inline WEFT_ABI::wire
