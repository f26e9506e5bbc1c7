// The storage of a buffered channel: a ring over storage that somebody else supplies.
//
// Invariants (channel's lock): size + held + reserved ≤ capacity unless the buffer grows; held
// counts slots whose value is out with an extended read (rule 1.6), reserved those whose value is
// being computed after the commit (rule 5.8), or was lent to a far writer (lending.hpp).
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
  std::uint16_t kept = 0;  // of `held`, those whose value may come back
  std::uint64_t dropped = 0;
  // unbounded: doubles the storage; null where there is no heap
  bool (*grow)(Ring&) noexcept = nullptr;
  // destroys the contents and frees the storage, outside the lock
  void (*discard)(Ring&) noexcept = nullptr;

  // While slots are lent there is room for nobody else.
  static constexpr std::uint32_t kLending = std::uint32_t{1} << 31;  // of `reserved`
  bool lending() const noexcept { return (reserved & kLending) != 0; }
  bool room() const noexcept { return size + held + reserved < capacity; }
  // Free slots, whoever may use them.
  std::uint32_t free() const noexcept { return capacity - size - held - (reserved & ~kLending); }
  T& front() noexcept { return data[head]; }

  void push(T&& v) noexcept {
    std::uint32_t at = head + size;
    if (at >= capacity) at -= capacity;
    ::new (static_cast<void*>(data + at)) T(std::move(v));
    ++size;
  }

  // In front of all that is there: what was taken out by an extended read, and comes back.
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

  // What entered last (rule 1.4, drop_last).
  void pop_last_into(void* slot) noexcept {
    std::uint32_t at = head + size - 1;
    if (at >= capacity) at -= capacity;
    ::new (slot) T(std::move(data[at]));
    data[at].~T();
    --size;
  }

  // Take the contents away (to be destroyed once the lock is released).
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
