// The placement of a placeable source (anywhere.hpp) as a component under Python. Its processes are
// coroutines of component_tasks.hpp; this header gives them the names of the hosted library. All
// placeable processes of a shared library form one component, which has the name of the source
// file.
//
// Invariants
//  1 A declaration is written once. Names and defaults come from WEFT_PLACEABLE, everything else
//    from the type of the function.
//  2 The variables that hold the declarations have hidden visibility. If they were visible, the
//    loader would merge them with those of another component (STB_GNU_UNIQUE).
#pragma once
#include <string>

#include "chosen.hpp"
#include "component_tasks.hpp"
#include "core/status.hpp"
#include "placing.hpp"

namespace weft::inline WEFT_ABI {

using Process = native::tasks::Task<>;
template <class T>
using Reader = native::tasks::Reader<T>;
template <class T>
using Writer = native::tasks::Writer<T>;
using Barrier = native::tasks::Barrier;

// Returns the time in ns, on the clock of the run.
inline std::int64_t now() { return native::now().count(); }
using native::tasks::sleep;

namespace detail {

template <class T>
class WriteOrEnd : public native::detail::TaskOperation {
 public:
  WriteOrEnd(std::uint32_t end, const T& value, weft_place at) : end_(end), at_(at) {
    native::detail::encode<T>(value, block_, native::detail::running.api->allocate);
  }
  bool await_ready() {
    const native::detail::Running& r = native::detail::running;
    return begun(r.api->start_write(r.process, end_, &block_.value, at_));
  }
  Status await_resume() {
    switch (const weft_status s = ended()) {
      case WEFT_OK: block_.value.block = nullptr; return Status::ok;
      case WEFT_RETIRED: return Status::retired;
      case WEFT_POISONED: return Status::poisoned;
      case WEFT_DIED: return Status::died;
      default: native::detail::fail(s, end_);
    }
  }

 private:
  const std::uint32_t end_;
  const weft_place at_;
  native::detail::Block block_;
};

// A guard with a precondition.
template <class G, class V = void>
struct PlacedGuard {
  using Value = V;  // the type of the guard's value in a select; void if the guard is no input
  using chosen_type = typename G::chosen_type;
  G inner;
  bool on = true;
  PlacedGuard when(bool condition) && { return {std::move(inner), condition}; }

  weft_guard guard(std::int64_t now) const {
    return native::Guarded<G>{inner, on, false}.guard(now);
  }
  chosen_type chosen(weft_guard& g) const { return inner.chosen(g); }
};
template <class T>
struct InputGuard {
  using chosen_type = T;
  native::Reader<T> end;
  weft_guard guard(std::int64_t now) const noexcept { return end.guard(now); }
  T chosen(weft_guard& g) const { return end.chosen(g); }
};

template <class G>
struct ValueOfGuard {
  using type = void;
};
template <class G, class V>
struct ValueOfGuard<PlacedGuard<G, V>> {
  using type = V;
};
template <class T>
struct ValueOfGuard<native::tasks::Reader<T>> {
  using type = T;
};

// A select with the same result as a select of the hosted library.
template <class... G>
class PlacedSelect : public native::detail::TaskSelect<G...> {
  using Base = native::detail::TaskSelect<G...>;
  using Value = ValueOf<typename ValueOfGuard<G>::type...>;

 public:
  explicit PlacedSelect(const G&... g) : Base(true, {"", 0}, g...) {}
  Chosen<Value> await_resume() {
    auto got = Base::await_resume();
    Chosen<Value> result{static_cast<int>(got.index()), {}};
    take(got, result.value, std::index_sequence_for<G...>{});
    return result;
  }

 private:
  template <class From, std::size_t... I>
  static void take(From& from, Value& to, std::index_sequence<I...>) {
    (take_one<I>(from, to), ...);
  }
  template <std::size_t I, class From>
  static void take_one([[maybe_unused]] From& from, [[maybe_unused]] Value& to) {
    using T = typename ValueOfGuard<std::tuple_element_t<I, std::tuple<G...>>>::type;
    if constexpr (!std::is_void_v<T>) {
      if (from.index() != I) return;
      if constexpr (std::is_same_v<Value, std::optional<T>>)
        to.emplace(std::get<I>(std::move(from)));
      else
        to.template emplace<T>(std::get<I>(std::move(from)));
    }
  }
};

template <class T>
concept Copied = !native::detail::kParts<T>;

}  // namespace detail

// Returns an operation for co_await, as write_or_end() of anywhere_hosted.hpp does.
template <detail::Copied T>
auto write_or_end(const native::tasks::Writer<T>& w, const std::type_identity_t<T>& v,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return detail::WriteOrEnd<T>(w.number(), v, native::detail::place(file, line));
}

// --- guards, and select (rule 5) -----------------------------------------------------------------

template <class T>
detail::PlacedGuard<detail::InputGuard<T>, T> in(const native::tasks::Reader<T>& r) {
  return {{native::Reader<T>(native::detail::End{r.number()})}};
}
template <detail::Copied T>
detail::PlacedGuard<native::Output<T>> out(const native::tasks::Writer<T>& w,
                                           const std::type_identity_t<T>& v) {
  return {{w.number(), v}};
}
template <class Rep, class Period>
detail::PlacedGuard<native::After> after(std::chrono::duration<Rep, Period> span) {
  return {native::after(span)};
}
inline detail::PlacedGuard<native::Skip> skip() noexcept { return {}; }

// Returns an operation for co_await. The operation waits until one of the guards can commit, and
// commits that guard. Throws what select() of the hosted library throws.
template <native::detail::Guarding... G>
auto select(const G&... g) {
  return detail::PlacedSelect<G...>(g...);
}

// --- declaring -----------------------------------------------------------------------------------

namespace placing {

// Returns the name under which Python sees `name`: an underscore is added to a keyword of Python
// (PEP 8). The list contains the keywords that can be names in C++.
inline std::string in_python(std::string_view name) {
  for (const std::string_view keyword :
       {"False", "None",   "True",     "as",      "assert", "async",  "await",  "def",
        "del",   "elif",   "except",   "finally", "from",   "global", "import", "in",
        "is",    "lambda", "nonlocal", "pass",    "raise",  "with",   "yield"})
    if (name == keyword) return std::string(name) + "_";
  return std::string(name);
}

// A process that is being declared. Its parameters are declared one after another.
class [[gnu::visibility("hidden")]] Declared {
 public:
  explicit Declared(native::Process & p) noexcept : process_(p) {}
  // Begins the next parameter. `text` comes from the declaration: `name`, or `name = default`.
  void next(std::string_view text) {
    names().push_back(in_python(text.substr(0, text.find_first_of(" ="))));
    now = this;
  }
  void plain() { process_.argument(names().back().c_str()); }
  template <class T>
  void fallback(const T& value) {
    if constexpr (std::is_convertible_v<T, const char*>)
      process_.argument(names().back().c_str(), std::string(value), "");
    else
      process_.argument(names().back().c_str(), value);
  }
  static inline Declared* now = nullptr;

 private:
  // The component refers to these strings as long as the shared library is loaded.
  static std::deque<std::string>& names() {
    static std::deque<std::string> all;
    return all;
  }
  native::Process& process_;
};

struct Parameter {
  Parameter() { Declared::now->plain(); }
  template <class T>
  Parameter(const T& value) {  // NOLINT: implicit, for `n = 8`
    Declared::now->fallback(value);
  }
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;
};

// All placeable processes of this shared library.
struct All {
  std::string name;
  std::vector<void (*)(native::Component&)> processes;
};
[[gnu::visibility("hidden")]] inline All& all() {
  static All them;
  return them;
}
inline bool add(std::string_view file, void (*declare)(native::Component&)) {
  if (all().processes.empty()) {
    file = file.substr(file.find_last_of('/') + 1);
    all().name = file.substr(0, file.find_last_of('.'));
  }
  all().processes.push_back(declare);
  return true;
}

[[gnu::visibility("hidden")]] inline native::Component& component() {
  static native::Component made(
      all().name.c_str(), "", +[](native::Component& c) {
        for (const auto declare : all().processes) declare(c);
      });
  return made;
}

}  // namespace placing
}  // namespace weft::inline WEFT_ABI

extern "C" [[gnu::used, gnu::visibility("default")]] inline const weft_component*
weft_component_entry() {
  return weft::placing::component().info();
}

#define WEFT_PLACING_DECLARE(F)                                                                \
  [[maybe_unused]] static const bool weft_placed_##F = ::weft::placing::add(                   \
      __FILE__, +[](::weft::native::Component& component) {                                    \
        ::weft::placing::Declared declared(component.process<&F>(#F, "", __FILE__, __LINE__)); \
        weft_placeable_##F(declared);                                                          \
      });
