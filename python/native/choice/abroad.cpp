// Choices with guards at far channels: the ordinary select waits for timers, for the ends of
// processes, and for the answer of the homes.
//
//   begin ──► the homes' answer │ parked ──the answer──► chosen
//                                └──a timer, an end, a cancellation──► asked back ──the answer: too late──► chosen
//                                                                           └──the answer: withdrawn──► that guard is chosen
//
// A timer that has expired stays expired, and a process that has ended stays ended, so both can
// wait for the answer. A value that a home has given cannot be given back.
#include "choice/abroad.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "channels/marks.hpp"
#include "choice/choice.hpp"
#include "choice/choices.hpp"
#include "choice/time.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/errors.hpp"
#include "processes/rare.hpp"
#include "wire/carries.hpp"
#include "wire/far.hpp"
#include "wire/packed.hpp"
#include "wire/values.hpp"

namespace weft::py {

std::vector<Abroad*> abroads;

namespace {

// A wire::Room for one value of an Abroad.
class SeatRoom final : public wire::Room {
 public:
  SeatRoom(std::shared_ptr<Value[]> all, std::size_t i, bool full, Carries what) noexcept
      : all_(std::move(all)), i_(i), what_(what) {
    full_ = full;
  }
  void* slot() noexcept override { return &all_[i_]; }
  bool load(const wire::Payload& p, wire::Carrier& by) override {
    all_[i_].o = value_from(what_, p, by);
    if (!all_[i_].o) PyErr_Clear();
    return full_ = all_[i_].o != nullptr;
  }
  wire::Payload unload(wire::Buffer& keep, wire::Carrier& by) const override {
    return packed_out(all_[i_].o, keep, by);
  }
  wire::Keeper keeper() const override { return packed_keeper(all_[i_].o); }

 private:
  const std::shared_ptr<Value[]> all_;
  const std::size_t i_;
  const Carries what_;
};

std::shared_ptr<wire::Port> port_of(const Abroad::Seat& s) {
  if (s.writes) return std::make_shared<ChannelPort<Side::out>>(s.channel, false);
  return std::make_shared<ChannelPort<Side::in>>(s.channel, false);
}
const std::shared_ptr<Space>& space_of(const std::vector<Abroad::Seat>& seats) {
  for (const Abroad::Seat& s : seats)
    if (is_far(s.channel)) return side_of(s.channel).peer->space;
  prim::fatal("a choice without far ends went abroad");
}

}  // namespace

bool Abroad::at_barrier(const Seat& s) noexcept {
  return is_far(s.channel) && side_of(s.channel).is_barrier();
}

Abroad::Abroad(std::vector<Seat> seats, wire::Span::Kept kept, bool looks, bool alone)
    : space_(space_of(seats)), seats_(std::move(seats)), values_(new Value[seats_.size()]) {
  // A choice with a barrier is always left to the barrier's home. A barrier keeps a choice open, as
  // the end of a process does (rule 5.6).
  const bool barrier = std::any_of(seats_.begin(), seats_.end(), &at_barrier);
  const Peer* one = nullptr;
  bool delegated = barrier || (alone && !looks);
  wire::Span::Guards all;
  rooms_.reserve(seats_.size());
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const Seat& s = seats_[i];
    const bool has_value = s.writes && !s.off && !s.later;
    if (has_value) values_[i].o = Py_NewRef(s.value);
    const Carries what = is_far(s.channel) ? side_of(s.channel).carries : carries(s.channel);
    rooms_.push_back(std::make_unique<SeatRoom>(values_, i, has_value, what));
    delegated = delegated && !s.off;
    if (!is_far(s.channel)) {
      delegated = false;
      all.push_back({nullptr, port_of(s), 0, s.writes, &rooms_.back(), s.ends, s.off, s.later});
      continue;
    }
    const FarSide& f = side_of(s.channel);
    delegated = delegated && !s.ends && (!one || one == f.peer.get());
    one = f.peer.get();
    ends_.push_back(f.end);
    offer_.push_back({f.number, s.writes, rooms_.back().get(), false, false, s.off, s.later});
    all.push_back(
        {f.peer.get(), nullptr, f.number, s.writes, &rooms_.back(), s.ends, s.off, s.later});
  }
  decide(delegated, barrier, std::move(all), kept, looks);
}

void Abroad::decide(bool delegated, bool barrier, wire::Span::Guards all, wire::Span::Kept kept,
                    bool looks) {
  guards = offer_;
  if (!delegated && barrier)
    refused =
        "a barrier of another OS process can be a guard only if the same OS process has made the "
        "channels of all other guards, and none of them is off: make the channels there, or wait "
        "for the barrier in a process of its own";
  else if (!delegated)
    span_.emplace(*space_, *this, std::move(all), 0, kept, looks);
  asks_back_ = barrier && looks;
  abroads.push_back(this);
}
Abroad::~Abroad() {
  std::erase(abroads, this);
  const Space::Step step(*space_);  // the destructors of the ends need a step
  span_.reset();
  ends_.clear();
}

void Abroad::begin() {
  const Space::Step step(*space_);
  if (refused) {
    outcome.status = Status::pending;
    over_ = true;
    return;
  }
  if (span_ ? span_->begin() : ends_[0]->peer->far.begin(*this)) over_ = true;
  if (asks_back_ && !over_) ends_[0]->peer->far.withdraw(*this);
}
void Abroad::withdraw() {
  const Space::Step step(*space_);
  unwanted_ = unwanted_ || !over_;
  span_ ? span_->withdraw() : ends_[0]->peer->far.withdraw(*this);
}
void Abroad::look_once() {
  const Space::Step step(*space_);
  span_ ? span_->look_once() : ends_[0]->peer->far.withdraw(*this);
}
void Abroad::over() noexcept {
  over_ = true;
  if (nobodys_)
    bury();
  else if (waiter_)
    waiter_->ops->wake(waiter_);
  else
    latch.set();
}
void Abroad::committed(std::uint32_t seat) noexcept {
  making_ = static_cast<int>(seat);
  if (!nobodys_) return latch.set();
  failed();  // the value will never be made
  bury();
}
// Destroys an Abroad that no longer has an owner, at the end of the step. The ends of the Abroad
// are dropped with it, and another process might be waiting for their release.
void Abroad::bury() noexcept { space_->bury(std::shared_ptr<Abroad>(this)); }
bool Abroad::made(PyObject* value, core::Waker& waiter) {
  values_[std::exchange(making_, -1)].o = value;
  const Space::Step step(*space_);
  if (!over_ && !(span_ ? span_->made() : ends_[0]->peer->far.made(*this))) {
    waiter_ = &waiter;
    return false;
  }
  return over_ = true;
}
void Abroad::failed() {
  const Space::Step step(*space_);
  making_ = -1;
  if (!std::exchange(over_, true)) span_ ? span_->failed() : ends_[0]->peer->far.failed(*this);
}
Value* Abroad::bare(const Engine& c) noexcept {
  for (std::size_t i = 0; i < seats_.size() && !over_; ++i)
    if (&seats_[i].channel->core == &c && seats_[i].writes && values_[i].o &&
        !is_packed(values_[i].o))
      return &values_[i];
  return nullptr;
}

// Drops a choice before its answer has come.
void LetGo::operator()(Abroad* a) const noexcept {
  if (a->generation_ != generation) return;  // after a fork: the choice belongs to the parent
  if (a->over_) {
    delete a;
    return;
  }
  if (a->to_make() >= 0) {  // the owner is destroyed before it has made the value
    a->failed();
    delete a;
    return;
  }
  a->nobodys_ = true;
  a->withdraw();
}

// --- the choice's side ---------------------------------------------------------------------------

int Choice::check_far(const char* verb) {
  for (std::uint32_t i = 0; i < n_; ++i) {
    if (guards_[i].kind != core::Kind::barrier) continue;
    bad_use(
        "%s: guard %u is a barrier of this OS process, and another guard is at a channel that "
        "another OS process has made: make both in the same OS process, or wait for the barrier in "
        "a process of its own",
        verb, i);
    return -1;
  }
  return 0;
}

// Returns the guards that can be chosen, in order of preference.
std::vector<std::uint32_t> Choice::order_of_guards(std::uint32_t from) const {
  std::vector<std::uint32_t> order(n_);
  std::iota(order.begin(), order.end(), 0u);
  if (mode_ == Mode::fair) std::rotate(order.begin(), order.begin() + from % n_, order.end());
  if (mode_ == Mode::random) std::shuffle(order.begin(), order.end(), std::mt19937_64(next_seed()));
  std::erase_if(order, [this](std::uint32_t i) { return !guards_[i].enabled; });
  return order;
}

// The guards and events that a choice with far guards waits for.
struct Choice::Plan {
  std::vector<Abroad::Seat> seats;
  std::vector<std::uint32_t> lasting;  // timers, and the ends of processes
  bool alone = true;                   // whether only channels and timers decide the choice
  wire::Span::Kept kept{};             // which guards hold the choice open
};

// Makes the plan, and sets `instead_`: the guard that is chosen if the homes answer that nothing
// has happened.
Choice::Plan Choice::plan_far(const std::vector<std::uint32_t>& order, std::int64_t now) {
  Plan plan;
  int skip = -1, timer = -1;
  instead_ = -1;
  for (const std::uint32_t i : order) {
    core::Guard& g = guards_[i];
    const int at = static_cast<int>(i);
    if (g.kind <= core::Kind::output) {
      Abroad::Seat s{channel_of(i), i,     g.kind == core::Kind::output,       g.ends,
                     slots_[i].o,   false, g.node.is(core::NodeFlags::compute)};
      plan.seats.push_back(s);
    } else if (g.kind == core::Kind::skip) {
      skip = at;
      if (mode_ == Mode::priority) break;
    } else if (g.kind == core::Kind::timer) {
      if (g.deadline <= now &&
          (timer < 0 || g.deadline < guards_[static_cast<std::size_t>(timer)].deadline))
        timer = at;
      plan.lasting.push_back(i);
    } else {
      plan.alone = false;
      if (g.state() == core::State::ready) {  // the guards after a ready one are not sent to the
                                              // homes
        instead_ = at;
        break;
      }
      plan.lasting.push_back(i);
    }
  }
  if (instead_ < 0) instead_ = skip >= 0 ? skip : timer;
  return plan;
}

core::Kinds Choice::kinds_seen() const {
  core::Kinds seen;
  for (std::uint32_t i = 0; i < n_; ++i) {
    core::Guard g;
    g.enabled = guards_[i].enabled;
    g.kind = guards_[i].kind;
    if (g.kind == core::Kind::input && is_far(channel_of(i)) && side_of(channel_of(i)).is_barrier())
      g.kind = core::Kind::barrier;
    seen.add(g);
  }
  return seen;
}

// Adds to the plan the guards that are off and hold the choice open (rule 5.6).
void Choice::add_seats_off(Plan& plan) {
  plan.kept = wire::Span::kept(kinds_seen());
  for (std::uint32_t i = 0; i < n_; ++i) {
    core::Guard& g = guards_[i];
    const bool counts = g.kind == core::Kind::input
                            ? plan.kept.by_inputs_off
                            : g.kind == core::Kind::output && plan.kept.by_outputs_off;
    if (g.enabled || !counts || !g.where || g.state() > core::State::ready) continue;
    Abroad::Seat s{channel_of(i), i, g.kind == core::Kind::output, false, nullptr, true};
    // A guard that is closed can never be switched on again.
    const bool closed = is_far(s.channel) && !side_of(s.channel).end;
    if (!closed && !Abroad::at_barrier(s)) plan.seats.push_back(s);
  }
}

// Fills `meanwhile_` with the homes' answer, the timers and the ends of processes. Returns the
// number of guards in it.
std::uint32_t Choice::wait_meanwhile(std::vector<std::uint32_t> lasting) {
  const auto waits = static_cast<std::uint32_t>(lasting.size()) + 1;
  meanwhile_ = runtime::FixedArray<core::Guard>(waits);
  lasting_ = std::move(lasting);
  core::Guard& word = meanwhile_[0];
  word.kind = core::Kind::latch;
  word.ops = &core::barrier_ops<core::LatchEngine<Shared>>;
  word.where = &abroad_->latch;
  for (std::uint32_t i = 1; i < waits; ++i) {
    const core::Guard& g = guards_[lasting_[i - 1]];
    meanwhile_[i].kind = g.kind;
    meanwhile_[i].ops = g.ops;
    if (g.kind == core::Kind::timer)
      meanwhile_[i].deadline = g.deadline;
    else
      meanwhile_[i].where = g.where;
  }
  return waits;
}

int Choice::begin_far(ProcessBase& p, runtime::Run* run, SelectMemory* memory, bool foreign,
                      std::int64_t now) {
  from_afar_ = true;
  start_ = memory && mode_ == Mode::fair && n_ > 1 ? &memory->of(key_) : nullptr;
  Plan plan = plan_far(order_of_guards(start_ ? *start_ : next_), now);
  const bool looks = instead_ >= 0;
  if (plan.seats.empty() && looks) return take_instead();
  add_seats_off(plan);
  if (std::none_of(plan.seats.begin(), plan.seats.end(),
                   [](const Abroad::Seat& s) { return is_far(s.channel); }))
    return begin_here(p, run, foreign);
  if (looks) plan.lasting.clear();
  abroad_.reset(new Abroad(std::move(plan.seats), plan.kept, looks, plan.alone));
  const std::uint32_t waits = wait_meanwhile(std::move(plan.lasting));
  abroad_->begin();
  p.place = this;
  if (abroad_->is_over()) return come_back();
  return await_word(p, waits, run);
}

// Begins an ordinary select, because no enabled guard is far.
int Choice::begin_here(ProcessBase& p, runtime::Run* run, bool foreign) {
  from_afar_ = false;
  const auto now = [run]() noexcept { return run ? run->now() : now_ns(); };
  select_.emplace(guards_.get(), n_, mode_, &p, start_ ? *start_ : next_);
  if (mode_ == Mode::random) select_->seed = next_seed();
  int r = select_->scan(now);
  if (r == core::Select::none) r = select_->enrol(foreign);
  p.place = this;
  if (r >= 0) remember(r);
  return parked_or(r, run);
}
void Choice::remember(int chosen) noexcept {
  (start_ ? *start_ : next_) = (static_cast<std::uint32_t>(chosen) + 1) % n_;
}

// Parks until the homes answer, or one of the other `guards` - 1 guards is ready.
int Choice::await_word(ProcessBase& p, std::uint32_t guards, runtime::Run* run) {
  select_.emplace(meanwhile_.get(), guards, Mode::priority, &p);
  int r = select_->scan([run]() noexcept { return run ? run->now() : now_ns(); });
  if (r == core::Select::none) r = select_->enrol();
  return r >= 0 ? heard(r) : parked_or(r, run);
}
// Handles the guard that has woken the choice. Guard 0 is the homes' answer. Any other guard can be
// chosen only after the homes have been asked.
int Choice::heard(int r) {
  if (const int seat = abroad_->to_make(); seat >= 0) {
    // A home has committed this guard, so any other event comes too late.
    const Abroad::Seat& s = abroad_->seat(static_cast<std::uint32_t>(seat));
    far_status_ = Status::ok;
    remember(static_cast<int>(s.guard));
    return static_cast<int>(s.guard);
  }
  if (r > 0 && instead_ < 0) instead_ = static_cast<int>(lasting_[static_cast<std::size_t>(r) - 1]);
  if (!abroad_->is_over()) r > 0 ? abroad_->look_once() : abroad_->withdraw();
  if (abroad_->is_over()) return come_back();
  return await_word(static_cast<ProcessBase&>(*select_->choice.waker), 1, nullptr);
}

int Choice::take_instead() {
  far_status_ = Status::ok;
  if (instead_ >= 0) remember(instead_);
  return instead_ >= 0 ? instead_ : cancelled;
}
// Called when the homes have answered. Returns the guard that is chosen.
int Choice::come_back() {
  const std::unique_ptr<Abroad, LetGo> a = std::move(abroad_);
  const wire::Outcome o = a->outcome;
  if (o.status == Status::cancelled) return a->unwanted() ? cancelled : take_instead();
  const Abroad::Seat& s = a->seat(o.guard);
  far_status_ = o.in_doubt ? Status::in_doubt : o.status;
  refused_ = a->refused;
  if (o.status == Status::ok && !s.writes) slots_[s.guard].o = a->take(o.guard);
  if (is_far(s.channel)) side_of(s.channel).told(o);
  const int r = static_cast<int>(s.guard);
  remember(r);
  return r;
}

// Sends the value of an output that had committed at another home. Returns 0 if an answer is
// awaited; otherwise 1 with the result in `r`, or -1 with an exception.
int Choice::deliver_far(PyObject* value, ProcessBase& p, PyObject** r) {
  if (!abroad_->made(value, p)) return 0;
  *r = finish_held(p);
  return *r ? 1 : -1;
}
PyObject* Choice::finish_far() {
  const std::unique_ptr<Abroad, LetGo> a = std::move(abroad_);
  const wire::Outcome& o = a->outcome;
  ChannelObject* const c = channel_of(static_cast<std::uint32_t>(chosen_));
  if (o.status == Status::ok) return Py_NewRef(Py_None);
  if (o.status == Status::pending)
    return bad_use("select on channel %s: %s", channel_name(c).c_str(), a->refused);
  if (is_far(c)) side_of(c).told(o);
  return raise_end(o.in_doubt ? Status::in_doubt : o.status, c, "select", chosen_, nullptr);
}

// Called when the owner is destroyed. An outcome that has already arrived is lost, and no code
// receives an outcome that arrives later.
void Choice::give_up_far() noexcept {
  if (armed_) armed_->disarm(timer_);
  armed_ = nullptr;
  if (!abroad_) return;
  word().finish_as(core::CANCELLED);
  select_->finish();
  if (abroad_->is_over() && abroad_->outcome.status == Status::ok) {
    const Abroad::Seat& s = abroad_->seat(abroad_->outcome.guard);
    if (s.writes && transits_) transits_[s.guard].commit();
    const Value gone(slots_[s.guard].take());
    checked_ = 0;
  }
  abroad_.reset();
}

Value* bare_in_choices(const Engine& c) noexcept {
  for (Abroad* a : abroads)
    if (Value* const v = a->bare(c)) return v;
  return nullptr;
}
void forget_far_choices() noexcept { abroads.clear(); }

}  // namespace weft::py
