// A TaskWaiter represents a task of asyncio that waits at a channel, at a barrier or in a select
// (rule 6.6).
#pragma once
#include <memory>

#include "processes/asyncio.hpp"
#include "processes/awaiting.hpp"
#include "processes/outcome.hpp"

namespace weft::py {

struct TaskWaiter final : runtime::ProcessBase {
  TaskWaiter* next_told = nullptr;
  TaskWaiter *next = nullptr, *before = nullptr;  // the waiters of the same loop
  LinkObject* link;                               // owned
  // The loop's current task when the operation began, used only for comparison; null if there was
  // none.
  const void* task;
  PyObject* future = nullptr;  // the future that the task awaits, owned
  bool listed = false;         // whether the waiter is in the list of those to be notified
  bool woken = false;          // whether the operation has its outcome
  bool owed = false;           // whether the task was cancelled after the commit (rule 6.3)
  // The operation of a task that no longer exists or is closed, if the operation has committed and
  // a partner holds it. The operation is kept until the wake-up, when `late` is called.
  PyObject* kept = nullptr;
  Late late = nullptr;
  Outcome outcome;  // the outcome of an operation that gives way

  explicit TaskWaiter(LinkObject* l) noexcept;
  ~TaskWaiter();
  // Returns the future for which the task waits until the task waiter is notified or woken.
  PySendResult await(PyObject** r) noexcept;
  bool is_mine() const noexcept;  // returns whether the waiter belongs to the running task
};
bool task_lives(TaskWaiter* p) noexcept;
// Called when another task drops the operation that the task of `p` waits for. The task of `p` is
// notified.
void let_waiting_task_go_on(TaskWaiter* p) noexcept;

// Makes a task waiter for an operation that begins in a task. Returns null with an exception if no
// loop runs (`verb` was used outside any process), or the task was cancelled.
std::unique_ptr<TaskWaiter> begin_task_waiter(const char* verb) noexcept;
// Returns whether the thrown exception is asyncio's cancellation.
bool is_cancellation(PyObject* const* thrown, Py_ssize_t n) noexcept;
// Called when the running task was cancelled after its operation had committed. The cancellation
// takes effect at the task's next point (rule 6.3).
void owe_cancellation() noexcept;
// Raises asyncio's cancellation instead of the current exception.
void raise_cancellation() noexcept;

}  // namespace weft::py
