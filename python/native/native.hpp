// What the files of the extension share: the objects Python sees, and how they stand on the core.
//
// Every channel is a core::ChannelEngine<Value, Shared>, whatever meets on it: coroutine processes
// on a scheduler, thread processes, plain threads. Who calls an operation decides how it waits
// (ways.hpp): in a coroutine process it is an awaitable; elsewhere it blocks the thread, or the
// greenlet (caller.cpp).
//
// Invariants
//  1 Engines over Value, and all that the files here keep, are touched only with the GIL held. It
//    is given up only in a real sleep (runtime::around_sleep) and in calls of the interpreter's,
//    never under a lock. On a free-threaded build "the GIL" means the gate (gate.hpp).
//  2 Under a lock of the core no Python code runs: a Value that is destroyed there is queued
//    (pending.cpp) and dropped at a safe point, and so is the retirement of an end that is
//    collected (rules 12.1, 12.2).
//  3 A process has one outstanding operation; its node is in the process, its slot in the
//    operation.
//    While a greenlet is parked its stack may hold another's frames, so nothing that others may
//    touch is there.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate.hpp"
#include "keywords.hpp"
#include "owned.hpp"
#include "weft/channel.hpp"
#include "weft/core/standing.hpp"
#include "weft/runtime/function_info.hpp"
#include "weft/runtime/own_thread.hpp"
#include "weft/runtime/report.hpp"
#include "weft/runtime/scheduler.hpp"
#include "weft/wire/lazily.hpp"

namespace weft::py {

using core::Side;
using runtime::ProcessBase;
using runtime::this_process;

// --- values --------------------------------------------------------------------------------------

void defer_decref(PyObject* o) noexcept;

// An owned reference that moves without touching the count.
struct Value {
  PyObject* o = nullptr;

  Value() noexcept = default;
  explicit Value(PyObject* owned) noexcept : o(owned) {}
  Value(Value&& x) noexcept : o(x.o) { x.o = nullptr; }
  Value& operator=(Value&&) = delete;
  ~Value() {
    if (o) defer_decref(o);
  }
  PyObject* take() noexcept {
    PyObject* r = o;
    o = nullptr;
    return r;
  }
};

using Engine = core::ChannelEngine<Value, Shared>;
using BarrierEngine = core::BarrierEngine<Shared>;

// --- objects -------------------------------------------------------------------------------------

struct ChannelObject {
  // str: the name, or the file of its birth; the core's name points into it
  PyObject_HEAD PyObject* name;
  // of the operating system's process that made it (rule 11.2, fork); with kCarries: see held.cpp
  std::uint32_t generation;
  std::uint8_t immunity;
  bool traced;                    // by the garbage collector (leaf.hpp)
  std::uint8_t readers_returned;  // see stopped_early.cpp
  Engine core;
};

// How a process ended.
enum class Ending : std::uint8_t { returned, retired, poisoned, cancelled, failed };

enum class EndState : std::uint8_t { open, retired, let_go, sent, died };

struct EndObject {
  PyObject_HEAD ChannelObject* channel;
  std::uint32_t holders;  // processes that were given it and have not finished (rule 2.3)
  EndState state : 4;
  bool traced : 1;          // as its channel is, or all are (leaf.hpp)
  bool received : 1;        // by a process that has not ended (held.cpp)
  std::uint32_t site : 24;  // where it was made (sites.hpp)
};
static_assert(sizeof(EndObject) == sizeof(PyObject) + 16);

struct GuestPart;
struct ProcessObject;

// Who waits for a process's end (rule 7.11).
struct Watch {
  // its name points into `name`, its last_writer is the process's id
  core::LatchEngine<Shared> latch;
  std::string name;
  ProcessObject* process;                      // which has it
  std::vector<Owned<ProcessObject>> watchers;  // until the process has ended
  bool beyond = false;                         // somebody watches who is no process
  bool watched = false;                        // its failure is its watchers'
  Owned<> why;                                 // of such a failure (no_result.cpp)
};

// Where the ad-hoc selects of one process begin, by their guards, so that repeated ones are fair
// (rule 5.4).
struct SelectMemory {
  std::uint64_t key = 0;
  std::uint32_t start = 0;
  std::unique_ptr<std::vector<std::pair<std::uint64_t, std::uint32_t>>> more;
  std::uint32_t& of(std::uint64_t k);  // choice.cpp
};

// What an operation came to, until it is told to whoever awaits it.
class Outcome {
 public:
  // `owned`; null: the current exception, which it takes.
  void keep(PyObject* owned) noexcept;
  // The value, owned, or null and the exception is set.
  PyObject* take() noexcept;
  void drop() noexcept {
    value_.reset();
    error_.reset();
  }
  PyObject* value() const noexcept { return value_.get(); }  // null: it has raised

 private:
  Owned<> value_, error_;
};

// What few processes need. It is apart, so that the others are smaller.
struct Rare {
  SelectMemory selects;
  std::unique_ptr<Watch> watch;  // null: nobody has asked for the process's end
  Outcome kept;                  // of an operation that gives way
};

// The runtime's part of a process that a scheduler runs: a coroutine or a greenlet.
struct CoroutineProcess final : ProcessBase {
  CoroutineProcess() = default;
};

// Where a process runs: `apart` is a coroutine on a scheduler and a thread of its own, `pooled` one
// of a native component (component_pool.cpp).
enum class Kind : std::uint8_t { coroutine, thread, greenlet, apart, pooled };
struct GreenletState;  // a greenlet process's greenlet (greenlet.cpp)

struct OpObject;
struct NativeCall;
class PoolThread;

struct ProcessObject {
  PyObject_VAR_HEAD  // ob_size: ends held
      CoroutineProcess base;
  // the coroutine; of others (function, arguments, keywords); null when it has ended
  PyObject* body;
  PyObject* context;  // contextvars; null: empty
  // the result, why there is none (no_result.cpp), the failure; before the start: ProcessFunction
  PyObject* outcome;
  union {
    runtime::ThreadProcess* thread;  // of a thread process that runs
    // of a coroutine: the operation that it awaits (awaiting.hpp); not owned, may be null
    PyObject* waits;
    NativeCall* native;  // of one on the pool: its call
  };
  union {
    GreenletState* greenlet_state;  // of a greenlet process that runs
    runtime::Scheduler* own;        // of one that runs apart
    PoolThread* pool;               // of one on the pool
  };
  GuestPart* guest;  // of a coroutine process of a network that is a guest (asyncio.hpp); else null
  Rare* rare;        // null: it needs none of it yet
  Kind kind;
  std::uint8_t started;
  // not started, without a warning: its program stops at its start, or it was `process * 0`
  std::uint8_t given_up;
  std::uint8_t done;
  std::uint8_t failed;
  Ending how;  // once it is done
  // it has put itself into the run queue: 1, it was asked to; 2, to give way (awaited.hpp)
  std::uint8_t yielded;
  // the collector sees the coroutine as a part of the process: it is not tracked itself
  std::uint8_t within;
  std::uint8_t owed;  // a wake-up is on its way that no operation waits for (awaiting.hpp)
  // its coroutine has ended, but it is owed a wake-up: its outcome is there already
  std::uint8_t over;
  std::uint8_t receives;  // it still holds an end that it received (held.cpp)
  // of a compatibility layer: any Retired or Poisoned that leaves it is quiet
  std::uint8_t lenient;
  std::uint8_t native_code;  // of a component, which says itself where in its source it is
#ifdef Py_GIL_DISABLED
  std::uint8_t stepping;  // its coroutine runs: its frames are not to be looked at
#endif
  EndObject* held[1];  // ob_size of them

  Watch* watch() const noexcept { return rare ? rare->watch.get() : nullptr; }
};
inline ProcessObject* proc(PyObject* o) noexcept { return reinterpret_cast<ProcessObject*>(o); }
// What its group knows it by, once it has been started.
inline ProcessBase& base_of(ProcessObject* p) noexcept;

struct BarrierObject {
  PyObject_HEAD PyObject* name;
  // of one that another OS process has made: the Reader at which a read is an arrival. Null: it was
  // made here, and the core is its
  PyObject* far;
  std::uint32_t generation;  // as of a channel
  BarrierEngine core;
};

extern PyTypeObject ChannelType, ReaderType, WriterType, OpType, ProcessType, ProcessFunctionType,
    BarrierType, TimerType, GuardType, EndType, InputType, OutputType, SelectOpType,
    AlternativeType, ExtendedType, GroupType, GroupOpType, LinkType, GuestType;

inline bool is_reader(PyObject* o) noexcept { return Py_IS_TYPE(o, &ReaderType); }
inline bool is_writer(PyObject* o) noexcept { return Py_IS_TYPE(o, &WriterType); }
inline bool is_end(PyObject* o) noexcept { return is_reader(o) || is_writer(o); }

// --- who runs ------------------------------------------------------------------------------------

// how a coroutine process is run; it also marks its kind (coroutine_of)
void coroutine_run(core::Waker* w);

inline ProcessObject* object_of(CoroutineProcess* p) noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  return reinterpret_cast<ProcessObject*>(reinterpret_cast<char*>(p) -
                                          offsetof(ProcessObject, base));
#pragma GCC diagnostic pop
}
inline ProcessObject* coroutine_of(ProcessBase* p) noexcept {
  return p && p->ops->run == &coroutine_run ? object_of(static_cast<CoroutineProcess*>(p))
                                            : nullptr;
}
// The coroutine process that is running on this thread, or null.
inline ProcessObject* current_coroutine() noexcept { return coroutine_of(this_process()); }

void pooled_run(core::Waker* w);  // the same for one on the pool
inline bool is_pooled(const ProcessBase& p) noexcept { return p.ops->run == &pooled_run; }
void greenlet_run(core::Waker* w);    // the same for a greenlet process
void greenlet_start(core::Waker* w);  // before it first ran
inline ProcessObject* greenlet_of(ProcessBase* p) noexcept {
  return p && (p->ops->run == &greenlet_run || p->ops->run == &greenlet_start)
             ? object_of(static_cast<CoroutineProcess*>(p))
             : nullptr;
}
inline ProcessObject* current_greenlet() noexcept { return greenlet_of(this_process()); }
// Any process that has an object; null for the outermost run's own thread.
ProcessObject* process_object(ProcessBase* p) noexcept;
// Has it ended, so that what runs in it is a finaliser? Then nobody would close what it opens.
inline bool is_over(ProcessBase* p) noexcept {
  const ProcessObject* const o = process_object(p);
  return o && o->done;
}

// A thread process, or (without an object) the thread that runs an outermost network.
struct PyRun;
struct ThreadProcess final : runtime::ThreadProcess {
  ProcessObject* object;
  PyThreadState* state = nullptr;
  // of a block in ordinary code: what it runs whenever it waits (home.cpp)
  runtime::Scheduler* home = nullptr;
#ifdef Py_GIL_DISABLED
  bool asleep = false;  // its frames stand still
#endif
  ThreadProcess(runtime::Run* r, ProcessObject* o) noexcept
      : runtime::ThreadProcess(r), object(o) {}
};

inline ProcessBase& base_of(ProcessObject* p) noexcept {
  return p->kind == Kind::thread && p->thread ? static_cast<ProcessBase&>(*p->thread) : p->base;
}

// A channel at which a process was blocked at a deadlock, while ends of the other side were open
// that no process had been given.
struct LeftOpen {
  ChannelObject* channel;  // owned
  bool readers;            // those ends are readers
};
// An outermost run: what the runtime's Run does not know.
struct PyRun {
  runtime::Run run;
  ThreadProcess self;
  PyThreadState* state = nullptr;
  runtime::Group* spawned = nullptr;
  // The exception that a signal's handler raised while the run slept. In the block of ordinary code
  // its thread raises it where it waits, or at its next operation (Cancel::host says so to it);
  // elsewhere the run is cancelled, and it is raised at its end.
  PyObject* interrupt = nullptr;
  bool interrupted = false;             // by Ctrl-C
  runtime::Scheduler* guest = nullptr;  // of a guest: it looks in its next turn
  // for a guest that concludes: does its loop have a signal handler that may act (handlers.hpp)?
  bool loop_acts = false;
  PyObject* generators = nullptr;  // its hook (generators.cpp); owned
#ifdef Py_GIL_DISABLED
  bool counted;          // its thread, among those that the interpreter counts (report.cpp)
  unsigned long thread;  // its identity
#endif
  std::vector<runtime::Report::Blocked> blocked;                    // at a deadlock
  std::vector<LeftOpen> left_open;                                  // at a deadlock
  bool in_block() const noexcept { return self.group != nullptr; }  // of ordinary code
  std::vector<PoolThread*> pool;  // its threads of the pool; under the GIL
  explicit PyRun(runtime::Clock c);
  PyRun(const PyRun&) = delete;
  PyRun& operator=(const PyRun&) = delete;
  ~PyRun();
};
PyRun& run_of(runtime::Run& r) noexcept;
// Threads that Weft started are not foreign to their run. `run` null: it is of no run, and idle.
void own_thread(PyThreadState* t, runtime::Run* run);
void lend_thread(PyThreadState* t);  // foreign to every run for a time
void disown_thread(PyThreadState* t) noexcept;
bool is_own_thread(PyThreadState* t) noexcept;
bool idle_worker(PyThreadState* t) noexcept;  // of the pool of io calls
// makes a worker of the pool foreign while it lives; on other threads nothing
class ForeignThread {
 public:
  ForeignThread() : worker_(idle_worker(PyThreadState_Get())) {
    if (worker_) lend_thread(PyThreadState_Get());
  }
  ForeignThread(const ForeignThread&) = delete;
  ForeignThread& operator=(const ForeignThread&) = delete;
  ~ForeignThread() {
    if (worker_) own_thread(PyThreadState_Get(), nullptr);
  }

 private:
  const bool worker_;
};
void forget_threads() noexcept;  // in the child of a fork
// each run looks again whether anything outside may wake it
void look_again() noexcept;
void look_again_in_loops() noexcept;  // only runs that are guests of a loop
// threads that are no processes may hold ends (rule 10.3)
void watch_outside(runtime::Run& run) noexcept;
#ifdef Py_GIL_DISABLED
// identities of the threads that are not foreign to every run, and that the interpreter counts
PyObject* known_of_all();
#else
// identities of the threads that are foreign to every run
PyObject* strangers_of_all();
#endif
void watch_standstill(runtime::Run& run) noexcept;  // rule 10.6
// no run, and no other Python thread that could use an end
bool nobody_else() noexcept;
// Of the live Python threads that are not the run's, as far as they can be seen. `run` null: of
// those that are no processes, without the caller's.
PyObject* foreign_idents(runtime::Run* run);
extern thread_local PyRun* root_run;  // the outermost run that this thread runs
PyObject* block_interrupt(
    // owned: what `p`, in the block of a run, is to raise instead of Cancelled; or null
    const ProcessBase& p) noexcept;

inline bool interpreter_ends() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// A thread for a process. False: there is none, and an exception is set, which says what to do
// `instead`.
bool begin_thread(void (*body)(void*), void* arg, const char* process, const char* instead);

// --- pending: what is done at the next safe point ------------------------------------------------

extern bool something_pending;
void run_deferred_now() noexcept;
bool ends_pending() noexcept;   // are ends queued, which this thread may retire?
void look_for_ends() noexcept;  // wakes a thread that sleeps, to retire them
void ring_loops() noexcept;     // wakes the loops of asyncio in which somebody waits
inline void run_deferred() noexcept {
  if (something_pending) [[unlikely]]
    run_deferred_now();
}

// --- errors --------------------------------------------------------------------------------------

struct Errors {
  PyObject *ChannelEnd, *Retired, *Poisoned, *PeerDied, *Cancelled, *BadUse, *Deadlock, *several,
      *Blocked, *Ended, *NoResult;
};
extern Errors errors;
int import_errors();

// A failure on its way through runtime::Group.
struct Failure {
  Owned<> exception;
  explicit Failure(PyObject* owned) noexcept : exception(owned) {}
  Failure(const Failure& o) noexcept : exception(new_ref(o.exception.get())) {}
};

// All set a Python exception and return null.
PyObject* bad_use(const char* format, ...);
// Is `o` a whole number from `least` to `most`, which `range` says in words? Else an exception is set.
bool whole_number(PyObject* o, const char* what, const char* range, Py_ssize_t least,
                  Py_ssize_t most, Py_ssize_t& to);
// `where`: what follows its repr, as " in a list"
PyObject* no_process(PyObject* o, const char* where);
PyObject* raise_closed(EndObject* e, const char* verb);
PyObject* limit_object(runtime::Limit* l) noexcept;          // borrowed; null: of null
PyObject* raise_cancelled(ProcessBase& p, PyObject* value);  // and the request to end has been met
// The channel has ended for the caller. `value`: what it meant to write, or null.
PyObject* raise_end(Status s, ChannelObject* c, const char* verb, int guard, PyObject* value,
                    bool met = true);
// a Retired or Poisoned: did an operation make it (rule 3.5)?
bool is_met(PyObject* end);
void only_failed(ChannelObject* c, const char* verb, const char* done) noexcept;  // errors.cpp
// asyncio was called where no loop runs: says what to do
void explain_no_loop(PyObject* failure) noexcept;
// Of which this is the core.
ChannelObject* channel_of_core(const Engine& core) noexcept;
std::string channel_name(ChannelObject* c);
PyObject* to_str(const std::string& s);
PyObject* take_exception();           // fetch, normalised, with its traceback; clears
void restore_exception(PyObject* e);  // steals

// --- ends ----------------------------------------------------------------------------------------

extern std::uint32_t generation;
// of a channel's generation: ends come through it
inline constexpr std::uint32_t kCarries = 0x80000000;
inline constexpr std::uint32_t kMarks = 0xFC000000;  // with those of wire.hpp
inline bool of_this_fork(const ChannelObject* c) noexcept {
  return (c->generation & ~kMarks) == generation;
}

// takes over one count of the core
PyObject* new_end(PyTypeObject* type, ChannelObject* c) noexcept;
void close_end(EndObject* e, EndState how) noexcept;
// -1: closed, or of another operating-system process; 1: ends come through its channel
int check_end(EndObject* e, const char* verb);
int check_barrier(const BarrierObject* b, const char* verb);
// __reduce_ex__ of a channel, an end, a barrier and a process (errors.cpp): bad use.
PyObject* no_copy(PyObject* o, PyObject*);
PyObject* make_transit(PyObject* end) noexcept;  // the receiver's end of a moved one (rule 2.4)

struct Transit {
  // the value of a write: an end is replaced by the one that will be the receiver's
  PyObject* original = nullptr;  // the sender's end, owned; null: an ordinary value
  // to_send: new reference
  static int prepare(PyObject* value, Transit& t, PyObject*& to_send) noexcept;
  void commit() noexcept;
  void abandon(PyObject* sent) noexcept;  // the write did not commit; steals `sent`
};

// Ends that processes hold (rules 2.3, 2.4), held.cpp.
// before an end, or a function that makes the value, is written to it
void carry_ends(ChannelObject* c) noexcept;
// unpacked and noted; null with an exception
PyObject* received(const ChannelObject* c, PyObject* value);
// By the process that runs: what it reads is what this returns. Owned.
inline PyObject* taken_from(const ChannelObject* c, PyObject* value) {
  if (c->generation & kCarries) [[unlikely]]
    return received(c, value);
  return value;
}
// it has ended, and has its outcome
void let_go(ProcessObject* p) noexcept;
void poison_held(ProcessObject* p, PyObject* poisoned) noexcept;  // left by that
void forget_received(EndObject* e) noexcept;                      // it is collected

// --- operations ----------------------------------------------------------------------------------

PyObject* operation_read(PyObject* end, bool next);
PyObject* operation_write(PyObject* end, PyObject* value);
// awaited, wherever it is called, it gives 0 (weft.compat.apycsp)
PyObject* operation_write_zero(PyObject* end, PyObject* value);
PyObject* operation_sync(BarrierObject* b);
// PeerDied (rule 8.7). Null.
PyObject* raise_barrier_died(const char* verb, int guard = -1);
// Is that a barrier of another OS process? (far_barrier.cpp)
bool is_far_barrier(const ChannelObject* c) noexcept;
// Several at a time (many.cpp).
PyObject* reader_read_many(PyObject* reader, PyObject* most);
PyObject* reader_blocks(PyObject* reader, PyObject* most);
PyObject* writer_write_many(PyObject* writer, PyObject* values);
// an awaitable that is done: for __aenter__ and the like
PyObject* operation_ready(PyObject* owned);
PyObject* operation_yield();
PyObject* extended_new(PyObject* end, bool keeps);
// tp_iternext, send, throw, close over an am_send (returned.cpp).
PyObject* iternext_by(sendfunc send, PyObject* self);
// the same for a method, which must set StopIteration also for None
PyObject* send_by(sendfunc send, PyObject* self);
PyObject* raise_thrown(PyObject* const* args, Py_ssize_t n);

// This thread begins what another program answers, and waits for it next: what it says goes then
// (feed.hpp).
inline constinit thread_local bool says_and_waits = false;

// What is done at the wake-up with an operation that nobody awaits any longer (awaited.hpp).
using Late = void (*)(PyObject*, ProcessBase&) noexcept;

// Who calls an operation that blocks, and how it waits: a thread sleeps, a greenlet lets others
// run.
class Caller {
 public:
  // converts to false if it cannot block here: BadUse is set
  explicit Caller(const char* verb) noexcept;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  explicit operator bool() const noexcept { return process_ != nullptr; }

  ProcessBase& process() const noexcept { return *process_; }
  runtime::Run* run() const noexcept { return greenlet_ ? &process_->group->run : thread_->run; }
  ProcessObject* greenlet() const noexcept { return greenlet_; }
  bool cancelled() const noexcept {
    return process_->cancel().load(std::memory_order_relaxed) != 0;
  }
  Value& slot() noexcept { return *slot_; }

  // Waits until the operation, which began with `s`, is decided; returns its status. Serves
  // cancellations and timers meanwhile.
  Status wait(Status s, const runtime::OpKind& kind) noexcept;
  // Begins what another program answers (wire/lazily.hpp); it is waited for next.
  template <class F>
  Status begin_lazily(F&& begins) const noexcept {
    if (!sleeps_here()) return begins();
    const auto lazily = [&] {
      const wire::Lazily soon;
      return begins();
    };
    return begin_saying(lazily, Status::pending);
  }
  template <class F, class R>
  R begin_saying(F&& begins, R waits) const {
    if (!sleeps_here()) return begins();
    says_and_waits = true;
    const R r = begins();
    says_and_waits = false;
    if (r != waits) settle();
    return r;
  }
  void yield() noexcept;
  // The operation was withdrawn: Cancelled, unless a signal's exception takes its place.
  PyObject* withdrawn(PyObject* value);
  // The result of the operation, unless something was thrown into the greenlet. If too many
  // operations have completed at once, the others run first (rule 7.7).
  PyObject* give(PyObject* owned) noexcept;

 private:
  // Does wait() put this thread to sleep, and nothing else?
  bool sleeps_here() const noexcept;
  PyObject* give_way(PyObject* owned) noexcept;
  void run_others() noexcept;  // of a greenlet
  // It has not slept after all: what it has put off is done now.
  static void settle() noexcept;

  ProcessBase* process_ = nullptr;
  runtime::ThreadProcess* thread_ = nullptr;
  ProcessObject* greenlet_ = nullptr;
  Owned<> thrown_;
  bool waited_ = false;
  Value own_;
  Value* slot_ = &own_;
};
// what a signal's handler raised in a plain thread that waits
extern thread_local PyObject* guest_interrupt;
bool deferred_runs_here() noexcept;  // a finaliser runs (pending.cpp)
void init_caller() noexcept;

extern const runtime::OpKind wait_op;

// --- processes -----------------------------------------------------------------------------------

inline bool is_async(Kind k) noexcept { return k == Kind::coroutine || k == Kind::apart; }
using Ends = std::vector<Owned<EndObject>>;
// the open ends in an argument and in the containers in it (rule 2.3)
int collect_ends(PyObject* o, Ends& to);
// takes over the ends; the caller fills it, then calls made()
ProcessObject* new_process(Kind kind, Ends& ends);
void made(ProcessObject* p) noexcept;  // it is whole, and not started
// until it is started, the collector sees its coroutine as a part of it
void take_within(ProcessObject* p) noexcept;
// the collector tracks its coroutine again, if that is so
void leave_within(ProcessObject* p) noexcept;
// kept for ever; null: an exception is set
const char* intern(PyObject* name);
// -1: one was started before (rule 7.6), and none is claimed
int claim_processes(PyObject* list);
// one that is claimed; a failure to start is its own failure
void start_process(runtime::Group& g, ProcessObject* p);
// ends those that were not claimed (rules 2.3, 6.5)
void never_run(PyObject* list) noexcept;
// Flatten processes and iterables of them, one level, to a list.
PyObject* process_list(PyObject* const* args, Py_ssize_t n);
PyObject* process_ended(PyObject* o, PyObject*);
PyObject* how_it_ended(ProcessObject* p);           // an Ended
void name_watch(ProcessObject* p);                  // it has been started, or just watched
bool watched_by_others(ProcessObject* p) noexcept;  // does its failure go to watchers that live?
void tell_watchers(ProcessObject* p) noexcept;      // it is done, and somebody may watch
void forget_watchers(ProcessObject* p) noexcept;
// of the process whose end it is; null: it has not been started
runtime::Run* run_of_end(const core::SyncObject& e) noexcept;
// of a thread or a greenlet: what the function returns
PyObject* call_body(ProcessObject* p);
// it has ended with `result` (owned) or the current exception
void end_process(ProcessObject* p, ProcessBase& b, PyObject* result);

// --- the thread of a block in ordinary code ------------------------------------------------------

// from here on it is a process of `s`
void enter_home(ThreadProcess& t, runtime::Scheduler& s);
// before that scheduler goes
void leave_home(ThreadProcess& t) noexcept;
// null: it is none
runtime::Scheduler* home_here(runtime::ThreadProcess& t) noexcept;
// until the operation that has begun is decided
void wait_home(runtime::ThreadProcess& t, const runtime::OpKind& kind) noexcept;
void yield_home(runtime::ThreadProcess& t) noexcept;

// --- greenlets -----------------------------------------------------------------------------------

int need_greenlets();  // -1: there are none, ImportError is set
// until it is run again; false: by a throw, the exception is set
bool greenlet_park(ProcessObject* p) noexcept;
Value& greenlet_slot(ProcessObject* p) noexcept;  // of its operation
// where it is parked, or null without an exception
PyObject* greenlet_frame(ProcessObject* p);
void drop_greenlet_state(ProcessObject* p) noexcept;
// it ends: its group takes over the groups whose blocks it never left (block.cpp)
void leave_blocks(ProcessBase& p) noexcept;
extern std::size_t blocks_open;
const runtime::ProcessOps& greenlet_ops_on(runtime::Scheduler& s);
runtime::Executor* executor_of_group(ProcessBase& p) noexcept;
void post_to_group(core::Waker* w) noexcept;

// What an outermost run comes to.
// what left the one process of a run, quietly (rule 7.1). Null
PyObject* raise_left(const std::exception_ptr& left);
// Raise what failed: the one exception, or a group of them (rule 7.2). `also`: the exception of the
// block, or null. Null.
PyObject* raise_failures(std::vector<std::exception_ptr> failures, PyObject* also = nullptr);
PyObject* raise_deadlock(PyRun& run);
// sentences for its report; forgets what was left open (left_open.cpp)
std::string say_left_open(PyRun& run);

runtime::Run* current_run() noexcept;
std::int64_t now_ns() noexcept;
std::optional<std::int64_t> to_ns(PyObject* seconds, const char* what);

// Types that a file defines; 0 or -1.
int init_channel(PyObject* m);
int init_operation(PyObject* m);
int init_many(PyObject* m);
int init_function(PyObject* m);
int init_process(PyObject* m);
int init_choice(PyObject* m);
int init_time(PyObject* m);
int init_group(PyObject* m);
int init_arrays(PyObject* m);
int init_report(PyObject* m);
int init_returned();
int init_greenlet(PyObject* m);
int init_io(PyObject* m);
int init_left_open(PyObject* m);
int init_limit(PyObject* m);
int init_line(PyObject* m);
int init_watch(PyObject* m);
int init_alloc(PyObject* m);

PyObject* process_times(PyObject* a, PyObject* b);
PyObject* channel_times(PyObject* a, PyObject* b);

inline int add_type(PyObject* m, const char* name, PyTypeObject* t) {
  return PyModule_AddObjectRef(m, name, reinterpret_cast<PyObject*>(t));
}

// A function that keeps its arguments there: what the package's Python gives the extension at its
// import.
template <PyObject**... To>
PyObject* keep_given(PyObject*, PyObject* args) {
  if (PyTuple_GET_SIZE(args) != sizeof...(To))
    return PyErr_Format(PyExc_TypeError, "%zu arguments are wanted", sizeof...(To));
  Py_ssize_t i = 0;
  (Owned(std::exchange(*To, Py_NewRef(PyTuple_GET_ITEM(args, i++)))).reset(), ...);
  Py_RETURN_NONE;
}

template <class F>
PyCFunction method(F f) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace weft::py
