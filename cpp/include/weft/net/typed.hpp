// Values of channels whose other end may be in Python (WIRE.md 17.6, 17.15).
//
//   weft::Channel<weft::Typed<long>> numbers;        w(7);  long n = r();  *r()
//   weft::Typed<std::map<std::string, std::vector<double>>>
//
// T is bool, an integer, a float, std::string, std::vector<std::byte> (Python's bytes), a list of
// those (std::vector, std::tuple, std::pair), a map from std::string, std::optional (None), or
// net::Any: whatever came. Objects, arrays of numpy, integers beyond 64 bits and maps with other
// keys are not taken.
//
// Invariants
//  1 What is written is checked as it is made, so that nothing fails in a step of the wire.
//  2 What comes and is no T is a value all the same: whoever looks at it is told, by BadUse, and
//    the session goes on (17.15). Bytes that are no CBOR of this kind are a fault (14.2).
#pragma once
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "../errors.hpp"
#include "../wire/cbor.hpp"
#include "../wire/value.hpp"

namespace weft::inline WEFT_ABI {

namespace net {
// Null, a boolean, a number, a text, bytes, a list or a map of those.
using Any = nlohmann::json;
}  // namespace net

namespace net::detail {

// How T stands for a plain value: `called`, for people; put() makes one; get() is false for another
// kind.
template <class T>
struct Plain;

template <>
struct Plain<Any> {
  static std::string called() { return "value"; }
  static Any put(const Any& v) { return v; }
  static bool get(const Any& j, Any& v) {
    v = j;
    return true;
  }
};
template <>
struct Plain<bool> {
  static std::string called() { return "boolean"; }
  static Any put(bool v) { return v; }
  static bool get(const Any& j, bool& v) {
    if (!j.is_boolean()) return false;
    v = j.get<bool>();
    return true;
  }
};
template <class T>
  requires std::is_integral_v<T>
struct Plain<T> {
  static std::string called() {
    return "integer of " + std::to_string(std::numeric_limits<T>::digits + std::is_signed_v<T>) +
           " bits";
  }
  static Any put(T v) { return v; }
  static bool get(const Any& j, T& v) {
    if (j.is_number_unsigned()) {
      const auto n = j.get<std::uint64_t>();
      v = static_cast<T>(n);
      return n <= static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    }
    if (!j.is_number_integer()) return false;
    const auto n = j.get<std::int64_t>();
    v = static_cast<T>(n);
    return std::is_signed_v<T> ? n >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
                                     n <= static_cast<std::int64_t>(std::numeric_limits<T>::max())
                               : n >= 0;
  }
};
template <class T>
  requires std::is_floating_point_v<T>
struct Plain<T> {
  static std::string called() { return "number"; }
  static Any put(T v) { return static_cast<double>(v); }
  static bool get(const Any& j, T& v) {
    if (!j.is_number()) return false;
    v = j.get<T>();
    return true;
  }
};
template <>
struct Plain<std::string> {
  static std::string called() { return "text"; }
  static Any put(const std::string& v) { return v; }
  static bool get(const Any& j, std::string& v) {
    if (!j.is_string()) return false;
    v = j.get_ref<const std::string&>();
    return true;
  }
};
template <>
struct Plain<std::vector<std::byte>> {
  static std::string called() { return "bytes"; }
  static Any put(const std::vector<std::byte>& v) {
    const auto* const at = reinterpret_cast<const std::uint8_t*>(v.data());
    return Any::binary(std::vector<std::uint8_t>(at, at + v.size()));
  }
  static bool get(const Any& j, std::vector<std::byte>& v) {
    if (!j.is_binary()) return false;
    const auto bytes = std::as_bytes(std::span(j.get_binary()));
    v.assign(bytes.begin(), bytes.end());
    return true;
  }
};
template <class T>
struct Plain<std::optional<T>> {
  static std::string called() { return Plain<T>::called() + " or null"; }
  static Any put(const std::optional<T>& v) { return v ? Plain<T>::put(*v) : Any(); }
  static bool get(const Any& j, std::optional<T>& v) {
    v.reset();
    return j.is_null() || Plain<T>::get(j, v.emplace());
  }
};
template <class T>
struct Plain<std::vector<T>> {
  static std::string called() { return "list, of " + Plain<T>::called(); }
  static Any put(const std::vector<T>& v) {
    Any list = Any::array();
    for (const auto& each : v) list.push_back(Plain<T>::put(each));
    return list;
  }
  static bool get(const Any& j, std::vector<T>& v) {
    if (!j.is_array()) return false;
    v.clear();
    for (const Any& each : j) {
      T made{};
      if (!Plain<T>::get(each, made)) return false;
      v.push_back(std::move(made));
    }
    return true;
  }
};
template <class T>
struct Plain<std::map<std::string, T>> {
  static std::string called() { return "map of text to " + Plain<T>::called(); }
  static Any put(const std::map<std::string, T>& v) {
    Any map = Any::object();
    for (const auto& [key, each] : v) map[key] = Plain<T>::put(each);
    return map;
  }
  static bool get(const Any& j, std::map<std::string, T>& v) {
    if (!j.is_object()) return false;
    v.clear();
    for (const auto& [key, each] : j.items())
      if (!Plain<T>::get(each, v[key])) return false;
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
  static Any put(const std::tuple<T...>& v) {
    Any list = Any::array();
    std::apply([&](const T&... each) { (list.push_back(Plain<T>::put(each)), ...); }, v);
    return list;
  }
  static bool get(const Any& j, std::tuple<T...>& v) {
    if (!j.is_array() || j.size() != sizeof...(T)) return false;
    std::size_t i = 0;
    return std::apply([&](T&... each) { return (Plain<T>::get(j[i++], each) && ...); }, v);
  }
};
template <class A, class B>
struct Plain<std::pair<A, B>> {
  static std::string called() { return Plain<std::tuple<A, B>>::called(); }
  static Any put(const std::pair<A, B>& v) { return Plain<std::tuple<A, B>>::put(v); }
  static bool get(const Any& j, std::pair<A, B>& v) {
    std::tuple<A, B> both;
    if (!Plain<std::tuple<A, B>>::get(j, both)) return false;
    v = {std::move(std::get<0>(both)), std::move(std::get<1>(both))};
    return true;
  }
};

inline std::string kind_of(const Any& j) {
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
  // Throws BadUse: a text that is no UTF-8, or what nests deeper than 64.
  Typed(T v) : value_(std::move(v)) {  // NOLINT(google-explicit-constructor): w(7)
    const auto made = net::Any::to_cbor(net::detail::Plain<T>::put(value_));
    const auto bytes = std::as_bytes(std::span(made));
    bytes_.assign(bytes.begin(), bytes.end());
    if (const char* why = wire::cbor_fault(bytes_, true))
      detail::bad_use(std::string("a typed value: ") + why + " cannot go to another machine");
  }
  // What came. Throws BadUse if that is no T.
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
    const auto* const at = reinterpret_cast<const std::uint8_t*>(in.data());
    const net::Any j = net::Any::from_cbor(at, at + in.size(), true, false);
    if (j.is_discarded())
      refused_ =
          "an object, an array of numpy, an integer beyond 64 bits, or a map whose keys are no "
          "texts";
    else if (!net::detail::Plain<T>::get(j, value_))
      refused_ = net::detail::kind_of(j);
  }

  T value_;
  wire::Buffer bytes_;
  std::string refused_;
};

namespace wire {
template <class T>
struct Value<Typed<T>> {
  static std::string type() { return "typed"; }
  static Bytes bytes(const Typed<T>& v) { return v.bytes_; }
  static void put(const Typed<T>& v, Buffer& out) { detail::put(out, v.bytes_); }
  static std::optional<Typed<T>> get(Bytes in) {
    if (cbor_fault(in, true)) return {};
    return Typed<T>(in, true);
  }
};
}  // namespace wire

}  // namespace weft::inline WEFT_ABI
