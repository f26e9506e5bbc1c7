// Hooks for those who observe a run: traces, measurements, the debug mode, the watchdog, reports on
// demand (rule 14).
//
// Invariants
//  1 Off, it costs an operation of a coroutine process nothing: observing exchanges the functions
//    that the interpreter calls (am_send). Where a thread blocks, at each step of the scheduler and
//    in each operation of a component, one flag is tested.
//  2 The observer is called with the GIL held, outside every lock, before the operation begins and
//    after it has its outcome; never from within itself. A component takes the GIL for it
//    (component_observe.cpp), and not for the flags: what was observed a moment ago may be missed.
//  3 What the observer raises does not reach the process. An Exception is printed; what a signal's
//    handler raised there is kept for the run.
#pragma once
#include <array>
#include <set>
#include <vector>

#include "native.hpp"

namespace weft::py {

// Written under the GIL, read without it too.
extern prim::atomic<bool> observer_is_set;
extern prim::atomic<bool> steps_are_watched;  // a watchdog looks at what the schedulers run
inline bool observing() noexcept { return observer_is_set.load(std::memory_order_relaxed); }
inline bool stepping() noexcept { return steps_are_watched.load(std::memory_order_relaxed); }
extern bool looking;  // there is a function to call when an executor falls idle

// `what`: "begin" (detail: the value written), "park", "commit" (the value read, (index, value) of
// a select), "raise" (the exception), "start", "end" (the result or the exception), "lent" (an end
// of the channel `target` is about to go to another program). `target` of the others: the end, the
// barrier, the guards (Choice::describe()) or the group's list; may be null.
void observe(const char* what, const char* op, PyObject* target, PyObject* detail) noexcept;
void observe_sent(PySendResult s, const char* op, PyObject* target, PyObject* result) noexcept;
// of a thread; from here on it is in the operation
void observe_park(ProcessBase& p, const runtime::OpKind& kind) noexcept;
void observe_returned(const char* op, PyObject* target, PyObject* result) noexcept;
void observe_start(ProcessObject* p) noexcept;
// result null: the current exception
void observe_end(ProcessObject* p, PyObject* result) noexcept;

template <class F>
PyObject* observed(const char* op, PyObject* target, PyObject* value, F&& f) {
  if (!observing()) [[likely]]
    return f();
  const Owned held = new_ref(target);
  observe("begin", op, target, value);
  PyObject* r = f();
  observe_returned(op, target, r);
  return r;
}

// Each in the file that has the functions to exchange.
void observe_operations(bool on) noexcept;
void observe_selects(bool on) noexcept;
void observe_groups(bool on) noexcept;

// --- the watchdog --------------------------------------------------------------------------------

// Of a thread of the pool, which runs without the GIL (component_pool.cpp). It writes `process`
// last as a step begins and first as one ends; who reads it, with the GIL, reads it first: the
// process is there, for to end it that thread needs the GIL, and `since` is its own or a later one.
struct WatchedStep {
  unsigned long thread = 0;
  prim::atomic<ProcessObject*> process{nullptr};
  prim::atomic<std::int64_t> since{0};
  prim::atomic<std::uint64_t> number{0};
  void begin(ProcessObject* p) noexcept;
  void end() noexcept {
    if (process.load(std::memory_order_relaxed)) process.store(nullptr, std::memory_order_seq_cst);
  }
};
void each_pooled_step(PyRun& run, void (*f)(const WatchedStep&, void*), void* to);

void step_begins(ProcessObject* p) noexcept;
void step_ends() noexcept;
bool is_helper(PyThreadState* t) noexcept;  // a thread of Weft's own: it uses no end (rule 10.3)
const std::set<PyThreadState*>& every_helper() noexcept;
void forget_steps() noexcept;  // in the child of a fork: those threads are not there

// --- reports on demand ---------------------------------------------------------------------------

// Of a process whose `op` is set: could anything but its places and its children wake it, or has it
// been woken already?
enum class Facing : std::uint8_t { able, blocked };
Facing facing(ProcessBase& p) noexcept;

void locate(ProcessBase& p) noexcept;  // brings its file and line up to date
// "file:line" of one that runs; "": not known, as of a component, of a greenlet, and where there is
// no GIL that stops it there.
std::string where_running(ProcessBase& p);
void keep_interrupt_for(PyRun* run, PyObject* owned) noexcept;
void fell_idle() noexcept;  // an executor is about to sleep
const std::set<PyRun*>& every_run() noexcept;
// Who waits where in a run that rests, as _facts() has it; null: it does not. It runs no code of
// Python's.
PyObject* facts_at_rest(PyRun& run) noexcept;

// Calls f(end, the place that is its channel, does it write) for the open ends that a process was
// given.
template <class F>
void each_end_held(ProcessBase& p, F&& f) {
  const ProcessObject* const o = process_object(&p);
  for (Py_ssize_t i = 0; o && i < Py_SIZE(o); ++i) {
    const EndObject* const e = o->held[i];
    if (e->state == EndState::open)
      f(e, static_cast<const core::SyncObject*>(&e->channel->core),
        Py_IS_TYPE(e, &WriterType) != 0);
  }
}
// The open ends that it received as values and has yet (held.cpp).
std::vector<const EndObject*> received_by(const ProcessObject* p);
// Of one place: the processes that were given an end there, and the ends.
struct Holders {
  std::set<std::uint32_t> readers, writers;
  std::set<const EndObject*> reader_ends, writer_ends;
  void add(std::uint32_t process, const EndObject* e, bool writes) {
    (writes ? writers : readers).insert(process);
    (writes ? writer_ends : reader_ends).insert(e);
  }
};
inline PyObject* key_of(const void* place) { return PyLong_FromVoidPtr(const_cast<void*>(place)); }

// While it lives nothing of a run moves (partial.cpp, invariants 1 and 2): no component begins an
// operation, and the garbage collector is off.
class OneMoment {
 public:
  OneMoment() noexcept;
  OneMoment(const OneMoment&) = delete;
  OneMoment& operator=(const OneMoment&) = delete;
  ~OneMoment();

 private:
  int collector_;
};
PyObject* every_fact(bool at_rest);  // as _facts() has it; in OneMoment
// What changes whenever a value comes to a channel, or goes: passed, dropped, in the buffer.
std::array<unsigned long long, 3> figures_of(const Engine& c) noexcept;
PyObject* figures_row(const std::array<unsigned long long, 3>& f);

int init_observe(PyObject* m);
int init_partial(PyObject* m);

}  // namespace weft::py
