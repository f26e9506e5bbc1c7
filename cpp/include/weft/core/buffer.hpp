// The buffer of a channel: a ring over storage that is supplied from outside.
//
// Invariants (channel's lock): size + held + reserved ≤ capacity, unless the buffer grows. `held`
// counts slots whose value an extended read has taken out (rule 1.6). `reserved` counts slots whose
// value is being computed after the commit (rule 5.8), or that are lent to a far writer
// (lending.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "status.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T>
struct Ring {
  T* data = nullptr;
  std::uint32_t capacity = 0;
  std::uint32_t head = 0;
  std::uint32_t size = 0;
  std::uint32_t held = 0;
  std::uint32_t reserved = 0;
  Overflow overflow = Overflow::block;
  // how many of `held` belong to extended reads whose value can be put back
  std::uint16_t kept = 0;
  std::uint64_t dropped = 0;
  // For an unbounded buffer: doubles the storage. The pointer is null where there is no heap.
  bool (*grow)(Ring&) noexcept = nullptr;
  // Destroys the contents and frees the storage. Called without the lock.
  void (*discard)(Ring&) noexcept = nullptr;

  // A bit of `reserved`: slots are lent, so other parties have no room.
  static constexpr std::uint32_t kLending = std::uint32_t{1} << 31;
  bool lending() const noexcept { return (reserved & kLending) != 0; }
  bool room() const noexcept { return size + held + reserved < capacity; }
  // Returns the number of free slots, including those that other parties may not use while slots
  // are lent.
  std::uint32_t free() const noexcept { return capacity - size - held - (reserved & ~kLending); }
  T& front() noexcept { return data[head]; }

  void push(T&& v) noexcept {
    std::uint32_t at = head + size;
    if (at >= capacity) at -= capacity;
    ::new (static_cast<void*>(data + at)) T(std::move(v));
    ++size;
  }

  // Puts back, in front of all others, a value that an extended read had taken out.
  void push_front(T&& v) noexcept {
    head = head == 0 ? capacity - 1 : head - 1;
    ::new (static_cast<void*>(data + head)) T(std::move(v));
    ++size;
  }

  void pop_into(void* slot) noexcept {
    T& v = data[head];
    ::new (slot) T(std::move(v));
    v.~T();
    if (++head == capacity) head = 0;
    --size;
  }

  // Removes the value that entered last (rule 1.4, drop_last), and moves it to `slot`.
  void pop_last_into(void* slot) noexcept {
    std::uint32_t at = head + size - 1;
    if (at >= capacity) at -= capacity;
    ::new (slot) T(std::move(data[at]));
    data[at].~T();
    --size;
  }

  // Removes and returns all contents; the caller must destroy them once the lock is released.
  Ring steal() noexcept {
    Ring r = *this;
    data = nullptr;
    capacity = head = size = 0;
    return r;
  }

  void clear() noexcept {
    while (size > 0) {
      data[head].~T();
      if (++head == capacity) head = 0;
      --size;
    }
  }
};

}  // namespace weft::inline WEFT_ABI::core
