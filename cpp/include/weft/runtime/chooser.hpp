// A Chooser makes the decisions that a run leaves open while the program is checked: which of the
// ready processes continues, and whether a timer fires first. Without a chooser a run pays nothing:
// the flag that ends the loop of a scheduler also leads to the loop that calls the chooser.
#pragma once
#include "../core/policy.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Scheduler;

struct Chooser {
  // Removes the process that is to run next from the queue, and returns it. Called on the
  // scheduler's own thread. Null means that the queue is empty and no timer is pending. Then the
  // scheduler sleeps, and the run decides whether there is a deadlock.
  virtual core::Waker* next(Scheduler&, core::RunQueue&) noexcept = 0;

 protected:
  ~Chooser() = default;
};
// The chooser of this thread. It is set from before the thread's run begins until after that run
// has ended; it is null if there is none.
inline constinit thread_local Chooser* chooser = nullptr;

}  // namespace weft::inline WEFT_ABI::runtime
