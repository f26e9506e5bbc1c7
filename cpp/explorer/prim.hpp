// The primitives under exploration: the declarations of weft/prim.hpp, in which every operation is
// a scheduling point.
//
// With -DWEFT_PRIM_HEADER='"…/explorer/prim.hpp"' this header takes the place of the machine's
// primitives, so that the production code itself is explored.
//
// Limits of the exploration: executions are sequentially consistent. Every memory_order is taken as
// seq_cst, so an exploration proves nothing about weaker orders. The usual argument shows that
// acquire and release suffice for locks and the parking word (data under a lock, a wake-up that
// publishes the outcome). core/ready.hpp says why words and ready lists need seq_cst.
// ThreadSanitizer finds plain data races (tests/stress.cpp).
//
// A thread in pause() continues only when another thread has changed some atomic since the thread's
// last check. park() may also end by its time limit at any moment that the explorer chooses (time
// is virtual); it has no other spurious wake-ups.
#pragma once
#include <atomic>  // for std::memory_order
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine.hpp"
#ifndef WEFT_MUTANT
#define WEFT_MUTANT (::weft::explorer::mutant)
#endif

namespace weft::inline WEFT_ABI::prim {

// A store that was made but is not visible to other threads yet, and the fiber that made it.
struct LateStore {
  void* at;
  void (*arrive)(void*) noexcept;
  int by;
};
inline std::vector<LateStore> late_stores;
// Makes the stores of fiber `by` arrive, or those of every fiber if `by` is -1. A store buffer is
// emptied in order, so the model makes all stores of a buffer arrive together.
inline void arrive(int by) noexcept {
  std::erase_if(late_stores, [by](const LateStore& s) {
    if (by >= 0 && s.by != by) return false;
    s.arrive(s.at);
    return true;
  });
}

template <class T>
class atomic {
  using Op = explorer::Op;
  static constexpr std::uint32_t kAlive = 0xA70A11CEu;

 public:
  constexpr atomic() noexcept : v_() {}
  constexpr atomic(T v) noexcept : v_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  constexpr ~atomic() {
    if (std::is_constant_evaluated()) return;  // No lifetime is tracked for a constant.
    alive_ = 0;
    if (!late_stores.empty())
      std::erase_if(late_stores, [this](const LateStore& s) { return s.at == this; });
  }

#define WEFT_EXPLORER_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
  T load(std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) const noexcept {
    before(Op::load, file, line);
    // A thread never sees its own stores late.
    const T v = is_late_ && late_by_ == explorer::engine().current() ? late_ : v_;
    return after(v, v);
  }
  void store(T to, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    before(Op::store, file, line);
    after(std::exchange(v_, to), to);
  }
  // A store that other threads may see late: it arrives at the next store or read-modify-write of
  // the same thread, on any atomic, or at a heavy fence of any thread (light_store below).
  void store_late(T to, WEFT_EXPLORER_SITE) noexcept {
    before(Op::store, file, line);
    explorer::Engine& e = explorer::engine();
    is_late_ = e.current() >= 0 && e.choose(2) != 0;
    late_ = to;
    late_by_ = e.current();
    after(v_, is_late_ ? v_ : to);
    if (is_late_)
      late_stores.push_back(
          {this, [](void* a) noexcept { static_cast<atomic*>(a)->land(); }, late_by_});
    else
      v_ = to;
  }
  T exchange(T to, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    before(Op::exchange, file, line);
    return after(std::exchange(v_, to), to);
  }
  bool compare_exchange_strong(T& expected, T to, std::memory_order = std::memory_order_seq_cst,
                               WEFT_EXPLORER_SITE) noexcept {
    before(Op::cas, file, line);
    const T was = v_;
    if (was == expected) {
      v_ = to;
      after(was, to);
      return true;
    }
    expected = was;
    after(was, was);
    return false;
  }
  bool compare_exchange_weak(T& expected, T to, std::memory_order o = std::memory_order_seq_cst,
                             WEFT_EXPLORER_SITE) noexcept {
    return compare_exchange_strong(expected, to, o, file, line);
  }
  bool compare_exchange_strong(T& expected, T to, std::memory_order o, std::memory_order,
                               WEFT_EXPLORER_SITE) noexcept {
    return compare_exchange_strong(expected, to, o, file, line);
  }
  bool compare_exchange_weak(T& expected, T to, std::memory_order o, std::memory_order,
                             WEFT_EXPLORER_SITE) noexcept {
    return compare_exchange_strong(expected, to, o, file, line);
  }
  T fetch_add(T n, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    before(Op::rmw, file, line);
    const T was = v_;
    v_ = static_cast<T>(was + n);
    return after(was, v_);
  }
  T fetch_sub(T n, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    before(Op::rmw, file, line);
    const T was = v_;
    v_ = static_cast<T>(was - n);
    return after(was, v_);
  }
  T fetch_or(T n, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    before(Op::rmw, file, line);
    const T was = v_;
    v_ = static_cast<T>(was | n);
    return after(was, v_);
  }
  T fetch_and(T n, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    before(Op::rmw, file, line);
    const T was = v_;
    v_ = static_cast<T>(was & n);
    return after(was, v_);
  }

  // The engine's park() calls peek(), which is not a scheduling point.
  T peek() const noexcept { return v_; }

 private:
  void before(Op op, const char* file, int line) const noexcept {
    explorer::Engine& e = explorer::engine();
    e.point(op, this, file, line);
    if (alive_ != kAlive) e.fail("an atomic is used outside its lifetime");
    if ((op != Op::load || e.current() < 0) && !late_stores.empty()) arrive(e.current());
  }
  void land() noexcept {
    is_late_ = false;
    v_ = late_;
  }
  static std::uint64_t bits(T v) noexcept {
    if constexpr (std::is_pointer_v<T>)
      return v ? 1 : 0;  // An address would differ between executions.
    else
      return static_cast<std::uint64_t>(v);
  }
  T after(T was, T is) const noexcept {
    explorer::engine().did(bits(was), bits(is));
    return was;
  }

  T v_;
  T late_{};
  int late_by_ = -1;
  bool is_late_ = false;
  std::uint32_t alive_ = kAlive;
};

inline void pause(unsigned) noexcept { explorer::engine().pause(); }
inline void back_off(unsigned) noexcept { explorer::engine().pause(); }
inline void yield() noexcept {}  // The thread that yields may also be the next to run.
inline std::int64_t now() noexcept { return explorer::engine().now(); }
[[noreturn]] inline void fatal(const char* message) noexcept { explorer::engine().fail(message); }

inline void park(atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t until) noexcept {
  explorer::Engine& e = explorer::engine();
  e.point(explorer::Op::park, &word, "park", 0);
  if (word.peek() != expected) return e.did(word.peek(), word.peek());
  e.park(&word, until, until == forever);
}
// Only the address of `word` is used: as with a futex, the parked thread may have ended already.
inline void unpark(atomic<std::uint32_t>& word) noexcept {
  explorer::Engine& e = explorer::engine();
  e.point(explorer::Op::unpark, &word, "unpark", 0);
  e.unpark(&word);
}

// A lock under which a thread may be preempted: a thread that waits for the lock spins.
class Mutex {
 public:
  void lock() noexcept {
    while (word_.exchange(1) != 0) pause(0);
  }
  bool try_lock() noexcept { return word_.exchange(1) == 0; }
  void unlock() noexcept { word_.store(0); }

 private:
  atomic<std::uint8_t> word_{0};
};

// --- asymmetric fences and biased locks ----------------------------------------------------------
//
// Every fiber has an identity. A light store may arrive late, as from a store buffer, so a missing
// heavy fence is found.

inline constexpr std::uint32_t no_bias = UINT32_MAX;
inline constexpr std::uint8_t bias_streak = 2;
inline constexpr std::uint32_t own_fences = 2;
inline constexpr bool wakes_from_handlers = true;
inline bool asymmetric() noexcept { return true; }
inline void light_fence() noexcept {}  // a light fence alone delays no store
inline std::uint32_t bias_self() noexcept {
  const int fiber = explorer::engine().current();
  return fiber < 0 ? no_bias : static_cast<std::uint32_t>(fiber) + 1;
}
inline void bias_to_this_thread() noexcept {}
template <class T>
inline void light_store(atomic<T>& a, std::type_identity_t<T> v, WEFT_EXPLORER_SITE) noexcept {
  a.store_late(v, file, line);
}
template <class T>
inline void light_release(atomic<T>& a, std::type_identity_t<T> v, WEFT_EXPLORER_SITE) noexcept {
  a.store_late(v, file, line);
}
inline void heavy_fence() noexcept { arrive(-1); }
inline bool bias_allowed() noexcept { return true; }
inline void bias_revoked() noexcept {}
#undef WEFT_EXPLORER_SITE

}  // namespace weft::inline WEFT_ABI::prim
