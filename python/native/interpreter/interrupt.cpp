// Ctrl-C. The first Ctrl-C reports where each process is, and cancels all processes. The second
// kills the OS processes that were started, and raises KeyboardInterrupt in the code that runs.
//
// Python's own handler, in C, only records a signal; the main thread calls the Python function when
// that thread checks for signals (PyErr_CheckSignals). A signal would go unnoticed if it arrived on
// another thread, or between that check and the moment at which the kernel puts the thread to
// sleep. Therefore Weft's handler wraps Python's and wakes the main thread. Weft's handler is set
// while a network runs, and when ordinary code of the main thread waits outside any network; after
// such a wait it stays set. The program may set its own handler. While a network runs, that handler
// is left unchanged. In ordinary code Weft's handler wraps a new handler of SIGINT at the next
// wait; it wraps a new handler of another signal only after the handler of SIGINT has changed too,
// or a network has run.
//
// Invariants
//  1 `sleeper` is null, or a Parking that lives until main_sleeps_by(nullptr) returns, which waits
//    for handlers on other threads.
//  2 If a bit of `held_back` is set while no HoldSignals exists, the thread that set the bit clears
//    it and passes the signal on, so no signal is lost.
//  3 While a run begins and ends, handlers are read and set without running bytecode: between
//    bytecodes Python calls signal handlers, which may raise. So this file calls the functions of
//    `_signal`, not those of `signal`, which are Python code. One of these functions checks for
//    signals itself; an exception raised there is kept for the run.
#include "interpreter/interrupt.hpp"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "processes/greenlet.hpp"
#include "processes/run.hpp"
#include "rounds/rounds.hpp"
#include "rounds/runs.hpp"
#include "sequences.hpp"

namespace weft::py {

namespace {

using Handler = void (*)(int);
std::atomic<Handler> pythons{nullptr};  // Python's handler, one function for all signals
std::atomic<runtime::Parking*> sleeper{nullptr};
std::atomic<int> handling{0};
std::atomic<bool> holding{false};         // whether the main thread has a HoldSignals
std::atomic<std::uint64_t> held_back{0};  // bit n-1: signal n arrived while signals were held
std::size_t watchers = 0;
std::uint64_t watched = 0;  // bit n-1 is set if signal n has Weft's handler
unsigned long main_thread = 0;
PyObject* signals = nullptr;  // the module _signal
PyObject* default_int_handler = nullptr;

// Sets the handler of SIGINT. Python checks for signals first; if a handler raises there, the
// function returns null.
PyObject* set_sigint(PyObject* f) {
  return PyObject_CallMethod(signals, "signal", "iO", SIGINT, f);
}

void stirring_handler(int number) {
  const int error = errno;
  if (const std::uint64_t bit = std::uint64_t{1} << (number - 1); holding.load()) {
    held_back.fetch_or(bit);
    // If the hold has ended meanwhile without noticing this signal, the signal is passed on below.
    if (holding.load() || !(held_back.fetch_and(~bit) & bit)) return;
  }
  if (const Handler h = pythons.load(std::memory_order_relaxed)) h(number);
  handling.fetch_add(1);
  if (runtime::Parking* p = sleeper.load()) p->disturb();
  handling.fetch_sub(1);
  errno = error;
}

bool can_handle_signals() noexcept {
  return PyThread_get_thread_ident() == main_thread &&
         PyInterpreterState_Get() == PyInterpreterState_Main();
}

// Wraps Python's handler, for each signal that has a Python function. Runs no bytecode.
void stir_by_signals() {
  for (int n = 1; prim::wakes_from_handlers && n <= kSignals; ++n) {
    struct sigaction a {};
    if (sigaction(n, nullptr, &a) != 0 || (a.sa_flags & SA_SIGINFO) ||
        a.sa_handler == stirring_handler || a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN)
      continue;
    const Owned f(PyObject_CallMethod(signals, "getsignal", "i", n));
    if (!f) PyErr_Clear();
    if (f && PyCallable_Check(f.get())) {
      pythons = a.sa_handler;
      a.sa_handler = stirring_handler;
      if (sigaction(n, &a, nullptr) == 0) watched |= std::uint64_t{1} << (n - 1);
    }
  }
}
// The handler of SIGINT at the time when Weft's handlers were set for a wait outside any run.
// `known` means that no run has removed Weft's handlers since.
Handler sigint_then{};
bool known = false;

// Called when the main thread waits outside any run. From then on Weft's handlers stay set until
// the program sets others. To notice such a change, only the handler of SIGINT is checked, which
// takes one system call.
void stir_outside() {
  struct sigaction a {};
  if (sigaction(SIGINT, nullptr, &a) != 0 || (known && a.sa_handler == sigint_then)) return;
  stir_by_signals();
  known = sigaction(SIGINT, nullptr, &a) == 0;
  sigint_then = a.sa_handler;
}
void leave_signals() noexcept {
  known = false;
  const std::uint64_t changed = std::exchange(watched, 0);
  for (int n = 1; n <= kSignals; ++n) {
    struct sigaction a {};
    if (!(changed >> (n - 1) & 1) || sigaction(n, nullptr, &a) != 0 ||
        a.sa_handler != stirring_handler)
      continue;
    a.sa_handler = pythons;
    sigaction(n, &a, nullptr);
  }
}

// Functions of weft._distributed_deadlock.rounds. everywhere([row]) -> [line] returns where each of
// these processes is, and where the processes are that other programs run for this program.
// end_elsewhere() ends those programs.
PyObject *everywhere = nullptr, *end_elsewhere = nullptr;

// A process, and the operation that it is in.
struct Row {
  std::uint32_t id;
  std::string path, does;
};

// The rows of the processes for which `wanted` holds, in the order of their numbers.
template <class F>
std::vector<Row> rows_where(PyRun& run, F&& wanted) {
  // Paths are made after the walk, because making a path takes the locks of groups, which the walk
  // holds.
  std::vector<ProcessBase*> all;
  run.run.each_process([&](ProcessBase& p) {
    if (wanted(p)) all.push_back(&p);
  });
  std::vector<Row> rows;
  for (ProcessBase* p : all)
    rows.push_back({std::uint32_t(p->id), runtime::path_of(*p), doing(*p)});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.id < b.id; });
  return rows;
}
std::vector<Row> running_in(PyRun& run) {
  return rows_where(run, [](ProcessBase& p) { return !p.op; });
}
// Returns the rows of all processes of a run, beginning with the processes that wait.
std::vector<Row> rows_of(PyRun& run) {
  std::vector<Row> rows = rows_where(run, [](ProcessBase& p) { return p.op != nullptr; });
  for (Row& row : running_in(run)) rows.push_back(std::move(row));
  return rows;
}
std::vector<std::string> lines_of(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) lines.push_back(row.path + ": " + row.does);
  return lines;
}
PyObject* to_list(const std::vector<Row>& rows) {
  Owned list(PyList_New(0));
  for (const Row& row : rows) {
    const Owned path(to_str(row.path)), does(path ? to_str(row.does) : nullptr);
    append(list, does ? Py_BuildValue("IOO", unsigned(row.id), path.get(), does.get()) : nullptr);
  }
  return list.release();
}

// _where([process]): returns (number, path, what it does) of each process in every run of this
// program, or only in the run of that process.
PyObject* f_where(PyObject*, PyObject* args) {
  PyObject* process = nullptr;
  if (!PyArg_ParseTuple(args, "|O!", &ProcessType, &process)) return nullptr;
  const runtime::Group* const group =
      process ? base_of(reinterpret_cast<ProcessObject*>(process)).group : nullptr;
  std::vector<Row> rows;
  for (PyRun* run : every_run()) {
    if (process && (!group || &group->run != &run->run)) continue;
    for (Row& row : rows_of(*run)) rows.push_back(std::move(row));
  }
  return to_list(rows);
}
PyMethodDef interrupt_functions[] = {
    {"_where", gated<f_where>, METH_VARARGS, nullptr},
    {"_ask_everywhere", gated<keep_given<&everywhere, &end_elsewhere>>, METH_VARARGS, nullptr},
    {}};

constexpr std::size_t kLines = 40;

void say(std::string s, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size() && i < kLines; ++i) s += "\n  " + lines[i];
  if (lines.size() > kLines) s += "\n  … and " + std::to_string(lines.size() - kLines) + " more";
  s += "\n";
  PySys_FormatStderr("%s", s.c_str());
}

// Called when Ctrl-C was pressed again, because a process that has reached no operation since its
// cancellation might never reach one.
void insist() {
  const Owned r(end_elsewhere ? PyObject_CallNoArgs(end_elsewhere) : nullptr);
  if (!r && end_elsewhere) PyErr_WriteUnraisable(end_elsewhere);
  // If a process runs, the exception is raised in that process.
  if (current_coroutine() || current_greenlet()) return;
  if (const auto lines = lines_of(running_in(*root_run)); !lines.empty())
    say("\nweft: interrupted again; a thread ends at an operation, and so these are waited for "
        "(Ctrl-\\ ends the program):",
        lines);
}

PyObject* on_sigint(PyObject*, PyObject*) {
  if (root_run && !root_run->interrupted) {
    root_run->interrupted = true;
    say_where(*root_run);
    root_run->run.cancel_everybody();
    Py_RETURN_NONE;
  }
  if (root_run) insist();
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  return nullptr;
}
PyMethodDef sigint_def{"weft_interrupt", gated<on_sigint>, METH_VARARGS, nullptr};

}  // namespace

void say_where(PyRun& run) {
  const std::vector<Row> rows = rows_of(run);
  std::vector<std::string> lines;
  const Owned here(everywhere ? to_list(rows) : nullptr);
  const Owned all(here ? PyObject_CallOneArg(everywhere, here.get()) : nullptr);
  if (!all && everywhere) PyErr_WriteUnraisable(everywhere);
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i) {
    const char* const line = PyUnicode_AsUTF8(PyList_GET_ITEM(all.get(), i));
    if (line)
      lines.emplace_back(line);
    else
      PyErr_Clear();
  }
  if (!all) lines = lines_of(rows);
  say("\nweft: interrupted; the processes were:", lines);
}

Interrupts::Interrupts() {
  if (!can_handle_signals()) return;
  const Owned now(PyObject_CallMethod(signals, "getsignal", "i", SIGINT));
  const Owned mine(now && now == default_int_handler ? PyCFunction_New(&sigint_def, nullptr)
                                                     : nullptr);
  Owned r(mine ? set_sigint(mine.get()) : nullptr);
  if (mine && !r && PyErr_ExceptionMatches(PyExc_ValueError)) {
    // The exception was raised by a handler, or by Python because another thread is the main
    // thread.
    Owned first(take_exception());
    r.reset(set_sigint(mine.get()));
    if (r || !PyErr_ExceptionMatches(PyExc_ValueError))
      restore_exception(first.release());
    else
      PyErr_Clear();
  }
  if (r) old_ = Py_NewRef(now.get());
  // If a handler has raised, its exception ends the run that begins, and Weft's handler is not
  // needed.
  if (PyErr_Occurred()) keep_interrupt_for(nullptr, take_exception());
  watching_ = watch_signals();
}

Interrupts::~Interrupts() {
  if (watching_) unwatch_signals();
  if (!old_) return;
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  // The exception that a handler has raised for a signal at the very end. The exception is
  // reported, and Weft's handler is removed in spite of it.
  PyObject* raised = nullptr;
  for (int n = 0; n < kSignals; ++n) {
    const Owned r(set_sigint(old_));
    if (r) break;
    Py_XSETREF(raised, take_exception());
  }
  Py_DECREF(old_);
  PyErr_Restore(t, v, tb);
  if (raised) restore_exception(raised);
}

bool watch_signals() {
  if (!can_handle_signals()) return false;
  ++watchers;
  stir_by_signals();
  return true;
}
void unwatch_signals() noexcept {
  if (--watchers == 0) leave_signals();
}

HoldSignals::HoldSignals() noexcept
    : mine_(PyThread_get_thread_ident() == main_thread &&
            !holding.load(std::memory_order_relaxed)) {
  if (mine_) holding.store(true);
}
HoldSignals::~HoldSignals() {
  if (!mine_) return;
  holding.store(false);
  if (held_back.load() == 0) [[likely]]
    return;
  const std::uint64_t came = held_back.exchange(0);
  for (int n = 1; n <= kSignals; ++n)
    if (came >> (n - 1) & 1)
      if (const Handler h = pythons.load(std::memory_order_relaxed)) h(n);
}

void main_sleeps_by(runtime::Parking* p) noexcept {
  if (PyThread_get_thread_ident() != main_thread) return;
  if (p && watchers == 0) stir_outside();
  sleeper.store(p);
  if (p) return;
  for (unsigned round = 0; handling.load() != 0;) prim::pause(round++);
}

static thread_local bool handlers_run = false;
int run_handlers() noexcept {
  const bool within = std::exchange(handlers_run, true);
  const int r = PyErr_CheckSignals();
  handlers_run = within;
  return r;
}
const char* who_ran_there() noexcept {
  if (handlers_run) return "a signal's handler";
  return on_main_thread() ? "a finaliser, or a signal's handler," : "a finaliser";
}
PyObject* in_another_operation(const char* what, const char* do_it) {
  return bad_use(
      "%s while this thread is in another operation (%s ran there): %s in another thread, or once "
      "the operation is over",
      what, who_ran_there(), do_it);
}

void main_is_this_thread() noexcept { main_thread = PyThread_get_thread_ident(); }

bool is_weft_interrupt(PyObject* handler) noexcept {
  return PyCFunction_Check(handler) && PyCFunction_GET_FUNCTION(handler) == sigint_def.ml_meth;
}

bool is_main_thread(unsigned long identity) noexcept { return identity == main_thread; }
bool on_main_thread() noexcept { return is_main_thread(PyThread_get_thread_ident()); }

int init_interrupts(PyObject* native) {
  if (PyModule_AddFunctions(native, interrupt_functions) < 0) return -1;
  const Owned m(PyImport_ImportModule("threading"));
  const Owned t(m ? PyObject_CallMethod(m.get(), "main_thread", nullptr) : nullptr);
  const Owned ident(t ? PyObject_GetAttrString(t.get(), "ident") : nullptr);
  if (ident) main_thread = PyLong_AsUnsignedLong(ident.get());
  if (PyErr_Occurred()) return -1;
  signals = PyImport_ImportModule("_signal");
  if (signals) default_int_handler = PyObject_GetAttrString(signals, "default_int_handler");
  return default_int_handler ? 0 : -1;
}

}  // namespace weft::py
