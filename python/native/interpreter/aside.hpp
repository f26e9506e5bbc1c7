// Threads that run a component: without the GIL, but for the moments in which they need it.
//
//   thread_body(): with the GIL ──Aside──► the component's code: aside() ──With──► with the GIL for a moment ──► aside()
//
// Such a thread touches cores and wakes others as a C++ thread does: cores have locks of their own,
// and they move cells (cells.hpp), which have no reference count. What needs the interpreter, or
// what the GIL protects, and may run on such a thread, makes a With first: the conclusion of a run
// (report.cpp), tasks and guests of asyncio (asyncio.cpp), the end of a sleep that was a
// standstill.
//
// Invariant: a thread that is aside holds no lock of the core's or the runtime's while it waits for
// the GIL: its holder may wait for that.
#pragma once
#include <utility>

#include "interpreter/lock.hpp"

namespace weft::py {

// Of a thread that is aside: its thread state. Null: it has the GIL, or is none of ours.
inline constinit thread_local PyThreadState* aside_state = nullptr;
inline bool aside() noexcept { return aside_state != nullptr; }

class Aside {  // while it lives
 public:
  Aside() noexcept { aside_state = give_up_lock(); }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() { take_lock(std::exchange(aside_state, nullptr)); }
};

class With {  // of a thread that is aside: the GIL, while it lives. Of others nothing
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
