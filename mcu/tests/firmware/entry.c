/* entry: two actions, 4 us apart, on one core. The test makes the first action longer, cycle by
 * cycle, and checks when the second action begins. */
#include "board.h"
#include "weft_mcu/actors.h"

static weft_queue queue;
static weft_actor actors[2];
volatile uint32_t release_of_second;

WEFT_HOT __attribute__((noipa)) uint32_t first(weft_event *e, uint32_t release);
WEFT_HOT __attribute__((noipa)) uint32_t second(weft_event *e, uint32_t release);
uint32_t first(weft_event *e, uint32_t release) { return (void)e, (void)release, WEFT_DONE; }
uint32_t second(weft_event *e, uint32_t release) {
  return (void)e, release_of_second = release, WEFT_DONE;
}
static weft_event one = WEFT_EVENT(first, &actors[0]), two = WEFT_EVENT(second, &actors[1]);

int main(void) {
  weft_list_init(&queue, WEFT_LOCAL);
  uint32_t now = weft_now32();
  weft_post(&queue, &one, now + 100);
  weft_post(&queue, &two, now + 104);
  weft_work(&queue);
  return 0;
}
