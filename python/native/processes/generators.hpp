// Async generators of processes (rule 7.15).
#pragma once
#include "value.hpp"

namespace weft::py {

struct PyRun;

// While this lives, its thread runs the scheduler of a run, and the run is told of async generators
// that begin and are collected there.
class GeneratorHooks {
 public:
  explicit GeneratorHooks(runtime::Run& of) noexcept;
  GeneratorHooks(const GeneratorHooks&) = delete;
  GeneratorHooks& operator=(const GeneratorHooks&) = delete;
  ~GeneratorHooks();

 private:
  PyObject *first_ = nullptr, *last_ = nullptr;  // the thread's own, owned
  bool set_ = false;
};
// All processes of the run have ended: closes the generators that are still open, in processes
// among those that were spawned. False: there are none.
bool close_generators(runtime::Run& of) noexcept;
void forget_generators(PyRun& run) noexcept;  // the run goes

}  // namespace weft::py
