// The primitives on which everything is built: atomics, pausing, parking.
//
// This is the only header that depends on the machine. With -DWEFT_PRIM_HEADER='"…"' a checker
// replaces the part that depends on the machine by a header that defines the same names. So the
// production code itself runs under schedule exploration, as tokio's code does under loom.
//
// With -DWEFT_NO_FUTEX the standard library's condition variables are used in place of Linux's
// futex, as on every other system.
//
// The names to supply, in weft::prim:
//   atomic<T>                    as std::atomic<T>: load, store, exchange,
//                                compare_exchange_strong, fetch_add, fetch_sub
//   pause(round)                 one round of waiting for another thread's few instructions;
//                                rounds count from 0
//   yield()                      let another thread of this CPU run
//   park(word, expected, until)  sleep while word == expected, until steady time `until` in ns
//                                (forever: no limit); may wake early
//   unpark(word)                 wake the thread that parks on word
//   wakes_from_handlers          whether a signal handler may call unpark()
//   now()                        steady time in ns
//   fatal(message)               print and abort
//   Mutex                        as std::mutex (hosted only)
//   asymmetric()                 whether there is a heavy fence
//   light_fence()                orders what this thread does against a heavy fence only; free
//   light_store(atomic, value)   a relaxed store, then a light fence
//   light_release(atomic, value) a releasing store, then a light fence
//   heavy_fence()                a fence for all threads of the program at once
//
// and for core/biased.hpp, if WEFT_PRIM_BIASED is 1:
//   no_bias, bias_self()         this thread's identity, never another thread's; no_bias: it owns
//                                no lock
//   back_off(round)              like pause(), for a lock that is passed back and forth; longer, so
//                                that its holder can do several operations
//   bias_allowed()               whether a new lock may be biased
//   bias_revoked()               called when a bias had to be taken back
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "config.hpp"

namespace weft::inline WEFT_ABI::prim {
inline constexpr std::int64_t forever = INT64_MAX;

// Atomic access to an object that is not declared atomic.
template <class T>
T load_from(const T& from, std::memory_order o) noexcept {
  return std::atomic_ref(const_cast<T&>(from)).load(o);
}
template <class T>
void store_to(T& to, std::type_identity_t<T> v, std::memory_order o) noexcept {
  std::atomic_ref(to).store(v, o);
}
}  // namespace weft::inline WEFT_ABI::prim

#if defined(WEFT_PRIM_HEADER)
#include WEFT_PRIM_HEADER
#elif __STDC_HOSTED__
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#if WEFT_FUTEX
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#endif

#include <atomic>
#include <chrono>
#include <thread>

namespace weft::inline WEFT_ABI::prim {

template <class T>
using atomic = std::atomic<T>;
// Acts as std::mutex, but is never inlined: an inlined lock() adds code for failure at each use.
class Mutex {
 public:
  [[gnu::noinline]] void lock() noexcept { it_.lock(); }
  [[gnu::noinline]] bool try_lock() noexcept { return it_.try_lock(); }
  [[gnu::noinline]] void unlock() noexcept { it_.unlock(); }

 private:
  std::mutex it_;
};

inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Waits a little. The wait is never a blind spin, since the thread that is waited for might share
// this CPU. (Measured with a blind spin: 1.8 µs became 34–50 µs.)
[[gnu::noinline]] inline void pause(unsigned round) noexcept {
  if (round < 64)
    relax();
  else
    std::this_thread::yield();
}

inline void yield() noexcept { std::this_thread::yield(); }
[[gnu::always_inline]] inline void light_fence() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
template <class T>
[[gnu::always_inline]] inline void light_store(atomic<T>& a, T v) noexcept {
  a.store(v, std::memory_order_relaxed);
  light_fence();
}
template <class T>
[[gnu::always_inline]] inline void light_release(atomic<T>& a, T v) noexcept {
  a.store(v, std::memory_order_release);
  light_fence();
}

inline std::int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

[[noreturn]] inline void fatal(const char* message) noexcept {
  std::fprintf(stderr, "weft: fatal: %s (a defect of Weft: please report it)\n", message);
  std::abort();
}

#if WEFT_FUTEX
inline constexpr bool wakes_from_handlers = true;
inline void park(atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t until) noexcept {
  timespec t{};
  timespec* limit = nullptr;
  if (until != forever) {
    t.tv_sec = until / 1'000'000'000;
    t.tv_nsec = until % 1'000'000'000;
    limit = &t;
  }
  // The bitset form takes an absolute CLOCK_MONOTONIC time, which is the clock of steady_clock
  // here.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, limit, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}
inline void unpark(atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

namespace detail {
inline bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }
}  // namespace detail

inline bool asymmetric() noexcept {
  static const bool works = detail::membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return works;
}
inline void heavy_fence() noexcept {
  // The system call is a full fence for the caller too.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (detail::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // The system call worked in the parent, but a child of a fork might have to register again.
  if (!detail::membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ||
      !detail::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
    fatal(
        "the system call membarrier worked when Weft began, and is refused now: set up a filter of "
        "system calls before Weft is used, which then does without");
}
#else
inline constexpr bool wakes_from_handlers = false;
inline bool asymmetric() noexcept { return false; }
inline void heavy_fence() noexcept {}
// Takes the place of the futex, with the standard library only. It uses condition variables, since
// std::atomic::wait has no time limit. The address of a word selects a condition variable, which
// several words can share, so a thread can wake early. The parking places are never destroyed,
// since threads can park while the program ends.
struct ParkingPlace {
  std::mutex mutex;
  std::condition_variable changed;
  static ParkingPlace& of(const void* word) {
    constexpr std::size_t kPlaces = 64;
    static ParkingPlace* const places = new ParkingPlace[kPlaces];
    return places[(reinterpret_cast<std::uintptr_t>(word) * 0x9E3779B97F4A7C15ull >> 32) % kPlaces];
  }
};
inline void park(atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t until) noexcept {
  ParkingPlace& place = ParkingPlace::of(&word);
  std::unique_lock lock(place.mutex);
  // From here on unpark() waits for the lock, so no wake-up is missed.
  if (word.load(std::memory_order_seq_cst) != expected) return;
  if (until == forever)
    place.changed.wait(lock);
  else
    place.changed.wait_until(lock,
                             std::chrono::steady_clock::time_point(
                                 std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                     std::chrono::nanoseconds(until))));
}
inline void unpark(atomic<std::uint32_t>& word) noexcept {
  ParkingPlace& place = ParkingPlace::of(&word);
  { const std::lock_guard lock(place.mutex); }
  place.changed.notify_all();
}
#endif

// After another thread has visited a lock, the owner passes a fence of its own at each use. This
// many of these fences cost as much as one heavy fence (runtime/asymmetric.hpp).
inline constexpr std::uint32_t own_fences = 500;

// ThreadSanitizer does not know asymmetric fences.
#if WEFT_FUTEX && !defined(WEFT_NO_BIAS) && !WEFT_TSAN
#define WEFT_PRIM_BIASED 1
inline constexpr std::uint32_t no_bias = UINT32_MAX;
inline constexpr std::uint32_t bias_identities_end = (1u << 28) - 1;
// How often in a row one thread must use a lock before the lock is biased to it again. This number
// of uses costs as much as revoking a bias.
inline constexpr std::uint8_t bias_streak = 240;

namespace detail {
inline constinit thread_local std::uint32_t bias_identity = no_bias;
inline atomic<std::uint32_t> bias_identities{0}, biases_given{0}, biases_revoked{0};
}  // namespace detail

// Waits a little, like pause(), for a lock that another CPU is using. Each read of the lock costs
// that CPU a cache miss, and two CPUs that take turns at every operation cost each other several
// misses per operation. The delays sum to 7 µs before the first yield.
inline void back_off(unsigned round) noexcept {
  if (round >= 4) return std::this_thread::yield();
  for (unsigned i = 8u << round; i > 0; --i) relax();
}

[[gnu::always_inline]] inline std::uint32_t bias_self() noexcept { return detail::bias_identity; }

// Allows locks to be biased to the calling thread from now on. The function is meant for threads
// that run many processes. It has no effect if the system has no membarrier.
inline void bias_to_this_thread() noexcept {
  if (detail::bias_identity != no_bias) return;
  const std::uint32_t id =
      asymmetric() ? detail::bias_identities.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
  if (id != 0 && id < bias_identities_end) detail::bias_identity = id;
}

// Returns whether biasing one more lock is allowed. A revocation costs a system call, so after the
// first 64 biases no more are given while more than one in eight has been revoked.
inline bool bias_allowed() noexcept {
  const std::uint32_t given = detail::biases_given.fetch_add(1, std::memory_order_relaxed);
  return detail::biases_revoked.load(std::memory_order_relaxed) <= 8 + given / 8;
}
inline void bias_revoked() noexcept {
  detail::biases_revoked.fetch_add(1, std::memory_order_relaxed);
}
#else
inline void bias_to_this_thread() noexcept {}
#endif

}  // namespace weft::inline WEFT_ABI::prim
#else
// A freestanding system has one core, and no threads unless the platform supplies WEFT_PRIM_HEADER.
namespace weft::inline WEFT_ABI::prim {
template <class T>
using atomic = std::atomic<T>;
inline void pause(unsigned) noexcept {}
[[noreturn]] inline void fatal(const char*) noexcept { __builtin_trap(); }
inline bool asymmetric() noexcept { return false; }
inline void heavy_fence() noexcept {}
template <class T>
inline void light_release(atomic<T>& a, T v) noexcept {
  a.store(v, std::memory_order_release);
}
}  // namespace weft::inline WEFT_ABI::prim
#endif
#ifndef WEFT_PRIM_BIASED
#define WEFT_PRIM_BIASED 0
#endif
