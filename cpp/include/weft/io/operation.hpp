// Operations on descriptors (rules 18.1 to 18.4): each is tried first, and waits only if it would
// block.
//
//   attempt() ──done──► result()
//      │ ▲ └──would block──► Waiting::begin() ──► parked ──woken──► attempt()
//      │ └────────────────────── it may not block any more ◄──┘        └──cancelled──► Cancelled
//      └──nothing will report──► Waiting::pause() ──► attempt()
//
// An operation pauses if the kernel will not report when the next attempt can succeed: accept()
// found no free descriptor or memory, or connect() found no room at a Unix listener.
//
// Only attempt() reads or writes, on the process's own thread, and the bytes that it has read are
// the result. So no byte is lost when a cancellation or a limit ends a wait.
//
// A Work has: watched(), side (static if all attempts wait for the same side), kByHint (for
// Watched::wait()), kOperation (for looks and reports), attempt() → Tried, pause_ns() (how long to
// pause), result(). Those of stream.hpp also have kVerb, for errors: "read from descriptor 7".
#pragma once
#include "../selecting.hpp"
#include "engine.hpp"

namespace weft::inline WEFT_ABI::io::detail {

enum class Tried : std::uint8_t { over, would_block, pauses };

// A process's wait for a descriptor. (The base is the wait of an operation that pauses; it is the
// first base, so that a process's `place` means the same for both.)
class Waiting : public weft::detail::Sleep {
 public:
  // Begins the wait. Returns false if the process must try again instead.
  bool begin(runtime::ProcessBase& p, Watched& w, Side s, bool by_hint,
             const runtime::OpKind& kind);
  // Begins a wait of `ns` nanoseconds.
  void pause(runtime::ProcessBase& p, std::int64_t ns);
  // Called when the process continues, on its own thread. Returns true if the wait was cancelled.
  bool end(runtime::ProcessBase& p) noexcept;

  static bool withdraw(runtime::ProcessBase& p) noexcept;
  static void visit(runtime::ProcessBase& p, runtime::WaitVisitor& v);
  static void undecided(runtime::ProcessBase& p, runtime::WaitVisitor& v);

 private:
  static Waiting& of(runtime::ProcessBase& p) noexcept {
    return *static_cast<Waiting*>(static_cast<weft::detail::Sleep*>(p.place));
  }
  Watched* watched_ = nullptr;
  Side side_ = Side::in;
  bool pauses_ = false;
};

template <class Work>
inline constexpr runtime::OpKind kWaits{Work::kOperation, &Waiting::withdraw, &Waiting::visit,
                                        &Waiting::undecided};

// Makes one attempt after another, until the operation has ended (true) or the process must park
// (false).
template <class Work>
class Trying : public Waiting {
 public:
  explicit Trying(Work&& w) noexcept : work(std::move(w)) {}
  Work work;
  bool cancelled = false;

  bool try_on(runtime::ProcessBase& p) {
    for (;;) {
      switch (work.attempt()) {
        case Tried::over: return true;
        case Tried::pauses:
          if (gives_up(p)) return true;
          pause(p, work.pause_ns());
          return false;
        case Tried::would_block:
          if (gives_up(p)) return true;
          if (begin(p, work.watched(), work.side, Work::kByHint, kWaits<Work>)) return false;
      }
    }
  }
  // Called when the process has been woken.
  bool again(runtime::ProcessBase& p) {
    cancelled = end(p);
    return cancelled || try_on(p);
  }

 private:
  bool gives_up(runtime::ProcessBase& p) noexcept {
    return cancelled = p.cancel().load(std::memory_order_relaxed) != 0;
  }
};

// Awaits an operation in a coroutine. While the process is parked it has the ops of this class, so
// that again() runs before the coroutine does.
template <class Work>
class Awaiter : Trying<Work> {
 public:
  Awaiter(Work&& w, runtime::ProcessBase* p) noexcept : Trying<Work>(std::move(w)), p_(p) {}

  bool await_ready() {
    Engine::here(*p_);
    weft::detail::meet_request(*p_);
    // `usual_` is set before the wait begins, because from then on another thread can wake the
    // process.
    usual_ = p_->ops;
    p_->runs_by(ops);
    struct Restore {
      Awaiter* a;
      ~Restore() {
        if (a) a->p_->runs_by(*a->usual_);
      }
    } restore{this};
    const bool over = this->try_on(*p_);
    if (!over) restore.a = nullptr;
    return over && weft::detail::goes_on(p_);
  }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  auto await_resume() {
    if (failure_) std::rethrow_exception(failure_);
    if (this->cancelled) weft::detail::throw_cancelled(*p_);
    return this->work.result();
  }

 private:
  static void wake(core::Waker* w) noexcept { runtime::executor_of(*process(w)).post(w); }
  static void run(core::Waker* w) {
    runtime::ProcessBase* const p = process(w);
    auto* const self =
        static_cast<Awaiter*>(static_cast<Waiting*>(static_cast<weft::detail::Sleep*>(p->place)));
    runtime::this_context->running = p;
    if (runtime::Observer* const o = runtime::watched()) [[unlikely]]
      o->resumes(*p, runtime::this_context);
    if (!self->again_or_failed(*p)) return;
    p->op = nullptr;
    p->runs_by(*self->usual_);
    p->ops->run(p);
  }
  bool again_or_failed(runtime::ProcessBase& p) {
    try {
      return this->again(p);
    } catch (...) {
      failure_ = weft::detail::caught(p);
      return true;
    }
  }
  static runtime::ProcessBase* process(core::Waker* w) noexcept {
    return static_cast<runtime::ProcessBase*>(w);
  }
  static runtime::Executor* executor_of(runtime::ProcessBase& p) noexcept {
    return &runtime::executor_of(p);
  }
  static const runtime::ProcessOps ops;

  runtime::ProcessBase* const p_;
  const core::WakerOps* usual_ = nullptr;
  std::exception_ptr failure_;
};
template <class Work>
const runtime::ProcessOps Awaiter<Work>::ops{{&Awaiter::wake, &Awaiter::run, nullptr, 0},
                                             &Awaiter::executor_of};

// The type that an operation's function returns: a coroutine awaits the object with co_await, a
// thread calls it.
template <class Work>
class [[nodiscard]] Operation {
 public:
  explicit Operation(Work&& w) noexcept : work_(std::move(w)) {}
  Awaiter<Work> bind(runtime::ProcessBase* p) && { return {std::move(work_), p}; }
  auto operator()(weft::detail::Here at = weft::detail::Here::now()) && {
    runtime::ThreadProcess& self = weft::detail::blocking_caller("an operation of weft::io");
    Engine::here(self);
    weft::detail::meet_request(self);
    Trying<Work> t(std::move(work_));
    for (bool over = t.try_on(self); !over; over = t.again(self)) {
      weft::detail::waits_at(self, at);
      self.block(*self.op);
    }
    if (t.cancelled) weft::detail::throw_cancelled(self);
    return t.work.result();
  }

 private:
  Work work_;
};

// --- readiness -----------------------------------------------------------------------------------

// Returns whether a read (or write) of the descriptor would not block now, according to poll().
// Returns true also at the end of the stream, after an error, and if the descriptor is not open.
bool is_ready(Watched& w, Side s) noexcept;

template <Side S>
struct ReadyWork {
  static constexpr Side side = S;
  static constexpr bool kByHint = false;
  static constexpr const char* kVerb = S == Side::in ? "read from" : "write to";
  static constexpr const char* kOperation =
      S == Side::in ? "read from a descriptor" : "write to a descriptor";
  std::shared_ptr<Watched> w;
  Watched& watched() noexcept { return *w; }
  Tried attempt() noexcept { return is_ready(*w, S) ? Tried::over : Tried::would_block; }
  static std::int64_t pause_ns() noexcept { return 0; }
  void result() const noexcept {}
};

extern const core::GuardOps ready_ops;

// A guard that is ready when its descriptor is. It is also an operation of its own.
template <Side S>
struct Ready : Conditional<Ready<S>> {
  using Value = void;
  std::shared_ptr<Watched> watched;
  explicit Ready(std::shared_ptr<Watched> w) noexcept : watched(std::move(w)) {}
  void fill(core::Guard& g, runtime::ProcessBase& p) {
    if (this->enabled) Engine::here(p);
    g.kind = core::Kind::descriptor;
    g.ops = &ready_ops;
    g.where = &watched->side(S);
    g.node.slot = nullptr;
  }
  Awaiter<ReadyWork<S>> bind(runtime::ProcessBase* p) const { return {ReadyWork<S>{watched}, p}; }
  void operator()(weft::detail::Here at = weft::detail::Here::now()) const {
    Operation<ReadyWork<S>>(ReadyWork<S>{watched})(at);
  }
};

}  // namespace weft::inline WEFT_ABI::io::detail
