// weft_mcu/drivers/pwm.hpp: a PWM slice of the RP2040 that a process sets (mcu/DRIVERS.md, rule
// M28).
//
// At each wrap the slice loads the wrap value and the two levels that were written. So the
// driver writes all three only just after a wrap, and they take effect together at the next wrap.
//
//   IDLE ──a setting is read──► WAITING ──wrap: on_interrupt()──► IDLE
//                                │    ▲
//                                └────┘ too late in the period: at the next wrap
//
// Invariants
//  1 The interrupt is on only while a setting waits, and meanwhile the driver reads no other
//  setting. So each setting that was read takes effect for at least one period, unless the settings
//  retire.
//  2 The divider of the clock has no double buffer. So the driver sets it once, before the slice is
//  on. The divider is a whole number, `tick_`, so no period jitters.
#pragma once
#include <utility>

#include "board.h"
#include "weft_mcu/csp_port.hpp"

namespace weft::inline WEFT_ABI::mcu {

// Frequency and duty cycles. A duty cycle is in parts of 65,536: 0 is always low, 65,536 and more
// always high.
struct PwmSetting {
  std::uint32_t hz;  // from the `lowest` of start() to 250,000
  std::uint32_t a, b;
};

// The pins of a slice, and its lowest frequency, which sets the divider of its clock: the lower it
// is, the coarser are the steps of frequency and duty cycle.
struct PwmLine {
  std::uint32_t pins;    // bit n is GPIO n; pin / 2 % 8 is the slice; even pins are A, odd ones B
  std::uint32_t lowest;  // 8 to 250,000 Hz
};

class Pwm {
 public:
  constexpr Pwm(Scheduler& s, unsigned slice) noexcept
      : port_(s), scheduler_(&s), slice_(slice) {}
  Pwm(const Pwm&) = delete;
  Pwm& operator=(const Pwm&) = delete;

  // Begins to read settings. The pins are low until the first one, and low again when the settings
  // have retired. Called once, from main or a process, on the core that serves the scheduler;
  // clk_sys must be CHIP_HZ. Returns WEFT_OK; WEFT_E_ARENA if the process that reads finds no room
  // in the arena (then the end is dropped); or WEFT_E_DRIVER if the slice, its pins or the
  // frequency are not usable, or if it was called before.
  int start(const PwmLine& line, Reader<PwmSetting> in) noexcept {
    bool mine = slice_ < 8 && line.pins != 0 && line.pins >> 30 == 0;
    for (unsigned pin = 0; pin < 30; ++pin)
      if (line.pins >> pin & 1 && pin / 2 % 8 != slice_) mine = false;
    if (!mine || line.lowest < 8 || line.lowest > kHighest)
      return WEFT_MISTAKE(WEFT_E_DRIVER,
                          "a PWM slice that is not 0 to 7, pins that are not its own, or a lowest "
                          "frequency that is not 8 to 250,000 Hz");
    if (started_) return WEFT_MISTAKE(WEFT_E_DRIVER, "a PWM slice is started twice");
    started_ = true;
    pins_ = line.pins;
    lowest_ = line.lowest;
    chip_leave_reset(1u << CHIP_RESET_PWM);
    // A period has at most kPeriod ticks, so that a level above the period also fits in 16 bits.
    tick_ = (kClock / kPeriod + line.lowest) / line.lowest;
    low();
    port_.connect(taken_.writer());
    const int e = scheduler_->start(serve(*scheduler_, this, std::move(in), taken_.reader()));
    if (e != WEFT_OK) port_.close();
    return e;
  }

  // Handles the slices' interrupt; weft_isr_pwm calls this for each slice. Does nothing if another
  // slice has raised it.
  void on_interrupt() noexcept {
    if ((WEFT_REG(PWM_INTS) >> slice_ & 1) == 0) return;
    WEFT_REG(PWM_INTR) = 1u << slice_;
    if (reg(kCounter) + margin_ > reg(kTop)) return;  // a wrap might come between the writes
    reg(kTop) = top_;
    reg(kLevels) = levels_;
    WEFT_REG_CLR(PWM_INTE) = 1u << slice_;
    (void)port_.post_value(0);
  }

  // Returns the number of settings that were not used, because their frequency is out of range.
  std::uint32_t refused() const noexcept { return WEFT_PEEK(refused_); }

 private:
  static constexpr std::uint32_t
    kClock = CHIP_HZ, kPeriod = 65535, kHighest = 250000, kLate = 80,  // cycles
    kDivider = 0x04, kCounter = 0x08, kLevels = 0x0c, kTop = 0x10;       // of a slice
  decltype(WEFT_REG(0)) reg(std::uint32_t offset) const noexcept {
    return WEFT_REG(PWM_CH0_CSR + 0x14 * slice_ + offset);
  }
  // Makes the pins low outputs, and turns the slice off.
  void low() noexcept {
    for (unsigned pin = 0; pin < 30; ++pin)
      if (pins_ >> pin & 1) {
        pin_low(pin);
        pin_out(pin);
      }
    reg(0) = 0;
  }
  // Turns the slice on. A slice that is off drives its pins by its levels too, so the levels are 0
  // until the slice has its pins.
  void on() noexcept {
    margin_ = kLate / tick_ + 1;
    reg(kDivider) = tick_ << 4;
    reg(kCounter) = 0;
    reg(kTop) = top_;
    reg(kLevels) = 0;
    for (unsigned pin = 0; pin < 30; ++pin)
      if (pins_ >> pin & 1) chip_pin(pin, 4);
    reg(kLevels) = levels_;
    reg(0) = 1;
  }
  // Computes the registers of a setting. Returns false if its frequency is out of range.
  bool take(const PwmSetting& s) noexcept {
    if (s.hz < lowest_ || s.hz > kHighest) return false;
    const std::uint32_t ticks = (kClock / tick_ + s.hz / 2) / s.hz;
    const std::uint32_t period = ticks < kPeriod ? ticks : kPeriod;
    const std::uint32_t a = s.a < 65536 ? s.a * period >> 16 : period;
    const std::uint32_t b = s.b < 65536 ? s.b * period >> 16 : period;
    WEFT_POKE(top_, period - 1);
    WEFT_POKE(levels_, b << 16 | a);
    return true;
  }

  static Process serve(Scheduler&, Pwm* p, Reader<PwmSetting> in,
                       Reader<std::uint8_t> taken) noexcept {
    PwmSetting setting;
    std::uint8_t token;
    bool on = false;
    while (co_await in.read(setting) == Status::ok) {
      if (!p->take(setting)) {
        WEFT_POKE(p->refused_, p->refused_ + 1);
        (void)WEFT_MISTAKE(0, "a PWM frequency below the lowest of start(), or above 250,000 Hz");
      } else if (!on) {
        p->on();
        on = true;
      } else {
        WEFT_REG(PWM_INTR) = 1u << p->slice_;
        WEFT_REG_SET(PWM_INTE) = 1u << p->slice_;
        chip_interrupt_on(CHIP_IRQ_PWM);
        if (co_await taken.read(token) != Status::ok) break;
      }
    }
    p->low();
    p->port_.close();
  }

  Port<std::uint8_t, 1> port_;
  Channel<std::uint8_t> taken_;
  Scheduler* scheduler_;
  std::uint32_t slice_, pins_ = 0, lowest_ = 0, tick_ = 1, margin_ = 0, top_ = 0, levels_ = 0,
                        refused_ = 0;
  bool started_ = false;
};

}  // namespace weft::mcu
