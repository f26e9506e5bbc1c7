// What passes between a component and Python: the errors that operations throw, and C++ values,
// which are converted to the values of component_abi.h and back. For each type, Codec contains the
// text by which component_abi.h describes the type, and functions that write and read its values.
//
// Invariant: nothing is read beyond the end of a block; to read a block that is too short throws
// BadUse.
#pragma once
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "component_abi.h"

namespace weft::native {

// --- what operations throw -----------------------------------------------------------------------

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// A channel has ended. A process from which this exception escapes has ended quietly (rules 3.5,
// 4.3), except for PeerDied.
class ChannelEnd : public Error {
 public:
  ChannelEnd(const char* what, weft_status s, std::uint32_t e) : Error(what), status(s), end(e) {}
  const weft_status status;
  const std::uint32_t end;  // the index of the end among those given to the process
};
class Retired final : public ChannelEnd {
 public:
  explicit Retired(std::uint32_t e) : ChannelEnd("the other side has retired", WEFT_RETIRED, e) {}
};
class Poisoned final : public ChannelEnd {
 public:
  explicit Poisoned(std::uint32_t e) : ChannelEnd("the channel was poisoned", WEFT_POISONED, e) {}
};
class PeerDied final : public ChannelEnd {
 public:
  explicit PeerDied(std::uint32_t e) : ChannelEnd("the other side died", WEFT_DIED, e) {}
};
class Cancelled final : public Error {
 public:
  Cancelled() : Error("the process is asked to end") {}
};
class BadUse final : public Error {
 public:
  using Error::Error;
};

namespace detail {

// The call of a process that runs on this thread. The run functions set it.
struct Running {
  const weft_api* api = nullptr;
  weft_process* process = nullptr;
};
inline thread_local Running running;

inline weft_place place(const char* file, int line) noexcept {
  return {file, static_cast<std::uint32_t>(line)};
}

[[noreturn]] inline void fail(weft_status s, std::uint32_t end) {
  switch (s) {
    case WEFT_RETIRED: throw Retired(end);
    case WEFT_POISONED: throw Poisoned(end);
    case WEFT_DIED: throw PeerDied(end);
    case WEFT_CANCELLED: throw Cancelled();
    default: throw BadUse(running.api->last_error(running.process));
  }
}
inline void check(weft_status s, std::uint32_t end) {
  if (s != WEFT_OK) [[unlikely]]
    fail(s, end);
}

// --- values --------------------------------------------------------------------------------------

// Owns a block until it is given away, and otherwise releases it.
class Block {
 public:
  Block() = default;
  explicit Block(const weft_value& v) noexcept : value(v) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (value.block) running.api->release(value.block);
  }
  weft_value value{};
};

// A block that is being written, and the blocks of arrays that go with it.
class Out {
 public:
  Out() = default;
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() {
    for (void* p : parts_) running.api->release(p);
  }
  void append(const char* p, std::size_t n) { bytes.append(p, n); }
  void push_back(char c) { bytes.push_back(c); }
  void part(const weft_value& array) {  // takes ownership of the array
    parts_.reserve(parts_.size() + 1);
    if (array.block) parts_.push_back(array.block);
    const std::uint64_t both[] = {array.bits, reinterpret_cast<std::uintptr_t>(array.block)};
    append(reinterpret_cast<const char*>(both), sizeof both);
  }
  void hand_over(void* block) noexcept {
    for (; !parts_.empty(); parts_.pop_back()) running.api->keep(block, parts_.back());
  }
  std::string bytes;

 private:
  std::vector<void*> parts_;
};
// Reads a block, and never beyond its end: to read a block that is too short throws BadUse.
class In {
 public:
  In(void* block, std::size_t size) noexcept
      : block_(block), at_(static_cast<const char*>(block)), left_(size) {}
  const char* take(std::size_t n) {
    if (n > left_)
      throw BadUse(
          "a malformed value was received: its block is too short. Are the component and the "
          "program built with the same version of Weft?");
    const char* const p = at_;
    at_ += n;
    left_ -= n;
    return p;
  }
  std::size_t count() {
    std::uint64_t n;
    std::memcpy(&n, take(8), 8);
    return static_cast<std::size_t>(n);
  }
  weft_value part() {
    const std::uint64_t bits = count();
    void* const block = reinterpret_cast<void*>(static_cast<std::uintptr_t>(count()));
    if (block) running.api->take(block_, block);
    return {bits, block};
  }
  std::size_t left() const noexcept { return left_; }

 private:
  void* block_;
  const char* at_;
  std::size_t left_;
};
inline void put_count(Out& to, std::size_t n) {
  const std::uint64_t c = n;
  to.append(reinterpret_cast<const char*>(&c), 8);
}

template <class T>
// A Codec has name(), put() and get(). For a type that fits into `bits` it also has kInline, bits()
// and of().
struct Codec;

template <class T>
concept Inline = requires {
  requires Codec<T>::kInline;
};
template <class T>
concept Crosses = requires {
  Codec<T>::name();
};

// Whether a T contains arrays. If so, a T is moved, and never copied.
template <class T>
inline constexpr bool kParts = false;

template <class T, std::size_t N, char C>
struct Scalar {
  static constexpr bool kInline = true;
  static std::string name() { return std::string(1, C); }
};
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8)
struct Codec<T> : Scalar<T, 8, 'i'> {
  static std::uint64_t bits(T v) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8)
      if (v > static_cast<T>(INT64_MAX))
        throw BadUse("an unsigned integer beyond 2**63 - 1: channels carry int64");
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
  }
  static T of(std::uint64_t b) {
    const auto v = static_cast<std::int64_t>(b);
    if constexpr (sizeof(T) < 8 || std::is_unsigned_v<T>) {
      bool fits = static_cast<std::int64_t>(static_cast<T>(v)) == v;
      if constexpr (std::is_unsigned_v<T>) fits = fits && v >= 0;
      if (!fits)
        throw BadUse("the integer " + std::to_string(v) +
                     " does not fit into the C++ type of the process, of " +
                     std::to_string(8 * sizeof(T)) +
                     (std::is_unsigned_v<T> ? " bits, unsigned" : " bits"));
    }
    return static_cast<T>(v);
  }
  static void put(Out& to, T v) { put_count(to, static_cast<std::size_t>(bits(v))); }
  static T get(In& from) { return of(from.count()); }
};
template <class T>
  requires std::is_floating_point_v<T>
struct Codec<T> : Scalar<T, 8, 'd'> {
  static std::uint64_t bits(T v) noexcept {
    const auto d = static_cast<double>(v);
    std::uint64_t b;
    std::memcpy(&b, &d, 8);
    return b;
  }
  static T of(std::uint64_t b) noexcept {
    double d;
    std::memcpy(&d, &b, 8);
    return static_cast<T>(d);
  }
  static void put(Out& to, T v) { put_count(to, static_cast<std::size_t>(bits(v))); }
  static T get(In& from) { return of(from.count()); }
};
template <>
struct Codec<bool> : Scalar<bool, 1, 'b'> {
  static std::uint64_t bits(bool v) noexcept { return v; }
  static bool of(std::uint64_t b) noexcept { return b != 0; }
  static void put(Out& to, bool v) { to.push_back(v ? '\1' : '\0'); }
  static bool get(In& from) { return *from.take(1) != 0; }
};
template <>
struct Codec<std::monostate> : Scalar<std::monostate, 0, 'n'> {
  static std::uint64_t bits(std::monostate) noexcept { return 0; }
  static std::monostate of(std::uint64_t) noexcept { return {}; }
  static void put(Out&, std::monostate) {}
  static std::monostate get(In&) { return {}; }
};
template <>
struct Codec<std::string> {
  static constexpr bool kInline = false;
  static std::string name() { return "s"; }
  static void put(Out& to, const std::string& v) {
    put_count(to, v.size());
    to.append(v.data(), v.size());
  }
  static std::string get(In& from) {
    const std::size_t n = from.count();
    return std::string(from.take(n), n);
  }
};

}  // namespace detail

// Bytes become bytes in Python; a std::string becomes a str.
using Bytes = std::vector<std::byte>;

namespace detail {

template <>
struct Codec<Bytes> {
  static constexpr bool kInline = false;
  static std::string name() { return "y"; }
  static void put(Out& to, const Bytes& v) {
    put_count(to, v.size());
    to.append(reinterpret_cast<const char*>(v.data()), v.size());
  }
  static Bytes get(In& from) {
    const std::size_t n = from.count();
    const auto* p = reinterpret_cast<const std::byte*>(from.take(n));
    return Bytes(p, p + n);
  }
};
template <class T>
inline constexpr bool kParts<std::vector<T>> = kParts<T>;
template <Crosses T>
  requires(!std::is_same_v<T, std::byte>)
struct Codec<std::vector<T>> {
  static constexpr bool kInline = false;
  static std::string name() { return "[" + Codec<T>::name() + "]"; }
  static void put(Out& to, const std::vector<T>& v) {
    put_count(to, v.size());
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>)
      to.append(reinterpret_cast<const char*>(v.data()), 8 * v.size());
    else
      for (const auto& x : v) Codec<T>::put(to, x);
  }
  static std::vector<T> get(In& from) {
    const std::size_t n = from.count();
    std::vector<T> v;
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>) {
      if (n > from.left() / 8) from.take(from.left() + 1);
      v.resize(n);
      if (n) std::memcpy(v.data(), from.take(8 * n), 8 * n);
    } else {
      for (std::size_t i = 0; i < n; ++i) v.push_back(Codec<T>::get(from));
    }
    return v;
  }
};
template <class... T>
inline constexpr bool kParts<std::tuple<T...>> = (kParts<T> || ...);
template <Crosses... T>
struct Codec<std::tuple<T...>> {
  static constexpr bool kInline = false;
  static std::string name() { return "(" + (std::string() + ... + Codec<T>::name()) + ")"; }
  static void put(Out& to, const std::tuple<T...>& v) {
    std::apply([&](const T&... x) { (Codec<T>::put(to, x), ...); }, v);
  }
  // The items of a braced list are evaluated from left to right.
  static std::tuple<T...> get(In& from) { return std::tuple<T...>{Codec<T>::get(from)...}; }
};
template <class A, class B>
inline constexpr bool kParts<std::pair<A, B>> = kParts<A> || kParts<B>;
template <Crosses A, Crosses B>
struct Codec<std::pair<A, B>> {
  static constexpr bool kInline = false;
  static std::string name() { return Codec<std::tuple<A, B>>::name(); }
  static void put(Out& to, const std::pair<A, B>& v) {
    Codec<A>::put(to, v.first);
    Codec<B>::put(to, v.second);
  }
  static std::pair<A, B> get(In& from) {
    return std::pair<A, B>{Codec<A>::get(from), Codec<B>::get(from)};
  }
};
template <class K, class V>
inline constexpr bool kParts<std::map<K, V>> = kParts<V>;
template <Crosses K, Crosses V>
struct Codec<std::map<K, V>> {
  static constexpr bool kInline = false;
  static std::string name() { return "{" + Codec<K>::name() + Codec<V>::name() + "}"; }
  static void put(Out& to, const std::map<K, V>& v) {
    put_count(to, v.size());
    for (const auto& [k, x] : v) {
      Codec<K>::put(to, k);
      Codec<V>::put(to, x);
    }
  }
  static std::map<K, V> get(In& from) {
    std::map<K, V> v;
    for (std::size_t n = from.count(); n > 0; --n) {
      K k = Codec<K>::get(from);
      v.insert_or_assign(std::move(k), Codec<V>::get(from));
    }
    return v;
  }
};
template <class T>
inline constexpr bool kParts<std::optional<T>> = kParts<T>;
template <Crosses T>
struct Codec<std::optional<T>> {
  static constexpr bool kInline = false;
  static std::string name() { return "?" + Codec<T>::name(); }
  static void put(Out& to, const std::optional<T>& v) {
    to.push_back(v ? '\1' : '\0');
    if (v) Codec<T>::put(to, *v);
  }
  static std::optional<T> get(In& from) {
    if (*from.take(1) == 0) return std::nullopt;
    return Codec<T>::get(from);
  }
};

// Text and bytes are stored in a block as they are; their length is that of the block.
template <class T>
inline constexpr bool kBare = std::is_same_v<T, std::string> || std::is_same_v<T, Bytes>;
template <class T>
inline constexpr bool kArray = false;

// Writes v into a block. If v contains arrays, they are moved out of v. Throws std::bad_alloc.
template <class T>
void encode(const T& v, Block& to, void* (*allocate)(std::size_t)) {
  if constexpr (Inline<T>) {
    to.value.bits = Codec<T>::bits(v);
  } else if constexpr (kArray<T>) {
    to.value = Codec<T>::leave(v);
  } else {
    const auto copy = [&](const void* data, std::size_t size) {
      to.value.bits = size;
      if (size == 0) return;
      if (!(to.value.block = allocate(size))) throw std::bad_alloc();
      std::memcpy(to.value.block, data, size);
    };
    if constexpr (kBare<T>) {
      copy(v.data(), v.size());
    } else {
      Out flat;
      Codec<T>::put(flat, v);
      copy(flat.bytes.data(), flat.bytes.size());
      if constexpr (kParts<T>) flat.hand_over(to.value.block);
    }
  }
}
template <class T>
T decode(Block& b) {
  [[maybe_unused]] const weft_value& v = b.value;
  if constexpr (kArray<T>) {
    return T(std::exchange(b.value, {}));
  } else if constexpr (Inline<T>) {
    return Codec<T>::of(v.bits);
  } else if constexpr (kBare<T>) {
    const auto* const p = static_cast<const typename T::value_type*>(v.block);
    return v.bits ? T(p, p + v.bits) : T();
  } else {
    In from(v.block, static_cast<std::size_t>(v.bits));
    return Codec<T>::get(from);
  }
}

}  // namespace detail

}  // namespace weft::native
