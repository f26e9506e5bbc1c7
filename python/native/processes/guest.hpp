// What the two files of a guest share: the network (guest.cpp) and each of its processes, a task to
// asyncio (guest_process.cpp).
#pragma once
#include "owned.hpp"
#include "processes/asyncio.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

struct PyRun;

struct EndWaker : core::Waker {  // a group has ended
  GuestObject* guest;
  bool waiting;
};

struct GuestObject {
  PyObject_HEAD PyObject* list;  // the processes it was made of
  LinkObject* link;              // owned
  PyObject* turn;                // bound
  PyObject* ring_up;             // bound: what the timer calls
  PyObject* waiter;              // the future of the task that waits for the end
  PyObject* timer;               // the loop's handle
  PyObject* look_up;             // bound: what the timer of a standstill calls (rule 10.6)
  PyObject* look;                // the loop's handle for that; null: none
  std::uint32_t standstill;      // which is to be looked at
  // of an open block: the task whose block it is, which a failure here cancels (rules 7.5, 13.4)
  PyObject* task;
  PyRun* run;  // null: finished
  runtime::Scheduler* scheduler;
  runtime::Group *group, *spawned;
  runtime::ThreadProcess::Hosting* hosting;  // of an open block: whoever asks it to end rings us
  EndWaker ends[2];
  GuestObject* next_due;
  GuestObject *next, *before;  // of the same loop
  std::int64_t armed;          // what `timer` is for
  std::size_t awaiting;        // processes that wait for futures
  std::uint8_t looks;          // in vain, since the last wake-up, for what else is on the loop
  bool due;                    // listed: to be scheduled
  bool scheduled;              // turn() is among the loop's callbacks
  bool resting;
  bool open;  // a block that may start more
  bool told;  // its task was cancelled, by us
  bool ended;
  bool in_turn;
  bool gone;                  // its loop will not run any more
  prim::atomic<bool> called;  // by who has no GIL: to be listed
};

extern PyTypeObject GuestType;

// A process of a guest.
struct GuestPart {
  Owned<GuestObject> guest;
  Owned<> task;              // what asyncio.current_task() gives
  Owned<> wakeup;            // called when the future is done
  Owned<> future;            // that it awaits
  Owned<> message;           // of a cancellation
  bool must_cancel = false;  // asked for by task.cancel(), not yet raised
  bool interrupted = false;  // its operation was withdrawn for that
};

inline PyObject* obj(GuestObject* g) noexcept { return reinterpret_cast<PyObject*>(g); }

// Interned, and from weft._backends.asyncio; there once a guest has been made.
struct GuestNames {
  PyObject *swap, *tasks;  // _swap_current_task, or the dictionary of current tasks
  PyObject *make_task, *alone, *drive, *leave, *current_task;
  PyObject *call_soon, *call_later, *cancel, *add_done_callback, *remove_done_callback, *get_loop,
      *blocking, *end;
};
extern GuestNames names;

// within a turn: it is the loop's current task from here on
void enter_task(PyObject* task) noexcept;
// in a callback of the loop, between two turns, when a process of it has been woken
void turn_at_once(GuestObject* g) noexcept;

}  // namespace weft::py
