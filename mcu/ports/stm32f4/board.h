/* board.h: pins and USART 1, for firmware without an SDK. The runtime does not need this file. Pin
 * 16 * p + n is pin n of port p: PA5 is 5, PD12 is 60. */
#ifndef WEFT_STM32F4_BOARD_H
#define WEFT_STM32F4_BOARD_H
#include "../cortex_m/nvic.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  STM32F4_GPIO = 0x40020000,
  STM32F4_MODER = 0x00,
  STM32F4_PUPDR = 0x0c,
  STM32F4_IDR = 0x10,
  STM32F4_ODR = 0x14,
  STM32F4_BSRR = 0x18,
  STM32F4_AHB1ENR = 0x40023830,
};
WEFT_INLINE uint32_t stm32f4_port(unsigned pin) { return STM32F4_GPIO + 0x400 * (pin / 16); }
/* Set the two bits of a pin in a register of its port. */
WEFT_INLINE void stm32f4_pair(unsigned pin, unsigned offset, uint32_t value) {
  uint32_t place = stm32f4_port(pin) + offset;
  WEFT_REG(place) = (WEFT_REG(place) & ~(3u << 2 * (pin % 16))) | value << 2 * (pin % 16);
}
WEFT_INLINE void pin_out(unsigned pin) {
  WEFT_REG(STM32F4_AHB1ENR) |= 1u << pin / 16;
  stm32f4_pair(pin, STM32F4_MODER, 1);
}
WEFT_INLINE void pin_in_pull_up(unsigned pin) {
  WEFT_REG(STM32F4_AHB1ENR) |= 1u << pin / 16;
  stm32f4_pair(pin, STM32F4_MODER, 0);
  stm32f4_pair(pin, STM32F4_PUPDR, 1);
}
WEFT_INLINE void pin_high(unsigned pin) {
  WEFT_REG(stm32f4_port(pin) + STM32F4_BSRR) = 1u << pin % 16;
}
WEFT_INLINE void pin_low(unsigned pin) {
  WEFT_REG(stm32f4_port(pin) + STM32F4_BSRR) = 0x10000u << pin % 16;
}
WEFT_INLINE bool pin_read(unsigned pin) {
  return WEFT_REG(stm32f4_port(pin) + STM32F4_IDR) >> pin % 16 & 1;
}
/* An interrupt must not toggle a pin while code outside that interrupt toggles the same pin. */
WEFT_INLINE void pin_toggle(unsigned pin) {
  if (WEFT_REG(stm32f4_port(pin) + STM32F4_ODR) >> pin % 16 & 1) pin_low(pin);
  else pin_high(pin);
}

void uart_init(void); /* USART 1 on PA9 and PA10, 115,200 baud if PCLK2 is STM32F4_UART_HZ */
bool uart_is_on(void);
void uart_put(char c);
void uart_puts(const char *text);
void uart_put_u32(uint32_t value); /* in decimal */
#ifdef __cplusplus
}
#endif
#endif
