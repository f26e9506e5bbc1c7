/* every_port.c: a program with every feature that can be combined, compiled for each port. */
#define WEFT_RX_REACTIONS 40
#define WEFT_RX_TIMERS 70
#define WEFT_RX_EVENTS 4
#define WEFT_RX_PHYSICAL 1
#define WEFT_RX_DELAYS 1
#define WEFT_RX_TOKENS 4
#define WEFT_RX_BLOCKS 4
#define WEFT_RX_MODES 1
#include "weft_mcu/lf.h"
static void r(void *self) { (void)self; lf_print("x"); }
const weft_rx_reaction weft_rx_reactions[40] = {{r, 0}};
const weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
static weft_rx_timer t = WEFT_RX_TIMER(0, 1000000, WEFT_RX_TRIG_ONE(0));
const weft_rx_range weft_rx_timers[] = {{&t, 1, 0}};
weft_rx_modal *const weft_rx_modals[] = {0};
weft_rx_mode *const weft_rx_mode_of[40] = {0};
const weft_rx_program weft_rx_programs[] = {{.name = "x", .count = 1, .ranges = 1}};
#include "weft_mcu/reactors_run.h"
int main(void) { return weft_rx_run(0); }
