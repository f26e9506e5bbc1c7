// The caller of an operation that blocks (caller.cpp).
#pragma once
#include "owned.hpp"
#include "processes/process.hpp"
#include "weft/wire/lazily.hpp"
#include "wire/saying.hpp"

namespace weft::py {

// The caller of an operation that blocks, and its way of waiting: a thread sleeps, a greenlet lets
// other processes run.
class Caller {
 public:
  // Converts to false, with BadUse set, if the caller cannot block here.
  explicit Caller(const char* verb) noexcept;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  explicit operator bool() const noexcept { return process_ != nullptr; }

  ProcessBase& process() const noexcept { return *process_; }
  runtime::Run* run() const noexcept { return greenlet_ ? &process_->group->run : thread_->run; }
  ProcessObject* greenlet() const noexcept { return greenlet_; }
  bool cancelled() const noexcept {
    return process_->cancel().load(std::memory_order_relaxed) != 0;
  }
  Value& slot() noexcept { return *slot_; }

  // Waits until the operation, which began with `s`, has its outcome. Returns its status. Meanwhile
  // the caller serves cancellations and timers.
  Status wait(Status s, const runtime::OpKind& kind) noexcept;
  // Begins an operation that another program answers (wire/lazily.hpp). The caller waits for the
  // answer next.
  template <class F>
  Status begin_lazily(F&& begins) const noexcept {
    if (!sleeps_here()) return begins();
    const auto lazily = [&] {
      const wire::Lazily soon;
      return begins();
    };
    return begin_saying(lazily, Status::pending);
  }
  template <class F, class R>
  R begin_saying(F&& begins, R waits) const {
    if (!sleeps_here()) return begins();
    says_and_waits = true;
    const R r = begins();
    says_and_waits = false;
    if (r != waits) settle();
    return r;
  }
  void yield() noexcept;
  // Called when the operation has been withdrawn. Raises the exception of a signal handler if there
  // is one, otherwise Cancelled.
  PyObject* withdrawn(PyObject* value);
  // Returns the result of the operation, unless an exception was thrown into the greenlet. If too
  // many operations have completed without waiting, other processes run first (rule 7.7).
  PyObject* give(PyObject* owned) noexcept;

 private:
  // Returns whether wait() only puts this thread to sleep.
  bool sleeps_here() const noexcept;
  PyObject* give_way(PyObject* owned) noexcept;
  void run_others() noexcept;  // lets other processes run first; for a greenlet
  // Called when the thread has not slept after all. Does the work that the thread has postponed.
  static void settle() noexcept;

  ProcessBase* process_ = nullptr;
  runtime::ThreadProcess* thread_ = nullptr;
  ProcessObject* greenlet_ = nullptr;
  Owned<> thrown_;
  bool waited_ = false;
  Value own_;
  Value* slot_ = &own_;
};
}  // namespace weft::py
