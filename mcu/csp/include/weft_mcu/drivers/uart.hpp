// weft_mcu/drivers/uart.hpp: a UART of the RP2040 as two channels of bytes (mcu/DRIVERS.md, rule
// M25).
//
//   line ──► FIFO ──interrupt: on_interrupt()──► Port ──► channel `received` ──► process
//   line ◄── FIFO ◄──send()──────────────────────────────── channel `to_send` ◄── process
//              └──interrupt, if the FIFO was full──► Port `room` ──► send()
//
// Invariants
//  1 The receive interrupts are never cleared by UARTICR: they end when the FIFO has been read.
//  Therefore bytes that one run of the handler leaves in the FIFO raise it again.
//  2 The transmit interrupt is on only while send() waits for room. A FIFO that is full has cleared
//  the interrupt, and one that has drained raises it, even if it drained before the interrupt was
//  on. Therefore send() misses no wake-up.
#pragma once
#include <type_traits>
#include <utility>

#include "board.h"
#include "weft_mcu/csp_port.hpp"

namespace weft::inline WEFT_ABI::mcu {

// Pins and speed of a UART. The pins must be those of this UART (RP2040 datasheet, table 279).
struct UartLine {
  unsigned tx, rx;      // GPIO numbers
  std::uint32_t baud;   // 8 data bits, no parity, one stop bit
};

// Up to eight bytes in one value. A communication of a block costs little more than one of a byte.
struct UartBlock {
  std::uint32_t count;
  std::uint8_t bytes[8];
};

// UART 0 or 1. T is what the channels carry: std::uint8_t or UartBlock. N, a power of two, is the
// maximum number of received values that wait while no process reads.
template <std::uint32_t N = 64, class T = std::uint8_t>
class Uart {
  static constexpr bool kBlocks = std::is_same_v<T, UartBlock>;
  static_assert(kBlocks || std::is_same_v<T, std::uint8_t>,
                "the channels of a Uart carry std::uint8_t or UartBlock");

 public:
  constexpr Uart(Scheduler& s, unsigned index) noexcept
      : port_(s), room_port_(s), scheduler_(&s), base_(UART0_DR + CHIP_BLOCK * index), index_(index) {}
  Uart(const Uart&) = delete;
  Uart& operator=(const Uart&) = delete;

  // Sets the line up, and begins to write what it receives and to send what it reads. For an empty
  // end, that direction is not used. Called once, from main or a process, on the core that serves
  // the scheduler; clk_peri must be CHIP_HZ. Returns WEFT_OK, or WEFT_E_ARENA if the process that
  // sends finds no room in the arena; then both ends are dropped.
  int start(const UartLine& line, Writer<T> received, Reader<T> to_send) noexcept {
    chip_leave_reset(1u << (CHIP_RESET_UART + index_));
    const std::uint32_t divider = (4u * CHIP_HZ + line.baud / 2) / line.baud;  // in 64ths
    reg(kIbrd) = divider >> 6;
    reg(kFbrd) = divider & 63;
    reg(kLcr) = 0x70;  // 8 bits, FIFOs on
    reg(kIfls) = 1 << 3 | 1;  // interrupts at 8 bytes received, and at 8 bytes left to send
    reg(kCr) = 0x301;
    chip_pin(line.tx, 2);
    chip_pin(line.rx, 2);
    if (to_send) {
      room_port_.connect(room_.writer());
      const int e =
          scheduler_->start(send(*scheduler_, this, std::move(to_send), room_.reader()));
      if (e != WEFT_OK) {
        room_port_.close();
        return e;
      }
    }
    if (received) {
      port_.connect(std::move(received));
      WEFT_REG_SET(base_ + kImsc) = kReceive;
    }
    chip_interrupt_on(CHIP_IRQ_UART + index_);
    return WEFT_OK;
  }

  // Handles the UART's interrupt; weft_isr_uart0 or weft_isr_uart1 calls this. One run takes at
  // most 8 bytes from the FIFO; if more are left, the interrupt comes again.
  void on_interrupt() noexcept {
    const std::uint32_t raised = reg(kMis);
    if (raised & kTransmit) {
      WEFT_REG_CLR(base_ + kImsc) = kTransmit;
      (void)room_port_.post_value(0);
    }
    if (!(raised & kReceive)) return;
    if (reg(kRis) & kOverrun) {
      reg(kIcr) = kOverrun;
      WEFT_POKE(overruns_, overruns_ + 1);
    }
    UartBlock got;
    std::uint32_t n = 0;
    for (unsigned left = sizeof got.bytes; left != 0 && !(reg(kFr) & kEmpty); --left) {
      const std::uint32_t data = reg(kDr);
      if ((data & (kBreak | kFraming)) == 0)
        got.bytes[n++] = static_cast<std::uint8_t>(data);
      else if (data & kBreak)
        WEFT_POKE(breaks_, breaks_ + 1);
      else
        WEFT_POKE(framing_, framing_ + 1);
    }
    if (n == 0) return;
    std::uint32_t put;
    if constexpr (kBlocks) {
      got.count = n;
      put = port_.post_value(got) ? n : 0;
    } else {
      put = port_.post_values(got.bytes, n);
    }
    if (put == n) return;
    WEFT_POKE(lost_, lost_ + n - put);
    if (port_.ended()) WEFT_REG_CLR(base_ + kImsc) = kReceive;  // no process reads any more
  }

  // Turns the receiver's interrupts off and ends the stream of bytes. Called from a process of the
  // scheduler. The bytes that have been accepted are still read; later the channel retires. The
  // sender continues until all writer ends of its channel are closed.
  void close() noexcept {
    WEFT_REG_CLR(base_ + kImsc) = kReceive;
    port_.close();
  }

  // Returns the number of bytes that the handler took and that found no room or no open channel.
  std::uint32_t lost() const noexcept { return WEFT_PEEK(lost_); }
  // Returns how often the handler found that bytes had been lost because the FIFO was full. The
  // UART does not count these bytes.
  std::uint32_t overruns() const noexcept { return WEFT_PEEK(overruns_); }
  // Return the number of break conditions, and of bytes without a stop bit, which no process reads.
  std::uint32_t breaks() const noexcept { return WEFT_PEEK(breaks_); }
  std::uint32_t framing_errors() const noexcept { return WEFT_PEEK(framing_); }

 private:
  enum : std::uint32_t {  // offsets of registers, then bits
    kDr = 0, kFr = 0x18, kIbrd = 0x24, kFbrd = 0x28, kLcr = 0x2c, kCr = 0x30, kIfls = 0x34,
    kImsc = 0x38, kRis = 0x3c, kMis = 0x40, kIcr = 0x44,
    kEmpty = 1 << 4, kFull = 1 << 5,                     // of FR
    kFraming = 1 << 8, kBreak = 1 << 10,                 // of DR
    kReceive = 1 << 4 | 1 << 6, kTransmit = 1 << 5, kOverrun = 1 << 10,  // of the interrupts
  };
  decltype(WEFT_REG(0)) reg(std::uint32_t offset) const noexcept {
    return WEFT_REG(base_ + offset);
  }

  static std::uint32_t count(const T& value) noexcept {
    if constexpr (kBlocks)
      return value.count < sizeof value.bytes ? value.count : sizeof value.bytes;
    else
      return 1;
  }
  static std::uint8_t byte(const T& value, [[maybe_unused]] std::uint32_t i) noexcept {
    if constexpr (kBlocks)
      return value.bytes[i];
    else
      return value;
  }
  static Process send(Scheduler&, Uart* u, Reader<T> in, Reader<std::uint8_t> room) noexcept {
    T value;
    std::uint8_t token;
    while (co_await in.read(value) == Status::ok) {
      for (std::uint32_t i = 0; i < count(value); ++i) {
        if (u->reg(kFr) & kFull) {
          WEFT_REG_SET(u->base_ + kImsc) = kTransmit;
          if (co_await room.read(token) != Status::ok) co_return;
        }
        u->reg(kDr) = byte(value, i);
      }
    }
    u->room_port_.close();
  }

  Port<T, N> port_;
  Port<std::uint8_t, 1> room_port_;
  Channel<std::uint8_t> room_;
  Scheduler* scheduler_;
  std::uint32_t base_, index_, lost_ = 0, overruns_ = 0, breaks_ = 0, framing_ = 0;
};

}  // namespace weft::mcu
