/* fake.h: how a test controls the fake machine. */
#ifndef WEFT_FAKE_H
#define WEFT_FAKE_H
#include "weft_mcu/actors.h"
#include <setjmp.h>

/* Begin anew: set the clock to `start` us, and take all random choices from `seed`. */
void fake_reset(uint64_t seed, uint64_t start);
/* Run the given programs (either may be 0) on the two cores until both return or neither can
 * proceed. Return false if some core still sleeps. After `limit` platform calls the test fails as a
 * livelock. */
bool fake_run(void (*core0)(void), void (*core1)(void), long limit);
void fake_point(void); /* a point at which the other core, an interrupt or time may intervene */
uint32_t fake_random(uint32_t n);  /* returns 0 … n-1 */
void fake_advance(uint32_t us);    /* lets time pass, as in an action that takes some time */
bool fake_asleep(unsigned core);   /* whether the core sleeps and has not been woken */
long fake_waits(void);             /* how many times the cores have slept */
/* Called where interrupts are possible; the function may post events. 0 means that there are no
 * interrupts. */
extern void (*fake_interrupt)(void);
/* Called when every core sleeps, before time advances. */
extern void (*fake_quiet)(void);
/* The next time of an outside event; `fake_outside` is then called, as an interrupt. 0 means
 * never. */
extern uint64_t fake_outside_at;
extern void (*fake_outside)(void);
extern int fake_stack_broken;
/* The text of the last panic; a panic ends the program of its core. */
extern const char *fake_panicked;
/* The place to which a panic returns if the test itself causes it outside fake_run. */
extern jmp_buf fake_outside_panic;
#endif
