// Closes the async generators that processes have left open (rule 7.15).
#pragma once
#include "value.hpp"

namespace weft::py {

struct PyRun;

// While this object exists, its thread runs the scheduler of a run. Async generators that begin or
// are collected on the thread are reported to that run.
class GeneratorHooks {
 public:
  explicit GeneratorHooks(runtime::Run& of) noexcept;
  GeneratorHooks(const GeneratorHooks&) = delete;
  GeneratorHooks& operator=(const GeneratorHooks&) = delete;
  ~GeneratorHooks();

 private:
  PyObject *first_ = nullptr, *last_ = nullptr;  // the thread's own hooks, owned
  bool set_ = false;
};
// Called when all processes of the run have ended: closes the generators that are still open, in
// spawned processes. Returns false if there are none.
bool close_generators(runtime::Run& of) noexcept;
void forget_generators(PyRun& run) noexcept;  // called when the run is destroyed

}  // namespace weft::py
