// Blocks of processes, which read like occam's:
//
//   weft::par{ prefix<int>(0, c, a), delta<int>(a, {b, d}), successor<int>(b, c),
//              weft::seq{ first(x), second(y) } }();
//
// A block accepts the following, and so does whatever expects a process: run, spawn, Group::start,
// timeout and Watch::of
//   a process                                    Process, thread(…), another par or seq
//   a std::vector of these
//   a function object that returns a process     its captures are kept until that process has ended
//   any other function object                    it runs on a thread; weft::thread(f, args…) and
//                                                weft::proc(f, args…) bind arguments
//   an AnyProcess, which holds one of these
//
// A block is a process itself. block() runs it from main or inside a thread process; co_await runs
// it inside a coroutine. A block runs once.
#pragma once

#include "compose.hpp"

namespace weft::inline WEFT_ABI {

template <class... Ps>
class par;
template <class R>
class seq;

namespace detail {

template <class P>
struct IsBlock : std::false_type {};
template <class... Ps>
struct IsBlock<par<Ps...>> : std::true_type {};
template <class X>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
// Runs the coroutine process that a closure returns, and keeps the closure alive until that process
// has ended.
template <class F, class R = typename std::invoke_result_t<F&>::result_type>
BasicProcess<R> kept_and_run(F f) {
  if constexpr (std::is_void_v<R>)
    co_await Alone(f());
  else
    co_return co_await Alone(f());
}
template <class F>
auto keeping(F f) {
  return kept_and_run(std::move(f)).named("closure");
}

// Makes a block inside another block a process of its own.
template <class B>
BasicProcess<typename B::Result> nested(B b) {
  if constexpr (std::is_void_v<typename B::Result>)
    co_await std::move(b);
  else
    co_return co_await std::move(b);
}

template <class X>
auto to_process(X&& x) {
  using D = std::remove_cvref_t<X>;
  if constexpr (IsBlock<D>::value) {
    static_assert(!std::is_lvalue_reference_v<X>,
                  "weft: a block runs once: move it into the block around it, std::move(p)");
    return nested(std::move(x)).named("par");
  } else if constexpr (Startable<D>) {
    static_assert(!std::is_lvalue_reference_v<X>,
                  "weft: a process is started once: move it into the block, std::move(p)");
    return D(std::forward<X>(x));
  } else if constexpr (IsVector<D>::value) {
    static_assert(
        !std::is_lvalue_reference_v<X> || std::is_copy_constructible_v<typename D::value_type>,
        "weft: processes are started once: move the vector into the block, std::move(v)");
    return nested(par(std::forward<X>(x))).named("par");
  } else {
    static_assert(std::is_invocable_v<std::decay_t<X>&>,
                  "weft: only processes, vectors of processes, blocks and functions without "
                  "parameters can stand for a process, in par and seq and elsewhere; "
                  "bind arguments with weft::proc(f, args...)");
    using F = std::decay_t<X>;
    using R = std::remove_cvref_t<std::invoke_result_t<F&>>;
    if constexpr (Startable<R>) {
      if constexpr (std::is_empty_v<F> || std::is_pointer_v<F>)
        return x();
      else
        return keeping<F>(std::forward<X>(x));
    } else {
      return thread(F(std::forward<X>(x)), Here::nowhere());
    }
  }
}
template <class X>
std::vector<AsProcess<X>> to_processes(std::vector<X> xs) {
  std::vector<AsProcess<X>> r;
  r.reserve(xs.size());
  for (X& x : xs) r.push_back(to_process(std::move(x)));
  return r;
}

// The base that makes a block callable.
template <class Derived>
class Runs {
 public:
  // Runs the block from main, or inside a thread process. Throws what weft::run throws.
  auto operator()(RunOptions o = {}) { return run(o, std::move(static_cast<Derived&>(*this))); }
};

}  // namespace detail

// The attribute on the class serves functions that return a block; g++ obeys only the attribute on
// the constructor. clang-format mistakes a class with an attribute and bases for an expression.
// clang-format off

// Runs processes in parallel: starts them in order, ends when all have ended, and returns their
// results (rules 7.1, 7.2).
template <class... Ps>
class [[nodiscard("a block does nothing until it runs: call it, co_await it, or give it to weft::run")]] par
    : public detail::Par<Ps...>, public detail::Runs<par<Ps...>> {
 public:
  template <class... Xs>
    requires(sizeof...(Xs) == sizeof...(Ps))
  [[nodiscard("a block does nothing until it runs: call it, co_await it, or give it to weft::run")]]
  explicit par(Xs&&... xs) : detail::Par<Ps...>(detail::to_process(std::forward<Xs>(xs))...) {}
};
template <class... Xs>
par(Xs&&...) -> par<detail::AsProcess<Xs>...>;

// Runs a vector of processes in parallel, as par does; the results are optionals.
template <class P>
class [[nodiscard("a block does nothing until it runs: call it, co_await it, or give it to weft::run")]] par<std::vector<P>>
    : public detail::ParVector<P>, public detail::Runs<par<std::vector<P>>> {
 public:
  [[nodiscard("a block does nothing until it runs: call it, co_await it, or give it to weft::run")]]
  explicit par(std::vector<P> ps) : detail::ParVector<P>(std::move(ps)) {}
  template <class F>
    requires(!std::is_same_v<F, P>)
  [[nodiscard("a block does nothing until it runs: call it, co_await it, or give it to weft::run")]]
  explicit par(std::vector<F> fs) : detail::ParVector<P>(detail::to_processes(std::move(fs))) {}
};
// clang-format on
template <class X>
par(std::vector<X>) -> par<std::vector<detail::AsProcess<X>>>;

namespace detail {
template <class X>
auto PromiseBase::await_transform(std::vector<X>&& v, std::uint32_t at) {
  using All = One<std::vector<X>, par<std::vector<AsProcess<X>>>>;
#if WEFT_CHECKED
  return checked(at, [this, &v] { return All(std::move(v), this); });
#else
  line.at(at);
  return All(std::move(v), this);
#endif
}
}  // namespace detail

template <class... Ps>
auto run(RunOptions o, par<Ps...> p) {
  return run(o, static_cast<detail::Par<Ps...>&&>(p));
}
template <class P>
auto run(RunOptions o, par<std::vector<P>> p) {
  return run(o, static_cast<detail::ParVector<P>&&>(p));
}
template <class... Ps>
auto run(par<Ps...> p) {
  return run(RunOptions{}, std::move(p));
}

namespace detail {
template <class... Ps>
  requires(std::is_void_v<typename Ps::result_type>&&...)
Process one_by_one(Ps... ps) { (co_await Par<Ps>(std::move(ps)), ...); }
template <class... Ps>
  requires(!(std::is_void_v<typename Ps::result_type> && ...))
ProcessOf<ParResult<typename Ps::result_type...>> one_by_one(Ps... ps) {
  co_return ParResult<typename Ps::result_type...>{co_await Step<Ps>(std::move(ps))...};
}
template <class P>
Process one_by_one_of(std::vector<P> ps) {
  for (P& p : ps) co_await Par<P>(std::move(p));
}
}  // namespace detail

// clang-format off

// Runs processes one after another; stops at the first failure (rule 7.3). The result is a tuple of
// the results of the processes, as with par, or nothing if no process has a result.
template <class R>
class [[nodiscard("a block does nothing until it runs: call it, co_await it, or give it to weft::run")]] seq
    : public BasicProcess<R>, public detail::Runs<seq<R>> {
 public:
  template <class... Xs>
    requires(!(sizeof...(Xs) == 1 && (detail::IsVector<std::remove_cvref_t<Xs>>::value && ...)))
  [[nodiscard("a block does nothing until it runs: call it, co_await it, or give it to weft::run")]]
  explicit seq(Xs&&... xs) : BasicProcess<R>(detail::one_by_one(detail::to_process(std::forward<Xs>(xs))...).named("seq")) {}
  template <class X>
  [[nodiscard("a block does nothing until it runs: call it, co_await it, or give it to weft::run")]]
  explicit seq(std::vector<X> xs) : BasicProcess<R>(detail::one_by_one_of(detail::to_processes(std::move(xs))).named("seq")) {}
};
// clang-format on
template <class... Xs>
seq(Xs&&...) -> seq<detail::ParResult<typename detail::AsProcess<Xs>::result_type...>>;
template <class X>
seq(std::vector<X>) -> seq<void>;

// --- processes of functions ----------------------------------------------------------------------

namespace detail {
template <class F>
struct Parameters;  // the parameter types of a function that is not overloaded
template <class R, class... A>
struct Parameters<R (*)(A...)> {
  using Bound = std::tuple<std::decay_t<A>...>;
};
template <class R, class... A>
struct Parameters<R (*)(A...) noexcept> : Parameters<R (*)(A...)> {};
template <class R, class C, class... A>
struct Parameters<R (C::*)(A...)> : Parameters<R (*)(A...)> {};
template <class R, class C, class... A>
struct Parameters<R (C::*)(A...) const> : Parameters<R (*)(A...)> {};
template <class R, class C, class... A>
struct Parameters<R (C::*)(A...) noexcept> : Parameters<R (*)(A...)> {};
template <class R, class C, class... A>
struct Parameters<R (C::*)(A...) const noexcept> : Parameters<R (*)(A...)> {};

// The arguments in the types that the function takes: a channel that is given for an end is
// converted to that end now, when the process is made (rule 2.3).
template <class F, class... A>
struct BoundFor {
  using type = std::tuple<std::decay_t<A>...>;
};
template <class F, class... A>
  requires std::is_pointer_v<F>
struct BoundFor<F, A...> : std::type_identity<typename Parameters<F>::Bound> {
};
template <class F, class... A>
  requires requires { &F::operator(); }
struct BoundFor<F, A...>
    : std::type_identity<typename Parameters<decltype(&F::operator())>::Bound> {};
}  // namespace detail

// Runs f(args…) as a process on an OS thread of its own. If f returns a process, that process runs
// on the same thread.
template <class F, class A, class... As>
  requires(!std::is_same_v<std::remove_cvref_t<A>, detail::Here>)
auto thread(F f, A&& arg, As&&... args) {
  static_assert(std::is_invocable_v<F&, A&&, As&&...>,
                "weft: thread(f, args...): f cannot be called with these arguments");
  auto bound = [f = std::move(f), t = typename detail::BoundFor<F, A, As...>::type(
                                      std::forward<A>(arg), std::forward<As>(args)...)]() mutable {
    auto call = [&f](auto&... a) { return f(std::move(a)...); };
    if constexpr (Startable<std::remove_cvref_t<std::invoke_result_t<F&, A&&, As&&...>>>)
      return run(std::apply(call, t));
    else
      return std::apply(call, t);
  };
  return thread(std::move(bound), detail::Here::nowhere());
}

// Makes a process of f(args…). If f returns a process, proc() only calls f; otherwise f will run on
// a thread, with the arguments bound.
template <class F, class... A>
auto proc(F f, A&&... args) {
  static_assert(std::is_invocable_v<F&, A&&...>,
                "weft: proc(f, args...): f cannot be called with these arguments");
  if constexpr (!Startable<std::remove_cvref_t<std::invoke_result_t<F&, A&&...>>>) {
    if constexpr (sizeof...(A) == 0)
      return thread(std::move(f), detail::Here::nowhere());
    else
      return thread(std::move(f), std::forward<A>(args)...);
  } else if constexpr (std::is_empty_v<F> || std::is_pointer_v<F>) {
    return f(std::forward<A>(args)...);
  } else {
    return detail::keeping([f = std::move(f), t = typename detail::BoundFor<F, A...>::type(
                                                  std::forward<A>(args)...)]() mutable {
      return std::apply(f, std::move(t));
    });
  }
}

// Runs a coroutine process on an OS thread of its own.
template <class R>
auto thread(BasicProcess<R> p, detail::Here at = detail::Here::now()) {
  auto f = [p = std::move(p)]() mutable { return run(std::move(p)); };
  return detail::ThreadTask<decltype(f)>(std::move(f), "thread", at);
}

// --- processes of any kind -----------------------------------------------------------------------

// Holds any process: a coroutine, a process with an executor of its own, a thread, a block, or
// anything else that a block accepts. R is the type of that process's result.
//
//   std::vector<weft::AnyProcess<>> all;
//   all.push_back(p().on(pool));
//   all.push_back(weft::thread(f, x));
//   weft::run(std::move(all));
// clang-format off
template <class R = void>
class [[nodiscard("a process does nothing until it is started: give it to run, par, seq, spawn or co_await it")]] AnyProcess {
  using Room = detail::Room<R>;
  struct Kept {
    virtual ~Kept() = default;
    virtual bool startable() const noexcept = 0;
    virtual const char* called() const noexcept = 0;
    virtual void check(runtime::Group& g) const = 0;
    // `here` is the executor for a process that has none of its own; if it is null, the group's
    // executor is used.
    virtual void start(runtime::Group& g, Room* result, runtime::RunsAt at,
                       runtime::Executor* here) = 0;
  };
  template <class P>
  struct Of final : Kept {
    P p;
    explicit Of(P&& it) : p(std::move(it)) {}
    bool startable() const noexcept override { return p.startable(); }
    const char* called() const noexcept override { return p.called(); }
    void check(runtime::Group& g) const override { detail::may_start(p, g); }
    void start(runtime::Group& g, Room* result, runtime::RunsAt at,
               runtime::Executor* here) override {
      if constexpr (requires { p.start(g, result, at, *here); })
        if (here) return p.start(g, result, at, *here);
      p.start(g, result);
    }
  };

 public:
  using result_type = R;
  template <class X>
    requires(!std::is_same_v<std::remove_cvref_t<X>, AnyProcess>)
  AnyProcess(X&& x) {  // NOLINT: implicit, so that any process converts to an AnyProcess
    using P = detail::AsProcess<X>;
    static_assert(std::is_same_v<typename P::result_type, R>,
                  "weft: an AnyProcess<R> is made of a process with the result R; AnyProcess<> of "
                  "one without");
    kept_ = std::make_unique<Of<P>>(detail::to_process(std::forward<X>(x)));
  }
  bool startable() const noexcept { return kept_ && kept_->startable(); }
  const char* called() const noexcept { return kept_ ? kept_->called() : nullptr; }
  void check(runtime::Group& g) const { kept_->check(g); }
  void start(runtime::Group& g, Room* result) {
    start_by(g, result, runtime::RunsAt::group, nullptr);
  }
  void start(runtime::Group& g, Room* result, runtime::RunsAt at, runtime::Executor& here) {
    start_by(g, result, at, &here);
  }
  // Makes co_await run the held process as a process of its own.
  auto bind(runtime::ProcessBase* p) && {
    return detail::One<AnyProcess>(std::move(*this), p);
  }

 private:
  void start_by(runtime::Group& g, Room* result, runtime::RunsAt at, runtime::Executor* here) {
    if (!startable()) detail::started_twice();
    std::exchange(kept_, nullptr)->start(g, result, at, here);
  }
  std::unique_ptr<Kept> kept_;
};
// clang-format on

// --- replicated ----------------------------------------------------------------------------------

namespace detail {
template <class A>
concept Awaitable = Operation<A> || requires(A a, PromiseBase& p) {
  p.await_transform(std::move(a));
};
// An operation and the program's line that began it: a report shows that line, not a line of this
// file.
template <class A>
struct BegunAt {
  A op;
  Here at;
  // A constructor keeps BegunAt from being an aggregate, for the reason given at Awaited
  // (stopping.hpp).
  BegunAt(A&& a, Here h) : op(std::move(a)), at(h) {}
  auto bind(runtime::ProcessBase* p) && {
    auto& promise = static_cast<PromiseBase&>(*p);
    if (!of_the_program(at.file)) return promise.await_transform(std::move(op), 0);
    p->about = runtime::in_file(p->about, at.file);
    return promise.await_transform(std::move(op), at.line);
  }
};
template <class A>
Process performing(A a, Here at) {
  co_await BegunAt<A>(std::move(a), at);
}
template <class F, class X>
auto replica(F& f, X&& x, Here at) {
  using R = std::remove_cvref_t<std::invoke_result_t<F&, X>>;
  if constexpr (Startable<R>)
    return f(std::forward<X>(x));
  else if constexpr (Awaitable<R>)
    return performing<R>(f(std::forward<X>(x)), at).named("par_for");
  else
    return thread([&f, x = std::decay_t<X>(std::forward<X>(x))]() mutable { return f(x); },
                  Here::nowhere());
}
}  // namespace detail

// A block of f(x) for each x in [first, last), which are iterators or whole numbers. f returns a
// process, or an operation (`[&](auto& w) { return w.write(v); }`), which then needs no process
// around it; any other f runs on threads, one thread for each x. f and what it refers to must exist
// until the block has ended.
template <class I, class F>
[[nodiscard]] auto par_for(I first, std::type_identity_t<I> last, F&& f,
                           detail::Here here = detail::Here::now()) {
  auto at = [](I i) -> decltype(auto) {
    if constexpr (std::is_integral_v<I>)
      return i;
    else
      return *i;
  };
  std::vector<decltype(detail::replica(f, at(first), here))> ps;
  for (; first != last; ++first) ps.push_back(detail::replica(f, at(first), here));
  return par(std::move(ps));
}
template <class C, class F>
  requires detail::Range<std::remove_reference_t<C>>
[[nodiscard]] auto par_for(C&& c, F&& f, detail::Here here = detail::Here::now()) {
  return par_for(std::begin(c), std::end(c), std::forward<F>(f), here);
}

}  // namespace weft::inline WEFT_ABI
