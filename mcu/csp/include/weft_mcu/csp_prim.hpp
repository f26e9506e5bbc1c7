// weft_mcu/csp_prim.hpp: the primitives of weft/prim.hpp for one core of a microcontroller, on
// weft_mcu's platform layer.
//
// The Cortex-M0+ has no atomic instructions. A load or store of a word or less is atomic by itself;
// a read-modify-write turns interrupts off for its few instructions. This keeps out the interrupts
// of this core but not the other core: values that cross cores go through a weft::mcu::Port, whose
// queue has a lock.
//
// Invariant: while interrupts are off no other function is called, so WEFT_LOCAL is never taken
// twice.
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "weft_mcu/platform.h"

namespace weft::inline WEFT_ABI::prim {

template <class T>
class atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 4,
                "an atomic of this platform is a word or less");

 public:
  constexpr atomic(T value = T{}) noexcept : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const noexcept {
    const T v = __atomic_load_n(&value_, __ATOMIC_RELAXED);
    std::atomic_signal_fence(std::memory_order_acquire);
    return v;
  }
  void store(T v, std::memory_order = std::memory_order_seq_cst) noexcept {
    std::atomic_signal_fence(std::memory_order_release);
    __atomic_store_n(&value_, v, __ATOMIC_RELAXED);
  }
  T exchange(T v, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([v](T) { return v; });
  }
  T fetch_add(T n, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([n](T old) { return static_cast<T>(old + n); });
  }
  T fetch_sub(T n, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([n](T old) { return static_cast<T>(old - n); });
  }
  T fetch_or(T bits, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([bits](T old) { return static_cast<T>(old | bits); });
  }
  bool compare_exchange_strong(T& expected, T to, std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) noexcept {
    const T wanted = expected;
    const T was = change([wanted, to](T old) { return old == wanted ? to : old; });
    expected = was;
    return was == wanted;
  }

 private:
  template <class F>
  T change(F f) noexcept {
    const weft_irq_t irq = weft_lock(WEFT_LOCAL);
    const T was = value_;
    value_ = f(was);
    weft_unlock(WEFT_LOCAL, irq);
    return was;
  }
  T value_;
};

// Waits while another party needs only a few instructions. On one core there is nothing to wait
// for, because processes do not preempt each other.
inline void pause(unsigned) noexcept {}
inline void yield() noexcept {}
[[noreturn]] inline void fatal(const char* message) noexcept { weft_panic(message); }

}  // namespace weft::prim
