// Placeable processes (weft/anywhere.hpp) on a bare microcontroller, without exceptions: how they
// start and end, their ends and operations. A process is a coroutine of csp_scheduler.hpp;
// scheduler.start<f>(arguments…) starts the process (rule 19.6).
//
// If a channel has ended, and the process of an operation does not check for that, the process is
// ended at that operation: the scheduler's loop destroys its frame. The operation cannot do so,
// because a coroutine that runs cannot be destroyed. The loop resumes a frame
// through the frame's first word; end() replaces this word by the address of end_here().
//
//   an operation ─met its partner───────────────► the process goes on
//        │      └─found an end: begun() ─asked about──► it goes on, and gets the status
//        │                             └─otherwise: end() ─┐
//        └─waits ──partner──► it goes on                   ├──loop──► end_here(): destroyed
//                └─the end comes: wake() ─otherwise: end()─┘
//
//   While a select (csp_placed_select.hpp) waits, the first word is the address of
//   PlacedChoice::woken(), which leaves the guards' queues before the process goes on or is ended.
//
// Invariants
//  1 A frame that waits at one operation has nothing else in any queue. So it can be destroyed as
//    soon as the operation has an outcome.
//  2 `dying` of a core is not 0 only while end_here() destroys a frame. Meanwhile no other process
//    of this core runs.
//  3 The scheduler on which a process starts is known before the process's function is called,
//    because the call takes the frame's storage.
#pragma once
#include "weft_mcu/csp.hpp"
#include "weft_mcu/csp_board_hooks.hpp"

// These headers must come after the header above, which names the platform's primitives.
#include <chrono>
#include <limits>
#include <optional>

// Marks a function that is rarely called: it is never inlined, and is compiled for size.
#define WEFT_RARE [[gnu::noinline, gnu::cold]]

#if defined(__cpp_exceptions)
#error "weft: compile a placeable source for a board with -fno-exceptions"
#endif

namespace weft::inline WEFT_ABI {

namespace mcu {

// The parties that meet in phases (rule 8). The object is static and `constinit`, as channels are;
// a process is given a weft::Barrier, which refers to it.
class Barrier : public core::BarrierEngine<OneCore> {
 public:
  constexpr explicit Barrier(std::uint32_t parties) noexcept
      : core::BarrierEngine<OneCore>(parties) {}
};

}  // namespace mcu

namespace detail {

struct OnThisCore {
  mcu::Scheduler* making = nullptr;  // the scheduler of the processes that the core makes
  std::uint8_t dying = 0;  // the strength of the poison that ends the process of a dying frame
};
inline constinit OnThisCore on_cores[WEFT_CORES];
inline OnThisCore& on_this_core() noexcept { return on_cores[weft_core()]; }

// The number of ends of a channel that a process checks for, of retired, poisoned, died, ….
enum class Asks : std::uint8_t { nothing = 0, retirement = 1, everything = 8 };
static_assert(static_cast<int>(Status::retired) + 1 == static_cast<int>(Status::poisoned));

// Remembers where the next select over the same guards begins (rule 5.4), for the two sets of
// guards that the process selected among last. A select among other guards begins anywhere.
class Turns {
 public:
  std::uint32_t first(std::uint32_t key, std::uint32_t n) noexcept {
    if (!same(key)) std::swap(latest_, before_);
    if (!same(key)) {
      static std::uint32_t seed = 1;
      seed = seed * 1664525u + 1013904223u;  // the generator of Knuth and Lewis
      latest_ = (key & ~kMask) | ((seed >> 16) % n);
    }
    return latest_ & kMask;
  }
  void next(std::uint32_t at) noexcept { latest_ = (latest_ & ~kMask) | at; }

  static constexpr std::uint32_t kMask = 31;

 private:
  bool same(std::uint32_t key) const noexcept { return ((latest_ ^ key) & ~kMask) == 0; }
  // The low bits say where the next select begins, the other bits hold the key of the guards. (Two
  // members, since the compiler would call memset for an array.)
  std::uint32_t latest_ = 0, before_ = 0;
};

class PlacedPromise;

}  // namespace detail

// The result of a placeable process function. scheduler.start<f>(…) starts it, or another process
// awaits it as a step: the other process resumes when the awaited one has ended in any way.
class [[nodiscard]] Process {
 public:
  using promise_type = detail::PlacedPromise;

  Process(Process&& other) noexcept : promise_(other.release()) {}
  Process& operator=(Process&&) = delete;
  inline ~Process();
  // Returns false if the arena had no room for the frame.
  explicit operator bool() const noexcept { return promise_ != nullptr; }

  static constexpr bool await_ready() noexcept { return false; }
  inline void await_suspend(std::coroutine_handle<detail::PlacedPromise> caller) noexcept;
  static void await_resume() noexcept {}

 private:
  friend detail::PlacedPromise;
  friend mcu::Scheduler;
  explicit Process(detail::PlacedPromise* p) noexcept : promise_(p) {}
  detail::PlacedPromise* release() noexcept { return std::exchange(promise_, nullptr); }
  // Null if there was no room for the frame, and after the process has been started.
  detail::PlacedPromise* promise_;
};

namespace detail {

class PlacedPromise : public mcu::Process::promise_type, public board::Watched {
  using Base = mcu::Process::promise_type;
  // The beginning of a coroutine's frame, the same with every known compiler.
  struct Frame {
    void (*resume)(void*);
    void (*destroy)(void*);
  };

 public:
  using Handle = std::coroutine_handle<PlacedPromise>;

  WEFT_RARE PlacedPromise() noexcept : Base(*on_this_core().making) {
    flags = core::NodeFlags::framed;
#if WEFT_PLACED_BOARD
    call = board::making();
#endif
  }
  PlacedPromise(const PlacedPromise&) = delete;
  PlacedPromise& operator=(const PlacedPromise&) = delete;
  WEFT_RARE ~PlacedPromise() {
    board::over(*this);
    if (awaited_by) scheduler().push(awaited_by);
  }

  WEFT_RARE static void* operator new(std::size_t bytes) noexcept {
    mcu::Scheduler* const s = on_this_core().making;
    return s ? Base::operator new(bytes, *s) : nullptr;
  }
  WEFT_RARE static void operator delete(void *frame, std::size_t bytes) noexcept {
    Base::operator delete(frame, bytes);
  }
  // From now on the processes that this core makes belong to `s`.
  WEFT_RARE static void makes(mcu::Scheduler& s) noexcept {
    s.wake = &wake;
    on_this_core().making = &s;
  }
  WEFT_RARE static int starts(mcu::Scheduler& s, PlacedPromise* p) noexcept {
    return s.start(p ? p->Base::get_return_object()
                     : Base::get_return_object_on_allocation_failure());
  }
  static int starts(mcu::Scheduler& s, Process&& p) noexcept { return starts(s, p.release()); }
  static PlacedPromise* of(const Process& p) noexcept { return p.promise_; }
  static Process get_return_object_on_allocation_failure() noexcept { return Process(nullptr); }
  Process get_return_object() noexcept { return Process(this); }

  Frame& frame() noexcept { return *static_cast<Frame*>(Handle::from_promise(*this).address()); }

  // Returns whether `s` is an end that the process does not check for.
  bool unasked(Status s) const noexcept {
    return static_cast<unsigned>(s) >=
           static_cast<unsigned>(Status::retired) + static_cast<unsigned>(asks);
  }
  // Makes the loop end the process, with its status, instead of resuming it.
  void end() noexcept { frame().resume = &end_here; }
  // Called with the result of an operation's beginning. Returns whether the process must suspend.
  WEFT_RARE bool begun(Status s) noexcept {
    if (s == Status::pending) return true;
    status = s;
    if (!unasked(s)) return gives_way();
    end();
    scheduler().push(this);
    return true;
  }
  // Called by an operation of a process that was asked to end.
  WEFT_RARE bool cancelled() noexcept {
    asks = Asks::nothing;
    status = Status::cancelled;
    end();
    scheduler().push(this);
    return true;
  }
  // Called by an operation at an end that is closed, which is bad use (rule 2.2).
  WEFT_RARE bool closed() noexcept {
    (void)WEFT_MISTAKE(0, "an operation at an end that was retired, or moved from (rule 2.2)");
    asks = Asks::nothing;
    return begun(Status::retired);
  }
  // Wakes a process of the scheduler. A partner may push the process directly; the end of a channel
  // always calls this function.
  WEFT_RARE static void wake(core::Node* w) noexcept {
    if (w->is(core::NodeFlags::framed)) {
      auto* const p = static_cast<PlacedPromise*>(w);
      if (p->unasked(p->status)) p->end();
    }
    w->ops->home->push(w);
  }
  WEFT_RARE static void end_here(void* frame) noexcept {
    const Handle h = Handle::from_address(frame);
    PlacedPromise& p = h.promise();
    std::uint8_t& dying = on_this_core().dying;
    board::dies(p);
    if (p.status == Status::poisoned)
      dying = static_cast<core::ChannelBase<mcu::OneCore>*>(
                  static_cast<core::SyncObject*>(p.place))
                  ->poison_strength();
    h.destroy();
    dying = 0;
  }

  Asks asks = Asks::nothing;  // what the process checks for while an operation waits
  Turns turns;
  PlacedPromise* awaited_by = nullptr;
};
static_assert(alignof(PlacedPromise) == alignof(mcu::Process::promise_type),
              "a frame is found from both");

// Begins a plain operation, which waits by the process's own node. Returns whether the process must
// suspend.
template <class T, core::Side S>
#if !defined(__OPTIMIZE_SIZE__)
[[gnu::always_inline]]
#endif
inline bool begin(PlacedPromise& p, mcu::ChannelEngine<T>* c, void* value) noexcept {
  if (!c) return p.closed();
  if (p.asked) return p.cancelled();
  using Fast = typename mcu::ChannelEngine<T>::FastResult;
  const Fast fast = c->template begin_fast<S>(p, value);
  if (fast == Fast::waits) return board::waits(p, c), true;
  if (fast == Fast::met) {
    p.status = Status::ok;
    return false;
  }
  p.slot = value;
  const Status s = c->template begin_slow<S>(p);
  if (s == Status::pending) board::waits(p, c);
  return p.begun(s);
}
// All reads of a type share this function. Writes are inlined, except under -Os. If reads were
// inlined too, a communication would take 15 cycles less on the RP2040, and the program would have
// 7 % more bytes than one of weft::mcu's processes (tests/run.mjs compares the two).
template <class T>
[[gnu::noinline]] bool begin_read(PlacedPromise& p, mcu::ChannelEngine<T>* c, void* to) noexcept {
  return begin<T, core::Side::in>(p, c, to);
}

template <class T, core::Side S, Asks A>
struct PlacedOp {
  union {
    mcu::ChannelEngine<T>* channel;
    PlacedPromise* me;  // set by await_suspend if the process checks for the channel's end
  };
  union {
    T value;
  };
  [[no_unique_address]] board::At at;
  PlacedOp(mcu::ChannelEngine<T>* c, board::At a) noexcept : channel(c), at(a) {}
  PlacedOp(mcu::ChannelEngine<T>* c, const T& v, board::At a) noexcept
      : channel(c), value(v), at(a) {}

  static constexpr bool await_ready() noexcept { return false; }
  bool await_suspend(PlacedPromise::Handle h) noexcept {
    PlacedPromise& p = h.promise();
    mcu::ChannelEngine<T>* const c = channel;
    p.begins(at);
    if constexpr (A != Asks::nothing) {
      me = &p;
      p.asks = A;
    }
    if constexpr (S == core::Side::in)
      return begin_read<T>(p, c, &value);
    else
      return begin<T, S>(p, c, &value);
  }
  // Called once: after this call the process no longer checks for an end.
  Status outcome() noexcept {
    me->asks = Asks::nothing;
    return me->status;
  }
};

template <class T>
struct PlacedRead : PlacedOp<T, core::Side::in, Asks::nothing> {
  using PlacedOp<T, core::Side::in, Asks::nothing>::PlacedOp;
  T await_resume() const noexcept { return this->value; }
};
template <class T>
struct PlacedNext : PlacedOp<T, core::Side::in, Asks::retirement> {
  using PlacedOp<T, core::Side::in, Asks::retirement>::PlacedOp;
  std::optional<T> await_resume() noexcept {
    if (this->outcome() != Status::ok) return std::nullopt;
    return this->value;
  }
};
template <class T>
struct PlacedWrite : PlacedOp<T, core::Side::out, Asks::nothing> {
  using PlacedOp<T, core::Side::out, Asks::nothing>::PlacedOp;
  void await_resume() const noexcept {}
};
template <class T>
struct PlacedWriteOrEnd : PlacedOp<T, core::Side::out, Asks::everything> {
  using PlacedOp<T, core::Side::out, Asks::everything>::PlacedOp;
  Status await_resume() noexcept { return this->outcome(); }
};

// --- time ----------------------------------------------------------------------------------------

inline std::int64_t board_now() noexcept { return static_cast<std::int64_t>(weft_now64()); }

inline constexpr std::int64_t kNever = prim::forever;

// Returns a span in us, rounded up, so that nothing is early (rule 8.5). Returns kNever for a span
// that is beyond the clock.
template <class Rep, class Period>
constexpr std::int64_t micros(std::chrono::duration<Rep, Period> span) noexcept {
  using Micros = std::chrono::microseconds;
  if (span <= span.zero()) return 0;
  if constexpr (std::is_integral_v<Rep>) {
    using Factor = std::ratio_divide<Period, std::micro>;
    if constexpr (Factor::num > 1)
      if (span.count() > kNever / Factor::num) return kNever;
  } else {
    if (!(span < std::chrono::duration<double, std::micro>(9e18))) return kNever;
  }
  if (span == span.max()) return kNever;
  return std::chrono::ceil<Micros>(span).count();
}
inline std::int64_t later(std::int64_t us) noexcept {
  const std::int64_t now = board_now();
  return us > kNever - now ? kNever : now + us;
}

// Ends a choice at a 64-bit time. The event of a Deadline may be at most 67 minutes ahead, so the
// event of this timer is posted again until the time has come. There is no event for kNever.
struct PlacedTimer : mcu::detail::Deadline {
  std::int64_t at = 0;

  constexpr PlacedTimer() noexcept : Deadline(0) {}
  void begin(mcu::Scheduler& s, core::Choice& c, std::int64_t when) noexcept {
    if (when == kNever) return;
    at = when;
    until = weft_now32() + hop();
    post(s, c);
    action = &reached;
  }

 private:
  std::uint32_t hop() const noexcept {
    const std::int64_t left = at - board_now();
    if (left <= 0) return 0;
    return left < mcu::detail::kHop ? static_cast<std::uint32_t>(left) : mcu::detail::kHop;
  }
  static std::uint32_t reached(weft_event* e, std::uint32_t release) noexcept {
    auto* const t = static_cast<PlacedTimer*>(e);
    const std::uint32_t n = t->hop();
    if (n == 0) return fire(e, release);
    t->until = release + n;
    return n;
  }
};

struct PlacedSleep {
  std::int64_t us;
  [[no_unique_address]] board::At at = {};
  PlacedTimer timer{};
  core::Choice choice{};
  static constexpr bool await_ready() noexcept { return false; }
  bool await_suspend(PlacedPromise::Handle h) noexcept {
    PlacedPromise& p = h.promise();
    p.begins(at);
    if (p.asked) return p.cancelled();
    if (us <= 0) return p.gives_way();
#if WEFT_PLACED_BOARD
    p.sleep = this;
#endif
    choice.waker = &p;
    choice.arm();
    timer.begin(p.scheduler(), choice, later(us));
    return true;
  }
#if WEFT_PLACED_BOARD
  void await_resume() const noexcept {
    if (choice.waker) static_cast<PlacedPromise*>(choice.waker)->sleep = nullptr;
  }
  // Ends the sleep and its process. Returns false if the time has come.
  bool cancel(PlacedPromise& p) noexcept {
    if (!choice.finish_as(core::CANCELLED)) return false;
    timer.end(p.scheduler());
    p.cancelled();
    return true;
  }
#else
  static void await_resume() noexcept {}
#endif
};

}  // namespace detail

// --- ends ----------------------------------------------------------------------------------------

namespace detail {

template <class T>
inline constexpr bool kOnBoard = [] {
  static_assert(std::is_trivially_copyable_v<T>,
                "weft: on a board a channel carries values that are trivially copyable: numbers, "
                "and structs and arrays of a fixed size of them. A string or a container needs a "
                "heap");
  return true;
}();

// Called when an end is destroyed: poisons its channel if a poison is ending the process (rule
// 4.3).
template <class T>
[[gnu::noinline]] void spread(mcu::ChannelEngine<T>* c) noexcept {
  const std::uint8_t s = on_this_core().dying;
  if (c && s) c->poison(s);
}

}  // namespace detail

template <class T>
class Reader : mcu::Reader<T> {
  static_assert(detail::kOnBoard<T>);
  using Base = mcu::Reader<T>;

 public:
  using value_type = T;
  Reader(Base&& end) noexcept : Base(static_cast<Base&&>(end)) {}
  Reader(Reader&&) noexcept = default;
  Reader& operator=(Reader&&) noexcept = default;
  WEFT_RARE ~Reader() {
    detail::spread(this->core_);
    if constexpr (board::kServed) retire();  // Otherwise the base class closes the end.
  }

  // Reads the next value; co_await the result. If the channel has ended, the process ends.
  [[nodiscard]] detail::PlacedRead<T> read(board::At at = board::At::here()) const noexcept {
    return detail::PlacedRead<T>(this->core_, at);
  }
  // Reads the next value; co_await the result, which is empty if the channel has retired. If the
  // channel has ended otherwise, the process ends.
  [[nodiscard]] detail::PlacedNext<T> next(board::At at = board::At::here()) const noexcept {
    return detail::PlacedNext<T>(this->core_, at);
  }
  void retire() noexcept {
    mcu::ChannelEngine<T>* const c = this->core_;
    this->drop();
    board::changed(c);
  }
  void poison(std::uint8_t strength = 1) noexcept {
    Base::poison(strength);
    board::changed(this->core_);
  }
  using Base::core;
};

template <class T>
class Writer : mcu::Writer<T> {
  static_assert(detail::kOnBoard<T>);
  using Base = mcu::Writer<T>;

 public:
  using value_type = T;
  Writer(Base&& end) noexcept : Base(static_cast<Base&&>(end)) {}
  Writer(Writer&&) noexcept = default;
  Writer& operator=(Writer&&) noexcept = default;
  WEFT_RARE ~Writer() {
    detail::spread(this->core_);
    if constexpr (board::kServed) retire();  // Otherwise the base class closes the end.
  }

  // Writes a value; co_await the result. If the channel has ended, the process ends.
  [[nodiscard]] detail::PlacedWrite<T> write(const T& v,
                                             board::At at = board::At::here()) const noexcept {
    return detail::PlacedWrite<T>(this->core_, v, at);
  }
  void retire() noexcept {
    mcu::ChannelEngine<T>* const c = this->core_;
    this->drop();
    board::changed(c);
  }
  void poison(std::uint8_t strength = 1) noexcept {
    Base::poison(strength);
    board::changed(this->core_);
  }
  using Base::core;
};

// Does what write_or_end() of anywhere_hosted.hpp does.
template <class T>
[[nodiscard]] detail::PlacedWriteOrEnd<T> write_or_end(const Writer<T>& w,
                                                  const std::type_identity_t<T>& v,
                                                  board::At at = board::At::here()) noexcept {
  return detail::PlacedWriteOrEnd<T>(w.core(), v, at);
}

// A reference to a barrier of the board's program (mcu::Barrier).
class Barrier {
 public:
  using Engine = core::BarrierEngine<mcu::OneCore>;
  Barrier(mcu::Barrier& b) noexcept : barrier_(&b) {}

  struct Sync {
    Engine* barrier;
    static constexpr bool await_ready() noexcept { return false; }
    bool await_suspend(detail::PlacedPromise::Handle h) const noexcept {
      detail::PlacedPromise& p = h.promise();
      if (barrier->enrolled() == 0)
        (void)WEFT_MISTAKE(0, "sync() at a barrier at which nobody is enrolled (rule 8.2)");
      return p.begun(barrier->begin_sync(p));
    }
    static void await_resume() noexcept {}
  };
  // Waits until every enrolled party has arrived; co_await the result.
  [[nodiscard]] Sync sync() const noexcept { return {barrier_}; }
  void enrol() const noexcept { barrier_->enrol_party(); }
  void resign() const noexcept {
    if (!barrier_->resign())
      (void)WEFT_MISTAKE(0, "resign() at a barrier at which nobody is enrolled (rule 8.2)");
  }
  Engine* core() const noexcept { return barrier_; }

 private:
  Engine* barrier_;
};

// Returns the time in ns since the board was started. The clock counts whole microseconds.
inline std::int64_t now() noexcept { return detail::board_now() * 1000; }
// Sleeps for at least that span; co_await the result.
template <class Rep, class Period>
[[nodiscard]] detail::PlacedSleep sleep(std::chrono::duration<Rep, Period> span,
                                        board::At at = board::At::here()) noexcept {
  return {detail::micros(span), at};
}

// --- starting ------------------------------------------------------------------------------------

Process::~Process() {
  if (promise_) detail::PlacedPromise::Handle::from_promise(*promise_).destroy();
}

void Process::await_suspend(std::coroutine_handle<detail::PlacedPromise> caller) noexcept {
  if (!promise_)
    weft_panic("weft: no room in the arena for a process that another one awaits; give the "
               "scheduler a larger one");
  mcu::Scheduler& s = promise_->scheduler();
  if (&s != &caller.promise().scheduler())
    weft_panic("weft: a process awaits another one, and its core has started processes of another "
               "scheduler meanwhile: await processes where the core has one scheduler");
  promise_->awaited_by = &caller.promise();
  (void)detail::PlacedPromise::starts(s, release());
}

namespace mcu {
template <auto F, class... A>
int Scheduler::start(A&&... arguments) noexcept {
  static_assert(std::is_same_v<decltype(F(static_cast<A&&>(arguments)...)), weft::Process>,
                "weft: start<f>(arguments…) is for a placeable process, which returns a "
                "weft::Process");
  weft::detail::PlacedPromise::makes(*this);
  weft::Process p = F(static_cast<A&&>(arguments)...);
  return weft::detail::PlacedPromise::starts(*this, p.release());
}
}  // namespace mcu
}  // namespace weft::inline WEFT_ABI

#undef WEFT_RARE
