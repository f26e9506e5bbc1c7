// The hooks by which a checked program reports to its check (weft/check.hpp). Only code that is
// compiled with WEFT_CHECKED=1 calls them: in all other code WEFT_POINT expands to nothing.
//
// A checked run is cut into steps. A step ends where another process could run first: before an
// operation begins, where a process parks, after an operation that ends at once, and before a
// process ends.
//
//   operation:  pauses() ──► begins() ──► arrives() │ selects(), selected() │ sleeps() ──► begun()
//   process:    starts() ──► … ──► ends_later() ──► ended()
//
// Invariants
//  1 `points` is null except in the run of a check. That run is on one thread, which makes all the
//    calls.
//  2 While a process is in the run queue because pauses() or begun() has put it there, it is in no
//    operation.
#pragma once
#include <atomic>

#include "../check/access.hpp"
#include "../config.hpp"
#include "../core/guard.hpp"
#include "process.hpp"

#if WEFT_CHECKED
#define WEFT_POINT(call)                                                \
  do {                                                                  \
    if (auto* const weft_points = ::weft::runtime::points) [[unlikely]] \
      weft_points->call;                                                \
  } while (false)

namespace weft::inline WEFT_ABI::runtime {

using checking::Access;
using checking::Begun;

// A select that is about to begin.
struct SelectBegins {
  core::Guard* guards;
  std::uint32_t count;
  bool any;  // whether the select is allowed to take any guard that is ready (rule 5.4)
  // Returns the index of the guard to which the select has committed, or a negative number.
  int (*committed)(const void* engine) noexcept;
  const void* engine;
};

class ThreadProcess;

class Points {
 public:
  virtual void starts(ProcessBase&) noexcept = 0;
  // Called when a process is about to release its ends. Returns true if another process runs first;
  // then this process is in the run queue, and ends when it is run again.
  virtual bool ends_later(ProcessBase&) noexcept = 0;
  virtual void ended(const Group* group, Ending how) noexcept = 0;

  // Called when an operation is about to begin. Returns true if another process runs first; the
  // operation then begins when its process is run again. `yields` says that the ready processes run
  // first (rule 7.7).
  virtual bool pauses(ProcessBase&, bool yields) noexcept = 0;
  virtual void begins(ProcessBase&) noexcept = 0;
  // Called when the operation that begins is at this place.
  virtual void arrives(ProcessBase&, const core::SyncObject&, Access) noexcept = 0;
  virtual void sleeps(ProcessBase&) noexcept = 0;
  // Returns the guard that the select is to take, or -1.
  virtual int selects(ProcessBase&, const SelectBegins&) noexcept = 0;
  virtual void selected(ProcessBase&, int guard, bool ended) noexcept = 0;
  // Called when the operation has begun. Returns true if the operation has ended and another
  // process runs first.
  virtual bool begun(ProcessBase&, Begun) noexcept = 0;

  // These functions report what else happens in a step.
  virtual void made(const core::SyncObject&, std::uint32_t capacity, bool loses) noexcept = 0;
  virtual void gone(const core::SyncObject&, std::uint64_t lost) noexcept = 0;
  virtual void touches(const core::SyncObject&, Access) noexcept = 0;
  virtual void closes(const core::SyncObject&, bool last, bool died) noexcept = 0;
  virtual void cancels() noexcept = 0;
  virtual void limits(bool open) noexcept = 0;
  virtual void reads_clock() noexcept = 0;
  // Called when the program does something that cannot be checked. Throws BadUse.
  virtual void refuses(const char* what) = 0;
  // Called when a process would wait forever for a lock, because another process holds the lock.
  virtual void stands_at_lock() noexcept = 0;

  // Starts a thread process of the check, on a stack of its own and on the thread of the check.
  // `body(of)` is what the process's own thread would run. Throws std::bad_alloc.
  virtual void starts_thread(ThreadProcess&, void (*body)(void*), void* of) = 0;
  // Called on the stack of a thread process. Returns when the process is run again.
  virtual void parks(ThreadProcess&) noexcept = 0;

 protected:
  ~Points() = default;
};
inline constinit thread_local Points* points = nullptr;
// True once a thread that does not belong to the check has used a channel or barrier that a checked
// function has made.
inline constinit std::atomic<bool> used_from_outside{false};

// The operation of a process between two operations, while it is in the run queue (invariant 2).
inline constexpr OpKind paused_op{"go on", [](ProcessBase&) noexcept { return false; }, nullptr};

}  // namespace weft::inline WEFT_ABI::runtime
#else
#define WEFT_POINT(call) static_cast<void>(0)
#endif
