// The object that Python code sees as a process, and functions that return the running process.
// life.hpp declares the functions for processes.
//
// Invariant: a process has at most one outstanding operation. The operation's node is in the
// process, and its slot is in the operation. While a greenlet is parked, its stack may hold the
// frames of another greenlet, so memory that other code may use is not on a stack.
#pragma once
#include <cstddef>
#include <cstdint>

#include "value.hpp"
#include "weft/runtime/own_thread.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

// How a process ended.
enum class Ending : std::uint8_t { returned, retired, poisoned, cancelled, failed };

// The runtime's part of a process that a scheduler runs: a coroutine or a greenlet.
struct CoroutineProcess final : ProcessBase {
  CoroutineProcess() = default;
};

// The types of processes: `apart` is a coroutine on its own scheduler and thread, `pooled` a
// coroutine of a native component (component_pool.cpp).
enum class Kind : std::uint8_t { coroutine, thread, greenlet, apart, pooled };
inline bool is_async(Kind k) noexcept { return k == Kind::coroutine || k == Kind::apart; }

struct EndObject;
struct GreenletState;  // the greenlet of a greenlet process (greenlet.cpp)
struct GuestPart;
struct NativeCall;
class PoolThread;
struct Rare;
struct Watch;

struct ProcessObject {
  PyObject_VAR_HEAD  // ob_size: the number of ends held
      CoroutineProcess base;
  // The coroutine; for other types of process a tuple (function, arguments, keywords). Null once
  // the process has ended.
  PyObject* body;
  PyObject* context;  // the process's context variables; null if there are none
  // The result, or the reason why there is none (no_result.cpp), or the failure; before the start,
  // the ProcessFunction.
  PyObject* outcome;
  union {
    runtime::ThreadProcess* thread;  // for a thread process that runs
    // For a coroutine: the operation that it awaits (awaiting.hpp); borrowed, can be null.
    PyObject* waits;
    NativeCall* native;  // for a process on the pool: its call
  };
  union {
    GreenletState* greenlet_state;  // for a greenlet process that runs
    runtime::Scheduler* own;        // for a coroutine apart
    PoolThread* pool;               // for a process on the pool
  };
  // For a coroutine process of a network that is a guest (guests.hpp); otherwise null.
  GuestPart* guest;
  Rare* rare;  // null as long as the process needs no rare field
  Kind kind;
  std::uint8_t started;
  // Whether the process will not be started, which gives no warning: the program stops at its
  // start, or the process was made by `process * 0`.
  std::uint8_t given_up;
  std::uint8_t done;
  std::uint8_t failed;
  Ending how;  // valid once the process is done
  // Whether the process has put itself into the run queue: 1 means that the program asked for it, 2
  // that the process gives way (awaited.hpp).
  std::uint8_t yielded;
  // Whether the collector treats the coroutine as part of the process, and does not track it.
  std::uint8_t within;
  std::uint8_t owed;  // whether a wake-up is under way for which no operation waits (awaiting.hpp)
  // Whether the coroutine has ended with a known outcome while the process is still owed a wake-up.
  std::uint8_t over;
  // Whether the process still holds an end that it received in an extended read (held.cpp).
  std::uint8_t receives;
  std::uint8_t native_code;  // whether this is a component's process, which itself reports its
                             // place in its source
#ifdef Py_GIL_DISABLED
  std::uint8_t stepping;  // whether the coroutine is running, so that its frames must not be
                          // examined
#endif
  EndObject* held[1];  // ob_size ends

  Watch* watch() const noexcept;  // defined in rare.hpp
};
extern PyTypeObject ProcessType;
inline ProcessObject* proc(PyObject* o) noexcept { return reinterpret_cast<ProcessObject*>(o); }

// Returns the part of the process that its group knows, once the process has been started.
inline ProcessBase& base_of(ProcessObject* p) noexcept {
  return p->kind == Kind::thread && p->thread ? static_cast<ProcessBase&>(*p->thread) : p->base;
}

// Runs a coroutine process; the address of this function also identifies a process as a coroutine
// (coroutine_of).
void coroutine_run(core::Waker* w);

inline CoroutineProcess* coroutine_of(core::Waker* w) noexcept {
  return static_cast<CoroutineProcess*>(static_cast<ProcessBase*>(w));
}
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
// Returns the coroutine process that is running on this thread; null if there is none.
inline ProcessObject* current_coroutine() noexcept { return coroutine_of(this_process()); }

// Returns the object of any process that has one; null for the outermost run's own thread.
ProcessObject* process_object(ProcessBase* p) noexcept;
// Returns whether the process has ended. In a process that has ended only a finaliser can run, and
// no code would close what the finaliser opens.
inline bool is_over(ProcessBase* p) noexcept {
  const ProcessObject* const o = process_object(p);
  return o && o->done;
}

}  // namespace weft::py
