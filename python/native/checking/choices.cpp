// Choices of Python processes in a check (CheckedChoice). CheckedSelect (weft/checked_select.hpp)
// determines the operations with which a choice conflicts; this file determines whether a choice
// with priorities starves a guard (rule 17.6).
#include <algorithm>

#include "checking/engine.hpp"
#include "choice/choice.hpp"

namespace weft::py {

CheckedChoice::CheckedChoice(Checker& engine) noexcept
    : CheckedSelect(engine.run), engine_(engine) {}

// Records which guards of a select with priorities are ready.
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

int CheckedChoice::begins(Choice& choice, std::uint32_t from, std::uint64_t key) {
  choice_ = &choice;
  since_ = nullptr;
  const bool alone = choice.n_ > 1 && !choice.far_ && !choice.standing_;
  const int taken = CheckedSelect::begins(choice.guards_.get(), choice.n_, from, key,
                                          alone && choice.mode_ == Mode::fair);
  if (engine_.fair && alone && choice.mode_ == Mode::priority) looks_by_priority(key);
  return taken;
}

const void* CheckedChoice::begun(Begun how, Access& at) {
  if (since_) takes_by_priority();
  return CheckedSelect::begun(choice_->chosen_, how, at);
}

int CheckedChoice::committed() const noexcept {
  const Choice& c = *choice_;
  return c.standing_ ? c.standing_->committed_to() : c.select_->committed_to();
}

}  // namespace weft::py
