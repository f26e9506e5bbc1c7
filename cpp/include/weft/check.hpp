// Every order of the program's own network (rule 17):
//
//   weft::CheckReport r = weft::check([] { weft::run(customer(…), clerk(…)); });
//   CHECK_MESSAGE(r.passed(), r.text);  // doctest; in GoogleTest EXPECT_TRUE(r.passed()) << r.text
//
// check() runs a function again and again, and decides each time which process goes on, until an
// order fails or every order was run. A test that includes this header is compiled with
// WEFT_CHECKED=1 and links weft::checked (cpp/docs/checking.md).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "blocks.hpp"

namespace weft::inline WEFT_ABI {

// How schedules are looked for. `automatic`: reduced, which begins with the usual order, then walk,
// priorities and few in turn. `reduced`: one schedule stands for all that cannot differ from it.
// `all`: each schedule. `walk`: at random. `priorities`: by random priorities that change a few
// times. `few`: all with at most two deviations from the usual order.
enum class Search : std::uint8_t { automatic, reduced, all, walk, priorities, few };

struct CheckOptions {
  Search search = Search::automatic;
  double seconds = 10;        // how long to search, at most
  std::size_t schedules = 0;  // how many to run, at most; 0: any number
  bool any_time = false;      // may times come although a process could run, twice in a schedule?
  bool only_where_parked = false;  // the grain `park` (rule 17.2)
  bool keep_going = false;         // look for more failures after the first, one of each kind?
  std::uint64_t seed = 1;
  std::vector<std::string> replay = {};  // tokens of schedules that are run before the search
  std::string name = "the network";      // in the report
};

struct CheckFailure {
  std::string kind;          // "deadlock", "exception", "no end", "lost values", "not the same"
  std::string what;          // more about it, in a few words
  std::string token;         // replays the schedule: CheckOptions::replay
  std::string text;          // the schedule, an operation a line, and what else is known
  std::size_t schedule = 0;  // the number of the schedule that failed; 0: a token's
  std::size_t deviations = 0;
  bool least = false;  // were all schedules with fewer deviations run, and none fails?
};

struct CheckReport {
  std::vector<CheckFailure> failures;
  bool complete = false;      // was every schedule run, or does one that was run stand for it?
  std::size_t schedules = 0;  // how many were run to search
  double estimate = 0;        // how many there may be, without reduction; 0: not known
  std::string text;           // all of it in words
  bool passed() const noexcept { return failures.empty(); }
};

namespace detail {
CheckReport check(const std::function<void()>& f, const CheckOptions& options);
}  // namespace detail

// Checks f, which makes its channels, runs a network and leaves nothing behind, or which returns a
// process. Throws BadUse if f runs no network or does what cannot be checked, if a token cannot be
// read, and within a check.
template <class F>
CheckReport check(F&& f, const CheckOptions& options = {}) {
  static_assert(WEFT_CHECKED && !std::is_void_v<F>,
                "weft: a test that calls weft::check is compiled with -DWEFT_CHECKED=1, in all of "
                "its files, and links weft::checked");
  return detail::check(
      [&f] {
        if constexpr (Startable<std::remove_cvref_t<std::invoke_result_t<F&>>>)
          static_cast<void>(run(f()));
        else
          static_cast<void>(f());
      },
      options);
}

}  // namespace weft::inline WEFT_ABI
