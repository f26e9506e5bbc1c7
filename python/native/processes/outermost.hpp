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
  // Returns whether a signal has interrupted the run, also if the signal came before there were
  // processes that it could cancel.
  bool was_interrupted() const noexcept { return run.interrupt || run.interrupted; }
  // While the run is made, and from over() on, when all its processes have ended, code that runs on
  // the thread (a finaliser, a signal handler) finds an operation under way. So that code begins
  // nothing in a run that does not exist yet, or is about to be destroyed.
  void begun() noexcept { run.self.op = nullptr; }
  void over() noexcept;
  // Returns Ctrl-C and the thread to the program. The exception that a signal handler raised last
  // replaces `result`, if there is one.
  void end(PyObject*& result) noexcept;

 private:
  std::optional<ThreadProcess::Scope> scope_;
  std::optional<Interrupts> interrupts_;
  PyRun* const outer_;
  // The plain thread that this thread was before the run. While the run lasts, it takes over the
  // timeouts of that thread (rule 7.12).
  runtime::ThreadProcess* plain_ = nullptr;
};

}  // namespace weft::py
