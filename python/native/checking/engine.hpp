// A Checker receives the points of Python processes (points.hpp), and tells their scheduler which
// process goes next (weft/runtime/chooser.hpp). The engine of weft/check decides.
//
//   scheduler ──next()──► decide(): who is ready? ──Run::go()──► out of the queue, its step begins
//   operation ──pauses(), begun()──► decide() ──itself──► it goes on at once
//                                       └──another──► it is suspended; next() gives the other
//
// Invariants
//  1 A process that is in the run queue is `ready` in the record, from when it is first seen there.
//  2 `decided_` has been removed from the queue already. The scheduler asks for it next, before
//    anything else is decided.
//  3 After the run has stopped all processes are cancelled, and go in the order of the queue.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "checking/points.hpp"
#include "owned.hpp"
#include "weft/check/reduced.hpp"
#include "weft/check/strategies.hpp"
#include "weft/checked_select.hpp"

namespace weft::py {

class Checker;

// A choice of Python processes, which may starve a guard (choices.cpp).
class CheckedChoice final : public CheckedSelect {
 public:
  explicit CheckedChoice(Checker& engine) noexcept;
  // Returns the ready guard that the choice must take, or -1.
  int begins(Choice&, std::uint32_t from, std::uint64_t key);
  const void* begun(Begun, Access& how);
  int committed() const noexcept override;
  void forget() noexcept {
    CheckedSelect::forget();
    waits_since_.clear();
  }

 private:
  void looks_by_priority(std::uint64_t key);
  void takes_by_priority();

  Checker& engine_;
  Choice* choice_ = nullptr;
  // For a select with priorities, in a fair order: the step at which each guard was first passed
  // over although it was ready; 0: it was not ready, or was taken, the last time.
  std::unordered_map<std::uint64_t, std::vector<unsigned>> waits_since_;
  std::vector<unsigned>* since_ = nullptr;  // the entry for the select that has begun
};

class Checker final : public Points, public runtime::Chooser {
 public:
  weft::checking::Run run;
  const Services* services = nullptr;
  bool on = false;
  std::uint64_t lost = 0;                        // the number of values lost
  std::map<std::string, std::uint64_t> lost_in;  // the key is the name of the channel
  std::set<std::string> starved;                 // sentences about starvation
  // Whether ordinary code has had an operation in a block of its own, which is no point.
  bool in_block = false;
  // The functions that are called before each operation of a process with a stack of its own
  // (faults).
  std::unordered_map<const ProcessBase*, Owned<PyObject>> marked;

  void begin(weft::checking::Strategy&);
  void end();

  core::Waker* next(runtime::Scheduler&, core::RunQueue&) noexcept override;

  void starts(ProcessObject*) noexcept override;
  bool ends_later(ProcessObject*) noexcept override;
  void ended(ProcessObject*, const void* group) noexcept override;
  bool pauses(ProcessObject*, const void* operation, bool yields) noexcept override;
  void arrives(ProcessObject*, const void* place, Access) noexcept override;
  int selects(ProcessObject*, Choice&, std::uint32_t from, std::uint64_t key) noexcept override;
  bool begun(ProcessObject*, Begun) noexcept override;
  void stops(ProcessObject*) noexcept override;
  void made(const void* place, std::uint32_t capacity, bool loses) noexcept override;
  void gone(const void* place, std::uint64_t dropped) noexcept override;
  void touches(const void* place, Access) noexcept override;
  void closes(const void* place, bool last, bool died) noexcept override;
  void cancels() noexcept override;
  void limits(ProcessObject*, bool open) noexcept override;
  void reads_clock() noexcept override;
  void in_ordinary_code() noexcept override { in_block = true; }

  std::string name_at(const void* place) const;  // the name of a channel

  // Starvation (rule 17.6) is looked for only in orders that are fair: the usual one, and random
  // ones. starving() returns how many steps of others prove it.
  bool fair = false;
  unsigned starving() const noexcept {
    return 1000 + run.settings.limit_each * static_cast<unsigned>(run.record.count);
  }

 private:
  // What the operation that begins has reported.
  struct Arrival {
    const void* place = nullptr;
    Access how = Access::all;
    bool choice = false;
    bool any = false;
  };
  struct Checked {
    explicit Checked(Checker& e) noexcept : choice(e) {}
    void begin_anew(ProcessBase* p) noexcept {
      base = p;
      paused = nullptr;
      yields = yielded_at = ready_since = 0;
      arrival = {};
      choice.forget();
    }
    ProcessBase* base = nullptr;
    const void* paused = nullptr;  // the operation before which it lets others go
    unsigned yields = 0;           // how often it has yielded since another process went
    unsigned yielded_at = 0;
    unsigned ready_since = 0;  // the step at which another first went before it; 0 if none has
    Arrival arrival;
    CheckedChoice choice;
  };

  int number(const ProcessBase*) const noexcept;
  int number(ProcessObject* p) const noexcept { return number(&p->base); }
  int here() const noexcept;
  int number_in(core::Waker*) const noexcept;
  Checked& of(int n) noexcept { return *processes_[static_cast<std::size_t>(n)]; }
  core::Waker* look(core::RunQueue&) noexcept;
  core::Waker* decide(core::RunQueue&, int goes_on) noexcept;
  bool another_goes(ProcessObject*, bool goes_on) noexcept;
  bool is_spinning(int n) noexcept;
  void call_marked(const ProcessBase*) noexcept;
  void wake(int n) noexcept;
  void note_who_waits(std::size_t chosen) noexcept;

  std::vector<std::unique_ptr<Checked>> processes_;  // the index is the number
  std::unordered_map<const ProcessBase*, int> numbers_;
  mutable const ProcessBase* last_ = nullptr;  // the process whose number was asked for last
  mutable int last_number_ = 0;
  // The processes that are ready, and their numbers.
  std::vector<core::Waker*> wakers_;
  std::vector<int> ready_;
  core::Waker* decided_ = nullptr;
  runtime::Run* program_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace weft::py
