// Shared by the two files of composition. group.cpp starts processes and waits for them
// immediately; block.cpp implements the block of a Group.
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

// The form in which a runtime::Group stores a failure.
struct Failure {
  Owned<> exception;
  explicit Failure(PyObject* owned) noexcept : exception(owned) {}
  Failure(const Failure& o) noexcept : exception(new_ref(o.exception.get())) {}
};

enum class GroupState : std::uint8_t { made, open, left, ended };

struct GroupObject {
  PyObject_HEAD PyObject* list;  // the processes
  runtime::Group* group;         // not null while the group is open
  PyObject* block;               // the exception that left the block
  Outermost* outermost;          // in ordinary code: the block as an outermost run
  runtime::Scheduler* scheduler;
  runtime::Group* spawned;
  runtime::Group* own_group;  // the group of the run's own thread, while the block lasts
  GuestObject* guest;         // in an asyncio task: the block as a network
  // The process or asyncio task that entered the block and has to leave it.
  const void* owner;
  GroupObject* around;  // the enclosing block of the same owner
  PyObject* file;       // the file in which the block was entered
  int line;
  // the generation of the OS process that made the group, as for channels
  std::uint32_t generation;
  std::uint32_t starting;  // how many processes of the group are being started at the moment
  GroupState state;
  bool virtual_time;  // whether virtual time was requested
  bool borrowed;      // whether the scheduler belongs to an enclosing block
};

extern PyTypeObject GroupType;

extern const runtime::OpKind wait_op;

GroupObject* new_group(Owned<> list);
// Returns the object that a coroutine process awaits.
PyObject* new_group_op(GroupObject* owned, bool parallel);
// Waits in a greenlet process; returns the outcome.
PyObject* wait_for(Caller& self, GroupObject* g, bool parallel);
// Called when the group's owner will not wait for it. Its processes are cancelled, and `successor`
// waits for them.
void abandon_group(GroupObject* g, runtime::Group& successor) noexcept;

// Waits, as the scheduler of this thread, until the groups have ended.
void wait_here(runtime::Scheduler& scheduler, runtime::ThreadProcess& self, runtime::Group& group,
               runtime::Group* spawned);
// Called in a check when ordinary code in a block continues after a network within the block. Other
// processes can run first.
void goes_on_after(runtime::ThreadProcess& self, std::initializer_list<runtime::Group*> groups);
// Returns false if the network on the thread `self` has a result; otherwise raises the network's
// outcome, and returns true. `outermost` is null for a network within another network.
bool raise_outcome(ProcessBase& self, PyRun* outermost, std::vector<std::exception_ptr>& failures,
                   PyObject* block = nullptr);
// Raises the exception that left the one process of a run quietly (rule 7.1). Returns null.
PyObject* raise_left(const std::exception_ptr& left);
// Raises the failures: the one exception, or a group of them (rule 7.2). `also` is the exception of
// the block, or null. Returns null.
PyObject* raise_failures(std::vector<std::exception_ptr> failures, PyObject* also = nullptr);
PyObject* raise_deadlock(PyRun& run);

}  // namespace weft::py
