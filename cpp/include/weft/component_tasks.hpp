// Processes of components that are written as coroutines, so that many of them share the few native
// threads of the pool (rule 16.10). Operations that wait are co_awaited; everything else is as in
// component.hpp.
//
//   #include <weft/component_tasks.hpp>
//   using namespace weft::native::tasks;
//
//   Task<> scale(Reader<double> samples, Writer<double> scaled, double factor) {
//     while (auto x = co_await samples.next()) co_await scaled.write(factor * *x);
//   }
//   WEFT_COMPONENT(filter, "Filters.") { component.process<&scale>("scale").argument("samples")…; }
//
//   step() ─► the innermost coroutine ──an operation: start_…()──► it has its outcome: continue
//      ▲                                     └──WEFT_PENDING: step() returns──┐
//      └──────────────the host, when there is an outcome: finish()────────────┘
//
// Invariants
//  1 Only step() resumes coroutines, one after another in a loop. Neither the call of a Task nor
//    its end resumes another coroutine directly, so the stack does not grow.
//  2 Only operations of this file can be awaited: any other would suspend a process that nothing
//    resumes.
#pragma once
#include <coroutine>

#include "component.hpp"
#include "config.hpp"

namespace weft::native {

namespace detail {

// The state of the process that this thread steps.
struct Stepped {
  std::coroutine_handle<> innermost;
  bool waits = false;
};
inline thread_local Stepped* stepped = nullptr;

// An operation that can wait. await_ready() of the derived class begins it.
class TaskOperation {
 public:
  TaskOperation() = default;
  TaskOperation(const TaskOperation&) = delete;
  TaskOperation& operator=(const TaskOperation&) = delete;
  void await_suspend(std::coroutine_handle<> h) noexcept {
    stepped->innermost = h;
    stepped->waits = true;
  }

 protected:
  bool begun(weft_status s) noexcept {
    status_ = s;
    return s != WEFT_PENDING;
  }
  weft_status ended() noexcept {
    if (status_ == WEFT_PENDING) status_ = running.api->finish(running.process);
    return status_;
  }

 private:
  weft_status status_ = WEFT_OK;
};

template <class T>
class TaskRead : public TaskOperation {
 public:
  TaskRead(std::uint32_t end, weft_place at) noexcept : end_(end), at_(at) {}
  bool await_ready() {
    return begun(running.api->start_read(running.process, end_, &block_.value, at_));
  }
  T await_resume() {
    check(ended(), end_);
    return decode<T>(block_);
  }

 protected:
  const std::uint32_t end_;
  const weft_place at_;
  Block block_;
};
template <class T>
class TaskNext : public TaskRead<T> {
 public:
  using TaskRead<T>::TaskRead;
  std::optional<T> await_resume() {
    const weft_status s = this->ended();
    if (s == WEFT_RETIRED) return std::nullopt;
    check(s, this->end_);
    return decode<T>(this->block_);
  }
};

// Copies the value before the write begins: however the write ends, the caller's value is
// unchanged.
template <class T>
class TaskWrite : public TaskOperation {
 public:
  TaskWrite(std::uint32_t end, const T& value, weft_place at) : end_(end), at_(at) {
    encode<T>(value, block_, running.api->allocate);
  }
  bool await_ready() {
    return begun(running.api->start_write(running.process, end_, &block_.value, at_));
  }
  void await_resume() {
    const weft_status s = ended();
    if (s == WEFT_OK) block_.value.block = nullptr;
    check(s, end_);
  }

 private:
  const std::uint32_t end_;
  const weft_place at_;
  Block block_;
};
// A write of a T that contains arrays: the arrays are moved out of the caller's value when the
// write begins, and moved back if the write fails.
template <class T>
  requires kParts<T>
class TaskWrite<T> : public TaskOperation {
 public:
  TaskWrite(std::uint32_t end, T& value, weft_place at) : end_(end), value_(value), at_(at) {}
  bool await_ready() {
    encode<T>(value_, block_, running.api->allocate);
    return begun(running.api->start_write(running.process, end_, &block_.value, at_));
  }
  void await_resume() {
    const weft_status s = ended();
    if (s == WEFT_OK)
      block_.value.block = nullptr;
    else
      value_ = decode<T>(block_);
    check(s, end_);
  }

 private:
  const std::uint32_t end_;
  T& value_;
  const weft_place at_;
  Block block_;
};

class TaskSync : public TaskOperation {
 public:
  TaskSync(std::uint32_t barrier, weft_place at) noexcept : barrier_(barrier), at_(at) {}
  bool await_ready() { return begun(running.api->start_sync(running.process, barrier_, at_)); }
  void await_resume() { check(ended(), 0); }

 private:
  const std::uint32_t barrier_;
  const weft_place at_;
};

template <class... G>
class TaskSelect : public TaskOperation {
 public:
  TaskSelect(bool fair, weft_place at, const G&... g) : choosing_(g...), fair_(fair), at_(at) {}
  bool await_ready() {
    try {
      choosing_.fill();
    } catch (...) {
      choosing_.restore_but(sizeof...(G));
      throw;
    }
    auto& all = choosing_.raw.all;
    return begun(running.api->start_select(
        running.process, all.data(), static_cast<std::uint32_t>(all.size()), fair_, &chosen_, at_));
  }
  typename Choosing<G...>::Result await_resume() {
    const weft_status s = ended();
    if (s != WEFT_OK) {
      choosing_.restore_but(sizeof...(G));
      fail(s, chosen_ < sizeof...(G) ? choosing_.raw.all[chosen_].end : 0);
    }
    return choosing_.take(chosen_);
  }

 private:
  Choosing<G...> choosing_;
  const bool fair_;
  const weft_place at_;
  std::uint32_t chosen_ = 0;
};

class TaskSleep : public TaskOperation {
 public:
  TaskSleep(std::chrono::nanoseconds span, weft_place at) noexcept : span_(span), at_(at) {}
  bool await_ready() {
    guard_ = After{span_}.guard(now().count());
    return begun(running.api->start_select(running.process, &guard_, 1, true, &chosen_, at_));
  }
  void await_resume() { check(ended(), 0); }

 private:
  const std::chrono::nanoseconds span_;
  const weft_place at_;
  weft_guard guard_{};
  std::uint32_t chosen_ = 0;
};

// --- coroutines ----------------------------------------------------------------------------------

template <class... G>
concept Guarding = (requires { typename G::chosen_type; } && ...);
template <class A>
concept Awaited = std::is_base_of_v<TaskOperation, std::remove_cvref_t<A>> || requires {
  typename std::remove_cvref_t<A>::weft_task;
};

// Throws BadUse if g++ has laid out the frame of this promise wrongly (WEFT_WRONG_FRAME), so that
// the coroutine could never run. Such a frame begins with another variable, which moves the promise
// by 8 bytes.
inline void check_frame([[maybe_unused]] const void* promise, [[maybe_unused]] const char* function,
                        [[maybe_unused]] const char* file, [[maybe_unused]] unsigned line) {
#if defined(__GNUC__) && !defined(__clang__)
  constexpr std::size_t frame = 2 * sizeof(void*);
  if constexpr (__STDCPP_DEFAULT_NEW_ALIGNMENT__ == frame)
    if (reinterpret_cast<std::uintptr_t>(promise) % frame != 0) [[unlikely]]
      throw BadUse(std::string("'") + function + "' at " + file + ":" + std::to_string(line) +
                   WEFT_WRONG_FRAME);
#endif
}

struct TaskPromise {
  std::coroutine_handle<> caller;  // null for the coroutine of the process itself
  std::exception_ptr failed;

  std::suspend_always initial_suspend() const noexcept { return {}; }
  struct Ended {
    bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> h) const noexcept {
      stepped->innermost = h.promise().caller;
    }
    void await_resume() const noexcept {}
  };
  Ended final_suspend() const noexcept { return {}; }
  void unhandled_exception() {
    // There is no exception if pthread_exit() ends the thread.
    if (!(failed = std::current_exception())) throw;
  }
  // Awaits by reference, since g++ 12 would move or copy the awaited object.
  template <class A>
  struct Of {
    A& awaited;
    bool await_ready() { return awaited.await_ready(); }
    void await_suspend(std::coroutine_handle<> h) noexcept { awaited.await_suspend(h); }
    decltype(auto) await_resume() { return awaited.await_resume(); }
  };
  template <class A>
  Of<std::remove_reference_t<A>> await_transform(A&& a) noexcept {
    static_assert(Awaited<A>,
                  "a Task can await only operations of weft::native::tasks and other Tasks: "
                  "nothing would resume it after anything else");
    return {a};
  }
};
template <class T>
struct TaskPromiseOf : TaskPromise {
  std::optional<T> value;
  void return_value(T v) { value.emplace(std::move(v)); }
  T take() {
    if (failed) std::rethrow_exception(failed);
    if (!value)
      throw BadUse("a Task gives its value by co_return; this one has ended without a value");
    return *std::move(value);
  }
};
template <>
struct TaskPromiseOf<void> : TaskPromise {
  void return_void() const noexcept {}
  void take() const {
    if (failed) std::rethrow_exception(failed);
  }
};

}  // namespace detail

namespace tasks {

// The return type of a coroutine that is a process, or a part of a process that is awaited: auto x
// = co_await part(…). The coroutine begins when it is awaited, and can be awaited once.
template <class T = void>
class [[nodiscard]] Task {
 public:
  using weft_task = T;
  struct promise_type : detail::TaskPromiseOf<T> {
    Task get_return_object(const char* function = __builtin_FUNCTION(),
                           const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
      detail::check_frame(this, function, file, line);
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
  };
  Task(Task&& o) noexcept : h_(std::exchange(o.h_, nullptr)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (h_) h_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) const noexcept {
    h_.promise().caller = caller;
    detail::stepped->innermost = h_;
  }
  T await_resume() const { return h_.promise().take(); }

  std::coroutine_handle<promise_type> handle() const noexcept { return h_; }

 private:
  explicit Task(std::coroutine_handle<promise_type> h) noexcept : h_(h) {}
  std::coroutine_handle<promise_type> h_;
};

template <class T>
class Reader {
 public:
  using value_type = T;
  explicit Reader(detail::End e) noexcept : end_(e) {}

  // Reads the next value; co_await the result. Throws Retired, Poisoned, PeerDied, Cancelled,
  // BadUse.
  detail::TaskRead<T> read(const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) noexcept {
    return {end_.number(), detail::place(file, line)};
  }
  // Reads the next value; co_await the result, which is std::nullopt once the other side has
  // retired. Otherwise throws what read() throws.
  detail::TaskNext<T> next(const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) noexcept {
    return {end_.number(), detail::place(file, line)};
  }
  void retire() { end_.retire(); }
  void poison(int strength = 1) { end_.poison(strength); }
  std::uint32_t number() const noexcept { return end_.number(); }

  // The result of a select in which this guard was chosen.
  using chosen_type = T;
  weft_guard guard(std::int64_t now) const noexcept { return end_.guard(now); }
  T chosen(weft_guard& g) const { return end_.chosen(g); }

 private:
  native::Reader<T> end_;
};

template <class T>
class Writer {
 public:
  using value_type = T;
  explicit Writer(detail::End e) noexcept : end_(e) {}

  // Writes the value; co_await the result. The write completes when a reader (or the buffer) has
  // the value. Throws what Reader::read() throws.
  auto write(const T& v, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) requires(!detail::kParts<T>) {
    return detail::TaskWrite<T>(end_.number(), v, detail::place(file, line));
  }
  // Writes a value that contains arrays. The arrays go to the reader; if the write fails, they are
  // in `v` again.
  auto write(T&& v, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) requires detail::kParts<T> {
    return detail::TaskWrite<T>(end_.number(), v, detail::place(file, line));
  }
  void retire() { end_.retire(); }
  void poison(int strength = 1) { end_.poison(strength); }
  std::uint32_t number() const noexcept { return end_.number(); }

 private:
  native::Writer<T> end_;
};

class Barrier {
 public:
  explicit Barrier(detail::End e) noexcept : number_(e.number), barrier_(e) {}
  // Waits until every enrolled party has arrived; co_await the result. Throws Cancelled, BadUse.
  detail::TaskSync sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
    return {number_, detail::place(file, line)};
  }
  void enrol() { barrier_.enrol(); }
  void resign() { barrier_.resign(); }

  using chosen_type = std::monostate;
  weft_guard guard(std::int64_t now) const noexcept { return barrier_.guard(now); }
  std::monostate chosen(weft_guard& g) const noexcept { return barrier_.chosen(g); }

 private:
  std::uint32_t number_;
  native::Barrier barrier_;
};

template <class T>
  requires(!detail::kParts<T>)
Output<T> output(const Writer<T>& w, const std::type_identity_t<T>& v) { return {w.number(), v}; }
template <class T>
  requires detail::kParts<T> Output<T> output(const Writer<T>& w, std::type_identity_t<T>& v) {
    return {w.number(), v};
  }

// co_await select(…): like select() of component_ends.hpp. (The constraint makes overload
// resolution prefer this function to that one, which is found too if a guard is of weft::native.)
template <class... G>
  requires detail::Guarding<G...>
auto select(const G&... g) { return detail::TaskSelect<G...>(true, {"", 0}, g...); }
template <class... G>
  requires detail::Guarding<G...>
auto select_first(const G&... g) { return detail::TaskSelect<G...>(false, {"", 0}, g...); }
// Sleeps for at least that span; co_await the result. Throws Cancelled.
template <class Rep, class Period>
detail::TaskSleep sleep(std::chrono::duration<Rep, Period> span,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {native::after(span).span, detail::place(file, line)};
}

// Names that mean the same in this namespace, so that `using namespace weft::native::tasks` is
// enough.
using native::after, native::skip, native::when, native::loud, native::now;
using native::Array, native::Bytes, native::Value, native::Written;
using native::BadUse, native::Cancelled, native::ChannelEnd, native::PeerDied, native::Poisoned,
    native::Retired;

}  // namespace tasks

namespace detail {

template <class T>
struct Parameter<tasks::Reader<T>> {
  static constexpr std::uint32_t kRole = WEFT_READER;
  using value_type = T;
  static tasks::Reader<T> of(weft_argument& a) noexcept { return tasks::Reader<T>(End{a.end}); }
};
template <class T>
struct Parameter<tasks::Writer<T>> {
  static constexpr std::uint32_t kRole = WEFT_WRITER;
  using value_type = T;
  static tasks::Writer<T> of(weft_argument& a) noexcept { return tasks::Writer<T>(End{a.end}); }
};
template <>
struct Parameter<tasks::Barrier> {
  static constexpr std::uint32_t kRole = WEFT_BARRIER;
  using value_type = std::monostate;
  static tasks::Barrier of(weft_argument& a) noexcept { return tasks::Barrier(End{a.end}); }
};

template <class P>
inline constexpr bool kBlocks = std::is_same_v<P, Barrier>;
template <class T>
inline constexpr bool kBlocks<Reader<T>> = true;
template <class T>
inline constexpr bool kBlocks<Writer<T>> = true;

template <class... A, tasks::Task<> (*F)(A...)>
struct Run<F> {
  static_assert(!(kBlocks<std::decay_t<A>> || ...),
                "a Task has ends of weft::native::tasks, whose operations are awaited: those of "
                "weft::native would hold up all that share its thread");

  static weft_status step(const weft_api* api, weft_process* process, weft_argument* arguments,
                          weft_failure* failure, void** frame) {
    running = {api, process};
    bool waits = false;
    const weft_status s = guarded(api, failure, [&] {
      if (!*frame) *frame = new Frame(arguments, std::index_sequence_for<A...>{});
      auto& f = *static_cast<Frame*>(*frame);
      f.now.waits = false;
      stepped = &f.now;
      while (!f.root.handle().done() && !f.now.waits) f.now.innermost.resume();
      waits = f.now.waits;
      if (!waits) f.root.await_resume();
    });
    if (waits) return WEFT_PENDING;
    delete static_cast<Frame*>(std::exchange(*frame, nullptr));
    return s;
  }
  static weft_status run(const weft_api* api, weft_process* process, weft_argument* arguments,
                         weft_failure* failure) {
    void* frame = nullptr;
    // On a thread no operation is ever pending.
    return step(api, process, arguments, failure, &frame);
  }

 private:
  struct Frame {
    template <std::size_t... I>
    Frame([[maybe_unused]] weft_argument* a, std::index_sequence<I...>)
        : made{Parameter<std::decay_t<A>>::of(a[I])...},
          root(F(static_cast<A&&>(std::get<I>(made))...)) {
      now.innermost = root.handle();
    }
    std::tuple<std::decay_t<A>...> made;
    tasks::Task<> root;
    Stepped now;
  };
};

}  // namespace detail
}  // namespace weft::native
