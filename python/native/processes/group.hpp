// What the two files of composition share: those that start processes and wait for them at once
// (group.cpp), and the block of a Group (block.cpp).
#pragma once
#include "interpreter/interrupt.hpp"
#include "processes/asyncio.hpp"
#include "processes/caller.hpp"
#include "processes/no_result.hpp"
#include "weft/compose.hpp"
#include "weft/runtime/limit.hpp"

namespace weft::py {

// An outermost run of ordinary code, whose thread is a process of it.
class Outermost {
 public:
  explicit Outermost(runtime::Clock clock);
  Outermost(const Outermost&) = delete;
  Outermost& operator=(const Outermost&) = delete;
  ~Outermost() = default;

  PyRun run;
  // By a signal that came before there were processes, and found nobody to cancel.
  bool was_interrupted() const noexcept { return run.interrupt || run.interrupted; }
  // While it is made, and from over() on, when all its processes have ended, code that runs on the
  // thread (a finaliser, a signal's handler) finds an operation under way: it begins nothing in a
  // run that is not there yet, or about to go.
  void begun() noexcept { run.self.op = nullptr; }
  void over() noexcept;
  // Ctrl-C and the thread are the program's again. `result`, if there is one, gives way to what a
  // signal's handler raised last.
  void end(PyObject*& result) noexcept;

 private:
  std::optional<ThreadProcess::Scope> scope_;
  std::optional<Interrupts> interrupts_;
  PyRun* const outer_;
  // that the thread is besides: its timeouts are the run's meanwhile (rule 7.12)
  runtime::ThreadProcess* plain_ = nullptr;
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

GroupObject* new_group(Owned<> list);
// what is awaited in a coroutine process
PyObject* new_group_op(GroupObject* owned, bool parallel);
// in a greenlet process: the outcome
PyObject* wait_for(Caller& self, GroupObject* g, bool parallel);
// Its owner will not wait for it: its processes are cancelled, and `successor` waits for them.
void abandon_group(GroupObject* g, runtime::Group& successor) noexcept;
void end_block(GroupObject* g) noexcept;  // it is among the open blocks no more
void forget_blocks() noexcept;            // in the child of a fork
// After code of the user's has run within a wait, with the exception that it raised: in the child of
// a fork that it made this program ends (rule 11.4). `before`: the generation before it ran.
void not_in_child(std::uint32_t before);
// _end_program(exception │ None): ends this program, with 0, or as that exception ends a program.
// The code on the calling thread goes no further: no `finally` of it runs.
PyObject* f_end_program(PyObject*, PyObject* error);
PyObject* f_continue_with_parent(PyObject*, PyObject*);
// of ordinary code on this thread, that nobody can leave any more
void close_left_blocks() noexcept;
// Those that claim_processes() has claimed and nobody will start now.
void unclaim_processes(PyObject* list) noexcept;

// Waits, as the scheduler of this thread, until the groups have ended.
void wait_here(runtime::Scheduler& scheduler, runtime::ThreadProcess& self, runtime::Group& group,
               runtime::Group* spawned);
// Raises what a network on a thread, `self`, came to, unless that is a result: false. `outermost`:
// null if it is within another.
bool raise_outcome(ProcessBase& self, PyRun* outermost, std::vector<std::exception_ptr>& failures,
                   PyObject* block = nullptr);

// While this lives, its thread runs the scheduler of a run, and the run is told of async generators
// that begin and are collected there (rule 7.15, generators.cpp).
class GeneratorHooks {
 public:
  explicit GeneratorHooks(runtime::Run& of) noexcept;
  GeneratorHooks(const GeneratorHooks&) = delete;
  GeneratorHooks& operator=(const GeneratorHooks&) = delete;
  ~GeneratorHooks();

 private:
  PyObject *first_ = nullptr, *last_ = nullptr;  // the thread's own, owned
  bool set_ = false;
};
// All processes of the run have ended: closes the generators that are still open, in processes among
// those that were spawned. False: there are none.
bool close_generators(runtime::Run& of) noexcept;
void forget_generators(PyRun& run) noexcept;  // the run goes

}  // namespace weft::py
