/* The STM32F4: one Cortex-M4. It has run in QEMU (netduinoplus2) only, never on a chip.
 *
 * The clock is TIM2, 32 bits wide, one count a microsecond. The alarm is SysTick, which every
 * Cortex-M4 has: it counts cycles of the core down in 24 bits, and always runs. Its handler counts
 * the turns of TIM2, and starts SysTick again: for the rest of the time until the alarm, or for as
 * long as SysTick can count (a second at 16 MHz). README.md says why the alarm is not a compare
 * register of TIM2.
 *
 * The two frequencies are those after reset (HSI, 16 MHz, no PLL). A program that sets up the PLL
 * before main, in its own stm32f4_clocks(), defines both.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H
#include "../cortex_m/one_core.h"

#ifndef STM32F4_CORE_HZ
#define STM32F4_CORE_HZ 16000000u
#endif
#ifndef STM32F4_TIMER_HZ /* the timers of APB1, twice PCLK1 if APB1 is divided */
#define STM32F4_TIMER_HZ 16000000u
#endif
enum { STM32F4_TIM2 = 0x40000000, STM32F4_CNT = 0x24 };

uint64_t stm32f4_now64(void);
void stm32f4_arm(uint32_t t);
void weft_board_start(void);

WEFT_INLINE uint32_t weft_now32(void) { return WEFT_REG(STM32F4_TIM2 + STM32F4_CNT); }
WEFT_INLINE uint64_t weft_now64(void) { return stm32f4_now64(); }
WEFT_INLINE void weft_wait_init(void) {}
WEFT_INLINE void weft_arm(uint32_t t) { stm32f4_arm(t); }
#endif
