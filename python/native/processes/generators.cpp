// Closes async generators that a coroutine of a run has begun but not iterated to the end. The run
// closes such generators in processes that it starts (rule 7.15).
//
//   begun: first_call() ──► open, in the run's set ──exhausted, closed by the program──► nothing to do
//                             ├──collected: hooks_call()────────────────────────────────► a process closes it
//                             └──all processes of the run have ended: close_generators()► the same
//
// The interpreter reports generators through two hooks of each thread (sys.set_asyncgen_hooks).
// While a thread runs a run's scheduler, it has the run's hooks; afterwards its own hooks are
// restored. The thread of a guest keeps the hooks of its loop, which closes generators in its own
// way.
//
// Invariant: a generator that has begun keeps the run's hook alive, perhaps longer than the run
// exists. After the end of the run, `run` is null.
#include "processes/generators.hpp"

#include "channels/fork.hpp"
#include "gate.hpp"
#include "interpreter/door.hpp"
#include "processes/life.hpp"
#include "processes/process_type.hpp"
#include "processes/run.hpp"
#include "sequences.hpp"

namespace weft::py {

namespace {

struct HooksObject {
  PyObject_HEAD PyRun* run;
  PyObject* open;  // a WeakSet; null if no generator has begun yet
  std::uint32_t generation;
};
HooksObject* hooks(PyObject* o) noexcept { return reinterpret_cast<HooksObject*>(o); }
extern PyTypeObject HooksType;

// Calls a function of weft._backends.generators. The argument `more` may be null.
PyObject* call(const char* function, PyObject* generator, PyObject* more = nullptr) {
  const OutsideGate beyond;
  const Owned m(PyImport_ImportModule("weft._backends.generators"));
  return m ? PyObject_CallMethod(m.get(), function, more ? "OO" : "O", generator, more) : nullptr;
}

// Returns the open ends that the running process holds, as a list.
PyObject* ends_held_here() {
  Owned list(PyList_New(0));
  if (ProcessObject* const p = list ? process_object(this_process()) : nullptr)
    for (Py_ssize_t i = 0; list && i < Py_SIZE(p); ++i)
      if (p->held[i]->state == EndState::open)
        append(list, Py_NewRef(reinterpret_cast<PyObject*>(p->held[i])));
  return list.release();
}

bool close_in_process(PyRun& run, PyObject* generator) {
  const Owned ends(ends_held_here());
  const Owned p(ends ? call("closing", generator, ends.get()) : nullptr);
  PyObject* const one = p.get();
  const Owned list(p ? process_list(&one, 1) : nullptr);
  // The calls above ran user code, so the run might have ended meanwhile.
  const bool started = list && run.spawned && claim_processes(list.get()) == 0;
  if (started) start_process(*run.spawned, proc(PyList_GET_ITEM(list.get(), 0)));
  return started;
}

// Called by the interpreter when a generator is collected.
PyObject* hooks_call(PyObject* self, PyObject* args, PyObject*) {
  PyObject* generator;
  if (!PyArg_ParseTuple(args, "O", &generator)) return nullptr;
  const HooksObject* const h = hooks(self);
  if (!h->run || !h->run->spawned || h->generation != generation || interpreter_ends())
    return call("close_at_once", generator);
  if (close_in_process(*h->run, generator)) Py_RETURN_NONE;
  return PyErr_Occurred() ? nullptr : call("close_at_once", generator);
}

// Called by the interpreter when the first value of a generator is requested.
PyObject* first_call(PyObject*, PyObject* generator) {
  PyObject* const mine = PyThreadState_Get()->async_gen_finalizer;
  if (!mine || !Py_IS_TYPE(mine, &HooksType)) Py_RETURN_NONE;
  const OutsideGate beyond;
  HooksObject* const h = hooks(mine);
  if (!h->open) {
    const Owned m(PyImport_ImportModule("_weakrefset"));
    h->open = m ? PyObject_CallMethod(m.get(), "WeakSet", nullptr) : nullptr;
  }
  return h->open ? PyObject_CallMethod(h->open, "add", "O", generator) : nullptr;
}

void hooks_dealloc(PyObject* o) {
  Py_CLEAR(hooks(o)->open);
  PyObject_Free(o);
}

PyTypeObject HooksType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyMethodDef first_method{"begun", gated<first_call>, METH_O, nullptr};
PyObject* first_hook = nullptr;

}  // namespace

GeneratorHooks::GeneratorHooks(runtime::Run& of) noexcept {
  PyRun& run = run_of(of);
  if (!run.generators) {
    HooksObject* const h = PyObject_New(HooksObject, &HooksType);
    if (!h) {
      PyErr_Clear();
      return;
    }
    h->run = &run;
    h->open = nullptr;
    h->generation = generation;
    run.generators = reinterpret_cast<PyObject*>(h);
  }
  PyThreadState* const t = PyThreadState_Get();
  first_ = std::exchange(t->async_gen_firstiter, Py_NewRef(first_hook));
  last_ = std::exchange(t->async_gen_finalizer, Py_NewRef(run.generators));
  set_ = true;
}

GeneratorHooks::~GeneratorHooks() {
  if (!set_) return;
  PyThreadState* const t = PyThreadState_Get();
  Py_XSETREF(t->async_gen_firstiter, first_);
  Py_XSETREF(t->async_gen_finalizer, last_);
}

bool close_generators(runtime::Run& of) noexcept {
  PyRun& run = run_of(of);
  PyObject* const open = run.generators ? hooks(run.generators)->open : nullptr;
  const Owned list(open ? call("take", open) : nullptr);
  bool any = false;
  for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list.get()); ++i)
    any = close_in_process(run, PyList_GET_ITEM(list.get(), i)) || any;
  if (PyErr_Occurred()) PyErr_WriteUnraisable(run.generators);
  return any;
}

void forget_generators(PyRun& run) noexcept {
  if (!run.generators) return;
  hooks(run.generators)->run = nullptr;
  Py_CLEAR(run.generators);
}

int init_generators(PyObject*) {
  HooksType.tp_name = "weft.GeneratorHooks";
  HooksType.tp_basicsize = sizeof(HooksObject);
  HooksType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  HooksType.tp_dealloc = gated<hooks_dealloc>;
  HooksType.tp_call = gated<hooks_call>;
  if (PyType_Ready(&HooksType) < 0) return -1;
  return (first_hook = PyCFunction_New(&first_method, nullptr)) ? 0 : -1;
}

}  // namespace weft::py
