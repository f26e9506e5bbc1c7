/* steps_pio.h: makes the steps by programmable IO. A state machine takes counts from its FIFO and
 * makes one pulse of each count. The pulse is high for count + 38 cycles, and low for the same
 * number of cycles.
 *
 * Invariant: `begins` is exact, in microseconds and cycles: it adds up the cycles that were pushed,
 * and the machine takes exactly these cycles.
 */
#ifndef BALL_STEPS_PIO_H
#define BALL_STEPS_PIO_H
#include "controller.h"

enum { CYCLES_A_US = 125, OVERHEAD = 38 };
enum {
  PIO0 = 0x50200000,
  PIO_CTRL = PIO0,
  PIO_FSTAT = PIO0 + 4,
  PIO_TXF0 = PIO0 + 0x10,
  PIO_INSTR_MEM = PIO0 + 0x48,
  SM0_CLKDIV = PIO0 + 0xc8,
  SM0_EXECCTRL = PIO0 + 0xcc,
  SM0_PINCTRL = PIO0 + 0xdc,
  SM0_INSTR = PIO0 + 0xd8,
  RESET_PIO0 = 1u << 10,
  FUNCTION_PIO0 = 6
};
/* The instructions are those of section 3.4 of the RP2040 datasheet. A word from the FIFO contains
 * a coarse count, in units of 32 cycles, in its low half, and a fine count in its high half. */
static const uint16_t program[] = {
  0x80a0, /*  0: pull block */
  0xa0c7, /*  1: mov isr, osr      keep the word for the low half of the pulse */
  0x6030, /*  2: out x, 16 */
  0x6050, /*  3: out y, 16 */
  0xe001, /*  4: set pins, 1 */
  0x1f45, /*  5: jmp x--, 5 [31] */
  0x0086, /*  6: jmp y--, 6 */
  0xa0e6, /*  7: mov osr, isr */
  0x6030, /*  8: out x, 16 */
  0x6150, /*  9: out y, 16 [1]     so that both halves are equal */
  0xe000, /* 10: set pins, 0 */
  0x1f4b, /* 11: jmp x--, 11 [31] */
  0x008c, /* 12: jmp y--, 12; then wrap to 0 */
};
enum { LAST = sizeof program / sizeof *program - 1 };

static void pio_init(void) {
  WEFT_REG_CLR(RESETS_RESET) = RESET_PIO0;
  while (!(WEFT_REG(RESETS_RESET_DONE) & RESET_PIO0)) {}
  for (unsigned i = 0; i < sizeof program / sizeof *program; i++)
    WEFT_REG(PIO_INSTR_MEM + 4 * i) = program[i];
  WEFT_REG(SM0_CLKDIV) = 1u << 16;
  WEFT_REG(SM0_EXECCTRL) = LAST << 12;              /* the program wraps from LAST to 0 */
  WEFT_REG(SM0_PINCTRL) = 1u << 26 | PIN_STEP << 5; /* `set` drives one pin */
  WEFT_REG(IO_BANK0_GPIO0_CTRL + 8 * PIN_STEP) = FUNCTION_PIO0;
  WEFT_REG(SM0_INSTR) = 0xe081;                  /* executes: set pindirs, 1 */
  WEFT_REG(PIO_CTRL) = 1;
}

/* The times of the counts in the FIFO: the next pulse that is pushed will begin at `begins` us
 * and `cycles` cycles. */
typedef struct pulses {
  uint32_t begins, cycles;
  uint32_t cut; /* the part of the last pulse's count that was cut off, in 1/256 cycle */
} pulses;

/* Pushes one pulse: two toggles of one period. The count is in cycles, 125/256 of a period; the
 * part that is cut off is kept. Returns whether a release at `*mark`, which the pulse passes at
 * full speed, brings a hole under the ball. */
static bool pulse_push(pulses *p, motor *m, const command *c, uint32_t *mark) {
  uint32_t period = motor_next_period(m, c, p->begins);
  /* The second toggle's share of the acceleration. */
  (void)motor_next_period(m, c, p->begins);
  period = (period + m->period) / 2;
  uint32_t scaled = period * CYCLES_A_US + p->cut, cycles = scaled >> 8;
  p->cut = scaled & 255;
  uint32_t count = cycles - OVERHEAD;
  WEFT_REG(PIO_TXF0) = count >> 5 | (count & 31) << 16;
  p->cycles += 2 * cycles;
  p->begins += p->cycles / CYCLES_A_US;
  p->cycles %= CYCLES_A_US;
  m->position += 2;
  /* The mark may fall on the other toggle of a pulse, but the ball is still aimed at the hole. */
  bool late = is_mark(m->position - 1);
  *mark = m->position - late;
  return m->period == PERIOD_FAST && (late || is_mark(m->position));
}
#endif
