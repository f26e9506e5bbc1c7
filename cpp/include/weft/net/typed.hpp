// Values of channels whose other end may be in Python (WIRE-NETWORKS.md 17.6, 17.15).
//
//   weft::Channel<weft::Typed<long>> numbers;        w(7);  long n = r();  *r()
//   weft::Typed<std::map<std::string, std::vector<double>>>
//
// T is bool, an integer, a float, std::string, std::vector<std::byte> (Python's bytes), a list of
// such types (std::vector, std::tuple, std::pair), a map from std::string, std::optional (None),
// net::Any, which holds any value, or net::Array of numbers, an array of numpy. Objects, integers
// beyond 64 bits and maps with other keys are not accepted; Any does not accept arrays. A tuple of
// Python's is read as a list, and a bytearray as bytes; Python's other types, such as sets and
// dates, are objects.
//
// Invariants
//  1 A value is checked when it is made, so that nothing fails in a step of the wire.
//  2 A received value that is not a T does not end the session: the program that reads it receives
//    BadUse (17.15). Bytes that are not CBOR of this form are a fault of the session (14.2).
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "../errors.hpp"
#include "../wire/cbor.hpp"
#include "../wire/value.hpp"

namespace weft::inline WEFT_ABI {

namespace net {
// Any holds null, a boolean, a number, a text, bytes, or a list or a map of such values.
using Any = nlohmann::json;

// An array of numpy. Its values are in C order: the last index varies fastest. T is bool, an
// integer, a float, a double, or a std::complex of float or double.
template <class T>
struct Array {
  std::vector<std::size_t> shape{0};
  std::vector<T> values = {};

  Array() = default;
  // Makes an array. If the number of values is not the one that the shape requires, the array
  // cannot be sent (BadUse).
  Array(std::vector<std::size_t> s, std::vector<T> v) : shape(std::move(s)), values(std::move(v)) {}
  // Makes an array of one dimension.
  explicit Array(std::vector<T> v) : shape{v.size()}, values(std::move(v)) {}
};
}  // namespace net

namespace net::detail {

// --- CBOR ----------------------------------------------------------------------------------------

// The major types of RFC 8949, and the tag of objects.
enum Major : std::uint8_t { kNumber, kNegative, kBytes, kText, kList, kMap, kTag, kSimple };
inline constexpr std::uint64_t kObject = 27;

inline void put_head(wire::Buffer& out, Major major, std::uint64_t n) {
  const unsigned more = n < 24 ? 0 : n <= 0xFF ? 1 : n <= 0xFFFF ? 2 : n <= 0xFFFFFFFF ? 4 : 8;
  const unsigned low = more == 0 ? static_cast<unsigned>(n) : 23 + std::bit_width(more);
  out.push_back(static_cast<std::byte>(major << 5 | low));
  for (unsigned i = more; i-- > 0;) out.push_back(static_cast<std::byte>(n >> (8 * i)));
}
inline void put_text(wire::Buffer& out, std::string_view text) {
  put_head(out, kText, text.size());
  wire::detail::put(out, std::as_bytes(std::span(text)));
}

// Reads plain values from bytes that cbor_fault() has checked.
class CborReader {
 public:
  explicit CborReader(wire::Bytes in) : in_(in) {}
  struct Head {
    Major major;
    std::uint8_t low;
    std::uint64_t n;
    bool is(Major m) const noexcept { return major == m; }
    bool null() const noexcept { return major == kSimple && low == 22; }
    bool boolean() const noexcept { return major == kSimple && (low == 20 || low == 21); }
  };
  Head next() const noexcept { return CborReader(*this).head(); }
  Head head() noexcept {
    const auto b = std::to_integer<std::uint8_t>(in_[0]);
    Head h{static_cast<Major>(b >> 5), static_cast<std::uint8_t>(b & 31), b & 31u};
    in_ = in_.subspan(1);
    if (h.low < 24) return h;
    h.n = 0;
    for (const std::byte each : bytes(std::uint64_t{1} << (h.low - 24)))
      h.n = h.n << 8 | std::to_integer<std::uint64_t>(each);
    return h;
  }
  wire::Bytes bytes(std::uint64_t n) noexcept {
    const wire::Bytes taken = in_.first(static_cast<std::size_t>(n));
    in_ = in_.subspan(taken.size());
    return taken;
  }
  // Reads one whole item.
  wire::Bytes item() noexcept {
    const wire::Bytes all = in_;
    pass();
    return all.first(all.size() - in_.size());
  }
  bool text(std::string_view is) noexcept {
    const Head h = head();
    if (!h.is(kText) || h.n != is.size()) return false;
    const wire::Bytes b = bytes(h.n);
    return std::equal(b.begin(), b.end(), std::as_bytes(std::span(is)).begin());
  }
  // Reads the head of a list, or of a tuple. Returns the number of its items; nullopt for any other
  // item.
  std::optional<std::uint64_t> items() noexcept {
    const Head h = head();
    if (h.is(kList)) return h.n;
    if (!h.is(kTag) || h.n != kObject) return {};
    const Head content = head();  // cbor_fault() has checked that the item is a list
    if (content.n == 0 || !text("tuple")) return {};
    return content.n - 1;
  }
  // Reads bytes, or a bytearray; returns nullopt for any other item.
  std::optional<wire::Bytes> octets() noexcept {
    Head h = head();
    if (h.is(kTag) && h.n == kObject) {
      if (head().n != 2 || !text("bytearray")) return {};
      h = head();
    }
    if (!h.is(kBytes)) return {};
    return bytes(h.n);
  }
  // Copies one item: a tuple as a list, and a bytearray as bytes. Returns false if the item has
  // another object in it.
  bool copy_plain(wire::Buffer& out) {
    const wire::Bytes from = in_;
    if (next().is(kTag) && next().n == kObject) {
      if (const auto b = CborReader(*this).octets()) {
        put_head(out, kBytes, b->size());
        wire::detail::put(out, *b);
        return pass(), true;
      }
      const auto n = items();
      if (!n) return false;
      put_head(out, kList, *n);
      return copy_plain(out, *n);
    }
    const Head h = head();
    if (h.is(kBytes) || h.is(kText)) bytes(h.n);
    wire::detail::put(out, from.first(from.size() - in_.size()));
    return copy_plain(out, inside(h));
  }

 private:
  bool copy_plain(wire::Buffer& out, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i)
      if (!copy_plain(out)) return false;
    return true;
  }
  static std::uint64_t inside(const Head& h) noexcept {
    return h.is(kList) ? h.n : h.is(kMap) ? 2 * h.n : h.is(kTag) ? 1 : 0;
  }
  void pass() noexcept {
    const Head h = head();
    if (h.is(kBytes) || h.is(kText)) bytes(h.n);
    const std::uint64_t n = inside(h);
    for (std::uint64_t i = 0; i < n; ++i) pass();
  }
  wire::Bytes in_;
};

// --- arrays of numpy -----------------------------------------------------------------------------

template <class T>
// The size in bytes of the parts of a T that have a byte order.
inline constexpr std::size_t kPartSize = sizeof(T);
template <class T>
inline constexpr std::size_t kPartSize<std::complex<T>> = sizeof(T);
template <class T>
inline constexpr char kLetter = std::is_same_v<T, bool>       ? 'b'
                                : std::is_floating_point_v<T> ? 'f'
                                : std::is_signed_v<T>         ? 'i'
                                                              : 'u';
template <class T>
inline constexpr char kLetter<std::complex<T>> = 'c';
template <class T>
concept Element = (std::is_arithmetic_v<T> && sizeof(T) <= 8) ||
                  std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
// Returns the name that numpy gives T in this program. It begins with "|" if T has no byte order.
template <Element T>
std::string dtype() {
  const char order = kPartSize<T> == 1                            ? '|'
                     : std::endian::native == std::endian::little ? '<'
                                                                  : '>';
  return std::string{order, kLetter<T>} + std::to_string(sizeof(T));
}

// Returns how many values an array of that shape has; nullopt if that number is more than memory
// can hold.
inline std::optional<std::size_t> product(const std::vector<std::size_t>& shape) {
  std::size_t all = 1;
  for (const std::size_t n : shape) {
    if (n != 0 && all > std::numeric_limits<std::size_t>::max() / 16 / n) return {};
    all *= n;
  }
  return all;
}

template <Element T>
void put_array(const std::vector<std::size_t>& shape, const std::vector<T>& values,
               wire::Buffer& out) {
  if (product(shape) != values.size())
    weft::detail::bad_use("an array of " + std::to_string(values.size()) +
                          " values does not have the shape " + Any(shape).dump());
  put_head(out, kTag, kObject);
  put_head(out, kList, 4);
  put_text(out, "numpy");
  put_text(out, dtype<T>());
  put_head(out, kList, shape.size());
  for (const std::size_t n : shape) put_head(out, kNumber, n);
  put_head(out, kBytes, values.size() * sizeof(T));
  if constexpr (std::is_same_v<T, bool>)
    for (const bool each : values) out.push_back(static_cast<std::byte>(each));
  else
    wire::detail::put(out, std::as_bytes(std::span(values)));
}

// Reads an array of T. Returns false if the item is not such an array. Sets `single` if the item is
// not an array but a single value of numpy's.
template <Element T>
bool get_array(CborReader& in, std::vector<std::size_t>& shape, std::vector<T>& values,
               bool& single) {
  const CborReader::Head tag = in.head();
  if (!tag.is(kTag) || tag.n != kObject) return false;
  const CborReader::Head content = in.head();  // cbor_fault() has checked that the item is a list
  if (content.n != 4 || !in.text("numpy")) return false;
  const CborReader::Head kind = in.head();
  if (!kind.is(kText)) return false;
  const wire::Bytes name = in.bytes(kind.n);
  const std::string is(reinterpret_cast<const char*>(name.data()), name.size());
  const std::string own = dtype<T>();
  if (is.empty() || is.substr(1) != own.substr(1)) return false;
  const bool little = is[0] == '<', ordered = kPartSize<T> == 1 || little || is[0] == '>';
  if (!ordered || (kPartSize<T> == 1 && !little && is[0] != '>' && is[0] != '|')) return false;
  const CborReader::Head lengths = in.head();
  single = lengths.null();
  if (!single && !lengths.is(kList)) return false;
  shape.clear();
  for (std::uint64_t i = 0; !single && i < lengths.n; ++i) {
    const CborReader::Head n = in.head();
    if (!n.is(kNumber) || n.n > std::numeric_limits<std::size_t>::max()) return false;
    shape.push_back(static_cast<std::size_t>(n.n));
  }
  const std::optional<std::size_t> n = product(shape);
  const CborReader::Head data = in.head();
  if (!n || !data.is(kBytes) || data.n != *n * sizeof(T)) return false;
  const wire::Bytes bytes = in.bytes(data.n);
  if constexpr (std::is_same_v<T, bool>) {
    values.clear();
    for (const std::byte each : bytes) {
      if (each > std::byte{1}) return false;
      values.push_back(each == std::byte{1});
    }
  } else {
    values.resize(*n);
    const auto to = std::as_writable_bytes(std::span(values));
    std::copy(bytes.begin(), bytes.end(), to.begin());
    if (kPartSize < T >> 1 && little != (std::endian::native == std::endian::little))
      for (std::size_t i = 0; i < to.size(); i += kPartSize<T>)
        std::reverse(to.begin() + static_cast<std::ptrdiff_t>(i),
                     to.begin() + static_cast<std::ptrdiff_t>(i + kPartSize<T>));
  }
  return true;
}
// Reads a single number of numpy's (such as the result of `a.mean()`).
template <Element T>
bool get_single(CborReader& in, T& v) {
  std::vector<std::size_t> shape;
  std::vector<T> values;
  bool single = false;
  if (!get_array(in, shape, values, single) || !single) return false;
  v = values[0];
  return true;
}

// --- plain values --------------------------------------------------------------------------------

// How a T is encoded as a plain value. `called` is the type's name for people; put() writes a
// value; get() returns false for a value of another type.
template <class T>
struct Plain;

template <>
struct Plain<Any> {
  static std::string called() { return "value"; }
  static void put(const Any& v, wire::Buffer& out) {
    const auto made = Any::to_cbor(v);
    wire::detail::put(out, std::as_bytes(std::span(made)));
  }
  static bool get(CborReader& in, Any& v) {
    CborReader again(in);
    if (parsed(in.item(), v)) return true;
    wire::Buffer plain;
    return again.copy_plain(plain) && parsed(plain, v);
  }

 private:
  static bool parsed(wire::Bytes item, Any& v) {
    const auto* const at = reinterpret_cast<const std::uint8_t*>(item.data());
    v = Any::from_cbor(at, at + item.size(), true, false);
    return !v.is_discarded();
  }
};
template <>
struct Plain<bool> {
  static std::string called() { return "boolean"; }
  static void put(bool v, wire::Buffer& out) { put_head(out, kSimple, v ? 21 : 20); }
  static bool get(CborReader& in, bool& v) {
    if (in.next().is(kTag)) return get_single(in, v);
    const CborReader::Head h = in.head();
    v = h.low == 21;
    return h.boolean();
  }
};
template <class T>
  requires std::is_integral_v<T>
struct Plain<T> {
  static std::string called() {
    return "integer of " + std::to_string(std::numeric_limits<T>::digits + std::is_signed_v<T>) +
           " bits";
  }
  static void put(T v, wire::Buffer& out) {
    if (v < T{0})
      put_head(out, kNegative, static_cast<std::uint64_t>(-1 - static_cast<std::int64_t>(v)));
    else
      put_head(out, kNumber, static_cast<std::uint64_t>(v));
  }
  static bool get(CborReader& in, T& v) {
    if (in.next().is(kTag)) return get_single(in, v);
    const CborReader::Head h = in.head();
    if (h.n > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return false;
    v = static_cast<T>(h.is(kNegative) ? -1 - static_cast<std::int64_t>(h.n)
                                       : static_cast<std::int64_t>(h.n));
    return h.is(kNumber) || (h.is(kNegative) && std::is_signed_v<T>);
  }
};
template <class T>
  requires std::is_floating_point_v<T>
struct Plain<T> {
  static std::string called() { return "number"; }
  static void put(T v, wire::Buffer& out) {
    out.push_back(static_cast<std::byte>(kSimple << 5 | 27));
    const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(v));
    for (unsigned i = 8; i-- > 0;) out.push_back(static_cast<std::byte>(bits >> (8 * i)));
  }
  static bool get(CborReader& in, T& v) {
    if (in.next().is(kTag)) {
      if constexpr (Element<T>) return get_single(in, v);
      return false;
    }
    const CborReader::Head h = in.head();
    if (h.is(kNumber)) return v = static_cast<T>(h.n), true;
    if (h.is(kNegative)) return v = -1 - static_cast<T>(h.n), true;
    if (!h.is(kSimple) || h.low < 25) return false;
    v = static_cast<T>(h.low == 27   ? std::bit_cast<double>(h.n)
                       : h.low == 26 ? std::bit_cast<float>(static_cast<std::uint32_t>(h.n))
                                     : half(static_cast<unsigned>(h.n)));
    return true;
  }

 private:
  static double half(unsigned bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31),
              fraction = static_cast<int>(bits & 1023);
    const double size = exponent == 0   ? std::ldexp(fraction, -24)
                        : exponent < 31 ? std::ldexp(fraction + 1024, exponent - 25)
                        : fraction == 0 ? std::numeric_limits<double>::infinity()
                                        : std::numeric_limits<double>::quiet_NaN();
    return bits & 0x8000 ? -size : size;
  }
};
template <>
struct Plain<std::string> {
  static std::string called() { return "text"; }
  static void put(const std::string& v, wire::Buffer& out) { put_text(out, v); }
  static bool get(CborReader& in, std::string& v) {
    const CborReader::Head h = in.head();
    if (!h.is(kText)) return false;
    const wire::Bytes b = in.bytes(h.n);
    v.assign(reinterpret_cast<const char*>(b.data()), b.size());
    return true;
  }
};
template <>
struct Plain<std::vector<std::byte>> {
  static std::string called() { return "bytes"; }
  static void put(const std::vector<std::byte>& v, wire::Buffer& out) {
    put_head(out, kBytes, v.size());
    wire::detail::put(out, wire::Bytes(v));
  }
  static bool get(CborReader& in, std::vector<std::byte>& v) {
    const auto b = in.octets();
    if (!b) return false;
    v.assign(b->begin(), b->end());
    return true;
  }
};
template <class T>
struct Plain<std::optional<T>> {
  static std::string called() { return Plain<T>::called() + " or null"; }
  static void put(const std::optional<T>& v, wire::Buffer& out) {
    v ? Plain<T>::put(*v, out) : put_head(out, kSimple, 22);
  }
  static bool get(CborReader& in, std::optional<T>& v) {
    v.reset();
    if (!in.next().null()) return Plain<T>::get(in, v.emplace());
    in.head();
    return true;
  }
};
template <Element T>
struct Plain<Array<T>> {
  static std::string called() { return "array of numpy, of " + dtype<T>(); }
  static void put(const Array<T>& v, wire::Buffer& out) { put_array(v.shape, v.values, out); }
  static bool get(CborReader& in, Array<T>& v) {
    bool single = false;
    return get_array(in, v.shape, v.values, single) && !single;
  }
};
template <class T>
struct Plain<std::vector<T>> {
  static std::string called() { return "list, of " + Plain<T>::called(); }
  static void put(const std::vector<T>& v, wire::Buffer& out) {
    put_head(out, kList, v.size());
    for (const auto& each : v) Plain<T>::put(each, out);
  }
  static bool get(CborReader& in, std::vector<T>& v) {
    const CborReader before(in);
    const auto n = in.items();
    if (!n) {
      if constexpr (Element<T>) {  // An array of one dimension is a list of its values.
        in = before;
        std::vector<std::size_t> shape;
        bool single = false;
        return get_array(in, shape, v, single) && !single && shape.size() == 1;
      }
      return false;
    }
    v.clear();
    for (std::uint64_t i = 0; i < *n; ++i) {
      T made{};
      if (!Plain<T>::get(in, made)) return false;
      v.push_back(std::move(made));
    }
    return true;
  }
};
template <class T>
struct Plain<std::map<std::string, T>> {
  static std::string called() { return "map of text to " + Plain<T>::called(); }
  static void put(const std::map<std::string, T>& v, wire::Buffer& out) {
    put_head(out, kMap, v.size());
    for (const auto& [key, each] : v) put_text(out, key), Plain<T>::put(each, out);
  }
  static bool get(CborReader& in, std::map<std::string, T>& v) {
    const CborReader::Head h = in.head();
    if (!h.is(kMap)) return false;
    v.clear();
    for (std::uint64_t i = 0; i < h.n; ++i) {
      std::string key;
      if (!Plain<std::string>::get(in, key) || !Plain<T>::get(in, v[key])) return false;
    }
    return true;
  }
};
template <class... T>
struct Plain<std::tuple<T...>> {
  static std::string called() {
    std::string all;
    ((all += (all.empty() ? "list of " : ", ") + Plain<T>::called()), ...);
    return all;
  }
  static void put(const std::tuple<T...>& v, wire::Buffer& out) {
    put_head(out, kList, sizeof...(T));
    std::apply([&](const T&... each) { (Plain<T>::put(each, out), ...); }, v);
  }
  static bool get(CborReader& in, std::tuple<T...>& v) {
    if (in.items() != sizeof...(T)) return false;
    return std::apply([&](T&... each) { return (Plain<T>::get(in, each) && ...); }, v);
  }
};
template <class A, class B>
struct Plain<std::pair<A, B>> {
  static std::string called() { return Plain<std::tuple<A, B>>::called(); }
  static void put(const std::pair<A, B>& v, wire::Buffer& out) {
    Plain<std::tuple<A, B>>::put(v, out);
  }
  static bool get(CborReader& in, std::pair<A, B>& v) {
    std::tuple<A, B> both;
    if (!Plain<std::tuple<A, B>>::get(in, both)) return false;
    v = {std::move(std::get<0>(both)), std::move(std::get<1>(both))};
    return true;
  }
};

// Returns the type of a received value, in words for messages.
inline std::string kind_of(wire::Bytes in) {
  CborReader array(in);
  if (array.next().is(kTag) && array.head().n == kObject && array.head().n == 4 &&
      array.text("numpy") && array.next().is(kText)) {
    std::string dtype, lengths;
    Plain<std::string>::get(array, dtype);
    Any shape;
    if (!Plain<Any>::get(array, shape)) shape = Any();
    return "an array of numpy, of " + dtype.substr(0, 20) +
           (shape.is_array() ? " and shape " + shape.dump().substr(0, 60) : ", a single one");
  }
  if (CborReader of(in);
      of.next().is(kTag) && of.head().n == kObject && of.head().n > 0 && of.next().is(kText)) {
    std::string name;
    Plain<std::string>::get(of, name);
    // The names of Python's own types have letters only. Other names are those of classes.
    if (name != "tuple" && name.size() < 20 && !name.empty() &&
        std::all_of(name.begin(), name.end(),
                    [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }))
      return "a Python object of type " + name;
  }
  Any j;
  CborReader all(in);
  if (!Plain<Any>::get(all, j))
    return "an object, an array of numpy, an integer beyond 64 bits, or a map whose keys are not "
           "texts";
  if (j.is_number_float()) return "a number with a fraction";
  if (j.is_number()) return "the integer " + j.dump();
  if (j.is_string()) return "a text";
  if (j.is_binary()) return "bytes";
  if (j.is_array()) return "a list of " + std::to_string(j.size());
  return j.is_object() ? "a map" : j.is_null() ? "null" : "a boolean";
}

}  // namespace net::detail

template <class T>
class Typed {
 public:
  Typed() : Typed(T{}) {}
  // Makes a value. Throws BadUse for a text that is not UTF-8, or a value that is nested more than
  // 64 levels deep.
  Typed(T v) : value_(std::move(v)) {  // NOLINT(google-explicit-constructor): w(7)
    net::detail::Plain<T>::put(value_, bytes_);
    if (const char* why = wire::cbor_fault(bytes_, true))
      detail::bad_use(std::string("a typed value: ") + why + " cannot go to another machine");
  }
  // Returns the value. Throws BadUse if the value that was received is not a T.
  const T& value() const {
    if (!refused_.empty())
      detail::bad_use(refused_ +
                      " came, where this program takes: " + net::detail::Plain<T>::called());
    return value_;
  }
  const T& operator*() const { return value(); }
  const T* operator->() const { return &value(); }
  operator const T&() const { return value(); }  // NOLINT(google-explicit-constructor)

 private:
  friend struct wire::Value<Typed>;
  explicit Typed(wire::Bytes in, bool) : value_{}, bytes_(in.begin(), in.end()) {
    net::detail::CborReader all(in);
    if (!net::detail::Plain<T>::get(all, value_)) refused_ = net::detail::kind_of(in);
  }

  T value_;
  wire::Buffer bytes_;
  std::string refused_;
};

namespace wire {
// The type's name in a GIVE. "typed" was the name for programs whose tuples arrived as lists
// (17.6).
inline constexpr const char* kValuesType = "typed2";
template <class T>
struct Value<Typed<T>> {
  static std::string type() { return kValuesType; }
  static Bytes bytes(const Typed<T>& v) { return v.bytes_; }
  static void put(const Typed<T>& v, Buffer& out) { detail::put(out, v.bytes_); }
  static std::optional<Typed<T>> get(Bytes in) {
    if (cbor_fault(in, true)) return {};
    return Typed<T>(in, true);
  }
};
}  // namespace wire

}  // namespace weft::inline WEFT_ABI
