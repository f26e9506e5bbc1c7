// How a thread waits for somebody else before it asks the system to sleep. This is the whole policy;
// figures and reasons are in DECISIONS.md.
//
// | a thread waits                          | the other side    | so it                 | at most     | by            |
// |-----------------------------------------|-------------------|-----------------------|-------------|---------------|
// | in a run, for any process or timer      | shares its CPU    | yields the CPU        | 5 yields    | GivingWay     |
// | at a full or empty buffer of its program| has another CPU   | spins outside the line| 3 us        | BriefWait     |
// | for another program, by shared memory   | has another CPU   | spins at the rings    | 20 to 160 us| SpinTime      |
// |                                         | shares its CPU    | yields the CPU        | 5 yields    | GivingWay     |
// | for bytes of a connection (link threads)| anywhere          | yields and polls      | 20 to 160 us| SpinTime, GivingWay (wire/lookout.hpp) |
// | for a CPU, once it was woken            | a thread computes | has a short slice     | –           | wire/prompt.hpp |
//
// One rule holds for all of them: a thread goes without as soon as waiting so has not been worth it,
// and tries again now and then. A thread that has woken a peer of another program rings only when it
// sleeps itself (wire/lazily.hpp).
#pragma once
#include <array>
#include <cstdint>

#include "../prim.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Is it worth trying? After so many attempts in vain, in a row, only at every kRetry-th wait.
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

// Before the system is asked to put a thread to sleep, whoever is to wake it may run, if it shares
// our CPU: a hand-over by yielding costs one switch of threads, by sleeping and waking two.
//
//   until() ──it came──► worth it
//      └──all yields in vain──► one yield fewer the next time ──none left──► only now and then
//   took(): it took long──► so many sleeps are without (forgoes()), twice as many each time
class GivingWay {
 public:
  bool worth_trying() noexcept { return worth_.now(); }
  template <class F>
  bool until(F&& came) noexcept {
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

  // Yields may go to another program that computes, which then has the CPU for some ms: so after an
  // attempt that took long, some sleeps are without one, the more the oftener it happens. For
  // callers that say what each took.
  bool forgoes() noexcept {
    if (forgone_ == 0) return false;
    --forgone_;
    return true;
  }
  void took(std::int64_t ns) noexcept {
    if (ns > kBrief)
      forgone_ = dear_ = dear_ < kMostForgone ? static_cast<std::uint16_t>(dear_ * 2) : dear_;
    else if (dear_ > kFewest)
      --dear_;
  }

 private:
  static constexpr std::uint8_t kYields = 4;
  static constexpr std::int64_t kBrief = 100'000;                     // ns
  static constexpr std::uint16_t kFewest = 64, kMostForgone = 8'192;  // sleeps

  Worth worth_{kYields};
  std::uint16_t dear_ = kFewest;  // how many sleeps the last long attempt cost
  std::uint16_t forgone_ = 0;     // of them, those to come
};

// How many CPUs the program may use, as far as the calling thread can tell; 1: none but ours is
// known.
std::int32_t usable_cpus() noexcept;

// A thread looks out for a moment before it begins an operation that would have to sleep, for a peer
// on another CPU that is about to do what it waits for. It holds nothing and is in no line
// meanwhile: of those in line each is served by itself and woken, so that two threads that pass a
// buffer full of values would fall into step, one wake-up a value. None at all where more of the
// threads that use it are awake than there are CPUs: the peer would wait for ours.
class BriefWait {
 public:
  // True: ready() came true. Polled rarely, since a poll disturbs the peer.
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
  static constexpr std::uint8_t kFailures = 8;

  static inline prim::atomic<std::int32_t> awake_{0};
  Worth worth_{kFailures};
};

// How long it pays to spin before a thread sleeps, where a peer on another CPU may answer. Times are
// ns.
//
//   now() ──it came meanwhile──► came() ──► kLongest; of steady answers half as much again as
//     │                                     they took
//     └──► in_vain() ──► half ──slept, then it came: slept()──► of steady answers as long as they took
//
// So who waits for a peer that computes for 50 µs each time spins for that long, and is not woken
// by the system; who waits for longer sleeps, after kLeast. Now and then kLongest is tried all the
// same, since who sleeps cannot tell a peer's time from that of the wake-up.
class SpinTime {
 public:
  static constexpr std::int64_t kLongest = 20'000, kLeast = 500;
  // answers are steady if the last kSteady of them came within kAnswer
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
