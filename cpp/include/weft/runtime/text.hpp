// Joins the parts of error messages and reports.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

using Parts = std::initializer_list<std::string_view>;

// Appends the parts to `to`.
inline void put(std::string& to, Parts parts) {
  for (const std::string_view part : parts) to.append(part);
}
inline std::string joined(Parts parts) {
  std::string s;
  put(s, parts);
  return s;
}

}  // namespace weft::inline WEFT_ABI::runtime
