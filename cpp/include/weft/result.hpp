// Result<R> holds the result of a process, or the reason why it has none (rule 3.5).
//
//   auto [sum, mean] = weft::run(total(…), average(…));
//   *sum  // the value; throws NoResult if that process ended without one
//
//   nothing yet ──emplace(v)──► a value        nothing yet ──lack(why)──► no value, and why
#pragma once
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <memory>
#include "errors.hpp"

namespace weft::inline WEFT_ABI {

// Thrown when the result of a process is asked for, but the process ended without one.
class NoResult final : public Error {
 public:
  NoResult(const std::string& what, std::string path, Ending e, std::string at,
           std::exception_ptr end)
      : Error(what),
        process(std::move(path)),
        how(e),
        where(std::move(at)),
        reason(std::move(end)) {}
  const std::string process;  // the process's path (rule 7.8)
  // How the process ended: retired, poisoned or cancelled; `returned` if it was never run.
  const Ending how;
  const std::string where;          // file:line of the process's last operation
  const std::exception_ptr reason;  // the exception that ended the process
};

namespace detail {

// Makes the reason why p has no result, from the exception that leaves p and is being handled.
template <class P>  // a template like its callers, so that it is compiled only with them
std::shared_ptr<const NoResult> why_no_result(const P& p) {
  const std::exception_ptr end = std::current_exception();
  std::string path = runtime::path_of(p), at = runtime::where(p), because;
  try {
    throw;
  } catch (const std::exception& e) {
    because = e.what();
  } catch (...) {
    because = "an exception of another type";
  }
  if (because.rfind(path + ": ", 0) == 0) because.erase(0, path.size() + 2);
  const std::string what = "process " + path + " gave no result: it ended at " + at + " (" +
                           because +
                           "); ask has_value() first, or let it end otherwise than by an exception";
  return std::make_shared<const NoResult>(what, std::move(path), p.ending, std::move(at), end);
}

}  // namespace detail

template <class R>
class Result {
 public:
  using value_type = R;

  bool has_value() const noexcept { return held_.index() == 1; }
  explicit operator bool() const noexcept { return has_value(); }

  // Returns the value. Without a value, throws NoResult, which names the process, how it ended and
  // where.
  R& value() & { return checked(), *std::get_if<1>(&held_); }
  const R& value() const& { return checked(), *std::get_if<1>(&held_); }
  R&& value() && { return checked(), std::move(*std::get_if<1>(&held_)); }
  R& operator*() & { return value(); }
  const R& operator*() const& { return value(); }
  R&& operator*() && { return std::move(*this).value(); }
  R* operator->() { return &value(); }
  const R* operator->() const { return &value(); }
  R value_or(R other) const& { return has_value() ? *std::get_if<1>(&held_) : std::move(other); }
  R value_or(R other) && {
    return has_value() ? std::move(*std::get_if<1>(&held_)) : std::move(other);
  }

  // Returns the reason why there is no value; null if there is one, or if the process was never
  // run.
  const NoResult* missing() const noexcept {
    return has_value() ? nullptr : std::get_if<0>(&held_)->get();
  }

  // Returns whether there is a value that equals v. Without a value the result equals nothing.
  friend bool operator==(const Result& r, const R& v) requires std::equality_comparable<R> {
    return r.has_value() && *r == v;
  }

  template <class... A>
  R& emplace(A&&... a) {
    return held_.template emplace<1>(std::forward<A>(a)...);
  }
  void lack(std::shared_ptr<const NoResult> why) noexcept {
    held_.template emplace<0>(std::move(why));
  }

 private:
  void checked() const {
    if (has_value()) [[likely]]
      return;
    if (const NoResult* why = missing()) throw NoResult(*why);
    throw NoResult("the result of a process that was never run", "", Ending::returned, "?",
                   nullptr);
  }
  std::variant<std::shared_ptr<const NoResult>, R> held_;
};

}  // namespace weft::inline WEFT_ABI
