// Foreign threads, which are not processes, and their ends (rule 10.3). A run at a standstill
// continues to wait as long as there is a thread that may hold an end for which the run waits. When
// the last of these threads has ended, the run must check again, and only this file can make it do
// so.
//
//   a run finds it in Python: watch_foreign_thread()    it uses Weft: note_foreign_thread()
//        │ it leaves Python (its state is cleared)            │
//        └──────────────► Native, local to that thread ◄──────┘
//                             │ the thread ends: ~Native()
//                             └──a run has looked for such threads──► look_again(), on a thread of
//                                                                     its own
//
// The interpreter knows a thread that a C library has made only while that thread calls Python,
// because each call makes a new state for it. Therefore such a thread is recorded here until it
// ends.
//
// Invariants
//  1 `natives` is protected by `lock`, under which no other lock is taken. A thread that ends does
//    not have the GIL, and must not wait for the GIL, since the holder of the GIL may be waiting
//    for that thread.
//  2 A run that looks for foreign threads sets `asked` first. So a thread that ends either is not
//    found, or sees in `asked` that it must make the runs check again.
//  3 Without a GIL the states of other threads cannot be reached. In such builds
//    weft/_foreign_threads.py waits for Python threads; C threads that have not used Weft are not
//    known. While `watching` is set, that module calls _foreign_threads_wanted() whenever it has
//    found no thread and is about to stop. So the module notices a run that has come to a
//    standstill meanwhile.
#include "interpreter/foreign_threads.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <set>

#include "declare.hpp"
#include "interpreter/door.hpp"
#include "interpreter/interrupt.hpp"
#include "interpreter/outside.hpp"
#include "interpreter/own_threads.hpp"
#include "processes/run.hpp"
#include "rounds/report.hpp"
#include "rounds/runs.hpp"
#include "sequences.hpp"

namespace weft::py {

namespace {

// For each of Weft's own threads, the run for which it works; null if it is idle. Protected by the
// GIL.
std::map<PyThreadState*, runtime::Run*> own_threads;
std::set<PyThreadState*> helpers;  // threads of the package's own Python modules
// Represents the run of a worker whose call is no longer waited for; that worker is not idle.
runtime::Run* of_the_users() noexcept {
  static char nobody;
  return reinterpret_cast<runtime::Run*>(&nobody);
}

std::mutex lock;
std::set<unsigned long>& natives = *new std::set<unsigned long>;  // identities of live threads
std::atomic<bool> asked{false};

// Calls F on another thread, because the caller (a thread that ends, or a run that finds a foreign
// thread) might hold locks or be about to sleep, and must not call Python code.
template <auto F>
bool on_a_thread() noexcept {
  const auto body = [](void*) {
    const PyGILState_STATE gil = enter_interpreter();
    {
      const Gate inside;
      own_thread(PyThreadState_Get(), nullptr);
      F();
      disown_thread(PyThreadState_Get());
    }
    PyGILState_Release(gil);
  };
  // The result is false if no thread could be started. Then the next thread that ends, or the next
  // run at a standstill, tries again.
  return PyThread_start_new_thread(body, nullptr) != static_cast<unsigned long>(-1);
}

class Native {
 public:
  Native() : me_(PyThread_get_thread_ident()) {
    const std::lock_guard g(lock);
    natives.insert(me_);
  }
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;
  ~Native() {
    {
      const std::lock_guard g(lock);
      natives.erase(me_);
    }
    if (asked.exchange(false)) on_a_thread<&look_again>();
  }

 private:
  const unsigned long me_;
};

void note_this_thread() noexcept { static thread_local const Native here; }

#ifndef Py_GIL_DISABLED
constexpr const char* kMark = "weft.foreign_thread";

// The mark in a thread's state is destroyed with the state, by that thread and with the GIL. There
// are two exceptions: at the end of the interpreter, and in the child of a fork, another thread
// clears all states.
void leaves_python(PyObject* mark) {
  const auto whose = reinterpret_cast<std::uintptr_t>(PyCapsule_GetContext(mark));
  if (whose == PyThread_get_thread_ident() && !interpreter_ends()) note_this_thread();
}
#else
bool wanted = false;        // whether a foreign thread keeps a run at a standstill
bool watching = false;      // whether a helper waits for foreign threads to end, or is about to
PyObject* watch = nullptr;  // the function weft._foreign_threads.watch

void begin_watching() {
  const Owned r(PyObject_CallNoArgs(watch));
  if (!r) {
    watching = false;
    PyErr_Clear();
  }
}
// _foreign_threads_wanted(): returns whether a foreign thread has kept a run at a standstill since
// the last call. If not, the helper stops watching.
PyObject* f_wanted(PyObject*, PyObject*) {
  watching = std::exchange(wanted, false);
  return PyBool_FromLong(watching);
}
// _is_own_thread(identity): returns whether this is one of Weft's own threads.
PyObject* f_is_own_thread(PyObject*, PyObject* o) {
  const unsigned long identity = PyLong_AsUnsignedLong(o);
  if (PyErr_Occurred()) return nullptr;
  const auto is = [identity](PyThreadState* t) { return t->thread_id == identity; };
  const bool helps = std::any_of(helpers.begin(), helpers.end(), is);
  return PyBool_FromLong(helps || std::any_of(own_threads.begin(), own_threads.end(),
                                              [&](const auto& t) { return is(t.first); }));
}
PyObject* f_look_again(PyObject*, PyObject*) {
  look_again();
  Py_RETURN_NONE;
}
#endif

PyObject* f_helper_thread(PyObject*, PyObject* on) {
  if (PyObject_IsTrue(on) == 1) {
    helpers.insert(PyThreadState_Get());
    look_again();  // runs have counted this thread as foreign until now
  } else {
    helpers.erase(PyThreadState_Get());
  }
  Py_RETURN_NONE;
}
PyObject* f_helpers(PyObject*, PyObject*) { return PyLong_FromSize_t(helpers.size()); }
PyMethodDef foreign_threads_functions[] = {
    {"_helper_thread", gated<f_helper_thread>, METH_O, nullptr},
    {"_helpers", gated<f_helpers>, METH_NOARGS, nullptr},
#ifdef Py_GIL_DISABLED
    {"_set_watch", gated<keep_given<&watch>>, METH_VARARGS, nullptr},
    {"_foreign_threads_wanted", gated<f_wanted>, METH_NOARGS, nullptr},
    {"_look_again", gated<f_look_again>, METH_NOARGS, nullptr},
    {"_is_own_thread", gated<f_is_own_thread>, METH_O, nullptr},
#endif
    {}};

// Returns the identities of the recorded threads. A recorded thread counts until it ends, even
// while it is not in Python.
std::set<unsigned long> native_foreign_threads() {
  asked = true;
  const std::lock_guard g(lock);
  return natives;
}

#ifdef Py_GIL_DISABLED
// Without a GIL threads can end at any time, and their states with them, so the list of states
// cannot be walked. Instead, `_thread` reports how many live threads it has started. That number
// leaves out threads that C code registered by PyGILState_Ensure, as Weft's threads do.
PyObject* count_threads = nullptr;

}  // namespace

bool foreign_threads(runtime::Run& run) {
  for (const unsigned long native : native_foreign_threads())
    if (native != run_of(run).thread) return true;
  const Owned n(PyObject_CallNoArgs(count_threads));
  if (!n) {
    PyErr_Clear();
    return true;
  }
  const auto all = static_cast<std::size_t>(PyLong_AsSsize_t(n.get())) + 1;
  std::set<PyThreadState*> known = helpers;
  for (const auto& [t, whose] : own_threads) {
    if (whose && whose != &run) return true;
    known.insert(t);
  }
  known.erase(run_of(run).state);  // the thread of a guest might have ended meanwhile
  std::size_t ours = run_of(run).counted;
  for (PyThreadState* t : known) ours += is_counted(t);
  return all > ours;
}
void watch_foreign(runtime::Run&) noexcept {
  wanted = true;
  if (!watching && watch) watching = on_a_thread<&begin_watching>();
}
#else
// Called when a run has found this thread in Python: the thread counts until it has ended.
void watch_foreign_thread(PyThreadState* t) noexcept {
  if (is_main_thread(t->thread_id)) return;  // the interpreter ends with the main thread
  const SavedException kept;
  const int collector = PyGC_Disable();
  if (!t->dict) t->dict = PyDict_New();
  if (t->dict && !PyDict_GetItemString(t->dict, kMark)) {
    const Owned mark(PyCapsule_New(&asked, kMark, &leaves_python));
    if (mark) {
      PyCapsule_SetContext(mark.get(), reinterpret_cast<void*>(std::uintptr_t{t->thread_id}));
      PyDict_SetItemString(t->dict, kMark, mark.get());
    }
  }
  if (collector) PyGC_Enable();
}

bool is_foreign(PyThreadState* t, runtime::Run& run) {
  if (t == run_of(run).state || is_helper(t)) return false;
  const auto it = own_threads.find(t);
  return it == own_threads.end() || (it->second && it->second != &run);
}
template <class F>
void each_state(F&& f) {
  for (PyThreadState* t = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); t;
       t = PyThreadState_Next(t))
    f(t);
}
// Returns the recorded threads that are not in Python at this moment.
std::set<unsigned long> natives_beyond() {
  std::set<unsigned long> natives = native_foreign_threads();
  if (!natives.empty()) each_state([&](PyThreadState* t) { natives.erase(t->thread_id); });
  return natives;
}

}  // namespace

bool foreign_threads(runtime::Run& run) {
  bool any = !natives_beyond().empty();
  each_state([&](PyThreadState* t) { any = any || is_foreign(t, run); });
  return any;
}
void watch_foreign(runtime::Run& run) noexcept {
  each_state([&](PyThreadState* t) {
    if (is_foreign(t, run)) watch_foreign_thread(t);
  });
}
#endif

void note_foreign_thread() noexcept {
  static thread_local bool looked = false;
  if (looked) [[likely]]
    return;
  looked = true;
  PyThreadState* const t = PyThreadState_Get();
#ifdef Py_GIL_DISABLED
  if (is_counted(t)) return;  // such a thread is counted as long as it lives
#endif
  if (!on_main_thread() && !is_helper(t) && !is_own_thread(t)) note_this_thread();
}

void own_thread(PyThreadState* t, runtime::Run* run) { own_threads[t] = run; }
void lend_thread(PyThreadState* t) { own_threads[t] = of_the_users(); }
void disown_thread(PyThreadState* t) noexcept { own_threads.erase(t); }
bool is_own_thread(PyThreadState* t) noexcept { return own_threads.count(t) != 0; }
bool idle_worker(PyThreadState* t) noexcept {
  const auto it = own_threads.find(t);
  return it != own_threads.end() && !it->second;
}

bool nobody_else() noexcept {
  if (!every_run().empty() || open_tokens().any()) return false;
#ifdef Py_GIL_DISABLED
  for (const unsigned long native : native_foreign_threads())
    if (native != PyThread_get_thread_ident()) return false;
  for (const auto& [t, whose] : own_threads)
    if (whose) return false;
  const Owned n(PyObject_CallNoArgs(count_threads));
  if (!n) PyErr_Clear();
  return n && PyLong_AsSsize_t(n.get()) == 0 && on_main_thread();
#else
  bool none = natives_beyond().empty();
  each_state([&](PyThreadState* t) {
    none = none && (t == PyThreadState_Get() || is_helper(t) || idle_worker(t));
  });
  return none;
#endif
}

#ifndef Py_GIL_DISABLED
// Returns the identities of the threads whose states are `foreign`, and of the recorded threads
// that are not in Python.
template <class F>
static PyObject* idents_of(F&& foreign) {
  Owned list(PyList_New(0));
  const auto add = [&list](unsigned long ident) {
    if (list) append(list, PyLong_FromUnsignedLong(ident));
  };
  each_state([&](PyThreadState* t) {
    if (foreign(t)) add(t->thread_id);
  });
  for (const unsigned long native : natives_beyond()) add(native);
  return list.release();
}
#endif
PyObject* foreign_idents([[maybe_unused]] runtime::Run* run) {
#ifdef Py_GIL_DISABLED
  return PyList_New(0);
#else
  return idents_of([run](PyThreadState* t) {
    return run ? is_foreign(t, *run)
               : t != PyThreadState_Get() && !is_helper(t) && !is_own_thread(t);
  });
#endif
}

#ifdef Py_GIL_DISABLED
PyObject* known_of_all() {
  std::set<unsigned long> found;
  const auto add = [&found](PyThreadState* t) {
    if (is_counted(t)) found.insert(t->thread_id);
  };
  add(PyThreadState_Get());
  for (PyThreadState* t : helpers) add(t);
  for (const auto& [t, whose] : own_threads) add(t);
  for (const PyRun* r : every_run())
    if (r->counted) found.insert(r->thread);
  Owned list(PyList_New(0));
  for (const unsigned long identity : found)
    if (list) append(list, PyLong_FromUnsignedLong(identity));
  return list.release();
}
#else
PyObject* foreign_threads_of_all() {
  return idents_of([](PyThreadState* t) {
    return t != PyThreadState_Get() && !is_helper(t) && !is_own_thread(t) &&
           std::none_of(every_run().begin(), every_run().end(),
                        [t](const PyRun* r) { return r->state == t; });
  });
}
#endif

bool is_helper(PyThreadState* t) noexcept { return helpers.count(t) != 0; }

void forget_foreign_threads() noexcept {
  own_threads.clear();
  helpers.clear();
  new (&lock) std::mutex;  // another thread might have held the lock at the fork
  natives.clear();
#ifdef Py_GIL_DISABLED
  wanted = watching = false;
#endif
}

int init_foreign_threads(PyObject* m) {
#ifdef Py_GIL_DISABLED
  const Owned threads(PyImport_ImportModule("_thread"));
  if (!threads || !(count_threads = PyObject_GetAttrString(threads.get(), "_count"))) return -1;
#endif
  return PyModule_AddFunctions(m, foreign_threads_functions);
}

}  // namespace weft::py
