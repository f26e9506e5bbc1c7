// An atomic number, pointer or truth value of hosted systems: as std::atomic<T>, whose operations
// the compilers' builtins are, but each is one function in place of three, and a type has fifteen
// members in place of ninety. Every file that includes weft.hpp uses a dozen such types at some
// three hundred places.
#pragma once
#include <atomic>
#include <type_traits>

#include "config.hpp"

namespace weft::inline WEFT_ABI::prim {

using Order = std::memory_order;

template <class T>
class HostedAtomic {
 public:
  constexpr HostedAtomic() noexcept : v_() {}
  constexpr HostedAtomic(T v) noexcept : v_(v) {}
  HostedAtomic(const HostedAtomic&) = delete;
  HostedAtomic& operator=(const HostedAtomic&) = delete;

  [[gnu::always_inline]] T load(Order o = Order::seq_cst) const noexcept {
    return __atomic_load_n(&v_, static_cast<int>(o));
  }
  [[gnu::always_inline]] void store(T v, Order o = Order::seq_cst) noexcept {
    __atomic_store_n(&v_, v, static_cast<int>(o));
  }
  [[gnu::always_inline]] T operator=(T v) noexcept {
    store(v);
    return v;
  }
  [[gnu::always_inline]] T exchange(T v, Order o = Order::seq_cst) noexcept {
    return __atomic_exchange_n(&v_, v, static_cast<int>(o));
  }
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T v,
                                                      Order o = Order::seq_cst) noexcept {
    return compare_exchange_strong(expected, v, o, of_failure(o));
  }
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T v, Order o,
                                                      Order failed) noexcept {
    return __atomic_compare_exchange_n(&v_, &expected, v, false, static_cast<int>(o),
                                       static_cast<int>(failed));
  }
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T v,
                                                    Order o = Order::seq_cst) noexcept {
    return compare_exchange_weak(expected, v, o, of_failure(o));
  }
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T v, Order o,
                                                    Order failed) noexcept {
    return __atomic_compare_exchange_n(&v_, &expected, v, true, static_cast<int>(o),
                                       static_cast<int>(failed));
  }
  // Of numbers.
  [[gnu::always_inline]] T fetch_add(T n, Order o = Order::seq_cst) noexcept {
    return __atomic_fetch_add(&v_, n, static_cast<int>(o));
  }
  [[gnu::always_inline]] T fetch_sub(T n, Order o = Order::seq_cst) noexcept {
    return __atomic_fetch_sub(&v_, n, static_cast<int>(o));
  }
  [[gnu::always_inline]] T fetch_or(T bits, Order o = Order::seq_cst) noexcept {
    return __atomic_fetch_or(&v_, bits, static_cast<int>(o));
  }
  [[gnu::always_inline]] T fetch_and(T bits, Order o = Order::seq_cst) noexcept {
    return __atomic_fetch_and(&v_, bits, static_cast<int>(o));
  }

 private:
  // Of an exchange that fails, which stores nothing.
  [[gnu::always_inline]] static constexpr Order of_failure(Order o) noexcept {
    return o == Order::acq_rel ? Order::acquire : o == Order::release ? Order::relaxed : o;
  }
  alignas(sizeof(T) > alignof(T) ? sizeof(T) : alignof(T)) T v_;
};

// An object that is no atomic, used as one: as std::atomic_ref.
template <class T>
[[gnu::always_inline]] inline T load_from(const T& from, Order o) noexcept {
  return __atomic_load_n(&from, static_cast<int>(o));
}
template <class T>
[[gnu::always_inline]] inline void store_to(T& to, std::type_identity_t<T> v, Order o) noexcept {
  __atomic_store_n(&to, v, static_cast<int>(o));
}

}  // namespace weft::inline WEFT_ABI::prim
