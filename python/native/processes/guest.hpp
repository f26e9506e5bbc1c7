// What the two files of a guest share. guest.cpp has the network, guest_process.cpp its processes,
// each of which is a task to asyncio.
#pragma once
#include "owned.hpp"
#include "processes/asyncio.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

struct PyRun;

struct EndWaker : core::Waker {  // posted when a group has ended
  GuestObject* guest;
  bool waiting;
};

struct GuestObject {
  PyObject_HEAD PyObject* list;  // the processes of the network
  LinkObject* link;              // owned
  PyObject* turn;                // a bound method
  PyObject* ring_up;             // a bound method: the timer calls it
  PyObject* waiter;              // the future of the task that waits for the end
  PyObject* timer;               // the loop's handle of the timer
  PyObject* look_up;             // a bound method: the timer of a standstill calls it (rule 10.6)
  PyObject* look;                // the loop's handle of that timer; null: none
  std::uint32_t standstill;      // the number of the standstill to look at
  // The task whose open block this is; a failure here cancels it (rules 7.5, 13.4).
  PyObject* task;
  PyRun* run;  // null: the guest is finished
  runtime::Scheduler* scheduler;
  runtime::Group *group, *spawned;
  // For an open block: a request to end it rings the guest.
  runtime::ThreadProcess::Hosting* hosting;
  EndWaker ends[2];
  GuestObject* next_due;
  GuestObject *next, *before;  // the guests of the same loop
  std::int64_t armed;          // the time for which `timer` is set
  std::size_t awaiting;        // how many processes wait for futures
  std::uint8_t looks;          // looks for other work on the loop, in vain, since the last wake-up
  bool due;                    // it is in the list of guests to be scheduled
  bool scheduled;              // turn() is among the loop's callbacks
  bool resting;
  bool open;  // a block that may start more processes
  bool told;  // Weft has cancelled its task
  bool ended;
  bool in_turn;
  bool gone;                  // its loop will not run any more
  prim::atomic<bool> called;  // a thread without the GIL asks to list it
};

extern PyTypeObject GuestType;

// A process of a guest.
struct GuestPart {
  Owned<GuestObject> guest;
  Owned<> task;              // the object that asyncio.current_task() gives
  Owned<> wakeup;            // called when the future is done
  Owned<> future;            // the future that it awaits
  Owned<> message;           // the message of a cancellation
  bool must_cancel = false;  // task.cancel() has asked for a cancellation, which is not raised yet
  bool interrupted = false;  // its operation was withdrawn for that
};

inline PyObject* obj(GuestObject* g) noexcept { return reinterpret_cast<PyObject*>(g); }

// Interned names, and functions of weft._backends.asyncio. They are there once a guest has been
// made.
struct GuestNames {
  PyObject *swap, *tasks;  // _swap_current_task, or the dictionary of current tasks
  PyObject *make_task, *alone, *drive, *leave, *current_task;
  PyObject *call_soon, *call_later, *cancel, *add_done_callback, *remove_done_callback, *get_loop,
      *blocking, *end;
};
extern GuestNames names;

// Makes it the loop's current task from here on, within a turn.
void enter_task(PyObject* task) noexcept;
// Called in a callback of the loop, between two turns, when a process of the guest has been woken.
void turn_at_once(GuestObject* g) noexcept;

}  // namespace weft::py
