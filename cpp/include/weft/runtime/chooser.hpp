// A Chooser decides what a run leaves open while the program is checked: which of the ready
// processes goes on, and whether a time comes first. Where there is no chooser it costs nothing:
// the flag that ends the loop of a scheduler also takes the scheduler to the loop that asks the
// chooser.
#pragma once
#include "../core/policy.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Scheduler;

struct Chooser {
  // Takes the one to run next out of the queue, and returns it. It is called on the scheduler's own
  // thread. Null: the queue is empty, and no time is to come either. Then the scheduler sleeps, and
  // the run concludes what follows.
  virtual core::Waker* next(Scheduler&, core::RunQueue&) noexcept = 0;

 protected:
  ~Chooser() = default;
};
// The chooser of this thread, from before its run begins until after that run has ended; null:
// none.
inline constinit thread_local Chooser* chooser = nullptr;

}  // namespace weft::inline WEFT_ABI::runtime
