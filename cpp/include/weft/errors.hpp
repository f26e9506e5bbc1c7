// What the hosted layer throws. The names are those of the rules.
#pragma once
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "runtime/report.hpp"

namespace weft {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  // The value of a write that did not happen (rules 3.3, 4.2, 6.2); null if there was none or it is of another type.
  template <class T>
  T* value() const noexcept {
    return carried_ && *type_ == typeid(T) ? static_cast<T*>(carried_.get()) : nullptr;
  }
  template <class T>
  void carry(T&& v) {
    carried_ = std::make_shared<std::decay_t<T>>(std::forward<T>(v));
    type_ = &typeid(std::decay_t<T>);
  }

 private:
  std::shared_ptr<void> carried_;
  const std::type_info* type_ = nullptr;
};

// A channel has ended: the common base of the three ways.
class ChannelEnd : public Error {
 public:
  ChannelEnd(const std::string& what, int guard_index) : Error(what), guard(guard_index) {}
  const int guard;  // of the select that chose it; -1 for a plain operation (rule 5.6)
};
class Retired final : public ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;
};
class Poisoned final : public ChannelEnd {
 public:
  Poisoned(const std::string& what, int guard_index, std::uint8_t s)
      : ChannelEnd(what, guard_index), strength(s), alive_(std::make_shared<char>()) {
    if (runtime::Context* c = runtime::this_context) {
      c->thrown = s;
      c->attention = true;
      c->poisoned = alive_;
    }
  }
  const std::uint8_t strength;

 private:
  std::shared_ptr<const void> alive_;  // shared by its copies; see Context::poisoned
};
class PeerDied final : public ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;
};

class Cancelled final : public Error {
 public:
  Cancelled() : Error("cancelled") {}
};

class BadUse final : public Error {
 public:
  using Error::Error;
};

class Deadlock final : public Error {
 public:
  Deadlock(const std::string& report, std::vector<std::string> k) : Error(report), knot(std::move(k)) {}
  const std::vector<std::string> knot;  // the paths of the processes in it
};

// Several processes of one group have failed (rule 7.2).
class Failures final : public Error {
 public:
  explicit Failures(std::vector<std::exception_ptr> e) : Error(describe(e)), all(std::move(e)) {}
  const std::vector<std::exception_ptr> all;

 private:
  static std::string describe(const std::vector<std::exception_ptr>& e) {
    std::string s = std::to_string(e.size()) + " processes failed";
    for (const auto& x : e) {
      try {
        std::rethrow_exception(x);
      } catch (const std::exception& y) {
        s += std::string("; ") + y.what();
      } catch (...) {
        s += "; an exception of another type";
      }
    }
    return s;
  }
};

namespace detail {

inline std::string who() {
  const runtime::ProcessBase* p = runtime::this_process();
  return p ? runtime::path_of(*p) + ": " : std::string();
}

// Is what is being handled a Retired or a Cancelled? Known by its type, for to throw it again would take as long as its whole way here.
// False: it is not, or there is no way to tell.
inline bool handling_quiet_end() noexcept {
#if __has_include(<cxxabi.h>)
  const std::type_info* const t = abi::__cxa_current_exception_type();
  return t && (*t == typeid(Retired) || *t == typeid(Cancelled));
#else
  return false;
#endif
}

[[noreturn]] inline void bad_use(const std::string& what) { throw BadUse(who() + what); }

[[noreturn]] inline void started_twice() { bad_use("a process that was started already (or moved away) cannot be started"); }

template <class Carry>
[[noreturn, gnu::cold, gnu::noinline]] void throw_end(Status s, const core::Place& c, std::uint8_t strength, const char* verb, int guard,
                                                      Carry&& carry) {
  const std::string at = who() + verb + " on channel " + runtime::name_of(c) + ": ";
  if (s == Status::poisoned) {
    Poisoned e(at + "it was poisoned", guard, strength);
    carry(e);
    throw e;
  }
  if (s == Status::died) {
    PeerDied e(at + "its holder died", guard);
    carry(e);
    throw e;
  }
  if (s == Status::cancelled) {
    if (runtime::ProcessBase* p = runtime::this_process()) p->take_cancel();
    Cancelled e;
    carry(e);
    throw e;
  }
  Retired e(at + "it has retired", guard);
  carry(e);
  throw e;
}

}  // namespace detail
}  // namespace weft
