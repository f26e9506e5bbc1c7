// How an outermost run of ordinary code begins and ends (group.cpp).
#pragma once
#include <optional>

#include "interpreter/interrupt.hpp"
#include "processes/run.hpp"

namespace weft::py {

// An outermost run of ordinary code, whose thread is a process of it.
class Outermost {
 public:
  explicit Outermost(runtime::Clock clock);
  Outermost(const Outermost&) = delete;
  Outermost& operator=(const Outermost&) = delete;
  ~Outermost() = default;

  PyRun run;
  // Returns whether a signal has interrupted the run, even if the signal arrived before there were
  // processes to cancel.
  bool was_interrupted() const noexcept { return run.interrupt || run.interrupted; }
  // While the run is being made, and from over() on, when all its processes have ended, code that
  // runs on the thread (a finaliser, a signal handler) finds an operation under way. Therefore that
  // code cannot begin anything in a run that does not exist yet, or is about to be destroyed.
  void begun() noexcept { run.self.op = nullptr; }
  void over() noexcept;
  // Restores the program's handling of Ctrl-C and its use of the thread. If a signal handler raised
  // an exception last, that exception replaces `result`.
  void end(PyObject*& result) noexcept;

 private:
  std::optional<ThreadProcess::Scope> scope_;
  std::optional<Interrupts> interrupts_;
  PyRun* const outer_;
  // The plain thread that this thread was before the run. During the run, the timeouts of that
  // thread belong to the run (rule 7.12).
  runtime::ThreadProcess* plain_ = nullptr;
};

}  // namespace weft::py
