// Records the steps of processes, for a watchdog that checks them (observe.cpp).
#pragma once
#include "value.hpp"

namespace weft::py {

struct ProcessObject;
struct PyRun;

// Written under the GIL; also read without it.
extern prim::atomic<bool> steps_are_watched;  // whether a watchdog checks the steps of schedulers
inline bool stepping() noexcept { return steps_are_watched.load(std::memory_order_relaxed); }

// The step of a thread of the pool, which runs without the GIL (component_pool.cpp). The thread
// writes `process` last when a step begins, and first when a step ends. A reader, with the GIL,
// reads `process` first. That process still exists, because the thread needs the GIL to end it, and
// `since` belongs to this step or to a later one.
struct WatchedStep {
  unsigned long thread = 0;
  prim::atomic<ProcessObject*> process{nullptr};
  prim::atomic<std::int64_t> since{0};
  prim::atomic<std::uint64_t> number{0};
  void begin(ProcessObject* p) noexcept;
  void end() noexcept {
    if (process.load(std::memory_order_relaxed)) process.store(nullptr, std::memory_order_seq_cst);
  }
};
void each_pooled_step(PyRun& run, void (*f)(const WatchedStep&, void*), void* to);

void step_begins(ProcessObject* p) noexcept;
void step_ends() noexcept;
// called in the child of a fork, where the threads of these steps do not exist
void forget_steps() noexcept;

}  // namespace weft::py
