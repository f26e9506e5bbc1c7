// The object that Python sees as a process, and which process runs here. life.hpp has what is done
// with processes.
//
// Invariant: a process has at most one outstanding operation. The operation's node is in the
// process, and its slot is in the operation. While a greenlet is parked its stack may hold the
// frames of another greenlet, so nothing that others may touch is there.
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

// Where a process runs: `apart` is a coroutine on a scheduler and a thread of its own, `pooled` one
// of a native component (component_pool.cpp).
enum class Kind : std::uint8_t { coroutine, thread, greenlet, apart, pooled };
inline bool is_async(Kind k) noexcept { return k == Kind::coroutine || k == Kind::apart; }

struct EndObject;
struct GreenletState;  // a greenlet process's greenlet (greenlet.cpp)
struct GuestPart;
struct NativeCall;
class PoolThread;
struct Rare;
struct Watch;

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
  GuestPart* guest;  // of a coroutine process of a network that is a guest (guests.hpp); else null
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

  Watch* watch() const noexcept;  // rare.hpp
};
extern PyTypeObject ProcessType;
inline ProcessObject* proc(PyObject* o) noexcept { return reinterpret_cast<ProcessObject*>(o); }

// What its group knows it by, once it has been started.
inline ProcessBase& base_of(ProcessObject* p) noexcept {
  return p->kind == Kind::thread && p->thread ? static_cast<ProcessBase&>(*p->thread) : p->base;
}

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

// Any process that has an object; null for the outermost run's own thread.
ProcessObject* process_object(ProcessBase* p) noexcept;
// Has it ended, so that what runs in it is a finaliser? Then nobody would close what it opens.
inline bool is_over(ProcessBase* p) noexcept {
  const ProcessObject* const o = process_object(p);
  return o && o->done;
}

}  // namespace weft::py
