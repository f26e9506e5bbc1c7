// The functions of native components that other directories use.
#pragma once
#include "value.hpp"

namespace weft::py {

struct ChannelObject;
struct ProcessObject;
struct ThreadProcess;

void start_pooled(runtime::Group& g, ProcessObject* p);
// Called before ends of a native channel are made in other OS processes. When it returns, no
// component is in an operation at the channel without the GIL, and none can begin one. The function
// can release the GIL, but not after its last check of the components.
void go_abroad(const ChannelObject* c);

// Runs a process on the pool; the address of this function also marks the wakers of processes on
// the pool.
void pooled_run(core::Waker* w);
// Runs a coroutine of a component in a check, on the scheduler of the check.
void checked_component_run(core::Waker* w);
inline bool is_pooled(const ProcessBase& p) noexcept {
  return p.ops->run == &pooled_run || p.ops->run == &checked_component_run;
}

// Returns whether the thread runs a component, which itself reports its place in its source. The
// caller must hold the GIL.
bool in_component(const ThreadProcess& t) noexcept;

// Tasks of asyncio that wait at channels (TaskWaiter). Such a task may be woken any number of
// times, and may be destroyed at any time. Therefore a party that wakes it must hold the GIL from
// its first access to the waiting queue to its last. While such a task exists, operations of
// components are done with the GIL (component_calls.cpp); the first task waits until the operations
// that were begun without the GIL have ended.
void task_waiter_comes();  // can release the GIL
void task_waiter_goes() noexcept;
// Called in the child of a fork, where the parent's calls do not exist. Otherwise the child would
// wait forever for a call that was in an operation at the fork.
void forget_calls() noexcept;

}  // namespace weft::py
