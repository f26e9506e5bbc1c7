/* board.h: pins of the RP2350, for the drivers and the programs that use them. The runtime does not
 * need this file. */
#ifndef WEFT_RP2350_BOARD_H
#define WEFT_RP2350_BOARD_H
#include "chip.h"

WEFT_INLINE void pin_out(unsigned pin) {
  chip_pin(pin, 5); /* SIO */
  WEFT_REG(SIO_GPIO_OE_SET) = 1u << pin;
}
WEFT_INLINE void pin_in_pull_up(unsigned pin) {
  WEFT_REG(PADS_BANK0_GPIO0 + 4 * pin) = 0x5a; /* input enabled, Schmitt trigger, pull-up, 4 mA */
  WEFT_REG(IO_BANK0_GPIO0_CTRL + 8 * pin) = 5;
}
WEFT_INLINE void pin_high(unsigned pin) { WEFT_REG(SIO_GPIO_OUT_SET) = 1u << pin; }
WEFT_INLINE void pin_low(unsigned pin) { WEFT_REG(SIO_GPIO_OUT_CLR) = 1u << pin; }
WEFT_INLINE void pin_toggle(unsigned pin) { WEFT_REG(SIO_GPIO_OUT_XOR) = 1u << pin; }
WEFT_INLINE bool pin_read(unsigned pin) { return WEFT_REG(SIO_GPIO_IN) >> pin & 1; }
#endif
