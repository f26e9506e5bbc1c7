/* board.c: the USART of board.h. */
#include "board.h"

#ifndef STM32F4_UART_HZ /* PCLK2 */
#define STM32F4_UART_HZ 16000000u
#endif
enum {
  RCC_APB2ENR = 0x40023844,
  USART1_SR = 0x40011000,
  USART1_DR = 0x40011004,
  USART1_BRR = 0x40011008,
  USART1_CR1 = 0x4001100c,
  GPIOA_AFRH = 0x40020024,
  ON = 0x200c, /* the USART, its transmitter and its receiver */
  TXE = 1 << 7,
};
void uart_init(void) {
  WEFT_REG(STM32F4_AHB1ENR) |= 1;
  WEFT_REG(RCC_APB2ENR) |= 1u << 4;
  WEFT_REG(GPIOA_AFRH) = (WEFT_REG(GPIOA_AFRH) & ~0xff0u) | 0x770; /* PA9, PA10: function 7 */
  stm32f4_pair(9, STM32F4_MODER, 2);
  stm32f4_pair(10, STM32F4_MODER, 2);
  WEFT_REG(USART1_BRR) = (STM32F4_UART_HZ + 57600) / 115200;
  WEFT_REG(USART1_CR1) = ON;
}
bool uart_is_on(void) { return WEFT_REG(USART1_CR1) == ON; }
void uart_put(char c) {
  while (!(WEFT_REG(USART1_SR) & TXE)) {}
  WEFT_REG(USART1_DR) = (uint8_t)c;
}
#include "../freestanding/uart_text.h"
