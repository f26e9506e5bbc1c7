// What the two files of composition share: those that start processes and wait for them at once
// (group.cpp), and the block of a Group (block.cpp).
#pragma once
#include <exception>
#include <vector>

#include "owned.hpp"
#include "value.hpp"
#include "weft/compose.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

class Caller;
class Outermost;
struct GuestObject;
struct PyRun;

// A failure on its way through runtime::Group.
struct Failure {
  Owned<> exception;
  explicit Failure(PyObject* owned) noexcept : exception(owned) {}
  Failure(const Failure& o) noexcept : exception(new_ref(o.exception.get())) {}
};

enum class GroupState : std::uint8_t { made, open, left, ended };

struct GroupObject {
  PyObject_HEAD PyObject* list;  // the processes
  runtime::Group* group;         // while open
  PyObject* block;               // the exception that left the block
  Outermost* outermost;          // that the block is, in ordinary code
  runtime::Scheduler* scheduler;
  runtime::Group* spawned;
  runtime::Group* home;  // of the run's own thread, while the block goes on
  GuestObject* guest;    // the network that the block is, in an asyncio task
  // of a block: the process, or the asyncio task, that entered it and is to leave it
  const void* owner;
  GroupObject* around;  // the block of the same owner in which it was entered
  PyObject* file;       // where it was entered
  int line;
  std::uint32_t generation;  // as of a channel
  std::uint32_t starting;    // processes are being started in it just now
  GroupState state;
  bool virtual_time;  // asked for
  bool borrowed;      // the scheduler: of a block around this one
};

extern PyTypeObject GroupType;

extern const runtime::OpKind wait_op;

GroupObject* new_group(Owned<> list);
// what is awaited in a coroutine process
PyObject* new_group_op(GroupObject* owned, bool parallel);
// in a greenlet process: the outcome
PyObject* wait_for(Caller& self, GroupObject* g, bool parallel);
// Its owner will not wait for it: its processes are cancelled, and `successor` waits for them.
void abandon_group(GroupObject* g, runtime::Group& successor) noexcept;

// Waits, as the scheduler of this thread, until the groups have ended.
void wait_here(runtime::Scheduler& scheduler, runtime::ThreadProcess& self, runtime::Group& group,
               runtime::Group* spawned);
// Raises what a network on a thread, `self`, came to, unless that is a result: false. `outermost`:
// null if it is within another.
bool raise_outcome(ProcessBase& self, PyRun* outermost, std::vector<std::exception_ptr>& failures,
                   PyObject* block = nullptr);
// what left the one process of a run, quietly (rule 7.1). Null
PyObject* raise_left(const std::exception_ptr& left);
// Raise what failed: the one exception, or a group of them (rule 7.2). `also`: the exception of the
// block, or null. Null.
PyObject* raise_failures(std::vector<std::exception_ptr> failures, PyObject* also = nullptr);
PyObject* raise_deadlock(PyRun& run);

}  // namespace weft::py
