// Processes and runs, as all rooms see them. processes/processes.hpp has what is done with them.
#pragma once
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "native.hpp"
#include "weft/core/standing.hpp"
#include "weft/runtime/own_thread.hpp"
#include "weft/runtime/report.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

// How a process ended.
enum class Ending : std::uint8_t { returned, retired, poisoned, cancelled, failed };

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
  std::uint8_t receives;     // it still holds an end that it received (held.cpp)
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
extern thread_local PyRun* root_run;  // the outermost run that this thread runs
runtime::Run* current_run() noexcept;
const std::set<PyRun*>& every_run() noexcept;
// `run` null: the one of this thread
void keep_interrupt_for(PyRun* run, PyObject* owned) noexcept;

bool in_asyncio() noexcept;  // a loop runs on this thread
// and the caller is no process of a scheduler: a task, or a callback
bool in_task() noexcept;
// Cancelled; and the request to end has been met
PyObject* raise_cancelled(ProcessBase& p, PyObject* value);

// A failure on its way through runtime::Group.
struct Failure {
  Owned<> exception;
  explicit Failure(PyObject* owned) noexcept : exception(owned) {}
  Failure(const Failure& o) noexcept : exception(new_ref(o.exception.get())) {}
};

// What is done at the wake-up with an operation that nobody awaits any longer (awaited.hpp).
using Late = void (*)(PyObject*, ProcessBase&) noexcept;

}  // namespace weft::py
