// Selects, as the engine sees them: how the arrival of one conflicts with other steps.
//
// That a select finds a partner, or is found by him, is the same if it could have taken nobody
// else: then it counts as a plain party at the guard that it took, and its other guards conflict
// with every arrival, but not with a quiet end. A skip, a time that may come any moment, a second
// guard that is ready, or one place at two guards make a difference. While it waits it counts as
// one that may take any; only when its partner is known is that weakened, for the races.
#include <algorithm>

#include "checking/engine.hpp"
#include "choice/choice.hpp"

namespace weft::py {

namespace {
// Does the quiet end of its channel make a difference to the select? That of its outputs may end it
// while there are inputs (rule 5.6).
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

// Of the guards that are ready one that rule 5.4 allows: none is passed over as often as there are
// guards.
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

int CheckedChoice::begins(ProcessObject*, Choice& choice, std::uint32_t from, std::uint64_t key) {
  choice_ = &choice;
  weft::checking::Record& r = engine_.run.record;
  r.select_begins();
  for (std::uint32_t i = 0; i < choice.n_; ++i) {
    const core::Guard& g = choice.guards_[i];
    if (!g.enabled) continue;
    if (g.kind == core::Kind::timer)
      r.arms();
    else if (g.kind == core::Kind::latch)
      r.select_at(g.where, Access::look);
    else if (g.kind == core::Kind::barrier)
      r.select_at(g.where, Access::all);
    else if (g.kind <= core::Kind::output && choice.n_ == 1)
      r.select_at(g.where, g.kind == core::Kind::input ? Access::read : Access::write);
  }
  ready_ = 2;  // not looked at
  const bool decides =
      choice.mode_ == Mode::fair && choice.n_ > 1 && !choice.far_ && !choice.standing_;
  return decides ? taken_of(key, from) : -1;
}

const void* CheckedChoice::begun(Begun how, Access& at) {
  const Choice& c = *choice_;
  weft::checking::Record& r = engine_.run.record;
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
  if (chosen < 0) return;  // by a time, or a cancellation
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
