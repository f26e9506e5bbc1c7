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
  // Returns whether a signal has interrupted the run, even if it came before there were processes
  // to cancel.
  bool was_interrupted() const noexcept { return run.interrupt || run.interrupted; }
  // While the run is being made, and from over() on, when all its processes have ended, code that
  // runs on the thread (a finaliser, a signal handler) finds an operation under way. So that code
  // cannot begin anything in a run that does not exist yet, or is about to be destroyed.
  void begun() noexcept { run.self.op = nullptr; }
  void over() noexcept;
  // Gives Ctrl-C and the thread back to the program. The exception that a signal handler raised
  // last, if any, replaces `result`.
  void end(PyObject*& result) noexcept;

 private:
  std::optional<ThreadProcess::Scope> scope_;
  std::optional<Interrupts> interrupts_;
  PyRun* const outer_;
  // The plain thread that this thread was before the run. During the run, the run takes over the
  // timeouts of that thread (rule 7.12).
  runtime::ThreadProcess* plain_ = nullptr;
};

}  // namespace weft::py
