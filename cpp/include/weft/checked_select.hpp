// How the engine of a check treats a select, in C++ and in Python: what the select's arrival
// conflicts with.
//
// If a select could have taken no party but its partner, it makes no difference which of the two
// arrived first. Then the select counts as a plain party at the guard that it took. Its other
// guards conflict with every arrival, but not with the retirement of a channel that is not a
// buffer. None of this holds if the select has a skip, a time that may be reached at any moment, a
// second guard that is ready, or two guards at one place. While a select waits, it counts as one
// that may take any guard. When its partner is known, its accesses are weakened, for the search for
// races.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/run.hpp"
#include "core/guard.hpp"

namespace weft::inline WEFT_ABI::runtime {

class CheckedSelect : public checking::Waiting {
 public:
  // Called when the select begins with these guards. `decides` says whether the select may take any
  // guard that is ready (rule 5.4); then the guards are tried from `from` on. `key` distinguishes
  // its guards from those of other selects of the process. Returns the guard that the select is to
  // take, or -1.
  int begins(core::Guard* guards, std::uint32_t count, std::uint32_t from, std::uint64_t key,
             bool decides);
  // Called when the select has begun, with the guard that it has taken, or -1. Returns the place at
  // which the select has committed, and sets `at` to its access to that place. Returns null if the
  // select has not committed.
  const core::SyncObject* begun(int taken, checking::Begun how, checking::Access& at);
  // Called when a select that waited has been decided. It is declared `inline` here so that only
  // files which use the class define it: the library without checks has no Record.
  inline void decided() override;
  // Returns the guard to which the select has committed, or a negative number if a deadline or a
  // cancellation decided it.
  virtual int committed() const noexcept = 0;
  // Returns whether guard `taken`, which the select has taken, is a skip; false if it is negative.
  bool skips(int taken) const noexcept {
    return taken >= 0 && guards_[taken].kind == core::Kind::skip;
  }
  void forget() noexcept { passed_over_.clear(); }

 protected:
  explicit CheckedSelect(checking::Run& run) noexcept : run_(run) {}
  ~CheckedSelect() = default;

  checking::Run& run_;
  core::Guard* guards_ = nullptr;
  std::uint32_t count_ = 0;

 private:
  static bool at_channel(const core::Guard& g) noexcept {
    return g.enabled && g.kind <= core::Kind::output;
  }
  static bool writes(const core::Guard& g) noexcept { return g.kind == core::Kind::output; }
  // Returns whether the retirement of this guard's channel makes a difference to the select. The
  // retirement of an output's channel can end the select although it has inputs (rule 5.6).
  static bool ends(const core::Guard& g) noexcept { return g.ends || writes(g); }
  bool commutes() const noexcept;
  int taken_of(std::uint32_t from, std::uint64_t key);

  std::size_t ready_ = 0;  // the number of guards that were ready when the select began
  // By key: how often each guard was passed over while it was ready (rule 5.4).
  std::unordered_map<std::uint64_t, std::vector<unsigned>> passed_over_;
};

inline bool CheckedSelect::commutes() const noexcept {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const core::Guard& g = guards_[i];
    if (!g.enabled) continue;
    if (g.kind == core::Kind::skip || (g.kind == core::Kind::timer && run_.settings.any_time))
      return false;
    for (std::uint32_t k = 0; k < i; ++k)
      if (guards_[k].enabled && g.where && g.where == guards_[k].where) return false;
  }
  return true;
}

// Chooses one of the ready guards that rule 5.4 allows: no guard must be passed over as often as
// there are guards. Returns -1 if none is ready.
inline int CheckedSelect::taken_of(std::uint32_t from, std::uint64_t key) {
  std::vector<unsigned> ready, due;
  for (std::uint32_t k = 0; k < count_; ++k) {
    const std::uint32_t i = (from + k) % count_;
    core::Guard& g = guards_[i];
    if (!g.enabled || g.kind >= core::Kind::timer) continue;
    const core::State s = g.state();
    if (s == core::State::ready || s == core::State::ended || (s == core::State::retired && g.ends))
      ready.push_back(i);
  }
  ready_ = ready.size();
  std::vector<unsigned>& passed = passed_over_[key];
  passed.resize(count_, 0);
  for (const unsigned i : ready)
    if (passed[i] + 1 >= count_) due.push_back(i);
  const std::vector<unsigned>& may = due.empty() ? ready : due;
  int taken = -1;
  if (!may.empty())
    taken =
        static_cast<int>(may[run_.take(static_cast<unsigned>(may.size()), checking::Kind::guard)]);
  std::vector<unsigned> now(count_, 0);
  for (const unsigned i : ready)
    if (static_cast<int>(i) != taken) now[i] = passed[i] + 1;
  passed = std::move(now);
  return taken;
}

// Each kind of guard must be handled here: the search for orders would ignore a kind that is not
// handled.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
inline int CheckedSelect::begins(core::Guard* guards, std::uint32_t count, std::uint32_t from,
                                 std::uint64_t key, bool decides) {
  guards_ = guards;
  count_ = count;
  checking::Record& r = run_.record;
  r.select_begins();
  for (std::uint32_t i = 0; i < count; ++i) {
    const core::Guard& g = guards[i];
    if (!g.enabled) continue;
    switch (g.kind) {
      case core::Kind::timer: r.arms(); break;
      case core::Kind::latch: r.select_at(g.where, checking::Access::look); break;
      case core::Kind::barrier: r.select_at(g.where, checking::Access::all); break;
      case core::Kind::input:
      case core::Kind::output:
        if (count == 1)  // for several guards begun() records the access
          r.select_at(g.where, g.node.is(core::NodeFlags::extended) ? checking::Access::all
                               : writes(g)                          ? checking::Access::write
                                                                    : checking::Access::read);
        break;
      case core::Kind::descriptor:  // a check refuses a descriptor (rule 18.7)
      case core::Kind::skip: break;
    }
  }
  ready_ = 2;  // the guards were not examined, so several might be ready
  return decides ? taken_of(from, key) : -1;
}
#pragma GCC diagnostic pop

inline const core::SyncObject* CheckedSelect::begun(int taken, checking::Begun how,
                                                    checking::Access& at) {
  using checking::Access;
  checking::Record& r = run_.record;
  const bool parked = how == checking::Begun::parked, can = commutes();
  for (std::uint32_t i = 0; i < count_; ++i) {
    const core::Guard& g = guards_[i];
    if (!at_channel(g)) continue;
    if (count_ > 1) {
      const bool here = !parked && can && ready_ == 1 && static_cast<int>(i) == taken;
      r.select_at(g.where, here ? writes(g) ? Access::choose_write : Access::choose_read
                           : can && !parked && !ends(g) ? Access::quiet_choice
                                                        : Access::choice);
    }
    if (parked) r.waits_at(g.where, writes(g), ends(g));
    if (how == checking::Begun::raised) r.saw_closed(g.where);
  }
  if (parked) {
    if (can && count_ > 1) r.select_parks(this);
    return nullptr;
  }
  if (taken < 0 || !at_channel(guards_[taken])) return nullptr;
  at = writes(guards_[taken]) ? Access::write : Access::read;
  return guards_[taken].where;
}

inline void CheckedSelect::decided() {
  using checking::Access;
  const int chosen = committed();
  if (chosen < 0) return;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const core::Guard& g = guards_[i];
    if (at_channel(g))
      run_.record.weaken(g.where, static_cast<int>(i) != chosen
                                      ? ends(g) ? Access::choice : Access::quiet_choice
                                  : writes(g) ? Access::choose_write
                                              : Access::choose_read);
  }
}

}  // namespace weft::inline WEFT_ABI::runtime
