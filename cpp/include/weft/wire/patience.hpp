// How long it pays to spin before a thread sleeps, where a peer on another CPU may answer
// (attendant.hpp). Times are ns.
//
//   now() ──it came meanwhile──► came() ──► kLongest; of steady answers half as much again as
//     │                                     they took
//     └──► in_vain() ──► half ──slept, then it came: slept()──► of steady answers as long as they took
//
// So who waits for a peer that computes for 50 µs each time spins for that long, and is not woken
// by the system; who waits for longer sleeps, after kLeast. Now and then kLongest is tried all the
// same, since who sleeps cannot tell a peer's time from that of the wake-up.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::wire {

class Patience {
 public:
  static constexpr std::int64_t kLongest = 20'000, kLeast = 500;
  // answers are steady if the last kSteady of them came within kAnswer
  static constexpr std::int64_t kAnswer = 160'000;
  static constexpr std::uint32_t kSteady = 4, kRetry = 32;

  std::int64_t now() noexcept { return ++waits_ % kRetry == 0 ? std::max(ns_, kLongest) : ns_; }
  void in_vain() noexcept { ns_ = std::max(kLeast, ns_ / 2); }
  void came(std::int64_t after) noexcept {
    answered(after);
    ns_ = std::max(kLongest, is_steady() ? std::min(kAnswer, longest() + longest() / 2) : 0);
  }
  void slept(std::int64_t after) noexcept {
    answered(after);
    if (is_steady()) ns_ = std::max(ns_, longest());
  }

 private:
  bool is_steady() const noexcept { return near_ == kSteady; }
  void answered(std::int64_t after) noexcept {
    near_ = after > kAnswer ? 0 : std::min(near_ + 1, kSteady);
    last_[next_++ % kSteady] = after;
  }
  std::int64_t longest() const noexcept { return *std::max_element(last_.begin(), last_.end()); }

  std::int64_t ns_ = kLongest;
  std::uint32_t waits_ = 0;
  std::uint32_t near_ = 0;  // answers in a row that came within kAnswer
  std::uint32_t next_ = 0;
  std::array<std::int64_t, kSteady> last_{};
};

}  // namespace weft::inline WEFT_ABI::wire
