// The objects that a process of a component works with: ends, barriers, choice and time (see
// component.hpp).
//
// Invariant: an end is closed by retire(), or by the host when the process has ended, because only
// then is it known whether a poison spreads (rule 4.3). So the destructors of ends do nothing.
#pragma once
#include <chrono>
#include <exception>
#include <span>

#include "component_arrays.hpp"
#include "component_dynamic.hpp"
#include "component_fields.hpp"

namespace weft::native {

namespace detail {
struct End {
  std::uint32_t number = 0;
};
// A strength that is out of range becomes 0, which the host refuses as bad use.
constexpr std::uint8_t strength_of(int s) noexcept {
  return s < 0 || s > 255 ? 0 : static_cast<std::uint8_t>(s);
}

}  // namespace detail

// --- ends ----------------------------------------------------------------------------------------

struct Written {};  // the result of a select for an output guard

// Returns the time on the clock of the run.
inline std::chrono::nanoseconds now() {
  return std::chrono::nanoseconds(detail::running.api->now(detail::running.process));
}

// A value that was read by an extended read (rule 1.6): its writer waits until this object is
// destroyed.
template <class T>
class Extended {
 public:
  Extended(std::uint32_t end, void* held, T value)
      : end_(end), held_(held), value_(std::move(value)) {}
  Extended(const Extended&) = delete;
  Extended& operator=(const Extended&) = delete;
  ~Extended() { detail::running.api->end_extended(detail::running.process, end_, held_); }
  T& operator*() noexcept { return value_; }
  T* operator->() noexcept { return &value_; }

 private:
  const std::uint32_t end_;
  void* const held_;
  T value_;
};

template <class T>
class Reader {
  static_assert(
      detail::Crosses<T>,
      "no channel to Python carries values of this type; of a struct of your own name the "
      "fields, below it: WEFT_FIELDS(Type, field, ...)");

 public:
  using value_type = T;
  explicit Reader(detail::End e) noexcept : end_(e.number) {}
  Reader(Reader&&) noexcept = default;
  Reader& operator=(Reader&&) noexcept = default;

  // Waits for the next value, and returns it. Throws Retired, Poisoned, PeerDied, Cancelled,
  // BadUse.
  T read(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    detail::Block b;
    detail::check(detail::running.api->read(detail::running.process, end_, &b.value,
                                            detail::place(file, line)),
                  end_);
    return detail::decode<T>(b);
  }
  // Reads at least one value, and then those that are available without waiting, up to `most` in
  // all. Throws what read() throws.
  std::vector<T> read_many(std::size_t most, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) {
    std::vector<weft_value> raw(most);
    std::size_t n = 0;
    const weft_status s = detail::running.api->read_many(detail::running.process, end_, raw.data(),
                                                         most, &n, detail::place(file, line));
    std::vector<T> all;
    std::exception_ptr failed;
    for (std::size_t i = 0; i < n; ++i) {
      detail::Block b(raw[i]);
      if (failed) continue;
      try {
        all.push_back(detail::decode<T>(b));
      } catch (...) {
        failed = std::current_exception();
      }
    }
    if (failed) std::rethrow_exception(failed);
    detail::check(s, end_);
    return all;
  }
  // Reads a value and holds its writer: { auto x = reader.extended(); use(*x); } Throws what read()
  // throws.
  Extended<T> extended(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    detail::Block b;
    void* held = nullptr;
    const weft_api& api = *detail::running.api;
    detail::check(api.begin_extended(detail::running.process, end_, &b.value, &held,
                                     detail::place(file, line)),
                  end_);
    try {
      return Extended<T>(end_, held, detail::decode<T>(b));
    } catch (...) {
      api.end_extended(detail::running.process, end_, held);
      throw;
    }
  }
  void retire() { detail::check(detail::running.api->retire(detail::running.process, end_), end_); }
  void poison(int strength = 1) {
    detail::check(
        detail::running.api->poison(detail::running.process, end_, detail::strength_of(strength)),
        end_);
  }

  // Iterates over the values: for (T x : reader). The loop ends when the other side has retired.
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    explicit iterator(Reader* r) : reader_(r) { ++*this; }
    T& operator*() noexcept { return *value_; }
    iterator& operator++() {
      try {
        value_.emplace(reader_->read());
      } catch (const Retired& r) {
        if (r.end != reader_->end_) throw;
        value_.reset();
      }
      return *this;
    }
    bool operator==(std::nullptr_t) const noexcept { return !value_; }

   private:
    Reader* reader_;
    std::optional<T> value_;
  };
  iterator begin() { return iterator(this); }
  std::nullptr_t end() const noexcept { return nullptr; }

  std::uint32_t number() const noexcept { return end_; }
  // The members that select() needs to use this end as a guard.
  using chosen_type = T;
  weft_guard guard(std::int64_t) const noexcept { return {WEFT_INPUT, end_, 1, 0, 0, {}}; }
  T chosen(weft_guard& g) const {
    detail::Block b(std::exchange(g.value, {}));
    return detail::decode<T>(b);
  }

 private:
  std::uint32_t end_;
};

template <class T>
class Writer {
  static_assert(
      detail::Crosses<T>,
      "no channel to Python carries values of this type; of a struct of your own name the "
      "fields, below it: WEFT_FIELDS(Type, field, ...)");

 public:
  using value_type = T;
  explicit Writer(detail::End e) noexcept : end_(e.number) {}
  Writer(Writer&&) noexcept = default;
  Writer& operator=(Writer&&) noexcept = default;

  // Writes a value that contains arrays. The arrays go to the reader, and are empty in `v`
  // afterwards. If the write fails, the arrays are in `v` again. Throws what the write() below
  // throws.
  void write(T&& v, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) requires detail::kParts<T> {
    detail::Block b;
    detail::encode(v, b, detail::running.api->allocate);
    const weft_status s = detail::running.api->write(detail::running.process, end_, &b.value,
                                                     detail::place(file, line));
    if (s == WEFT_OK) {
      b.value.block = nullptr;
      return;
    }
    v = detail::decode<T>(b);
    detail::fail(s, end_);
  }
  // Writes a value; returns when a reader (or the buffer) has it. Throws Retired, Poisoned,
  // PeerDied, Cancelled, BadUse.
  void write(const T& v, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) requires(!detail::kParts<T>) {
    detail::Block b;
    detail::encode(v, b, detail::running.api->allocate);
    const weft_status s = detail::running.api->write(detail::running.process, end_, &b.value,
                                                     detail::place(file, line));
    if (s == WEFT_OK) b.value.block = nullptr;
    detail::check(s, end_);
  }
  // Writes all values in order, as single writes would. Throws what write() throws.
  void write_many(std::span<const T> all, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) requires(!detail::kParts<T>) {
    struct Rest {
      std::vector<weft_value> raw;
      std::size_t done = 0;
      ~Rest() {
        for (std::size_t i = done; i < raw.size(); ++i)
          if (raw[i].block) detail::running.api->release(raw[i].block);
      }
    } rest;
    rest.raw.reserve(all.size());
    for (const T& v : all) {
      detail::Block b;
      detail::encode(v, b, detail::running.api->allocate);
      rest.raw.push_back(std::exchange(b.value, {}));
    }
    const weft_status s =
        detail::running.api->write_many(detail::running.process, end_, rest.raw.data(),
                                        rest.raw.size(), &rest.done, detail::place(file, line));
    detail::check(s, end_);
  }
  void retire() { detail::check(detail::running.api->retire(detail::running.process, end_), end_); }
  void poison(int strength = 1) {
    detail::check(
        detail::running.api->poison(detail::running.process, end_, detail::strength_of(strength)),
        end_);
  }
  std::uint32_t number() const noexcept { return end_; }

 private:
  std::uint32_t end_;
};

// --- choice --------------------------------------------------------------------------------------

// An output guard. The caller keeps its value if nothing was written: the Output copies the value,
// or refers to it if it contains arrays.
template <class T>
struct Output {
  std::uint32_t end;
  std::conditional_t<detail::kParts<T>, T&, T> value;
  using chosen_type = Written;
  weft_guard guard(std::int64_t) const {
    detail::Block b;
    detail::encode(value, b, detail::running.api->allocate);
    return {WEFT_OUTPUT, end, 1, 0, 0, std::exchange(b.value, {})};
  }
  Written chosen(weft_guard&) const noexcept { return {}; }
  weft_guard off() const noexcept { return {WEFT_OUTPUT, end, 0, 0, 0, {}}; }
  const void* lends() const noexcept { return detail::kParts<T> ? &value : nullptr; }
  void restore(weft_guard& g) const {
    if constexpr (detail::kParts<T>) {
      if (!g.value.block) return;
      detail::Block b(std::exchange(g.value, {}));
      value = detail::decode<T>(b);
    }
  }
};
template <class T>
  requires(!detail::kParts<T>)
Output<T> output(const Writer<T>& w, const std::type_identity_t<T>& v) { return {w.number(), v}; }
template <class T>
  requires detail::kParts<T> Output<T> output(const Writer<T>& w, std::type_identity_t<T>& v) {
    return {w.number(), v};
  }

// An output guard whose value is made once the guard has been chosen, before the reader continues.
// The function must not use channels (rule 5.8).
//   select(in, output(w, [&] { return next(); }))
template <class T, class F>
struct Computed {
  std::uint32_t end;
  F make;
  using chosen_type = Written;
  weft_guard guard(std::int64_t) const noexcept { return {WEFT_COMPUTED, end, 1, 0, 0, {}}; }
  Written chosen(weft_guard&) const {
    const weft_api& api = *detail::running.api;
    detail::Block b;
    try {
      detail::encode<T>(make(), b, api.allocate);
    } catch (...) {
      api.deliver(detail::running.process, nullptr);
      throw;
    }
    const weft_status s = api.deliver(detail::running.process, &b.value);
    if (s == WEFT_OK) b.value.block = nullptr;
    detail::check(s, end);
    return {};
  }
};
template <class T, class F>
  requires(std::is_invocable_r_v<T, const F&> && !std::is_same_v<std::decay_t<F>, T>)
Computed<T, F> output(const Writer<T>& w, F make) { return {w.number(), std::move(make)}; }

// A barrier that Python has made, with its parties (rule 8). It is used as a parameter, and as a
// guard of select().
class Barrier {
 public:
  explicit Barrier(detail::End e) noexcept : number_(e.number) {}
  Barrier(Barrier&&) noexcept = default;
  Barrier& operator=(Barrier&&) noexcept = default;

  // Waits until every enrolled party has arrived. Throws Cancelled, BadUse.
  void sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    detail::check(
        detail::running.api->sync(detail::running.process, number_, detail::place(file, line)), 0);
  }
  void enrol() { detail::check(detail::running.api->enrol(detail::running.process, number_), 0); }
  void resign() { detail::check(detail::running.api->resign(detail::running.process, number_), 0); }

  using chosen_type = std::monostate;
  weft_guard guard(std::int64_t) const noexcept { return {WEFT_SYNC, number_, 1, 0, 0, {}}; }
  std::monostate chosen(weft_guard&) const noexcept { return {}; }

 private:
  std::uint32_t number_;
};

struct After {
  std::chrono::nanoseconds span;
  using chosen_type = std::monostate;
  weft_guard guard(std::int64_t now) const noexcept {
    // A span that is not positive is a skip (rule 5.7).
    if (span.count() <= 0) return {WEFT_SKIP, 0, 1, 0, 0, {}};
    std::int64_t at;
    // A time beyond the end of the clock is never reached.
    if (__builtin_add_overflow(now, std::int64_t{span.count()}, &at)) at = INT64_MAX;
    return {WEFT_TIMER, 0, 1, 0, at, {}};
  }
  std::monostate chosen(weft_guard&) const noexcept { return {}; }
};
template <class Rep, class Period>
After after(std::chrono::duration<Rep, Period> span) {
  using Nanoseconds = std::chrono::nanoseconds;
  // A span beyond the end of the clock never elapses (rule 8.5); a cast of it would be undefined.
  if (span >= std::chrono::duration<double, std::nano>(Nanoseconds::max()))
    return {Nanoseconds::max()};
  if (span != span) throw BadUse("after: a time that is not a number (nan): it would never come");
  if (span <= span.zero()) return {Nanoseconds::zero()};
  return {std::chrono::duration_cast<Nanoseconds>(span)};
}

struct Skip {
  using chosen_type = std::monostate;
  weft_guard guard(std::int64_t) const noexcept { return {WEFT_SKIP, 0, 1, 0, 0, {}}; }
  std::monostate chosen(weft_guard&) const noexcept { return {}; }
};
inline Skip skip() noexcept { return {}; }

namespace detail {
template <class G>
inline constexpr bool kWrites = requires(const G& g) {
  g.lends();
};
template <class G>
weft_guard off(const G& g) {
  if constexpr (kWrites<G>) return g.off();
  return {};
}
}  // namespace detail

// A guard with an option: when(open, reader) gives it a precondition; loud(reader) makes the
// retirement of its channel an outcome (rule 5.6).
template <class G>
struct Guarded {
  const G& inner;
  bool on, ends;
  using chosen_type = typename G::chosen_type;
  weft_guard guard(std::int64_t now) const {
    weft_guard g = !on && detail::kWrites<G> ? detail::off(inner) : inner.guard(now);
    g.on = on && g.on;
    g.ends = ends || g.ends;
    return g;
  }
  chosen_type chosen(weft_guard& g) const { return inner.chosen(g); }
  weft_guard off() const noexcept requires detail::kWrites<G> { return inner.off(); }
  const void* lends() const noexcept requires detail::kWrites<G> {
    return on ? inner.lends() : nullptr;
  }
  void restore(weft_guard& g) const requires detail::kWrites<G> { inner.restore(g); }
};
template <class G>
Guarded<G> when(bool on, const G& g) {
  return {g, on, false};
}
template <class G>
Guarded<G> loud(const G& g) {
  return {g, true, true};
}

namespace detail {
// The guards of one select. The destructor releases the values that were not written.
class Guards {
 public:
  explicit Guards(std::size_t n) { all.reserve(n); }
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;
  ~Guards() {
    for (weft_guard& g : all)
      if (g.value.block) running.api->release(g.value.block);
  }
  std::uint32_t select(bool fair, weft_place at) {
    std::uint32_t chosen = 0;
    const weft_status s = running.api->select(
        running.process, all.data(), static_cast<std::uint32_t>(all.size()), fair, &chosen, at);
    check(s, chosen < all.size() ? all[chosen].end : 0);
    return chosen;
  }
  std::vector<weft_guard> all;
};
template <class G>
void restore(const G& g, weft_guard& guard) {
  if constexpr (kWrites<G>) g.restore(guard);
}
template <class G>
const void* lends(const G& g) {
  if constexpr (kWrites<G>) return g.lends();
  return nullptr;
}
// The guards of one select, and its outcome. The caller gets back the values that were not written.
template <class... G>
class Choosing {
 public:
  using Result = std::variant<typename G::chosen_type...>;
  explicit Choosing(const G&... g) : raw(sizeof...(G)), g_(g...) {}

  void fill() {
    const std::int64_t time = running.api->now(running.process);
    std::apply(
        [&](const G&... g) {
          const void* const lent[] = {lends(g)..., nullptr};
          for (std::size_t k = 0; k < sizeof...(G); ++k)
            if (lent[k] && std::find(lent, lent + k, lent[k]) != lent + k)
              throw BadUse(
                  "select: two outputs are given the same arrays, which can be written once: give "
                  "each its own");
          (raw.all.push_back(g.guard(time)), ...);
        },
        g_);
  }
  // Gives the values of all guards except guard i back to the caller.
  void restore_but(std::size_t i) { restore_but(i, std::index_sequence_for<G...>{}); }
  Result take(std::size_t i) {
    restore_but(i);
    return take(i, std::index_sequence_for<G...>{});
  }
  Guards raw;

 private:
  template <std::size_t... I>
  void restore_but(std::size_t i, std::index_sequence<I...>) {
    ((I != i && I < raw.all.size() ? restore(std::get<I>(g_), raw.all[I]) : static_cast<void>(0)),
     ...);
  }
  template <std::size_t... I>
  Result take(std::size_t i, std::index_sequence<I...>) {
    std::optional<Result> r;
    ((i == I
          ? static_cast<void>(r.emplace(std::in_place_index<I>, std::get<I>(g_).chosen(raw.all[I])))
          : static_cast<void>(0)),
     ...);
    return *std::move(r);
  }
  std::tuple<const G&...> g_;
};
template <class... G>
auto select(bool fair, weft_place at, const G&... g) {
  Choosing<G...> choosing(g...);
  std::uint32_t i = 0;
  try {
    choosing.fill();
    i = choosing.raw.select(fair, at);
  } catch (...) {
    choosing.restore_but(sizeof...(G));
    throw;
  }
  return choosing.take(i);
}
}  // namespace detail

// Waits until one of the guards is ready, and commits it (rule 5). Returns a std::variant whose
// index() is that of the guard, with the value that was read, Written, or monostate.
//   auto got = select(numbers, commands, after(1s));
//   if (got.index() == 0) use(std::get<0>(got));
// select() is fair; select_first() takes the first guard that is ready. Both throw what read() or
// write() at the chosen guard would throw.
template <class... G>
auto select(const G&... g) {
  return detail::select(true, {"", 0}, g...);
}
template <class... G>
auto select_first(const G&... g) {
  return detail::select(false, {"", 0}, g...);
}

template <class Rep, class Period>
void sleep(std::chrono::duration<Rep, Period> span, const char* file = __builtin_FILE(),
           int line = __builtin_LINE()) {
  detail::Guards guards(1);
  guards.all.push_back(after(span).guard(now().count()));
  guards.select(true, detail::place(file, line));
}

}  // namespace weft::native
