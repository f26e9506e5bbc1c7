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
  // By a signal that came before there were processes, and found nobody to cancel.
  bool was_interrupted() const noexcept { return run.interrupt || run.interrupted; }
  // While it is made, and from over() on, when all its processes have ended, code that runs on the
  // thread (a finaliser, a signal's handler) finds an operation under way: it begins nothing in a
  // run that is not there yet, or about to go.
  void begun() noexcept { run.self.op = nullptr; }
  void over() noexcept;
  // Ctrl-C and the thread are the program's again. `result`, if there is one, gives way to what a
  // signal's handler raised last.
  void end(PyObject*& result) noexcept;

 private:
  std::optional<ThreadProcess::Scope> scope_;
  std::optional<Interrupts> interrupts_;
  PyRun* const outer_;
  // that the thread is besides: its timeouts are the run's meanwhile (rule 7.12)
  runtime::ThreadProcess* plain_ = nullptr;
};

}  // namespace weft::py
