// weft_mcu/csp_scheduler.hpp: processes (coroutines) and the actor that runs them.
//
// A Scheduler is one actor of a weft_queue. Everything that reaches its processes from outside (a
// start, a deadline, the values of a Port) is an event of that actor, and the event's action ends
// by running the processes that have become runnable. Therefore channels need no lock: only actions
// of one actor touch them, and such actions run one at a time (rule M3).
//
//   made ──start()──► runnable ──turn──► running ──co_await must wait──► waiting
//                        ▲                 │                                │
//                        │                 └──co_return──► ended            │
//                        └───────────partner, deadline──────────────────────┘
//
//   An ended process has closed its ends, and its frame is back in the arena.
//
// Invariants
//  1 Between two actions of the actor the run queue is empty, or `turn_` is posted.
//  2 All processes of a channel belong to the same scheduler.
//  3 A frame lies in its scheduler's arena. Frames of equal size reuse each other's storage; when
//    no process is left the whole arena is free again.
#pragma once
#if !defined(WEFT_PRIM_HEADER)  // This definition must come before any header of weft/core.
#define WEFT_PRIM_HEADER "weft_mcu/csp_prim.hpp"
#endif
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "weft/core/channel.hpp"
#include "weft_mcu/actors.h"
#include "weft_mcu/flight.h"

namespace weft::inline WEFT_ABI::mcu {

class Scheduler;

// The policy of channels on one core: there is no lock, and waking a process pushes it onto the run
// queue of its scheduler.
struct OneCore {
  using Lock = core::NoLock;
  using Count = core::Count<false>;
  static constexpr bool shared = false;
  static constexpr bool plain = true;
  static bool wake(core::Waker* w) noexcept {
    w->ops->home->push(w);
    return true;
  }
};

// The result of a process function: a process that has been made but not started. The function's
// first parameter is a Scheduler&, whose arena holds the process's frame.
class [[nodiscard]] Process {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;
  Process(Process&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (handle_) handle_.destroy();
  }
  // Returns false if the arena had no room for the frame.
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  friend class Scheduler;
  explicit Process(Handle h) noexcept : handle_(h) {}
  Handle handle_;
};

// The alignment of frames, on which compilers rely: 8 bytes on Arm, 16 on a PC.
inline constexpr std::size_t kGrain = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

// Storage for frames.
template <std::uint32_t Bytes>
struct Arena {
  static_assert(Bytes % kGrain == 0, "frames are multiples of 8 bytes (16 on a desk computer)");
  alignas(kGrain) unsigned char storage[Bytes];
};

class Scheduler : public core::WakerOps {
 public:
  // Makes a scheduler. `queue` is the queue for the scheduler's events; weft_work serves it as
  // usual. The constructor is constexpr, so no start-up code is needed (constinit).
  template <std::uint32_t Bytes>
  constexpr Scheduler(weft_queue *queue, Arena<Bytes> &arena) noexcept
      : core::WakerOps{&wake_one, nullptr, &runnable_, 0},
        events_(queue),
        arena_(arena.storage),
        bytes_(Bytes) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Makes a process runnable. Returns WEFT_OK, or WEFT_E_ARENA if the arena had no room for the
  // frame (a debug build panics); then nothing runs. May be called from main or a process.
  int start(Process p) noexcept;
  // Makes a placeable process by F(arguments…), and starts it. Returns what start() returns.
  // csp_anywhere.hpp defines this function.
  template <auto F, class... A>
  int start(A&&... arguments) noexcept;
  // Does what start(p) does. The flight recorder shows the process under this name (rule M24). The
  // name must live as long as the program.
  int start(Process p, const char* name) noexcept;
  // Serves the queue until every process has ended, or returns immediately if there is none. Called
  // from a core's main program.
  void run() noexcept;

  weft_queue* queue() const noexcept { return events_; }
  // Returns the number of processes that were made and have not ended.
  std::uint32_t processes() const noexcept { return live_; }
  // Returns the highest number of bytes ever taken from the arena.
  std::uint32_t arena_used() const noexcept { return used_; }
  // Returns the size of the latest frame in bytes, even if the frame was refused.
  std::uint32_t last_frame() const noexcept { return last_; }

  // The following members are for actions of this scheduler's events (deadlines, ports): push()
  // makes a waker runnable; run_runnable() runs the runnable processes.
  constexpr weft_actor* actor() noexcept { return &actor_; }
  void push(core::Waker* w) noexcept { runnable_.push(w); }
  // Counts the objects that can wake a process from outside the channels: deadlines, ports, links.
  // Only a debug build needs the count.
#if WEFT_DEBUG
  void outside(int by) noexcept { outside_ += by; }
#else
  void outside(int) noexcept {}
#endif
  void run_runnable() noexcept;

 private:
  friend struct Process::promise_type;
  struct Free {
    Free* next;
    std::size_t size;
  };
  // The number of resumptions in a turn; after a turn other due events are served. It is also the
  // number of operations of a process that may complete in a row without waiting before the
  // other processes run.
  static constexpr unsigned kTurn = 32;

  static void wake_one(core::Waker* w) noexcept { w->ops->home->push(w); }
  static std::uint32_t turn(weft_event* e, std::uint32_t release) noexcept;
  void* take(std::size_t bytes) noexcept;
  static void give(void* frame, std::size_t bytes) noexcept;
  void post_turn() noexcept { weft_post_as(events_, &turn_, weft_now32(), WEFT_KEEP); }

  struct Turn : weft_event {
    Scheduler* scheduler;
  };

  core::RunQueue runnable_;
  weft_queue* events_;
  weft_actor actor_{};
  bool stop_at_end_ = false;
#if WEFT_DEBUG
  int outside_ = 0;
  unsigned char* taken_ = nullptr;  // the storage of the latest frame
#endif
  Turn turn_{WEFT_EVENT(&turn, &actor_), this};
  unsigned char* arena_;
  std::uint32_t bytes_, top_ = 0, used_ = 0, last_ = 0, live_ = 0;
  Free* freed_ = nullptr;
  // The list of all schedulers that have allocated a frame. A frame that is given back finds its
  // arena in this list.
  Scheduler* next_ = nullptr;
  bool listed_ = false;
  static inline constinit Scheduler* all_ = nullptr;
};

// The promise is the process's waker, and the waiter of its plain operations.
struct Process::promise_type : core::Node {
  template <class... A>
  explicit promise_type(Scheduler& s, A&...) noexcept {
    ops = &s;
    ++s.live_;
#if WEFT_DEBUG
    // A frame begins with two pointers, and the promise comes next. If the first statement of the
    // function awaits in a condition, g++ 12 puts other data before them, and the process would
    // never run.
    if (reinterpret_cast<unsigned char*>(this) - s.taken_ != 2 * sizeof(void*))
      weft_panic(
          "weft: g++ has made a wrong frame for a process: declare a variable before the first "
          "statement that awaits in a condition");
#endif
  }
  promise_type(const promise_type&) = delete;
  promise_type& operator=(const promise_type&) = delete;
  ~promise_type() {
    Scheduler& s = scheduler();
    note_end();
    if (--s.live_ == 0 && s.stop_at_end_) weft_stop(s.events_);
  }
  Scheduler &scheduler() const noexcept {
    return *const_cast<Scheduler *>(static_cast<const Scheduler *>(ops));
  }
  // Called when an operation has completed without waiting. Returns true if the process must let
  // the other processes run, and go to the end of the run queue (rule M20). An operation that has
  // met a waiting process does not count, because the number of waiting processes is finite.
  // (`index` is free for this counter, since the node belongs to no choice.)
  [[gnu::noinline]] bool gives_way() noexcept {
    if (++index % Scheduler::kTurn != 0) return false;
    scheduler().push(this);
    return true;
  }

  // The following members note events of this process in the flight recorder (rule M24). `place` is
  // a channel or the end of a link; `op` is WEFT_FLIGHT_READ or a like constant. An operation that
  // waits calls note_waits, and note_goes_on when it is over; any other calls note_over.
#if WEFT_FLIGHT
  void note_start(const char* name) noexcept {
    who_ = weft_flight_process(name);
    weft_flight_note(who_, nullptr, WEFT_FLIGHT_START);
  }
  void note_end() const noexcept {
    if (who_) weft_flight_note(who_, nullptr, WEFT_FLIGHT_END);
  }
  void note_waits(const void* place, std::uint32_t op, bool buffered = false) noexcept {
    waits_ = true;
    weft_flight_note(who_, place, WEFT_FLIGHT_WAITS | rest(op, Status::ok, buffered));
  }
  void note_over(const void* place, std::uint32_t op, Status s, bool buffered = false) noexcept {
    weft_flight_note(who_, place, WEFT_FLIGHT_OVER | rest(op, s, buffered));
  }
  void note_goes_on(const void* place, std::uint32_t op, Status s, bool buffered = false) noexcept {
    if (!std::exchange(waits_, false)) return;
    weft_flight_note(who_, place, WEFT_FLIGHT_GOES_ON | rest(op, s, buffered));
  }
#else
  static void note_start(const char*) noexcept {}
  static void note_end() noexcept {}
  static void note_waits(const void*, std::uint32_t, bool = false) noexcept {}
  static void note_over(const void*, std::uint32_t, Status, bool = false) noexcept {}
  static void note_goes_on(const void*, std::uint32_t, Status, bool = false) noexcept {}
#endif

  template <class... A>
  static void* operator new(std::size_t bytes, Scheduler& s, A&...) noexcept {
    return s.take(bytes);
  }
  static void operator delete(void *frame, std::size_t bytes) noexcept {
    Scheduler::give(frame, bytes);
  }
  static Process get_return_object_on_allocation_failure() noexcept { return Process{nullptr}; }
  Process get_return_object() noexcept { return Process{Handle::from_promise(*this)}; }

  std::suspend_always initial_suspend() const noexcept { return {}; }
  std::suspend_never final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  void unhandled_exception() const noexcept {}  // There are no exceptions.

#if WEFT_FLIGHT
 private:
  static std::uint32_t rest(std::uint32_t op, Status s, bool buffered) noexcept {
    return op << WEFT_FLIGHT_OP | static_cast<std::uint32_t>(s) << WEFT_FLIGHT_STATUS |
           (buffered ? WEFT_FLIGHT_BUFFERED : 0);
  }
  friend class weft::mcu::Scheduler;
  const void* who_ = nullptr;  // stands for this process in events
  bool waits_ = false;
#endif
};

inline int Scheduler::start(Process p) noexcept {
  if (!p)
    return WEFT_MISTAKE(WEFT_E_ARENA,
                        "no room in the arena for a process; give its scheduler a larger one");
  Process::Handle h = std::exchange(p.handle_, nullptr);
  if (&h.promise().scheduler() != this)
    return WEFT_MISTAKE(WEFT_E_CORE, "a process is started by a scheduler that did not make it");
#if WEFT_FLIGHT
  weft_flight_hidden = &actor_;
  if (!h.promise().who_) h.promise().note_start(nullptr);
#endif
  runnable_.push(&h.promise());
  post_turn();
  return WEFT_OK;
}
inline int Scheduler::start(Process p, [[maybe_unused]] const char* name) noexcept {
#if WEFT_FLIGHT
  if (p) p.handle_.promise().note_start(name);
#endif
  return start(std::move(p));
}

inline void Scheduler::run() noexcept {
  if (live_ == 0) return;
  stop_at_end_ = true;
  weft_work(events_);
  stop_at_end_ = false;
  weft_resume(events_);
}

inline void Scheduler::run_runnable() noexcept {
  for (unsigned left = kTurn; !runnable_.empty();) {
    core::Waker* w = runnable_.pop();
    if (w->ops == this)
      Process::Handle::from_promise(*static_cast<Process::promise_type*>(w)).resume();
    else
      w->ops->run(w);
    if (--left == 0) {
      if (!runnable_.empty()) post_turn();
      return;
    }
  }
#if WEFT_DEBUG
  if (stop_at_end_ && live_ != 0 && outside_ == 0)
    weft_panic(
        "weft: deadlock: every process of this scheduler waits for another one, and no deadline, "
        "port or link can wake any (rule 10.1)");
#endif
}

inline std::uint32_t Scheduler::turn(weft_event* e, std::uint32_t) noexcept {
  static_cast<Turn*>(e)->scheduler->run_runnable();
  return WEFT_DONE;
}

inline void* Scheduler::take(std::size_t bytes) noexcept {
  bytes = (bytes + kGrain - 1) & ~(kGrain - 1);
  last_ = static_cast<std::uint32_t>(bytes);
  for (Free** at = &freed_; *at; at = &(*at)->next)
    if ((*at)->size == bytes) {
      Free* f = *at;
      *at = f->next;
#if WEFT_DEBUG
      taken_ = reinterpret_cast<unsigned char*>(f);
#endif
      return f;
    }
  if (bytes > bytes_ - top_) return nullptr;
  if (!listed_) {
    listed_ = true;
    next_ = all_;
    all_ = this;
  }
  unsigned char* frame = arena_ + top_;
#if WEFT_DEBUG
  taken_ = frame;
#endif
  top_ += static_cast<std::uint32_t>(bytes);
  if (top_ > used_) used_ = top_;
  return frame;
}

inline void Scheduler::give(void* frame, std::size_t bytes) noexcept {
  bytes = (bytes + kGrain - 1) & ~(kGrain - 1);
  for (Scheduler* s = all_; s; s = s->next_)
    if (static_cast<std::uintptr_t>(static_cast<unsigned char*>(frame) - s->arena_) < s->bytes_) {
      if (s->live_ == 0) {
        s->freed_ = nullptr;
        s->top_ = 0;
      } else {
        s->freed_ = ::new (frame) Free{s->freed_, bytes};
      }
      return;
    }
}

}  // namespace weft::mcu
