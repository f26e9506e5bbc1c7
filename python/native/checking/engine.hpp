// A Checker is called at the points of Python's processes (points.hpp), and decides which process
// runs next (weft/deciding.hpp).
//
// Invariants
//  1 Process 0 is ordinary code, "main". It continues while no other process runs, or when it is
//    chosen at a point: its operations in a block (rule 7.5) are points, as the operations of other
//    processes are.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "checking/points.hpp"
#include "owned.hpp"
#include "weft/check/reduced.hpp"
#include "weft/check/strategies.hpp"
#include "weft/checked_select.hpp"
#include "weft/deciding.hpp"

namespace weft::py {

using weft::runtime::CheckedSelect;
using weft::runtime::Deciding;

class Checker;

// A choice of Python processes, which can starve a guard (choices.cpp).
class CheckedChoice final : public CheckedSelect {
 public:
  explicit CheckedChoice(Checker& engine) noexcept;
  // Returns the ready guard that the choice must choose, or -1.
  int begins(const SeenSelect&, std::uint32_t from, std::uint64_t key);
  const void* begun(Begun, Access& how);
  bool skips() const noexcept { return CheckedSelect::skips(select_.chosen(select_.of)); }
  int committed() const noexcept override { return select_.committed(select_.of); }
  void forget() noexcept {
    CheckedSelect::forget();
    waits_since_.clear();
  }

 private:
  void looks_by_priority(std::uint64_t key);
  void takes_by_priority();

  Checker& engine_;
  SeenSelect select_{};
  // For a select with priorities, in a fair order: the step at which each guard was first passed
  // over although it was ready. 0 means that at the last select the guard was not ready, or was
  // chosen.
  std::unordered_map<std::uint64_t, std::vector<unsigned>> waits_since_;
  std::vector<unsigned>* since_ = nullptr;  // the entry for the select that has begun
};

class Checker final : public Points, public Deciding<Checker> {
 public:
  const Services* services = nullptr;
  bool on = false;
  std::uint64_t lost = 0;                        // the number of values lost
  std::map<std::string, std::uint64_t> lost_in;  // the key is the name of the channel
  std::set<std::string> starved;                 // sentences about starvation
  // The functions that are called before each operation of a process with a stack of its own
  // (faults).
  std::unordered_map<const ProcessBase*, Owned<PyObject>> marked;

  void begin(weft::checking::Strategy&);
  void end();

  void starts(ProcessObject*) noexcept override;
  bool ends_later(ProcessObject*) noexcept override;
  void ended(ProcessObject*, const void* group) noexcept override;
  bool pauses(ProcessBase*, const void* operation, bool yields) noexcept override;
  void arrives(ProcessBase*, const void* place, Access) noexcept override;
  int selects(ProcessBase*, const SeenSelect&, std::uint32_t from,
              std::uint64_t key) noexcept override;
  bool begun(ProcessBase*, Begun) noexcept override;
  void stops(ProcessBase*) noexcept override;
  void in_ordinary_code(ProcessBase*, runtime::Run*) noexcept override;
  void joined(ProcessBase*, const void* group) noexcept override;
  void made(const void* place, std::uint32_t capacity, bool loses) noexcept override;
  void gone(const void* place, std::uint64_t dropped) noexcept override;
  void touches(const void* place, Access) noexcept override;
  void closes(const void* place, bool last, bool died) noexcept override;
  void cancels() noexcept override;
  void limits(ProcessObject*, bool open) noexcept override;
  void reads_clock() noexcept override;

  std::string name_at(const void* place) const;  // the name of a channel

  // Starvation (rule 17.6) is searched for only in fair orders: the usual one, and random ones.
  // starving() returns the number of steps of others after which a ready process counts as starved.
  bool fair = false;
  unsigned starving() const noexcept {
    return 1000 + run.settings.limit_each * static_cast<unsigned>(run.record.count);
  }

 private:
  // --- for Deciding ---
  friend Deciding<Checker>;
  int number_in(core::Waker*) const noexcept;
  void wakes(int n) noexcept;
  void passes_over(std::span<const int> ready, std::size_t chosen) noexcept;
  static bool concludes() noexcept { return true; }
  void cancel(runtime::Run& r) noexcept { services->cancel(r); }
  bool any_timer(runtime::Run& r) noexcept { return services->any_timer(r); }
  void fire_one(runtime::Run& r) noexcept { services->fire_one(r); }

  // The facts that have been reported about the operation that is beginning.
  struct Arrival {
    const void* place = nullptr;
    Access how = Access::all;
    bool choice = false;
    bool any = false;
  };
  struct Checked {
    explicit Checked(Checker& e) noexcept : choice(e) {}
    void begin_anew(const ProcessBase* p) noexcept {
      base = p;
      paused = nullptr;
      ready_since = 0;
      yields = false;
      arrival = {};
      choice.forget();
    }
    const ProcessBase* base = nullptr;
    const void* paused = nullptr;  // the operation before which the process lets others run
    // the step at which another process first ran before this one; 0 if none did
    unsigned ready_since = 0;
    bool yields = false;  // whether the operation that begins is a yield
    Arrival arrival;
    CheckedChoice choice;
  };

  int number(const ProcessBase*) const noexcept;
  void is(const ProcessBase*, int n) noexcept;
  int here() const noexcept;
  Checked& of(int n) noexcept { return *processes_[static_cast<std::size_t>(n)]; }
  bool another_goes(ProcessBase*) noexcept;
  void call_marked(const ProcessBase*) noexcept;

  std::vector<std::unique_ptr<Checked>> processes_;  // the index is the number of the process
  std::unordered_map<const ProcessBase*, int> numbers_;
  mutable const ProcessBase* last_ = nullptr;  // the process whose number was last asked for
  mutable int last_number_ = 0;
};

}  // namespace weft::py
