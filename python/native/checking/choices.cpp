// Choices of Python processes in a check (CheckedChoice). CheckedSelect (weft/checked_select.hpp)
// determines the operations with which a choice conflicts; this file determines whether a choice
// with priorities starves a guard (rule 17.6).
#include <algorithm>

#include "checking/engine.hpp"

namespace weft::py {

CheckedChoice::CheckedChoice(Checker& engine) noexcept
    : CheckedSelect(engine.run), engine_(engine) {}

// Records which guards of a select with priorities are ready.
void CheckedChoice::looks_by_priority(std::uint64_t key) {
  since_ = &waits_since_[key];
  since_->resize(select_.count, 0);
  for (std::uint32_t i = 0; i < select_.count; ++i) {
    core::Guard& g = select_.guards[i];
    const bool ready = g.enabled && g.kind <= core::Kind::output && g.state() == core::State::ready;
    unsigned& since = (*since_)[i];
    since = !ready ? 0 : since ? since : std::max(1u, engine_.run.steps);
  }
}
void CheckedChoice::takes_by_priority() {
  std::vector<unsigned>& since = *std::exchange(since_, nullptr);
  if (const int chosen = select_.chosen(select_.of); chosen >= 0)
    since[static_cast<std::size_t>(chosen)] = 0;
  for (std::uint32_t i = 0; i < since.size(); ++i) {
    if (!since[i] || engine_.run.steps - since[i] < engine_.starving()) continue;
    const weft::checking::Record& r = engine_.run.record;
    engine_.starved.insert(
        "guard " + std::to_string(i) + " of a select of " + r.path(r.running) + " (" +
        engine_.name_at(select_.guards[i].where) + ") was ready, and was passed over for " +
        std::to_string(engine_.starving()) + " steps: a select with priorities may never take it");
  }
}

int CheckedChoice::begins(const SeenSelect& s, std::uint32_t from, std::uint64_t key) {
  select_ = s;
  since_ = nullptr;
  const int taken =
      CheckedSelect::begins(s.guards, s.count, from, key, s.chooses && s.mode == Mode::fair);
  if (engine_.fair && s.chooses && s.mode == Mode::priority) looks_by_priority(key);
  return taken;
}

const void* CheckedChoice::begun(Begun how, Access& at) {
  if (since_) takes_by_priority();
  return CheckedSelect::begun(select_.chosen(select_.of), how, at);
}

}  // namespace weft::py
