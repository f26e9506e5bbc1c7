// The texts of errors and reports, put together in one place: a chain of operator+ is compiled anew
// wherever it stands.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

using Parts = std::initializer_list<std::string_view>;

// A string that is made, moved and ended by calls. Where texts are put together a std::string is
// inlined at each of these places, and once more on the way that an exception takes.
class Text final : public std::string {
 public:
  [[gnu::cold, gnu::noinline]] Text() noexcept {}
  [[gnu::cold, gnu::noinline]] Text(const char* s) : std::string(s) {}
  [[gnu::cold, gnu::noinline]] Text(const Text& o) : std::string(o) {}
  [[gnu::cold, gnu::noinline]] Text(Text&& o) noexcept : std::string(std::move(o)) {}
  [[gnu::cold, gnu::noinline]] ~Text() {}
  Text& operator=(const char* s) { return *this = Text(s); }
  [[gnu::cold, gnu::noinline]] Text& operator=(Text o) noexcept {
    static_cast<std::string&>(*this) = std::move(static_cast<std::string&>(o));
    return *this;
  }
};

// Adds the parts to `to`.
[[gnu::cold, gnu::noinline]] inline void put(std::string& to, Parts parts) {
  for (const std::string_view part : parts) to.append(part.data(), part.size());
}
[[gnu::cold, gnu::noinline]] inline Text joined(Parts parts) {
  Text s;
  put(s, parts);
  return s;
}
[[gnu::cold, gnu::noinline]] inline Text digits(std::uint64_t n) {
  char room[24];
  char* at = room + sizeof room;
  *--at = 0;
  do *--at = static_cast<char>('0' + n % 10);
  while ((n /= 10) != 0);
  return at;
}
[[gnu::cold, gnu::noinline]] inline void add(std::vector<std::string>& to, const std::string& s) {
  to.push_back(s);
}

}  // namespace weft::inline WEFT_ABI::runtime
