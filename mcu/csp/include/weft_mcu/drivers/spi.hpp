// weft_mcu/drivers/spi.hpp: an SPI controller of the RP2040 as master, with transactions as values
// of channels (mcu/DRIVERS.md, rule M26).
//
//   begin(): select ──► FIFO ◄──interrupt── the bytes to send
//                       FIFO ──interrupt──► the bytes that came back ──all──► deselect, over()
//
// Invariants
//  1 At most kDepth bytes are under way, so the receive FIFO never overflows, and one run of the
//  handler takes and sends at most kDepth bytes.
//  2 A received byte replaces the byte that was sent for it: received_ <= sent_.
//  3 A part is selected only in a transaction, and one part at a time.
#pragma once
#include "weft_mcu/drivers/transactions.hpp"

namespace weft::inline WEFT_ABI::mcu {

// The pins of a bus. They must be those of this controller (RP2040 datasheet, table 279).
struct SpiLine {
  unsigned sck, tx, rx;   // GPIO numbers; for a bus on which nothing is received, rx is 30
  std::uint32_t selects;  // the chip selects: bit n is GPIO n. Each is set high
};

// A request, and its answer: `count` bytes are sent while the part is selected, and each is
// replaced by the byte that the part has sent meanwhile.
template <std::uint32_t Bytes = 16>
struct SpiTransfer {
  std::uint16_t count;   // 1 to Bytes
  std::uint8_t select;   // GPIO of the part's chip select
  std::uint8_t mode;     // 0 to 3: CPOL in bit 1, CPHA in bit 0
  BusStatus status;      // of the answer
  std::uint32_t hz;      // the clock is the fastest that is not above this; 2,000 to 62,500,000
  std::uint32_t within;  // us that the transaction may be on the bus, 1 to 2^28
  std::uint8_t bytes[Bytes];
};

template <std::uint32_t Bytes = 16>
class Spi : public Transactions<Spi<Bytes>, SpiTransfer<Bytes>> {
  static_assert(Bytes > 0 && Bytes <= 0xffff, "the count of a SpiTransfer has 16 bits");
  using Base = Transactions<Spi<Bytes>, SpiTransfer<Bytes>>;

 public:
  using Transfer = SpiTransfer<Bytes>;
  constexpr Spi(Scheduler& s, unsigned index) noexcept
      : Base(s), base_(SPI0_SSPCR0 + CHIP_BLOCK * index), index_(index) {}

  // Sets the bus up. Called once, from main, on the core that serves the scheduler; clk_peri must
  // be CHIP_HZ. Returns WEFT_OK, or WEFT_E_DRIVER if the pins are not the controller's, if there is
  // no chip select, or if the driver has been started already.
  int start(const SpiLine& line) noexcept {
    if (!mine(line.sck, 2) || !mine(line.tx, 3) || (line.rx != kNone && !mine(line.rx, 0)))
      return WEFT_MISTAKE(WEFT_E_DRIVER, "pins that are not SCK, TX and RX of this SPI controller");
    if (line.selects == 0 || line.selects >> 30 ||
        (line.selects >> line.sck & 1) || (line.selects >> line.tx & 1) ||
        (line.rx != kNone && (line.selects >> line.rx & 1)))
      return WEFT_MISTAKE(WEFT_E_DRIVER,
                          "an SPI bus without a chip select, or with one that is above pin 29, "
                          "or is SCK, TX or RX");
    if (const int e = this->open(); e != WEFT_OK) return e;
    selects_ = line.selects;
    set_up();
    for (unsigned pin = 0; pin < kNone; ++pin)
      if (selects_ >> pin & 1) {
        pin_high(pin);
        pin_out(pin);
      }
    for (const unsigned pin : {line.sck, line.tx, line.rx})
      if (pin != kNone) chip_pin(pin, 1);
    chip_interrupt_on(CHIP_IRQ_SPI + index_);
    return WEFT_OK;
  }

  // Handles the controller's interrupt; weft_isr_spi0 or weft_isr_spi1 calls this.
  void on_interrupt() noexcept {
    if (reg(kRaised) == 0) return;  // the interrupt is from before the transaction was given up
    Transfer& t = *at_;
    reg(kClear) = kTimeout;
    const std::uint32_t count = t.count;
    std::uint32_t received = received_, sent = sent_;
    while (received < sent && (reg(kStatus) & kNotEmpty))
      t.bytes[received++] = static_cast<std::uint8_t>(reg(kData));
    while (sent < count && sent - received < kDepth) reg(kData) = t.bytes[sent++];
    received_ = received;
    sent_ = sent;
    if (received != count) {
      reg(kMask) = kHalf | kTimeout;
      return;
    }
    pin_high(t.select);
    reg(kMask) = 0;
    this->over();
  }

 private:
  friend Base;
  static constexpr unsigned kNone = 30;
  static constexpr std::uint32_t
    kDepth = 8,
    kControl0 = 0x00, kControl1 = 0x04, kData = 0x08, kStatus = 0x0c, kPrescale = 0x10,
    kMask = 0x14, kRaised = 0x1c, kClear = 0x20,        // offsets of registers
    kTimeout = 1 << 1, kHalf = 1 << 2, kRoom = 1 << 3,  // of the interrupts
    kNotEmpty = 1 << 2, kOn = 1 << 1;               // of the status and of control 1
  decltype(WEFT_REG(0)) reg(std::uint32_t offset) const noexcept {
    return WEFT_REG(base_ + offset);
  }
  // Of each four pins the first is RX, the second the controller's own chip select, the third SCK,
  // the fourth TX. Groups of eight pins belong to controller 0 and 1 in turns.
  bool mine(unsigned pin, unsigned role) const noexcept {
    return pin < 30 && pin % 4 == role && pin / 8 % 2 == index_;
  }

  void set_up() noexcept {
    WEFT_REG_SET(RESETS_RESET) = 1u << (CHIP_RESET_SPI + index_);
    chip_leave_reset(1u << (CHIP_RESET_SPI + index_));
    hz_ = 0;
  }
  // Sets the clock to CHIP_HZ ÷ (an even prescaler × a divider of 1 to 256). The smallest prescaler
  // with which the divider fits gives the finest steps.
  void set_clock(std::uint32_t hz) noexcept {
    const std::uint32_t ratio = (std::uint32_t{CHIP_HZ} + hz - 1) / hz;
    std::uint32_t prescale = 2;
    while (prescale * 256 < ratio) prescale += 2;
    divider_ = (ratio + prescale - 1) / prescale;
    reg(kPrescale) = prescale;
    hz_ = hz;
  }

  BusStatus check(const Transfer& t) const noexcept {
    if (t.count != 0 && t.count <= Bytes && t.select < kNone && (selects_ >> t.select & 1) &&
        t.mode < 4 && t.hz >= 2000 && t.hz <= 62500000 && t.within != 0 && t.within <= 1u << 28)
      return BusStatus::ok;
    return WEFT_MISTAKE(BusStatus::bad_request,
                        "an SPI request without bytes or with too many, for a chip select that "
                        "start() was not given, with a mode that is not 0 to 3, with a clock that "
                        "is not 2,000 to 62,500,000 Hz, or with `within` not 1 to 2^28 us");
  }

  void begin(Transfer& t) noexcept {
    at_ = &t;
    sent_ = received_ = 0;
    reg(kControl1) = 0;
    if (t.hz != hz_) set_clock(t.hz);
    reg(kControl0) = (divider_ - 1) << 8 | (t.mode & 1u) << 7 | (t.mode >> 1 & 1u) << 6 | 7;
    reg(kControl1) = kOn;  // the clock rests at the mode's level before the part is selected
    pin_low(t.select);
    reg(kMask) = kRoom;  // the FIFO is empty, so the interrupt comes at once
  }
  BusStatus result() const noexcept { return BusStatus::ok; }
  void abandon() noexcept {
    set_up();
    pin_high(at_->select);
  }

  Transfer* at_ = nullptr;
  std::uint32_t base_, index_, selects_ = 0, hz_ = 0, divider_ = 1, sent_ = 0, received_ = 0;
};

}  // namespace weft::mcu
