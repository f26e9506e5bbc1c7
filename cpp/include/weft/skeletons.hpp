// Algorithmic skeletons (Cole, "Algorithmic Skeletons", 1989; the set is that of the eSkel and
// FastFlow literature), made of processes and channels. There are two groups, both in
// weft::skeletons:
//
//   stages, which compose    each(f)   pipeline(s, t, …)   farm(workers(4), s)
//                            farm(workers(4), s, Order::any)   feedback(w, s, again)
//   whole computations,      map   reduce   map_reduce   search   divide_and_conquer
//   processes with a result
//
//   auto net = pipeline(each(parse), farm(workers(4, OnThreads()), each(work)), each(format));
//   std::vector<std::string> r = weft::run(apply(net, lines));
//   weft::par{ source(a), net(a, b), sink(b) }();  // or connected by channels
//
// How a worker is started is a parameter: a function that turns a process into something that par
// takes. Here{} leaves the worker on the scheduler, OnThreads{} gives it a thread, and
// OnExecutor(e) starts it on a weft::Cores or weft::Core; any other function object of that form
// can be used too. A function for workers is copied into each worker, and the copies run at the
// same time.
//
// If a function throws, the whole skeleton fails: the other processes are cancelled, and the
// skeleton throws the exception (rule 7.2). Retirement and poison of the outer ends pass through a
// stage as through any process. A stage ends when the last reader of its output is closed.
#pragma once
#include <deque>

#include "weft.hpp"

namespace weft::inline WEFT_ABI::skeletons {

// --- workers -------------------------------------------------------------------------------------

struct Here {
  template <class R>
  BasicProcess<R> operator()(BasicProcess<R> p) const {
    return p;
  }
};
struct OnThreads {
  template <class R>
  auto operator()(BasicProcess<R> p) const {
    return weft::thread(std::move(p));
  }
};
class OnExecutor {
 public:
  explicit OnExecutor(const Executor& e) : executor_(e) {}
  template <class R>
  auto operator()(BasicProcess<R> p) const {
    return std::move(p).on(executor_);
  }

 private:
  Executor executor_;
};

// A function that is called with the number of items that are done, and the number of all items.
// One process calls it, so there is one call at a time.
using Progress = std::function<void(std::size_t done, std::size_t total)>;
// The form of Progress for a farm, which does not know the number of all items.
using Count = std::function<void(std::size_t done)>;

struct Untold {};

template <class Start = Here, class Hook = Untold>
struct Workers {
  unsigned n;
  Start start;
  Hook hook = {};

  // Calls f(done, total) after each result. f may also take `done` alone; a farm needs that form.
  template <class F>
  Workers<Start, F> told(F f) && {
    static_assert(
        std::is_invocable_v<F&, std::size_t> || std::is_invocable_v<F&, std::size_t, std::size_t>,
        "weft: told takes a function f(done, total), or f(done), of two or one std::size_t");
    return {n, std::move(start), std::move(f)};
  }
};
// Describes n workers. Throws BadUse if n is 0.
template <class Start = Here>
Workers<Start> workers(weft::detail::Count n, Start start = {}) {
  const std::uint32_t many = n.up_to_32_bits("workers: their number");
  if (many == 0) weft::detail::bad_use("workers: at least one");
  return {many, std::move(start)};
}

// --- stages --------------------------------------------------------------------------------------

// A stage makes a process between a reader of I and a writer of O, any number of times.
template <class I, class O, class Make = std::function<Process(Reader<I>, Writer<O>)>>
class Stage {
 public:
  using in_type = I;
  using out_type = O;
  explicit Stage(Make m) : make_(std::move(m)) {}
  // Stage<I, O>, the type without Make, is any stage between these types.
  template <class M>
    requires(!std::is_same_v<M, Make>)
  Stage(const Stage<I, O, M>& s)
      : make_([s](Reader<I> r, Writer<O> w) { return s(std::move(r), std::move(w)); }) {}

  Process operator()(Reader<I> in, Writer<O> out) const {
    return make_(std::move(in), std::move(out));
  }

 private:
  Make make_;
};

namespace detail {

template <class I, class O, class Make>
auto stage(Make m) {
  return Stage<I, O, Make>(std::move(m));
}
template <class Hook>
Count counting(Hook hook) {
  if constexpr (std::is_same_v<Hook, Untold>)
    return nullptr;
  else
    return hook;
}
template <class Hook>
Progress telling(Hook hook) {
  if constexpr (std::is_same_v<Hook, Untold>)
    return nullptr;
  else if constexpr (std::is_invocable_v<Hook&, std::size_t, std::size_t>)
    return hook;
  else
    return [count = Count(std::move(hook))](std::size_t done, std::size_t) {
      if (count) count(done);
    };
}
template <class S>
using In = typename S::in_type;
template <class S>
using Out = typename S::out_type;

template <class F>
struct Argument;
template <class F>
  requires requires { &F::operator(); }
struct Argument<F> : Argument<decltype(&F::operator())> {};
template <class R, class A>
struct Argument<R (*)(A)> : std::decay<A> {};
template <class R, class C, class A>
struct Argument<R (C::*)(A)> : std::decay<A> {};
template <class R, class C, class A>
struct Argument<R (C::*)(A) const> : std::decay<A> {};

template <class I, class O, class F>
Process applying(Reader<I> in, Writer<O> out, F f) {
  while (auto v = co_await in.next()) co_await out.write(f(std::move(*v)));
}
template <class S, class T>
Process in_a_row(S first, T second, Reader<In<S>> in, Writer<Out<T>> out) {
  Channel<Out<S>> between;
  co_await par(first(std::move(in), between.writer()), second(between.reader(), std::move(out)));
}
template <class Start, class S>
Process started(Start start, S s, Reader<In<S>> in, Writer<Out<S>> out) {
  co_await par(start(s(std::move(in), std::move(out))));
}

// Gives each value to the worker that takes it first, and writes the worker's index to `order`.
template <class T>
Process dealing(Reader<T> in, std::vector<Writer<T>> to, Writer<std::size_t> order) {
  while (auto v = co_await in.next()) {
    std::vector<AnyGuard<T>> gs;
    for (auto& w : to)
      gs.emplace_back(out_with(w, std::function<T()>([&v] { return std::move(*v); })));
    auto c = co_await select_among<T>(gs);
    co_await order.write(static_cast<std::size_t>(c.index));
  }
}
template <class T>
Process in_order(Reader<std::size_t> order, std::vector<Reader<T>> from, Writer<T> out,
                 Count count) {
  std::size_t done = 0;
  while (auto i = co_await order.next()) {
    T v = co_await from[*i].read();
    co_await out.write(std::move(v));
    if (count) count(++done);
  }
}
template <class T>
Process as_they_come(Reader<T> in, Writer<T> out, Count count) {
  std::size_t done = 0;
  while (auto v = co_await in.next()) {
    co_await out.write(std::move(*v));
    if (count) count(++done);
  }
}
template <class Start, class Hook, class S>
Process ordered_farm(Workers<Start, Hook> ws, S s, Reader<In<S>> in, Writer<Out<S>> out) {
  using Worker = decltype(ws.start(s(in, out)));
  std::vector<Worker> crew;
  std::vector<Writer<In<S>>> to;
  std::vector<Reader<Out<S>>> from;
  for (unsigned i = 0; i < ws.n; ++i) {
    Channel<In<S>> a;
    Channel<Out<S>> b;
    to.push_back(a.writer());
    from.push_back(b.reader());
    crew.push_back(ws.start(s(a.reader(), b.writer())));
  }
  Channel<std::size_t> order{buffer(2 * ws.n)};
  auto deal = dealing(std::move(in), std::move(to), order.writer());
  auto collect =
      in_order(order.reader(), std::move(from), std::move(out), counting(std::move(ws.hook)));
  co_await par(std::move(deal), par(std::move(crew)), std::move(collect));
}
template <class Start, class Hook, class S>
Process unordered_farm(Workers<Start, Hook> ws, S s, Reader<In<S>> in, Writer<Out<S>> out) {
  std::vector<decltype(ws.start(s(in, out)))> crew;
  for (unsigned i = 0; i < ws.n; ++i) crew.push_back(ws.start(s(in, out)));
  in.retire();
  out.retire();
  co_await par(std::move(crew));
}
// The workers write to one process, which counts the results.
template <class Start, class Hook, class S>
Process counted_farm(Workers<Start, Hook> ws, S s, Reader<In<S>> in, Writer<Out<S>> out) {
  Channel<Out<S>> results;
  auto crew = unordered_farm<Start, Hook, S>(ws, std::move(s), std::move(in), results.writer());
  auto collect = as_they_come(results.reader(), std::move(out), counting(std::move(ws.hook)));
  co_await par(std::move(crew), std::move(collect));
}

// Lets at most `width` values circulate, counting those in this process.
template <class T, class Again>
Process going_round(unsigned width, Again again, Reader<T> in, Writer<T> enter, Reader<T> back,
                    Writer<T> out) {
  std::deque<T> todo, done;
  std::size_t inside = 0;
  const std::function<T()> next_todo = [&] {
    T v = std::move(todo.front());
    todo.pop_front();
    return v;
  };
  const std::function<T()> next_done = [&] {
    T v = std::move(done.front());
    done.pop_front();
    return v;
  };
  for (bool open = true; open || inside + todo.size() + done.size() > 0;) {
    try {
      auto c = co_await weft::select(
                   weft::in(back).when(inside > 0), out_with(out, next_done).when(!done.empty()),
                   out_with(enter, next_todo).when(!todo.empty()),
                   weft::in(in).when(open && inside + todo.size() + done.size() < width))
                   .ends();
      if (c.index == 0) {
        --inside;
        (again(*c.value) ? todo : done).push_back(std::move(*c.value));
      } else if (c.index == 2) {
        ++inside;
      } else if (c.index == 3) {
        todo.push_back(std::move(*c.value));
      }
    } catch (const Retired& e) {
      if (e.guard != 3) throw;
      open = false;
    }
  }
}
template <class S, class Again>
Process feeding_back(unsigned width, S s, Again again, Reader<In<S>> in, Writer<In<S>> out) {
  using T = In<S>;
  Channel<T> enter, back;
  auto loop = s(enter.reader(), back.writer());
  auto control = going_round<T>(width, std::move(again), std::move(in), enter.writer(),
                                back.reader(), std::move(out));
  co_await par(std::move(loop), std::move(control));
}

template <class T>
Process sending(std::vector<T> items, Writer<T> out) {
  for (T& v : items) co_await out.write(std::move(v));
}
template <class S>
ProcessOf<std::vector<Out<S>>> applied(S s, std::vector<In<S>> items) {
  Channel<In<S>> a;
  Channel<Out<S>> b;
  auto source = sending(std::move(items), a.writer());
  auto middle = s(a.reader(), b.writer());
  auto sink = [](Reader<Out<S>> in) -> ProcessOf<std::vector<Out<S>>> {
    std::vector<Out<S>> r;
    while (auto v = co_await in.next()) r.push_back(std::move(*v));
    co_return r;
  }(b.reader());
  auto results = co_await par(std::move(source), std::move(middle), std::move(sink));
  co_return *std::move(std::get<2>(results));
}

}  // namespace detail

// A stage that applies f to each value. I is the type of f's parameter; it can be given explicitly:
// each<int>(f).
template <class I = void, class F>
auto each(F f) {
  using A = typename std::conditional_t<std::is_void_v<I>, detail::Argument<F>,
                                        std::type_identity<I>>::type;
  using O = std::decay_t<std::invoke_result_t<F&, A>>;
  return detail::stage<A, O>([f = std::move(f)](Reader<A> r, Writer<O> w) {
    return detail::applying<A, O, F>(std::move(r), std::move(w), f);
  });
}
// Connects stages in sequence: each stage reads what the previous one has written.
template <class S>
S pipeline(S s) {
  return s;
}
template <class S, class T, class... More>
auto pipeline(S s, T t, More... more) {
  static_assert(std::is_same_v<detail::Out<S>, detail::In<T>>,
                "weft: pipeline: a stage must take what the stage before it gives");
  auto both = detail::stage<detail::In<S>, detail::Out<T>>(
      [s = std::move(s), t = std::move(t)](Reader<detail::In<S>> r, Writer<detail::Out<T>> w) {
        return detail::in_a_row<S, T>(s, t, std::move(r), std::move(w));
      });
  return pipeline(std::move(both), std::move(more)...);
}
// Makes a stage that starts the processes of stage s by `start`.
template <class Start, class S>
auto on(Start start, S s) {
  return detail::stage<detail::In<S>, detail::Out<S>>(
      [start, s = std::move(s)](Reader<detail::In<S>> r, Writer<detail::Out<S>> w) {
        return detail::started<Start, S>(start, s, std::move(r), std::move(w));
      });
}

enum class Order { kept, any };

// Several copies of one stage side by side; each value goes to a copy that is free. With
// Order::kept (the default) results are written in the order of their values, if each value gives
// one result and the stage itself keeps the order. With Order::any each result is written as soon
// as it is ready. The farm reports a result once a reader has received it.
template <class Start, class Hook, class S>
auto farm(Workers<Start, Hook> ws, S s, Order order = Order::kept) {
  static constexpr bool counts = !std::is_same_v<Hook, Untold>;
  static_assert(!counts || std::is_invocable_v<Hook&, std::size_t>,
                "weft: a farm does not know how many values will come: tell a function f(done) of "
                "one std::size_t");
  return detail::stage<detail::In<S>, detail::Out<S>>(
      [ws = std::move(ws), s = std::move(s), order](Reader<detail::In<S>> r,
                                                    Writer<detail::Out<S>> w) {
        constexpr auto unordered =
            counts ? detail::counted_farm<Start, Hook, S> : detail::unordered_farm<Start, Hook, S>;
        return order == Order::kept
                   ? detail::ordered_farm<Start, Hook, S>(ws, s, std::move(r), std::move(w))
                   : unordered(ws, s, std::move(r), std::move(w));
      });
}
// Sends each value through the stage again and again, as long as again(result) is true; at most
// `width` values circulate at a time. Results are written in the order in which they are completed.
// The stage must give one result for each value. Throws BadUse if `width` is 0.
template <class S, class Again>
auto feedback(weft::detail::Count width, S s, Again again) {
  static_assert(std::is_same_v<detail::In<S>, detail::Out<S>>,
                "weft: feedback: the stage's results must have the type of its values");
  const std::uint32_t most = width.up_to_32_bits("feedback: the values at a time");
  if (most == 0)
    weft::detail::bad_use(
        "feedback: width is 0, it must be 1 or more (values in the stage at a time)");
  return detail::stage<detail::In<S>, detail::In<S>>(
      [=](Reader<detail::In<S>> r, Writer<detail::In<S>> w) {
        return detail::feeding_back<S, Again>(most, s, again, std::move(r), std::move(w));
      });
}
// Makes a process whose result is the list of what the stage makes of these items.
template <class S>
auto apply(S s, std::vector<detail::In<S>> items) {
  return detail::applied<S>(std::move(s), std::move(items));
}

// --- whole computations --------------------------------------------------------------------------

namespace detail {

template <class T>
struct Numbered {
  std::size_t index;
  T data;
};
template <class T, class O, class F>
Process working(Reader<Numbered<T>> in, Writer<Numbered<O>> out, F f) {
  while (auto v = co_await in.next()) {
    Numbered<O> r{v->index, f(std::move(v->data))};
    co_await out.write(std::move(r));
  }
}
template <class T>
Process numbering(std::vector<T> items, Writer<Numbered<T>> out) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    Numbered<T> n{i, std::move(items[i])};
    co_await out.write(std::move(n));
  }
}
// When `enough` returns true, this process ends, and all others of the skeleton end with it.
template <class O, class Enough>
ProcessOf<std::vector<std::optional<O>>> placing(Reader<Numbered<O>> in, std::size_t total,
                                                 Progress progress, Enough enough) {
  std::vector<std::optional<O>> r(total);
  for (std::size_t done = 0; done < total;) {
    Numbered<O> v = co_await in.read();
    r[v.index].emplace(std::move(v.data));
    if (progress)
      progress(++done, total);
    else
      ++done;
    if (enough(*r[v.index])) break;
  }
  co_return r;
}
template <class Start, class Hook, class T, class F, class Enough>
auto computing(std::vector<T> items, F f, Workers<Start, Hook> ws, Enough enough)
    -> ProcessOf<std::vector<std::optional<std::decay_t<std::invoke_result_t<F&, T>>>>> {
  using O = std::decay_t<std::invoke_result_t<F&, T>>;
  const std::size_t total = items.size();
  Channel<Numbered<T>> tasks;
  Channel<Numbered<O>> results;
  std::vector<decltype(ws.start(working<T, O, F>(tasks.reader(), results.writer(), f)))> crew;
  for (unsigned i = 0; i < ws.n; ++i)
    crew.push_back(ws.start(working<T, O, F>(tasks.reader(), results.writer(), f)));
  auto source = numbering(std::move(items), tasks.writer());
  auto sink =
      placing<O, Enough>(results.reader(), total, telling(std::move(ws.hook)), std::move(enough));
  auto r = co_await par(std::move(source), par(std::move(crew)), std::move(sink));
  co_return *std::move(std::get<2>(r));
}
template <class O>
std::vector<O> all_of(std::vector<std::optional<O>> from) {
  std::vector<O> r;
  r.reserve(from.size());
  for (auto& v : from) r.push_back(std::move(v).value());
  return r;
}
struct NeverEnough {
  template <class O>
  bool operator()(const O&) const {
    return false;
  }
};
template <class Start, class Hook, class T, class F>
auto mapped(std::vector<T> items, F f, Workers<Start, Hook> ws)
    -> ProcessOf<std::vector<std::decay_t<std::invoke_result_t<F&, T>>>> {
  auto r = co_await computing(std::move(items), std::move(f), std::move(ws), NeverEnough());
  co_return all_of(std::move(r));
}
template <class Start, class Hook, class T, class F>
auto searched(std::vector<T> items, F f, Workers<Start, Hook> ws)
    -> ProcessOf<std::decay_t<std::invoke_result_t<F&, T>>> {
  auto r = co_await computing(std::move(items), std::move(f), std::move(ws),
                              [](const auto& found) { return found.has_value(); });
  for (auto& v : r)
    if (v && *v) co_return std::move(*v);
  co_return std::nullopt;
}
template <class Start, class Hook, class T, class F, class R, class Op>
ProcessOf<R> map_reduced(std::vector<T> items, F f, R init, Op op, Workers<Start, Hook> ws) {
  // The items are cut into runs of neighbours, so that op need not be commutative. There are a few
  // runs for each worker, so that uneven runs do not make the other workers wait.
  const std::size_t n = items.size(), parts = std::min<std::size_t>(n, std::size_t{4} * ws.n);
  std::vector<std::vector<T>> runs(parts);
  for (std::size_t i = 0; i < n; ++i) runs[i * parts / n].push_back(std::move(items[i]));
  const auto fold = [f, op](std::vector<T> run) mutable {
    std::optional<R> sum;
    for (T& v : run) {
      if (sum)
        sum.emplace(op(std::move(*sum), f(std::move(v))));
      else
        sum.emplace(f(std::move(v)));
    }
    return std::move(*sum);
  };
  auto sums = co_await mapped(std::move(runs), fold, std::move(ws));
  for (R& s : sums) init = op(std::move(init), std::move(s));
  co_return init;
}

// The upper part of a tree of problems; its leaves are numbered.
struct Tree {
  std::vector<Tree> parts;
  std::size_t leaf = 0;
};
template <class P, class Base, class Solve, class Split, class Combine>
auto conquer(P p, Base& base, Solve& solve, Split& split, Combine& combine)
    -> std::decay_t<std::invoke_result_t<Solve&, P>> {
  if (base(std::as_const(p))) return solve(std::move(p));
  std::vector<std::decay_t<std::invoke_result_t<Solve&, P>>> parts;
  for (auto& part : split(std::move(p)))
    parts.push_back(conquer(std::move(part), base, solve, split, combine));
  return combine(std::move(parts));
}
template <class P, class Base, class Split>
Tree divide(P p, std::size_t wanted, Base& base, Split& split, std::vector<P>& leaves) {
  if (wanted <= 1 || base(std::as_const(p))) {
    leaves.push_back(std::move(p));
    return {{}, leaves.size() - 1};
  }
  auto parts = split(std::move(p));
  if (parts.empty())
    weft::detail::bad_use(
        "divide_and_conquer: split made no parts of a problem that is no base case");
  Tree t;
  for (auto& part : parts)
    t.parts.push_back(
        divide(std::move(part), (wanted + parts.size() - 1) / parts.size(), base, split, leaves));
  return t;
}
template <class R, class Combine>
R assemble(const Tree& t, std::vector<R>& solved, Combine& combine) {
  if (t.parts.empty()) return std::move(solved[t.leaf]);
  std::vector<R> parts;
  for (const Tree& part : t.parts) parts.push_back(assemble(part, solved, combine));
  return combine(std::move(parts));
}
template <class P, class Base, class Solve, class Split, class Combine, class Start, class Hook>
auto conquered(P problem, Base base, Solve solve, Split split, Combine combine,
               Workers<Start, Hook> ws)
    -> ProcessOf<std::decay_t<std::invoke_result_t<Solve&, P>>> {
  using R = std::decay_t<std::invoke_result_t<Solve&, P>>;
  std::vector<P> leaves;
  const Tree tree = divide(std::move(problem), std::size_t{4} * ws.n, base, split, leaves);
  const auto below = [=](P p) mutable {
    return conquer(std::move(p), base, solve, split, combine);
  };
  std::vector<R> solved = co_await mapped(std::move(leaves), below, std::move(ws));
  co_return assemble(tree, solved, combine);
}

}  // namespace detail

// Computes [f(x) for x in items].
template <class Start, class Hook, class T, class F>
auto map(Workers<Start, Hook> ws, std::vector<T> items, F f) {
  return detail::mapped(std::move(items), std::move(f), std::move(ws));
}
// Computes init op x op y op …; op must be associative.
template <class Start, class Hook, class T, class Op>
ProcessOf<T> reduce(Workers<Start, Hook> ws, std::vector<T> items, std::type_identity_t<T> init,
                    Op op) {
  return detail::map_reduced(std::move(items), std::identity(), std::move(init), std::move(op),
                             std::move(ws));
}
// Computes init op f(x) op f(y) op …; op must be associative. Progress counts runs of neighbouring
// items.
template <class Start, class Hook, class T, class F, class Op>
auto map_reduce(Workers<Start, Hook> ws, std::vector<T> items, F f,
                std::decay_t<std::invoke_result_t<F&, T>> init, Op op) {
  return detail::map_reduced(std::move(items), std::move(f), std::move(init), std::move(op),
                             std::move(ws));
}
// Searches the items. f returns an optional; the result is the first optional found that is not
// empty, or an empty one. Once it is found, no more items are begun.
template <class Start, class Hook, class T, class F>
auto search(Workers<Start, Hook> ws, std::vector<T> items, F f) {
  return detail::searched(std::move(items), std::move(f), std::move(ws));
}
// Computes solve(p) if base(p) is true; otherwise computes the result for each part of split(p),
// and combines the list of these results. The upper part of the tree is divided here until there
// are enough parts for the workers, which do the rest. Progress counts the parts that are given to
// the workers. Throws BadUse if split makes no parts.
template <class Start, class Hook, class P, class Base, class Solve, class Split, class Combine>
auto divide_and_conquer(Workers<Start, Hook> ws, P problem, Base base, Solve solve, Split split,
                        Combine combine) {
  return detail::conquered(std::move(problem), std::move(base), std::move(solve), std::move(split),
                           std::move(combine), std::move(ws));
}

}  // namespace weft::inline WEFT_ABI::skeletons
