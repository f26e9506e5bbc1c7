// The exceptions of the hosted layer, by their names in the rules (SEMANTICS.md).
#pragma once
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include <memory>
#include "config.hpp"
#include "runtime/limit.hpp"
#include "runtime/names.hpp"
#include "runtime/text.hpp"

namespace weft::inline WEFT_ABI {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // The copy constructor and the destructor are compiled once, and not in each derived class.
  [[gnu::noinline, gnu::cold]] Error(const Error& o) noexcept
      : std::runtime_error(o), carried_(o.carried_) {}
  Error& operator=(const Error&) = default;
  [[gnu::noinline, gnu::cold]] ~Error() override {}

  // Returns the value of a write that did not happen (rules 3.3, 4.2, 6.2); null if there was none,
  // or if the value is not a T.
  template <class T>
  T* value() const noexcept {
    return carried_.type && *carried_.type == typeid(T) ? static_cast<T*>(carried_.value.get())
                                                        : nullptr;
  }
  // A value of any type, together with that type.
  struct Carried {
    std::shared_ptr<void> value;
    const std::type_info* type = nullptr;
    template <class T>
    static Carried of(T&& v) {
      using D = std::decay_t<T>;
      return {std::make_shared<D>(std::forward<T>(v)), &typeid(D)};
    }
  };
  void carry(Carried c) noexcept { carried_ = std::move(c); }

 private:
  Carried carried_;
};

// A channel has ended: the base of Retired, Poisoned and PeerDied.
class ChannelEnd : public Error {
 public:
  ChannelEnd(const std::string& what, int guard_index, bool by_operation = false)
      : Error(what), guard(guard_index), met(by_operation) {}
  // The index of the guard that a select chose; -1 for a plain operation (rule 5.6).
  const int guard;
  // whether an operation threw the exception; only then can the end be quiet (rule 3.5)
  const bool met;
};
class Retired final : public ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;
};
class Poisoned final : public ChannelEnd {
 public:
  Poisoned(const std::string& what, int guard_index, std::uint8_t s, bool by_operation = false)
      : ChannelEnd(what, guard_index, by_operation), strength(s) {
    under_way();
  }
  const std::uint8_t strength;

  // Called when the exception is thrown in the process that runs. If this process closes ends while
  // the exception passes, their channels are then poisoned (rule 4.3).
  void under_way() const noexcept {
    if (runtime::Context* c = runtime::this_context) {
      c->thrown = strength;
      c->attention = true;
      c->poisoned = lives_;
    }
  }

 private:
  // Shared by all copies of the exception; `poisoned` of the Context expires with the last copy.
  std::shared_ptr<void> lives_ = std::make_shared<char>();
};
class PeerDied final : public ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;
  // A write to another address space failed, but its value might have been taken (WIRE.md 8).
  bool in_doubt = false;
};

class Cancelled final : public Error {
 public:
  Cancelled() : Error("cancelled") {}
};

// A time limit of the process itself has expired (rule 7.12). The operations of the process throw
// TimedOut instead of Cancelled.
class TimedOut final : public Error {
 public:
  explicit TimedOut(const runtime::Limit* l = nullptr) : Error("timed out"), limit_(l) {}
  // Returns whether limit t has expired, for processes that have several limits.
  bool of(const class Timeout& t) const noexcept;

 private:
  const runtime::Limit* limit_;
};

class BadUse final : public Error {
 public:
  using Error::Error;
};

class Deadlock final : public Error {
 public:
  Deadlock(const std::string& report, std::vector<std::string> k)
      : Error(report), knot(std::move(k)) {}
  const std::vector<std::string> knot;  // the paths of the processes in the deadlock
};

// Several processes of one group have failed (rule 7.2).
class Failures final : public Error {
 public:
  explicit Failures(std::vector<std::exception_ptr> e) : Error(describe(e)), all(std::move(e)) {}
  const std::vector<std::exception_ptr> all;

 private:
  static std::string describe(const std::vector<std::exception_ptr>& e);
};

namespace detail {

// Returns the path of the process that runs here, and a colon; outside any process, an empty
// string.
std::string who();

// Returns the exception that is being handled if its type is exactly E, not a derived type. Returns
// null if it is not, or if the type cannot be determined. (Rethrowing the exception, so that a
// handler can determine its type, would take as long as the whole unwinding so far.)
template <class E>
const E* handled() noexcept {
#if __has_include(<cxxabi.h>)
  const std::type_info* const t = abi::__cxa_current_exception_type();
  if (!t || *t != typeid(E)) return nullptr;
  const std::exception_ptr held = std::current_exception();
  // The address of the exception object, which is all that an exception_ptr holds.
  const void* thrown = nullptr;
  static_assert(sizeof held == sizeof thrown);
  std::memcpy(&thrown, &held, sizeof thrown);
  return static_cast<const E*>(thrown);
#else
  return nullptr;
#endif
}

// How the exception that is being handled ends the process that it propagates out of (rules 3.5,
// 4.3, 4.6, 6.5), and the strength of the poison if it is Poisoned.
struct Left {
  Ending how;
  std::uint8_t poison = 0;
};
inline Left left_by(const Retired& e) noexcept {
  return {e.met ? Ending::retired : Ending::failed};
}
inline Left left_by(const Poisoned& e) noexcept {
  return {e.met ? Ending::poisoned : Ending::failed, e.strength};
}
Left left_by_handled() noexcept;

// Returns the exception that is being handled. A thread that is ended by pthread_exit() or
// pthread_cancel() is unwound as if by an exception, which no handler must swallow. If the rest of
// the program cannot continue without the process of such a thread, the program ends with a message
// that names the process (rule 7.14).
std::exception_ptr caught(const runtime::ProcessBase& p) noexcept;
// Ends the program with a message that names process p, whose thread has been ended (rule 7.14).
[[noreturn]] void thread_needed(const runtime::ProcessBase& p) noexcept;

// Throws, in the process that runs now, an exception that has left another process.
[[noreturn]] void raise_again(const std::exception_ptr& e);

// Throws Cancelled or TimedOut (rule 6.1). Called when the process meets the request to end.
// `not_done` is the value of a write that did not happen; the exception carries it.
[[noreturn, gnu::cold]] void throw_cancelled(runtime::ProcessBase& p, Error::Carried not_done = {});
[[gnu::always_inline]] inline void meet_request(runtime::ProcessBase& p) {
  if (p.cancel().load(std::memory_order_relaxed) != 0) [[unlikely]]
    throw_cancelled(p);
}

[[noreturn]] void bad_use(std::string_view what);
[[noreturn]] void started_twice();

// Throws the exception for the end of channel c with status s. `met` says whether an operation met
// that end (rule 3.5).
[[noreturn, gnu::cold]] void throw_end(Status s, const core::SyncObject& c, std::uint8_t strength,
                                       const char* verb, int guard, Error::Carried not_done = {},
                                       bool met = true);

}  // namespace detail
}  // namespace weft::inline WEFT_ABI
