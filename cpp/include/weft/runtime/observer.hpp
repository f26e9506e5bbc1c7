// The hook for tools that watch a program while it runs (observe.hpp). Without an observer the hook
// costs nothing: the flag that ends a scheduler's loop also leads to the observed loop, and other
// code checks for an observer only where a process parks or has been woken.
//
//   coroutine:  resumes() ──runs──► suspended(p), parked or giving way │ suspended(null): it has ended
//   thread:     suspended(p) ──parked──► resumes()
#pragma once
#include <atomic>

#include "process.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Run;

// These functions are called from any thread, by several threads at the same time, and with no lock
// held.
struct Observer {
  // Called when the process resumes; its op still says what the process waited for. `where` is the
  // thread's Context, used as a key; it is null for a thread process, which keeps no other process
  // waiting.
  virtual void resumes(ProcessBase&, const void* where) noexcept = 0;
  // `next` says that the thread resumes another process at once, with no time between the two.
  virtual void suspended(ProcessBase*, const void* where, bool next) noexcept = 0;
  // Called when a single-core scheduler is about to sleep, on its own thread.
  virtual void idle(Run&, Executor&) noexcept = 0;

 protected:
  ~Observer() = default;
};
// The observer, or null. An observer that is set here is never destroyed.
inline constinit std::atomic<Observer*> observer{nullptr};

inline Observer* watched() noexcept { return observer.load(std::memory_order_acquire); }

// The channel at which a process has committed that continues, and how many values have passed
// there.
struct Passed {
  const core::SyncObject* place = nullptr;
  bool writing = false;
  std::uint64_t transfers = 0;
  std::uint64_t dropped = 0;
  // Set for a look from outside (look.hpp), which takes no lock of a channel: the numbers are then
  // approximately those of this moment. Only such a look sets `waits` (whether `who` waits at the
  // channel), `depth` and `capacity`.
  bool glances = false;
  bool counts = true;  // if false, the numbers are not needed, and no lock is taken
  const core::Node* who = nullptr;
  bool waits = false;
  std::uint64_t depth = 0, capacity = 0;

  template <class Engine>
  [[gnu::noinline, gnu::cold]] void at(Engine& c, bool writes) noexcept {
    place = &c;
    writing = writes;
    if (glances) {
      transfers = c.transfers();
      dropped = c.dropped();
      depth = c.depth();
      capacity = c.capacity();
      waits = who && c.is_waiting(*who);
      return;
    }
    if (!counts) return;
    c.with_lock([&](auto&, auto&) {
      transfers = c.transfers();
      dropped = c.dropped();
    });
  }
};

// Writes the contents of the flight recorder (../flight.hpp) to the file `path`. Returns 0, or the
// system's error number. The pointer is null if there is no recorder.
inline constinit std::atomic<int (*)(const char* path) noexcept> write_flight{nullptr};

}  // namespace weft::inline WEFT_ABI::runtime
