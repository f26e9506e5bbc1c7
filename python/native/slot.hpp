// Memory in which large values go to other OS processes of this machine (WIRE.md 9): what is written here once is read there in place.
//
//   make(): a segment that nobody has a share of, or a new one ──written──► lend(): a share more, and a descriptor for a frame
//        ──► there: take(): mapped, or known from before ──the last view is dropped──► the share goes back ──all have──► make() again
//
// The head of a segment counts its shares. A process that is killed never gives its shares back: such a segment falls out of `made` when
// that is full, and its memory goes with the last mapping. So nothing has to be cleaned up, and nobody is asked.
//
// Invariants
//  1 The bytes behind the head are written by who made the slot, before anybody else has a share; then they are whose value they are.
//  2 At most kOpen slots of a process have a descriptor of their own. A value beyond that is held as bytes.
#pragma once
#include <atomic>
#include <memory>

#include "weft/wire/segment.hpp"

namespace weft::py {

class Slot {
 public:
  static constexpr std::size_t kOpen = 200;
  static constexpr std::size_t kDescribed = 40;  // bytes of a description

  // A slot for so many bytes. Nothing: there is no memory or descriptor, or too many are open.
  static std::unique_ptr<Slot> make(std::size_t length) noexcept;
  // The one that a frame describes, whose descriptor has come by `next`. Nothing: there is none such.
  template <class Next>
  static std::unique_ptr<Slot> take(wire::Bytes described, Next&& next) {
    Description d;
    if (described.size() != kDescribed) return nullptr;
    std::memcpy(&d, described.data(), kDescribed);
    for (int fd; (fd = next()) >= 0;)
      if (auto s = matching(d, wire::Descriptor(fd))) return s;  // else it is of a frame that was not sent after all
    return nullptr;
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  std::byte* data() const noexcept;
  std::size_t size() const noexcept { return length_; }
  // A share for who gets the descriptor, and what its frame says of it. -1: no descriptor is left.
  int lend(wire::Buffer& description) const;
  // Too many are open: it is to be held as bytes.
  static bool crowded() noexcept;
  // It goes nowhere else.
  void settle() noexcept;

  static bool is_described(wire::Bytes b) noexcept { return b.size() == kDescribed && b[0] == kMark; }
  static void forget() noexcept;  // in the child of a fork: they are the parent's

 private:
  static constexpr std::byte kMark{1};  // no pickle begins so
  struct Description {
    std::uint64_t mark = 1, id = 0, size = 0, length = 0, inode = 0;
  };
  static_assert(sizeof(Description) == kDescribed);
  struct Head {
    std::atomic<std::uint64_t> shares;
    std::uint64_t id;  // random
  };
  static constexpr std::size_t kHead = 64;
  struct Piece {
    wire::Segment memory;
    std::uint64_t id;
    Head& head() const noexcept { return *reinterpret_cast<Head*>(memory.data()); }
  };
  class Pool;
  static inline std::uint32_t forks = 0;
  static Pool& pool();

  Slot(std::shared_ptr<Piece> p, wire::Descriptor d, std::size_t length) noexcept;
  static std::unique_ptr<Slot> matching(const Description& d, wire::Descriptor fd);

  const std::shared_ptr<Piece> piece_;
  wire::Descriptor descriptor_;
  const std::size_t length_;
  const std::uint32_t fork_;  // in the child of a fork, shares are the parent's
};

}  // namespace weft::py
