// weft_mcu/drivers/i2c.hpp: an I²C controller of the RP2040 as master, with transactions as values
// of channels (mcu/DRIVERS.md, rule M26).
//
//   begin(): FIFO ◄──interrupt: give()── the bytes to write, then one command for each byte to read
//            FIFO ──interrupt: take()──► the bytes that were read
//            STOP on the bus, or the loss of it ──interrupt──► over()
//
// Invariants
//  1 At most kDepth read commands are under way, so the receive FIFO never overflows.
//  2 The transmit interrupt is on only while there is a command that the driver may give. A
//  controller that waits for a command holds the clock, so a late interrupt loses nothing.
//  3 One run of the handler takes at most kBurst bytes and gives at most kBurst commands. If more
//  are left, the interrupt comes again: the handler leaves STOP_DET set until the receive FIFO is
//  empty.
#pragma once
#include "weft_mcu/drivers/transactions.hpp"

namespace weft::inline WEFT_ABI::mcu {

// Pins and speed of a bus. The pins must be those of this controller (RP2040 datasheet, table 279).
struct I2cLine {
  unsigned sda, scl;  // GPIO numbers; the driver turns their pull-ups on
  std::uint32_t hz;   // 2,000 to 1,000,000
};

// A request, and its answer: first `write` bytes are written, then `read` bytes are read, with a
// repeated START in between. What was read replaces `bytes` from the first one on.
template <std::uint32_t Bytes = 16>
struct I2cTransfer {
  std::uint16_t address;      // 7 bits, 0x08 to 0x77, without the direction bit
  std::uint16_t write, read;  // at most Bytes each; at least one of them is not 0
  BusStatus status;           // of the answer
  std::uint32_t within;       // us that the transaction may be on the bus, 1 to 2^28
  std::uint8_t bytes[Bytes];
};

template <std::uint32_t Bytes = 16>
class I2c : public Transactions<I2c<Bytes>, I2cTransfer<Bytes>> {
  static_assert(Bytes > 0 && Bytes <= 0xffff, "the counts of an I2cTransfer have 16 bits");
  using Base = Transactions<I2c<Bytes>, I2cTransfer<Bytes>>;

 public:
  using Transfer = I2cTransfer<Bytes>;
  constexpr I2c(Scheduler& s, unsigned index) noexcept
      : Base(s), base_(I2C0_IC_CON + CHIP_BLOCK * index), index_(index) {}

  // Sets the bus up. Called once, from main, on the core that serves the scheduler; clk_sys must be
  // CHIP_HZ. Returns WEFT_OK, or WEFT_E_DRIVER if the pins are not the controller's, the speed is
  // out of range, or the driver has been started already.
  int start(const I2cLine& line) noexcept {
    if (!mine(line.sda, 0) || !mine(line.scl, 1))
      return WEFT_MISTAKE(WEFT_E_DRIVER, "pins that are not SDA and SCL of this I2C controller");
    if (line.hz < 2000 || line.hz > 1000000)
      return WEFT_MISTAKE(WEFT_E_DRIVER, "an I2C speed that is not 2,000 to 1,000,000 Hz");
    if (const int e = this->open(); e != WEFT_OK) return e;
    hz_ = line.hz;
    set_up();
    for (const unsigned pin : {line.sda, line.scl}) {
      WEFT_REG(PADS_BANK0_GPIO0 + 4 * pin) = 0x5a;  // input, Schmitt trigger, pull-up, 4 mA
      chip_pin(pin, 3);
    }
    chip_interrupt_on(CHIP_IRQ_I2C + index_);
    return WEFT_OK;
  }

  // Handles the controller's interrupt; weft_isr_i2c0 or weft_isr_i2c1 calls this.
  void on_interrupt() noexcept {
    const std::uint32_t raised = reg(kStat);
    if (raised == 0) return;  // the interrupt is from before the transaction was given up
    if (raised & kAbort) return aborted();
    const bool all = take();
    if ((raised & kStop) && all) {
      clear(kClearStop);
      reg(kMask) = 0;
      this->over();
    } else {
      give();
    }
  }

 private:
  friend Base;
  static constexpr std::uint32_t
    kDepth = 16, kBurst = 8,
    // Offsets of registers.
    kCon = 0x00, kTar = 0x04, kData = 0x10, kHigh = 0x1c, kLow = 0x20, kStat = 0x2c, kMask = 0x30,
    kRxLevel = 0x38, kTxLevel = 0x3c, kClear = 0x40, kClearAbort = 0x54, kClearStop = 0x60,
    kEnable = 0x6c, kTxCount = 0x74, kRxCount = 0x78, kHold = 0x7c, kSource = 0x80, kSpike = 0xa0,
    // Bits of the interrupts, of the commands, of the abort's source.
    kFull = 1 << 2, kEmpty = 1 << 4, kAbort = 1 << 6, kStop = 1 << 9,
    kRead = 1 << 8, kWithStop = 1 << 9, kRestart = 1 << 10,
    kNoData = 1 << 3, kLost = 1 << 12;
  decltype(WEFT_REG(0)) reg(std::uint32_t offset) const noexcept {
    return WEFT_REG(base_ + offset);
  }
  // Clears a register by reading it.
  void clear(std::uint32_t offset) const noexcept {
    [[maybe_unused]] const std::uint32_t value = reg(offset);
  }
  // SDA is on even pins, SCL on odd ones; pairs of pins belong to controller 0 and 1 in turns.
  bool mine(unsigned pin, unsigned odd) const noexcept {
    return pin < 30 && pin % 2 == odd && pin / 2 % 2 == index_;
  }

  // Resets the controller and sets it up: master, fast mode, repeated START allowed. The low phase
  // is three fifths of a bit; data is held for 300 ns (120 ns above 400 kHz).
  void set_up() noexcept {
    WEFT_REG_SET(RESETS_RESET) = 1u << (CHIP_RESET_I2C + index_);
    chip_leave_reset(1u << (CHIP_RESET_I2C + index_));
    const std::uint32_t bit = (std::uint32_t{CHIP_HZ} + hz_ / 2) / hz_, low = bit * 3 / 5;
    reg(kEnable) = 0;
    reg(kCon) = 1 | 2 << 1 | 1 << 5 | 1 << 6;
    reg(kLow) = low;
    reg(kHigh) = bit - low;
    reg(kSpike) = low < 16 ? 1 : low / 16;
    reg(kHold) = hz_ <= 400000 ? CHIP_HZ / 3300000 + 1 : CHIP_HZ / 8000000 + 1;
    reg(kRxLevel) = kBurst - 1;       // an interrupt at kBurst bytes received
    reg(kTxLevel) = kDepth - kBurst;  // and when there is room for kBurst commands
    reg(kMask) = 0;
  }

  BusStatus check(const Transfer& t) const noexcept {
    if (t.address >= 0x08 && t.address <= 0x77 && t.write <= Bytes && t.read <= Bytes &&
        t.write + t.read != 0 && t.within != 0 && t.within <= 1u << 28)
      return BusStatus::ok;
    return WEFT_MISTAKE(BusStatus::bad_request,
                        "an I2C request without bytes, with too many, with an address that is not "
                        "0x08 to 0x77, or with `within` not 1 to 2^28 us");
  }

  void begin(Transfer& t) noexcept {
    at_ = &t;
    given_ = received_ = 0;
    status_ = BusStatus::ok;
    reg(kEnable) = 0;
    reg(kTar) = t.address;
    clear(kClear);
    reg(kEnable) = 1;
    reg(kMask) = kAbort | kStop | kEmpty | kFull;  // the FIFO is empty: the interrupt comes at once
  }
  BusStatus result() const noexcept { return status_; }
  // Gives up a transaction that has not ended. Afterwards no interrupt comes, and the controller
  // drives neither line.
  void abandon() noexcept { set_up(); }

  void aborted() noexcept {
    const std::uint32_t source = reg(kSource);
    clear(kClearAbort);
    status_ = source & kLost   ? BusStatus::lost_bus
              : source & kNoData ? BusStatus::no_data
                                 : BusStatus::no_address;
    given_ = at_->write + at_->read;
    // A master that has lost the bus makes no STOP.
    reg(kMask) = status_ == BusStatus::lost_bus ? 0 : kStop;
    if (status_ == BusStatus::lost_bus) this->over();
  }
  // Takes at most kBurst received bytes. Returns true if the FIFO had no more.
  bool take() noexcept {
    std::uint32_t n = reg(kRxCount);
    const bool all = n <= kBurst;
    for (n = all ? n : kBurst; n != 0; --n)
      at_->bytes[received_++] = static_cast<std::uint8_t>(reg(kData));
    return all;
  }
  // Gives the controller at most kBurst commands: bytes to write, then reads.
  void give() noexcept {
    const std::uint32_t write = at_->write, total = write + at_->read;
    std::uint32_t given = given_, room = kDepth - reg(kTxCount);
    // With more read commands than this the bytes that are read might find no room in the FIFO.
    const std::uint32_t safe = write + received_ + kDepth, most = safe < total ? safe : total;
    for (room = room < kBurst ? room : kBurst; room != 0 && given < most; --room, ++given)
      reg(kData) = (given < write ? at_->bytes[given] : kRead | (given == write ? kRestart : 0)) |
                   (given + 1 == total ? kWithStop : 0);
    given_ = given;
    if (status_ == BusStatus::ok)
      reg(kMask) = kAbort | kStop | kFull | (given < most ? kEmpty : 0);
  }

  Transfer* at_ = nullptr;
  std::uint32_t base_, index_, hz_ = 0, given_ = 0, received_ = 0;
  BusStatus status_ = BusStatus::ok;
};

}  // namespace weft::mcu
