// What a checked program tells its check (weft/check.hpp). Only code that is compiled with
// WEFT_CHECKED=1 has these calls: in all other code WEFT_POINT is nothing.
//
// A checked run is cut into steps. A step ends where another process could go first: before an
// operation begins, where a process parks, after an operation that is over at once, and before a
// process ends.
//
//   operation:  pauses() ──► begins() ──► arrives() │ selects(), selected() │ sleeps() ──► begun()
//   process:    starts() ──► … ──► ends_later() ──► ended()
//
// Invariants
//  1 `points` is null but in a run of a check, which is on one thread: all calls come from there.
//  2 A process that pauses() or begun() has put into the run queue is in no operation there.
#pragma once
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

// A select that begins.
struct SelectBegins {
  core::Guard* guards;
  std::uint32_t count;
  bool any;  // may it take any guard that is ready (rule 5.4)?
  // The guard to which it has committed, or a negative number.
  int (*committed)(const void* engine) noexcept;
  const void* engine;
};

class Points {
 public:
  virtual void starts(ProcessBase&) noexcept = 0;
  // A process is about to let go of its ends. True: another goes first; the process is in the run
  // queue, and ends when it is run again.
  virtual bool ends_later(ProcessBase&) noexcept = 0;
  virtual void ended(const Group* group, Ending how) noexcept = 0;

  // An operation is about to begin. True: another goes first; the operation begins when the process
  // is run again. `yields`: the ready processes go first (rule 7.7).
  virtual bool pauses(ProcessBase&, bool yields) noexcept = 0;
  virtual void begins(ProcessBase&) noexcept = 0;
  // The operation that begins is at this place.
  virtual void arrives(ProcessBase&, const core::SyncObject&, Access) noexcept = 0;
  virtual void sleeps(ProcessBase&) noexcept = 0;
  // Returns the guard that the select is to take, or -1.
  virtual int selects(ProcessBase&, const SelectBegins&) noexcept = 0;
  virtual void selected(ProcessBase&, int guard, bool ended) noexcept = 0;
  // The operation has begun. True: it is over, and another goes first.
  virtual bool begun(ProcessBase&, Begun) noexcept = 0;

  // What else a step does.
  virtual void made(const core::SyncObject&, std::uint32_t capacity, bool loses) noexcept = 0;
  virtual void gone(const core::SyncObject&, std::uint64_t lost) noexcept = 0;
  virtual void touches(const core::SyncObject&, Access) noexcept = 0;
  virtual void closes(const core::SyncObject&, bool last, bool died) noexcept = 0;
  virtual void cancels() noexcept = 0;
  virtual void limits(bool open) noexcept = 0;
  virtual void reads_clock() noexcept = 0;
  // The program does what cannot be checked: throws BadUse.
  virtual void refuses(const char* what) = 0;

 protected:
  ~Points() = default;
};
inline constinit thread_local Points* points = nullptr;

}  // namespace weft::inline WEFT_ABI::runtime
#else
#define WEFT_POINT(call) static_cast<void>(0)
#endif
