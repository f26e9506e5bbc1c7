// Only the process in whose coroutine an awaited operation began may step that operation (rule
// 11.1).
//
//   begun ──await_in()──► awaited ──woken: coroutine_run()──► resumed() ──► done
//                            └──thrown into, closed, dropped: leave()──► withdrawn
//                                                                  └──► decided already: the process is `owed` that wake-up
//
// Invariants
//  1 `waits` of a process is null, or the operation that the process awaits, which refers back to
//    the process. Whichever of the two is destroyed first clears both references.
//  2 `base.op` is null from the moment at which the process is resumed until it begins to wait
//    again.
//  3 While a process is `owed` a wake-up, no operation begins at its node, and the process does not
//    end: it first runs because of that wake-up.
#pragma once
#include "processes/process.hpp"

namespace weft::py {

inline void await_in(ProcessObject* p, PyObject* operation, const runtime::OpKind* kind) noexcept {
  p->base.op = kind;
  p->waits = operation;
}
// Returns whether the operation's process was woken and is stepping the operation.
inline bool resumed(ProcessObject* p, PyObject* operation) noexcept {
  return this_process() == &p->base && !p->base.op && p->waits == operation;
}
// Returns whether the operation's process runs here, and drives the coroutine that awaits the
// operation. Only then is it allowed to throw into the operation, or to close it.
inline bool driven_by(ProcessObject* p) noexcept { return this_process() == &p->base; }

// Called when the operation's process ends, or begins another operation.
void drop_awaited(PyObject* operation) noexcept;

// Called before an operation begins. Returns whether a wake-up that belongs to an earlier operation
// is under way. If so, the process waits for that wake-up, and the operation begins afterwards. An
// earlier operation that was woken but never stepped again is dropped.
inline bool woken_first(ProcessObject* p) noexcept {
  if (p->waits && !p->base.op) [[unlikely]]
    drop_awaited(p->waits);
  if (!(p->owed | p->yielded)) [[likely]]
    return false;
  p->owed = 1;  // a process that leaves a yield is owed a wake-up too, since it is in the run queue
  p->yielded = 0;
  return true;
}

// Like woken_first(), for an operation that is begun by the code that drives it. Returns whether
// the process must first let other processes run (rule 7.7).
inline bool gives_way_first(ProcessObject* p) noexcept {
  if (!p->base.line.at_once()) [[likely]]
    return false;
  p->base.line.begin_anew();
  p->owed = 1;
  runtime::Scheduler::current()->give_way(&p->base);
  return true;
}

// Sets BadUse, and returns null. If `by` is null, it is not known which process awaits the
// operation.
PyObject* being_awaited(const char* verb, ProcessObject* by);

enum class Left : std::uint8_t { withdrawn, resumed, decided };
// Called when the operation is no longer awaited. `withdraw` returns whether the operation was left
// before the commit. A process that is parked in the operation is woken, and then finds that the
// operation has ended.
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

// Concludes, at the wake-up, an operation that is no longer awaited (awaited.hpp).
using Late = void (*)(PyObject*, ProcessBase&) noexcept;
// Called if a partner still holds the operation. Keeps the operation until the wake-up, and then
// calls `late`.
void keep_until_woken(ProcessObject* p, PyObject* owned, Late late);
void wake_up_came(ProcessObject* p) noexcept;
// The drop_awaited functions are called when the process has ended, and has left an operation to
// which another object refers.
extern PyTypeObject OpType, SelectOpType, GroupOpType, SocketOpType;
void drop_awaited_operation(PyObject*) noexcept;   // operation.cpp
void drop_awaited_select(PyObject*) noexcept;      // select.cpp
void drop_awaited_group_wait(PyObject*) noexcept;  // group.cpp
void drop_awaited_call(PyObject*) noexcept;        // io.cpp
void drop_awaited_socket(PyObject*) noexcept;      // socket_operation.cpp

}  // namespace weft::py
