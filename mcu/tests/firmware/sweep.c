/* sweep: a short program that posts, claims, waits, puts back, cancels and moves. The emulator
 * interrupts the program before every instruction. The handler (of interrupt 5, which no hardware
 * raises here) posts one more event and moves another. Both cores serve the queue. The program ends
 * with bkpt 0 if every action ran exactly as often as it should, otherwise with the number of the
 * failure.
 */
#include "board.h"
#include "weft_mcu/actors.h"

static weft_queue queue;
static weft_actor actors[3];
static volatile uint32_t ran[6], inside[3], overlap, interrupts, early, removed;
static uint32_t count(weft_event *e, uint32_t release);
static weft_event event[6] = {WEFT_EVENT(count, &actors[0]), WEFT_EVENT(count, &actors[1]),
                              WEFT_EVENT(count, &actors[2]), WEFT_EVENT(count, &actors[0]),
                              WEFT_EVENT(count, &actors[1]), WEFT_EVENT(count, &actors[2])};
static uint32_t finish(weft_event *e, uint32_t release);
static weft_event end = WEFT_EVENT(finish, &actors[0]);

static uint32_t count(weft_event *e, uint32_t release) {
  unsigned i = (unsigned)(e - event), a = (unsigned)(e->actor - actors);
  if (inside[a]) overlap = 1;
  inside[a] = 1;
  if ((int32_t)(weft_now32() - release) < 0) early = 1;
  ran[i]++;
  inside[a] = 0;
  if (i == 0 && ran[0] == 1)
    removed = weft_cancel(&queue, &event[2]) == WEFT_OK; /* the other core may hold the event */
  return i == 0 && ran[0] < 4 ? 20 : WEFT_DONE;
}
void weft_isr_usb(void);
WEFT_HOT void weft_isr_usb(void) { /* interrupt 5; pended by the test */
  WEFT_REG(PPB_NVIC_ICPR) = 1u << 5;
  if (interrupts++) return;
  weft_post(&queue, &event[3], weft_now32() + 2);
  weft_post_as(&queue, &event[1], weft_now32() + 30,
               WEFT_MOVE); /* If the event has run already, it runs again. */
}
static uint32_t finish(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  weft_stop(&queue);
  return WEFT_DONE;
}
static void core1(void) {
  weft_work(&queue);
  for (;;) weft_wait();
}
#define EXPECT(n, condition) \
  if (!(condition)) __asm volatile("bkpt " #n)

int main(void) {
  weft_list_init(&queue, WEFT_SPINLOCK(0));
  WEFT_REG(PPB_NVIC_ISER) = 1u << 5;
  uint32_t now = weft_now32();
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  weft_post(&queue, &end, now + 5000);
  weft_post(&queue, &event[0], now + 60);
  weft_post(&queue, &event[1], now + 62);
  weft_post(&queue, &event[2], now + 150);
  /* Event 4 has the time of event 1, and the same actor. */
  weft_post(&queue, &event[4], now + 62);
  weft_post(&queue, &event[5], now);
  weft_work(&queue);
  EXPECT(1, !overlap);
  EXPECT(2, !early);
  EXPECT(3, ran[0] == 4);
  EXPECT(4, ran[1] == 1 || (interrupts && ran[1] == 2));
  EXPECT(5, ran[2] == !removed);
  EXPECT(6, ran[3] == (interrupts ? 1 : 0));
  EXPECT(7, ran[4] == 1);
  EXPECT(8, ran[5] == 1);
  return 0;
}
