// Numbers and times as the caller gave them, so that a value that is out of range is detected (rule
// 11.2). An unsigned parameter would turn -1 into 4294967295, and a cast of a duration would
// overflow.
#pragma once
#include <cstdint>
#include <type_traits>

#include <chrono>
#include "config.hpp"

namespace weft::inline WEFT_ABI::detail {

[[noreturn]] void out_of_range(const char* what, std::int64_t given, std::int64_t least,
                               std::int64_t most);
[[noreturn]] void not_a_time();

// A whole number of any type. Numbers with a fraction do not compile.
class Count {
 public:
  template <class N>
    requires(std::is_convertible_v<N, std::int64_t> && !std::is_floating_point_v<N>)
  constexpr Count(N n) noexcept : given_(static_cast<std::int64_t>(n)) {
    if constexpr (std::is_unsigned_v<N> && sizeof(N) == sizeof(given_))
      if (n > static_cast<std::uint64_t>(INT64_MAX)) given_ = INT64_MAX;
  }
  // This overload exists only for its error message.
  template <class N>
    requires std::is_floating_point_v<N>
  constexpr Count(N) noexcept : given_(0) {
    static_assert(sizeof(N) == 0,
                  "weft: expected a whole number, and this type may have a fraction");
  }
  // Returns the number. Throws BadUse if it is less than `least` or greater than `most`.
  constexpr std::int64_t within(const char* what, std::int64_t least, std::int64_t most) const {
    if (given_ < least || given_ > most) [[unlikely]]
      out_of_range(what, given_, least, most);
    return given_;
  }
  constexpr std::uint32_t up_to_32_bits(const char* what, std::int64_t least = 0) const {
    return static_cast<std::uint32_t>(within(what, least, UINT32_MAX));
  }

 private:
  std::int64_t given_;
};
// Returns the strength of a poison, or an immunity (rules 4.1, 4.4). Throws BadUse if it is out of
// range.
inline std::uint8_t strength_of(Count c, const char* what, std::int64_t least = 1) {
  return static_cast<std::uint8_t>(c.within(what, least, UINT8_MAX));
}

// A span of time, of any unit, in ns. A span beyond the range of nanoseconds becomes the longest or
// the shortest possible span (rule 8.5). A span in a finer unit is rounded up, so that nothing is
// early. Throws BadUse if the span is not a number.
class Lasting {
 public:
  template <class Rep, class Period>
  constexpr Lasting(std::chrono::duration<Rep, Period> d) : ns_(in_ns(d)) {}
  constexpr operator std::chrono::nanoseconds() const noexcept {
    return std::chrono::nanoseconds(ns_);
  }
  constexpr std::int64_t count() const noexcept { return ns_; }

 private:
  template <class Rep, class Period>
  static constexpr std::int64_t in_ns(std::chrono::duration<Rep, Period> d) {
    using In = std::ratio_divide<Period, std::nano>;
    if constexpr (std::is_integral_v<Rep> && In::den == 1) {
      std::int64_t ns = 0;
      if (!__builtin_mul_overflow(d.count(), In::num, &ns)) return ns;
      return d.count() < 0 ? INT64_MIN : INT64_MAX;
    } else {
      const auto ns = static_cast<long double>(d.count()) * In::num / In::den;
      if (ns != ns) not_a_time();
      if (ns >= static_cast<long double>(INT64_MAX)) return INT64_MAX;
      if (ns <= static_cast<long double>(INT64_MIN)) return INT64_MIN;
      const auto whole = static_cast<std::int64_t>(ns);
      return static_cast<long double>(whole) < ns ? whole + 1 : whole;
    }
  }
  std::int64_t ns_;
};

}  // namespace weft::inline WEFT_ABI::detail
