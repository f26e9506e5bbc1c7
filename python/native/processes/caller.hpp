// The caller of an operation that blocks (caller.cpp).
#pragma once
#include "owned.hpp"
#include "processes/process.hpp"
#include "weft/wire/lazily.hpp"
#include "wire/saying.hpp"

namespace weft::py {

// Who calls an operation that blocks, and how it waits: a thread sleeps, a greenlet lets others
// run.
class Caller {
 public:
  // converts to false if it cannot block here: BadUse is set
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

  // Waits until the operation, which began with `s`, is decided; returns its status. Serves
  // cancellations and timers meanwhile.
  Status wait(Status s, const runtime::OpKind& kind) noexcept;
  // Begins what another program answers (wire/lazily.hpp); it is waited for next.
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
  // The operation was withdrawn: Cancelled, unless a signal's exception takes its place.
  PyObject* withdrawn(PyObject* value);
  // The result of the operation, unless something was thrown into the greenlet. If too many
  // operations have completed at once, the others run first (rule 7.7).
  PyObject* give(PyObject* owned) noexcept;

 private:
  // Does wait() put this thread to sleep, and nothing else?
  bool sleeps_here() const noexcept;
  PyObject* give_way(PyObject* owned) noexcept;
  void run_others() noexcept;  // of a greenlet
  // It has not slept after all: what it has put off is done now.
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
