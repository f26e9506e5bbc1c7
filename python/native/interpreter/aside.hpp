// Threads that run a component are *aside*: they run without the GIL, except at moments when they
// need it.
//
//   thread_body(): with the GIL ──Aside──► the component's code: aside() ──With──► with the GIL for a moment ──► aside()
//
// Such a thread uses cores and wakes other threads as a C++ thread does: cores have locks of their
// own, and they move cells (cells.hpp), which have no reference count. Code that may run on such a
// thread, and that needs the interpreter or state that the GIL protects, first makes a With. This
// applies to the conclusion of a run (report.cpp), to tasks and guests of asyncio (asyncio.cpp),
// and to the end of a sleep that was a standstill.
//
// Invariant: a thread that is aside holds no lock of the core's or the runtime's while it waits for
// the GIL: the holder of the GIL may wait for that lock.
#pragma once
#include <utility>

#include "interpreter/lock.hpp"

namespace weft::py {

// The thread state of a thread that is aside. Null if the thread has the GIL, or is not one of
// Weft's.
inline constinit thread_local PyThreadState* aside_state = nullptr;
inline bool aside() noexcept { return aside_state != nullptr; }

class Aside {  // while this object exists, the thread is aside
 public:
  Aside() noexcept { aside_state = give_up_lock(); }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() { take_lock(std::exchange(aside_state, nullptr)); }
};

// while this object exists, a thread that is aside has the GIL; no effect on other threads
class With {
 public:
  With() noexcept : state_(std::exchange(aside_state, nullptr)) {
    if (state_) take_lock(state_);
  }
  With(const With&) = delete;
  With& operator=(const With&) = delete;
  ~With() {
    if (!state_) return;
    give_up_lock();
    aside_state = state_;
  }

 private:
  PyThreadState* const state_;
};

}  // namespace weft::py
