// How the steps of processes are noted, for a watchdog that looks at them (observe.cpp).
#pragma once
#include "value.hpp"

namespace weft::py {

struct ProcessObject;
struct PyRun;

// Written under the GIL, read without it too.
extern prim::atomic<bool> steps_are_watched;  // a watchdog looks at what the schedulers run
inline bool stepping() noexcept { return steps_are_watched.load(std::memory_order_relaxed); }

// Of a thread of the pool, which runs without the GIL (component_pool.cpp). It writes `process`
// last as a step begins and first as one ends; who reads it, with the GIL, reads it first: the
// process is there, for to end it that thread needs the GIL, and `since` is its own or a later one.
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
void forget_steps() noexcept;  // in the child of a fork: those threads are not there

}  // namespace weft::py
