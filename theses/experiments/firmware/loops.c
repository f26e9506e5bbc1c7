/* loops: the system of the thesis's chapter 7: two interleaved 10 kHz tasks, each with a number of
 * loops that the bench sets. Pins 2 and 3 are high while a task runs. */
#include "board.h"
#include "weft_mcu/actors.h"

enum { PERIOD = 100 };
volatile struct setup {
  uint32_t loops;
  uint32_t shared; /* 1: both cores serve one queue; 0: each core has its own queue */
  uint32_t
      posts; /* 1: the actions post their events again, as LTA's do; 0: they return their period */
} setup = {10, 0, 0};
/* Computes 0^2 + 1^2 + … + 5^2, `count` times. Each sum takes 45 cycles, so 250 sums take the
 * thesis's 90.0 us on one undisturbed core. The function is in assembler, because the cost of a
 * loop under contention depends on its address: the inner loop begins at a word. */
uint32_t thesis_loops(uint32_t count);
__asm(
    ".syntax unified\n.thumb\n.text\n.balign 4\n.global thesis_loops\n.type thesis_loops, %function\n.thumb_func\n"
    "thesis_loops:\n  movs r1, r0\n  movs r0, #0\n  nop\n"
    "1: movs r3, #0\n"
    "2: movs r2, r3\n  muls r2, r3, r2\n  adds r3, #1\n  adds r0, r0, r2\n  cmp r3, #6\n  bne 2b\n"
    "  subs r1, #1\n  bne 1b\n  bx lr\n.size thesis_loops, .-thesis_loops\n");
volatile uint32_t result[2];
static weft_queue queue0, queue1;
static weft_actor actors[2];

WEFT_INLINE uint32_t task(weft_event *e, uint32_t release, unsigned pin, weft_queue *queue) {
  pin_high(pin);
  result[pin - 2] = thesis_loops(setup.loops);
  pin_low(pin);
  if (!setup.posts) return PERIOD;
  weft_post(queue, e, release + PERIOD);
  return WEFT_DONE;
}
WEFT_HOT static uint32_t task_a(weft_event *e, uint32_t release) {
  return task(e, release, 2, &queue0);
}
WEFT_HOT static uint32_t task_b(weft_event *e, uint32_t release) {
  return task(e, release, 3, setup.shared ? &queue0 : &queue1);
}
static weft_event event_a = WEFT_EVENT(task_a, &actors[0]),
                  event_b = WEFT_EVENT(task_b, &actors[1]);

static void core1(void) { weft_work(setup.shared ? &queue0 : &queue1); }

int main(void) {
  pin_out(2);
  pin_out(3);
  weft_list_init(&queue0, WEFT_SPINLOCK(0));
  weft_list_init(&queue1, WEFT_SPINLOCK(1));
  uint32_t first = weft_now32() + PERIOD;
  weft_post(&queue0, &event_a, first);
  weft_post(setup.shared ? &queue0 : &queue1, &event_b, first + PERIOD / 2);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  weft_work(&queue0);
  return 0;
}
