// The functions for networks that are guests of an event loop, and for their processes, used by the
// files that start and end them (guest.cpp, guest_process.cpp).
#pragma once
#include <vector>

#include "value.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

struct GuestObject;
struct LinkObject;
struct ProcessObject;

// Returns whether the current exception is asyncio's cancellation of the process.
bool ended_by_asyncio(ProcessObject* p) noexcept;
// Called when a process starts on a guest's scheduler.
void join_guest(runtime::Scheduler& s, ProcessObject* p) noexcept;
// Called before a step. Returns an exception to be thrown into the process; null if there is none.
// `woken_in` is the operation in which the process waited.
PyObject* guest_begin(ProcessObject* p, const runtime::OpKind* woken_in, bool yielded) noexcept;
// Returns 1 if the process is parked on a future, 0 if `yielded` is not a future, -1 if an
// exception is set.
int guest_await(ProcessObject* p, PyObject* yielded) noexcept;
void leave_guest(ProcessObject* p) noexcept;  // called when the process has ended
// Returns the CancelledError that is due now (a new reference); null if none is due.
PyObject* guest_cancellation(ProcessBase& p) noexcept;

// --- Group in a task -----------------------------------------------------------------------------

GuestObject* guest_open() noexcept;  // null with an exception set
runtime::Group* group_of(GuestObject* g) noexcept;
LinkObject* link_of(GuestObject* g) noexcept;
// Abandons guests that no code waits for, because the code that should have waited was never
// reached.
void abandon_orphans(LinkObject* l) noexcept;
void let_go_of_tasks(LinkObject* l, std::vector<PyObject*>& kept);
// Returns an awaitable. `block` is the exception that left the block, or null.
PyObject* guest_leave(GuestObject* g, PyObject* block);

}  // namespace weft::py
