// Greenlet processes. Each has its own stack, and shares the run queue of its scheduler with the
// coroutines there.
//
//   greenlet_start(): made and entered ──► runs ──greenlet_park()──► parked ──greenlet_run() or another that parks──► runs
//                                            └──returns: body() ends the process──► back in the hub
//
// Invariants
//  1 The hub is the greenlet in which the scheduler's loop runs: the greenlet that called run, or
//    the greenlet that waits in a block of ordinary code, which may be a different one each time.
//    Greenlets are started from the hub only. Greenlets started from within each other would lie
//    deeper and deeper on the stack.
//  2 A greenlet that parks switches to the next greenlet if that greenlet has started
//    (Scheduler::take), otherwise to the hub.
//  3 The stack of a greenlet is in place only while the greenlet runs. Memory that other code may
//    write while the greenlet is parked is in its GreenletState. The same holds for a hub that
//    waits deeper on the stack than a greenlet was started (a block of ordinary code): memory that
//    other code may use is on the heap.
//  4 For each greenlet the package greenlet keeps the exception state, the context variables, the
//    frames and the depth of recursion. The package does not keep the critical sections of a
//    free-threaded build: NoCriticalSections suspends them and takes them again.
#include "processes/greenlet.hpp"

#include <greenlet/greenlet.h>

#include "checking/points.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "processes/life.hpp"
#include "processes/outcome.hpp"
#include "watching/steps.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

struct GreenletState {
  Owned<PyGreenlet> greenlet;
  // The hub from which the greenlet was started; when the greenlet ends, the hub at that moment.
  // `greenlet` keeps `parent` alive.
  PyGreenlet* parent;
  // The greenlet that a switch enters: `greenlet`, or one that the process's code made.
  Owned<PyGreenlet> at;
  Value slot;  // the slot of the process's operation
};

namespace {

thread_local PyGreenlet* hub = nullptr;  // not null while a greenlet runs
// The process that has ended and is returning to the hub, which drops it.
thread_local ProcessObject* ended = nullptr;

const runtime::ProcessOps fresh_ops{{&post_to_group, &greenlet_start, nullptr, 0},
                                    &executor_of_group};
const runtime::ProcessOps running_ops{{&post_to_group, &greenlet_run, nullptr, 0},
                                      &executor_of_group};

PyObject* body(PyObject* self, PyObject*) {
  auto* p = reinterpret_cast<ProcessObject*>(self);
  PyThreadState* state = PyThreadState_Get();
  Py_XSETREF(state->context, std::exchange(p->context, nullptr));
  ++state->context_ver;
  Owned result(call_body(p));
  if (checking) [[unlikely]] {
    Outcome kept;
    kept.keep(result.release());
    if (checking->ends_later(p)) checking->stops(&p->base);
    result.reset(kept.take());
  }
  end_process(p, p->base, result.release());
  ended = p;
  if (GreenletState* s = p->greenlet_state; s && s->parent != hub) [[unlikely]] {
    // A greenlet that ends returns to its parent.
    s->parent = hub;
    if (PyGreenlet_SetParent(s->greenlet.get(), hub) < 0) PyErr_WriteUnraisable(nullptr);
  }
  Py_RETURN_NONE;
}
PyMethodDef body_def{"process", gated<body>, METH_NOARGS, nullptr};

PyObject* switch_to(PyGreenlet* g) {
  const NoCriticalSections sections;
  return PyGreenlet_Switch(g, nullptr, nullptr);
}

// Enters the greenlet from the hub. Returns when a greenlet parks and no started greenlet is next,
// or when a greenlet ends.
void enter(ProcessObject* p) {
  if (stepping()) [[unlikely]]
    step_begins(p);
  Owned here(PyGreenlet_GetCurrent());
  // There is an outer hub if the loop of this scheduler runs in a greenlet of another scheduler.
  PyGreenlet* const outer = std::exchange(hub, here.get());
  Owned r(switch_to(p->greenlet_state->at.get()));
  hub = outer;
  here.reset();
  if (stepping()) [[unlikely]]
    step_ends();
  runtime::this_context->running = nullptr;
  if (!r && !p->done && !PyGreenlet_ACTIVE(p->greenlet_state->greenlet.get())) {
    // The greenlet could not be started.
    end_process(p, p->base, nullptr);
    ended = p;
  } else if (!r) {
    PyErr_WriteUnraisable(nullptr);
  }
  r.reset();
  if (Owned e(std::exchange(ended, nullptr)); e) drop_greenlet_state(e.get());
  run_deferred();
}

}  // namespace

void drop_greenlet_state(ProcessObject* p) noexcept {
  delete std::exchange(p->greenlet_state, nullptr);
}

const runtime::ProcessOps& greenlet_ops_on(runtime::Scheduler& s) { return s.ops_here(fresh_ops); }

void greenlet_start(core::Waker* w) {
  ProcessObject* p = object_of(coroutine_of(w));
  Owned parent(PyGreenlet_GetCurrent());
  Owned run(PyCFunction_New(&body_def, reinterpret_cast<PyObject*>(p)));
  Owned g(run && parent ? PyGreenlet_New(run.get(), parent.get()) : nullptr);
  if (!g) {
    const Owned held(p);
    end_process(p, p->base, nullptr);
    return;
  }
  PyGreenlet* const at = g.get();
  p->greenlet_state = new GreenletState{std::move(g), parent.get(), new_ref(at), {}};
  run.reset();  // both references are dropped before the process runs here
  parent.reset();
  std::atomic_ref(p->base.ops)
      .store(&runtime::Scheduler::current()->ops_here(running_ops), std::memory_order_relaxed);
  runtime::this_context->running = &p->base;
  enter(p);
}

void greenlet_run(core::Waker* w) {
  ProcessObject* p = object_of(coroutine_of(w));
  runtime::this_context->running = &p->base;
  enter(p);
}

bool greenlet_park(ProcessObject* p) noexcept {
  core::Waker* w = runtime::Scheduler::current()->take(&greenlet_run);
  if (stepping() && w) [[unlikely]]
    step_begins(object_of(coroutine_of(w)));
  if (w == &p->base) return true;
  GreenletState& s = *p->greenlet_state;
  s.at.reset(PyGreenlet_GetCurrent());
  PyGreenlet* to = hub;
  if (w) {
    runtime::this_context->running = coroutine_of(w);
    to = object_of(coroutine_of(w))->greenlet_state->at.get();
  }
  const Owned r(switch_to(to));
  runtime::this_context->running = &p->base;
  return r != nullptr;
}

Value& greenlet_slot(ProcessObject* p) noexcept { return p->greenlet_state->slot; }

PyObject* greenlet_frame(ProcessObject* p) {
  if (!p->greenlet_state) return nullptr;
  auto* const at = reinterpret_cast<PyObject*>(p->greenlet_state->at.get());
  Owned f(PyObject_GetAttrString(at, "gr_frame"));
  if (f && f != Py_None) return f.release();
  PyErr_Clear();
  return nullptr;
}

// The package greenlet is not imported together with weft, because a program without greenlet
// processes does not need it.
int need_greenlets() {
  if (!_PyGreenlet_API) PyGreenlet_Import();
  if (_PyGreenlet_API) return 0;
  const Owned why(take_exception());
  PyErr_Format(PyExc_ImportError,
               "greenlet processes need the package greenlet (%S); install it: pip install "
               "'weft-csp[greenlets]'",
               why.get());
  return -1;
}

namespace {

PyObject* f_need_greenlets(PyObject*, PyObject*) {
  if (need_greenlets() < 0) return nullptr;
  Py_RETURN_NONE;
}
PyMethodDef greenlet_functions[] = {
    {"need_greenlets", gated<f_need_greenlets>, METH_NOARGS, nullptr}, {}};

}  // namespace

int init_greenlet(PyObject* m) { return PyModule_AddFunctions(m, greenlet_functions); }

}  // namespace weft::py
