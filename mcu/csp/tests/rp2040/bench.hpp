// bench.hpp for the emulated RP2040: run.mjs watches pins 2 and 3, and drives pin 6, whose edges
// are the interrupts.
#pragma once
#include "board.h"
#include "weft_mcu/event_queue.h"

#define BENCH_ISR weft_isr_io_bank0
namespace bench {
inline void init() {
  pin_out(2);
  pin_out(3);
}
inline void mark(unsigned pin) { pin_toggle(pin); }
inline void begin(weft_queue*) {
  pin_in_pull_up(6);
  pin_irq_both_edges(6);
}
inline void acknowledge() { pin_irq_ack(6); }
inline void end() { WEFT_REG(PPB_NVIC_ICER) = 1u << 13; }
inline int over() { return 0; }
}  // namespace bench
