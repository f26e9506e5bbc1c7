// Processes in C++ for a Python program: a source declares them, is built into a shared library,
// and `weft.native.load()` makes process functions of it. They run on threads, without the
// interpreter's lock, and meet Python's processes on ordinary channels.
//
//   #include <weft/component.hpp>
//   using namespace weft::native;
//
//   void scale(Reader<double> samples, Writer<double> scaled, double factor) {
//     for (double x : samples) scaled.write(factor * x);
//   } WEFT_COMPONENT(filter, "Filters for streams of numbers.") {
//     component.process<&scale>("scale", "Each sample times
//     `factor`.").argument("samples").argument("scaled").argument("factor", 2.0);
//   }
//
// This header stands on component_abi.h alone: a component has nothing of the extension's
// (namespace weft::native, so that a source may include weft/weft.hpp too, for networks of its
// own).
//
// Invariants
//  1 No exception leaves Declaration's run functions: what a process throws is told by a
//    weft_status and a weft_failure.
//  2 An end is closed by retire(), or by the host when its process has ended: then it knows whether
//    a poison spreads (rule 4.3). So destructors of ends do nothing.
#pragma once
#include <cxxabi.h>

#include <chrono>
#include <deque>
#include <exception>
#include <span>
#include <typeinfo>

#include "component_arrays.hpp"
#include "component_dynamic.hpp"
#include "component_fields.hpp"
#include "component_stack.hpp"

namespace weft::native {

namespace detail {
struct End {
  std::uint32_t number = 0;
};

}  // namespace detail

// --- ends ----------------------------------------------------------------------------------------

struct Written {};  // what a select gives for an output

// The time on the clock of the run.
inline std::chrono::nanoseconds now() {
  return std::chrono::nanoseconds(detail::running.api->now(detail::running.process));
}

// What was read, while its writer waits: it goes on when this goes (rule 1.6).
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
  static_assert(detail::Crosses<T>,
                "no channel to Python carries values of this type: see weft/component.hpp, Codec");

 public:
  using value_type = T;
  explicit Reader(detail::End e) noexcept : end_(e.number) {}
  Reader(Reader&&) noexcept = default;
  Reader& operator=(Reader&&) noexcept = default;

  // The next value. Throws Retired, Poisoned, PeerDied, Cancelled, BadUse.
  T read(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    detail::Block b;
    detail::check(detail::running.api->read(detail::running.process, end_, &b.value,
                                            detail::place(file, line)),
                  end_);
    return detail::decode<T>(b);
  }
  // At least one value, and those that are there without waiting, up to `most`. Throws as read()
  // does.
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
  // { auto x = reader.extended(); use(*x); }   Throws as read() does.
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
  void poison(std::uint8_t strength = 1) {
    detail::check(detail::running.api->poison(detail::running.process, end_, strength), end_);
  }

  // for (T x : reader): until the other side has retired.
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
  // As a guard of select().
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
  static_assert(detail::Crosses<T>,
                "no channel to Python carries values of this type: see weft/component.hpp, Codec");

 public:
  using value_type = T;
  explicit Writer(detail::End e) noexcept : end_(e.number) {}
  Writer(Writer&&) noexcept = default;
  Writer& operator=(Writer&&) noexcept = default;

  // Arrays in it go to the reader, and those here are empty then; what was not written is here yet.
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
  // Done when a reader (or the buffer) has the value. Throws Retired, Poisoned, PeerDied,
  // Cancelled, BadUse.
  void write(const T& v, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) requires(!detail::kParts<T>) {
    detail::Block b;
    detail::encode(v, b, detail::running.api->allocate);
    const weft_status s = detail::running.api->write(detail::running.process, end_, &b.value,
                                                     detail::place(file, line));
    if (s == WEFT_OK) b.value.block = nullptr;
    detail::check(s, end_);
  }
  // All of them, in order, as so many writes. Throws as write() does.
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
  void poison(std::uint8_t strength = 1) {
    detail::check(detail::running.api->poison(detail::running.process, end_, strength), end_);
  }
  std::uint32_t number() const noexcept { return end_; }

 private:
  std::uint32_t end_;
};

// --- choice --------------------------------------------------------------------------------------

// Of what has arrays in it `value` is the caller's: it is there yet if it was not written.
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
Output<T> output(const Writer<T>& w, std::type_identity_t<T> v) {
  return {w.number(), std::move(v)};
}
template <class T>
  requires detail::kParts<T> Output<T> output(const Writer<T>& w, std::type_identity_t<T>& v) {
    return {w.number(), v};
  }

// Its value is made when it has been chosen, before the reader goes on; the function does nothing
// with channels (rule 5.8).
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

// A barrier of Python's, with its parties (rule 8): as a parameter, and as a guard of select().
class Barrier {
 public:
  explicit Barrier(detail::End e) noexcept : number_(e.number) {}
  Barrier(Barrier&&) noexcept = default;
  Barrier& operator=(Barrier&&) noexcept = default;

  // Until every enrolled party has come. Throws Cancelled, BadUse.
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
    return {WEFT_TIMER, 0, 1, 0, now + span.count(), {}};
  }
  std::monostate chosen(weft_guard&) const noexcept { return {}; }
};
template <class Rep, class Period>
After after(std::chrono::duration<Rep, Period> span) {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(span)};
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

// A guard with a precondition, when(open, reader), or one for which the retirement of its channel
// is an outcome, loud(reader) (rule 5.6).
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
// The guards of one select: values that were not written are released.
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
// The guards of one select, and what comes of it: what was not written is given back.
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
  // All but that one are the caller's again.
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
    ((i == I ? static_cast<void>(
                   r.emplace(std::in_place_index<I>, std::get<I>(g_).chosen(raw.all[I])))
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

// Waits until one of the guards is ready (rule 5): a std::variant whose index() is the guard's,
// with what was read, Written or monostate.
//   auto got = select(numbers, commands, after(1s));
//   if (got.index() == 0) use(std::get<0>(got));
// Fair; select_first() takes the first that is ready. Throws as read() and write() do, for the
// guard that was chosen.
template <class... G>
auto select(const G&... g) {
  return detail::select(true, {"", 0}, g...);
}
template <class... G>
auto select_first(const G&... g) {
  return detail::select(false, {"", 0}, g...);
}

inline void sleep(std::chrono::nanoseconds span, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  detail::Guards guards(1);
  guards.all.push_back(After{span}.guard(now().count()));
  guards.select(true, detail::place(file, line));
}

// --- declaring -----------------------------------------------------------------------------------

namespace detail {

template <class P>
struct Parameter {  // a value
  static_assert(
      Crosses<P>,
      "a parameter is a Reader<T>, a Writer<T> or a value of a type that crosses to Python");
  static constexpr std::uint32_t kRole = WEFT_VALUE;
  using value_type = P;
  static P of(weft_argument& a) {
    Block b(std::exchange(a.value, {}));
    return decode<P>(b);
  }
};
template <class T>
struct Parameter<Reader<T>> {
  static constexpr std::uint32_t kRole = WEFT_READER;
  using value_type = T;
  static Reader<T> of(weft_argument& a) noexcept { return Reader<T>(End{a.end}); }
};
template <class T>
struct Parameter<Writer<T>> {
  static constexpr std::uint32_t kRole = WEFT_WRITER;
  using value_type = T;
  static Writer<T> of(weft_argument& a) noexcept { return Writer<T>(End{a.end}); }
};

template <>
struct Parameter<Barrier> {
  static constexpr std::uint32_t kRole = WEFT_BARRIER;
  using value_type = std::monostate;
  static Barrier of(weft_argument& a) noexcept { return Barrier(End{a.end}); }
};

inline char* copy_text(const weft_api* api, const char* text) noexcept {
  const std::size_t n = std::strlen(text) + 1;
  auto* const to = static_cast<char*>(api->allocate(n));
  if (to) std::memcpy(to, text, n);
  return to;
}
inline char* failure_text(const weft_api* api, const char* message) noexcept {
  try {
    const std::string stack = thrown_at();
    if (!stack.empty())
      return copy_text(api, (std::string(message) + WEFT_THROWN_AT + stack).c_str());
  } catch (const std::bad_alloc&) {  // without the stack, then
  }
  return copy_text(api, message);
}
inline char* type_text(const weft_api* api, const std::type_info* t) noexcept {
  if (!t) return nullptr;
  int bad = 0;
  char* const name = abi::__cxa_demangle(t->name(), nullptr, nullptr, &bad);
  char* const to = copy_text(api, name ? name : t->name());
  std::free(name);
  return to;
}

template <class F>
weft_status guarded(const weft_api* api, weft_failure* failure, F&& f) {
  try {
    f();
    return WEFT_OK;
  } catch (const ChannelEnd& e) {
    failure->end = e.end;
    return e.status;
  } catch (const Cancelled&) {
    return WEFT_CANCELLED;
  } catch (const std::exception& e) {
    failure->type = type_text(api, &typeid(e));
    failure->text = failure_text(api, e.what());
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is cancelled by the system
  } catch (...) {
    failure->type = type_text(api, abi::__cxa_current_exception_type());
    failure->text = failure_text(api, "");
  }
  return WEFT_FAILED;
}
}  // namespace detail

class Process;

class Component {
 public:
  Component(const char* name, const char* doc, void (*declare)(Component&))
      : name_(name), doc_(doc) {
    try {
      declare(*this);
    } catch (const std::exception& e) {
      error_ = e.what();
    }
  }
  Component(const Component&) = delete;
  Component& operator=(const Component&) = delete;

  // A process: a function whose parameters are ends and values. F is told as a constant,
  // process<&scale>("scale", "…"), or by the macro WEFT_PROCESS(scale, "…"), which names it as the
  // function is named.
  template <auto F>
  Process& process(const char* name, const char* doc = "", const char* file = __builtin_FILE(),
                   int line = __builtin_LINE());

  const weft_component* info();

 private:
  const char* name_;
  const char* doc_;
  std::string error_;
  std::deque<Process> processes_;
  std::vector<weft_process_info> infos_;
  weft_component made_{};
};

class Process {
 public:
  explicit Process(weft_process_info info) : info_(info) {}

  // The next parameter, in the order of the function's: its name, and what it is.
  Process& argument(const char* name, const char* doc = "") {
    next(name, doc);
    return *this;
  }
  // The same with a default.
  template <class T>
    requires(!std::is_convertible_v<T, const char*>)
  Process& argument(const char* name, T fallback, const char* doc = "") {
    give(next(name, doc), fallback);
    return *this;
  }
  Process& argument(const char* name, std::string fallback, const char* doc) {
    give(next(name, doc), fallback);
    return *this;
  }

 private:
  friend class Component;
  struct Made {
    weft_parameter parameter{};
    std::string type, block;
  };

  Made& next(const char* name, const char* doc) {
    if (named_ == parameters_.size())
      throw std::logic_error(std::string("process ") + info_.name + ": argument(\"" + name +
                             "\") is one more than its function has");
    Made& m = parameters_[named_++];
    m.parameter.name = name;
    m.parameter.doc = doc;
    return m;
  }
  template <class T>
  void give(Made& m, const T& v) {
    if (m.parameter.role != WEFT_VALUE)
      throw std::logic_error(std::string("process ") + info_.name +
                             ": an end or a barrier has no default, but " + m.parameter.name +
                             " is given one");
    m.parameter.has_default = 1;
    if (m.type == "i") {
      if constexpr (std::is_integral_v<T>) return set(m, static_cast<std::int64_t>(v));
    } else if (m.type == "d") {
      if constexpr (std::is_arithmetic_v<T>) return set(m, static_cast<double>(v));
    } else if (m.type == detail::Codec<T>::name()) {
      return set(m, v);
    }
    throw std::logic_error(std::string("process ") + info_.name + ": the default of " +
                           m.parameter.name + " is not of its type");
  }
  template <class T>
  void set(Made& m, const T& v) {
    static_assert(!detail::kParts<T>, "an array has no default");
    if constexpr (detail::Inline<T>) {
      m.parameter.fallback.bits = detail::Codec<T>::bits(v);
    } else {
      if constexpr (detail::kBare<T>)
        m.block.assign(reinterpret_cast<const char*>(v.data()), v.size());
      else {
        detail::Out flat;
        detail::Codec<T>::put(flat, v);
        m.block = flat.bytes;
      }
      m.parameter.fallback.bits = m.block.size();
    }
  }
  const weft_process_info& info(std::string& error) {
    made_.clear();
    if (named_ < parameters_.size())
      error = std::string("process ") + info_.name + ": its function has " +
              std::to_string(parameters_.size()) + " parameters, and " + std::to_string(named_) +
              " are named: .argument(\"name\") for each";
    for (Made& m : parameters_) {
      m.parameter.type = m.type.c_str();
      if (!m.parameter.name) m.parameter.name = "";
      if (!m.parameter.doc) m.parameter.doc = "";
      if (!m.block.empty()) m.parameter.fallback.block = m.block.data();
      made_.push_back(m.parameter);
    }
    info_.parameters = made_.data();
    info_.count = static_cast<std::uint32_t>(made_.size());
    return info_;
  }
  template <class R, class... A>
  static std::deque<Made> parameters_of(R (*)(A...)) {
    std::deque<Made> all;
    (add<std::decay_t<A>>(all), ...);
    return all;
  }
  template <class P>
  static void add(std::deque<Made>& all) {
    Made& m = all.emplace_back();
    m.parameter.role = detail::Parameter<P>::kRole;
    m.type = detail::Codec<typename detail::Parameter<P>::value_type>::name();
  }

  weft_process_info info_;
  std::deque<Made> parameters_;
  std::size_t named_ = 0;
  std::vector<weft_parameter> made_;
};

namespace detail {
// One for each declaration, by its function: run() has no room for that.
template <auto F>
struct Run;
template <class... A, void (*F)(A...)>
struct Run<F> {
  static weft_status run(const weft_api* api, weft_process* process, weft_argument* arguments,
                         weft_failure* failure) {
    running = {api, process};
    return guarded(api, failure, [&] { call(arguments, std::index_sequence_for<A...>{}); });
  }
  template <std::size_t... I>
  static void call([[maybe_unused]] weft_argument* arguments, std::index_sequence<I...>) {
    // Made from left to right, before the call: one that is refused leaves nothing behind.
    std::tuple<std::decay_t<A>...> made{Parameter<std::decay_t<A>>::of(arguments[I])...};
    F(static_cast<A&&>(std::get<I>(made))...);  // by value, or by reference to it
  }
};
}  // namespace detail

template <auto F>
Process& Component::process(const char* name, const char* doc, const char* file, int line) {
  weft_process_info info{};
  info.name = name;
  info.doc = doc;
  info.file = file;
  info.line = static_cast<std::uint32_t>(line);
  info.run = &detail::Run<F>::run;
  // a coroutine (component_tasks.hpp)
  if constexpr (requires { &detail::Run<F>::step; }) info.step = &detail::Run<F>::step;
  Process& p = processes_.emplace_back(info);
  p.parameters_ = Process::parameters_of(F);
  return p;
}

inline const weft_component* Component::info() {
  infos_.clear();
  for (Process& p : processes_) infos_.push_back(p.info(error_));
  made_.abi = WEFT_COMPONENT_ABI;
  made_.size = sizeof(weft_component);
  made_.name = name_;
  made_.doc = doc_;
#if defined(__clang__)
  made_.compiler = "clang " __clang_version__;
#else
  made_.compiler = "g++ " __VERSION__;
#endif
  made_.count = static_cast<std::uint32_t>(infos_.size());
  made_.info_size = sizeof(weft_process_info);
  made_.processes = infos_.data();
  made_.error = error_.empty() ? nullptr : error_.c_str();
  made_.api_size = sizeof(weft_api);
  made_.parameter_size = sizeof(weft_parameter);
  return &made_;
}

}  // namespace weft::native

// WEFT_COMPONENT(name, "what it is for") { component.process<&f>("f", "what it
// does").argument("in").argument("n", 8); } Once in a library. What it declares is looked at when
// the library is loaded.
#define WEFT_COMPONENT(NAME, DOC)                                                                  \
  static void weft_declare_##NAME(weft::native::Component& component);                             \
  extern "C" __attribute__((visibility("default"))) const weft_component* weft_component_entry() { \
    static weft::native::Component made(#NAME, DOC, &weft_declare_##NAME);                         \
    return made.info();                                                                            \
  }                                                                                                \
  static void weft_declare_##NAME([[maybe_unused]] weft::native::Component& component)
