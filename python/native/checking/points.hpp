// What operations report to a check (weft._checking), and what a check may ask of the extension.
//
// A run that is checked is cut into steps. A step ends where another process could run first:
// before an operation begins, where a process parks, after an operation that completes at once, and
// before a process ends. At each such point the Points decide which process runs next.
//
//   operation:  pauses() ──► arrives() │ selects() ──► begun() ──► pauses() of the next
//   process:    starts() ──► … ──► ends_later() ──► ended()
//
// Invariants
//  1 `checking` is true only in a run of a check, on the thread of that run. Therefore what other
//    threads do meanwhile, including their own networks, is not part of the check.
//  2 The engine is a separate module, which sees no variable of the extension: it uses Services.
//  3 While no program is checked, the points add no cost to the operations of coroutine processes,
//    except to io calls, which test `checking`. A check, like an observer, exchanges the functions
//    that the interpreter calls (am_send).
#pragma once
#include <atomic>

#include "processes/process.hpp"
#include "weft/check/access.hpp"
#include "weft/runtime/chooser.hpp"

namespace weft::py {

using weft::checking::Access;
using weft::checking::Begun;

// A select that begins, as a check sees it. The pointers are valid while the select lasts.
struct SeenSelect {
  core::Guard* guards;
  std::uint32_t count;
  Mode mode;
  // Whether the select chooses among several guards, all at places of this OS process, without a
  // standing choice.
  bool chooses;
  const void* of;  // the argument of the two functions
  // Returns the guard that the select chose when it began; a negative number if it has parked.
  int (*chosen)(const void* of) noexcept;
  // Returns the guard to which a select that had parked has committed; a negative number if a time
  // or a cancellation decided it.
  int (*committed)(const void* of) noexcept;
};

class Points {
 public:
  virtual void starts(ProcessObject*) noexcept = 0;
  // Called when a process is about to end. Returns true if another process runs first: the ending
  // process is then in the run queue, and ends when it is run again.
  virtual bool ends_later(ProcessObject*) noexcept = 0;
  virtual void ended(ProcessObject*, const void* group) noexcept = 0;

  // Called when an operation is about to begin. Returns true if another process runs first; this
  // process is then in the run queue, and the operation begins when it is run again. `yields` means
  // that all ready processes run first (rule 7.7).
  virtual bool pauses(ProcessBase*, const void* operation, bool yields) noexcept = 0;
  // Called when the operation begins at a place. The place is null if other processes cannot see
  // the operation.
  virtual void arrives(ProcessBase*, const void* place, Access) noexcept = 0;
  // Called when a select begins, and examines its guards from `from` on. Returns the guard that it
  // must choose, or -1.
  virtual int selects(ProcessBase*, const SeenSelect&, std::uint32_t from,
                      std::uint64_t key) noexcept = 0;
  // Called when the operation has begun. Returns true if the operation has ended and another
  // process runs first: then the outcome of the operation must be kept.
  virtual bool begun(ProcessBase*, Begun) noexcept = 0;
  // Called when a process with a stack of its own is in the run queue; it waits in this call until
  // it is run again.
  virtual void stops(ProcessBase*) noexcept = 0;

  // Called when ordinary code enters a block (rule 7.5) or begins an operation. Ordinary code is a
  // process of the check, and belongs to the given run. A null run means that ordinary code is in
  // no block, so no other process can continue.
  virtual void in_ordinary_code(ProcessBase*, runtime::Run*) noexcept = 0;
  // Called when the process continues after the end of this group.
  virtual void joined(ProcessBase*, const void* group) noexcept = 0;

  // The next functions report the other events of a step.
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

// The points of the check that is under way. Converts to false if no check is under way, or if the
// check belongs to another thread.
class Checking {
 public:
  explicit operator bool() const noexcept {
    return points_.load(std::memory_order_relaxed) && thread_ == PyThread_get_thread_ident();
  }
  Points* operator->() const noexcept { return points_.load(std::memory_order_relaxed); }
  // Called on the thread of the check. Null means that the check has ended.
  void set(Points* points) noexcept {
    thread_ = PyThread_get_thread_ident();
    points_.store(points, std::memory_order_relaxed);
  }

 private:
  std::atomic<Points*> points_{nullptr};
  unsigned long thread_ = 0;
};
extern Checking checking;

// The services that the engine can use.
struct Services {
  static constexpr unsigned kVersion = 4;
  static constexpr const char* kCapsule = "weft._native._checking";
  unsigned version;
  void (*install)(Points*, runtime::Chooser*);  // null: the check has ended
  ProcessBase* (*running)();
  core::RunQueue* (*queue)();  // returns null if ordinary code runs, outside any block
  void (*coroutine_run)(core::Waker*);
  void (*greenlet_run)(core::Waker*);
  void (*greenlet_start)(core::Waker*);
  void (*ordinary_code_run)(core::Waker*);
  void (*component_run)(core::Waker*);
  const runtime::OpKind* waits_for_group;
  void (*cancel)(runtime::Run&);
  bool (*any_timer)(runtime::Run&);
  void (*fire_one)(runtime::Run&);
  // Makes a greenlet, or ordinary code in a block, wait until it is run again. Returns false if an
  // exception was thrown into the greenlet.
  bool (*park)(ProcessBase*);
};

// Returns the key by which the engine identifies the place of a channel or a barrier.
inline const void* place_at(core::SyncObject& place) noexcept { return &place; }

// Each of the next functions exchanges functions that the interpreter calls, and is defined in the
// same file as the exchanged functions.
void check_operations(bool on) noexcept;
void check_selects(bool on) noexcept;

class Caller;

// An operation of a process with a stack of its own, or of ordinary code. Other processes can run
// before the operation begins, and again after it has ended. Outside a check the object converts to
// false and has no effect.
class CheckedCall {
 public:
  explicit CheckedCall(Caller& caller, bool yields = false) noexcept {
    if (checking) [[unlikely]]
      begin(caller, yields);
  }
  CheckedCall(const CheckedCall&) = delete;
  CheckedCall& operator=(const CheckedCall&) = delete;
  explicit operator bool() const noexcept { return process_ != nullptr; }
  ProcessBase* process() const noexcept { return process_; }
  // Called when the operation ended with this result, or with the current exception. Returns the
  // result unchanged.
  PyObject* over(PyObject* owned) noexcept;

 private:
  void begin(Caller&, bool yields) noexcept;
  ProcessBase* process_ = nullptr;
};

}  // namespace weft::py
