// Functions for texts: they join the parts of error messages and reports, check UTF-8, and quote
// text for JSON.
#pragma once
#include <cstddef>
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

// Returns the number of bytes of the first character of `s`, which must not be empty; 0 if these
// bytes are not UTF-8 (Unicode 15, table 3-7).
inline std::size_t utf8_size(std::string_view s) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = byte(0);
  const std::size_t n = c < 0x80                ? 1
                        : c >= 0xC2 && c < 0xE0 ? 2
                        : c >= 0xE0 && c < 0xF0 ? 3
                        : c >= 0xF0 && c < 0xF5 ? 4
                                                : 0;
  if (n == 0 || n > s.size()) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if ((c == 0xE0 && byte(1) < 0xA0) || (c == 0xED && byte(1) > 0x9F) ||
      (c == 0xF0 && byte(1) < 0x90) || (c == 0xF4 && byte(1) > 0x8F))
    return 0;
  return n;
}

// Appends `s` to `to` as a string of JSON, with its quotes. Each byte that is not UTF-8 becomes the
// replacement character.
inline void put_json(std::string& to, std::string_view s) {
  to += '"';
  while (!s.empty()) {
    const std::size_t n = utf8_size(s);
    const auto c = static_cast<unsigned char>(s[0]);
    if (n == 0) {
      to += "\\ufffd";
    } else if (c < 0x20) {
      static constexpr char kDigits[] = "0123456789abcdef";
      put(to,
          {"\\u00", std::string_view(&kDigits[c >> 4], 1), std::string_view(&kDigits[c & 15], 1)});
    } else {
      if (c == '"' || c == '\\') to += '\\';
      to += s.substr(0, n);
    }
    s.remove_prefix(n ? n : 1);
  }
  to += '"';
}

}  // namespace weft::inline WEFT_ABI::runtime
