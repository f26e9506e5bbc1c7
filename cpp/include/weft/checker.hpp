// The points of a checked program (runtime/points.hpp) call a Checker, which decides which process
// runs next (deciding.hpp).
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "check/fibre.hpp"
#include "checked_select.hpp"
#include "deciding.hpp"
#include "runtime/points.hpp"
#include "runtime/thread.hpp"

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

class Checker final : public Points, public Deciding<Checker> {
 public:
  // An operation in the story, the list of operations that a failure shows.
  struct StoryEntry {
    int process;
    std::string what, at;
    Begun how = Begun::done;
    // the length of the story when another operation has let this one continue; 0 if none did
    std::size_t until = 0;
    int guard = -1;  // the guard that a select has taken
  };

  std::uint64_t lost = 0;  // the number of lost values
  std::string refused;     // what the program uses that cannot be checked
  bool telling = false;    // whether the story is kept, and a deadlock is reported as in rule 10.2
  std::vector<StoryEntry> story;

  void begin(checking::Strategy&);
  void end();

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
  void stands_at_lock() noexcept override;
  void starts_thread(ThreadProcess&, void (*body)(void*), void* of) override;
  void parks(ThreadProcess&) noexcept override;

 private:
  // --- for Deciding ---
  friend Deciding<Checker>;
  int number_in(core::Waker* w) const noexcept { return w->checked; }
  void wakes(int n) noexcept;
  void passes_over(std::span<const int>, std::size_t) noexcept {}
  // If the story is recorded, the run itself finds that it is deadlocked, and reports the deadlock.
  bool concludes() const noexcept { return telling; }
  static void cancel(Run& r) noexcept { r.cancel_everybody(); }
  static bool any_timer(Run& r) noexcept { return r.any_timer(); }
  static void fire_one(Run& r) noexcept { r.fire_one(); }

  // A process, and what its operation has reported when the operation began.
  struct Checked {
    explicit Checked(checking::Run& run) noexcept : select(run) {}
    ProcessBase* base = nullptr;
    const core::SyncObject* place = nullptr;
    Access how = Access::all;
    bool selects = false, ended = false;
    bool polls = false;  // the operation is a yield, or a select that has taken its skip
    int taken = -1;
    int told = -1;  // the process's last operation in the story
    BegunSelect select;
    std::unique_ptr<checking::Fibre> fibre;  // of a thread process that has not ended
    Context* context = nullptr;              // `this_context` in the fibre; null until it has begun
  };

  Checked& of(int n) noexcept { return *processes_[static_cast<std::size_t>(n)]; }
  int here() const noexcept;
  // Whether the record or the story will need to know what an operation was.
  bool notes() const noexcept { return run.record.kept || telling; }
  void enters(ThreadProcess&) noexcept;
  static const ProcessOps thread_ops;
  bool another_goes(ProcessBase& p) noexcept;
  [[gnu::noinline]] void notes_arrival(ProcessBase&, const core::SyncObject&, Access) noexcept;
  [[gnu::noinline]] void notes_begun(ProcessBase&, Begun) noexcept;
  void tell(ProcessBase&, std::string what);
  StoryEntry* told(Checked& c) noexcept {
    return c.told < 0 ? nullptr : &story[static_cast<std::size_t>(c.told)];
  }

  std::vector<std::unique_ptr<Checked>> processes_;     // indexed by the number of the process
  std::vector<std::unique_ptr<checking::Fibre>> idle_;  // the fibres of threads that have ended
};

}  // namespace weft::inline WEFT_ABI::runtime
#endif
