/* weft_mcu/link.h: channels whose other end is in a Weft program on a PC, over a serial line
 * (mcu/LINK.md; wire 2.6, 12.6 to 12.8).
 *
 * The home of the channels is the PC. An operation here is an offer to the PC, and ends with one
 * answer or with the session. This code does no input or output, reads no clock and has no heap.
 * The program that drives the serial line passes the bytes that have arrived, fetches the bytes to
 * send, and passes the time. link_uart.h does so for the RP2040's UART.
 *
 *   begun ──START, START──► linked ──HELLO──► open ──BYE, a lease, a START of another, a fault──►
 *   over ──weft_link_begin──► begun
 *
 * All calls for one link come from one context: an actor, or main.
 *
 * Invariants
 *  1 An operation is in `ops` from weft_link_offer until its `over` is called, which happens once;
 *    until then its storage and values must stay as they are.
 *  2 `out` is a ring: first the bytes of the `kept` packets, which are not acknowledged yet, then
 *    the bytes that are in no packet yet.
 *  3 A packet is taken whole or not at all, and only if it is the next packet in order; bytes that
 *    form no packet are skipped.
 */
#ifndef WEFT_MCU_LINK_H
#define WEFT_MCU_LINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { WEFT_LINK_MAX = 192, WEFT_LINK_HEAD = 16, WEFT_LINK_WINDOW = 4, WEFT_LINK_GUARDS = 8 };
/* The largest number of bytes that weft_link_output returns: one packet in COBS. */
enum { WEFT_LINK_PACKET = WEFT_LINK_HEAD + WEFT_LINK_MAX + 2 };

typedef enum weft_link_status {
  WEFT_LINK_PENDING,
  WEFT_LINK_OK,
  WEFT_LINK_RETIRED,
  WEFT_LINK_POISONED,
  WEFT_LINK_DIED,      /* the session is over; if `in_doubt`, the value may have been taken */
  WEFT_LINK_WITHDRAWN, /* withdrawn by weft_link_withdraw; nothing was transferred */
  WEFT_LINK_TOO_LONG,  /* the value that was read did not fit into `room` and is lost; or the value
                          to be written is too long for a frame */
  WEFT_LINK_BAD_USE,   /* the end is closed, or of the other side; there are no guards, or too
                          many; or both ends of one channel are in a choice */
} weft_link_status;

/* An end that the PC hands out under `name`. The user sets only `name`, `writes` and `dropped`. */
typedef struct weft_link_end {
  const char *name;
  bool writes;
  uint8_t state;    /* 0: not handed out yet; 1: held by the board; 2: given up; 3: given up
                       before it was handed out */
  uint8_t how;      /* how its channel has ended: 0 it has not, 1 retired, 2 poisoned, 3 died */
  uint8_t strength; /* the strength of the poison */
  uint8_t owes;     /* the messages that must be sent for this end: POISON, RETIRE, or one after
                     * the other */
  bool dropped;     /* the end is no longer used: each new session gives it up immediately */
  uint32_t number;
} weft_link_end;
#define WEFT_LINK_READER(its_name) \
  { its_name, false, 0, 0, 0, 0, false, 0 }
#define WEFT_LINK_WRITER(its_name) \
  { its_name, true, 0, 0, 0, 0, false, 0 }

/* What an operation offers: to read from a reader end, or to write `value`, one CBOR value, to a
 * writer end (weft_mcu/cbor.h). */
typedef struct weft_link_guard {
  weft_link_end *end;
  const uint8_t *value;
  uint16_t length;
} weft_link_guard;

/* One operation: one guard, or a choice of several. The user sets the members down to `over`;
 * the others belong to the link. */
typedef struct weft_link_op {
  const weft_link_guard *guards;
  uint8_t count;
  uint8_t *into; /* where the value that is read is stored; it has `room` bytes */
  uint16_t room;
  /* Called in the context of the link's calls when the operation is over; it may offer the
   * operation again. If this is 0, nothing is called. */
  void (*over)(struct weft_link_op *op);
  uint8_t status; /* a weft_link_status, set when the operation is over */
  uint8_t won;    /* the guard that was chosen, or whose channel has ended */
  bool in_doubt;
  uint16_t length; /* the length of the value that was read */
  bool sent, leaving, asked;
  uint8_t silent; /* bits of guards that were left out because their channels have retired */
  uint32_t number, whole;
  struct weft_link_op *next;
} weft_link_op;

typedef struct weft_link {
  /* The user sets the following members before weft_link_begin. */
  weft_link_end *ends;
  uint8_t count;
  uint8_t *out; /* the buffer for bytes to the PC: at least 64 bytes longer than the longest
                   value, better twice that */
  uint16_t out_room;
  const char *name;      /* the board's name, for people; at most 60 bytes; 0: "board" */
  uint32_t lease, again; /* in ms; 0 and 0: 3000 and 200. WEFT_LINK_NO_LEASE: no lease */
  void (*news)(
      struct weft_link *link); /* called when an end has been handed out or the session is over;
                                * may be 0 */
  const char *why;             /* the reason why the session is over; 0 if the session is not
                                * over */

  /* The link sets the following members. */
  uint32_t mine, theirs, random, lease_, again_;
  uint32_t base, due, start_at, heard, beat_at, again_at, last;
  uint16_t first, held, kept_bytes;
  uint8_t lengths[WEFT_LINK_WINDOW], kept, sent;
  uint16_t whiles;
  bool linked, says, owes, knows_me, greeted, lost, fresh, closing;
  uint16_t largest;
  uint8_t in[WEFT_LINK_HEAD + WEFT_LINK_MAX];
  uint16_t in_length;
  uint8_t code, left;
  bool spoilt;
  uint8_t stage, shift, kind, flags; /* the parts of the frame that is being received */
  uint64_t field[5];
  uint32_t body;
  uint8_t text[96]; /* the frame's body, if it is not a value */
  weft_link_op *ops, *sink;
} weft_link;
enum { WEFT_LINK_NO_LEASE = 0xffffffff };

/* Begins a session. An earlier session must be over, with all its operations. `token` and
 * `random` are two random words, new for each start. */
void weft_link_begin(weft_link *link, uint32_t token, uint32_t random, uint32_t now_ms);
/* Accepts the `n` bytes that have arrived over the serial line. */
void weft_link_input(weft_link *link, const uint8_t *bytes, size_t n, uint32_t now_ms);
/* Writes the bytes that are to be sent now to `to`, at most WEFT_LINK_PACKET of them, and
 * returns their number. Returns 0 if there is nothing more to send. */
size_t weft_link_output(weft_link *link, uint8_t *to, uint32_t now_ms);
/* Returns in how many ms weft_link_output will have something to do if no bytes come and no call
 * is made; 0xffffffff means never. */
uint32_t weft_link_due(const weft_link *link, uint32_t now_ms);

/* Begins an operation. Returns true if the operation is under way (also if it was offered before
 * and is not over); `over` will then be called. Returns false if the operation is already over:
 * then op->status is its outcome, and `over` is not called. An operation at an end that the PC has
 * not handed out yet waits for the end. An operation that is offered while the session is over
 * waits for the next session. */
bool weft_link_offer(weft_link *link, weft_link_op *op);
/* Asks the PC to withdraw an operation. The operation is not over before the PC answers, and may
 * still succeed (WIRE.md 4.3). */
void weft_link_withdraw(weft_link *link, weft_link_op *op);
/* Gives up an end, after all values that were written before. The channel retires if this was the
 * last end of its side. An end that the PC has not handed out yet is given back when it comes. The
 * call applies to the current session: the next session has the end again, unless the end is
 * `dropped`. */
void weft_link_retire(weft_link *link, weft_link_end *end);
/* Poisons the end's channel with a strength of 1 to 255. If the end has not been handed out yet,
 * the channel is poisoned as soon as the PC hands the end out. */
void weft_link_poison(weft_link *link, weft_link_end *end, uint8_t strength);
/* Ends the session in good order and sends `why` to the PC. The program must serve the serial
 * line until weft_link_settled returns true. */
void weft_link_close(weft_link *link, const char *why);
/* Returns whether the PC has acknowledged everything that was sent, or there is no PC that could do
 * so. */
bool weft_link_settled(const weft_link *link);

#ifdef __cplusplus
}
#endif
#endif
