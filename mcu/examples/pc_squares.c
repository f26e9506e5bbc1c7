/* pc_squares: an actor that talks with a Python program over the UART (mcu/LINK.md): the actor
 * reads integers from one channel of the PC, and writes their squares to another. Each answer is an
 * event of its own, and the core sleeps in between. */
#include "link_uart.h"
#include "weft_mcu/cbor.h"

static weft_queue queue;
static weft_actor squarer;

static weft_link_end ends[] = {WEFT_LINK_READER("numbers"), WEFT_LINK_WRITER("squares")};
static uint8_t room[256], got[32], made[16];
static weft_link pc = {
    .ends = ends, .count = 2, .out = room, .out_room = sizeof room, .name = "squares"};
static weft_link_uart line = {.link = &pc, .queue = &queue, .actor = &squarer};

static void read_next(weft_link_op *op);
static void write_square(weft_link_op *op);
static const weft_link_guard from = {.end = &ends[0]};
static weft_link_guard to = {.end = &ends[1], .value = made};
static weft_link_op reading = {
    .guards = &from, .count = 1, .into = got, .room = sizeof got, .over = write_square};
static weft_link_op writing = {.guards = &to, .count = 1, .over = read_next};

static bool idle; /* true once the actor has given up its ends, and waits for the next session */

static void let_go(void) {
  weft_link_retire(&pc, &ends[0]);
  weft_link_retire(&pc, &ends[1]);
  idle = true;
}
/* After a session both operations begin anew: the first read waits until the next session has
 * handed out its end.
 */
static void read_next(weft_link_op *op) {
  bool over = op && (op->status == WEFT_LINK_RETIRED || op->status == WEFT_LINK_POISONED);
  if (over || !weft_link_offer(&pc, &reading)) let_go();
}
static void write_square(weft_link_op *op) {
  if (op->status == WEFT_LINK_DIED) return read_next(0);
  weft_cbor r = weft_cbor_reader(got, op->length), w = weft_cbor_writer(made, sizeof made);
  int64_t n = op->status == WEFT_LINK_OK ? weft_cbor_read_int(&r) : 0;
  if (op->status != WEFT_LINK_OK || r.bad || n > INT32_MAX || n < INT32_MIN) return let_go();
  weft_cbor_int(&w, n * n);
  to.length = (uint16_t)(w.at - made);
  if (!weft_link_offer(&pc, &writing)) let_go();
}
static void news(weft_link *link) {
  if (link->why && idle) idle = false, read_next(0);
}

int main(void) {
  uart_init();
  weft_list_init(&queue, WEFT_LOCAL);
  pc.news = news;
  weft_link_uart_start(&line);
  read_next(0);
  weft_work(&queue);
  return 0;
}
