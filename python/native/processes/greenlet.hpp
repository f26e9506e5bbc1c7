// Functions that start, park and resume greenlet processes.
#pragma once
#include "processes/process.hpp"

namespace weft::py {

// like coroutine_run(), for a greenlet
void greenlet_run(core::Waker* w);
void greenlet_start(core::Waker* w);  // performs the greenlet's first run
inline ProcessObject* greenlet_of(ProcessBase* p) noexcept {
  return p && (p->ops->run == &greenlet_run || p->ops->run == &greenlet_start)
             ? object_of(static_cast<CoroutineProcess*>(p))
             : nullptr;
}
inline ProcessObject* current_greenlet() noexcept { return greenlet_of(this_process()); }

int need_greenlets();  // returns -1, with ImportError set, if the package is missing
// Parks until the greenlet is run again. Returns false, with the exception set, if an exception was
// thrown into the greenlet.
bool greenlet_park(ProcessObject* p) noexcept;
Value& greenlet_slot(ProcessObject* p) noexcept;  // the slot of the process's operation
// Returns the frame in which the greenlet is parked, or null without an exception.
PyObject* greenlet_frame(ProcessObject* p);
void drop_greenlet_state(ProcessObject* p) noexcept;
const runtime::ProcessOps& greenlet_ops_on(runtime::Scheduler& s);

}  // namespace weft::py
