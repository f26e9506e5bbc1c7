// A Checker is what the points of a checked program call (runtime/points.hpp), and what the
// scheduler asks which process goes next (runtime/chooser.hpp). The engine of weft/check decides.
//
//   scheduler ──next()──► decide(): which process? ──Run::go()──► out of the queue, its step begins
//   operation ──pauses(), begun()──► decide() ──itself──► it goes on at once
//                                       └──another──► it is suspended; next() gives the other
//
// Invariants
//  1 A process that is in the run queue is `ready` in the record, from when it is first seen there.
//  2 `decided_` has been taken out of the queue already. The scheduler asks for it next, before
//    anything else is decided.
//  3 After the run has stopped all processes are cancelled, and go in the order of the queue.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "checked_select.hpp"
#include "runtime/chooser.hpp"
#include "runtime/points.hpp"
#include "runtime/scheduler.hpp"

#if WEFT_CHECKED
namespace weft::inline WEFT_ABI::runtime {

// A select of the program. The places of its guards distinguish it from other selects of its
// process.
class BegunSelect final : public CheckedSelect {
 public:
  explicit BegunSelect(checking::Run& run) noexcept : CheckedSelect(run) {}
  // Returns the ready guard that the select is to take, or -1.
  int begins(const SelectBegins& s) {
    select_ = s;
    std::uint64_t key = s.count;
    for (std::uint32_t i = 0; i < s.count; ++i)
      key = checking::mixed(key, reinterpret_cast<std::uintptr_t>(s.guards[i].where));
    return CheckedSelect::begins(s.guards, s.count, 0, key, s.any);
  }
  int committed() const noexcept override { return select_.committed(select_.engine); }

 private:
  SelectBegins select_{};
};

class Checker final : public Points, public Chooser {
 public:
  // An operation in the story, the list of operations that a failure shows.
  struct Told {
    int process;
    std::string what, at;
    Begun how = Begun::done;
    // the length of the story when another operation let this one go on; 0 if none did
    std::size_t until = 0;
    int guard = -1;  // the guard that a select has taken
  };

  checking::Run run;
  std::uint64_t lost = 0;  // the number of values that were lost
  std::string refused;     // what the program does that cannot be checked
  bool telling = false;    // whether the story is kept, and a deadlock reported by rule 10.2
  std::vector<Told> story;

  void begin(checking::Strategy&);
  void end();

  core::Waker* next(Scheduler&, core::RunQueue&) noexcept override;

  void starts(ProcessBase&) noexcept override;
  bool ends_later(ProcessBase&) noexcept override;
  void ended(const Group*, Ending) noexcept override;
  bool pauses(ProcessBase&, bool yields) noexcept override;
  void begins(ProcessBase&) noexcept override;
  void arrives(ProcessBase&, const core::SyncObject&, Access) noexcept override;
  void sleeps(ProcessBase&) noexcept override;
  int selects(ProcessBase&, const SelectBegins&) noexcept override;
  void selected(ProcessBase&, int guard, bool ended) noexcept override;
  bool begun(ProcessBase&, Begun) noexcept override;
  void made(const core::SyncObject&, std::uint32_t capacity, bool loses) noexcept override;
  void gone(const core::SyncObject&, std::uint64_t lost) noexcept override;
  void touches(const core::SyncObject&, Access) noexcept override;
  void closes(const core::SyncObject&, bool last, bool died) noexcept override;
  void cancels() noexcept override;
  void limits(bool open) noexcept override;
  void reads_clock() noexcept override;
  void refuses(const char* what) override;

 private:
  // A process, and what its operation reported when it began.
  struct Checked {
    explicit Checked(checking::Run& run) noexcept : select(run) {}
    ProcessBase* base = nullptr;
    const core::SyncObject* place = nullptr;
    Access how = Access::all;
    bool selects = false, ended = false;
    int taken = -1;
    unsigned yields = 0;  // how often it has yielded since another process last ran
    unsigned yielded_at = 0;
    int told = -1;  // the index in the story of its last operation
    BegunSelect select;
  };

  Checked& of(int n) noexcept { return *processes_[static_cast<std::size_t>(n)]; }
  int here() const noexcept;
  core::Waker* look(core::RunQueue&) noexcept;
  core::Waker* decide(core::RunQueue&, int goes_on) noexcept;
  bool another_goes(ProcessBase&, bool goes_on) noexcept;
  bool is_spinning(int n) noexcept;
  void tell(ProcessBase&, std::string what);
  Told* told(Checked& c) noexcept {
    return c.told < 0 ? nullptr : &story[static_cast<std::size_t>(c.told)];
  }

  std::vector<std::unique_ptr<Checked>> processes_;  // by the process's number
  // The processes that are ready, and their numbers.
  std::vector<core::Waker*> wakers_;
  std::vector<int> ready_;
  core::Waker* decided_ = nullptr;
  Run* program_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace weft::inline WEFT_ABI::runtime
#endif
