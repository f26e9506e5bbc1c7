// Functions that make, start and end processes, and that end a whole program.
#pragma once
#include "channels/channel.hpp"
#include "processes/process.hpp"

namespace weft::py {

// Makes a process that takes ownership of the ends. The caller fills it, and then calls made().
ProcessObject* new_process(Kind kind, Ends& ends);
// Called when the process object is complete, before the process is started.
void made(ProcessObject* p) noexcept;
// From now on, until the process is started, the collector treats the process's coroutine as part
// of the process.
void take_within(ProcessObject* p) noexcept;
// From now on the collector tracks the coroutine again, if it was treated as part of the process.
void leave_within(ProcessObject* p) noexcept;
// Claims all processes in the list. Returns -1, and claims none, if one of them was already started
// (rule 7.6).
int claim_processes(PyObject* list);
// Starts a claimed process. If the start fails, that counts as a failure of the process itself.
void start_process(runtime::Group& g, ProcessObject* p);
// Releases the processes that claim_processes() has claimed but that will not be started now.
void unclaim_processes(PyObject* list) noexcept;
// Ends the processes that were never claimed (rules 2.3, 6.5).
void never_run(PyObject* list) noexcept;
// Calls the function of a thread or greenlet process; returns its result.
PyObject* call_body(ProcessObject* p);
// Called when the process has ended with `result` (owned) or, if that is null, with the current
// exception.
void end_process(ProcessObject* p, ProcessBase& b, PyObject* result);
runtime::Executor* executor_of_group(ProcessBase& p) noexcept;
void post_to_group(core::Waker* w) noexcept;
// Starts a thread for a process. If no thread can be started, returns false with an exception,
// whose message contains the advice `instead`.
bool begin_thread(void (*body)(void*), void* arg, const char* process, const char* instead);

// Called after user code has run within a wait, with the exception that it raised. If that code has
// made a fork and this is the child, the program ends (rule 11.4). `before` is the generation
// before the code ran.
void not_in_child(std::uint32_t before);
// _end_program(exception │ None): ends this program with status 0, or as that exception ends a
// program. The code on the calling thread does not continue, and none of its `finally` blocks runs.
PyObject* f_end_program(PyObject*, PyObject* error);
PyObject* f_continue_with_parent(PyObject*, PyObject*);

}  // namespace weft::py
