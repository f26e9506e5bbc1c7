// Before the kernel is asked to put a thread to sleep, whoever is to wake it may run, if it shares
// our CPU: a hand-over by yielding costs one switch of threads, by sleeping and waking two. Only as
// long as it works.
//
//   until() ──it came──► patience restored
//      └──all yields in vain──► patience halved ──none left──► only every kRetry-th sleep is tried
//   took(): it took long──► so many sleeps are without (forgoes()), twice as many each time
#pragma once
#include "../prim.hpp"

namespace weft::inline WEFT_ABI::runtime {

class GivingWay {
 public:
  bool worth_trying() noexcept { return patience_ != 0 || ++skipped_ % kRetry == 0; }
  template <class F>
  bool until(F&& came) noexcept {
    for (unsigned i = 0; i <= patience_; ++i) {
      if (came()) {
        patience_ = kPatience;
        return true;
      }
      prim::yield();
    }
    patience_ /= 2;
    return came();
  }

  // Yields may go to another program that computes, which then has the CPU for some ms: so after an
  // attempt that took long, some sleeps are without one, the more the oftener it happens. Of who
  // says what each took.
  bool forgoes() noexcept {
    if (forgone_ == 0) return false;
    --forgone_;
    return true;
  }
  void took(std::int64_t ns) noexcept {
    if (ns > kBrief)
      forgone_ = dear_ = dear_ < kMostForgone ? static_cast<std::uint16_t>(dear_ * 2) : dear_;
    else if (dear_ > kRetry)
      --dear_;
  }

 private:
  static constexpr std::uint8_t kPatience = 4;  // yields
  static constexpr std::uint8_t kRetry = 64;    // sleeps between two attempts once patience is lost
  static constexpr std::int64_t kBrief = 100'000;  // ns
  // sleeps, which is kRetry doubled seven times
  static constexpr std::uint16_t kMostForgone = 8'192;

  std::uint8_t patience_ = kPatience;
  std::uint8_t skipped_ = 0;
  std::uint16_t dear_ = kRetry;  // how many sleeps the last long attempt cost
  std::uint16_t forgone_ = 0;    // of them, those to come
};

}  // namespace weft::inline WEFT_ABI::runtime
