// How a thread waits for another thread or program before it asks the system to put it to sleep.
// This file contains the whole policy; decisions/threads-spin-before-they-sleep.md contains the
// measurements and the reasons.
//
// | a thread waits for             | the peer is    | so the thread               | code      |
// |--------------------------------|----------------|-----------------------------|-----------|
// | any process or timer of a run  | on its CPU     | yields at most 5 times      | GivingWay |
// | room or a value in a buffer    | on another CPU | spins for at most 3 us      | BriefWait |
// | a program, by shared memory    | on another CPU | spins for 20 to 160 us      | SpinTime  |
// |                                | on its CPU     | yields at most 5 times      | GivingWay |
// | bytes of a connection          | anywhere       | yields, polls: 20 to 160 us | Lookout   |
// | a CPU, after it was woken      | –              | has a short time slice      | be_prompt |
//
// BriefWait is for a buffer of the same program: the thread spins before it joins the waiting
// queue. Lookout (wire/lookout.hpp) uses SpinTime and GivingWay; it and be_prompt (wire/prompt.hpp)
// are for the threads of links. The table gives the longest times; after them the thread sleeps.
//
// One rule holds for all rows: if this kind of waiting has not helped, a thread stops using it, and
// tries it again now and then. A thread that owes a wake-up to a peer in another program may put it
// off until it sleeps itself (wire/lazily.hpp).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "../prim.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Tells whether an attempt is worth its time. After `most` failed attempts in a row, only every
// kRetry-th attempt is.
class Worth {
 public:
  explicit constexpr Worth(std::uint8_t most) noexcept : most_(most), left_(most) {}
  bool now() noexcept { return left_ != 0 || ++skipped_ % kRetry == 0; }
  void came() noexcept { left_ = most_; }
  void in_vain() noexcept {
    if (left_ != 0) --left_;
  }
  std::uint8_t left() const noexcept { return left_; }

 private:
  static constexpr std::uint8_t kRetry = 64;
  const std::uint8_t most_;
  std::uint8_t left_;
  std::uint8_t skipped_ = 0;
};

// Before a thread sleeps, it yields to the thread that is to wake it, because the two may share a
// CPU. A hand-over by yielding costs one switch of threads; by sleeping and waking it costs two.
//
//   until() ──it came──► worth it
//      │└──all yields in vain──► one yield fewer the next time ──none left──► only now and then
//      └──the attempt took long──► before the next sleeps the thread does not yield; each time this
//                                  happens, the number of such sleeps is doubled
//
// A yield may give the CPU to another program that computes, for some ms. By the end of these ms,
// what the thread waits for has come, but a sleep would have been a thousand times as quick. So the
// time of an attempt counts as well. Timing every attempt would make every hand-over slower. So one
// attempt of every kTimed is timed, and so is the first attempt after sleeps without yields.
class GivingWay {
 public:
  bool worth_trying() noexcept {
    if (forgone_ == 0) return worth_.now();
    --forgone_;
    return false;
  }
  template <class F>
  bool until(F&& came) noexcept {
    if (tries_++ % kTimed != 0) return yields_until(came);
    const std::int64_t began = prim::now();
    const bool yes = yields_until(came);
    took(prim::now() - began, kTimed);
    return yes;
  }
  // Notes that one attempt took `ns`; that attempt stands for `attempts` attempts. A caller that
  // yields by itself calls took().
  void took(std::int64_t ns, std::uint16_t attempts = 1) noexcept {
    if (ns > kBrief) {
      forgone_ = dear_ = std::min(static_cast<std::uint16_t>(dear_ * 2), kMaxForgone);
      tries_ = 0;
    } else {
      dear_ = dear_ < kFewest + attempts ? kFewest : static_cast<std::uint16_t>(dear_ - attempts);
    }
  }

 private:
  static constexpr std::uint8_t kYields = 4;
  static constexpr std::uint8_t kTimed = 16;
  // In ns. An attempt that took more than this counts as a long one.
  static constexpr std::int64_t kBrief = 100'000;
  // The smallest and the largest number of sleeps before which the thread does not yield.
  static constexpr std::uint16_t kFewest = 64, kMaxForgone = 8'192;

  template <class F>
  bool yields_until(F&& came) noexcept {
    for (unsigned i = 0; i <= worth_.left(); ++i) {
      if (came()) {
        worth_.came();
        return true;
      }
      prim::yield();
    }
    worth_.in_vain();
    return came();
  }

  Worth worth_{kYields};
  std::uint8_t tries_ = 0;
  // How many sleeps go without yields after a long attempt. A brief attempt reduces this number by
  // one.
  std::uint16_t dear_ = kFewest;
  std::uint16_t forgone_ = 0;  // how many of these sleeps are still to come
};

// Returns how many CPUs the program may use, as far as the calling thread can tell; 1 if the thread
// knows only its own CPU.
std::int32_t usable_cpus() noexcept;

// Before a thread begins an operation that would have to sleep, it polls for a moment: a peer on
// another CPU may be about to do what the thread waits for. Meanwhile the thread holds nothing and
// is in no waiting queue. (Each thread in a queue is served and woken separately, so two threads
// that pass values through a buffer would fall into step, with one wake-up for each value.) A
// thread does not poll if more process threads are awake than there are CPUs: the peer might wait
// for this thread's CPU.
class BriefWait {
 public:
  // Polls ready() for a moment. Returns true if ready() became true. Polls are rare, since a poll
  // disturbs the thread on the other CPU.
  template <class F>
  bool until(F&& ready) noexcept {
    if (!worth_.now()) return false;
    if (awake_.load(std::memory_order_relaxed) > cpus()) return false;
    const std::int64_t end = prim::now() + kLongest;
    do {
      for (int i = 0; i < kBetween; ++i) prim::pause(0);
      if (ready()) {
        worth_.came();
        return true;
      }
    } while (prim::now() < end);
    worth_.in_vain();
    return false;
  }

  // one_more() and one_less() count the thread processes that are not asleep.
  static void one_more() noexcept { awake_.fetch_add(1, std::memory_order_relaxed); }
  static void one_less() noexcept { awake_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  static std::int32_t cpus() noexcept {
    static const std::int32_t n = usable_cpus();
    return n;
  }
  static constexpr std::int64_t kLongest = 3'000;  // in ns
  // The number of pauses between two polls: 0.1 to 0.5 us, depending on the machine.
  static constexpr int kBetween = 24;
  static constexpr std::uint8_t kFailures = 8;

  static inline prim::atomic<std::int32_t> awake_{0};
  Worth worth_{kFailures};
};

// How long a thread spins before it sleeps, when a peer on another CPU may answer. Times are in ns.
//
//   now() ──the answer came──► came() ──► kLongest; if answers are steady and 1.5 times the longest
//     │                                     of them is more, then that, up to kAnswer
//     └──it did not──► in_vain() ──► half ──the thread slept: slept()──► if steady, the longest
//
// So a thread whose peer computes for 50 µs each time spins for 50 µs, and the system need not wake
// it. A thread that waits longer sleeps, after kLeast. At every kRetry-th wait it spins for at
// least kLongest: a thread that sleeps cannot tell its peer's time from the time of the wake-up.
class SpinTime {
 public:
  static constexpr std::int64_t kLongest = 20'000, kLeast = 500;
  // Answers are steady if each of the last kSteady came within kAnswer.
  static constexpr std::int64_t kAnswer = 160'000;
  static constexpr std::uint32_t kSteady = 4, kRetry = 32;

  std::int64_t now() noexcept;
  void in_vain() noexcept;
  void came(std::int64_t after) noexcept;
  void slept(std::int64_t after) noexcept;

 private:
  bool is_steady() const noexcept { return near_ == kSteady; }
  void answered(std::int64_t after) noexcept;
  std::int64_t longest() const noexcept;

  std::int64_t ns_ = kLongest;
  std::uint32_t waits_ = 0;
  std::uint32_t near_ = 0;  // answers in a row that came within kAnswer
  std::uint32_t next_ = 0;
  std::array<std::int64_t, kSteady> last_{};
};

}  // namespace weft::inline WEFT_ABI::runtime
