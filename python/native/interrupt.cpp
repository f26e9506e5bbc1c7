// Ctrl-C: the first says where each process is and cancels all of them, the second is KeyboardInterrupt where it lands.
#include "interrupt.hpp"

namespace weft::py {

namespace {

void say_where(PyRun& run) {
  const runtime::Report r = runtime::Report::of(run.run);
  std::string s = "\nweft: interrupted; the processes were:";
  std::size_t n = 0, more = 0;
  for (const auto& [id, b] : r.blocked) {
    if (++n > 40) {
      ++more;
      continue;
    }
    s += "\n  " + b.path + ": " + b.verb;
    for (std::size_t i = 0; i < b.places.size() && i < 8; ++i) s += (i ? ", " : " ") + b.places[i];
    s += " at " + b.at;
  }
  std::vector<ProcessBase*> running;  // named below: a path asks the groups, which are locked while they are walked
  run.run.each_process([&](ProcessBase& p) {
    if (!p.op) running.push_back(&p);
  });
  for (ProcessBase* p : running) {
    if (++n > 40)
      ++more;
    else
      s += "\n  " + runtime::path_of(*p) + ": running";
  }
  if (more) s += "\n  … and " + std::to_string(more) + " more";
  s += "\n";
  PySys_FormatStderr("%s", s.c_str());
}

PyObject* on_sigint(PyObject*, PyObject*) {
  if (root_run && !root_run->interrupted) {
    root_run->interrupted = true;
    say_where(*root_run);
    root_run->run.cancel_everybody();
    Py_RETURN_NONE;
  }
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  return nullptr;
}
PyMethodDef sigint_def{"weft_interrupt", gated<on_sigint>, METH_VARARGS, nullptr};

}  // namespace

Interrupts::Interrupts() {
  PyObject* m = PyImport_ImportModule("signal");
  PyObject* now = m ? PyObject_CallMethod(m, "getsignal", "i", 2) : nullptr;
  PyObject* standard = m ? PyObject_GetAttrString(m, "default_int_handler") : nullptr;
  if (now && now == standard) {
    PyObject* mine = PyCFunction_New(&sigint_def, nullptr);
    PyObject* r = mine ? PyObject_CallMethod(m, "signal", "iO", 2, mine) : nullptr;
    if (r) old_ = Py_NewRef(now);
    Py_XDECREF(r);
    Py_XDECREF(mine);
  }
  Py_XDECREF(now);
  Py_XDECREF(standard);
  Py_XDECREF(m);
  PyErr_Clear();  // not the main thread
}

Interrupts::~Interrupts() {
  if (!old_) return;
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  PyObject* m = PyImport_ImportModule("signal");
  PyObject* r = m ? PyObject_CallMethod(m, "signal", "iO", 2, old_) : nullptr;
  Py_XDECREF(r);
  Py_XDECREF(m);
  Py_DECREF(old_);
  PyErr_Restore(t, v, tb);
}

}  // namespace weft::py
