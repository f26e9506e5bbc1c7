// Weft inside a running asyncio loop (rules 6.6 and 13): what is known of a loop, its tasks that
// wait at channels, and networks that are its guests.
//
//   told, woken, work for a guest ──ring()──► on the loop's thread, in a Section: passed on when the section is left
//                                        └──► else: its eventfd, whose reader opens a section
//
// Invariants
//  1 ring() runs no Python code and may be called wherever a waker is woken; the loop's own methods
//    are called only from deliver(), which runs on the loop's thread, under no lock.
//  2 A Link refers to its loop weakly: it lives in the loop's reader, in `weft._backends.asyncio`, and in
//    whoever waits.
//  3 A guest and a task waiter keep the task that waits, which keeps the loop. A closed loop lets
//    go of its reader, and that (a Bell) tells the link's guests and waiters to let go: tasks that
//    asyncio has left pending can then be collected, which gives up what they waited for.
#pragma once
#include <optional>

#include "value.hpp"

namespace weft::py {

struct TaskWaiter;
struct GuestObject;

struct LinkObject {
  PyObject_HEAD PyObject* loop;  // a weak reference
  TaskWaiter* told;              // to be told, in order
  TaskWaiter* told_last;
  GuestObject* due;     // guests that have work
  GuestObject* guests;  // all that have not ended
  TaskWaiter* waiters;  // all
  int bell;             // eventfd; -1: closed
  bool dirty;
  bool virtual_time;  // its clock is the loop's own: see loop_time()
  // How many operations of the task `counted` have completed at once since one waited (rule 7.7).
  std::uint32_t at_once;
  const void* counted;  // only compared
  prim::atomic<bool> rung;
};

extern PyTypeObject LinkType;

// The link of the loop that runs on this thread; borrowed. Null without an exception: none runs;
// null with one: it cannot be joined.
LinkObject* link_here() noexcept;
PyObject* loop_of(LinkObject* l) noexcept;  // owned; null without an exception: it is gone
// ns of the running loop's own clock, if it says that its time is virtual (rule 13.7).
std::optional<std::int64_t> loop_time() noexcept;
void ring(LinkObject* l) noexcept;

void set_future(PyObject* future) noexcept;  // to None, unless it is done

// While it lasts, what is told is collected; then it is passed on. Only on the loop's thread; null:
// does nothing.
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
const void* current_task() noexcept;  // the running loop's
// n operations of a task have completed at once. True: it must let other tasks of the loop run.
bool count_at_once(LinkObject& l, const void* task, std::size_t n) noexcept;
// neither done nor collected, and its loop is not closed
bool task_lives(LinkObject* l, const void* task) noexcept;

}  // namespace weft::py
