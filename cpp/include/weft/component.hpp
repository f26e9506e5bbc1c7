// Processes in C++ for a Python program. A source file declares them and is built into a shared
// library, and `weft.native.load()` makes process functions of them. They run on threads, without
// the interpreter's lock, and share ordinary channels with processes in Python.
//
//   #include <weft/component.hpp>
//   using namespace weft::native;
//
//   void scale(Reader<double> samples, Writer<double> scaled, double factor) {
//     for (double x : samples) scaled.write(factor * x);
//   }
//   WEFT_COMPONENT(filter, "Filters for streams of numbers.") {
//     component.process<&scale>("scale", "Each sample times `factor`.")
//         .argument("samples").argument("scaled").argument("factor", 2.0);
//   }
//
// This header needs only component_abi.h: a component contains no code of the extension.
// (Everything is in namespace weft::native, so a source may also include weft/weft.hpp, for
// networks of its own.) What a process does with its arguments is in component_ends.hpp.
//
// Invariant: no exception leaves the run functions; an exception of a process is passed on as a
// weft_status and a weft_failure.
#pragma once
#include <cxxabi.h>

#include <deque>
#include <exception>
#include <typeinfo>

#include "component_ends.hpp"
#include "component_stack.hpp"

namespace weft::native {

// --- declaring -----------------------------------------------------------------------------------

namespace detail {

template <class P>
struct Parameter {  // converts an argument that is a value
  static_assert(
      Crosses<P>,
      "a parameter is a Reader<T>, a Writer<T> or a value of a type that crosses to Python; of a "
      "struct of your own name the fields, below it: WEFT_FIELDS(Type, field, ...)");
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
  } catch (const std::bad_alloc&) {  // no memory for the text, so the failure has no stack
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
    throw;  // The system has cancelled the thread, and needs this exception.
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

  // Declares a process: a function whose parameters are ends and values. F is given as a constant,
  // as in process<&scale>("scale", "…"). The macro WEFT_PROCESS(scale, "…") does the same, and
  // gives the process the function's name.
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

  // Names the next parameter, in the order of the function, and describes it. Throws
  // std::logic_error if the function has no more parameters.
  Process& argument(const char* name, const char* doc = "") {
    next(name, doc);
    return *this;
  }
  // Names the next parameter, and gives it a default value. Throws std::logic_error if the value is
  // not of the parameter's type.
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
// Each declared function has a class of its own, so that its run() needs no data to know the
// function.
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
    // The arguments are made from left to right, before the call: if one of them is refused, those
    // made before it are destroyed.
    std::tuple<std::decay_t<A>...> made{Parameter<std::decay_t<A>>::of(arguments[I])...};
    // The argument is passed by value or by reference, as the parameter requires.
    F(static_cast<A&&>(std::get<I>(made))...);
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
  // If Run<F> has a step(), the process is a coroutine (component_tasks.hpp).
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

// WEFT_COMPONENT(name, "what it is for") {
//   component.process<&f>("f", "what it does").argument("in").argument("n", 8);
// }
// A library uses this macro once. The declarations are read when the library is loaded.
#define WEFT_COMPONENT(NAME, DOC)                                                                  \
  static void weft_declare_##NAME(weft::native::Component& component);                             \
  extern "C" __attribute__((visibility("default"))) const weft_component* weft_component_entry() { \
    static weft::native::Component made(#NAME, DOC, &weft_declare_##NAME);                         \
    return made.info();                                                                            \
  }                                                                                                \
  static void weft_declare_##NAME([[maybe_unused]] weft::native::Component& component)
