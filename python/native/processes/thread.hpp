// A ThreadProcess represents a thread that is a process.
#pragma once
#include "processes/process.hpp"

namespace weft::py {

// A thread process, or (without an object) the thread that runs an outermost network.
struct ThreadProcess final : runtime::ThreadProcess {
  ProcessObject* object;
  PyThreadState* state = nullptr;
  // For a block in ordinary code: the scheduler that the thread runs whenever it waits
  // (block_thread.cpp).
  runtime::Scheduler* block_scheduler = nullptr;
#ifdef Py_GIL_DISABLED
  bool asleep = false;  // whether the thread sleeps, so that its frames do not change
#endif
  ThreadProcess(runtime::Run* r, ProcessObject* o) noexcept
      : runtime::ThreadProcess(r), object(o) {}
};

}  // namespace weft::py
