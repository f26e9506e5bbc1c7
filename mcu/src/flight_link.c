/* flight_link.c: the function of weft_mcu/flight_link.h. The same weft_link_op reads what the PC
 * asks, and then writes the answers. */
#include "weft_mcu/flight_link.h"

#include "weft_mcu/cbor.h"

enum { TIME = 0, EVENTS = 1 };

static void over(weft_link_op *op);

static void offer(weft_flight_link *f, weft_link_end *end, uint16_t length) {
  f->guard = (weft_link_guard){.end = end, .value = f->value, .length = length};
  f->op = (weft_link_op){
      .guards = &f->guard, .count = 1, .into = f->value, .room = sizeof f->value, .over = over};
  (void)weft_link_offer(f->link, &f->op); /* false: the channel has ended, and so has the service */
}
static void answer(weft_flight_link *f, const void *bytes, size_t n) {
  uint8_t cbor[sizeof f->value];
  weft_cbor w = weft_cbor_writer(cbor, sizeof cbor);
  weft_cbor_bytes(&w, bytes, n);
  n = (size_t)(w.at - cbor);
  for (size_t i = 0; i < n; i++) f->value[i] = cbor[i];
  offer(f, &f->ends[1], (uint16_t)n);
}
static void answer_events(weft_flight_link *f) {
  uint8_t bytes[WEFT_FLIGHT_LEAST];
  size_t n = weft_flight_take(&f->reader, bytes, sizeof bytes);
  if (!n) f->takes = false;
  answer(f, bytes, n);
}
/* Takes and drops the events that an ended session left, so that the recorder continues. */
static void give_up(weft_flight_link *f) {
  uint8_t bytes[WEFT_FLIGHT_LEAST];
  while (f->takes && weft_flight_take(&f->reader, bytes, sizeof bytes)) {}
  f->takes = false;
}
static void over(weft_link_op *op) {
  weft_flight_link *f =
      (weft_flight_link *)(void *)((uint8_t *)op - offsetof(weft_flight_link, op));
  bool asked = f->guard.end == &f->ends[0];
  if (op->status != WEFT_LINK_OK) {
    give_up(f);
    if (op->status == WEFT_LINK_DIED) offer(f, &f->ends[0], 0);
    return;
  }
  if (!asked) {
    if (f->takes)
      answer_events(f);
    else
      offer(f, &f->ends[0], 0);
    return;
  }
  weft_cbor r = weft_cbor_reader(f->value, op->length);
  int64_t what = weft_cbor_read_int(&r);
  if (!r.bad && what == EVENTS) {
    f->reader = (weft_flight_reader){.board = f->link->name};
    f->takes = true;
    answer_events(f);
  } else {
    uint64_t now = weft_now64();
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(now >> 8 * i);
    answer(f, bytes, r.bad || what != TIME ? 0 : sizeof bytes);
  }
}
void weft_flight_serve(weft_flight_link *f) { offer(f, &f->ends[0], 0); }
