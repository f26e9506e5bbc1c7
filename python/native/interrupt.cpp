// Ctrl-C: the first says where each process is and cancels all of them, the second is KeyboardInterrupt where it lands.
//
// Python's own handler in C only notes a signal; the main thread calls the Python function when it looks (PyErr_CheckSignals). One that
// comes between its last look and the kernel's putting it to sleep, or on another thread, would be left lying. So a handler of ours goes
// around Python's and stirs the main thread's Parking. A handler that the program sets while a network runs takes its place again.
//
// Invariant: `sleeper` is null, or a Parking that lives until main_sleeps_by(nullptr) returns, which waits for handlers on other threads.
#include "interrupt.hpp"

#include "observe.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>

namespace weft::py {

namespace {

constexpr int kSignals = 64;
using Handler = void (*)(int);
std::atomic<Handler> pythons{nullptr};  // one function for all signals
std::atomic<runtime::Parking*> sleeper{nullptr};
std::atomic<int> handling{0};
pthread_t main_thread;
bool main_known = false;

void stirring_handler(int number) {
  const int error = errno;
  if (const Handler h = pythons.load(std::memory_order_relaxed)) h(number);
  handling.fetch_add(1);
  if (runtime::Parking* p = sleeper.load()) p->stir();
  handling.fetch_sub(1);
  errno = error;
}

// By a handler, while a run begins: it ends that run. ValueError: this is not the main thread.
void keep_what_was_raised() {
  if (!PyErr_Occurred()) return;
  if (PyErr_ExceptionMatches(PyExc_ValueError))
    PyErr_Clear();
  else
    keep_interrupt_for(nullptr, take_exception());
}

bool on_main_thread() {
  PyObject* m = PyImport_ImportModule("threading");
  PyObject* t = m ? PyObject_CallMethod(m, "main_thread", nullptr) : nullptr;
  PyObject* ident = t ? PyObject_GetAttrString(t, "ident") : nullptr;
  const bool yes = ident && PyLong_Check(ident) && PyLong_AsUnsignedLong(ident) == PyThread_get_thread_ident();
  Py_XDECREF(ident);
  Py_XDECREF(t);
  Py_XDECREF(m);
  keep_what_was_raised();
  return yes;
}

// Around Python's handler, for each signal that has a Python function; the result has a bit for each that was changed.
std::uint64_t stir_by_signals(PyObject* signal_module) {
  std::uint64_t changed = 0;
  for (int n = 1; prim::wakes_from_handlers && n <= kSignals; ++n) {
    PyObject* f = PyObject_CallMethod(signal_module, "getsignal", "i", n);
    struct sigaction a {};
    if (f && PyCallable_Check(f) && sigaction(n, nullptr, &a) == 0 && !(a.sa_flags & SA_SIGINFO) && a.sa_handler != stirring_handler &&
        a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN) {
      pythons = a.sa_handler;
      a.sa_handler = stirring_handler;
      if (sigaction(n, &a, nullptr) == 0) changed |= std::uint64_t{1} << (n - 1);
    }
    Py_XDECREF(f);
    PyErr_Clear();
  }
  return changed;
}
void leave_signals(std::uint64_t changed) {
  for (int n = 1; n <= kSignals; ++n) {
    struct sigaction a {};
    if (!(changed >> (n - 1) & 1) || sigaction(n, nullptr, &a) != 0 || a.sa_handler != stirring_handler) continue;
    a.sa_handler = pythons;
    sigaction(n, &a, nullptr);
  }
}

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
  keep_what_was_raised();
  if (m && on_main_thread()) {
    main_thread = pthread_self();
    main_known = true;
    stirring_ = stir_by_signals(m);
  }
  Py_XDECREF(now);
  Py_XDECREF(standard);
  Py_XDECREF(m);
}

Interrupts::~Interrupts() {
  leave_signals(stirring_);
  if (!old_) return;
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  PyObject* m = PyImport_ImportModule("signal");
  PyObject* r = m ? PyObject_CallMethod(m, "signal", "iO", 2, old_) : nullptr;
  PyObject* raised =
      r ? nullptr : take_exception();  // by a handler, for a signal that came at the very end: it is told, and ours goes all the same
  if (!r && m) r = PyObject_CallMethod(m, "signal", "iO", 2, old_);
  Py_XDECREF(r);
  Py_XDECREF(m);
  Py_DECREF(old_);
  PyErr_Restore(t, v, tb);
  if (raised) restore_exception(raised);
}

void main_sleeps_by(runtime::Parking* p) noexcept {
  if (!main_known || !pthread_equal(pthread_self(), main_thread)) return;
  sleeper.store(p);
  if (p) return;
  for (unsigned round = 0; handling.load() != 0;) prim::pause(round++);
}

}  // namespace weft::py
