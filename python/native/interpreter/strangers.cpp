// Threads that are no processes, and their ends (rule 10.3). A run that stands still goes on
// waiting while one lives that may hold an end it waits for; when the last of them has gone, nobody
// else would ask again.
//
//   anything_outside() finds one: strangers_matter() ──begin_watching()──► weft._strangers, on a thread of its own
//        ──waits until one has ended──► look_again() ──► … until there is none whose end can be waited for
//
// Invariant: while `watching`, the watcher asks _strangers_wanted() each time it has found nobody,
// before it gives up. So it sees a run that came to stand still in between. Everything here is
// under the GIL.
#include "interpreter/door.hpp"
#include "native.hpp"

namespace weft::py {

namespace {

bool wanted = false;        // a run stands still for one
bool watching = false;      // somebody waits for their ends, or is about to
PyObject* watch = nullptr;  // weft._strangers.watch()

// On a thread of its own: whoever finds a stranger may hold locks of the runtime, or be about to
// sleep, and calls no Python code.
void begin_watching(void*) {
  const PyGILState_STATE gil = enter_interpreter();
  {
    const Gate inside;
    own_thread(PyThreadState_Get(), nullptr);
    PyObject* r = PyObject_CallNoArgs(watch);
    if (!r) {  // no room for another thread: the next standstill asks again
      watching = false;
      PyErr_Clear();
    }
    Py_XDECREF(r);
    disown_thread(PyThreadState_Get());
  }
  PyGILState_Release(gil);
}

PyObject* f_set_watch(PyObject*, PyObject* f) {
  Py_XSETREF(watch, Py_NewRef(f));
  Py_RETURN_NONE;
}
// _strangers_wanted(): does a run stand still for one since this was last asked? If not, nobody
// watches any more.
PyObject* f_wanted(PyObject*, PyObject*) {
  watching = std::exchange(wanted, false);
  return PyBool_FromLong(watching);
}
PyObject* f_look_again(PyObject*, PyObject*) {
  look_again();
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {{"_set_watch", gated<f_set_watch>, METH_O, nullptr},
                           {"_strangers_wanted", gated<f_wanted>, METH_NOARGS, nullptr},
                           {"_look_again", gated<f_look_again>, METH_NOARGS, nullptr},
                           {}};

}  // namespace

void strangers_matter() noexcept {
  wanted = true;
  if (watching || !watch) return;
  watching = PyThread_start_new_thread(begin_watching, nullptr) != static_cast<unsigned long>(-1);
}

void forget_strangers() noexcept { wanted = watching = false; }

int init_strangers(PyObject* m) { return PyModule_AddFunctions(m, functions); }

}  // namespace weft::py
