// Readers that stopped early (rule 3.6): the Retired of a write has ended a process, because all
// readers of the channel had returned after one read each. Weft logs this event. The usual cause is
// a `read()` in place of a loop, and without the log the values that were not read would be lost
// silently.
//
//   a process returns: let_go() ──its readers──► ++readers_returned
//   a reader is closed in another way: close_end() ──► readers_returned is kOtherwise
//   a Retired ends a process: end_process() ──as many values passed as readers have returned──►
//                                                         weft._watching.stopped_early.tell()
//
// Nothing is counted while processes communicate.
#include "watching/stopped_early.hpp"

#include "channels/marks.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "processes/run.hpp"
#include "rounds/runs.hpp"

namespace weft::py {

namespace {

struct {
  PyObject *channel, *guard, *told;
} names;

// Returns the channel at which a plain operation, not a select, raised this Retired. The reference
// is new; null if there is no such channel in this OS process.
PyObject* channel_of(PyObject* retired) noexcept {
  const Owned guard(PyObject_GetAttr(retired, names.guard));
  Owned channel(guard == Py_None ? PyObject_GetAttr(retired, names.channel) : nullptr);
  PyErr_Clear();
  if (channel && !Py_IS_TYPE(channel.get(), &ChannelType)) channel.reset();
  return channel.release();
}

bool stopped_early(ChannelObject* c) noexcept {
  if (c->readers_returned == 0 || c->readers_returned == kOtherwise) return false;
  // If reader ends are still open, a read raised the Retired.
  if (!of_this_fork(c) || c->core.reader_ends() > 0) return false;
  bool once_each = false;
  c->core.with_lock(
      [&](core::Queue&, core::Queue&) { once_each = c->core.transfers() == c->readers_returned; });
  return once_each;
}

}  // namespace

void look_for_early_stop(PyObject* left, PyObject* why) noexcept {
  const Owned c(channel_of(left));
  if (!c) return;
  if (stopped_early(reinterpret_cast<ChannelObject*>(c.get()))) {
    Owned<> r;
    {
      const OutsideGate beyond;
      // The module imports logging, so it is imported only here.
      const Owned m(PyImport_ImportModule("weft._watching.stopped_early"));
      if (m) r.reset(PyObject_CallMethod(m.get(), "tell", "O", why));
    }
    if (!r) {  // a logging handler of the program has raised
      runtime::Run* const run = current_run();
      if (PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_WriteUnraisable(names.told);
      else
        keep_interrupt_for(run ? &run_of(*run) : nullptr, take_exception());
    }
  }
}

int init_stopped_early(PyObject*) {
  names.channel = PyUnicode_InternFromString("channel");
  names.guard = PyUnicode_InternFromString("guard");
  names.told = PyUnicode_InternFromString("the warning of readers that stopped early (rule 3.6)");
  return names.channel && names.guard && names.told ? 0 : -1;
}

}  // namespace weft::py
