// The texts of errors and reports, put together in one place: a chain of operator+ is compiled anew
// wherever it stands.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

using Parts = std::initializer_list<std::string_view>;

// Adds the parts to `to`.
[[gnu::cold, gnu::noinline]] inline void put(std::string& to, Parts parts) {
  for (const std::string_view part : parts) to.append(part.data(), part.size());
}
[[gnu::cold, gnu::noinline]] inline std::string joined(Parts parts) {
  std::string s;
  put(s, parts);
  return s;
}
[[gnu::cold, gnu::noinline]] inline std::string digits(std::uint64_t n) {
  return std::to_string(n);
}

}  // namespace weft::inline WEFT_ABI::runtime
