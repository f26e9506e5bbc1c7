// What is done with processes, for the other rooms: how they are made, start and end (process.cpp,
// group.cpp), the thread of a block in ordinary code (home.cpp), greenlets.
#pragma once
#include "process.hpp"

namespace weft::py {

inline bool is_async(Kind k) noexcept { return k == Kind::coroutine || k == Kind::apart; }
// the open ends in an argument and in the containers in it (rule 2.3)
int collect_ends(PyObject* o, Ends& to);
// takes over the ends; the caller fills it, then calls made()
ProcessObject* new_process(Kind kind, Ends& ends);
void made(ProcessObject* p) noexcept;  // it is whole, and not started
// until it is started, the collector sees its coroutine as a part of it
void take_within(ProcessObject* p) noexcept;
// the collector tracks its coroutine again, if that is so
void leave_within(ProcessObject* p) noexcept;
// kept for ever; null: an exception is set
const char* intern(PyObject* name);
// -1: one was started before (rule 7.6), and none is claimed
int claim_processes(PyObject* list);
// one that is claimed; a failure to start is its own failure
void start_process(runtime::Group& g, ProcessObject* p);
// ends those that were not claimed (rules 2.3, 6.5)
void never_run(PyObject* list) noexcept;
// Flatten processes and iterables of them, one level, to a list.
PyObject* process_list(PyObject* const* args, Py_ssize_t n);
PyObject* process_ended(PyObject* o, PyObject*);
PyObject* how_it_ended(ProcessObject* p);           // an Ended
void name_watch(ProcessObject* p);                  // it has been started, or just watched
bool watched_by_others(ProcessObject* p) noexcept;  // does its failure go to watchers that live?
void tell_watchers(ProcessObject* p) noexcept;      // it is done, and somebody may watch
void forget_watchers(ProcessObject* p) noexcept;
// of the process whose end it is; null: it has not been started
runtime::Run* run_of_end(const core::SyncObject& e) noexcept;
// of a thread or a greenlet: what the function returns
PyObject* call_body(ProcessObject* p);
// it has ended with `result` (owned) or the current exception
void end_process(ProcessObject* p, ProcessBase& b, PyObject* result);

// --- the thread of a block in ordinary code ------------------------------------------------------

// from here on it is a process of `s`
void enter_home(ThreadProcess& t, runtime::Scheduler& s);
// before that scheduler goes
void leave_home(ThreadProcess& t) noexcept;
// null: it is none
runtime::Scheduler* home_here(runtime::ThreadProcess& t) noexcept;
// until the operation that has begun is decided
void wait_home(runtime::ThreadProcess& t, const runtime::OpKind& kind) noexcept;
void yield_home(runtime::ThreadProcess& t) noexcept;

// --- greenlets -----------------------------------------------------------------------------------

int need_greenlets();  // -1: there are none, ImportError is set
// until it is run again; false: by a throw, the exception is set
bool greenlet_park(ProcessObject* p) noexcept;
Value& greenlet_slot(ProcessObject* p) noexcept;  // of its operation
// where it is parked, or null without an exception
PyObject* greenlet_frame(ProcessObject* p);
void drop_greenlet_state(ProcessObject* p) noexcept;
// it ends: its group takes over the groups whose blocks it never left (block.cpp)
void leave_blocks(ProcessBase& p) noexcept;
extern std::size_t blocks_open;
const runtime::ProcessOps& greenlet_ops_on(runtime::Scheduler& s);
runtime::Executor* executor_of_group(ProcessBase& p) noexcept;
void post_to_group(core::Waker* w) noexcept;

// what left the one process of a run, quietly (rule 7.1). Null
PyObject* raise_left(const std::exception_ptr& left);
// Raise what failed: the one exception, or a group of them (rule 7.2). `also`: the exception of the
// block, or null. Null.
PyObject* raise_failures(std::vector<std::exception_ptr> failures, PyObject* also = nullptr);
PyObject* raise_deadlock(PyRun& run);
// threads that are no processes may hold ends (rule 10.3)
void watch_outside(runtime::Run& run) noexcept;
void watch_standstill(runtime::Run& run) noexcept;  // rule 10.6
PyObject* block_interrupt(
    // owned: what `p`, in the block of a run, is to raise instead of Cancelled; or null
    const ProcessBase& p) noexcept;
// borrowed; null for null
PyObject* limit_object(runtime::Limit* l) noexcept;
// `where`: what follows its repr, as " in a list"
PyObject* no_process(PyObject* o, const char* where);
PyObject* process_times(PyObject* a, PyObject* b);
std::string say_left_open(PyRun& run);

}  // namespace weft::py
