/* mistake: each KIND is one misuse of the runtime, which a debug build must report over the
 * UART. */
#include "board.h"
#include "weft_mcu/actors.h"

static weft_queue queue;
static weft_actor actor;
static uint32_t nothing(weft_event *e, uint32_t release) {
  return (void)e, (void)release, WEFT_DONE;
}
static weft_event event = WEFT_EVENT(nothing, &actor);

#ifdef KIND_stack
static uint32_t deep(weft_event *e, uint32_t release) {
  volatile uint8_t much[4200]; /* more than scratch Y holds */
  (void)e, (void)release;
  for (unsigned i = 0; i < sizeof much; i++) much[i] = 0;
  return WEFT_DONE;
}
#endif
#ifdef KIND_unlocked
static void core1(void) { weft_work(&queue); }
#endif
#ifdef KIND_core
static void core1(void) { for (;;) weft_wait(); }
#endif

int main(void) {
  uart_init();
  weft_list_init(&queue, WEFT_LOCAL);
  uint32_t now = weft_now32();
  (void)now, (void)event;
#ifdef KIND_twice
  weft_post(&queue, &event, now + 100);
  weft_post(&queue, &event, now + 200);
#endif
#ifdef KIND_horizon
  weft_post(&queue, &event, now + (1u << 31) + 100);
#endif
#ifdef KIND_stack
  event.action = deep;
  weft_post(&queue, &event, now + 100);
#endif
#ifdef KIND_unlocked
  weft_post(&queue, &event, now + 100000);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
#endif
#ifdef KIND_core
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
#endif
  weft_work(&queue);
  return 0;
}
