// weft_mcu/drivers/adc.hpp: the ADC of the RP2040 as a channel of blocks of samples, by DMA with
// two buffers (mcu/DRIVERS.md, rule M27).
//
//   ADC ──FIFO──► DMA channel d ────► buffer 0 ──full: interrupt──► Port ──► channel ──► process
//                  ▲ chain  │ chain                                  │
//                  └── d+1 ◄┘ ──────► buffer 1 ──full───────────────►┘
//
// Invariants
//  1 Each DMA channel writes into its own buffer; its write address wraps at the buffer's end. When
//  the buffer is full, the channel starts the other channel. So no sample depends on the interrupt.
//  2 A buffer is copied only if the other DMA channel still has more than kMargin samples to write.
//  Otherwise the buffer might be overwritten during the copy, and its block counts as lost.
//  3 `next_` is the index of the buffer that is full next. Blocks are numbered in the order in
//  which they were filled, and lost blocks have numbers too.
#pragma once
#include <utility>

#include "board.h"
#include "weft_mcu/csp_port.hpp"

namespace weft::inline WEFT_ABI::mcu {

// What the ADC samples. `inputs`: bits 0 to 3 are pins 26 to 29, bit 4 is the temperature sensor;
// several inputs take turns, the lowest first.
struct AdcLine {
  std::uint32_t inputs;
  std::uint32_t hz;  // samples a second of all inputs together, 733 to 500,000
  unsigned dma;      // the driver takes the DMA channels dma and dma + 1, and the DMA's interrupt 0
};

// Samples in the order in which they were taken. Block n begins with the sample n * Samples.
template <std::uint32_t Samples = 64>
struct AdcBlock {
  std::uint16_t samples[Samples];  // 0 to 4095
  std::uint32_t number;
};

// N, a power of two, is the maximum number of blocks that wait while no process reads.
template <std::uint32_t N = 4, std::uint32_t Samples = 64>
class AdcStream {
  static_assert(Samples >= 8 && Samples <= 64 && (Samples & (Samples - 1)) == 0,
                "a block has 8 to 64 samples, a power of two of them: a larger block would hold "
                "interrupts off for too long");

 public:
  using Block = AdcBlock<Samples>;
  constexpr explicit AdcStream(Scheduler& s) noexcept : port_(s) {}
  AdcStream(const AdcStream&) = delete;
  AdcStream& operator=(const AdcStream&) = delete;

  // Begins to sample. Called once, from main or a process, on the core that serves the scheduler.
  // Turns the USB PLL on for the ADC's clock, if it is off. Returns WEFT_OK, or WEFT_E_DRIVER if
  // the inputs, the rate, the DMA channels or the end are not usable, or if it was called before.
  int start(const AdcLine& line, Writer<Block> out) noexcept {
    if (line.inputs == 0 || line.inputs > 0x1f || line.hz < 733 || line.hz > 500000 ||
        line.dma > 10 || !out)
      return WEFT_MISTAKE(WEFT_E_DRIVER,
                          "ADC inputs that are not bits 0 to 4, a rate that is not 733 to 500,000 "
                          "a second, DMA channels above 11, or an empty writer end");
    if (started_) return WEFT_MISTAKE(WEFT_E_DRIVER, "an AdcStream is started twice");
    started_ = true;
    dma_ = line.dma;
    port_.connect(std::move(out));
    chip_leave_reset(1u << CHIP_RESET_ADC | 1u << CHIP_RESET_DMA);
    clock();
    unsigned first = 0;
    while (!(line.inputs >> first & 1)) ++first;
    for (unsigned input = 0; input < 4; ++input)
      if (line.inputs >> input & 1) {
        WEFT_REG(PADS_BANK0_GPIO0 + 4 * (26 + input)) = 0x80;  // neither input nor output nor pull
        WEFT_REG(IO_BANK0_GPIO0_CTRL + 8 * (26 + input)) = 0x1f;
      }
    const bool several = (line.inputs & (line.inputs - 1)) != 0;
    const std::uint32_t control = (several ? line.inputs << 16 : 0) | first << 12 |
                                  (line.inputs & 0x10 ? kSensor : 0) | kEnable;
    WEFT_REG(ADC_CS) = control;
    while (!(WEFT_REG(ADC_CS) & kReady)) {}
    const std::uint32_t whole = 48000000u / line.hz, rest = 48000000u % line.hz;
    WEFT_REG(ADC_DIV) = (whole - 1) << 8 | rest * 256 / line.hz;
    WEFT_REG(ADC_FCS) = 1u << 24 | kOver | kDreq | 1;  // ask for a transfer at each sample
    for (unsigned half = 0; half < 2; ++half) set_up(half);
    WEFT_REG(DMA_INTS0) = 3u << dma_;
    WEFT_REG_SET(DMA_INTE0) = 3u << dma_;
    chip_interrupt_on(CHIP_IRQ_DMA);
    WEFT_REG(channel(0) + kTrigger) = dma_control(0);
    WEFT_REG(ADC_CS) = control | kMany;
    return WEFT_OK;
  }

  // Handles the DMA's interrupt 0; weft_isr_dma0 calls this. Does nothing if other DMA channels
  // have raised the interrupt.
  void on_interrupt() noexcept {
    const std::uint32_t raised = WEFT_REG(DMA_INTS0) >> dma_ & 3;
    if (raised == 0) return;
    if (raised == 3) lose();  // the older buffer is being filled again
    WEFT_REG(DMA_INTS0) = 1u << dma_ << next_;
    if (WEFT_REG(ADC_FCS) & kOver) {
      WEFT_REG_SET(ADC_FCS) = kOver;
      WEFT_POKE(overruns_, overruns_ + 1);
    }
    if (WEFT_REG(channel(next_ ^ 1) + kCount) <= kMargin) return lose();
    __asm volatile("" ::: "memory");  // the DMA has written the buffer
    buffers_[next_].number = number_;
    if (port_.post_values(&buffers_[next_], 1) == 0) {
      WEFT_POKE(lost_, lost_ + 1);
      if (port_.ended()) stop();  // no process reads any more
    }
    ++number_;
    next_ ^= 1;
  }

  // Stops sampling. Called from a process of the scheduler. A process can still read the blocks
  // that have been accepted; after them the channel retires.
  void close() noexcept {
    stop();
    port_.close();
  }

  // Returns the number of blocks that no process will read: there was no room, or the interrupt was
  // too late for them. (If it was late by more than three blocks, the count is too low.)
  std::uint32_t lost() const noexcept { return WEFT_PEEK(lost_); }
  // Returns how often the interrupt found that the ADC's own FIFO had lost samples.
  std::uint32_t overruns() const noexcept { return WEFT_PEEK(overruns_); }

 private:
  static constexpr std::uint32_t
    kMargin = Samples / 16 + 2,
    kWrite = 0x04, kCount = 0x08, kTrigger = 0x0c, kControl = 0x10,  // of a DMA channel
    kEnable = 1 << 0, kSensor = 1 << 1, kMany = 1 << 3, kReady = 1 << 8,  // of the ADC's CS
    kDreq = 1 << 3, kOver = 1 << 11;                                      // of the ADC's FCS
  // The address of a buffer is a multiple of the size of its samples, so that the write address of
  // the DMA can wrap around them.
  struct alignas(2 * Samples) Buffer : Block {};

  std::uint32_t channel(unsigned half) const noexcept {
    return DMA_CH0_READ_ADDR + 0x40 * (dma_ + half);
  }
  // The control word of a DMA channel. The channel is on. It moves 16 bits at each request of the
  // ADC, from one address to rising addresses that wrap at the end of the buffer. When it has
  // filled the buffer, it starts the other channel.
  std::uint32_t dma_control(unsigned half) const noexcept {
    std::uint32_t bits = 0;
    while (2 * Samples >> bits != 1) ++bits;
    return CHIP_DMA_ADC << CHIP_DMA_REQUEST | (dma_ + (half ^ 1)) << CHIP_DMA_NEXT |
           CHIP_DMA_RING_WRITES | bits << CHIP_DMA_RING | CHIP_DMA_RISING_WRITES | 1u << 2 | 1;
  }
  void set_up(unsigned half) noexcept {
    WEFT_REG(channel(half)) = ADC_FIFO;
    WEFT_REG(channel(half) + kWrite) =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(buffers_[half].samples));
    WEFT_REG(channel(half) + kCount) = Samples;
    WEFT_REG(channel(half) + kControl) = dma_control(half);
  }
  // clk_adc runs from the USB PLL: 48 MHz = 12 MHz * 100 / 5 / 5.
  static void clock() noexcept {
    chip_leave_reset(1u << CHIP_RESET_PLL_USB);
    if (WEFT_REG(PLL_USB_PWR) & 0x29) {
      WEFT_REG(PLL_USB_CS) = 1;
      WEFT_REG(PLL_USB_FBDIV_INT) = 100;
      WEFT_REG_CLR(PLL_USB_PWR) = 0x21;  // power and VCO on
      while (!(WEFT_REG(PLL_USB_CS) & 1u << 31)) {}
      WEFT_REG(PLL_USB_PRIM) = 5u << 16 | 5u << 12;
      WEFT_REG_CLR(PLL_USB_PWR) = 8;  // post-dividers on
    }
    WEFT_REG(CLK_ADC_CTRL) = 1u << 11;
  }
  void lose() noexcept {
    WEFT_REG(DMA_INTS0) = 1u << dma_ << next_;
    WEFT_POKE(lost_, lost_ + 1);
    ++number_;
    next_ ^= 1;
  }
  void stop() noexcept {
    WEFT_REG_CLR(ADC_CS) = kMany;
    WEFT_REG_CLR(DMA_INTE0) = 3u << dma_;
    for (unsigned half = 0; half < 2; ++half) WEFT_REG(channel(half) + kControl) = 0;
    WEFT_REG(DMA_CHAN_ABORT) = 3u << dma_;
  }

  Buffer buffers_[2] = {};
  Port<Block, N> port_;
  std::uint32_t dma_ = 0, next_ = 0, number_ = 0, lost_ = 0, overruns_ = 0;
  bool started_ = false;
};

}  // namespace weft::mcu
