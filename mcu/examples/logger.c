/* logger: a producer samples 1,000 times a second on core 1; a consumer on core 0 prints the mean
 * of every 100 samples. Each core serves its own queue. Each sample is an event: the producer posts
 * it to the consumer's queue, and takes its next event from a ring. When the consumer is behind, a
 * sample is dropped and counted; neither core waits.
 */
#include "board.h"
#include "weft_mcu/actors.h"

enum { SAMPLES = 8, PERIOD = 1000, BATCH = 100, BATCHES = 5, PIN = 15 };
static weft_queue queue0, queue1;
static weft_actor sampler, printer;
typedef struct { weft_event event; uint32_t value; } sample;
static sample ring[SAMPLES];
static uint32_t at, dropped, sum, count, batches;

/* Read a sensor that needs no hardware: a triangle with a period of 200 samples. */
static uint32_t read_sensor(uint32_t n) { return n % 200 < 100 ? n % 200 : 200 - n % 200; }

static uint32_t produce(weft_event *e, uint32_t release) {
  static uint32_t n;
  (void)e;
  sample *s = &ring[at];
  pin_toggle(PIN);
  uint32_t value = read_sensor(n++);
  if (WEFT_PEEK(s->event.next)) dropped++;
  else {
    s->value = value;
    weft_post(&queue0, &s->event, release);
    at = at + 1 < SAMPLES ? at + 1 : 0;
  }
  return PERIOD;
}
static uint32_t consume(weft_event *e, uint32_t release) {
  (void)release;
  sum += ((sample *)(void *)e)->value;
  if (++count < BATCH) return WEFT_DONE;
  uart_puts("mean ");
  uart_put_u32(sum / BATCH);
  uart_puts(", dropped ");
  uart_put_u32(dropped);
  uart_puts("\n");
  sum = count = 0;
  if (++batches == BATCHES) {
    weft_stop(&queue1);
    weft_stop(&queue0);
  }
  return WEFT_DONE;
}
static weft_event tick = WEFT_EVENT(produce, &sampler);
static void core1(void) {
  weft_post_in(&queue1, &tick, PERIOD);
  weft_work(&queue1);
  for (;;) weft_wait();
}

int main(void) {
  uart_init();
  pin_out(PIN);
  weft_list_init(&queue0, WEFT_SPINLOCK(0));
  weft_list_init(&queue1, WEFT_SPINLOCK(1));
  for (unsigned i = 0; i < SAMPLES; i++) ring[i].event = (weft_event)WEFT_EVENT(consume, &printer);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  weft_work(&queue0);
  uart_puts("done\n");
  return 0;
}
