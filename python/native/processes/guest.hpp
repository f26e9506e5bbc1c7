// Shared by the two files of a guest. guest.cpp implements the network, guest_process.cpp its
// processes, each of which asyncio sees as a task.
#pragma once
#include "owned.hpp"
#include "processes/asyncio.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

struct PyRun;

struct EndWaker : core::Waker {  // a waker that is posted when a group has ended
  GuestObject* guest;
  bool waiting;
};

struct GuestObject {
  PyObject_HEAD PyObject* list;  // the processes of the network
  LinkObject* link;              // owned
  PyObject* turn;                // the bound method turn(), which is scheduled on the loop
  PyObject* ring_up;             // the bound method that the timer calls
  PyObject* waiter;              // the future of the task that waits for the end
  PyObject* timer;               // the loop's handle of the timer
  // The bound method that the timer of a standstill calls (rule 10.6).
  PyObject* look_up;
  PyObject* look;            // the loop's handle of that timer, or null
  std::uint32_t standstill;  // the number of the standstill that is to be examined
  // The task that owns this open block; a failure in the block cancels the task (rules 7.5, 13.4).
  PyObject* task;
  PyRun* run;  // null once the guest is finished
  runtime::Scheduler* scheduler;
  runtime::Group *group, *spawned;
  // Only for an open block: an object through which a request to end the block wakes the guest.
  runtime::ThreadProcess::Hosting* hosting;
  EndWaker ends[2];
  GuestObject* next_due;
  GuestObject *next, *before;  // the guests of the same loop
  std::int64_t armed;          // the time for which `timer` is set, in ns
  std::size_t awaiting;        // how many processes wait for futures
  // How many times since its last wake-up the guest has searched the loop for other work in vain.
  std::uint8_t looks;
  bool due;        // whether the guest is in the list of guests that are to be scheduled
  bool scheduled;  // whether turn() is among the loop's callbacks
  bool resting;
  bool open;  // whether the guest is a block that can start more processes
  bool told;  // whether Weft has cancelled the guest's task
  bool ended;
  bool in_turn;
  bool gone;                  // whether the guest's loop will never run again
  prim::atomic<bool> called;  // whether a thread without the GIL asks to have the guest listed
};

extern PyTypeObject GuestType;

// The fields that only a process of a guest has.
struct GuestPart {
  Owned<GuestObject> guest;
  Owned<> task;     // the object that asyncio.current_task() gives
  Owned<> wakeup;   // called when the future is done
  Owned<> future;   // the future that the process awaits
  Owned<> message;  // the message of a cancellation
  // Whether task.cancel() has asked for a cancellation that the process has not raised yet.
  bool must_cancel = false;
  bool interrupted = false;  // whether that cancellation withdrew the process's operation
};

inline PyObject* obj(GuestObject* g) noexcept { return reinterpret_cast<PyObject*>(g); }

// Interned names, and functions of weft._backends.asyncio. They are set when the first guest is
// made.
struct GuestNames {
  PyObject *swap, *tasks;  // _swap_current_task, or the dictionary of current tasks
  PyObject *make_task, *alone, *drive, *leave, *current_task;
  PyObject *call_soon, *call_later, *cancel, *add_done_callback, *remove_done_callback, *get_loop,
      *blocking, *end;
};
extern GuestNames names;

// Makes `task` the loop's current task, within a turn.
void enter_task(PyObject* task) noexcept;
// Called in a callback of the loop, between two turns, when a process of the guest has been woken.
void turn_at_once(GuestObject* g) noexcept;

}  // namespace weft::py
