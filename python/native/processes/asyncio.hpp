// Weft inside a running asyncio loop (rules 6.6 and 13): the link to a loop, the loop's tasks that
// wait at channels, and the networks that are its guests.
//
//   notified, woken, work for a guest ──ring()──► on the loop's thread, in a Section: passed on when the section is left
//                                            └──► else: its eventfd, whose reader opens a section
//
// Invariants
//  1 ring() runs no Python code and may be called wherever a waker is woken. The loop's own methods
//    are called only from deliver(), which runs on the loop's thread without any lock held.
//  2 A Link refers to its loop weakly. The Link is kept alive by the loop's reader, by
//    `weft._backends.asyncio`, and by every object that waits.
//  3 A guest and a task waiter keep the task that waits alive, and the task keeps the loop alive. A
//    closed loop drops its reader, a Bell, which makes the link's guests and waiters drop their
//    tasks. So tasks that asyncio has left pending can be collected; the operations for which they
//    waited are then abandoned.
#pragma once
#include <optional>

#include "value.hpp"

namespace weft::py {

struct TaskWaiter;
struct GuestObject;

struct LinkObject {
  PyObject_HEAD PyObject* loop;  // a weak reference
  TaskWaiter* told;              // waiters that are to be notified, in order
  TaskWaiter* told_last;
  GuestObject* due;     // guests that have work to do
  GuestObject* guests;  // all guests that have not ended
  TaskWaiter* waiters;  // all waiters
  int bell;             // an eventfd; -1: closed
  bool dirty;
  bool virtual_time;  // whether the loop's own time is virtual: see loop_time()
  // How many operations of the task `counted` have completed without waiting since an operation of
  // that task last waited (rule 7.7).
  std::uint32_t at_once;
  const void* counted;  // for comparison only
  prim::atomic<bool> rung;
};

extern PyTypeObject LinkType;

// Returns the link of the loop that runs on this thread (borrowed). Null without an exception: no
// loop runs. Null with an exception: the loop cannot be used.
LinkObject* link_here() noexcept;
// Returns the loop, a new reference; null without an exception if the loop no longer exists.
PyObject* loop_of(LinkObject* l) noexcept;
// The time of the running loop's own clock in ns, if the loop says that its time is virtual (rule
// 13.7).
std::optional<std::int64_t> loop_time() noexcept;
void ring(LinkObject* l) noexcept;

// sets the future's result to None, unless the future is done
void set_future(PyObject* future) noexcept;

// While a Section exists, notices to waiters are collected; its destructor delivers them. Sections
// are used only on the loop's thread. A Section with a null link has no effect.
class Section {
 public:
  explicit Section(LinkObject* l) noexcept;
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section();

 private:
  LinkObject* link_;
  LinkObject* outer_;
};
const void* current_task() noexcept;  // the current task of the running loop
// Counts n operations of a task that have completed without waiting. Returns true if the task must
// now let other tasks of the loop run.
bool count_at_once(LinkObject& l, const void* task, std::size_t n) noexcept;
// Returns whether the task is neither done nor collected, and its loop is not closed.
bool task_lives(LinkObject* l, const void* task) noexcept;

}  // namespace weft::py
