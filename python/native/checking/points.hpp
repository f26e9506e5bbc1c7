// What operations tell a check (weft._checking), and what a check may ask of the extension.
//
// A run that is checked is cut into steps. A step ends where another process could go first: before
// an operation begins, where a process parks, after an operation that is over at once, and before a
// process ends. At each such point the Points decide who goes on.
//
//   operation:  pauses() ──► arrives() │ selects() ──► begun() ──► pauses() of the next
//   process:    starts() ──► … ──► ends_later() ──► ended()
//
// Invariants
//  1 `checking` is null but in a run of a check, which is on one thread; all of this is called
//    there.
//  2 The engine is in a module of its own, which has no variable of this one: it uses Services.
//  3 Off, no operation of a coroutine process pays: what the interpreter calls is exchanged
//    (am_send), as observers do.
#pragma once
#include "processes/process.hpp"
#include "weft/check/access.hpp"
#include "weft/runtime/chooser.hpp"

namespace weft::py {

class Choice;
using weft::checking::Access;
using weft::checking::Begun;

class Points {
 public:
  virtual void starts(ProcessObject*) noexcept = 0;
  // True: another goes first; the process is in the run queue, and ends when it is run again.
  virtual bool ends_later(ProcessObject*) noexcept = 0;
  virtual void ended(ProcessObject*, const void* group) noexcept = 0;

  // Before an operation begins. True: another goes first; the process is in the run queue, and the
  // operation begins when it is run again. `yields`: those that are ready go first (rule 7.7).
  virtual bool pauses(ProcessObject*, const void* operation, bool yields) noexcept = 0;
  // It begins, at a place; null: nobody sees it.
  virtual void arrives(ProcessObject*, const void* place, Access) noexcept = 0;
  // A select begins; its guards are asked from `from` on. The guard that it is to take, or -1.
  virtual int selects(ProcessObject*, Choice&, std::uint32_t from, std::uint64_t key) noexcept = 0;
  // It has begun. True: it is over, and another goes first: its outcome is to be kept.
  virtual bool begun(ProcessObject*, Begun) noexcept = 0;
  // A process with a stack of its own waits until it goes on.
  virtual void stops(ProcessObject*) noexcept = 0;

  // What a step does besides.
  virtual void made(const void* place, std::uint32_t capacity, bool loses) noexcept = 0;
  virtual void gone(const void* place, std::uint64_t dropped) noexcept = 0;
  virtual void touches(const void* place, Access) noexcept = 0;
  virtual void closes(const void* place, bool last, bool died) noexcept = 0;
  virtual void cancels() noexcept = 0;
  virtual void limits(ProcessObject*, bool open) noexcept = 0;
  virtual void reads_clock() noexcept = 0;

 protected:
  ~Points() = default;
};

extern Points* checking;

struct Services {
  static constexpr unsigned kVersion = 1;
  static constexpr const char* kCapsule = "weft._native._checking";
  unsigned version;
  void (*install)(Points*, runtime::Chooser*);  // null: off
  ProcessBase* (*running)();
  core::RunQueue& (*queue)();
  void (*coroutine_run)(core::Waker*);
  void (*greenlet_run)(core::Waker*);
  void (*greenlet_start)(core::Waker*);
  const runtime::OpKind* waits_for_group;
  void (*cancel)(runtime::Run&);
  bool (*any_timer)(runtime::Run&);
  void (*fire_one)(runtime::Run&);
  bool (*park)(ProcessObject* greenlet);
};

// How the place of a channel or a barrier is known.
inline const void* place_at(core::SyncObject& place) noexcept { return &place; }

// In the files that have the functions to exchange.
void check_operations(bool on) noexcept;
void check_selects(bool on) noexcept;

// Of a process with a stack of its own: its operation begins, unless null, and may have to wait for
// others first.
class CheckedCall {
 public:
  CheckedCall(ProcessObject* greenlet, bool yields = false) noexcept;
  CheckedCall(const CheckedCall&) = delete;
  CheckedCall& operator=(const CheckedCall&) = delete;
  explicit operator bool() const noexcept { return process_ != nullptr; }
  // It is over; the result, or null.
  PyObject* over(PyObject* owned) noexcept;

 private:
  ProcessObject* process_;
};

}  // namespace weft::py
