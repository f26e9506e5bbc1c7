// Several reads or several writes in parallel, as one operation of one process:
//
//   auto [x, y] = co_await weft::par_read(r1, r2);   // an array
//   auto all = co_await weft::par_read(readers);     // a vector, for a vector (or span) of readers
//   co_await weft::par_write(w1, 1, w2, 2);
//   co_await weft::par_write(std::pair(w1, 1), std::pair(w2, 2));
//   co_await weft::par_write(writers, values);       // vectors of the same length
//   co_await weft::par_write_all(writers, value);    // one value to all
//
// In a thread the result is called: par_read(r1, r2)(). All reads or writes are offered at once,
// and each of them is carried out once, in the order in which their partners become ready. The
// operation acts like `par`, but makes no processes.
//
// When a channel has ended, or the process is cancelled, the operations that have not been carried
// out are withdrawn, and the whole operation throws (the exception for the first channel that has
// ended, by position). The exception carries a std::vector<std::optional<T>>: the values read, or
// the values not written. An extended reader (rule 1.6) holds the whole operation. The ends must
// exist until the operation has ended.
#pragma once
#include <array>
#include <span>

#include "alt.hpp"
#include "runtime/together.hpp"

namespace weft::inline WEFT_ABI {
namespace detail {

// Called when all operations have their outcomes. Throws the exception for the first channel that
// has ended, or Cancelled; `partial` makes the value that the exception carries.
template <class Engine, core::Side S, std::size_t N, bool Shared, class Partial>
void finish(const runtime::Together<Engine, S, N, Shared>& all, const char* verb,
            Partial&& partial) {
  runtime::ProcessBase& p = all.process();
  p.op = nullptr;
  bool withdrawn = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& o = all[i];
    if (is_end(o.status)) throw_end_with(o.c, o.status, verb, partial());
    withdrawn = withdrawn || o.status == Status::cancelled;
    (S == core::Side::in ? o.c->last_reader : o.c->last_writer) = p.id;
  }
  if (!withdrawn) return;
  throw_cancelled(p, Error::Carried::of(partial()));
}

// The part of reads and writes that is the same for a coroutine and a thread. Work has
// set(together) and finish(together), which returns the result.
template <class Work>
struct TogetherOp {
  Work work;
  bool spent = false;

  struct Awaiter {
    Work work;
    typename Work::All all;
    Awaiter(Work&& w, runtime::ProcessBase* p) : work(std::move(w)), all(p, work.size()) {}
    // Returns true if all operations have ended.
    bool begin() {
      work.set(all);
      return all.begin();
    }
    bool await_ready() { return begin() && goes_on(&all.process()); }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    auto await_resume() { return work.finish(all); }
  };
  Awaiter bind(runtime::ProcessBase* p) && {
    WEFT_POINT(refuses(Work::name));
    if (std::exchange(spent, true)) awaited_twice(Work::name);
    return Awaiter(std::move(work), p);
  }
  auto operator()(Here at = Here::now()) && {
    static_assert(Work::shared, "a channel that threads use must be weft::Shared");
    WEFT_POINT(refuses(Work::name));
    runtime::ThreadProcess& self = blocking_caller(Work::name);
    if (std::exchange(spent, true)) awaited_twice(Work::name);
    Awaiter a(std::move(work), &self);
    if (!a.begin()) {
      waits_at(self, at);
      self.block(Work::All::kind);
    }
    return a.await_resume();
  }
};

template <class T, class P, std::size_t N>
struct ReadingAll {
  using Engine = EngineOf<T, P>;
  using All = runtime::Together<Engine, core::Side::in, N, P::shared>;
  static constexpr bool shared = P::shared;
  static constexpr const char* name = "par_read(…)()";
  std::conditional_t<N == 0, std::vector<Engine*>, std::array<Engine*, N>> cores;
  std::conditional_t<N == 0, std::unique_ptr<Slot<T>[]>, std::array<Slot<T>, N>> slots;

  explicit ReadingAll(std::span<const Reader<T, P>> rs) requires(N == 0)
      : slots(new Slot<T>[rs.size()]) {
    for (const auto& r : rs) cores.push_back(r.checked("par_read"));
  }
  template <class... Rs>
    requires(N != 0)
  explicit ReadingAll(const Rs&... rs) : cores{rs.checked("par_read")...}, slots{} {}
  // An object of this type is moved only before the operation has begun.
  ReadingAll(ReadingAll&& o) noexcept : cores(std::move(o.cores)), slots(moved(o)) {}

  std::size_t size() const noexcept { return cores.size(); }
  void set(All& all) noexcept {
    for (std::size_t i = 0; i < size(); ++i) all.set(i, cores[i], &slots[i]);
  }
  auto finish(All& all) {
    detail::finish(all, "par_read", [&] {
      std::vector<std::optional<T>> r(size());
      for (std::size_t i = 0; i < size(); ++i)
        if (all.done(i)) r[i].emplace(slots[i].take());
      return r;
    });
    if constexpr (N == 0) {
      std::vector<T> r;
      r.reserve(size());
      for (std::size_t i = 0; i < size(); ++i) r.push_back(slots[i].take());
      return r;
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<T, N>{slots[I].take()...};
      }
      (std::make_index_sequence<N>());
    }
  }

 private:
  static auto moved(ReadingAll& o) noexcept {
    if constexpr (N == 0)
      return std::move(o.slots);
    else
      return std::array<Slot<T>, N>{};
  }
};

template <class T, class P, std::size_t N>
struct WritingAll {
  using Engine = EngineOf<T, P>;
  using All = runtime::Together<Engine, core::Side::out, N, P::shared>;
  static constexpr bool shared = P::shared;
  static constexpr const char* name = "par_write(…)()";
  std::conditional_t<N == 0, std::vector<Engine*>, std::array<Engine*, N>> cores;
  std::conditional_t<N == 0, std::vector<T>, std::array<T, N>> values;

  std::size_t size() const noexcept { return cores.size(); }
  void set(All& all) noexcept {
    for (std::size_t i = 0; i < size(); ++i) all.set(i, cores[i], &values[i]);
  }
  void finish(All& all) {
    detail::finish(all, "par_write", [&] {
      std::vector<std::optional<T>> r(size());
      for (std::size_t i = 0; i < size(); ++i)
        if (!all.done(i)) r[i].emplace(std::move(values[i]));
      return r;
    });
  }
};

// Converts without a cast, so that the compiler warns about a value that does not fit. The return
// type is `auto`, so that clang's warning names the line of the program.
template <class T, class V>
auto converted(const V& v) {
  T as = v;
  return as;
}

template <class T, class P>
std::vector<EngineOf<T, P>*> cores_of(std::span<const Writer<T, P>> ws) {
  std::vector<EngineOf<T, P>*> r;
  r.reserve(ws.size());
  for (const auto& w : ws) r.push_back(w.checked("par_write"));
  return r;
}

}  // namespace detail

// Reads a value from each end. Throws Retired, Poisoned, PeerDied, Cancelled, BadUse.
template <class T, class P, class... More>
[[nodiscard]] auto par_read(const Reader<T, P>& r, const More&... more) {
  static_assert((std::is_same_v<More, Reader<T, P>> && ...),
                "weft: par_read reads one type from ends of one kind; for several types put reads "
                "into weft::par");
  using Work = detail::ReadingAll<T, P, 1 + sizeof...(More)>;
  return detail::TogetherOp<Work>{Work(r, more...)};
}
template <class T, class P>
[[nodiscard]] auto par_read(std::span<const Reader<T, P>> rs) {
  using Work = detail::ReadingAll<T, P, 0>;
  return detail::TogetherOp<Work>{Work(rs)};
}
template <class T, class P>
[[nodiscard]] auto par_read(const std::vector<Reader<T, P>>& rs) {
  return par_read(std::span<const Reader<T, P>>(rs));
}

// Writes a value to each end. Throws what par_read() throws, and BadUse if the vectors differ in
// length.
template <class T, class P>
[[nodiscard]] auto par_write(std::span<const Writer<T, P>> ws,
                             std::type_identity_t<std::vector<T>> values) {
  if (ws.size() != values.size())
    detail::bad_use("par_write: " + std::to_string(ws.size()) + " writers and " +
                    std::to_string(values.size()) + " values");
  using Work = detail::WritingAll<T, P, 0>;
  return detail::TogetherOp<Work>{Work{detail::cores_of<T, P>(ws), std::move(values)}};
}
template <class T, class P>
[[nodiscard]] auto par_write(const std::vector<Writer<T, P>>& ws,
                             std::type_identity_t<std::vector<T>> values) {
  return par_write(std::span<const Writer<T, P>>(ws), std::move(values));
}
template <class T, class P, class V, class... More>
[[nodiscard]] auto par_write(const std::pair<Writer<T, P>, V>& first, const More&... more) {
  using Work = detail::WritingAll<T, P, 1 + sizeof...(More)>;
  return detail::TogetherOp<Work>{
      Work{{first.first.checked("par_write"), more.first.checked("par_write")...},
           {detail::converted<T>(first.second), detail::converted<T>(more.second)...}}};
}
// Writes x to a and y to b, without copying the two ends.
template <class T, class P>
[[nodiscard]] auto par_write(const Writer<T, P>& a, std::type_identity_t<T> x,
                             const Writer<T, P>& b, std::type_identity_t<T> y) {
  using Work = detail::WritingAll<T, P, 2>;
  return detail::TogetherOp<Work>{
      Work{{a.checked("par_write"), b.checked("par_write")}, {std::move(x), std::move(y)}}};
}
// Writes the same value to each end.
template <class T, class P>
[[nodiscard]] auto par_write_all(const std::vector<Writer<T, P>>& ws,
                                 const std::type_identity_t<T>& value) {
  return par_write(ws, std::vector<T>(ws.size(), value));
}

}  // namespace weft::inline WEFT_ABI
