// Values on the wire, and the customisation point for the user's own types (WIRE.md 3.2, 7.2).
//
// A trivially copyable type passes as its bytes. Both programs must lay the type out alike: its
// name on the wire says only the size and alignment. Pointers and ends are refused. For any other
// type specialise weft::wire::Value:
//
//   template <> struct weft::wire::Value<Order> {
//     // the same in both programs
//     static std::string type() { return "order/1"; }
//     // appends its bytes
//     static void put(const Order& o, weft::wire::Buffer& out) { … }
//     // returns nothing if these bytes are not an Order: received bytes are not trusted
//     static std::optional<Order> get(weft::wire::Bytes in) { … }
//   };
//
// A type that contains ends of channels (moving.hpp) receives the Carrier of its values, which puts
// and gets the ends:
//
//     static void put(const Order& o, weft::wire::Buffer& out, weft::wire::Carrier& by) {
//       by.put(o.reply, out);
//       …
//     }
//     static std::optional<Order> get(weft::wire::Bytes in, weft::wire::Carrier& by) {
//       auto reply = by.get<weft::wire::WriterEnd<int>>(in);
//       …
//     }
//
// This file specialises Value for std::string and for std::vector of trivially copyable elements. A
// value of kApart bytes or more is sent in shared memory if the link has such memory (WIRE.md 9.2),
// whatever its type. If the bytes of a value lie in one piece, the type can say where they are,
// which saves one copy:
//
//     static Bytes bytes(const Order& o) { … }  // what put() would append
//
// If a value can be built from pieces as they arrive from another machine (WIRE.md 9.1), two more
// functions save one copy there:
//
//     // o, made by Order(), will receive `bytes` bytes if the value comes whole
//     static void will_come(Order& o, std::size_t bytes) { … }
//     // o, which had `had` bytes, receives this piece
//     static void more(Order& o, std::size_t had, Bytes piece) { … }
//
// A type whose values lie in shared memory has two more functions (large.hpp).
//
// These functions run under the space's lock (rule 12.1), so they may not throw, wait or use Weft.
#pragma once
#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "frame.hpp"

namespace weft::inline WEFT_ABI::wire {

template <class T>
struct Value {
  static_assert(std::is_trivially_copyable_v<T>,
                "specialise weft::wire::Value for this type: it is not trivially copyable");
  static_assert(!std::is_pointer_v<T> && !std::is_member_pointer_v<T>,
                "a pointer means nothing in another address space");
  static_assert(std::endian::native == std::endian::little,
                "the bytes of a value are those of a little-endian machine");

  static std::string type() {
    const std::string size = std::to_string(sizeof(T));
    if constexpr (std::is_same_v<T, bool>)
      return "b" + size;
    else if constexpr (std::is_floating_point_v<T>)
      return "f" + size;
    else if constexpr (std::is_integral_v<T>)
      return (std::is_signed_v<T> ? "i" : "u") + size;
    else
      return "s" + size + "a" + std::to_string(alignof(T));
  }
  static constexpr bool fixed = true;  // every value has sizeof(T) bytes
  static Bytes bytes(const T& v) { return std::as_bytes(std::span(&v, 1)); }
  static void put(const T& v, Buffer& out) { detail::put(out, bytes(v)); }
  static std::optional<T> get(Bytes in) {
    if (in.size() != sizeof(T)) return {};
    if constexpr (std::is_same_v<T, bool>)
      if (std::to_integer<unsigned>(in[0]) > 1) return {};
    T v;
    std::memcpy(&v, in.data(), sizeof(T));
    return v;
  }
};

namespace detail {
// A peer can announce more than it ever sends. So at most this much memory is reserved, and a
// longer value grows as its pieces arrive.
inline constexpr std::size_t kAtOnce = std::size_t{64} << 20;  // in bytes

template <class E>
bool lies_as(Bytes b) noexcept {
  return b.size() % sizeof(E) == 0 && reinterpret_cast<std::uintptr_t>(b.data()) % alignof(E) == 0;
}
}  // namespace detail

template <>
struct Value<std::string> {
  static std::string type() { return "str"; }
  static Bytes bytes(const std::string& s) { return std::as_bytes(std::span(s)); }
  static void put(const std::string& s, Buffer& out) { detail::put(out, bytes(s)); }
  static std::optional<std::string> get(Bytes in) {
    return std::string(reinterpret_cast<const char*>(in.data()), in.size());
  }
  static void will_come(std::string& s, std::size_t bytes) {
    s.reserve(std::min(bytes, detail::kAtOnce));
  }
  static void more(std::string& s, std::size_t, Bytes piece) {
    s.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
};

template <class E>
  requires std::is_trivially_copyable_v<E>
struct Value<std::vector<E>> {
  static std::string type() { return "v:" + Value<E>::type(); }
  static Bytes bytes(const std::vector<E>& v) { return std::as_bytes(std::span(v)); }
  static void put(const std::vector<E>& v, Buffer& out) { detail::put(out, bytes(v)); }
  static std::optional<std::vector<E>> get(Bytes in) {
    if (in.size() % sizeof(E) != 0) return {};
    std::vector<E> v;
    more(v, 0, in);
    return v;
  }
  static void will_come(std::vector<E>& v, std::size_t bytes) {
    v.reserve((std::min(bytes, detail::kAtOnce) + sizeof(E) - 1) / sizeof(E));
  }
  static void more(std::vector<E>& v, std::size_t had, Bytes piece) {
    // The bytes are written once, straight into the vector.
    if (had % sizeof(E) == 0 && detail::lies_as<E>(piece)) {
      const auto* const first = reinterpret_cast<const E*>(piece.data());
      v.insert(v.end(), first, first + piece.size() / sizeof(E));
      return;
    }
    v.resize((had + piece.size() + sizeof(E) - 1) / sizeof(E));
    std::memcpy(reinterpret_cast<std::byte*>(v.data()) + had, piece.data(), piece.size());
  }
};

class Carrier;

// A value of at least this many bytes is sent in shared memory.
inline constexpr std::size_t kApart = 32'768;

namespace detail {
// Puts a value into a slot, whose description is sent instead of the value. Returns false if the
// value is to be sent as it is; `description` is then unchanged.
bool lease(Bytes value, Buffer& description, Carrier& by);
// The bytes of a slot whose description was received, and the object that keeps them there. Both
// are empty if there is no such slot. The maker of the bytes might still write to them.
struct Leased {
  Bytes bytes{};
  std::shared_ptr<void> keep;
};
Leased leased(Bytes description, Carrier& by);

template <class T>
void put_value(const T& v, Buffer& out, Carrier& by) {
  if constexpr (requires { Value<T>::put(v, out, by); })
    Value<T>::put(v, out, by);
  else
    Value<T>::put(v, out);
}
template <class T>
std::optional<T> get_value(Bytes in, Carrier& by) {
  if constexpr (requires { Value<T>::get(in, by); })
    return Value<T>::get(in, by);
  else
    return Value<T>::get(in);
}
template <class T>
std::optional<T> get_leased(Bytes description, Carrier& by) {
  if constexpr (requires { Value<T>::leased(description, by); }) {
    return Value<T>::leased(description, by);
  } else {
    const Leased there = leased(description, by);
    if (!there.keep) return {};
    if constexpr (requires(const T& v) { Value<T>::bytes(v); })
      return get_value<T>(there.bytes, by);
    // The bytes are read from a copy, which cannot change meanwhile.
    const Buffer copy(there.bytes.begin(), there.bytes.end());
    return get_value<T>(copy, by);
  }
}
template <class T>
Payload unload_value(const T& v, Buffer& keep, Carrier& by) {
  if constexpr (requires { Value<T>::lend(v, keep, by); })
    if (Value<T>::lend(v, keep, by)) return {0, keep, true, true};
  if constexpr (requires { Value<T>::bytes(v); }) {
    const Bytes bytes = Value<T>::bytes(v);
    if (bytes.size() >= kApart && lease(bytes, keep, by)) return {0, keep, true, true};
    return {0, bytes, true, false, true};
  } else {
    keep.clear();
    put_value(v, keep, by);
    const bool apart = keep.size() >= kApart && lease(keep, keep, by);
    return {0, keep, true, apart};
  }
}
// Whether a value can be built from its pieces as they arrive.
template <class T>
inline constexpr bool kGrows = std::is_default_constructible_v<T>&& requires(T& v, Bytes b) {
  Value<T>::bytes(v), Value<T>::will_come(v, b.size()), Value<T>::more(v, b.size(), b);
};
}  // namespace detail

// Whether every value of the type has the same size, so that a value of at most 8 bytes goes in the
// frame's header.
template <class T>
inline constexpr bool kFixed = requires {
  requires Value<T>::fixed;
};
template <class T>
inline constexpr bool kSmall = kFixed<T> && sizeof(T) <= 8;

// The room for one value of some type. It converts the value from and to a frame.
//
//   empty ──load(), or a party constructs at slot() and says filled()──► full ──take()──► empty
//     └──will_come()──► coming: more() for each piece ──last()──► full
class Room {
 public:
  Room() = default;
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  virtual ~Room() = default;
  virtual void* slot() noexcept = 0;
  // load() and unload() are called in a step. The carrier handles the ends in the value. load()
  // returns false if the payload is not a value of the type.
  virtual bool load(const Payload&, Carrier&) = 0;
  // Returns the value of a full room as a payload, which refers to the room or to `keep`.
  virtual Payload unload(Buffer& keep, Carrier&) const = 0;
  // Returns the object that keeps a payload's own bytes in place, even without the room; empty if
  // there is none.
  virtual Keeper keeper() const { return {}; }
  // Announces the number of bytes that will arrive in pieces. Returns false if such a value must be
  // passed to load() whole.
  virtual bool will_come(std::size_t) { return false; }
  virtual void more(Bytes) {}
  // Receives the last piece. Returns false if all the pieces together are not a value of the type.
  virtual bool last(Bytes) { return false; }
  void filled() noexcept { full_ = true; }
  // Returns whether the room is full. The room stays full when a party has moved the value out,
  // since the moved-from object must still be destroyed.
  bool full() const noexcept { return full_; }

 protected:
  bool full_ = false;
};

template <class T>
class RoomOf final : public Room {
 public:
  RoomOf() noexcept {}
  explicit RoomOf(T v) : value_(std::move(v)) { full_ = true; }
  ~RoomOf() override {
    if (full_ || comes_) value_.~T();
  }
  void* slot() noexcept override { return &value_; }
  bool load(const Payload& p, Carrier& by) override {
    std::optional<T> v;
    if constexpr (kSmall<T>) {
      if (p.in_body || (sizeof(T) < 8 && p.small >> (8 * (sizeof(T) & 7)) != 0)) return false;
      v = detail::get_value<T>(std::as_bytes(std::span(&p.small, 1)).first(sizeof(T)), by);
    } else {
      if (!p.in_body) return false;
      v = p.leased ? detail::get_leased<T>(p.bytes, by) : detail::get_value<T>(p.bytes, by);
    }
    if (!v) return false;
    ::new (static_cast<void*>(&value_)) T(std::move(*v));
    full_ = true;
    return true;
  }
  Payload unload(Buffer& keep, Carrier& by) const override {
    if constexpr (kSmall<T>) {
      Payload p;
      if constexpr (requires { Value<T>::bytes(value_); }) {
        std::memcpy(&p.small, Value<T>::bytes(value_).data(), sizeof(T));
      } else {
        keep.clear();
        detail::put_value(value_, keep, by);
        std::memcpy(&p.small, keep.data(), sizeof(T));
      }
      return p;
    } else {
      return detail::unload_value(value_, keep, by);
    }
  }
  bool will_come(std::size_t all) override {
    if constexpr (detail::kGrows<T>) {
      if (full_ || comes_) return false;
      ::new (static_cast<void*>(&value_)) T();
      comes_ = true;
      had_ = 0;
      Value<T>::will_come(value_, all);
    }
    return detail::kGrows<T>;
  }
  void more(Bytes piece) override {
    if constexpr (detail::kGrows<T>) Value<T>::more(value_, had_, piece);
    had_ += piece.size();
  }
  bool last(Bytes piece) override {
    more(piece);
    if constexpr (detail::kGrows<T>) full_ = comes_ && Value<T>::bytes(value_).size() == had_;
    if (full_) comes_ = false;
    return full_;
  }
  void put(T v) {
    ::new (static_cast<void*>(&value_)) T(std::move(v));
    full_ = true;
  }
  T take() {
    T v(std::move(value_));
    value_.~T();
    full_ = false;
    return v;
  }

 private:
  union {
    T value_;
  };
  bool comes_ = false;
  std::size_t had_ = 0;
};

}  // namespace weft::inline WEFT_ABI::wire
