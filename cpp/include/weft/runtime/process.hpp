// What all processes have in common, on every backend: a process is a waiter with a name, a place
// in a group, and functions by which it is cancelled.
//
// Processes differ only in how they wait and wake (ProcessOps).
//
//   made ──Group::add()──► runnable ◄──wake()── parked (op says on what)
//                             │                    ▲
//                             └──op begins─────────┘
//                             └──ends: Group::finished()
//
// Which thread may use which member: `op`, `line` and `flags` belong to the process's own thread.
// Three others read them too: a reporter while nothing can run; a report on demand, through
// operation() and stands_in(); and, on a multi-core executor, the worker that serves cancellations,
// while runs_on is 0 (crew.hpp). The sibling links are protected by the group's lock; `cancel` may
// be used by any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "../core/waiter.hpp"
#include "../prim.hpp"

namespace weft::inline WEFT_ABI {

// How a process ended (rules 3.5, 4.3, 4.6, 6.5).
enum class Ending : std::uint8_t { returned, retired, poisoned, cancelled, failed };

}  // namespace weft::inline WEFT_ABI

namespace weft::inline WEFT_ABI::runtime {

class Executor;
class Group;
class ProcessBase;

// A type of operation on which a process can be parked.
struct OpKind {
  // "read", "write", "select", "sync", "sleep", "wait for"
  const char* verb;
  // Withdraws the operation, on the process's own thread. Returns true if that was before the
  // commit (rule 6.2).
  bool (*withdraw)(ProcessBase&) noexcept;
  // Visits the places at which the process waits, for reports. The pointer is null if the process
  // waits at none.
  void (*visit)(ProcessBase&, class WaitVisitor&);
  // Visits the places where the operation has not committed. Called on the process's own executor
  // while other processes run. If the function visits nothing, or the pointer is null, the process
  // can continue.
  void (*undecided)(ProcessBase&, class WaitVisitor&) = nullptr;
  // Reports the place at which a process has committed that was woken and has not continued yet.
  // The pointer is null if such a place is never measured.
  void (*passed)(ProcessBase&, struct Passed&) = nullptr;
};

// Returns whether the node still waits at this channel or barrier.
template <class C>
[[gnu::noinline, gnu::cold]] bool in_line(C& c, const core::Node& n) noexcept {
  bool queued = false;
  c.with_lock([&](auto&, auto&) { queued = n.is(core::NodeFlags::queued); });
  return queued;
}

// Receives the places at which a process waits.
class WaitVisitor {
 public:
  virtual void channel(const core::SyncObject&, bool writing) = 0;
  virtual void barrier(const core::SyncObject&) = 0;
  // Visits the end of the process `last_writer`; 0 means that this process has not been started.
  virtual void end(const core::SyncObject&) = 0;
  // Reports a guard of the process's select whose channel has ended, so that no party will arrive
  // there (rule 5.6).
  virtual void ended(const core::SyncObject&, std::uint32_t /*guard*/) {}
  // Called if the process waits for a time that is never reached (rule 8.5).
  virtual void nowhere() {}
  // Called if the process waits for a time that will be reached, or for a descriptor: both can wake
  // the process by themselves.
  virtual void timed() {}

 protected:
  ~WaitVisitor() = default;
};

struct ProcessOps : core::WakerOps {
  Executor* (*executor)(ProcessBase&) noexcept;
};

// Which executor of its run runs a process: its group's executor, or one in the run's list
// (run.hpp).
enum class RunsAt : std::uint8_t { group = 0, first = 1, last = 64, holds_local = 255 };

// A process's id, together with its cancellations that were requested and have not been thrown.
// Both are in one word, since every operation reads both. An id is never zero.
class Identity {
 public:
  // The largest id.
  static constexpr std::uint32_t kLast = (1u << 28) - 1;
  // Returns the id with the index n, counted from 0; after the last id the ids begin again.
  static constexpr std::uint32_t nth(std::uint32_t n) noexcept { return n % kLast + 1; }

  operator std::uint32_t() const noexcept { return word_.load(std::memory_order_relaxed) & kLast; }
  // Sets the id. Called once, before the process is known elsewhere.
  Identity& operator=(std::uint32_t id) noexcept {
    word_.store((word_.load(std::memory_order_relaxed) & ~kLast) | id, std::memory_order_relaxed);
    return *this;
  }
  // Returns whether the id is the holder's, and no cancellation is requested.
  [[gnu::always_inline]] bool is_uncancelled(std::uint32_t holder) const noexcept {
    return word_.load(std::memory_order_relaxed) == holder;
  }

  // The requested cancellations, as an atomic set of bits.
  class Cancel {
   public:
    static constexpr std::uint8_t asked = 1;  // requested by a group or by a handle
    static constexpr std::uint8_t host = 2;   // requested by a host's task (Python's)
    // Requested by a time limit of the process itself (limit.hpp).
    static constexpr std::uint8_t limit = 4;
    // Requested by a failure in a group whose block the process is in (group.hpp).
    static constexpr std::uint8_t block = 8;
    explicit Cancel(prim::atomic<std::uint32_t>& word) noexcept : word_(word) {}
    std::uint8_t load(std::memory_order o = std::memory_order_seq_cst) const noexcept {
      return of(word_.load(o));
    }
    void store(std::uint8_t v, std::memory_order o = std::memory_order_seq_cst) noexcept {
      exchange(v, o);
    }
    std::uint8_t exchange(std::uint8_t v,
                          std::memory_order o = std::memory_order_seq_cst) noexcept {
      std::uint32_t was = word_.load(std::memory_order_relaxed);
      while (!word_.compare_exchange_weak(was, (was & kLast) | std::uint32_t{v} << kShift, o,
                                          std::memory_order_relaxed)) {
      }
      return of(was);
    }
    std::uint8_t fetch_or(std::uint8_t v) noexcept {
      return of(word_.fetch_or(std::uint32_t{v} << kShift));
    }
    void take_back(std::uint8_t v) noexcept { take(v); }
    // Clears the bits of v. Returns those bits of v that were set.
    std::uint8_t take(std::uint8_t v) noexcept {
      return of(word_.fetch_and(~(std::uint32_t{v} << kShift))) & v;
    }

   private:
    static constexpr unsigned kShift = 28;
    static std::uint8_t of(std::uint32_t word) noexcept {
      return static_cast<std::uint8_t>(word >> kShift);
    }
    prim::atomic<std::uint32_t>& word_;
  };
  Cancel cancel() noexcept { return Cancel(word_); }

 private:
  prim::atomic<std::uint32_t> word_{0};
};

// The line of a process's last operation, and how many of its operations have completed without
// waiting since it last waited or let other processes run (rule 7.7). Both are in one word, so a
// process that begins to wait stores a constant there, which also resets the count.
class Standing {
 public:
  // This many operations can complete without waiting; the next operation lets other processes run.
  static constexpr std::uint32_t kAtOnce = 1000;

  constexpr Standing(std::uint32_t line = 0) noexcept : word_(fresh(line)) {}
  // Called when the process begins to wait at this line; resets the count.
  [[gnu::always_inline]] Standing& operator=(std::uint32_t line) noexcept {
    prim::store_to(word_, fresh(line), std::memory_order_relaxed);
    return *this;
  }
  // Called when an operation begins at this line.
  void at(std::uint32_t line) noexcept {
    prim::store_to(word_, (word_ & ~kLine) | (line & kLine), std::memory_order_relaxed);
  }
  // Counts one more operation that has completed without waiting. Returns true if the process must
  // let other processes run, and then call begin_anew().
  [[gnu::always_inline]] bool at_once() noexcept {
    const std::uint32_t was = word_, now = was + kOne;
    prim::store_to(word_, now, std::memory_order_relaxed);
    return now < was;
  }
  void begin_anew() noexcept { *this = word_; }
  // Counts n more operations that have completed without waiting. If there are too many, the next
  // operation lets other processes run.
  void at_once(std::size_t n) noexcept {
    const std::uint32_t left = (~word_ & ~kLine) / kOne;
    prim::store_to(word_, word_ + (n < left ? static_cast<std::uint32_t>(n) : left) * kOne,
                   std::memory_order_relaxed);
  }
  // Returns the line. Can be called from any thread.
  operator std::uint32_t() const noexcept {
    return prim::load_from(word_, std::memory_order_relaxed) & kLine;
  }

 private:
  static constexpr std::uint32_t kOne = 1u << 22, kLine = kOne - 1;
  // A carry out of the upper bits shows that kAtOnce operations have completed.
  static constexpr std::uint32_t fresh(std::uint32_t line) noexcept {
    return (line & kLine) | (0u - (kAtOnce + 1) * kOne);
  }
  std::uint32_t word_;
};

class ProcessBase : public core::Waiter {
 public:
  Group* group = nullptr;
  ProcessBase* sibling_next = nullptr;
  ProcessBase* sibling_prev = nullptr;
  const char* function = nullptr;  // the process's name in its path
  const OpKind* op = nullptr;      // null if the process runs or is runnable
  // The process's file, and the ends among its arguments (function_info.hpp). Null if these are not
  // known.
  const struct FunctionInfo* about = nullptr;
  Standing line;
  // Unique in this program, and ascending. Channels record their holders by their ids.
  Identity id;
  // The process's index among the processes of the same name in its group.
  std::uint32_t index = 0;
  std::uint8_t dying = 0;            // the process was ended by an uncaught poison of this strength
  Ending ending = Ending::returned;  // valid once the process has ended
  // holds_local means that the process has not been started, and that one of its arguments is an
  // end of a local channel.
  RunsAt at = RunsAt::group;
  // On a multi-core executor 1 + the worker that runs the process, from the moment it is taken
  // until it is fully suspended; otherwise 0.
  prim::atomic<std::uint8_t> runs_on{0};

  // These functions serve a process that another thread can examine while the process runs (a
  // report on demand, beside components). waits_in() records that the process's own thread begins
  // to wait by `kind`, or continues if `kind` is null. stands_at() records that this thread has
  // reached this line.
  void waits_in(const OpKind* kind) noexcept {
    prim::store_to(op, kind, std::memory_order_release);
  }
  void stands_at(const FunctionInfo* in, std::uint32_t at_line) noexcept {
    line.at(at_line);
    prim::store_to(about, in, std::memory_order_release);
  }
  // Reads the operation from a thread other than the process's own.
  const OpKind* operation() noexcept { return prim::load_from(op, std::memory_order_acquire); }
  const FunctionInfo* stands_in() noexcept {
    return prim::load_from(about, std::memory_order_acquire);
  }
  std::uint32_t stands_on() noexcept { return line; }

  // Sets the WakerOps by which the process is woken and run from now on.
  void runs_by(const core::WakerOps& o) noexcept {
    prim::store_to(ops, &o, std::memory_order_relaxed);
    if (o.frame == core::kFrame)
      set(core::NodeFlags::framed);
    else
      clear(core::NodeFlags::framed);
  }
  // Returns the process's executor. Can be called from any thread: a select replaces the ops by its
  // own while the process is parked (selecting.hpp).
  Executor* executor() noexcept {
    return static_cast<const ProcessOps*>(prim::load_from(ops, std::memory_order_relaxed))
        ->executor(*this);
  }
  // Returns the process's place in the order in which its group started its children. (It is stored
  // in the node's `index`, which a plain node does not use.)
  std::uint32_t order() const noexcept { return core::Node::index; }
  void set_order(std::uint32_t n) noexcept { core::Node::index = n; }

  Identity::Cancel cancel() noexcept { return id.cancel(); }
  // Accepts the requests to the process, except the requests of limits and blocks, which are
  // accounted for elsewhere (Limit::take).
  bool take_cancel() noexcept {
    return cancel().take(Identity::Cancel::asked | Identity::Cancel::host) != 0;
  }

 protected:
  constexpr ProcessBase() = default;
  ~ProcessBase() = default;
  ProcessBase(const ProcessBase&) = delete;
  ProcessBase& operator=(const ProcessBase&) = delete;
};

// What this thread runs at the moment, and how that process is ending. When an end is destroyed, it
// checks the Context: a process that an uncaught poison leaves poisons what it holds (rule 4.3).
struct Context {
  ProcessBase* running = nullptr;
  Executor* executor = nullptr;  // the executor that runs the process; null for a thread process
  bool moves = false;            // whether a process that runs here can continue on another thread
  // The process's frame is being destroyed after an uncaught poison of this strength.
  std::uint8_t dying = 0;
  // A Poisoned of this strength was made since the process was resumed.
  std::uint8_t thrown = 0;
  // Whether something must be done before another process continues: `thrown` must be cleared, or
  // the loop must halt.
  bool attention = false;
  std::weak_ptr<void> poisoned{};  // expires once the Poisoned and its copies are destroyed
  void attended() noexcept {
    attention = false;
    thrown = 0;
  }
};
inline constinit thread_local Context* this_context = nullptr;

inline ProcessBase* this_process() noexcept {
  return this_context ? this_context->running : nullptr;
}

class Executor {
 public:
  virtual void post(core::Waker*) noexcept = 0;  // makes w runnable; may be called from any thread
  virtual void nudge() noexcept = 0;             // makes the executor check for cancellations
  // Returns whether the executor belongs to the calling thread, and to no other.
  virtual bool here() const noexcept = 0;
  // Returns the operations of a process that is to start on this executor.
  virtual const ProcessOps& ops_here(const ProcessOps& ops) { return ops; }
  // Returns whether processes can move between threads.
  virtual bool multi() const noexcept { return false; }
  // Calls f(x) while none of the executor's processes starts to run. Called by one of these
  // processes. Processes whose runs_on is not 0 continue to run.
  virtual void held(void (*f)(void*), void* x) { f(x); }
  // Handles the cancellation of a process: if its operation is withdrawn before the commit, the
  // process continues with `cancelled`. Called on the process's own thread.
  virtual void withdraw(ProcessBase& p) noexcept {
    if (p.op && p.op->withdraw(p)) p.ops->wake(&p);
  }
  // These functions serve a look from outside (look.hpp); any thread may call them. sleeps()
  // returns whether every thread of the executor sleeps; while the run's door is closed, none of
  // them continues (Run::while_door_closed).
  virtual bool sleeps() const noexcept { return false; }
  // Returns the process that runs on this executor. Null means that none runs, or that runs_on says
  // which one does.
  virtual const ProcessBase* runs_now() const noexcept { return nullptr; }
  // Makes the executor check for cancellations, like nudge(); but a busy thread checks only at the
  // end of its step.
  virtual void hurry() noexcept { nudge(); }
  // Called for a process that runs on this executor and yields. Searches all queues, and returns
  // true if no other process is ready; otherwise the process is queued behind the ready processes.
  virtual bool nobody_ready() noexcept { return true; }
  // Returns the poller in which this executor sleeps; `make` makes it at the first call, on one of
  // the executor's threads. Returns null if no process can wait for a descriptor on this executor.
  // Throws what `make` throws.
  virtual class Poller* poller(class Poller& (*)()) { return nullptr; }
  // Searches all queues for ready processes, and puts this process behind them. Called for a
  // process that runs on this executor.
  virtual void give_way(core::Waker* w) noexcept { post(w); }

 protected:
  ~Executor() = default;
};

}  // namespace weft::inline WEFT_ABI::runtime
