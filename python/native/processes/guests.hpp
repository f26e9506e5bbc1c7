// Networks that are guests of an event loop, and their processes, for the files that start and end
// them (guest.cpp, guest_process.cpp).
#pragma once
#include <vector>

#include "value.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

struct GuestObject;
struct LinkObject;
struct ProcessObject;

// is the current exception asyncio's cancellation of it?
bool ended_by_asyncio(ProcessObject* p) noexcept;
// a process starts on a guest's scheduler
void join_guest(runtime::Scheduler& s, ProcessObject* p) noexcept;
// Before a step; an exception to be thrown into it, or null. `woken_in`: what it waited in.
PyObject* guest_begin(ProcessObject* p, const runtime::OpKind* woken_in, bool yielded) noexcept;
// 1: parked on a future; 0: it is none; -1: an exception is set
int guest_await(ProcessObject* p, PyObject* yielded) noexcept;
void leave_guest(ProcessObject* p) noexcept;  // it has ended
// the CancelledError due now, new reference, or null
PyObject* guest_cancellation(ProcessBase& p) noexcept;

// --- Group in a task -----------------------------------------------------------------------------

GuestObject* guest_open() noexcept;  // null: an exception is set
runtime::Group* group_of(GuestObject* g) noexcept;
LinkObject* link_of(GuestObject* g) noexcept;
// guests that nobody waits for: what should have waited never came to it
void abandon_orphans(LinkObject* l) noexcept;
void let_go_of_tasks(LinkObject* l, std::vector<PyObject*>& kept);
// an awaitable; `block`: the exception that left the block, or null
PyObject* guest_leave(GuestObject* g, PyObject* block);

}  // namespace weft::py
