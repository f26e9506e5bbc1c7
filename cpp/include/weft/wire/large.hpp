// A large value that is written and read in place, in memory that passes from program to program
// (WIRE.md 9.2). This file needs Linux.
//
//   wire::Large<float> frame(1 << 20);  // memory for 1 << 20 elements, with undefined values
//   camera.read(frame.span());
//   out(std::move(frame));              // over a link in shared memory, or a Unix socket: no copy
//   …
//   wire::Large<float> frame = in();    // its owner may write to it as well, and send it on
//
// On the wire a Large is the same as a std::vector of these elements: a value that was sent as one
// may be read as the other. Over other links the bytes are copied. A program that holds more than
// Slot::kOpen large values receives further values as copies, so that no writer waits for a free
// slot. Slot::copied counts these copies.
//
// A slot comes from another program of the same user, which could still write to it. Code that must
// not trust that program should copy the value first, and check the copy.
#pragma once
#include <memory>
#include <span>

#include "moving.hpp"
#include "slot.hpp"

namespace weft::inline WEFT_ABI::wire {

template <class E = std::byte>
class Large {
  static_assert(
      std::is_trivially_copyable_v<E> && !std::is_pointer_v<E> && !std::is_same_v<E, bool> &&
          alignof(E) <= 64,
      "weft::wire::Large: the elements must be plain bytes of which every value is valid");

 public:
  using value_type = E;
  Large() = default;
  // Makes a value with this number of elements. Throws std::bad_alloc if there is no memory, and
  // std::length_error if the number is too large.
  explicit Large(std::size_t elements) : size_(elements) {
    if (elements > PTRDIFF_MAX / sizeof(E))
      throw std::length_error("weft::wire::Large: more elements than memory can have");
    if (elements == 0) return;
    slot_ = Slot::make(elements * sizeof(E));
    if (!slot_) own_ = std::make_unique_for_overwrite<E[]>(elements);
  }
  Large(Large&& o) noexcept
      : slot_(std::move(o.slot_)), own_(std::move(o.own_)), size_(std::exchange(o.size_, 0)) {}
  Large& operator=(Large&& o) noexcept {
    slot_ = std::move(o.slot_);
    own_ = std::move(o.own_);
    size_ = std::exchange(o.size_, 0);
    return *this;
  }

  E* data() noexcept { return slot_ ? reinterpret_cast<E*>(slot_->data()) : own_.get(); }
  const E* data() const noexcept {
    return slot_ ? reinterpret_cast<const E*>(slot_->data()) : own_.get();
  }
  std::size_t size() const noexcept { return size_; }
  std::span<E> span() noexcept { return {data(), size_}; }
  std::span<const E> span() const noexcept { return {data(), size_}; }
  E* begin() noexcept { return data(); }
  E* end() noexcept { return data() + size_; }
  const E* begin() const noexcept { return data(); }
  const E* end() const noexcept { return data() + size_; }
  E& operator[](std::size_t i) noexcept { return data()[i]; }
  const E& operator[](std::size_t i) const noexcept { return data()[i]; }
  // Returns whether the value lies in memory that another program can map, so that it is sent
  // without a copy.
  bool shared() const noexcept { return slot_ != nullptr; }

 private:
  friend struct Value<Large>;
  explicit Large(std::unique_ptr<Slot> s) : slot_(std::move(s)), size_(slot_->size() / sizeof(E)) {}
  static Large copy_of(Bytes b) {
    Large l;
    l.size_ = b.size() / sizeof(E);
    if (l.size_ == 0) return l;
    l.own_ = std::make_unique_for_overwrite<E[]>(l.size_);
    std::memcpy(l.own_.get(), b.data(), b.size());
    return l;
  }

  std::unique_ptr<Slot> slot_;
  std::unique_ptr<E[]> own_;  // used if there is no slot
  std::size_t size_ = 0;
};

template <class E>
struct Value<Large<E>> {
  static std::string type() { return Value<std::vector<E>>::type(); }
  static Bytes bytes(const Large<E>& v) { return std::as_bytes(v.span()); }
  static void put(const Large<E>& v, Buffer& out) { detail::put(out, bytes(v)); }
  static std::optional<Large<E>> get(Bytes in) {
    if (in.size() % sizeof(E) != 0) return {};
    return Large<E>::copy_of(in);
  }
  static bool lend(const Large<E>& v, Buffer& description, Carrier& by) {
    return v.slot_ && v.slot_->lend_to(by, description);
  }
  static std::optional<Large<E>> leased(Bytes description, Carrier& by) {
    auto slot = Slot::take(description, by);
    if (!slot || slot->size() % sizeof(E) != 0) return {};
    if (!Slot::crowded()) return Large<E>(std::move(slot));
    Slot::copied.fetch_add(1, std::memory_order_relaxed);
    return Large<E>::copy_of({slot->data(), slot->size()});
  }
};

}  // namespace weft::inline WEFT_ABI::wire
