/* fake.h: what a test says to the fake machine. */
#ifndef WEFT_FAKE_H
#define WEFT_FAKE_H
#include "weft_mcu/actors.h"
#include <setjmp.h>

/* Begin anew: the clock at `start` us, all random choices from `seed`. */
void fake_reset(uint64_t seed, uint64_t start);
/* Run the given programs (either may be 0) on the two cores until both return or nothing can ever
 * happen again; returns false if some core still sleeps. `limit`: platform calls before the test is
 * failed as a livelock. */
bool fake_run(void (*core0)(void), void (*core1)(void), long limit);
void fake_point(void); /* a place where the other core, an interrupt or time may come in between */
uint32_t fake_random(uint32_t n);  /* 0 … n-1 */
void fake_advance(uint32_t us);    /* time goes on (an action that takes its time) */
bool fake_asleep(unsigned core);   /* it sleeps and nothing has woken it */
long fake_waits(void);             /* how often a core has slept */
/* Called with interrupts possible: may post. 0: no interrupts. */
extern void (*fake_interrupt)(void);
/* Called when every core sleeps, before time goes on. */
extern void (*fake_quiet)(void);
/* The next time something comes from outside: at that time `fake_outside` is called (as an
 * interrupt). 0: never. */
extern uint64_t fake_outside_at;
extern void (*fake_outside)(void);
extern int fake_stack_broken;
/* The text of the last panic; a panic ends the program of its core. */
extern const char *fake_panicked;
/* Where a panic goes that the test itself causes, outside fake_run. */
extern jmp_buf fake_outside_panic;
#endif
