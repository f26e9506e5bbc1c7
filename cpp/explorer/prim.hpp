// The primitives under exploration: what weft/prim.hpp declares, with every operation a scheduling point.
//
// Given by -DWEFT_PRIM_HEADER='"…/explorer/prim.hpp"', it takes the place of the machine, so that the production code itself is explored.
//
// What it sees and what it does not. Executions are sequentially consistent: every memory_order is taken as seq_cst. So an exploration
// proves nothing about weaker orders; that acquire and release suffice for locks and the parking word is the usual argument (data under a
// lock, a wake-up that publishes the outcome), that words and ready lists need seq_cst is argued in core/ready.hpp, and plain data races
// are ThreadSanitizer's part (tests/stress.cpp).
//
// pause() is not rescheduled until another thread has changed some atomic since this one last looked. park() may also end by its time
// limit whenever the explorer likes (time is virtual); it has no other spurious wake-ups.
#pragma once
#include <atomic>  // memory_order
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine.hpp"
#ifndef WEFT_MUTANT
#define WEFT_MUTANT (::weft::explorer::mutant)
#endif

namespace weft::prim {

template <class T>
class atomic;
inline std::vector<atomic<std::uint8_t>*> late_stores;  // made and not arrived yet

template <class T>
class atomic {
  using Op = explorer::Op;
  static constexpr std::uint32_t kAlive = 0xA70A11CEu;

 public:
  constexpr atomic() noexcept : v_() {}
  constexpr atomic(T v) noexcept : v_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  ~atomic() {
    alive_ = 0;
    if constexpr (std::is_same_v<T, std::uint8_t>)
      if (!late_stores.empty()) std::erase(late_stores, this);
  }

#define WEFT_EXPLORER_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
  T load(std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) const noexcept {
    before(Op::load, file, line);
    return after(v_, v_);
  }
  void store(T to, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    before(Op::store, file, line);
    after(std::exchange(v_, to), to);
    is_late_ = false;
  }
  // A store that other threads may see late: at the next store here by the same thread, or at anybody's heavy fence (light_store below).
  void store_late(T to, WEFT_EXPLORER_SITE) noexcept {
    before(Op::store, file, line);
    is_late_ = explorer::engine().choose(2) != 0;
    late_ = to;
    after(v_, is_late_ ? v_ : to);
    if (!is_late_) v_ = to;
  }
  void arrive() noexcept {
    if (std::exchange(is_late_, false)) v_ = late_;
  }
  T exchange(T to, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    before(Op::exchange, file, line);
    return after(std::exchange(v_, to), to);
  }
  bool compare_exchange_strong(T& expected, T to, std::memory_order = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
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
  bool compare_exchange_weak(T& expected, T to, std::memory_order o = std::memory_order_seq_cst, WEFT_EXPLORER_SITE) noexcept {
    return compare_exchange_strong(expected, to, o, file, line);
  }
  bool compare_exchange_strong(T& expected, T to, std::memory_order o, std::memory_order, WEFT_EXPLORER_SITE) noexcept {
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

  // For the engine's park(): no scheduling point of its own.
  T peek() const noexcept { return v_; }

 private:
  void before(Op op, const char* file, int line) const noexcept {
    explorer::Engine& e = explorer::engine();
    e.point(op, this, file, line);
    if (alive_ != kAlive) e.fail("an atomic is used outside its lifetime");
  }
  static std::uint64_t bits(T v) noexcept {
    if constexpr (std::is_pointer_v<T>)
      return v ? 1 : 0;  // an address would differ between executions
    else
      return static_cast<std::uint64_t>(v);
  }
  T after(T was, T is) const noexcept {
    explorer::engine().did(bits(was), bits(is));
    return was;
  }

  T v_;
  T late_{};
  bool is_late_ = false;
  std::uint32_t alive_ = kAlive;
};

inline void pause(unsigned) noexcept { explorer::engine().pause(); }
inline void yield() noexcept {}                     // whoever yields may be the next to run as well
inline std::int64_t now() noexcept { return explorer::engine().now(); }
[[noreturn]] inline void fatal(const char* message) noexcept { explorer::engine().fail(message); }

inline void park(atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t until) noexcept {
  explorer::Engine& e = explorer::engine();
  e.point(explorer::Op::park, &word, "park", 0);
  if (word.peek() != expected) return e.did(word.peek(), word.peek());
  e.park(&word, until, until == forever);
}
// Only the address is used: as with a futex, the parker may be gone by now.
inline void unpark(atomic<std::uint32_t>& word) noexcept {
  explorer::Engine& e = explorer::engine();
  e.point(explorer::Op::unpark, &word, "unpark", 0);
  e.unpark(&word);
}

// --- asymmetric fences and biased locks ------------------------------------------------------------------------------------------------
//
// Every fiber has an identity. A light store may arrive late, as from a store buffer: so a heavy fence that is missing is found.

inline constexpr std::uint32_t no_bias = UINT32_MAX;
inline bool asymmetric() noexcept { return true; }
inline void light_fence() noexcept {}  // alone it makes nothing late
inline std::uint32_t bias_self() noexcept { return static_cast<std::uint32_t>(explorer::engine().current()) + 1; }
inline void bias_to_this_thread() noexcept {}
inline void light_store(atomic<std::uint8_t>& a, std::uint8_t v, WEFT_EXPLORER_SITE) noexcept {
  late_stores.push_back(&a);
  a.store_late(v, file, line);
}
inline void heavy_fence() noexcept {
  for (atomic<std::uint8_t>* a : late_stores) a->arrive();
  late_stores.clear();
}
inline bool bias_allowed() noexcept { return true; }
inline void bias_revoked() noexcept {}
#undef WEFT_EXPLORER_SITE

}  // namespace weft::prim
