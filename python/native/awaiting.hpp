// Whose an operation is that is awaited: the process in whose coroutine it began steps it, and nobody else (rule 11.1).
//
//   begun ──await_in()──► awaited ──woken: coroutine_run()──► resumed() ──► done
//                            └──thrown into, closed, dropped: leave()──► withdrawn
//                                                                  └──► decided already: the process is `owed` that wake-up
//
// Invariants
//  1 `waits` of a process is null, or the operation that it awaits, which refers back to it: whichever of them goes first clears both.
//  2 `base.op` is null from when the process is resumed until it begins to wait again.
//  3 While a process is `owed` a wake-up nothing begins at its node, and it does not end: it is run by that wake-up first.
#pragma once
#include "native.hpp"

namespace weft::py {

inline void await_in(ProcessObject* p, PyObject* operation, const runtime::OpKind* kind) noexcept {
  p->base.op = kind;
  p->waits = operation;
}
// Its process steps it, having been woken?
inline bool resumed(ProcessObject* p, PyObject* operation) noexcept {
  return this_process() == &p->base && !p->base.op && p->waits == operation;
}
// May it be thrown into and closed here: does its process run, and drive the coroutine that awaits it?
inline bool driven_by(ProcessObject* p) noexcept { return this_process() == &p->base; }

void forsake(PyObject* operation) noexcept;  // its process ends, or goes on to another

// Before an operation begins: is a wake-up on its way that is not its own? Then it waits for that, and begins after it. One that was
// awaited before, was woken and never heard of it, has had its turn.
inline bool woken_first(ProcessObject* p) noexcept {
  if (p->waits && !p->base.op) [[unlikely]]
    forsake(p->waits);
  if (!(p->owed | p->yielded)) [[likely]]
    return false;
  p->owed = 1;  // by a yield that is left, too: it is in the run queue
  p->yielded = 0;
  return true;
}

PyObject* being_awaited(const char* verb, ProcessObject* by);  // by: null: somebody. BadUse; null

enum class Left : std::uint8_t { withdrawn, resumed, decided };
// Nobody awaits the operation any longer. `withdraw`: before the commit? A process that is parked in it goes on: whoever awaited it there
// finds it over.
template <class Withdraw>
Left leave(ProcessObject* p, PyObject* operation, Withdraw&& withdraw) noexcept {
  if (p->waits != operation) return Left::resumed;
  p->waits = nullptr;
  if (!p->base.op) return Left::resumed;
  const bool withdrawn = withdraw(p->base);
  p->base.op = nullptr;
  if (withdrawn && driven_by(p)) return Left::withdrawn;
  p->owed = 1;
  if (withdrawn) p->base.ops->wake(&p->base);
  return withdrawn ? Left::withdrawn : Left::decided;
}

// A partner holds what the operation has: it is kept until the wake-up, and then told by `late`.
void keep_until_woken(ProcessObject* p, PyObject* operation, void (*late)(PyObject*, ProcessBase&) noexcept);
void wake_up_came(ProcessObject* p) noexcept;
// The process has ended, and left an operation that somebody else refers to.
void forsake_operation(PyObject*) noexcept;   // operation.cpp
void forsake_select(PyObject*) noexcept;      // select.cpp
void forsake_group_wait(PyObject*) noexcept;  // group.cpp
void forsake_call(PyObject*) noexcept;        // io.cpp

}  // namespace weft::py
