// What every process is, whatever runs it: a waiter with a name, a place in a group, and a way to
// be cancelled.
//
// What differs between kinds of processes is only how they wait and wake (ProcessOps).
//
//   made ──Group::add()──► runnable ◄──wake()── parked (op says on what)
//                             │                    ▲
//                             └──op begins─────────┘
//                             └──ends: Group::finished()
//
// Who touches what: `op`, `line`, `flags` only the process's own thread (and a reporter while
// nothing can run, and a report on demand by operation() and stands_in(); and on a multi-core
// executor whoever serves cancellations while runs_on is 0, see crew.hpp); the sibling links under
// the group's lock; `cancel` anybody.
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

// A kind of operation on which a process may be parked.
struct OpKind {
  // "read", "write", "select", "sync", "sleep", "wait for"
  const char* verb;
  // on the process's own thread; true: withdrawn, before the commit (rule 6.2)
  bool (*withdraw)(ProcessBase&) noexcept;
  // the places at which it waits, for reports; null: none
  void (*visit)(ProcessBase&, class WaitVisitor&);
  // The same on the process's own executor while others run: those at which it is undecided still.
  // Nothing, or null: it may go on.
  void (*undecided)(ProcessBase&, class WaitVisitor&) = nullptr;
  // It was woken and has not gone on: where it was committed. Null: nowhere that is measured.
  void (*passed)(ProcessBase&, struct Passed&) = nullptr;
};

// Does the node still wait at this channel or barrier?
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
  // of the process `last_writer`; 0: it has not been started
  virtual void end(const core::SyncObject&) = 0;
  // A guard of its select is silent: its channel has ended, nobody will come there (rule 5.6).
  virtual void ended(const core::SyncObject&, std::uint32_t /*guard*/) {}
  // It waits for a time that never comes (rule 8.5).
  virtual void nowhere() {}
  // Or for one that comes.
  virtual void timed() {}

 protected:
  ~WaitVisitor() = default;
};

struct ProcessOps : core::WakerOps {
  Executor* (*executor)(ProcessBase&) noexcept;
};

// Where in its run a process runs: with its group's others, or on an executor of the run's list
// (run.hpp).
enum class RunsAt : std::uint8_t { group = 0, first = 1, last = 64, holds_local = 255 };

// A process's id, and the cancellations asked for and not yet raised: one word, since every
// operation asks for both. An id is not zero.
class Identity {
 public:
  // the largest id
  static constexpr std::uint32_t kLast = (1u << 28) - 1;
  // from 0 on; after the last one they begin again
  static constexpr std::uint32_t nth(std::uint32_t n) noexcept { return n % kLast + 1; }

  operator std::uint32_t() const noexcept { return word_.load(std::memory_order_relaxed) & kLast; }
  // Once, before anybody else knows the process.
  Identity& operator=(std::uint32_t id) noexcept {
    word_.store((word_.load(std::memory_order_relaxed) & ~kLast) | id, std::memory_order_relaxed);
    return *this;
  }
  // Is it that of this holder, and is no cancellation asked for?
  [[gnu::always_inline]] bool is_uncancelled(std::uint32_t holder) const noexcept {
    return word_.load(std::memory_order_relaxed) == holder;
  }

  // The cancellations, as an atomic set of bits.
  class Cancel {
   public:
    static constexpr std::uint8_t asked = 1;  // by a group, by a handle
    static constexpr std::uint8_t host = 2;   // by a host's task (Python's)
    static constexpr std::uint8_t limit = 4;  // by a time limit of the process's own (limit.hpp)
    // by a failure in a group whose block the process is in (group.hpp)
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
    // Those of them that were asked for are so no more.
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

// The line of a process's last operation, and how many of its operations have completed at once
// since it last waited or let the others run (rule 7.7). Both are in one word: a process that
// begins to wait stores a constant there, which also starts the count anew.
class Standing {
 public:
  // so many may complete at once; the next one lets the others run
  static constexpr std::uint32_t kAtOnce = 1000;

  constexpr Standing(std::uint32_t line = 0) noexcept : word_(fresh(line)) {}
  // The process begins to wait at this line.
  [[gnu::always_inline]] Standing& operator=(std::uint32_t line) noexcept {
    prim::store_to(word_, fresh(line), std::memory_order_relaxed);
    return *this;
  }
  // An operation begins at this line.
  void at(std::uint32_t line) noexcept {
    prim::store_to(word_, (word_ & ~kLine) | (line & kLine), std::memory_order_relaxed);
  }
  // One more has completed at once. True: the process must let the others run, then begin_anew().
  [[gnu::always_inline]] bool at_once() noexcept {
    const std::uint32_t was = word_, now = was + kOne;
    prim::store_to(word_, now, std::memory_order_relaxed);
    return now < was;
  }
  void begin_anew() noexcept { *this = word_; }
  // n more have completed at once. If that are too many, the next one lets the others run.
  void at_once(std::size_t n) noexcept {
    const std::uint32_t left = (~word_ & ~kLine) / kOne;
    prim::store_to(word_, word_ + (n < left ? static_cast<std::uint32_t>(n) : left) * kOne,
                   std::memory_order_relaxed);
  }
  // From any thread.
  operator std::uint32_t() const noexcept {
    return prim::load_from(word_, std::memory_order_relaxed) & kLine;
  }

 private:
  static constexpr std::uint32_t kOne = 1u << 22, kLine = kOne - 1;
  // a carry out of the upper bits says that so many have completed
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
  const char* function = nullptr;  // its name in its path
  const OpKind* op = nullptr;      // null: running or runnable
  // its file, the ends among its arguments (function_info.hpp); null: not known
  const struct FunctionInfo* about = nullptr;
  Standing line;
  // unique in this program, ascending; holders are recorded by it
  Identity id;
  std::uint32_t index = 0;           // among those of one name in its group
  std::uint8_t dying = 0;            // ended by an uncaught poison of this strength
  Ending ending = Ending::returned;  // once it has ended
  // holds_local: not started, and among its arguments is an end of a local channel.
  RunsAt at = RunsAt::group;
  // On a multi-core executor: 1 + the worker that runs it, from its being taken until it is wholly
  // suspended; else 0.
  prim::atomic<std::uint8_t> runs_on{0};

  // Of a process at which another thread may look while it runs (a report on demand, beside
  // components): its own thread begins to wait so (null: it goes on), and stands there.
  void waits_in(const OpKind* kind) noexcept {
    prim::store_to(op, kind, std::memory_order_release);
  }
  void stands_at(const FunctionInfo* in, std::uint32_t at_line) noexcept {
    line.at(at_line);
    prim::store_to(about, in, std::memory_order_release);
  }
  // What the other thread reads.
  const OpKind* operation() noexcept { return prim::load_from(op, std::memory_order_acquire); }
  const FunctionInfo* stands_in() noexcept {
    return prim::load_from(about, std::memory_order_acquire);
  }
  std::uint32_t stands_on() noexcept { return line; }

  // By what it is woken and run from now on.
  void runs_by(const core::WakerOps& o) noexcept {
    prim::store_to(ops, &o, std::memory_order_relaxed);
    if (o.frame == core::kFrame)
      set(core::NodeFlags::framed);
    else
      clear(core::NodeFlags::framed);
  }
  // From any thread: a select exchanges the ops for its own while it is parked (selecting.hpp).
  Executor* executor() noexcept {
    return static_cast<const ProcessOps*>(prim::load_from(ops, std::memory_order_relaxed))
        ->executor(*this);
  }
  // Its place in the order in which its group started its children. (A plain node has no use for
  // the index of a guard.)
  std::uint32_t order() const noexcept { return core::Node::index; }
  void set_order(std::uint32_t n) noexcept { core::Node::index = n; }

  Identity::Cancel cancel() noexcept { return id.cancel(); }
  // It meets what was asked of it, but for the requests that somebody keeps account of: limits' and
  // blocks' (Limit::take).
  bool take_cancel() noexcept {
    return cancel().take(Identity::Cancel::asked | Identity::Cancel::host) != 0;
  }

 protected:
  constexpr ProcessBase() = default;
  ~ProcessBase() = default;
  ProcessBase(const ProcessBase&) = delete;
  ProcessBase& operator=(const ProcessBase&) = delete;
};

// What runs on this thread at the moment, and how it is ending. Ends ask it when they are
// destroyed: a process that an uncaught poison leaves poisons what it holds (rule 4.3).
struct Context {
  ProcessBase* running = nullptr;
  Executor* executor = nullptr;  // which runs it; null: a thread process
  bool moves = false;            // what runs here may go on on another thread
  // its frame is being destroyed after an uncaught poison of this strength
  std::uint8_t dying = 0;
  // a Poisoned of this strength was made since it was resumed
  std::uint8_t thrown = 0;
  // before another one goes on: to be looked at (`thrown` is to be cleared; its loop is to halt)
  bool attention = false;
  std::weak_ptr<void> poisoned{};  // expired once that exception and its copies are gone
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
  virtual void post(core::Waker*) noexcept = 0;  // make it runnable; from any thread
  virtual void nudge() noexcept = 0;             // look for cancellations
  virtual bool here() const noexcept = 0;        // is this the calling thread's, and nobody else's?
  // The ops of a process that is to start here.
  virtual const ProcessOps& ops_here(const ProcessOps& ops) { return ops; }
  // May processes move between threads?
  virtual bool multi() const noexcept { return false; }
  // Calls f(x) while none of its processes starts to run; by one of them. Those with runs_on != 0
  // run all the same.
  virtual void held(void (*f)(void*), void* x) { f(x); }
  // It was cancelled: withdrawn before the commit it goes on with `cancelled`. On its own thread.
  virtual void withdraw(ProcessBase& p) noexcept {
    if (p.op && p.op->withdraw(p)) p.ops->wake(&p);
  }
  // For a process that runs here and gives way: is nobody else ready, having looked everywhere? If
  // somebody is: it goes behind them.
  virtual bool nobody_ready() noexcept { return true; }
  // For a process that runs here: looks around, and puts it behind all that are ready.
  virtual void give_way(core::Waker* w) noexcept { post(w); }

 protected:
  ~Executor() = default;
};

}  // namespace weft::inline WEFT_ABI::runtime
