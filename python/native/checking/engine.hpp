// The points of Python's processes (points.hpp), over the engine of weft/check.
//
//   scheduler ──next()──► decide(): who is ready? ──Run::go()──► taken out of the queue, its step
//                                    begins
//   operation ──pauses(), begun()──► decide(): itself? it goes on at once; else it is suspended, and
//                                    the scheduler is given who was decided
//
// Invariants
//  1 A process that is in the run queue is `ready` in the record, from when it is first seen there.
//  2 `decided_` is taken out of the queue already; the scheduler asks for it next, before anything
//    else is decided.
//  3 After the run has stopped everybody is cancelled, and goes in the order of the queue.
#pragma once
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "checking/points.hpp"
#include "owned.hpp"
#include "weft/check/reduced.hpp"
#include "weft/check/strategies.hpp"

namespace weft::py {

class Checker;

// A select as the engine sees it (choices.cpp).
class CheckedChoice final : public weft::checking::Waiting {
 public:
  explicit CheckedChoice(Checker& engine) noexcept : engine_(engine) {}
  // It begins: which ready guard it is to take, or -1.
  int begins(ProcessObject*, Choice&, std::uint32_t from, std::uint64_t key);
  // It has begun. Where it was decided, and how; null: nowhere.
  const void* begun(Begun, Access& how);
  void decided() override;
  void forget() noexcept { passed_over_.clear(); }

 private:
  bool commutes() const noexcept;
  int taken_of(std::uint64_t key, std::uint32_t from);

  Checker& engine_;
  Choice* choice_ = nullptr;
  std::size_t ready_ = 0;  // guards that were when it began
  std::unordered_map<std::uint64_t, std::vector<unsigned>> passed_over_;
};

class Checker final : public Points, public runtime::Chooser {
 public:
  weft::checking::Run run;
  const Services* services = nullptr;
  bool on = false;
  std::uint64_t lost = 0;
  // By process with a stack of its own: what is called in it before each of its operations
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

 private:
  // What an operation that begins has told.
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
      yields = yielded_at = 0;
      arrival = {};
      choice.forget();
    }
    ProcessBase* base = nullptr;
    const void* paused = nullptr;  // the operation before which it is
    unsigned yields = 0;           // since another process went
    unsigned yielded_at = 0;
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

  std::vector<std::unique_ptr<Checked>> processes_;  // by number
  std::unordered_map<const ProcessBase*, int> numbers_;
  mutable const ProcessBase* last_ = nullptr;  // asked for
  mutable int last_number_ = 0;
  std::vector<core::Waker*> wakers_;  // of the processes that are ready, and their numbers
  std::vector<int> ready_;
  core::Waker* decided_ = nullptr;
  runtime::Run* program_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace weft::py
