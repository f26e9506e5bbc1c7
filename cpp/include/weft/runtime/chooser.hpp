// Who decides what a run leaves open, while a program is checked: which of the processes that are
// ready goes on, and whether a time comes first. Off, it costs nothing: a scheduler leaves its loop
// for the checked one by the flag that ends it.
#pragma once
#include "../core/policy.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Scheduler;

struct Chooser {
  // The one to run next, taken out of the queue; on the scheduler's own thread. Null: the queue is
  // empty, and no time is to come either: the scheduler sleeps, and the run concludes what follows.
  virtual core::Waker* next(Scheduler&, core::RunQueue&) noexcept = 0;

 protected:
  ~Chooser() = default;
};
// Of this thread, from before its run begins until after that has ended; null: nobody.
inline constinit thread_local Chooser* chooser = nullptr;

}  // namespace weft::inline WEFT_ABI::runtime
