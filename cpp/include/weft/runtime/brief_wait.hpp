// A thread looks out for a moment before it begins an operation that would have to sleep.
//
//   until() ──ready──► the operation goes through; patience restored
//      └──its time is up──► patience less by one ──none left──► only every kRetry-th wait is tried
//
// It holds nothing and is in no line meanwhile: of those in line each is served by itself and
// woken, so that two threads that pass a buffer full of values would fall into step, one wake-up a
// value.
#pragma once
#include "parking.hpp"

namespace weft::inline WEFT_ABI::runtime {

// How many CPUs the program may use, as far as the calling thread can tell; 1: none but ours is
// known.
std::int32_t usable_cpus() noexcept;

// A short look-out of a thread before it sleeps, for a peer on another CPU that is about to do what
// we wait for. Bounded by time and by what it has been worth; none at all where more of the threads
// that use it are awake than there are CPUs: the peer would wait for ours.
class BriefWait {
 public:
  // True: ready() came true. Polled rarely, since a poll disturbs the peer.
  template <class F>
  bool until(F&& ready) noexcept {
    if (patience_ == 0 && ++skipped_ % kRetry != 0) return false;
    if (around_sleep.begin || awake_.load(std::memory_order_relaxed) > cpus()) return false;
    const std::int64_t end = prim::now() + kLongest;
    do {
      for (int i = 0; i < kBetween; ++i) prim::pause(0);
      if (ready()) {
        patience_ = kPatience;
        return true;
      }
    } while (prim::now() < end);
    if (patience_ > 0) --patience_;
    return false;
  }

  // The threads that are processes and not asleep.
  static void one_more() noexcept { awake_.fetch_add(1, std::memory_order_relaxed); }
  static void one_less() noexcept { awake_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  static std::int32_t cpus() noexcept {
    static const std::int32_t n = usable_cpus();
    return n;
  }
  static constexpr std::int64_t kLongest = 3'000;  // ns
  static constexpr int kBetween = 24;              // 0.1 to 0.5 us, as the machine pauses
  static constexpr std::uint8_t kPatience = 8;     // failures in a row
  // waits between two attempts once patience is lost
  static constexpr std::uint8_t kRetry = 64;

  static inline prim::atomic<std::int32_t> awake_{0};
  std::uint8_t patience_ = kPatience;
  std::uint8_t skipped_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
