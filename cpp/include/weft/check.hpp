// Runs a network of the program in every order (rule 17):
//
//   weft::CheckReport r = weft::check([] { weft::run(customer(…), clerk(…)); });
//   CHECK_MESSAGE(r.passed(), r.text);  // doctest; in GoogleTest EXPECT_TRUE(r.passed()) << r.text
//
// check() runs a function again and again, and decides each time which process continues, until an
// order fails or every order has been run. A test that includes this header is compiled with
// WEFT_CHECKED=1 and links weft::checked (cpp/docs/checking.md).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "blocks.hpp"

namespace weft::inline WEFT_ABI {

// How the search chooses its schedules:
//
//  automatic    reduced, which begins with the usual order, then walk, priorities and few in turn
//  reduced      one schedule stands for all that cannot differ from it
//  all          each schedule
//  walk         schedules at random
//  priorities   by random priorities that change a few times
//  few          all schedules with at most two deviations from the usual order
enum class Search : std::uint8_t { automatic, reduced, all, walk, priorities, few };

struct CheckOptions {
  Search search = Search::automatic;
  double seconds = 10;        // the longest time that the search can take
  std::size_t schedules = 0;  // the maximum number of schedules that are run; 0 means any number
  // whether a time can also be reached while a process could run (at most twice in a schedule)
  bool any_time = false;
  bool only_where_parked = false;  // whether the grain is `park` (rule 17.2)
  // whether to search for more failures after the first, one of each kind
  bool keep_going = false;
  std::uint64_t seed = 1;
  std::vector<std::string> replay = {};  // tokens of schedules that are run before the search
  std::string name = "the network";      // the name that the report shows
};

struct CheckFailure {
  std::string kind;          // "deadlock", "exception", "no end", "lost values", "not the same"
  std::string what;          // a short description of the failure
  std::string token;         // for CheckOptions::replay, which runs the schedule again
  std::string text;          // the schedule, one operation on each line, and notes on the failure
  std::size_t schedule = 0;  // the number of the schedule that failed; 0 if a token gave it
  std::size_t deviations = 0;
  // whether all schedules with fewer deviations were run, and none of them failed
  bool least = false;
};

struct CheckReport {
  std::vector<CheckFailure> failures;
  bool complete = false;      // whether every schedule was run or represented
  std::size_t schedules = 0;  // the number of schedules that the search ran
  // an estimate of the number of all schedules, without reduction; 0 if unknown
  double estimate = 0;
  std::string text;  // the whole report as text
  bool passed() const noexcept { return failures.empty(); }
};

namespace detail {
CheckReport check(const std::function<void()>& f, const CheckOptions& options);
}  // namespace detail

// Checks f, which makes its channels, runs a network and leaves nothing behind, or returns a
// process. Throws BadUse if f runs no network or does what cannot be checked, if a token cannot be
// read, or if check() is called within a check.
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
