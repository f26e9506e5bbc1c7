// How greenlet processes start, park and go on.
#pragma once
#include "processes/process.hpp"

namespace weft::py {

void greenlet_run(core::Waker* w);    // as coroutine_run() for a coroutine
void greenlet_start(core::Waker* w);  // for the first run
inline ProcessObject* greenlet_of(ProcessBase* p) noexcept {
  return p && (p->ops->run == &greenlet_run || p->ops->run == &greenlet_start)
             ? object_of(static_cast<CoroutineProcess*>(p))
             : nullptr;
}
inline ProcessObject* current_greenlet() noexcept { return greenlet_of(this_process()); }

int need_greenlets();  // -1: the package is missing, and ImportError is set
// Parks until the greenlet is run again. Returns false, with the exception set, if something was
// thrown into it.
bool greenlet_park(ProcessObject* p) noexcept;
Value& greenlet_slot(ProcessObject* p) noexcept;  // the slot of its operation
// Returns the frame in which it is parked, or null without an exception.
PyObject* greenlet_frame(ProcessObject* p);
void drop_greenlet_state(ProcessObject* p) noexcept;
const runtime::ProcessOps& greenlet_ops_on(runtime::Scheduler& s);

}  // namespace weft::py
