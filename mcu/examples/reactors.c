/* reactors: the blink example as two reactors, one that counts and one that shows; REACTORS.md
 * contains this program. */
#define WEFT_RX_REACTIONS 2            /* what the program needs, before the include */
#define WEFT_RX_TIMERS 1
#include "weft_mcu/reactors.h"
#include "board.h"

typedef WEFT_RX_PORT(int) int_port;

static struct { weft_rx_timer tick; int_port level; int on;
} blinker = {
    .tick = WEFT_RX_TIMER(0, WEFT_RX_MSEC(500),
                          WEFT_RX_TRIG(1, 0x1)), /* offset, period, what it triggers: reaction 0 */
    .level = WEFT_RX_OUT(WEFT_RX_TRIG(3, 0x2)),  /* a port: what it triggers: reaction 1 */
};
static void toggle(void *self) { (void)self; weft_rx_set(&blinker.level, blinker.on ^= 1); }
static void lamp(void *self) { const int_port *in = self; in->value ? pin_high(25) : pin_low(25); }

const weft_rx_reaction weft_rx_reactions[] = {
    {toggle, &blinker}, {lamp, &blinker.level}}; /* in the order in which they run */
const weft_rx_index weft_rx_triggers[] = {WEFT_RX_END, 0, WEFT_RX_END, 1, WEFT_RX_END};
const weft_rx_range weft_rx_timers[] = {{&blinker.tick, 1, 0}};
const weft_rx_program weft_rx_programs[] = {{.name = "Blinker", .count = 2, .ranges = 1}};
#include "weft_mcu/reactors_run.h" /* the engine, compiled into this one file, for what was defined above */

int main(void) {
  pin_out(25);
  return weft_rx_run(0);                /* options, or 0 */
}
