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
// If this program knows that only its own OS processes receive a copy, the copy may lie in memory
// that is used again. Such memory is not sealed; it has a head that counts its shares:
//
//   copy_again(): memory without shares, or new memory ──written──► put(): one more share
//     ──there: get(): mapped──the array is dropped──► the share is given back ──all shares are──►
//   copy_again()
//
// A program that is killed never gives its shares back. Memory whose shares do not come back is not
// used again; it is freed with its last mapping, after kMaxKept bytes of newer copies or
// free_unused().
//
// Invariants
//  1 A program maps each array once. If it receives an array that it has mapped already, it uses
//    that mapping.
//  2 Memory that is used again is written only while nobody has a share of it. An array that was
//    made or received holds a share until the array is destroyed.
#pragma once
#include <atomic>
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
  // Makes a copy of the bytes in memory that is used again. Throws BadUse if there is no memory or
  // no descriptor.
  static std::shared_ptr<const Sealed> copy_again(Bytes);
  // The maximum number of bytes of memory that is kept for further copies.
  static constexpr std::size_t kMaxKept = std::size_t{256} << 20;
  // Frees the memory that is kept for further copies.
  static void free_unused() noexcept;
  void put(Buffer& out, Carrier& by) const;
  // What a receiver accepts: only sealed memory, or, if `trusting`, also memory that is not sealed
  // and that its maker promises not to change.
  enum class Accepts : std::uint8_t { sealed, trusting };
  static std::shared_ptr<const Sealed> get(Bytes in, Carrier& by, Accepts = Accepts::sealed);
  Bytes bytes() const noexcept { return {memory_.data() + front(), length_}; }
  // A mapping of the bytes that its holder may write to. Nobody else sees what the holder writes:
  // the system copies a page when it is written to for the first time.
  class Own;
  // Returns an Own of this array; null if there is no room for it, or the array has no descriptor.
  // The array must exist as long as the Own.
  std::unique_ptr<Own> to_change() const;
  Sealed(const Sealed&) = delete;
  Sealed& operator=(const Sealed&) = delete;
  ~Sealed();

 private:
  struct Description {
    std::uint64_t mark, id, length, inode;
  };
  static constexpr std::uint64_t kBytes = 0, kPassed = 1, kAgain = 2;
  // The length of the head of memory that is used again: one page, so that the bytes can be mapped
  // without the head.
  static constexpr std::size_t kHead = 4096;
  struct Head {
    std::atomic<std::uint64_t> shares;
  };
  struct Known;
  static Known& known();
  struct Memory;
  class Pool;
  static Pool& pool();
  Sealed(Segment m, Descriptor d, std::uint64_t id, std::size_t length, Segment head = {}) noexcept
      : memory_(std::move(m)),
        head_(std::move(head)),
        descriptor_(std::move(d)),
        id_(id),
        length_(length) {}
  static std::shared_ptr<const Sealed> matching(const Description& d, Descriptor fd, Carrier& by);
  static std::shared_ptr<const Sealed> noted(std::shared_ptr<const Sealed> made);
  std::size_t front() const noexcept { return head_ ? kHead : 0; }
  static std::atomic<std::uint64_t>& shares(const Segment& head) noexcept {
    return reinterpret_cast<Head*>(head.data())->shares;
  }

  Segment memory_;
  Segment head_;  // empty if the memory is sealed
  Descriptor descriptor_;
  const std::uint64_t id_;
  const std::size_t length_;
  const pid_t maker_ = ::getpid();  // in the child of a fork, the share belongs to the parent
};

class Sealed::Own {
 public:
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  // Returns whether nobody has written to these bytes. Also false if the system does not know.
  bool is_unchanged() const noexcept;
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
