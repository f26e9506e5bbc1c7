// One direction of a session in shared memory: a ring of bytes, and the bell of its reader
// (WIRE-LINKS.md 12.4).
//
// The other side is not trusted and may write at any time. So data is read from the shared memory
// once, checked, and used from the copy. This side's position in the ring is kept in its own
// memory.
//
// A thread that publishes rings the bell of the reader only if no thread of the reader polls.
//
//   standby ──a thread that waits begins to look──► looking ──it parks──► parked ──knock()──► looking
//      ▲ └──knock()──► rung ──the bell's own thread looks──► looking          │
//      └────────────────────────────────leaves, and looks once more───────────┘
//
// Invariants
//  1 A thread that writes `who` on the reader's side then checks the ring before it parks or
//    leaves. A thread that publishes reads `who` after it has published. Both accesses are
//    sequentially consistent, so one of the two threads sees the other: no frame stays in the ring
//    unnoticed.
//  2 `tail - head` is at most the size. Any other value is the other side's fault.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>

#include "../prim.hpp"
#include "frame.hpp"

namespace weft::inline WEFT_ABI::wire {

struct Bell {
  enum Who : std::uint32_t { looking, parked, standby, rung };
  prim::atomic<std::uint32_t> who{standby};
  prim::atomic<std::uint32_t> thread{0};   // the word on which a thread of the program waits
  prim::atomic<std::uint32_t> service{0};  // the word on which the bell's own thread waits
};

// The indices of a ring, whose bytes lie elsewhere. Each cache line has one writer. For each value
// that passes, the other side reads only the first line and the bell's line. So two lines move
// between CPUs, and not four.
struct Direction {
  alignas(64) prim::atomic<std::uint32_t> tail{0};  // how many bytes were published; wraps
  prim::atomic<std::uint32_t> starved{0};           // the writer waits for room
  // A party waits for the bytes before this position, which is counted as `tail` is.
  prim::atomic<std::uint32_t> urgent{0};
  alignas(64) prim::atomic<std::uint32_t> head{0};  // how many bytes were taken; wraps
  alignas(64) Bell bell;                            // the bell of the reader
  // The CPU on which the reader last polled; this is only a hint.
  alignas(64) prim::atomic<std::uint32_t> cpu{UINT32_MAX};
};

inline constexpr std::size_t kBroken = SIZE_MAX;

// The writing side of a ring.
class Outlet {
 public:
  void open(Direction& d, std::byte* bytes, std::uint32_t size) noexcept {
    d_ = &d, bytes_ = bytes, size_ = size;
  }

  // Copies the bytes that fit, and publishes them. Returns how many it has copied; kBroken if the
  // other side has written an impossible position.
  std::size_t put(Bytes in) noexcept {
    // Usually the last known position of the reader is enough, and the cache line that holds it
    // stays with the reader.
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (size_ - (tail - head_) < in.size()) head_ = head();
    if (tail - head_ == size_ && !in.empty()) {
      d_->starved.store(1, std::memory_order_seq_cst);
      head_ = head();  // The reader might have made room before it could see `starved`.
    }
    const std::uint32_t room = size_ - (tail - head_);
    if (room > size_) return kBroken;
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(in.size(), room));
    if (n == 0) return 0;
    const std::uint32_t at = tail & (size_ - 1), first = std::min(n, size_ - at);
    std::memcpy(bytes_ + at, in.data(), first);
    std::memcpy(bytes_, in.data() + first, n - first);
    tail_.store(tail + n, std::memory_order_relaxed);
    d_->tail.store(tail + n, std::memory_order_seq_cst);
    return n;
  }
  // Marks the next `n` bytes as urgent, since a party waits for them. Called before these bytes are
  // put.
  void hurry(std::size_t n) noexcept {
    d_->urgent.store(tail_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(n),
                     std::memory_order_relaxed);
  }
  bool has_room() const noexcept { return tail_.load(std::memory_order_relaxed) - head() != size_; }
  bool unread() const noexcept {
    return d_->tail.load(std::memory_order_seq_cst) != d_->head.load(std::memory_order_relaxed);
  }
  Direction& direction() const noexcept { return *d_; }

 private:
  std::uint32_t head() const noexcept { return d_->head.load(std::memory_order_seq_cst); }
  Direction* d_ = nullptr;
  std::byte* bytes_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t head_ = 0;  // the reader's last known position; used by the thread in a step
  // Written by the thread in a step, and read by a thread that attends. The explorer need not
  // preempt a thread here.
  std::atomic<std::uint32_t> tail_{0};
};

// The reading side of a ring.
class Inlet {
 public:
  void open(Direction& d, const std::byte* bytes, std::uint32_t size) noexcept {
    d_ = &d, bytes_ = bytes, size_ = size;
  }

  // Returns whether there is something to read. Any thread may call this.
  bool any() const noexcept {
    return d_->tail.load(std::memory_order_seq_cst) != head_.load(std::memory_order_relaxed) &&
           !broken_.load(std::memory_order_relaxed);
  }
  // Returns whether a party waits for something that has not been taken.
  bool hurries() const noexcept {
    return static_cast<std::int32_t>(d_->urgent.load(std::memory_order_seq_cst) -
                                     head_.load(std::memory_order_relaxed)) > 0;
  }
  // Copies as many bytes as there are and `out` has room for. Returns how many it has copied;
  // kBroken if the other side has written an impossible position. Sets `room` if the writer waits
  // for room, and is to be woken.
  std::size_t take(std::span<std::byte> out, bool& room) noexcept {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    const std::uint32_t there = d_->tail.load(std::memory_order_acquire) - head;
    if (there > size_) return kBroken;
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), there));
    if (n == 0) return 0;
    const std::uint32_t at = head & (size_ - 1), first = std::min(n, size_ - at);
    std::memcpy(out.data(), bytes_ + at, first);
    std::memcpy(out.data() + first, bytes_, n - first);
    head_.store(head + n, std::memory_order_relaxed);
    d_->head.store(head + n, std::memory_order_seq_cst);
    room = d_->starved.load(std::memory_order_seq_cst) != 0 &&
           d_->starved.exchange(0, std::memory_order_seq_cst) != 0;
    return n;
  }
  // Announces how this side waits. Called by the thread that polls. After the call, and before that
  // thread parks or leaves, it must check the ring once more.
  void say(Bell::Who who) noexcept { d_->bell.who.store(who, std::memory_order_seq_cst); }
  bool may_park() noexcept {
    say(Bell::parked);
    return !any();
  }
  // Marks the ring as broken: nothing more is read from a side that cannot be trusted.
  void skip() noexcept { broken_.store(true, std::memory_order_relaxed); }
  Direction& direction() const noexcept { return *d_; }

 private:
  Direction* d_ = nullptr;
  const std::byte* bytes_ = nullptr;
  std::uint32_t size_ = 0;
  prim::atomic<std::uint32_t> head_{0};
  prim::atomic<bool> broken_{false};
};

// What the caller of knock() still has to do: nothing, or wake the thread that waits on `wake`, a
// word that knock() has changed.
struct Knock {
  prim::atomic<std::uint32_t>* wake = nullptr;
};
// Called after something has been published. `thread` and `service` say which of the two threads
// may be woken now.
inline Knock knock(Bell& b, bool thread = true, bool service = true) noexcept {
  std::uint32_t w = b.who.load(std::memory_order_seq_cst);
  if (w == Bell::parked && thread &&
      b.who.compare_exchange_strong(w, Bell::looking, std::memory_order_seq_cst)) {
    b.thread.fetch_add(1, std::memory_order_seq_cst);
    return {&b.thread};
  }
  if (w == Bell::standby && service &&
      b.who.compare_exchange_strong(w, Bell::rung, std::memory_order_seq_cst)) {
    b.service.fetch_add(1, std::memory_order_seq_cst);
    return {&b.service};
  }
  return {};
}

}  // namespace weft::inline WEFT_ABI::wire
