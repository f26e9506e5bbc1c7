// Coroutine processes: a process is a function that returns weft::Process (or weft::ProcessOf<R>)
// and co_awaits its operations.
//
//   weft::Process successor(weft::Reader<int> in, weft::Writer<int> out) {
//     while (auto v = co_await in.next()) co_await out.write(*v + 1);
//   }
//
// The promise object is the process, with its waiter, its name and its place in the group. A
// process has one node for all its plain operations, so an awaiter is just a pointer and a value.
#pragma once
#include <array>
#include <coroutine>
#include <iterator>
#include <vector>

#include "channel.hpp"
#include "checked.hpp"
#include "result.hpp"
#include "runtime/function_info.hpp"
#include "runtime/observer.hpp"

namespace weft::inline WEFT_ABI {

namespace detail {

class PromiseBase;

template <class A>
struct IsReader : std::false_type {};
template <class T, class P>
struct IsReader<Reader<T, P>> : std::true_type {};
template <class A>
struct IsWriter : std::false_type {};
template <class T, class P>
struct IsWriter<Writer<T, P>> : std::true_type {};

// A range that a `for` can iterate over. It is used in place of std::ranges::range, because
// <ranges> takes long to parse.
namespace walk {
using std::begin;
using std::end;
template <class A>
concept Range = requires(A& a) {
  begin(a);
  end(a);
};
template <Range A>
using ElementOf = std::remove_cvref_t<decltype(*begin(std::declval<A&>()))>;
}  // namespace walk
using walk::ElementOf;
using walk::Range;

// Whether A is an end of a local channel, or a range of such ends.
template <class A>
struct IsLocalEnd : std::false_type {};
template <class T>
struct IsLocalEnd<Reader<T, Local>> : std::true_type {};
template <class T>
struct IsLocalEnd<Writer<T, Local>> : std::true_type {};
template <class A>
constexpr bool holds_local() {
  if constexpr (Range<const A> && !IsReader<A>::value)  // A reader end is a range too.
    return IsLocalEnd<ElementOf<const A>>::value;
  else
    return IsLocalEnd<A>::value;
}

// Records the process as the holder of the ends among its arguments.
template <class A>
void note_holder(const A& a, std::uint32_t id) {
  if constexpr (IsReader<A>::value) {
    if (a.core()) a.core()->last_reader = id;
  } else if constexpr (IsWriter<A>::value) {
    if (a.core()) a.core()->last_writer = id;
  } else if constexpr (Range<const A>) {
    using E = ElementOf<const A>;
    if constexpr (IsReader<E>::value || IsWriter<E>::value)
      for (const auto& e : a) note_holder(e, id);
  }
}

// Whether an argument is itself an end (or a container of ends), which the process then holds.
template <class A>
inline constexpr bool kHolds = IsReader<A>::value || IsWriter<A>::value;
template <class E, class Alloc>
inline constexpr bool kHolds<std::vector<E, Alloc>> = kHolds<E>;
template <class E, std::size_t N>
inline constexpr bool kHolds<std::array<E, N>> = kHolds<E>;
template <class A>
void visit_held(const void* at, runtime::Ends& v) {
  const A& a = *static_cast<const A*>(at);
  if constexpr (Range<const A> && !IsReader<A>::value) {
    for (const auto& e : a) visit_held<std::remove_cvref_t<decltype(e)>>(&e, v);
  } else if (auto* const c = a.core()) {
    v.end(*c, IsWriter<A>::value, at, c->reader_ends(), c->writer_ends());
    if (v.wants_figures()) {
      runtime::Passed figures;
      figures.glances = true;
      figures.at(*c, IsWriter<A>::value);
      v.figures(figures);
    }
  }
}

template <class Engine>
Engine* channel_of(const runtime::ProcessBase* p) noexcept {
  return static_cast<Engine*>(static_cast<core::SyncObject*>(p->place));
}

// Represents a process whose operation has completed successfully. Because it is a constant, an
// awaiter that refers to it has nothing to test.
struct Done final : runtime::ProcessBase {
  constexpr Done() noexcept { status = Status::ok; }
};
inline constexpr Done done;

// The operation of a process that lets others run after an operation that completed without
// waiting. The process is in the run queue.
inline constexpr runtime::OpKind giving_way{
    "yield", [](runtime::ProcessBase&) noexcept { return false; }, nullptr};

[[gnu::noinline, gnu::cold]] inline const runtime::ProcessBase* gives_way(
    runtime::ProcessBase* p) noexcept {
  p->line.begin_anew();
  p->op = &giving_way;
  runtime::this_context->executor->give_way(p);
  return p;
}
[[gnu::noinline, gnu::cold]] inline const runtime::ProcessBase* failed_at_once(
    runtime::ProcessBase* p, Status s, std::uint32_t at) noexcept {
  p->status = s;
  p->line.at(at);
  return p->line.at_once() ? gives_way(p) : p;
}
// Called when the process has met a party that does not run on its scheduler.
[[gnu::noinline, gnu::cold]] inline const runtime::ProcessBase* met_and_gives_way(
    runtime::ProcessBase* p) noexcept {
  p->status = Status::ok;
  return gives_way(p);
}
// Called in await_ready() of an operation that has ended. Returns whether its process continues at
// once.
inline bool goes_on(runtime::ProcessBase* p) noexcept {
  if (!p->line.at_once()) [[likely]]
    return true;
  gives_way(p);
  return false;
}

// Begins an operation in the general case: the end might be closed, the process might be cancelled,
// or another process might have used the channel last. The function asks this_process() for the
// process, since one more argument would pin a register in the inlined fast path.
template <class Engine, core::Side S>
[[gnu::noinline, gnu::cold]] const runtime::ProcessBase* begin_in_full(core::SyncObject* place,
                                                                       void* slot,
                                                                       std::uint32_t at) {
  if (is_no_place(place))
    no_place(place, S == core::Side::in ? "read" : "write",
             S == core::Side::in ? "reader" : "writer");
  runtime::ProcessBase* const p = runtime::this_process();
  p->place = place;
  p->op = nullptr;  // A multi-core executor leaves `op` as it was; await_ready() reads it.
  // Rule 6.1: a cancelled process begins no operation.
  if (p->cancel().load(std::memory_order_relaxed) != 0) [[unlikely]]
    return failed_at_once(p, Status::cancelled, at);
  (S == core::Side::in ? place->last_reader : place->last_writer) = p->id;
  p->slot = slot;
  const Status s = static_cast<Engine*>(place)->template begin<S>(*p);
  if (s == Status::ok) [[likely]] {
    p->status = s;
    return p->line.at_once() ? gives_way(p) : p;
  }
  if (s != Status::pending) return failed_at_once(p, s, at);
  p->line = at;
  p->op = S == core::Side::in ? &read_op<Engine> : &write_op<Engine>;
  return p;
}

// These functions look up the running process again: an argument would pin a register in the fast
// path.
template <class Engine>
[[noreturn, gnu::cold, gnu::noinline]] void read_failed() {
  const runtime::ProcessBase* p = runtime::this_process();
  throw_end_of(channel_of<Engine>(p), p->status, "read");
}
template <class Engine, class T>
[[noreturn, gnu::cold, gnu::noinline]] void write_failed(T& value) {
  const runtime::ProcessBase* p = runtime::this_process();
  throw_end_with(channel_of<Engine>(p), p->status, "write", std::move(value));
}

// An operation begins where its awaiter is made, because the source line is known there, which a
// report will need if the process parks. The awaiter keeps a pointer to the process, or to `done`,
// so that the usual outcome is stored once and tested once. The test for the last user of the
// channel also finds closed ends. (`op` is null if the process does not park: a scheduler or
// begin_in_full() clears it. `&room` is written out where it is needed: a variable for it would be
// computed on every path.)
template <class T, class P, core::Side S>
class PlainAwaiter {
 public:
  using Engine = EngineOf<T, P>;

  // Declared but not defined, since an awaiter must never be copied: other parties know the address
  // of its room. The constructor is not `= delete`: if all copies and moves are deleted, g++ 12 for
  // aarch64 returns so small an object in registers, which is a copy.
  PlainAwaiter(const PlainAwaiter&) noexcept;
  PlainAwaiter& operator=(const PlainAwaiter&) = delete;
  [[gnu::always_inline]] bool await_ready() const noexcept { return !p->op; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
#if WEFT_CHECKED
  bool has_ended() const noexcept { return p->status != Status::ok; }
#endif

 protected:
  [[gnu::always_inline]] PlainAwaiter() noexcept {}
  [[gnu::always_inline]] explicit PlainAwaiter(T&& v) noexcept : room(std::move(v)) {}
  ~PlainAwaiter() = default;
  [[gnu::always_inline]] void begin(runtime::ProcessBase* me, core::SyncObject* place,
                                    std::uint32_t at) {
#if WEFT_CHECK_LOCAL
    if constexpr (!P::shared)
      if (!is_no_place(place) && static_cast<Engine*>(place)->waits_elsewhere()) [[unlikely]]
        not_at_home(place, S == core::Side::in ? "read" : "write");
#endif
    not_from_outside(*place);
    WEFT_POINT(
        arrives(*me, *place, S == core::Side::in ? runtime::Access::read : runtime::Access::write));
    if (!me->id.is_uncancelled(S == core::Side::in ? place->last_reader : place->last_writer))
        [[unlikely]] {
      p = begin_in_full<Engine, S>(place, &room, at);
      return;
    }
    const auto q = static_cast<Engine*>(place)->template begin_fast<S>(*me, &room);
    if (q == Engine::FastResult::met) [[likely]] {
      p = &done;
    } else if (q == Engine::FastResult::neither) [[unlikely]] {
      p = begin_in_full<Engine, S>(place, &room, at);
    } else if (P::shared && q == Engine::FastResult::met_afar) {
      p = core::one_to_one<P> || me->line.at_once() ? met_and_gives_way(me) : &done;
    } else {
      me->line = at;
      me->op = S == core::Side::in ? &read_op<Engine> : &write_op<Engine>;
      p = me;
    }
  }

  const runtime::ProcessBase* p;
  // The value that was read, or the value to write.
  std::conditional_t<S == core::Side::in, Slot<T>, T> room;
};

template <class T, class P>
struct ReadAwaiter : PlainAwaiter<T, P, core::Side::in> {
  [[gnu::always_inline]] ReadAwaiter(runtime::ProcessBase* me, core::SyncObject* place,
                                     std::uint32_t at) {
    this->begin(me, place, at);
  }
  [[gnu::always_inline]] T await_resume() {
    if (this->p->status != Status::ok) [[unlikely]]
      read_failed<EngineOf<T, P>>();
    return this->room.take();
  }
};

template <class T, class P>
struct NextAwaiter : ReadAwaiter<T, P> {
  [[gnu::always_inline]] NextAwaiter(runtime::ProcessBase* me, core::SyncObject* place,
                                     std::uint32_t at)
      : ReadAwaiter<T, P>(me, place, at) {}
  [[gnu::always_inline]] std::optional<T> await_resume() {
    if (this->p->status == Status::retired) [[unlikely]]
      return std::nullopt;
    return std::optional<T>(ReadAwaiter<T, P>::await_resume());
  }
};

template <class T, class P>
struct WriteAwaiter : PlainAwaiter<T, P, core::Side::out> {
  [[gnu::always_inline]] WriteAwaiter(runtime::ProcessBase* me, core::SyncObject* place, T&& v,
                                      std::uint32_t at)
      : PlainAwaiter<T, P, core::Side::out>(std::move(v)) {
    this->begin(me, place, at);
  }
  [[gnu::always_inline]] void await_resume() {
    if (this->p->status != Status::ok) [[unlikely]]
      write_failed<EngineOf<T, P>>(this->room);
  }
};

static_assert(!std::is_trivially_copy_constructible_v<ReadAwaiter<int, Local>>);
static_assert(!std::is_trivially_copy_constructible_v<NextAwaiter<int, Local>>);
static_assert(!std::is_trivially_copy_constructible_v<WriteAwaiter<int, Local>>);

}  // namespace detail

// An awaitable of the library. bind(process) returns its awaiter, for the process that awaits it.
template <class A>
concept Operation = requires(A a, runtime::ProcessBase* p) {
  std::move(a).bind(p);
};

class Executor;
struct YieldOp;
template <class R>
class Placed;
template <class R>
class [[nodiscard(
    "a process does nothing until it is started: give it to run, par, seq, spawn or co_await "
    "it")]] BasicProcess;

namespace detail {

[[noreturn]] void local_on_cores(const runtime::ProcessBase& p);

class PromiseBase : public runtime::ProcessBase, public runtime::Pooled {
 public:
  template <class... A>
  explicit PromiseBase(const A&... args) {
    ops = &kOps;
    (note(args), ...);
    if constexpr ((kHolds<A> || ...)) remember(args...);
  }
  static void* operator new(std::size_t n) {
    void* const p = runtime::Pool::allocate(n);
    runtime::last_frame = {static_cast<const char*>(p), n};
    return p;
  }
  static void operator delete(void* p, std::size_t n) noexcept { runtime::Pool::release(p, n); }

  // Records the function that has been called, and its place in the source. Throws BadUse if g++
  // has laid out the frame wrongly, so that the process could never run.
  void called(const char* by_name, const char* in, std::uint32_t at) {
    if (runtime::has_wrong_frame(this)) [[unlikely]]
      wrong_frame(by_name, in, at);
    function = by_name;
    about = runtime::in_file(about, in);
    line = at;
  }
  [[noreturn]] static void wrong_frame(const char* function, const char* file, std::uint32_t line);

  std::suspend_always initial_suspend() const noexcept { return {}; }
  void ended_well() noexcept { ::new (static_cast<void*>(&slot)) std::exception_ptr; }
  static const runtime::ProcessOps kOps;
#if WEFT_CHECKED
  static const runtime::ProcessOps kEnds;  // the ops of a process that is to close its ends
#endif

  // At the end the process first closes its ends (with the frame), then notifies its group (rule
  // 7.7).
  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
#if WEFT_CHECKED
      PromiseBase& me = h.promise();
      if (runtime::points && runtime::points->ends_later(me)) {
        me.op = &paused_op;
        me.runs_by(kEnds);
        return;
      }
      end(h);
    }
    template <class Promise>
    static void end(std::coroutine_handle<Promise> h) noexcept {
#endif
      PromiseBase& p = h.promise();
      runtime::Group* g = p.group;
      std::exception_ptr left = std::move(p.left());
      p.left().~exception_ptr();
      const std::uint32_t order = p.order();
      const Ending how = p.ending;
      runtime::Context& c = *runtime::this_context;
      c.dying = p.dying;
      g->unlink(p);
      h.destroy();
      c.dying = 0;
      WEFT_POINT(ended(g, how));
      c.running = nullptr;
      g->finished(order, std::move(left), how);
    }
    void await_resume() const noexcept {}
  };
  Final final_suspend() const noexcept { return {}; }

  void unhandled_exception() noexcept;
  // Called when the process has ended without a co_return, and so without a result.
  void gave_nothing() noexcept;

#if WEFT_CHECKED
  // The checked forms of the operations below: each of them waits until the check lets it begin.
  template <class T, class P>
  auto await_transform(ReadOp<T, P>* o, std::uint32_t at = __builtin_LINE()) {
    auto* const place = reinterpret_cast<core::SyncObject*>(o);
    return checked(at, [this, place, at] { return ReadAwaiter<T, P>(this, place, at); });
  }
  template <class T, class P>
  auto await_transform(NextOp<T, P>* o, std::uint32_t at = __builtin_LINE()) {
    auto* const place = reinterpret_cast<core::SyncObject*>(o);
    return checked(at, [this, place, at] { return NextAwaiter<T, P>(this, place, at); });
  }
  template <class T, class P>
  auto await_transform(WriteOp<T, P>&& o, std::uint32_t at = __builtin_LINE()) {
    return checked(at, [this, &o, at] {
      core::SyncObject* const place = o.place;
      if constexpr (!std::is_trivially_copyable_v<T>) o.place = &spent_place;
      return WriteAwaiter<T, P>(this, place, std::move(o.value), at);
    });
  }
  template <Operation A>
  auto await_transform(A&& a, std::uint32_t at = __builtin_LINE()) {
    line.at(at);
    using Inner = decltype(std::forward<A>(a).bind(this));
    if constexpr (requires { Inner::is_checked; })
      return std::forward<A>(a).bind(this);
    else
      return checked(
          at, [this, &a] { return std::forward<A>(a).bind(this); },
          std::is_same_v<std::remove_cvref_t<A>, YieldOp>);
  }
  template <class Make>
  Checked<Make> checked(std::uint32_t at, Make make, bool yields = false) {
    line.at(at);
    return Checked<Make>(this, handle(), yields, std::move(make));
  }
#else
  template <class T, class P>
  [[gnu::always_inline]] ReadAwaiter<T, P> await_transform(ReadOp<T, P>* o,
                                                           std::uint32_t at = __builtin_LINE()) {
    return {this, reinterpret_cast<core::SyncObject*>(o), at};
  }
  template <class T, class P>
  [[gnu::always_inline]] NextAwaiter<T, P> await_transform(NextOp<T, P>* o,
                                                           std::uint32_t at = __builtin_LINE()) {
    return {this, reinterpret_cast<core::SyncObject*>(o), at};
  }
  template <class T, class P>
  [[gnu::always_inline]] WriteAwaiter<T, P> await_transform(WriteOp<T, P>&& o,
                                                            std::uint32_t at = __builtin_LINE()) {
    core::SyncObject* const place = o.place;
    if constexpr (!std::is_trivially_copyable_v<T>) o.place = &spent_place;
    return {this, place, std::move(o.value), at};
  }
  template <Operation A>
  auto await_transform(A&& a, std::uint32_t at = __builtin_LINE()) {
    line.at(at);
    return std::forward<A>(a).bind(this);
  }
#endif
  template <class R>
  auto await_transform(BasicProcess<R>&& p, std::uint32_t at = __builtin_LINE());
  // A vector of anything that a block accepts, as in par(std::move(v)) (blocks.hpp).
  template <class X>
  auto await_transform(std::vector<X>&& v, std::uint32_t at = __builtin_LINE());
  template <class X>
  std::suspend_never await_transform(std::vector<X>&) {
    static_assert(!sizeof(X),
                  "weft: processes are started once: move the vector, co_await std::move(v)");
    return {};
  }

  // Every promise has the alignment of PromiseBase and begins with it (asserted where promises are
  // made). So the frame can be found from the base.
  std::coroutine_handle<PromiseBase> handle() noexcept {
    return std::coroutine_handle<PromiseBase>::from_promise(*this);
  }

 private:
  template <class... A>
  void remember(const A&... args) {
    // The records for functions with these parameters.
    static constinit runtime::FunctionInfos known{nullptr};
    std::array<runtime::HeldAt, sizeof...(A)> at;
    std::size_t n = 0;
    (put_if_held(at[n], n, args), ...);
    remember_those(known, at.data(), n);
  }
  template <class A>
  void put_if_held(runtime::HeldAt& at, std::size_t& n, const A& a) const noexcept {
    if constexpr (kHolds<A>) {
      const auto* const me = static_cast<const runtime::ProcessBase*>(this);
      at = {reinterpret_cast<std::intptr_t>(&a) - reinterpret_cast<std::intptr_t>(me),
            &visit_held<A>};
      ++n;
    }
  }
  // Records which of the arguments are in the frame.
  void remember_those(runtime::FunctionInfos& known, runtime::HeldAt* at, std::size_t n);
  template <class A>
  void note(const A& a) {
    if constexpr (IsReader<A>::value || IsWriter<A>::value || Range<const A>) {
      if (id == 0) id = runtime::next_process_id();
      note_holder(a, id);
      if constexpr (holds_local<A>()) at = runtime::RunsAt::holds_local;
    }
  }
  static PromiseBase* self(core::Waker* w) noexcept {
    return static_cast<PromiseBase*>(static_cast<runtime::ProcessBase*>(w));
  }
  static void wake(core::Waker* w) noexcept { runtime::executor_of(*self(w)).post(w); }
  static void run(core::Waker* w) {
    PromiseBase* p = self(w);
    runtime::this_context->running = p;
    p->op = nullptr;
    p->handle().resume();
  }
  static runtime::Executor* home(runtime::ProcessBase& p) noexcept {
    return &runtime::executor_of(p);
  }

  // After the last operation the node's slot is free. If an exception that left the process is to
  // be rethrown, that slot holds it until the frame is destroyed.
  static_assert(sizeof(std::exception_ptr) == sizeof(void*) &&
                alignof(std::exception_ptr) == alignof(void*));
  std::exception_ptr& left() noexcept {
    return *std::launder(reinterpret_cast<std::exception_ptr*>(&slot));
  }
};

inline const runtime::ProcessOps PromiseBase::kOps{
    {&PromiseBase::wake, &PromiseBase::run, nullptr, 0}, &PromiseBase::home};
#if WEFT_CHECKED
inline const runtime::ProcessOps PromiseBase::kEnds{{&PromiseBase::wake,
                                                     [](core::Waker* w) {
                                                       runtime::this_context->running = self(w);
                                                       Final::end(self(w)->handle());
                                                     },
                                                     nullptr, 0},
                                                    &PromiseBase::home};
#endif

// The ops of a promise. The ops say where the promise's frame begins, which is known once the
// promise's type is complete.
template <class Promise>
const runtime::ProcessOps& ops_of(Promise& p) {
  static const runtime::ProcessOps ops = [&] {
    runtime::ProcessOps o = PromiseBase::kOps;
    const std::ptrdiff_t frame =
        reinterpret_cast<char*>(static_cast<core::Waker*>(&p)) -
        static_cast<char*>(std::coroutine_handle<Promise>::from_promise(p).address());
    o.frame = frame == core::kFrame ? frame : 0;
    return o;
  }();
  return ops;
}

template <class R>
class Promise : public PromiseBase {
 public:
  Result<R>* result = nullptr;
  const runtime::ProcessOps& ops_with_frame() { return ops_of(*this); }

  template <class... A>
  explicit Promise(const A&... args) : PromiseBase(args...) {}
  BasicProcess<R> get_return_object(const char* f = __builtin_FUNCTION(),
                                    const char* in = __builtin_FILE(),
                                    std::uint32_t at = __builtin_LINE());
  // The parameter has the result's type, so other types are converted at the co_return, where the
  // compiler warns of a value that does not fit.
  void return_value(const R& v) requires kCopied<R> { return_value(R(v)); }
  void return_value(R&& v) {
    if (result) result->emplace(std::move(v));
    this->ended_well();
    over_ = true;
  }
  void unhandled_exception() noexcept {
    PromiseBase::unhandled_exception();
    if (result && this->ending != Ending::failed) result->lack(why_no_result(*this));
    over_ = true;
  }
  Final final_suspend() noexcept {
    if (!over_) [[unlikely]]
      this->gave_nothing();
    return {};
  }

 private:
  bool over_ = false;  // whether the coroutine has ended by a co_return or an exception
};
template <>
class Promise<void> : public PromiseBase {
 public:
  const runtime::ProcessOps& ops_with_frame() { return ops_of(*this); }
  template <class... A>
  explicit Promise(const A&... args) : PromiseBase(args...) {}
  BasicProcess<void> get_return_object(const char* f = __builtin_FUNCTION(),
                                       const char* in = __builtin_FILE(),
                                       std::uint32_t at = __builtin_LINE());
  void return_void() noexcept { ended_well(); }
};

template <class F>
class ThreadTask;  // defined in compose.hpp

}  // namespace detail

// A process that has not been started. It already holds the ends in its arguments; if it is
// destroyed without being started it closes them.
template <class R>
class BasicProcess {
 public:
  using promise_type = detail::Promise<R>;
  using result_type = R;
  using Handle = std::coroutine_handle<promise_type>;

  BasicProcess(BasicProcess&& o) noexcept : h_(std::exchange(o.h_, nullptr)) {}
  // NOLINTNEXTLINE: implicit, for the error message where a ThreadTask is given by mistake.
  template <class F>
  BasicProcess(detail::ThreadTask<F>) {
    static_assert(detail::never<F>,
                  "weft: a thread(...) is not a weft::Process: each has a type of its own, that of "
                  "its function. Keep it by auto, and processes of several kinds in a "
                  "std::vector<weft::AnyProcess<>>");
  }
  // NOLINTNEXTLINE: implicit, for the error message when a process already has an executor.
  template <class X>
  BasicProcess(Placed<X>) {
    static_assert(
        detail::never<X>,
        "weft: p.on(...) and p.pinned(...) are not a weft::Process. Keep them by auto, and "
        "processes of several kinds in a std::vector<weft::AnyProcess<>>");
  }
  BasicProcess& operator=(BasicProcess o) noexcept {
    std::swap(h_, o.h_);
    return *this;
  }
  ~BasicProcess() {
    if (h_) h_.destroy();
  }

  // Sets the process's name in its path, in place of the function's. The text must outlive the
  // process.
  BasicProcess&& named(const char* name) && {
    h_.promise().function = name;
    return std::move(*this);
  }

  // on() makes the process, and what it starts, run on that executor (executors.hpp). pinned()
  // makes them run on one core that is pinned to that CPU. pinned() throws BadUse if this program
  // may not use the CPU.
  Placed<R> on(const Executor& e) &&;
  Placed<R> pinned(int cpu) &&;

  // Starts the process in a group. Its result goes to *result, which must exist until the group has
  // ended.
  template <class Slot>
  [[gnu::always_inline]] void start(runtime::Group& g, Slot* result) {
    start(g, result, runtime::RunsAt::group, *g.executor);
  }
  // Starts the process in a group, on the executor that has the place `at` in the run. Its result
  // goes to *result, which must exist until the group has ended.
  template <class Slot>
  [[gnu::always_inline]] void start(runtime::Group& g, Slot* result, runtime::RunsAt at,
                                    runtime::Executor& home) {
    check(home);
    promise_type& p = std::exchange(h_, nullptr).promise();
    if constexpr (!std::is_void_v<R>) p.result = result;
    p.at = at;
    p.runs_by(home.ops_here(p.ops_with_frame()));
    g.add(p);
    WEFT_POINT(starts(p));
    home.post(&p);
  }
  // Throws BadUse if the process cannot be started in that group.
  void check(runtime::Group& g) const { check(*g.executor); }
  void check(const runtime::Executor& home) const {
    if (!h_) detail::started_twice();
    if (h_.promise().at == runtime::RunsAt::holds_local && home.multi())
      detail::local_on_cores(h_.promise());
  }
  bool startable() const noexcept { return h_ != nullptr; }
  // Returns the process's name in its path, for reports; null if the process was started.
  const char* called() const noexcept { return h_ ? h_.promise().function : nullptr; }

  explicit BasicProcess(Handle h) noexcept : h_(h) {}

 private:
  Handle h_;
};

using Process = BasicProcess<void>;
template <class R>
using ProcessOf = BasicProcess<R>;

namespace detail {
template <class R>
BasicProcess<R> Promise<R>::get_return_object(const char* f, const char* in, std::uint32_t at) {
  this->called(f, in, at);
  static_assert(alignof(Promise) == alignof(PromiseBase));
  return BasicProcess<R>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline BasicProcess<void> Promise<void>::get_return_object(const char* f, const char* in,
                                                           std::uint32_t at) {
  this->called(f, in, at);
  static_assert(alignof(Promise<void>) == alignof(PromiseBase));
  return BasicProcess<void>(std::coroutine_handle<Promise>::from_promise(*this));
}
}  // namespace detail

}  // namespace weft::inline WEFT_ABI
