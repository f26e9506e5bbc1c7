// Checks whether bytes are a value of a board's channel, in CBOR (RFC 8949, WIRE-LINKS.md 12.8):
// null, booleans, integers of any size, floats, text, bytes, arrays and maps of those, all of
// definite length. Typed values (17.15) may also contain objects: tag 27 of an array. This file
// only checks the bytes that a peer sends, and decodes nothing.
//
// Invariant: nothing is read outside the input, and no value may nest deeper than the limit.
#pragma once
#include "../runtime/text.hpp"
#include "frame.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {

class CborCheck {
 public:
  CborCheck(Bytes in, bool typed) noexcept : in_(in), typed_(typed) {}
  const char* whole() noexcept {
    if (item(0) && !in_.empty()) why_ = "more than one value";
    return why_;
  }

 private:
  bool bad(const char* why) noexcept { return why_ = why, false; }
  // Reads the head of an item: its major type and its argument.
  bool head(std::uint8_t& major, std::uint8_t& low, std::uint64_t& n) noexcept {
    if (in_.empty()) return bad("a value that is cut off");
    const auto b = std::to_integer<std::uint8_t>(in_[0]);
    major = b >> 5, low = b & 31;
    in_ = in_.subspan(1);
    n = low;
    if (low < 24) return true;
    if (low > 27) return bad("a value of indefinite length, or of a kind that nobody knows");
    const std::size_t size = std::size_t{1} << (low - 24);
    if (in_.size() < size) return bad("a value that is cut off");
    n = 0;
    for (std::size_t i = 0; i < size; ++i) n = n << 8 | std::to_integer<std::uint64_t>(in_[i]);
    in_ = in_.subspan(size);
    return true;
  }
  bool item(int depth, bool key = false) noexcept {
    std::uint8_t major, low;
    std::uint64_t n;
    if (depth > (typed_ ? 64 : 16))
      return bad(typed_ ? "a value that nests deeper than 64"
                        : "a value that nests deeper than 16");
    if (!head(major, low, n)) return false;
    switch (major) {
      case 0:
      case 1: return true;
      case 2:
      case 3:
        if (n > in_.size()) return bad("a value that is cut off");
        if (major == 3 && !utf8(in_.first(static_cast<std::size_t>(n))))
          return bad("a text that is not UTF-8");
        in_ = in_.subspan(static_cast<std::size_t>(n));
        return true;
      case 4:
      case 5:
        if (key) return bad("an array or a map as a key");
        // Each item has at least one byte.
        if (n > in_.size()) return bad("a value that is cut off");
        for (std::uint64_t i = 0; i < n; ++i)
          if ((major == 5 && !item(depth + 1, true)) || !item(depth + 1)) return false;
        return true;
      case 6:
        if (typed_ && n == 27) {
          if (key) return bad("an object as a key");
          if (in_.empty() || std::to_integer<std::uint8_t>(in_[0]) >> 5 != 4)
            return bad("an object that is not an array");
          return item(depth + 1);
        }
        if ((n != 2 && n != 3) || in_.empty() || std::to_integer<std::uint8_t>(in_[0]) >> 5 != 2)
          return bad("a tag that is not a large integer's");
        return item(depth + 1);
      default: break;
    }
    return (low >= 20 && low <= 22) || low >= 25 ||
           bad("a value that is neither null, a boolean nor a float");
  }
  static bool utf8(Bytes in) noexcept {
    std::string_view text(reinterpret_cast<const char*>(in.data()), in.size());
    while (!text.empty()) {
      const std::size_t n = runtime::utf8_size(text);
      if (n == 0) return false;
      text.remove_prefix(n);
    }
    return true;
  }

  Bytes in_;
  const bool typed_;
  const char* why_ = nullptr;
};

}  // namespace detail

// Checks that `in` is one whole value. Returns null, or a text that says what is wrong with it.
inline const char* cbor_fault(Bytes in, bool typed = false) noexcept {
  return detail::CborCheck(in, typed).whole();
}

}  // namespace weft::inline WEFT_ABI::wire
