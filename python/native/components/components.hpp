// Native components, for the other rooms.
#pragma once
#include "value.hpp"

namespace weft::py {

struct ChannelObject;
struct ProcessObject;
struct ThreadProcess;

void start_pooled(runtime::Group& g, ProcessObject* p);
// Before a native channel gets ends in other OS processes: when it returns no component is in an
// operation there without the GIL, and none begins one. May give up the GIL, but not from its last
// look on.
void go_abroad(const ChannelObject* c);

// how a process on the pool is run; it also marks its kind
void pooled_run(core::Waker* w);
inline bool is_pooled(const ProcessBase& p) noexcept { return p.ops->run == &pooled_run; }

// Does it run a component, which says itself where it is? With the GIL.
bool in_component(const ThreadProcess& t) noexcept;

// Tasks of asyncio that wait at channels (TaskWaiter). They are told any number of times, and go
// when they like: who tells them must have the GIL from its look at the line to its last word. So
// while there is one, operations of components are done with the GIL (component_calls.cpp); the
// first of them waits until those that were begun without it are over.
void task_waiter_comes();  // may give up the GIL
void task_waiter_goes() noexcept;
// In the child of a fork: the parent's calls are nowhere. One that was in an operation at the fork
// would be waited for without end.
void forget_calls() noexcept;

}  // namespace weft::py
