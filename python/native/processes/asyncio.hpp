// Weft inside a running asyncio loop (rules 6.6 and 13): the link to a loop, the loop's tasks that
// wait at channels, and the networks that are its guests.
//
//   told, woken, work for a guest ──ring()──► on the loop's thread, in a Section: passed on when the section is left
//                                        └──► else: its eventfd, whose reader opens a section
//
// Invariants
//  1 ring() runs no Python code and may be called wherever a waker is woken; the loop's own methods
//    are called only from deliver(), which runs on the loop's thread, under no lock.
//  2 A Link refers to its loop weakly: the loop's reader, `weft._backends.asyncio`, and all that
//    wait keep the Link alive.
//  3 A guest and a task waiter keep the task that waits, which keeps the loop. A closed loop lets
//    go of its reader, a Bell, which tells the link's guests and waiters to let go: tasks that
//    asyncio has left pending can then be collected, which gives up what they waited for.
#pragma once
#include <optional>

#include "value.hpp"

namespace weft::py {

struct TaskWaiter;
struct GuestObject;

struct LinkObject {
  PyObject_HEAD PyObject* loop;  // a weak reference
  TaskWaiter* told;              // waiters to be told, in order
  TaskWaiter* told_last;
  GuestObject* due;     // guests that have work to do
  GuestObject* guests;  // all guests that have not ended
  TaskWaiter* waiters;  // all waiters
  int bell;             // eventfd; -1: closed
  bool dirty;
  bool virtual_time;  // its clock is the loop's own: see loop_time()
  // The number of operations of the task `counted` that have completed at once since one waited
  // (rule 7.7).
  std::uint32_t at_once;
  const void* counted;  // for comparison only
  prim::atomic<bool> rung;
};

extern PyTypeObject LinkType;

// Returns the link of the loop that runs on this thread; borrowed. Null without an exception: no
// loop runs. Null with an exception: the loop cannot be joined.
LinkObject* link_here() noexcept;
// A new reference; null without an exception: the loop is gone.
PyObject* loop_of(LinkObject* l) noexcept;
// The time of the running loop's own clock in ns, if the loop says that its time is virtual (rule
// 13.7).
std::optional<std::int64_t> loop_time() noexcept;
void ring(LinkObject* l) noexcept;

void set_future(PyObject* future) noexcept;  // sets its result to None, unless it is done

// While it lives, notices to waiters are collected; then they are passed on. Only on the loop's
// thread. A null link: it does nothing.
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
// n operations of a task have completed at once. Returns true if the task must let other tasks of
// the loop run.
bool count_at_once(LinkObject& l, const void* task, std::size_t n) noexcept;
// True if the task is neither done nor collected, and its loop is not closed.
bool task_lives(LinkObject* l, const void* task) noexcept;

}  // namespace weft::py
