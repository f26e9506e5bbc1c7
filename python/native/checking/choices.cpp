// How a select looks to the engine (CheckedChoice): what its arrival conflicts with.
//
// If a select could have taken nobody but its partner, it makes no difference which of the two came
// first. Then the select counts as a plain party at the guard that it took. Its other guards
// conflict with every arrival, but not with the retirement of a channel that is no buffer. This
// does not hold if the select has a skip, a time that may come at any moment, a second guard that
// is ready, or two guards at one place. While a select waits it counts as one that may take any
// guard. Once its partner is known that is weakened, for the search for races.
#include <algorithm>

#include "checking/engine.hpp"
#include "choice/choice.hpp"

namespace weft::py {

namespace {
// Does the retirement of this guard's channel make a difference to the select? That of the outputs
// may end the select although it has inputs (rule 5.6).
bool ends(const core::Guard& g) noexcept { return g.ends || g.kind == core::Kind::output; }
}  // namespace

bool CheckedChoice::commutes() const noexcept {
  const Choice& c = *choice_;
  for (std::uint32_t i = 0; i < c.n_; ++i) {
    const core::Guard& g = c.guards_[i];
    if (!g.enabled) continue;
    if (g.kind == core::Kind::skip) return false;
    if (g.kind == core::Kind::timer && engine_.run.settings.any_time) return false;
    for (std::uint32_t k = 0; k < i; ++k)
      if (c.guards_[k].enabled && g.where && g.where == c.guards_[k].where) return false;
  }
  return true;
}

// Takes one of the ready guards that rule 5.4 allows: no guard is passed over as often as there are
// guards. Returns -1 if none is ready.
int CheckedChoice::taken_of(std::uint64_t key, std::uint32_t from) {
  const Choice& c = *choice_;
  std::vector<unsigned> ready, due;
  for (std::uint32_t k = 0; k < c.n_; ++k) {
    const std::uint32_t i = (from + k) % c.n_;
    core::Guard& g = c.guards_[i];
    if (!g.enabled || g.kind >= core::Kind::timer) continue;
    const core::State s = g.state();
    if (s == core::State::ready || s == core::State::ended || (s == core::State::retired && g.ends))
      ready.push_back(i);
  }
  ready_ = ready.size();
  std::vector<unsigned>& passed = passed_over_[key];
  passed.resize(c.n_, 0);
  for (const unsigned i : ready)
    if (passed[i] + 1 >= c.n_) due.push_back(i);
  const std::vector<unsigned>& may = due.empty() ? ready : due;
  int taken = -1;
  if (!may.empty())
    taken = static_cast<int>(
        may[engine_.run.take(static_cast<unsigned>(may.size()), weft::checking::Kind::guard)]);
  std::vector<unsigned> now(c.n_, 0);
  for (const unsigned i : ready)
    if (static_cast<int>(i) != taken) now[i] = passed[i] + 1;
  passed = std::move(now);
  return taken;
}

// Notes which guards of a select with priorities are ready.
void CheckedChoice::looks_by_priority(std::uint64_t key) {
  const Choice& c = *choice_;
  since_ = &waits_since_[key];
  since_->resize(c.n_, 0);
  for (std::uint32_t i = 0; i < c.n_; ++i) {
    core::Guard& g = c.guards_[i];
    const bool ready = g.enabled && g.kind <= core::Kind::output && g.state() == core::State::ready;
    unsigned& since = (*since_)[i];
    since = !ready ? 0 : since ? since : std::max(1u, engine_.run.steps);
  }
}
void CheckedChoice::takes_by_priority() {
  const Choice& c = *choice_;
  std::vector<unsigned>& since = *std::exchange(since_, nullptr);
  if (c.chosen_ >= 0) since[static_cast<std::size_t>(c.chosen_)] = 0;
  for (std::uint32_t i = 0; i < since.size(); ++i) {
    if (!since[i] || engine_.run.steps - since[i] < engine_.starving()) continue;
    const weft::checking::Record& r = engine_.run.record;
    engine_.starved.insert(
        "guard " + std::to_string(i) + " of a select of " + r.path(r.running) + " (" +
        engine_.name_at(c.guards_[i].where) + ") was ready, and was passed over for " +
        std::to_string(engine_.starving()) + " steps: a select with priorities may never take it");
  }
}

// A kind of guard that was forgotten here would be left out of the search for orders.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
int CheckedChoice::begins(ProcessObject*, Choice& choice, std::uint32_t from, std::uint64_t key) {
  choice_ = &choice;
  weft::checking::Record& r = engine_.run.record;
  r.select_begins();
  for (std::uint32_t i = 0; i < choice.n_; ++i) {
    const core::Guard& g = choice.guards_[i];
    if (!g.enabled) continue;
    switch (g.kind) {
      case core::Kind::timer: r.arms(); break;
      case core::Kind::latch: r.select_at(g.where, Access::look); break;
      case core::Kind::barrier: r.select_at(g.where, Access::all); break;
      case core::Kind::input:
      case core::Kind::output:
        if (choice.n_ == 1)  // begun() records those of several
          r.select_at(g.where, g.kind == core::Kind::input ? Access::read : Access::write);
        break;
      case core::Kind::skip: break;
    }
  }
  ready_ = 2;  // they were not looked at: there may be several
  const bool decides =
      choice.mode_ == Mode::fair && choice.n_ > 1 && !choice.far_ && !choice.standing_;
  since_ = nullptr;
  if (engine_.fair && choice.mode_ == Mode::priority && choice.n_ > 1 && !choice.far_ &&
      !choice.standing_)
    looks_by_priority(key);
  return decides ? taken_of(key, from) : -1;
}
#pragma GCC diagnostic pop

const void* CheckedChoice::begun(Begun how, Access& at) {
  const Choice& c = *choice_;
  weft::checking::Record& r = engine_.run.record;
  if (since_) takes_by_priority();
  const bool parked = how == Begun::parked, can = commutes();
  for (std::uint32_t i = 0; i < c.n_; ++i) {
    const core::Guard& g = c.guards_[i];
    if (!g.enabled || g.kind > core::Kind::output) continue;
    const bool writes = g.kind == core::Kind::output;
    if (c.n_ > 1) {
      const bool here = !parked && can && ready_ == 1 && static_cast<int>(i) == c.chosen_;
      r.select_at(g.where, here ? writes ? Access::choose_write : Access::choose_read
                           : can && !parked && !ends(g) ? Access::quiet_choice
                                                        : Access::choice);
    }
    if (parked) r.waits_at(g.where, writes, ends(g));
    if (how == Begun::raised) r.saw_closed(g.where);
  }
  if (parked) {
    if (can && c.n_ > 1) r.select_parks(this);
    return nullptr;
  }
  if (c.chosen_ < 0) return nullptr;
  const core::Guard& g = c.guards_[static_cast<std::size_t>(c.chosen_)];
  if (g.kind > core::Kind::output) return nullptr;
  at = g.kind == core::Kind::output ? Access::write : Access::read;
  return g.where;
}

void CheckedChoice::decided() {
  const Choice& c = *choice_;
  const int chosen = c.standing_ ? c.standing_->committed_to() : c.select_->committed_to();
  if (chosen < 0) return;  // a time or a cancellation has decided it
  for (std::uint32_t i = 0; i < c.n_; ++i) {
    const core::Guard& g = c.guards_[i];
    if (!g.enabled || g.kind > core::Kind::output) continue;
    engine_.run.record.weaken(g.where, static_cast<int>(i) != chosen
                                           ? ends(g) ? Access::choice : Access::quiet_choice
                                       : g.kind == core::Kind::output ? Access::choose_write
                                                                      : Access::choose_read);
  }
}

}  // namespace weft::py
