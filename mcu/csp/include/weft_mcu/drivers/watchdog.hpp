// weft_mcu/drivers/watchdog.hpp: the RP2040's watchdog, fed while each of the named processes shows
// that it lives (mcu/DRIVERS.md, rule M25).
//
//   FEEDING ──all were alive in time: look()──► FEEDING
//      │ └──one was silent for too long: look()──► STARVING ──at most 2 periods──► reset
//      └──look() does not run, because a process holds the scheduler──────────────► reset
//
// Invariants
//  1 Only look() feeds the watchdog, and only in the state FEEDING. No transition leads back from
//    STARVING.
//  2 While FEEDING the scratch registers say that the scheduler is to blame; look() writes the
//  process's number there before it starves the watchdog. The registers keep this through the reset.
#pragma once
#include "board.h"
#include "weft_mcu/csp_scheduler.hpp"

namespace weft::inline WEFT_ABI::mcu {

// A process that must show that it lives, at least every `within` us (at most 2^30).
struct Life {
  const char* name;
  std::uint32_t within;
};

// Watches N processes, which call alive(), and feeds the watchdog every `period` us.
template <std::uint32_t N>
class Watchdog {
 public:
  // `period` is 1 to 4,000,000 us. The array is copied; the names must live as long as the program.
  constexpr Watchdog(Scheduler& s, std::uint32_t period, const Life (&lives)[N]) noexcept
      : scheduler_(&s), event_{WEFT_EVENT(&look, s.actor()), this}, period_(period) {
    for (std::uint32_t i = 0; i < N; ++i) lives_[i] = {lives[i], 0, true};
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Starts the watchdog, which no call stops. Every process counts as alive now. Called once.
  void start() noexcept {
    const std::uint32_t now = weft_now32();
    for (Watched& w : lives_) w.last = now;
    WEFT_REG(kScratch) = kMagic;
    WEFT_REG(kScratch + 4) = N;
    WEFT_REG_CLR(kCtrl) = kEnable;
    WEFT_REG(CHIP_PSM_WDSEL) = CHIP_WDSEL_ALL;  // a reset of everything but the two oscillators
    feed();
    WEFT_REG_SET(kCtrl) = kEnable;
    (void)weft_post(scheduler_->queue(), &event_, now + period_);
  }

  // Notes that process i, from 0 on, is alive. May be called in any context, on either core.
  void alive(std::uint32_t i) noexcept {
    const std::uint32_t now = weft_now32();
    WEFT_POKE(lives_[i].last, now);
  }
  // Ends the watch of process i, which calls this before it ends. A process that ends without this
  // call counts as silent.
  void leave(std::uint32_t i) noexcept { WEFT_POKE(lives_[i].watched, false); }

  // Returns the name of the process that is silent, or nullptr. Once a name is returned, the reset
  // follows within two periods.
  const char* silent() const noexcept {
    const std::uint32_t i = WEFT_PEEK(silent_);
    return i < N ? lives_[i].life.name : nullptr;
  }
  // Returns the name of the process whose silence caused the last reset, "the scheduler" if no call
  // of look() was in time, or nullptr if the last reset had another cause. Called before start().
  const char* reset_by() const noexcept {
    if (WEFT_REG(kScratch) != kMagic || (WEFT_REG(kReason) & 1) == 0) return nullptr;
    const std::uint32_t i = WEFT_REG(kScratch + 4);
    return i < N ? lives_[i].life.name : "the scheduler";
  }

 private:
  enum : std::uint32_t {
    kCtrl = CHIP_WATCHDOG, kLoad = kCtrl + 4, kReason = kCtrl + 8, kScratch = kCtrl + 12,
    kEnable = 1u << 30, kMagic = 0x57454654,
  };
  struct Event : weft_event {
    Watchdog* dog;
  };
  struct Watched {
    Life life;
    std::uint32_t last;
    bool watched;
  };
  // The watchdog's counter is set to two periods.
  void feed() const noexcept { WEFT_REG(kLoad) = 2 * CHIP_WATCHDOG_STEPS * period_; }

  static std::uint32_t look(weft_event* e, std::uint32_t) noexcept {
    Watchdog* d = static_cast<Event*>(e)->dog;
    for (std::uint32_t i = 0; i < N; ++i) {
      const Watched& w = d->lives_[i];
      // `last` is read before the clock, so `last` is never later than the clock's time.
      const std::uint32_t last = WEFT_PEEK(w.last);
      if (!WEFT_PEEK(w.watched) || weft_now32() - last <= w.life.within) continue;
      WEFT_POKE(d->silent_, i);
      WEFT_REG(kScratch + 4) = i;
      return WEFT_DONE;
    }
    d->feed();
    (void)weft_post(d->scheduler_->queue(), &d->event_, weft_now32() + d->period_);
    return WEFT_DONE;
  }

  Scheduler* scheduler_;
  Event event_;
  std::uint32_t period_, silent_ = N;
  Watched lives_[N] = {};
};

}  // namespace weft::mcu
