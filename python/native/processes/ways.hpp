// One struct for each type of caller says how an operation waits, is woken and is cancelled. An
// operation is written once, for all three structs (operation.cpp, select.cpp). `Caller` is in
// caller.hpp.
//
//                InProcess (coroutine)     InTask (of asyncio)       InCaller (thread, greenlet)
//   wait()       await_in(): parked        TaskWaiter::await(): future    Caller::wait(): blocks
//   woken by     coroutine_run()           deliver(), then the loop  its partner; wait() returns
//   cancelled    its cancel word           throw() by asyncio        its cancel word, a signal,
//                                                                    a throw into the greenlet
//   status()     of its node               the same, or it takes     of its node
//                                          what is there
//
// Invariants
//  1 wait() returns false if control returns to the code that awaits the operation: then the
//    operation returns suspended(), and continues when send() is called again (awaited.hpp). wait()
//    returns true if the operation must check its channel at once.
//  2 Where wait() suspends, the operation's object refers to the waiting process or task waiter:
//    `process` or `task_waiter`.
//  3 give() is the last use of a result: in place of the result, an exception may be thrown into a
//    greenlet there.
#pragma once
#include "channels/marks.hpp"
#include "processes/caller.hpp"
#include "processes/limit.hpp"
#include "processes/rare.hpp"
#include "processes/task_waiter.hpp"

namespace weft::py {

class Choice;

template <class D>  // D is the operation's object
class InProcess {
 public:
  static constexpr bool is_task = false;
  // How many references a write and its caller have to the value.
  static constexpr int kReferences = 1;

  InProcess(D* o, ProcessObject* me, PyObject** r) noexcept : o_(o), me_(me), r_(r) {}

  ProcessBase& process() const noexcept { return me_->base; }
  ProcessObject* object() const noexcept { return me_; }
  runtime::Run* run() const noexcept { return &me_->base.group->run; }
  Value& slot() const noexcept { return o_->value; }
  bool cancelled() const noexcept {
    return me_->base.cancel().load(std::memory_order_relaxed) != 0;
  }
  template <Side S>
  Status begin(ChannelObject* c) const noexcept {
    return c->core.template begin<S>(me_->base);
  }

  bool wait(const runtime::OpKind& kind) const noexcept {
    await_in(me_, reinterpret_cast<PyObject*>(o_), &kind);
    o_->process = me_;
    return false;
  }
  void yield() const noexcept { me_->base.line.at_once(runtime::Standing::kAtOnce); }
  bool at_once() const noexcept { return me_->base.line.at_once(); }
  void give_way(PyObject* owned) const {
    if (!me_->rare) me_->rare = new Rare;
    me_->rare->kept.keep(owned);
    me_->yielded = o_->only_yields() ? 1 : 2;
    me_->waits = reinterpret_cast<PyObject*>(o_);
    o_->process = me_;
    runtime::Scheduler::current()->give_way(&me_->base);
  }
  PySendResult suspended() const noexcept {
    *r_ = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  Status status(Engine*) const noexcept { return me_->base.status; }
  int look(Choice& c) const noexcept;  // used for a choice that has been parked

  // Called while user code decides the outcome. Until release(), the process is in the operation
  // `kind`.
  void hold(const runtime::OpKind& kind) const noexcept { me_->base.op = &kind; }
  void release() const noexcept { me_->base.op = nullptr; }

  void decided(Status) const noexcept {}
  void withdrawn(PyObject* value) const { raise_cancelled(me_->base, value); }
  void end_of_iteration() const { PyErr_SetNone(PyExc_StopAsyncIteration); }
  PySendResult give(PyObject* owned) const noexcept {
    *r_ = owned;
    return owned ? PYGEN_RETURN : PYGEN_ERROR;
  }

 private:
  D* o_;
  ProcessObject* me_;
  PyObject** r_;
};

template <class D>
class InTask {
 public:
  static constexpr bool is_task = true;
  static constexpr int kReferences = 1;

  InTask(D* o, PyObject** r) noexcept : o_(o), r_(r) {}

  ProcessBase& process() const noexcept { return *o_->task_waiter; }
  ProcessObject* object() const noexcept { return nullptr; }
  runtime::Run* run() const noexcept { return nullptr; }
  Value& slot() const noexcept { return o_->value; }
  bool cancelled() const noexcept { return false; }  // asyncio cancels by throwing an exception
  template <Side S>
  Status begin(ChannelObject* c) const noexcept {
    if constexpr (S == Side::in) return c->core.begin_foreign(*o_->task_waiter);
    return c->core.template begin<S>(*o_->task_waiter);
  }

  bool wait(const runtime::OpKind& kind) noexcept {
    o_->task_waiter->op = &kind;
    if (o_->task_waiter->woken) return true;
    o_->task_waiter->link->at_once = 0;
    result_ = o_->task_waiter->await(r_);
    return false;
  }
  void yield() const noexcept {
    o_->task_waiter->link->counted = o_->task_waiter->task;
    o_->task_waiter->link->at_once = runtime::Standing::kAtOnce;
  }
  bool at_once() const noexcept {
    return o_->task_waiter && count_at_once(*o_->task_waiter->link, o_->task_waiter->task, 1);
  }
  void give_way(PyObject* owned) noexcept {
    o_->task_waiter->outcome.keep(owned);
    *r_ = Py_NewRef(Py_None);  // this is asyncio's own form of yield, at which the other callbacks
                               // run
    result_ = PYGEN_NEXT;
  }
  PySendResult suspended() const noexcept { return result_; }
  // `c` is the core at which the operation reads, or null if it does not read.
  Status status(Engine* c) const noexcept {
    TaskWaiter& p = *o_->task_waiter;
    if (p.woken) return p.status;
    if (!c || !p.is(core::NodeFlags::foreign)) return Status::pending;
    switch (c->take(p, core::FreeParty{})) {
      case core::Attempt::committed: return Status::ok;
      case core::Attempt::ended: return p.status;
      default: return Status::pending;
    }
  }
  int look(Choice& c) const noexcept;

  void hold(const runtime::OpKind&) const noexcept {
    o_->task_waiter->woken = false;  // a wake-up after this point means that the partner no longer
                                     // holds the node
  }
  void release() const noexcept {}

  void decided(Status s) const noexcept {
    if (o_->task_waiter->owed && s != Status::cancelled) owe_cancellation();
  }
  void withdrawn(PyObject* value) const {
    if (o_->task_waiter->owed)  // at a far end, only the home's answer shows the cancellation
      raise_cancellation();
    else
      raise_cancelled(*o_->task_waiter, value);
  }
  void end_of_iteration() const { PyErr_SetNone(PyExc_StopAsyncIteration); }
  PySendResult give(PyObject* owned) const noexcept {
    *r_ = owned;
    return owned ? PYGEN_RETURN : PYGEN_ERROR;
  }

 private:
  D* o_;
  PyObject** r_;
  PySendResult result_ = PYGEN_ERROR;
};

class InCaller {
 public:
  static constexpr bool is_task = false;
  static constexpr int kReferences = 2;  // the caller's, and that of the slot

  InCaller(Caller& caller, PyObject** r) noexcept : caller_(caller), r_(r) {}

  ProcessBase& process() const noexcept { return caller_.process(); }
  ProcessObject* object() const noexcept { return process_object(this_process()); }
  runtime::Run* run() const noexcept { return caller_.run(); }
  Value& slot() const noexcept { return caller_.slot(); }
  bool cancelled() const noexcept { return caller_.cancelled(); }
  template <Side S>
  Status begin(ChannelObject* c) const noexcept {
    const auto begins = [&] { return c->core.template begin<S>(caller_.process()); };
    return is_far(c) ? caller_.begin_lazily(begins) : begins();
  }

  // Like begin_far() for a plain operation, but for a choice. The result `parked` means that the
  // choice waits next.
  template <class F>
  int begin_far(F&& begins, int parked) const {
    return caller_.begin_saying(begins, parked);
  }

  bool wait(const runtime::OpKind& kind) const noexcept {
    caller_.wait(Status::pending, kind);
    return true;
  }
  void yield() const noexcept { caller_.yield(); }
  PySendResult suspended() const noexcept { return PYGEN_ERROR; }  // never called
  Status status(Engine*) const noexcept { return caller_.process().status; }
  int look(Choice& c) const noexcept;

  void hold(const runtime::OpKind&) const noexcept {}
  void release() const noexcept {}

  void decided(Status) const noexcept {}
  void withdrawn(PyObject* value) const { caller_.withdrawn(value); }
  void end_of_iteration() const {}  // returns null without an exception
  PySendResult give(PyObject* owned) const noexcept {
    *r_ = caller_.give(owned);
    return *r_ ? PYGEN_RETURN : PYGEN_ERROR;
  }

 private:
  Caller& caller_;
  PyObject** r_;
};

}  // namespace weft::py
