// How the thread of a block in ordinary code becomes a process of a scheduler, and waits
// (block_thread.cpp).
#pragma once
#include "value.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

struct ThreadProcess;

// Makes the thread a process of the scheduler `s`.
void join_scheduler(ThreadProcess& t, runtime::Scheduler& s);
// Called before the scheduler that the thread joined is destroyed.
void leave_scheduler(ThreadProcess& t) noexcept;
// Returns the scheduler that the thread joined; null if the thread is not a process of one.
runtime::Scheduler* scheduler_of_block(runtime::ThreadProcess& t) noexcept;
// Waits until the operation that has begun has its outcome.
void wait_in_block(runtime::ThreadProcess& t, const runtime::OpKind& kind) noexcept;
void yield_in_block(runtime::ThreadProcess& t) noexcept;

// --- in a check ---
// Returns the queue of the block's scheduler; null if the thread is in no block.
core::RunQueue* queue_of_block(runtime::ThreadProcess& t) noexcept;
// Called when the thread is in the queue that queue_of_block() returns. Runs the scheduler until
// the thread's turn comes.
void go_on_in_block(runtime::ThreadProcess& t) noexcept;
void block_thread_run(core::Waker* w);

}  // namespace weft::py
