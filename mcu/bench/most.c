/* most: as many periodic actors as fit into the 256 KB, at 17 bytes each. Every actor fires twice.
 * The program prints one JSON line on the UART. */
#include "cycles.h"
#include "weft_mcu/actors.h"

enum { EACH = sizeof(weft_event) + sizeof(weft_actor), PERIOD = 20, APART = 100 };
static weft_queue queue;
static uint32_t actors, fired, finished;
static weft_actor *mark;

static uint32_t fire(weft_event *e, uint32_t release) {
  (void)release;
  fired++;
  if (!(e->actor->mark >>
        WEFT_PRIORITY_SHIFT)) { /* there is no room for a counter, so the actor's priority serves
                                 * as one */
    e->actor->mark += 1 << WEFT_PRIORITY_SHIFT;
    return PERIOD;
  }
  if (++finished == actors) weft_stop(&queue);
  return WEFT_DONE;
}

int main(void) {
  uart_init();
  uintptr_t first = ((uintptr_t)WEFT_FREE_BEGIN + 3) & ~(uintptr_t)3;
  actors = (uint32_t)((uintptr_t)WEFT_FREE_END - first) / EACH;
  weft_event *event = (weft_event *)first;
  mark = (weft_actor *)&event[actors];
  weft_list_init(&queue, WEFT_LOCAL);
  uint32_t start = weft_now32() + 100000;
  /* The loop begins with the last event, since each event is inserted in front. */
  for (uint32_t i = actors; i--;) {
    mark[i] = (weft_actor){0};
    event[i] = (weft_event)WEFT_EVENT(fire, &mark[i]);
    weft_post(&queue, &event[i], start + i * APART);
  }
  weft_work(&queue);
  uart_puts("{\"bench\":\"most\"");
  put_figure("actors", actors);
  put_figure("bytes_each", EACH);
  put_figure("fired", fired);
  uart_puts("}\n");
  __asm volatile("bkpt 0");
  return 0;
}
