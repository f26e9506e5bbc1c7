// An array that many programs read and none changes. The array is written once, mapped by each
// program that receives it, and freed with the last mapping (WIRE.md 9.3). This file needs Linux.
//
//   const wire::SharedArray<float> table(std::span(weights));   // one copy, here
//   out(table);                    // to any number of programs: its pages are not copied again
//   … const wire::SharedArray<float> table = in();
//
// The memory is sealed against writing, even by its maker, before any other program sees it, so
// what has been checked once stays valid. Copies of the array share the memory. Over a link that
// passes no descriptors the bytes are sent, and the other program seals a copy of its own.
//
// Invariant: a program maps each array once. If it receives an array that it has mapped already, it
// uses that mapping.
#pragma once
#include <memory>
#include <span>

#include "moving.hpp"
#include "segment.hpp"

namespace weft::inline WEFT_ABI::wire {

// The raw bytes of one shared array, whatever its element type.
class Sealed {
 public:
  // Makes a sealed copy of the bytes. Throws BadUse if there is no memory or no descriptor.
  static std::shared_ptr<const Sealed> copy_of(Bytes);
  void put(Buffer& out, Carrier& by) const;
  static std::shared_ptr<const Sealed> get(Bytes in, Carrier& by);
  Bytes bytes() const noexcept { return {memory_.data(), length_}; }
  // A mapping of the bytes that its holder may write to. Nobody else sees what the holder writes:
  // the system copies a page when it is written to for the first time.
  class Own;
  // Returns such an Own; null if there is no room for it, or the array has no descriptor.
  std::unique_ptr<Own> to_change() const;
  Sealed(const Sealed&) = delete;
  Sealed& operator=(const Sealed&) = delete;
  ~Sealed();

 private:
  struct Description {
    std::uint64_t mark, id, length, inode;
  };
  static constexpr std::uint64_t kBytes = 0, kPassed = 1;
  struct Known;
  static Known& known();
  Sealed(Segment m, Descriptor d, std::uint64_t id, std::size_t length) noexcept
      : memory_(std::move(m)), descriptor_(std::move(d)), id_(id), length_(length) {}
  static std::shared_ptr<const Sealed> matching(const Description& d, Descriptor fd, Carrier& by);

  Segment memory_;
  Descriptor descriptor_;
  const std::uint64_t id_;
  const std::size_t length_;
};

class Sealed::Own {
 public:
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;
  ~Own();

 private:
  friend class Sealed;
  Own() = default;
  std::span<std::byte> bytes_;
  std::size_t mapped_ = 0;
};

template <class E = std::byte>
class SharedArray {
  static_assert(
      std::is_trivially_copyable_v<E> && !std::is_pointer_v<E> && !std::is_same_v<E, bool> &&
          alignof(E) <= 64,
      "weft::wire::SharedArray: the elements must be plain bytes of which every value is valid");

 public:
  using value_type = E;
  SharedArray() = default;
  explicit SharedArray(std::span<const E> elements)
      : at_(Sealed::copy_of(std::as_bytes(elements))) {}

  std::span<const E> span() const noexcept { return {data(), size()}; }
  const E* data() const noexcept {
    return at_ ? reinterpret_cast<const E*>(at_->bytes().data()) : nullptr;
  }
  std::size_t size() const noexcept { return at_ ? at_->bytes().size() / sizeof(E) : 0; }
  const E* begin() const noexcept { return data(); }
  const E* end() const noexcept { return data() + size(); }
  const E& operator[](std::size_t i) const noexcept { return data()[i]; }

 private:
  friend struct Value<SharedArray>;
  std::shared_ptr<const Sealed> at_;
};

template <class E>
struct Value<SharedArray<E>> {
  static std::string type() { return "shared:" + Value<E>::type(); }
  static void put(const SharedArray<E>& v, Buffer& out, Carrier& by) {
    if (v.at_) v.at_->put(out, by);
  }
  static std::optional<SharedArray<E>> get(Bytes in, Carrier& by) {
    SharedArray<E> v;
    if (in.empty()) return v;
    v.at_ = Sealed::get(in, by);
    if (!v.at_ || v.at_->bytes().size() % sizeof(E) != 0) return {};
    return v;
  }
};

}  // namespace weft::inline WEFT_ABI::wire
