// A TaskWaiter is a task of asyncio that waits at a channel, at a barrier or in a select (rule
// 6.6).
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
  // The task: the loop's current one at the beginning, for comparison only; null: none.
  const void* task;
  PyObject* future = nullptr;  // the future that its task awaits, owned
  bool listed = false;         // it is among the waiters to be told
  bool woken = false;          // its operation is decided
  bool owed = false;           // its task was cancelled after the commit (rule 6.3)
  // The task is gone, but its operation has committed and a partner holds it. The operation is kept
  // until the wake-up; `late` is called then. (A task that is closed counts as gone.)
  PyObject* kept = nullptr;
  Late late = nullptr;
  Outcome outcome;  // the outcome of an operation that gives way

  explicit TaskWaiter(LinkObject* l) noexcept;
  ~TaskWaiter();
  // Gives the future for which the task waits until the task waiter is told or woken.
  PySendResult await(PyObject** r) noexcept;
  bool is_mine() const noexcept;  // does it belong to the running task?
};
bool task_lives(TaskWaiter* p) noexcept;
// Another task drops the operation for which this one waits: this task is told.
void let_waiting_task_go_on(TaskWaiter* p) noexcept;

// Makes a task waiter for an operation that begins in a task. Null with an exception: no loop runs
// (`verb` outside any process), or the task was cancelled.
std::unique_ptr<TaskWaiter> begin_task_waiter(const char* verb) noexcept;
bool is_cancellation(PyObject* const* thrown, Py_ssize_t n) noexcept;  // asyncio's
// The running task was cancelled after its operation had committed: the cancellation comes at its
// next point (rule 6.3).
void owe_cancellation() noexcept;
void raise_cancellation() noexcept;  // asyncio's, in place of what is raised

}  // namespace weft::py
