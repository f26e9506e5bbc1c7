/* port.c: the start of the clock, its upper half, and the alarm.
 *
 * Invariants (while interrupts are off)
 *  1. SysTick counts from weft_board_start on, and fires within LONGEST us. So no turn of the clock
 *     (71 minutes) is missed.
 *  2. If `armed`, SysTick fires at `alarm`, or fires earlier and is then started for the rest.
 */
#include "board.h"
#include "../cortex_m/panic.h"
#include "../cortex_m/turns.h"

enum {
  TIM2 = STM32F4_TIM2,
  RCC_APB1ENR = 0x40023840,
  TIM_CR1 = 0x00,
  TIM_EGR = 0x14,
  TIM_PSC = 0x28,
  TIM_ARR = 0x2c,
  SYST_CSR = 0xe000e010,
  SYST_RVR = 0xe000e014,
  SYST_CVR = 0xe000e018,
  ICSR = 0xe000ed04,
  PENDSTCLR = 1 << 25,
};
#define CYCLES_US (STM32F4_CORE_HZ / 1000000u)
#define LONGEST (0xffffffu / CYCLES_US)
static uint32_t alarm;
static bool armed;

uint64_t stm32f4_now64(void) {
  weft_irq_t irq = weft_lock(WEFT_LOCAL);
  uint64_t now = weft_clock_now();
  weft_unlock(WEFT_LOCAL, irq);
  return now;
}
static void start_alarm(uint32_t now) {
  uint32_t us = LONGEST;
  if (armed && (int32_t)(alarm - now) < (int32_t)LONGEST) us = alarm - now;
  if ((int32_t)us < 1) us = 1; /* The alarm may be late, but it must fire. */
  WEFT_REG(SYST_CSR) = 0;      /* Stopped, SysTick does not fire for the old time in between. */
  WEFT_REG(SYST_RVR) = us * CYCLES_US - 1;
  WEFT_REG(SYST_CVR) = 0;
  WEFT_REG(ICSR) = PENDSTCLR;
  WEFT_REG(SYST_CSR) = 7; /* on, with its exception; it counts cycles of the core */
}
void stm32f4_arm(uint32_t t) {
  weft_irq_t irq = weft_lock(WEFT_LOCAL);
  alarm = t;
  armed = true;
  start_alarm((uint32_t)weft_clock_now());
  weft_unlock(WEFT_LOCAL, irq);
}
void weft_isr_systick(void);
void weft_isr_systick(void) {
  weft_irq_t irq = weft_lock(WEFT_LOCAL);
  uint32_t now = (uint32_t)weft_clock_now();
  if (armed && (int32_t)(now - alarm) >= 0) {
    armed = false;
    weft_wake();
  }
  start_alarm(now);
  weft_unlock(WEFT_LOCAL, irq);
}

__attribute__((weak)) void stm32f4_clocks(void) {} /* The chip runs from HSI. */
void weft_board_start(void) {
  stm32f4_clocks();
  WEFT_REG(RCC_APB1ENR) |= 1; /* TIM2 */
  (void)WEFT_REG(RCC_APB1ENR);
  WEFT_REG(TIM2 + TIM_PSC) = STM32F4_TIMER_HZ / 1000000u - 1;
  WEFT_REG(TIM2 + TIM_ARR) = 0xffffffff;
  WEFT_REG(TIM2 + TIM_EGR) = 1; /* Make the new prescaler take effect. */
  WEFT_REG(TIM2 + TIM_CR1) = 1;
  weft_irq_t irq = weft_lock(WEFT_LOCAL);
  start_alarm((uint32_t)weft_clock_now());
  weft_unlock(WEFT_LOCAL, irq);
}
/* The text goes to USART 1, if the program has called uart_init. */
__attribute__((weak)) void weft_panic(const char *what) {
  __asm volatile("cpsid i" ::: "memory");
  if (uart_is_on()) uart_puts(what);
  weft_stop_at_panic(what);
}
