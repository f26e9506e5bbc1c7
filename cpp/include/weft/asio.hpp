// A bridge to Asio, for programs that use Asio: processes await Asio's operations, and Asio's
// handlers write to channels. Rule 18.9; the page is cpp/docs/asio.md.
//
//   std::size_t n = co_await socket.async_read_some(asio::buffer(bytes), weft::use_weft);
//   weft::TryWriter<int> out(channel.writer());   // in a handler: if (!out.try_write(value)) …
//
// The header includes stand-alone Asio (1.19 or later) if <asio.hpp> is there, otherwise Boost.Asio
// (1.77 or later). With WEFT_BOOST_ASIO=1 it includes Boost.Asio. weft.hpp does not include this
// header.
//
//   co_await ──initiate: Bridge::begin()──► parked ──the handler: over()──► woken: await_resume()
//                                             └─cancelled: Asio is asked to end the operation──┘
//
// Invariants
//  1 The handler refers to the awaiter, which is in the frame of the process. The process continues
//    only when the handler has been called or destroyed, and the initiating function has returned
//    or thrown. So the awaiter and the buffers exist as long as Asio uses them.
//  2 Asio is never asked to end an operation that has ended: the handler writes `Asked::over` and
//    the request reads it, both on the executor of the operation. (As everywhere in Asio, this
//    needs a strand if several threads run one io_context.)
#pragma once
#if !WEFT_BOOST_ASIO && __has_include(<asio.hpp>)
#include <asio/any_io_executor.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#define WEFT_ASIO asio
#else
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#define WEFT_ASIO boost::asio
#endif
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft.hpp"

namespace weft::inline WEFT_ABI {

// A completion token. The initiating function returns an operation: a coroutine awaits it with
// co_await, a thread calls it. Only then does the operation begin. It returns what the handler
// would get: nothing, a value, or a tuple. If the handler's first argument is an error_code, an
// error is thrown as std::system_error (with Boost as boost::system::system_error); if it is an
// exception_ptr, the exception is rethrown. Throws Cancelled and TimedOut too, once Asio has ended
// the operation. If Asio had already completed the operation, the operation returns its result, and
// the request takes effect at the process's next operation (rule 6.3).
struct use_weft_t {};
inline constexpr use_weft_t use_weft{};

namespace detail::bridge {

namespace net = WEFT_ASIO;
#if !WEFT_BOOST_ASIO && __has_include(<asio.hpp>)
using ErrorCode = std::error_code;
using SystemError = std::system_error;
#else
using ErrorCode = boost::system::error_code;
using SystemError = boost::system::system_error;
#endif

// Splits the arguments of a handler into an error, if the first one is an error, and values.
template <class... Ts>
struct Outcome {
  using Values = std::tuple<Ts...>;
  static ErrorCode error(const std::tuple<Ts...>&) { return {}; }
  static Values values(std::tuple<Ts...>&& all) { return std::move(all); }
};
template <class First, class... Ts>
  requires(std::is_same_v<First, ErrorCode> || std::is_same_v<First, std::exception_ptr>)
struct Outcome<First, Ts...> {
  using Values = std::tuple<Ts...>;
  static ErrorCode error(const std::tuple<First, Ts...>& all) {
    if constexpr (std::is_same_v<First, ErrorCode>) return std::get<0>(all);
    if constexpr (!std::is_same_v<First, ErrorCode>)
      if (std::get<0>(all)) std::rethrow_exception(std::get<0>(all));
    return {};
  }
  static Values values(std::tuple<First, Ts...>&& all) {
    return std::apply([](First&, Ts&... ts) { return Values(std::move(ts)...); }, all);
  }
};

// The state that the handler shares with a request to end the operation.
struct Asked {
  net::cancellation_signal signal;
  bool over = false;
};

// The wait of a process for a handler.
class Bridge {
 public:
  explicit Bridge(runtime::ProcessBase* p) noexcept : p_(*p) {}

  runtime::ProcessBase& process() const noexcept { return p_; }
  const std::shared_ptr<Asked>& asked() const noexcept { return asked_; }
  // Called when the process is about to wait.
  void begin(net::any_io_executor by) {
    by_ = std::move(by);
    p_.place = this;
    p_.op = &kind;
    run_of(p_).enter_outside();
  }
  void end() noexcept {
    run_of(p_).leave_outside();
    p_.op = nullptr;
  }
  // Called by the handler when the operation has ended.
  void over() noexcept {
    asked_->over = true;
    one_less();
  }
  // Called by the handler, and when the initiating function has returned or thrown. The second call
  // lets the process continue, which may destroy this object.
  void one_less() noexcept {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) p_.ops->wake(&p_);
  }
  static constexpr const char* kName = "an operation of Asio";
  static const runtime::OpKind kind;

 private:
  // The process waits until Asio has ended the operation, so nothing is withdrawn here.
  static bool withdraw(runtime::ProcessBase& p) noexcept {
    Bridge& b = *static_cast<Bridge*>(p.place);
    if (std::exchange(b.has_asked_, true)) return false;
    try {
      net::post(b.by_, [a = b.asked_] {
        if (!a->over) a->signal.emit(net::cancellation_type::all);
      });
    } catch (...) {  // no memory: the next request asks again
      b.has_asked_ = false;
    }
    return false;
  }
  static void visit(runtime::ProcessBase&, runtime::WaitVisitor& v) { v.timed(); }

  runtime::ProcessBase& p_;
  net::any_io_executor by_;
  const std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
  bool has_asked_ = false;  // only the process's own thread uses it
  std::atomic<unsigned> left_{2};
};
inline const runtime::OpKind Bridge::kind{Bridge::kName, &Bridge::withdraw, &Bridge::visit};

template <class... Ts>
class Waits : public Bridge {
 public:
  using Bridge::Bridge;
  std::optional<std::tuple<Ts...>> came;
  std::exception_ptr failure;  // what the initiating function has thrown

  auto result() {
    using Means = Outcome<Ts...>;
    if (failure) std::rethrow_exception(std::move(failure));
    // If `came` is empty, the handler was destroyed: its io_context no longer exists.
    const ErrorCode e = came ? Means::error(*came) : ErrorCode(net::error::operation_aborted);
    if (e == net::error::operation_aborted) meet_request(process());
    if (e) throw SystemError(e, "an operation of Asio");
    typename Means::Values all = Means::values(std::move(*came));
    constexpr std::size_t n = std::tuple_size_v<typename Means::Values>;
    if constexpr (n == 1) return std::get<0>(std::move(all));
    if constexpr (n > 1) return all;
  }
};

template <class... Ts>
class Handler {
 public:
  using cancellation_slot_type = net::cancellation_slot;
  explicit Handler(Waits<Ts...>& w) noexcept : waits_(&w), slot_(w.asked()->signal.slot()) {}
  Handler(Handler&& h) noexcept : waits_(std::exchange(h.waits_, nullptr)), slot_(h.slot_) {}
  Handler& operator=(Handler&&) = delete;
  ~Handler() {
    if (waits_) waits_->over();
  }
  cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }
  template <class... Us>
  void operator()(Us&&... us) {
    waits_->came.emplace(std::forward<Us>(us)...);
    std::exchange(waits_, nullptr)->over();
  }

 private:
  Waits<Ts...>* waits_;
  net::cancellation_slot slot_;
};

template <class Signature, class Init, class... Args>
class Operation;
template <class... Ts, class Init, class... Args>
class [[nodiscard]] Operation<void(Ts...), Init, Args...> {
 public:
  template <class I, class... As>
  explicit Operation(I&& i, As&&... as)
      : init_(std::forward<I>(i)), args_(std::forward<As>(as)...) {}

  class Awaiter : Waits<std::decay_t<Ts>...> {
   public:
    Awaiter(Operation&& o, runtime::ProcessBase* p)
        : Waits<std::decay_t<Ts>...>(p), operation_(std::move(o)) {}
    bool await_ready() const {
      WEFT_POINT(refuses("weft::use_weft"));
      meet_request(this->process());
      return false;
    }
    void await_suspend(std::coroutine_handle<>) { initiate(); }
    auto await_resume() {
      this->end();
      return this->result();
    }
    void initiate() {
      this->begin(net::get_associated_executor(operation_.init_, net::system_executor()));
      try {
        Handler<std::decay_t<Ts>...> handler(*this);
        std::apply(
            [&](Args&... args) {
              std::move(operation_.init_)(std::move(handler), std::move(args)...);
            },
            operation_.args_);
      } catch (...) {
        this->failure = caught(this->process());
      }
      this->one_less();
    }

   private:
    Operation operation_;
  };
  Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(std::move(*this), p); }
  auto operator()() && {
    runtime::ThreadProcess& self = blocking_caller("an operation of Asio");
    Awaiter a(std::move(*this), &self);
    a.await_ready();
    a.initiate();
    self.block(Bridge::kind);
    return a.await_resume();
  }

 private:
  Init init_;
  std::tuple<Args...> args_;
};

}  // namespace detail::bridge

// A writer end for code that must not wait, such as callbacks and the handlers of an event loop.
// Only one thread at a time may use it. It counts as outside: while a TryWriter exists, no run that
// could read its channel is deadlocked (rule 10.3).
template <class T>
class TryWriter {
 public:
  explicit TryWriter(Writer<T> w) : writer_(std::move(w)) {}
  // Writes the value if a reader waits for it, or if the buffer has room. Returns whether it
  // wrote the value; if not, `value` is unchanged. Throws Retired and Poisoned as a write does.
  bool try_write(T& value) {
    return select(Mode::priority, out(writer_, std::move(value)), skip())().index == 0;
  }
  bool try_write(T&& value) { return try_write(value); }
  void retire() { writer_.retire(); }

 private:
  Outside outside_{Outside::due};
  Writer<T> writer_;
};

}  // namespace weft::inline WEFT_ABI

namespace WEFT_ASIO {

template <class R, class... Ts>
class async_result<weft::use_weft_t, R(Ts...)> {
 public:
  template <class Init, class... Args>
  static auto initiate(Init&& init, weft::use_weft_t, Args&&... args) {
    using weft::detail::bridge::Operation;
    return Operation<void(Ts...), std::decay_t<Init>, std::decay_t<Args>...>(
        std::forward<Init>(init), std::forward<Args>(args)...);
  }
};

}  // namespace WEFT_ASIO
#undef WEFT_ASIO
