// Where tools that look at a program at work are told what happens (observe.hpp). Off, it costs
// nothing: a scheduler leaves its loop for the observed one by the flag that ends it, and nobody
// else asks but where a process parks or has been woken.
//
//   coroutine:  resumes() ──runs──► suspended(p), parked or giving way │ suspended(null): it has ended
//   thread:     suspended(p) ──parked──► resumes()
#pragma once
#include <atomic>

#include "process.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Run;

// Called from any thread, by several at once; under no lock.
struct Observer {
  // `where`: the thread's Context, a key; null: a thread process, which keeps nobody waiting.
  // what it waited for is still its op
  virtual void resumes(ProcessBase&, const void* where) noexcept = 0;
  virtual void suspended(ProcessBase*, const void* where) noexcept = 0;
  // a single-core scheduler is about to sleep, on its own thread
  virtual void idle(Run&, Executor&) noexcept = 0;

 protected:
  ~Observer() = default;
};
// Whoever is set here is never destroyed.
inline constinit std::atomic<Observer*> observer{nullptr};

inline Observer* watched() noexcept { return observer.load(std::memory_order_acquire); }

// The channel at which a process that goes on was committed, and what has passed there.
struct Passed {
  const core::SyncObject* place = nullptr;
  bool writing = false;
  std::uint64_t transfers = 0;
  std::uint64_t dropped = 0;

  template <class Engine>
  [[gnu::noinline, gnu::cold]] void at(Engine& c, bool writes) noexcept {
    place = &c;
    writing = writes;
    c.with_lock([&](auto&, auto&) {
      transfers = c.transfers();
      dropped = c.dropped();
    });
  }
};

}  // namespace weft::inline WEFT_ABI::runtime
