// A waiter that is only an OS thread, which parks on one word. The explorer and the tests of core/
// use this waiter; thread processes wait by runtime/parking.hpp.
//
//   0 ──wake()──► woken       0 ──nudge()──► nudged (by a cancellation or a timer)
//   await() resets the word to 0
#pragma once
#include "waiter.hpp"

namespace weft::inline WEFT_ABI::core {

class Parker : public Waiter {
 public:
  static constexpr std::uint32_t woken = 1;
  static constexpr std::uint32_t nudged = 2;

  Parker() noexcept { ops = &kOps; }
  Parker(const Parker&) = delete;
  Parker& operator=(const Parker&) = delete;

  // Sleeps until the thread is woken (returns true), or until it is nudged or the steady time
  // `until`, in ns, has passed (returns false; a later wake-up is not lost).
  bool await(std::int64_t until = prim::forever) noexcept {
    for (;;) {
      std::uint32_t s = word_.load(std::memory_order_acquire);
      if (s & woken) {
        word_.store(s & ~(woken | nudged), std::memory_order_relaxed);
        return true;
      }
      if (s & nudged) {
        if (word_.compare_exchange_strong(s, 0, std::memory_order_acquire)) return false;
        continue;
      }
      if (until != prim::forever && prim::now() >= until) return false;
      prim::park(word_, 0, until);
    }
  }

  void nudge() noexcept { signal(nudged); }

 private:
  void signal(std::uint32_t bit) noexcept {
    word_.fetch_or(bit, std::memory_order_release);
    prim::unpark(word_);
  }
  static void wake(Waker* w) noexcept { static_cast<Parker*>(w)->signal(woken); }
  static const WakerOps kOps;

  prim::atomic<std::uint32_t> word_{0};
};

inline constexpr WakerOps Parker::kOps{&Parker::wake, nullptr, nullptr, 0};

}  // namespace weft::inline WEFT_ABI::core
