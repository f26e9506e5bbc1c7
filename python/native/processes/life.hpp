// How processes are made, start and end.
#pragma once
#include "channels/channel.hpp"
#include "processes/process.hpp"

namespace weft::py {

// takes over the ends; the caller fills it, then calls made()
ProcessObject* new_process(Kind kind, Ends& ends);
void made(ProcessObject* p) noexcept;  // it is whole, and not started
// until it is started, the collector sees its coroutine as a part of it
void take_within(ProcessObject* p) noexcept;
// the collector tracks its coroutine again, if that is so
void leave_within(ProcessObject* p) noexcept;
// -1: one was started before (rule 7.6), and none is claimed
int claim_processes(PyObject* list);
// one that is claimed; a failure to start is its own failure
void start_process(runtime::Group& g, ProcessObject* p);
// Those that claim_processes() has claimed and nobody will start now.
void unclaim_processes(PyObject* list) noexcept;
// ends those that were not claimed (rules 2.3, 6.5)
void never_run(PyObject* list) noexcept;
// of a thread or a greenlet: what the function returns
PyObject* call_body(ProcessObject* p);
// it has ended with `result` (owned) or the current exception
void end_process(ProcessObject* p, ProcessBase& b, PyObject* result);
runtime::Executor* executor_of_group(ProcessBase& p) noexcept;
void post_to_group(core::Waker* w) noexcept;
// A thread for a process. False: there is none, and an exception is set, which says what to do
// `instead`.
bool begin_thread(void (*body)(void*), void* arg, const char* process, const char* instead);

// After code of the user's has run within a wait, with the exception that it raised: in the child
// of a fork that it made this program ends (rule 11.4). `before`: the generation before it ran.
void not_in_child(std::uint32_t before);
// _end_program(exception │ None): ends this program, with 0, or as that exception ends a program.
// The code on the calling thread goes no further: no `finally` of it runs.
PyObject* f_end_program(PyObject*, PyObject* error);
PyObject* f_continue_with_parent(PyObject*, PyObject*);

}  // namespace weft::py
