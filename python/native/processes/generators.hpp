// How the async generators that processes have left open are closed (rule 7.15).
#pragma once
#include "value.hpp"

namespace weft::py {

struct PyRun;

// While this lives, its thread runs the scheduler of a run, and tells the run of async generators
// that begin and are collected there.
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
// All processes of the run have ended: closes the generators that are still open, in spawned
// processes. Returns false if there are none.
bool close_generators(runtime::Run& of) noexcept;
void forget_generators(PyRun& run) noexcept;  // the run goes

}  // namespace weft::py
