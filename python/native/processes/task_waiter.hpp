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
  TaskWaiter *next = nullptr, *before = nullptr;  // of the same loop
  LinkObject* link;                               // owned
  // whose it is: the loop's current task as it began, only compared; null: none
  const void* task;
  PyObject* future = nullptr;  // what its task waits on, owned
  bool listed = false;         // among those to be told
  bool woken = false;          // somebody has decided
  bool owed = false;           // its task was cancelled after the commit (rule 6.3)
  // Its task is gone, but it has committed and a partner holds it: its operation, kept until the
  // wake-up, and what is done with it then. (A task that is closed was killed.)
  PyObject* kept = nullptr;
  Late late = nullptr;
  Outcome outcome;  // of one that gives way

  explicit TaskWaiter(LinkObject* l) noexcept;
  ~TaskWaiter();
  // What the task is to wait on until the task waiter is told or woken.
  PySendResult await(PyObject** r) noexcept;
  bool is_mine() const noexcept;  // the running task's
};
bool task_lives(TaskWaiter* p) noexcept;
// another task drops what it waits for: it is told
void let_waiting_task_go_on(TaskWaiter* p) noexcept;

// For an operation that begins in a task: a task waiter, or null with an exception (no loop: `verb`
// outside any process; cancelled).
std::unique_ptr<TaskWaiter> begin_task_waiter(const char* verb) noexcept;
bool is_cancellation(PyObject* const* thrown, Py_ssize_t n) noexcept;  // asyncio's
// The running task was cancelled after its operation had committed: the cancellation comes at its
// next point (rule 6.3).
void owe_cancellation() noexcept;
void raise_cancellation() noexcept;  // asyncio's, in place of what is raised

}  // namespace weft::py
