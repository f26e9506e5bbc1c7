/* button: a bouncing button on pin 17 (pull-up, pressed is low) toggles the LED once per press.
 *
 * Every edge moves one event to 5 ms ahead; the event runs when the pin has been quiet for 5 ms.
 * There is no polling: between presses neither the bounces nor the waiting cost any time.
 */
#include "board.h"
#include "weft_mcu/actors.h"

enum { BUTTON = 17, LED = 25, QUIET = 5000 };
static weft_queue queue;
static weft_actor button;
static bool was_pressed;

static uint32_t settled(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  bool pressed = !pin_read(BUTTON);
  if (pressed && !was_pressed) pin_toggle(LED);
  was_pressed = pressed;
  return WEFT_DONE;
}
static weft_event quiet = WEFT_EVENT(settled, &button);

void weft_isr_io_bank0(void);
void weft_isr_io_bank0(void) {
  pin_irq_ack(BUTTON);
  weft_post_as(&queue, &quiet, weft_now32() + QUIET, WEFT_MOVE);
}

int main(void) {
  pin_out(LED);
  pin_in_pull_up(BUTTON);
  weft_list_init(&queue, WEFT_LOCAL);
  pin_irq_both_edges(BUTTON);
  weft_work(&queue);
  return 0;
}
