// drivers.cpp: the drivers (rules M25 to M29) on ports/rp2350, against a fake of the registers. The
// addresses, bits and interrupts that the test expects are those of the pico-sdk's headers; the
// drivers' own are in ports/rp2350/chip.h and rp2350_regs.h.
//
// The fake keeps what was written, with the aliases that set, clear and toggle bits. An access to a
// block that is in reset, and one to no block, counts as a mistake. A UART and an SPI move bytes.
#include <stdint.h>
#include <stdio.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace fake {
uint32_t read(uint32_t address);
void write(uint32_t address, uint32_t value);
struct Register {
  uint32_t address;
  operator uint32_t() const { return read(address); }
  void operator=(uint32_t value) const { write(address, value); }
};
}  // namespace fake
#define WEFT_REG(address) \
  (fake::Register { static_cast<uint32_t>(address) })

#include "board.h"
#include "hardware/regs/adc.h"
#include "hardware/regs/addressmap.h"
#include "hardware/regs/clocks.h"
#include "hardware/regs/dma.h"
#include "hardware/regs/dreq.h"
#include "hardware/regs/i2c.h"
#include "hardware/regs/intctrl.h"
#include "hardware/regs/io_bank0.h"
#include "hardware/regs/pads_bank0.h"
#include "hardware/regs/pio.h"
#include "hardware/regs/pll.h"
#include "hardware/regs/psm.h"
#include "hardware/regs/pwm.h"
#include "hardware/regs/resets.h"
#include "hardware/regs/sio.h"
#include "hardware/regs/spi.h"
#include "hardware/regs/uart.h"
#include "hardware/regs/watchdog.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/adc.hpp"
#include "weft_mcu/drivers/i2c.hpp"
#include "weft_mcu/drivers/pin_edges.hpp"
#include "weft_mcu/drivers/pio.hpp"
#include "weft_mcu/drivers/pwm.hpp"
#include "weft_mcu/drivers/spi.hpp"
#include "weft_mcu/drivers/uart.hpp"
#include "weft_mcu/drivers/watchdog.hpp"

using namespace weft;
using namespace weft::mcu;

// ---- the fake -----------------------------------------------------------------------------------
namespace fake {
struct Block {
  uint32_t base, size;
  int reset;  // its bit in RESETS, or -1
};
const Block kBlocks[] = {
  {UART0_BASE, 0x4000, RESETS_RESET_UART0_LSB}, {UART1_BASE, 0x4000, RESETS_RESET_UART1_LSB},
  {SPI0_BASE, 0x4000, RESETS_RESET_SPI0_LSB},   {I2C0_BASE, 0x4000, RESETS_RESET_I2C0_LSB},
  {ADC_BASE, 0x4000, RESETS_RESET_ADC_LSB},     {PWM_BASE, 0x4000, RESETS_RESET_PWM_LSB},
  {DMA_BASE, 0x4000, RESETS_RESET_DMA_LSB},     {PIO0_BASE, 0x4000, RESETS_RESET_PIO0_LSB},
  {PLL_USB_BASE, 0x4000, RESETS_RESET_PLL_USB_LSB},
  {RESETS_BASE, 0x4000, -1},     {IO_BANK0_BASE, 0x4000, RESETS_RESET_IO_BANK0_LSB},
  {PADS_BANK0_BASE, 0x4000, RESETS_RESET_PADS_BANK0_LSB}, {WATCHDOG_BASE, 0x4000, -1},
  {PSM_BASE, 0x4000, -1},        {CLOCKS_BASE, 0x4000, -1},
  {SIO_BASE, 0x1000, -1},        {PPB_BASE + 0xe000, 0x1000, -1},
};
constexpr uint32_t kEnabled = PPB_BASE + 0xe100;  // NVIC_ISER: a 1 turns an interrupt on
std::map<uint32_t, uint32_t> words;
std::vector<std::string> mistakes;
std::deque<uint32_t> uart_in, uart_out, spi_in;

const Block* block(uint32_t address) {
  for (const Block& b : kBlocks)
    if (address >= b.base && address < b.base + b.size) return &b;
  return nullptr;
}
bool usable(uint32_t address) {
  const Block* b = block(address);
  if (b && (b->reset < 0 || !(words[RESETS_BASE] >> b->reset & 1))) return true;
  char text[80];
  snprintf(text, sizeof text, "0x%08x is %s", address, b ? "in a block in reset" : "in no block");
  mistakes.push_back(text);
  return false;
}
uint32_t read(uint32_t address) {
  if (!usable(address)) return 0;
  if (address == RESETS_BASE + RESETS_RESET_DONE_OFFSET) return ~words[RESETS_BASE];
  if (address == ADC_BASE + ADC_CS_OFFSET) return words[address] | ADC_CS_READY_BITS;
  if (address == PLL_USB_BASE + PLL_CS_OFFSET)
    return words[PLL_USB_BASE + PLL_PWR_OFFSET] & (PLL_PWR_PD_BITS | PLL_PWR_VCOPD_BITS)
             ? 0 : PLL_CS_LOCK_BITS;
  if (address == UART1_BASE + UART_UARTFR_OFFSET)
    return uart_in.empty() ? UART_UARTFR_RXFE_BITS : 0;
  if (address == UART1_BASE + UART_UARTMIS_OFFSET)
    return uart_in.empty() ? 0 : UART_UARTMIS_RXMIS_BITS;
  if (address == SPI0_BASE + SPI_SSPSR_OFFSET)
    return SPI_SSPSR_TNF_BITS | (spi_in.empty() ? 0 : SPI_SSPSR_RNE_BITS);
  if (address == SPI0_BASE + SPI_SSPMIS_OFFSET) return words[SPI0_BASE + SPI_SSPIMSC_OFFSET];
  for (auto [data, from] : {std::pair{UART1_BASE + UART_UARTDR_OFFSET, &uart_in},
                            {SPI0_BASE + SPI_SSPDR_OFFSET, &spi_in}})
    if (address == data) {
      const uint32_t value = from->front();
      from->pop_front();
      return value;
    }
  return words[address];
}
void write(uint32_t address, uint32_t value) {
  const bool plain = address >= SIO_BASE;  // the SIO and the core's registers have no aliases
  const uint32_t alias = plain ? 0 : address & 0x3000, at = plain ? address : address & ~0x3000u;
  if (!usable(at)) return;
  if (at == UART1_BASE + UART_UARTDR_OFFSET) return uart_out.push_back(value);
  if (at == SPI0_BASE + SPI_SSPDR_OFFSET) return spi_in.push_back(value ^ 0xff);
  uint32_t& word = words[at];
  if (at == kEnabled || at == kEnabled + 4) value |= word;
  if (alias == 0) word = value;
  if (alias == 0x1000) word ^= value;
  if (alias == 0x2000) word |= value;
  if (alias == 0x3000) word &= ~value;
}
}  // namespace fake

// ---- what is checked ----------------------------------------------------------------------------
namespace {
unsigned passed, failed;
void check(const char* what, uint32_t seen, uint32_t wanted) {
  (seen == wanted ? passed : failed)++;
  if (seen != wanted) printf("FAIL %s: 0x%x, not 0x%x\n", what, seen, wanted);
}
uint32_t word(uint32_t address) { return fake::words[address]; }
uint32_t field(uint32_t value, uint32_t bits, uint32_t lsb) { return (value & bits) >> lsb; }
void check_interrupt(const char* what, unsigned irq) {
  uint32_t& enabled = fake::words[fake::kEnabled + 4 * (irq / 32)];
  check(what, enabled >> irq % 32 & 1, 1);
  enabled &= ~(1u << irq % 32);
}
// The pin has the function, its input is on, its output is not disabled, it is not isolated.
void check_pin(const char* what, unsigned pin, uint32_t function) {
  check(what, word(IO_BANK0_BASE + IO_BANK0_GPIO0_CTRL_OFFSET + 8 * pin), function);
  check(what, word(PADS_BANK0_BASE + PADS_BANK0_GPIO0_OFFSET + 4 * pin) &
                (PADS_BANK0_GPIO0_ISO_BITS | PADS_BANK0_GPIO0_OD_BITS | PADS_BANK0_GPIO0_IE_BITS),
        PADS_BANK0_GPIO0_IE_BITS);
}

constinit weft_queue events{};
constinit Arena<16384> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Uart<16> uart{scheduler, 1};
constinit Spi<8> spi{scheduler, 0};
constinit I2c<8> wire{scheduler, 0};
constinit AdcStream<2, 8> adc{scheduler};
constinit Pwm pwm{scheduler, 4};
constinit Pio<4> pio{scheduler, 0, 2};
constinit PinEdges<4> pins{scheduler, 17, 1000};
constinit Watchdog<1> dog{scheduler, 100000, {{"all", 1u << 30}}};
constinit Channel<std::uint8_t> received, to_send;
constinit Channel<Spi<8>::Transfer> to_spi, from_spi;
constinit Channel<I2c<8>::Transfer> to_wire, from_wire;
constinit Channel<AdcBlock<8>> blocks;
constinit Channel<PwmSetting> settings;
constinit Channel<std::uint32_t> to_pio;
constinit Channel<PinEdge> edges;
constexpr std::uint16_t kProgram[] = {0x6020, 0x0000};  // out x, 32; jmp 0

Process all(Scheduler&, Reader<std::uint8_t> in, Writer<std::uint8_t> out,
            Writer<Spi<8>::Transfer> ask, Reader<Spi<8>::Transfer> answer, Writer<PwmSetting> set,
            Writer<std::uint32_t> words, Reader<PinEdge> changes) {
  std::uint8_t byte = 0;
  fake::uart_in = {'a', 'b', 'c'};
  uart.on_interrupt();
  for (char wanted : {'a', 'b', 'c'}) {
    (void)co_await in.read(byte);
    check("M25: a byte that the UART received", byte, static_cast<std::uint8_t>(wanted));
    (void)co_await out.write(static_cast<std::uint8_t>(byte + 1));
  }
  // The process that sends takes its next step before this process resumes.
  co_await sleep_until(weft_now32() + 1);
  check("M25: bytes sent", fake::uart_out.size(), 3);
  check("M25: the last of them", fake::uart_out.back(), 'd');

  Spi<8>::Transfer job{.count = 3, .select = 17, .mode = 3, .status = {}, .hz = 1000000,
                       .within = 1000, .bytes = {1, 2, 3}};
  (void)co_await ask.write(job);
  co_await sleep_until(weft_now32() + 1);
  for (int i = 0; i < 3; ++i) spi.on_interrupt();
  (void)co_await answer.read(job);
  check("M26: SPI's answer", static_cast<uint32_t>(job.status), 0);
  check("M26: a byte that came back", job.bytes[2], 3 ^ 0xff);
  const uint32_t hz = 150000000 / word(SPI0_BASE + SPI_SSPCPSR_OFFSET) /
                      (field(word(SPI0_BASE + SPI_SSPCR0_OFFSET), SPI_SSPCR0_SCR_BITS,
                             SPI_SSPCR0_SCR_LSB) + 1);
  check("M26: SPI's clock", hz, 1000000);

  (void)co_await set.write(PwmSetting{.hz = 1000, .a = 0, .b = 16384});
  co_await sleep_until(weft_now32() + 1);
  const uint32_t slice = PWM_BASE + 4 * 0x14, top = word(slice + PWM_CH0_TOP_OFFSET) + 1;
  const uint32_t step = word(slice + PWM_CH0_DIV_OFFSET) >> 4;
  check("M28: PWM's frequency", (150000000 + step * top / 2) / (step * top), 1000);
  check("M28: PWM's B", word(slice + PWM_CH0_CC_OFFSET) >> 16, top / 4);
  check_pin("M28: PWM's pin", 25, 4);
  (void)co_await set.write(PwmSetting{.hz = 2000, .a = 0, .b = 0});
  co_await sleep_until(weft_now32() + 1);
  check("M28: PWM's interrupt is on", word(PWM_BASE + PWM_IRQ0_INTE_OFFSET), 1u << 4);
  check_interrupt("PWM's number in the NVIC", PWM_IRQ_WRAP_0);
  fake::words[PWM_BASE + PWM_IRQ0_INTS_OFFSET] = 1u << 4;
  pwm.on_interrupt();
  check("M28: and off", word(PWM_BASE + PWM_IRQ0_INTE_OFFSET), 0);

  (void)co_await words.write(0x12345678);
  co_await sleep_until(weft_now32() + 1);
  check("M29: a word for the PIO", word(PIO0_BASE + PIO_TXF2_OFFSET), 0x12345678);

  fake::words[IO_BANK0_BASE + IO_BANK0_PROC0_INTS0_OFFSET + 8] = 4u << 4;
  fake::words[SIO_BASE + SIO_GPIO_IN_OFFSET] = 0;
  pins.on_interrupt();
  check("M25: the pin's interrupt is off", word(IO_BANK0_BASE + IO_BANK0_PROC0_INTE0_OFFSET + 8), 0);
  fake::words[IO_BANK0_BASE + IO_BANK0_INTR0_OFFSET + 8] = 0;  // what was latched is cleared
  PinEdge edge{};
  (void)co_await changes.read(edge);
  check("M25: the pin's level", edge.level, 0);
  uart.close();
  pins.close();
  adc.close();
  check("M27: the DMA's channels are stopped", word(DMA_BASE + DMA_CHAN_ABORT_OFFSET), 3u << 4);
  dog.leave(0);
  weft_stop(&events);
}

void check_start() {
  const uint32_t u = UART1_BASE;
  check("a UART's divider, 115,200 of 150 MHz: whole", word(u + UART_UARTIBRD_OFFSET), 81);
  check("and 64ths", word(u + UART_UARTFBRD_OFFSET), 24);
  check_pin("a UART's TX", 8, IO_BANK0_GPIO8_CTRL_FUNCSEL_VALUE_UART1_TX);
  check_pin("a UART's RX", 9, IO_BANK0_GPIO9_CTRL_FUNCSEL_VALUE_UART1_RX);
  check_pin("SPI's clock", 18, IO_BANK0_GPIO18_CTRL_FUNCSEL_VALUE_SPI0_SCLK);
  check_pin("SPI's chip select, a pin of SIO", 17, IO_BANK0_GPIO17_CTRL_FUNCSEL_VALUE_SIOB_PROC_17);
  check("SPI's chip select is high", word(SIO_BASE + SIO_GPIO_OUT_SET_OFFSET), 1u << 17);
  check_pin("I2C's data", 4, IO_BANK0_GPIO4_CTRL_FUNCSEL_VALUE_I2C0_SDA);
  const uint32_t bit = word(I2C0_BASE + I2C_IC_FS_SCL_LCNT_OFFSET) +
                       word(I2C0_BASE + I2C_IC_FS_SCL_HCNT_OFFSET);
  check("I2C's bit, cycles", bit, 1500);
  check("I2C's hold of the data, cycles", word(I2C0_BASE + I2C_IC_SDA_HOLD_OFFSET), 46);
}
void check_streams() {
  const uint32_t c = DMA_BASE + 4 * 0x40, trigger = word(c + DMA_CH0_CTRL_TRIG_OFFSET);
  check("the DMA's request", field(trigger, DMA_CH0_CTRL_TRIG_TREQ_SEL_BITS,
                                   DMA_CH0_CTRL_TRIG_TREQ_SEL_LSB), DREQ_ADC);
  check("the DMA's next channel", field(trigger, DMA_CH0_CTRL_TRIG_CHAIN_TO_BITS,
                                        DMA_CH0_CTRL_TRIG_CHAIN_TO_LSB), 5);
  check("the DMA's ring of 16 bytes", field(trigger, DMA_CH0_CTRL_TRIG_RING_SIZE_BITS,
                                            DMA_CH0_CTRL_TRIG_RING_SIZE_LSB), 4);
  check("the DMA's other bits",
        trigger & ~(DMA_CH0_CTRL_TRIG_TREQ_SEL_BITS | DMA_CH0_CTRL_TRIG_CHAIN_TO_BITS |
                    DMA_CH0_CTRL_TRIG_RING_SIZE_BITS),
        DMA_CH0_CTRL_TRIG_RING_SEL_BITS | DMA_CH0_CTRL_TRIG_INCR_WRITE_BITS |
          1u << DMA_CH0_CTRL_TRIG_DATA_SIZE_LSB | DMA_CH0_CTRL_TRIG_EN_BITS);
  check("the DMA reads the ADC", word(c + DMA_CH0_READ_ADDR_OFFSET), ADC_BASE + ADC_FIFO_OFFSET);
  check("the DMA's interrupts", word(DMA_BASE + DMA_INTE0_OFFSET), 3u << 4);
  check("the ADC's pin is isolated from the inputs and outputs",
        word(PADS_BANK0_BASE + PADS_BANK0_GPIO26_OFFSET), PADS_BANK0_GPIO26_OD_BITS);
  check("the ADC's clock", word(CLOCKS_BASE + CLOCKS_CLK_ADC_CTRL_OFFSET),
        CLOCKS_CLK_ADC_CTRL_ENABLE_BITS);
  check("the ADC samples", word(ADC_BASE + ADC_CS_OFFSET) & ADC_CS_START_MANY_BITS,
        ADC_CS_START_MANY_BITS);
  check_interrupt("the DMA's number in the NVIC", DMA_IRQ_0);
}
void check_rest() {
  check("the PIO's program", word(PIO0_BASE + PIO_INSTR_MEM0_OFFSET + 4 * 3), 0x6020);
  check("a jump of the PIO's program", word(PIO0_BASE + PIO_INSTR_MEM0_OFFSET + 4 * 4), 3);
  check("the PIO's divider", word(PIO0_BASE + PIO_SM0_CLKDIV_OFFSET + 2 * 0x18), 1u << 16);
  check("the PIO's machine runs", word(PIO0_BASE + PIO_CTRL_OFFSET) & 15, 1u << 2);
  check_pin("the PIO's pin", 2, IO_BANK0_GPIO2_CTRL_FUNCSEL_VALUE_PIO0_2);
  check_interrupt("the PIO's number in the NVIC", PIO0_IRQ_0);
  check("the pin's edges", word(IO_BANK0_BASE + IO_BANK0_PROC0_INTE0_OFFSET + 8), 12u << 4);
  check_interrupt("the pins' number in the NVIC", IO_IRQ_BANK0);
  check("the watchdog's counter, two periods", word(WATCHDOG_BASE + WATCHDOG_LOAD_OFFSET), 200000);
  check("the watchdog is on", word(WATCHDOG_BASE + WATCHDOG_CTRL_OFFSET) &
                                WATCHDOG_CTRL_ENABLE_BITS, WATCHDOG_CTRL_ENABLE_BITS);
  check("the watchdog resets all but the oscillators", word(PSM_BASE + PSM_WDSEL_OFFSET),
        PSM_WDSEL_BITS & ~(PSM_WDSEL_ROSC_BITS | PSM_WDSEL_XOSC_BITS));
}
}  // namespace

int main() {
  weft_posix_virtual(0);
  weft_list_init(&events, WEFT_LOCAL);
  // Everything but the pins and their pads is in reset; the pads are as after a reset.
  fake::words[RESETS_BASE] = 0x1fffffff & ~(RESETS_RESET_IO_BANK0_BITS | RESETS_RESET_PADS_BANK0_BITS);
  fake::words[PLL_USB_BASE + PLL_PWR_OFFSET] = PLL_PWR_RESET;
  for (unsigned pin = 0; pin < 30; ++pin)
    fake::words[PADS_BANK0_BASE + PADS_BANK0_GPIO0_OFFSET + 4 * pin] = PADS_BANK0_GPIO0_RESET;
  fake::words[SIO_BASE + SIO_GPIO_IN_OFFSET] = 1u << 17;

  int e = uart.start({.tx = 8, .rx = 9, .baud = 115200}, received.writer(), to_send.reader());
  check_interrupt("a UART's number in the NVIC", UART1_IRQ);
  e |= spi.start({.sck = 18, .tx = 19, .rx = 16, .selects = 1u << 17});
  check_interrupt("SPI's number in the NVIC", SPI0_IRQ);
  e |= wire.start({.sda = 4, .scl = 5, .hz = 100000});
  check_interrupt("I2C's number in the NVIC", I2C0_IRQ);
  check_start();
  e |= adc.start({.inputs = 1, .hz = 10000, .dma = 4}, blocks.writer());
  check_streams();
  e |= spi.connect(to_spi.reader(), from_spi.writer());
  e |= wire.connect(to_wire.reader(), from_wire.writer());
  e |= pwm.start({.pins = 1u << 25, .lowest = 1000}, settings.reader());
  e |= pio.start({.program = kProgram, .length = 2, .origin = 3, .pins = 1u << 2,
                  .clkdiv = 1u << 16, .execctrl = 0, .shiftctrl = 0, .pinctrl = 0},
                 {}, to_pio.reader());
  pins.connect(edges.writer());
  dog.start();
  check_rest();
  e |= scheduler.start(all(scheduler, received.reader(), to_send.writer(), to_spi.writer(),
                           from_spi.reader(), settings.writer(), to_pio.writer(), edges.reader()));
  check("all start", static_cast<uint32_t>(e), 0);
  scheduler.run();
  check("other interrupts that are on",
        fake::words[fake::kEnabled] | fake::words[fake::kEnabled + 4], 0);
  check("mistakes of access", static_cast<uint32_t>(fake::mistakes.size()), 0);
  for (const std::string& text : fake::mistakes) printf("FAIL %s\n", text.c_str());
  printf("%u passed, %u failed\n", passed, failed);
  return failed != 0;
}
