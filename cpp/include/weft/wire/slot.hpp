// Memory in which large values are passed to other programs of this machine (WIRE.md 9.2): a value
// is written once, and read in place by the other program. This file needs Linux.
//
//   make(): a segment without shares, or a new one ──written──► lend_to(): one more share, and a
//   descriptor if the peer needs one ──► there: take(): mapped, or known from before
//     ──the last view is dropped──► the share is given back ──all shares are──► make() again
//
// The head of a segment counts its shares. A program that is killed never gives its shares back. A
// segment whose shares do not come back is removed from the list `made` when that list is full, and
// its memory is freed with the last mapping. A mapping of another program's segment with shares
// that do not come back is dropped when no session is open that could still bring the segment. So
// nothing has to be cleaned up, and no program has to be queried.
//
// The head also names the spaces that have the segment mapped and keep it mapped. A value goes to
// these spaces without a descriptor.
//
// Invariants
//  1 The bytes behind the head are written by the maker of the slot, before any other program has a
//    share; then they belong to the owner of the value.
//  2 At most kOpen segments of a program have a descriptor. A value beyond that is held as bytes.
//  3 A program that lends takes the share first, and then reads which spaces are named. A program
//    that drops a mapping removes its name first, then checks for shares, and keeps the mapping
//    while there are any. So one of the two programs sees the other, and a segment that comes
//    without a descriptor is always known.
#pragma once
#include <atomic>
#include <memory>

#include "segment.hpp"

namespace weft::inline WEFT_ABI::wire {

class Slot {
 public:
  static constexpr std::size_t kOpen = 200;
  static constexpr std::size_t kDescribed = 40;  // the size in bytes of a description

  // Makes a slot for `length` bytes. Returns null if there is no memory or no descriptor, or too
  // many slots are open.
  static std::unique_ptr<Slot> make(std::size_t length) noexcept;
  // Returns the slot that a frame describes. `by` is a Carrier: passed() gives its descriptors,
  // mine() gives this space's incarnation. Returns null if there is no such slot, or there is no
  // memory for it; in the second case, calls no_room().
  template <class By>
  static std::unique_ptr<Slot> take(Bytes described, By& by) {
    Description d;
    if (!is_described(described)) return nullptr;
    std::memcpy(&d, described.data(), kDescribed);
    if (d.mark == kKnown) return known(d);
    for (int fd; (fd = by.passed()) >= 0;)
      // If there is no match, the descriptor belongs to a frame that was not sent after all.
      if (auto s = matching(d, Descriptor(fd), by)) return s;
    return nullptr;
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  std::byte* data() const noexcept;
  std::size_t size() const noexcept { return length_; }
  // Reserves a share for the peer of `by`, and describes the slot for a frame. Returns false if
  // that is not possible.
  template <class By>
  bool lend_to(By& by, Buffer& description) const {
    if (!by.passes()) return false;
    const int fd = lend(description, by.theirs());
    if (fd >= 0) by.pass(fd);
    return fd != kNot;
  }
  // Returns whether too many descriptors are open. If so, the value is to be held as bytes.
  static bool crowded() noexcept;
  // Returns whether there are few enough open descriptors for slots that are made long before they
  // are sent, or that are never sent.
  static bool is_roomy() noexcept;
  // Returns whether nobody else has a share: neither another program, nor another Slot here.
  bool is_alone() const noexcept;
  // How many values that arrived in a slot were copied out of it because too many slots were open.
  static inline std::atomic<std::uint64_t> copied{0};
  // Closes the descriptor if too many are open; after that the value cannot be sent on without a
  // copy.
  void close_if_crowded() noexcept;

  static bool is_described(Bytes b) noexcept {
    return b.size() == kDescribed && (b[0] == std::byte{kPassed} || b[0] == std::byte{kKnown});
  }
  // Called in the child of a fork: the segments belong to the parent.
  static void forget() noexcept;

 private:
  // The marks at the beginning of a description. No pickle begins with such a byte.
  static constexpr std::uint8_t kPassed = 1, kKnown = 3;
  // kNone means that no descriptor is needed; kNot means that the slot cannot be lent.
  static constexpr int kNone = -1, kNot = -2;
  struct Description {
    std::uint64_t mark = kPassed, id = 0, size = 0, length = 0, inode = 0;
  };
  static_assert(sizeof(Description) == kDescribed);
  static constexpr std::size_t kHead = 64, kNamed = 6;
  struct Head {
    std::atomic<std::uint64_t> shares;
    std::uint64_t id;  // random
    // The incarnations of spaces; 0 in unused elements.
    std::atomic<std::uint64_t> mapped_by[kNamed]{};
  };
  static_assert(sizeof(Head) == kHead);
  struct Piece {
    Segment memory;
    std::uint64_t id = 0;
    Descriptor descriptor;  // closed once the value is not sent on
    Head& head() const noexcept { return *reinterpret_cast<Head*>(memory.data()); }
    ~Piece();
    void close() noexcept;
  };
  class Pool;
  static inline std::atomic<std::uint32_t> forks{0};
  static Pool& pool();

  Slot(std::shared_ptr<Piece> p, std::size_t length) noexcept;
  template <class By>
  static std::unique_ptr<Slot> matching(const Description& d, Descriptor fd, By& by) {
    bool no_room = false;
    auto s = matching(d, std::move(fd), by.mine(), no_room);
    if (no_room) by.no_room();
    return s;
  }
  static std::unique_ptr<Slot> matching(const Description& d, Descriptor fd, std::uint64_t mine,
                                        bool& no_room);
  static std::unique_ptr<Slot> known(const Description& d);
  // Returns the descriptor that is to be sent, or kNone or kNot.
  int lend(Buffer& description, std::uint64_t theirs) const;

  const std::shared_ptr<Piece> piece_;
  const std::size_t length_;
  // The fork in which this object was made. In the child of a fork, shares belong to the parent.
  const std::uint32_t fork_;
};

}  // namespace weft::inline WEFT_ABI::wire
