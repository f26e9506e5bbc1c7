// weft_mcu/drivers/pio.hpp: a state machine of the RP2040's PIO whose FIFOs are channels of words
// (mcu/DRIVERS.md, rule M29).
//
//   program ──► FIFO ──interrupt: on_interrupt()──► Port ──► channel `received` ──► process
//   program ◄── FIFO ◄──send()──────────────────────────────── channel `to_send` ◄── process
//                 └──interrupt, if the FIFO was full──► Port `room` ──► send()
//
// Invariants
//  1 The interrupts follow the state of the FIFOs: "not empty" and "not full". "Not empty" lasts
//  until the FIFO has been read. "Not full" is on only while send() waits for room. So no wake-up
//  is missed.
//  2 One run of the handler takes at most kBurst words.
#pragma once
#include <utility>

#include "board.h"
#include "weft_mcu/csp_port.hpp"

namespace weft::inline WEFT_ABI::mcu {

// A program, and the set-up of its state machine. Jumps, and the wrap in `execctrl`, are written
// for a program at address 0; the driver adds `origin` to them. The program sets the directions of
// its pins.
struct PioSetup {
  const std::uint16_t* program;
  std::uint32_t length, origin;  // in words; `origin` is the place of its first word, 0 to 31
  std::uint32_t pins;            // bit n is GPIO n; these pins are given to the PIO
  std::uint32_t clkdiv, execctrl, shiftctrl, pinctrl;  // as SMn_CLKDIV and so on in the datasheet
};

// N, a power of two, is the maximum number of received words that wait while no process reads.
template <std::uint32_t N = 16>
class Pio {
 public:
  constexpr Pio(Scheduler& s, unsigned index, unsigned machine) noexcept
      : port_(s), room_port_(s), scheduler_(&s), index_(index), machine_(machine) {}
  Pio(const Pio&) = delete;
  Pio& operator=(const Pio&) = delete;

  // Loads the program, and lets the machine run from its first word. The direction
  // of an empty end is not used. Called once, from main or a process, on the core that serves the
  // scheduler. Returns WEFT_OK; WEFT_E_ARENA if the process that sends finds no room in the arena
  // (then both ends are dropped, and the machine does not run); or WEFT_E_DRIVER if there is no
  // such machine, if the program does not fit, or if it was called before.
  int start(const PioSetup& setup, Writer<std::uint32_t> received,
            Reader<std::uint32_t> to_send) noexcept {
    if (index_ > 1 || machine_ > 3 || setup.program == nullptr || setup.length == 0 ||
        setup.origin > 31 || setup.length > 32 - setup.origin || setup.pins >> 30)
      return WEFT_MISTAKE(WEFT_E_DRIVER,
                          "a PIO that is not 0 or 1, a state machine that is not 0 to 3, a program "
                          "that does not fit into 32 words from its origin on, or a pin above 29");
    if (started_) return WEFT_MISTAKE(WEFT_E_DRIVER, "a state machine of a PIO is started twice");
    started_ = true;
    chip_leave_reset(1u << (CHIP_RESET_PIO + index_));
    set_up(setup);
    if (to_send) {
      room_port_.connect(room_.writer());
      const int e = scheduler_->start(send(*scheduler_, this, std::move(to_send), room_.reader()));
      if (e != WEFT_OK) {
        room_port_.close();
        return e;
      }
    }
    if (received) {
      port_.connect(std::move(received));
      WEFT_REG_SET(base() + kEnable) = not_empty();
    }
    chip_interrupt_on(CHIP_IRQ_PIO + 2 * index_);
    WEFT_REG_SET(base()) = 1u << machine_;
    return WEFT_OK;
  }

  // Handles the PIO's interrupt 0; weft_isr_pio0_0 or weft_isr_pio1_0 calls this for each machine.
  // Does nothing if another machine has raised it.
  void on_interrupt() noexcept {
    const std::uint32_t raised = reg(kRaised);
    if (raised & not_full()) {
      WEFT_REG_CLR(base() + kEnable) = not_full();
      (void)room_port_.post_value(0);
    }
    if (!(raised & not_empty())) return;
    std::uint32_t got[kBurst], n = 0;
    while (n < kBurst && !(reg(kStatus) & 1u << (8 + machine_)))
      got[n++] = reg(kReceive + 4 * machine_);
    // The machine has waited to push, or has lost the word that it pushed. The FIFO has room now,
    // so the machine does not set the bit again at once.
    if (reg(kDebug) & 1u << machine_) {
      reg(kDebug) = 1u << machine_;
      WEFT_POKE(stalls_, stalls_ + 1);
    }
    const std::uint32_t put = port_.post_values(got, n);
    if (put == n) return;
    WEFT_POKE(lost_, lost_ + n - put);
    if (port_.ended()) WEFT_REG_CLR(base() + kEnable) = not_empty();  // no process reads any more
  }

  // Ends receiving. Called from a process of the scheduler. A process can still read the words that
  // have been accepted; after them the channel retires. The machine runs on.
  void close() noexcept {
    WEFT_REG_CLR(base() + kEnable) = not_empty();
    port_.close();
  }

  // Returns the number of received words that found no room, or whose channel had ended.
  std::uint32_t lost() const noexcept { return WEFT_PEEK(lost_); }
  // Returns how often the handler found that the machine had met a full FIFO. The machine waits
  // there, or loses the word, as its program says.
  std::uint32_t stalls() const noexcept { return WEFT_PEEK(stalls_); }

 private:
  static constexpr std::uint32_t
    kBurst = 4, kStatus = 0x04, kDebug = 0x08, kSend = 0x10, kReceive = 0x20, kMemory = 0x48,
    kMachine = 0xc8, kEnable = CHIP_PIO_INTE, kRaised = kEnable + 8,  // offsets of registers
    // Offsets of a machine's registers from its first one.
    kExec = 0x04, kShift = 0x08, kInstruction = 0x10, kPins = 0x14;
  std::uint32_t base() const noexcept { return PIO0_CTRL + 0x100000 * index_; }
  decltype(WEFT_REG(0)) reg(std::uint32_t offset) const noexcept {
    return WEFT_REG(base() + offset);
  }
  std::uint32_t not_empty() const noexcept { return 1u << machine_; }
  std::uint32_t not_full() const noexcept { return 0x10u << machine_; }

  void set_up(const PioSetup& setup) noexcept {
    const std::uint32_t origin = setup.origin, own = kMachine + 0x18 * machine_;
    WEFT_REG_CLR(base()) = 1u << machine_;
    for (std::uint32_t i = 0; i < setup.length; ++i) {
      const std::uint32_t word = setup.program[i];
      reg(kMemory + 4 * (origin + i)) = word >> 13 == 0 ? word + origin : word;  // 0 is a jump
    }
    reg(own) = setup.clkdiv;
    reg(own + kExec) = setup.execctrl + (origin << 12 | origin << 7);
    // A change of FJOIN_RX empties both FIFOs.
    reg(own + kShift) = setup.shiftctrl ^ 1u << 31;
    reg(own + kShift) = setup.shiftctrl;
    reg(own + kPins) = setup.pinctrl;
    WEFT_REG_SET(base()) = 0x110u << machine_;  // restart the machine and its clock
    reg(own + kInstruction) = origin;           // jump to the first word
    for (unsigned pin = 0; pin < 30; ++pin)
      if (setup.pins >> pin & 1) chip_pin(pin, 6 + index_);
  }

  static Process send(Scheduler&, Pio* p, Reader<std::uint32_t> in,
                      Reader<std::uint8_t> room) noexcept {
    std::uint32_t word;
    std::uint8_t token;
    while (co_await in.read(word) == Status::ok) {
      if (p->reg(kStatus) & 1u << (16 + p->machine_)) {
        WEFT_REG_SET(p->base() + kEnable) = p->not_full();
        if (co_await room.read(token) != Status::ok) co_return;
      }
      p->reg(kSend + 4 * p->machine_) = word;
    }
    p->room_port_.close();
  }

  Port<std::uint32_t, N> port_;
  Port<std::uint8_t, 1> room_port_;
  Channel<std::uint8_t> room_;
  Scheduler* scheduler_;
  std::uint32_t index_, machine_, lost_ = 0, stalls_ = 0;
  bool started_ = false;
};

}  // namespace weft::mcu
