// Small messages in JSON (RFC 8259), for the door: a writer, and a reader of one flat object.
//
// The library itself depends on no other library (only net.hpp uses nlohmann/json), so the door has
// JSON code of its own.
//
// Invariant: the reader reads nothing outside its text, and accepts no value that nests deeper than
// kDeepest.
#pragma once
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "text.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Writes JSON, and puts a comma before a value wherever one is needed.
class Json {
 public:
  std::string text;

  Json& open(char c) { return before(), text += c, first_ = true, *this; }
  Json& close(char c) { return text += c, first_ = false, *this; }
  Json& key(std::string_view k) {
    string(k);
    text += ':';
    first_ = true;
    return *this;
  }
  Json& string(std::string_view s) { return before(), put_json(text, s), *this; }
  Json& number(double x) {
    before();
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
    return *this;
  }
  Json& number(std::uint64_t x) { return word(std::to_string(x)); }
  Json& word(std::string_view w) { return before(), text += w, *this; }
  Json& truth(bool b) { return word(b ? "true" : "false"); }

 private:
  void before() {
    if (!std::exchange(first_, false)) text += ',';
  }
  bool first_ = true;
};

// A value of a request. JsonOther represents null, an array or an object; its content is not kept.
struct JsonOther {};
using JsonValue = std::variant<JsonOther, bool, double, std::int64_t, std::string>;
using JsonObject = std::map<std::string, JsonValue, std::less<>>;

// Reads one JSON text, which must be an object.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : at_(text) {}
  // Reads the text, and keeps the members of the object in `into`. Returns false if the text is not
  // JSON. `object` says whether the text begins as an object.
  bool object_of(JsonObject& into, bool& object) {
    space();
    object = !at_.empty() && at_[0] == '{';
    JsonValue ignored;
    const bool well = object ? members(0, &into) : value(0, ignored);
    space();
    return well && at_.empty();
  }

 private:
  static constexpr int kDeepest = 100;

  void space() {
    while (!at_.empty() && std::string_view(" \t\r\n").find(at_[0]) != at_.npos)
      at_.remove_prefix(1);
  }
  bool take(char c) {
    space();
    if (at_.empty() || at_[0] != c) return false;
    at_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    if (at_.substr(0, w.size()) != w) return false;
    at_.remove_prefix(w.size());
    return true;
  }
  bool members(int depth, JsonObject* into) {
    if (depth > kDeepest || !take('{')) return false;
    if (take('}')) return true;
    do {
      space();
      std::string key;
      JsonValue v;
      if (!string(key) || !take(':') || !value(depth, v)) return false;
      if (into) (*into)[key] = std::move(v);
    } while (take(','));
    return take('}');
  }
  bool items(int depth) {
    if (depth > kDeepest || !take('[')) return false;
    if (take(']')) return true;
    do {
      JsonValue v;
      if (!value(depth, v)) return false;
    } while (take(','));
    return take(']');
  }
  bool value(int depth, JsonValue& v) {
    space();
    if (at_.empty()) return false;
    switch (at_[0]) {
      case '{': return v = JsonOther(), members(depth + 1, nullptr);
      case '[': return v = JsonOther(), items(depth + 1);
      case '"': return string(v.emplace<std::string>());
      case 't': return v = true, word("true");
      case 'f': return v = false, word("false");
      case 'n': return v = JsonOther(), word("null");
      default: return number(v);
    }
  }
  std::size_t digits(std::size_t from) const {
    std::size_t n = from;
    while (n < at_.size() && at_[n] >= '0' && at_[n] <= '9') ++n;
    return n - from;
  }
  bool number(JsonValue& v) {
    std::size_t n = at_[0] == '-';
    const std::size_t whole = digits(n);
    if (whole == 0 || (whole > 1 && at_[n] == '0')) return false;
    n += whole;
    bool integer = true;
    if (n < at_.size() && at_[n] == '.') {
      const std::size_t more = digits(n + 1);
      if (more == 0) return false;
      n += 1 + more;
      integer = false;
    }
    if (n < at_.size() && (at_[n] == 'e' || at_[n] == 'E')) {
      std::size_t sign = n + 1;
      if (sign < at_.size() && (at_[sign] == '+' || at_[sign] == '-')) ++sign;
      const std::size_t more = digits(sign);
      if (more == 0) return false;
      n = sign + more;
      integer = false;
    }
    const std::string text(at_.substr(0, n));
    at_.remove_prefix(n);
    std::int64_t i = 0;
    if (integer && std::from_chars(text.data(), text.data() + n, i).ec == std::errc())
      v = i;
    else
      v = std::strtod(text.c_str(), nullptr);
    return true;
  }
  static void put_utf8(std::string& s, std::uint32_t c) {
    if (c < 0x80) {
      s += static_cast<char>(c);
    } else if (c < 0x800) {
      s += static_cast<char>(0xC0 | c >> 6);
      s += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      s += static_cast<char>(0xE0 | c >> 12);
      s += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      s += static_cast<char>(0x80 | (c & 0x3F));
    } else {
      s += static_cast<char>(0xF0 | c >> 18);
      s += static_cast<char>(0x80 | (c >> 12 & 0x3F));
      s += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      s += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  bool four(std::uint32_t& c) {
    if (at_.size() < 4) return false;
    const auto r = std::from_chars(at_.data(), at_.data() + 4, c, 16);
    if (r.ec != std::errc() || r.ptr != at_.data() + 4) return false;
    at_.remove_prefix(4);
    return true;
  }
  bool escape(std::string& s) {
    static constexpr char marks[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (at_.empty()) return false;
    const char c = at_[0];
    at_.remove_prefix(1);
    if (c == 'u') {
      std::uint32_t high = 0, low = 0;
      if (!four(high)) return false;
      if (high >= 0xD800 && high < 0xDC00 && word("\\u")) {
        if (!four(low)) return false;
        if (low >= 0xDC00 && low < 0xE000)
          high = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        else
          high = 0xFFFD;
      }
      put_utf8(s, high >= 0xD800 && high < 0xE000 ? 0xFFFD : high);
      return true;
    }
    const char* const at = c ? std::strchr(marks, c) : nullptr;
    if (!at) return false;
    s += means[at - marks];
    return true;
  }
  bool string(std::string& s) {
    if (at_.empty() || at_[0] != '"') return false;
    at_.remove_prefix(1);
    while (!at_.empty()) {
      const char c = at_[0];
      if (c == '"') return at_.remove_prefix(1), true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\') {
        at_.remove_prefix(1);
        if (!escape(s)) return false;
        continue;
      }
      const std::size_t n = utf8_size(at_);
      if (n == 0) return false;
      s += at_.substr(0, n);
      at_.remove_prefix(n);
    }
    return false;
  }

  std::string_view at_;
};

}  // namespace weft::inline WEFT_ABI::runtime
