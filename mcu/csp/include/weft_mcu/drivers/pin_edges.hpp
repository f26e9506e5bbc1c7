// weft_mcu/drivers/pin_edges.hpp: the changes of a bouncing RP2040 pin, as values of a channel
// (mcu/DRIVERS.md, rule M25).
//
// The first edge raises an interrupt, which turns the pin's interrupt off and posts an event. The
// pin still latches edges. The action of the event checks the latch: if the latch has stayed
// clear since the last check, the level has not changed since then. So a change costs one
// interrupt, however often the contact bounces.
//
//   RESTING ──first edge: on_interrupt()──► BOUNCING ──no edge for `quiet`: look()──► RESTING
//                                            │    ▲                       │
//                                            └────┘ an edge: look()       ▼ no room in the port
//                                                                       REFUSED (looks again)
//
// Invariants
//  1 While the pin RESTS its interrupt is on and the event is idle. In the other states the
//  interrupt is off and the event is queued. Therefore the interrupt can post the event plainly.
//  2 `level_` is the level of the change that the port accepted last, so accepted levels alternate.
#pragma once
#include <utility>

#include "board.h"
#include "weft_mcu/csp_port.hpp"

namespace weft::inline WEFT_ABI::mcu {

// A change of a pin: its new level, and the microsecond of its first edge.
struct PinEdge {
  std::uint32_t time;
  std::uint32_t level;
};

// Writes each change of a pin into a channel once the pin has been quiet. N, a power of two, is the
// maximum number of changes that wait while no process reads.
template <std::uint32_t N = 4>
class PinEdges {
 public:
  // `quiet` is the time without an edge, in us, after which a level counts: 1 to 2^30.
  constexpr PinEdges(Scheduler& s, unsigned pin, std::uint32_t quiet) noexcept
      : port_(s), scheduler_(&s), event_{WEFT_EVENT(&look, s.actor()), this}, pin_(pin),
        quiet_(quiet) {}
  PinEdges(const PinEdges&) = delete;
  PinEdges& operator=(const PinEdges&) = delete;

  // Sets the channel and turns the pin's interrupt on. The pin must be an input already
  // (pin_in_pull_up). Called once, from main or a process, on the core that serves the scheduler;
  // this core receives the interrupts. The level at the time of the call counts as no change.
  void connect(Writer<PinEdge> out) noexcept {
    port_.connect(std::move(out));
    enable_ = IO_BANK0_PROC0_INTE0 + CHIP_PINS_CORE * weft_core() + 4 * (pin_ / 8);
    clear();
    level_ = pin_read(pin_);
    WEFT_REG_SET(enable_) = edges();
    chip_interrupt_on(CHIP_IRQ_PINS);
  }

  // Handles the pin's interrupt; weft_isr_io_bank0 calls this for each of its pins. Does nothing if
  // another pin has raised the interrupt.
  void on_interrupt() noexcept {
    if ((WEFT_REG(enable_ + kStatus) & edges()) == 0) return;
    WEFT_REG_CLR(enable_) = edges();
    clear();
    const std::uint32_t now = weft_now32();
    WEFT_POKE(time_, now);
    (void)weft_post(scheduler_->queue(), &event_, now + quiet_);
  }

  // Turns the pin's interrupt off and ends the stream of values. Called from a process of the
  // scheduler. The changes that the port has accepted are still read; later the channel retires.
  void close() noexcept {
    WEFT_REG_CLR(enable_) = edges();
    (void)weft_cancel(scheduler_->queue(), &event_);
    if (std::exchange(refused_, false)) ++lost_;
    port_.close();
  }

  // Returns the number of changes that found no room and that no process will read.
  std::uint32_t lost() const noexcept { return WEFT_PEEK(lost_); }
  // Returns how often edges came but the level was unchanged when the pin was quiet again.
  std::uint32_t glitches() const noexcept { return WEFT_PEEK(glitches_); }

 private:
  // A pin has four bits in INTE, INTS and INTR; the upper two are the edges.
  static constexpr std::uint32_t kStatus = CHIP_PINS_STATUS;
  struct Event : weft_event {
    PinEdges* pin;
  };
  std::uint32_t edges() const noexcept { return 12u << 4 * (pin_ % 8); }
  std::uint32_t latch() const noexcept { return IO_BANK0_INTR0 + 4 * (pin_ / 8); }
  void clear() const noexcept { WEFT_REG(latch()) = edges(); }
  void look_again() noexcept {
    (void)weft_post(scheduler_->queue(), &event_, weft_now32() + quiet_);
  }

  static std::uint32_t look(weft_event* e, std::uint32_t) noexcept {
    PinEdges* p = static_cast<Event*>(e)->pin;
    // The level is read before the latch: an edge in between is seen in the latch.
    const bool level = pin_read(p->pin_);
    if (WEFT_REG(p->latch()) & p->edges()) {
      p->clear();
      p->look_again();
      return WEFT_DONE;
    }
    if (level == p->level_) {
      // If the change before this one was refused, no process will read either of them.
      if (std::exchange(p->refused_, false))
        p->lost_ += 2;
      else
        ++p->glitches_;
    } else if (p->port_.post_value({p->time_, level})) {
      p->level_ = level;
      p->refused_ = false;
    } else {
      if (p->port_.ended()) return WEFT_DONE;  // no process reads: the interrupt stays off
      p->refused_ = true;
      p->look_again();
      return WEFT_DONE;
    }
    // The latch is not cleared here: an edge since the check above raises the interrupt now.
    WEFT_REG_SET(p->enable_) = p->edges();
    return WEFT_DONE;
  }

  Port<PinEdge, N> port_;
  Scheduler* scheduler_;
  Event event_;
  std::uint32_t pin_, quiet_, enable_ = 0, time_ = 0, lost_ = 0, glitches_ = 0;
  bool level_ = false, refused_ = false;
};

}  // namespace weft::mcu
