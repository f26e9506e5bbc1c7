/* link.c: a session with a PC (weft_mcu/link.h): packets on the serial line (wire 12.6, 13),
 * compact frames (12.7), delegated operations (4, 7, 8). */
#include "weft_mcu/link.h"

#include "frame.h"
#include "weft_mcu/cbor.h"

enum {
  OFFER = 1,
  WITHDRAW = 2,
  RETIRE = 10,
  POISON = 11,
  DONE = 20,
  WITHDRAWN = 21,
  ENDED = 25,
  GIVE = 30,
  HELLO = 40,
  BYE = 41,
  VALUE = 48
};
enum { WRITE = 1, BODY = 128 };
enum { AWAITED, OURS, GIVEN_UP, REFUSED }; /* REFUSED: given up before the PC has handed it out */
enum { OWES_POISON = 1, OWES_RETIRE = 2 };
enum { RETIRED = 1, POISONED = 2, DIED = 3 };
enum { START = 40, HEADER = 32, FIELDS = 5 };
enum { COMPACT = 32 }; /* a compact frame without its body is never longer than this */
enum {
  LARGEST = 1024
}; /* the largest frame that is accepted; a value is stored in its destination as it arrives */
enum { NOBODY = 0, ALL = 0xffffffff };
enum { WHERE, TXN, OP, VAL, LENGTH };

static bool is_past(uint32_t t, uint32_t now) { return (int32_t)(now - t) >= 0; }
static uint32_t key(uint32_t from, uint32_t to) {
  uint8_t b[8];
  set32(b, from), set32(b + 4, to);
  return crc32(b, 8);
}

/* ---- sending ---- */

static void push(weft_link *l, uint8_t b) {
  unsigned at = l->first + l->held++;
  l->out[at < l->out_room ? at : at - l->out_room] = b;
}
static void push_varint(weft_link *l, uint64_t v) {
  for (; v > 127; v >>= 7) push(l, (uint8_t)(v | 128));
  push(l, (uint8_t)v);
}
static bool room_for(const weft_link *l, size_t body) {
  return body + COMPACT <= (size_t)(l->out_room - l->held);
}
static void put_head(weft_link *l, uint8_t kind, uint8_t flags, uint32_t where, uint32_t txn,
                     uint64_t op, uint64_t val, size_t body) {
  push(l, kind), push(l, flags);
  push_varint(l, where), push_varint(l, txn), push_varint(l, op), push_varint(l, val),
      push_varint(l, body);
}
static size_t padded(size_t n) { return (n + 7) & ~(size_t)7; }
static size_t length_of(const char *s) {
  size_t n = 0;
  while (s[n]) n++;
  return n;
}
static bool same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

static bool is_silent(const weft_link_op *op, unsigned i) { return op->silent >> i & 1; }
static bool writes(const weft_link_op *op) {
  for (unsigned i = 0; i < op->count; i++)
    if (op->guards[i].end->writes) return true;
  return false;
}
/* Return the number of bytes in the body of the operation's OFFER, which is the same in a compact
 * frame and in an ordinary frame. */
static size_t body_of(const weft_link_op *op) {
  size_t n = 0;
  bool head = false;
  for (unsigned i = 0; i < op->count; i++) {
    if (is_silent(op, i)) continue;
    n += (head ? 16 : 0) + (op->guards[i].end->writes ? padded(op->guards[i].length) : 0);
    head = true;
  }
  return n;
}
static void put_offer(weft_link *l, weft_link_op *op) {
  bool head = false;
  op->number = ++l->last;
  op->sent = true, op->whole = 0;
  for (unsigned i = 0; i < op->count; i++) {
    const weft_link_guard *g = &op->guards[i];
    uint8_t flags = g->end->writes ? WRITE | BODY : 0;
    uint32_t n = g->end->writes ? g->length : 0;
    if (is_silent(op, i)) continue;
    if (!head)
      put_head(l, OFFER, flags, g->end->number, 0, op->number, n, body_of(op));
    else {
      uint8_t row[16] = {0};
      set32(row, g->end->number), row[4] = flags, set32(row + 8, n);
      for (unsigned k = 0; k < 16; k++) push(l, row[k]);
    }
    head = true;
    for (uint32_t k = 0; k < n; k++) push(l, g->value[k]);
    for (uint32_t k = n; k < padded(n); k++) push(l, 0);
  }
}

/* Return OURS if an operation that has not been sent yet may be sent. An end that was given up
 * after the operation was offered counts as OURS until the PC knows of that; after that the
 * operation has a closed end (GIVEN_UP). */
static unsigned may_go(const weft_link_op *op) {
  unsigned all = OURS;
  for (unsigned i = 0; i < op->count; i++) {
    const weft_link_end *e = op->guards[i].end;
    if (is_silent(op, i) || e->state == OURS || (e->state == GIVEN_UP && e->owes)) continue;
    if (e->state != AWAITED) return GIVEN_UP;
    all = AWAITED;
  }
  return all;
}
static void finish(weft_link *l, weft_link_op *op, weft_link_status status, unsigned won);

/* Send everything that has waited for room or for an end to be handed out. Operations go first, in
 * their order, then the messages about ends. Therefore all values of an end are written before the
 * end is given up. */
static void say(weft_link *l) {
  if (!l->greeted || l->why) return;
  for (weft_link_op *op = l->ops, *next; op; op = next) {
    next = op->next;
    if (!op->sent) {
      unsigned may = may_go(op);
      if (may == AWAITED) continue;
      if (may == GIVEN_UP || body_of(op) + HEADER > l->largest) {
        /* The operation's `over` may change which operation is next, so the loop is started
         * again later. */
        finish(l, op, may == GIVEN_UP ? WEFT_LINK_BAD_USE : WEFT_LINK_TOO_LONG, 0);
        l->fresh = true;
        return;
      }
      if (!room_for(l, body_of(op))) return;
      put_offer(l, op);
    }
    if (op->leaving && !op->asked) {
      if (!room_for(l, 0)) return;
      put_head(l, WITHDRAW, 0, 0, 0, op->number, 0, 0);
      op->asked = true;
    }
  }
  for (unsigned i = 0; i < l->count; i++) {
    weft_link_end *e = &l->ends[i];
    while (e->owes && (e->state == OURS || e->state == GIVEN_UP)) {
      bool poisons = e->owes & OWES_POISON;
      if (!room_for(l, 0)) return;
      put_head(l, poisons ? POISON : RETIRE, 0, e->number, 0, 0, poisons ? e->strength : 0, 0);
      e->owes &= poisons ? OWES_RETIRE : 0;
    }
  }
}

/* ---- operations ---- */

/* End an operation and call its `over`. */
static void finish(weft_link *l, weft_link_op *op, weft_link_status status, unsigned won) {
  for (weft_link_op **at = &l->ops; *at; at = &(*at)->next)
    if (*at == op) {
      *at = op->next;
      break;
    }
  if (l->sink == op) l->sink = 0;
  op->status = (uint8_t)status, op->won = (uint8_t)won;
  if (op->over) op->over(op);
}
static weft_link_status status_of(const weft_link_end *e) {
  return e->how == DIED       ? WEFT_LINK_DIED
         : e->how == POISONED ? WEFT_LINK_POISONED
                              : WEFT_LINK_RETIRED;
}

/* Find out whether the operation is over before it is offered. Guards whose channels have
 * retired fall silent until all deciding guards have fallen silent (rule 5.6). */
static weft_link_status look(const weft_link *l, weft_link_op *op, unsigned *won) {
  bool alive = false, out = writes(op);
  *won = 0;
  op->silent = 0;
  if (!op->count || op->count > WEFT_LINK_GUARDS) return WEFT_LINK_BAD_USE;
  if (l->why) return WEFT_LINK_PENDING; /* The operation waits for the next session. */
  for (unsigned i = op->count; i-- > 0;)
    if (op->guards[i].end->state >= GIVEN_UP) return *won = i, WEFT_LINK_BAD_USE;
  for (unsigned i = 0; i < op->count; i++) {
    const weft_link_end *e = op->guards[i].end;
    if (e->how > RETIRED) return *won = i, status_of(e);
    if (e->how)
      op->silent |= (uint8_t)(1u << i);
    else
      alive |= e->writes == out;
  }
  if (!alive) return WEFT_LINK_RETIRED;
  return body_of(op) + COMPACT > l->out_room ? WEFT_LINK_TOO_LONG : WEFT_LINK_PENDING;
}

bool weft_link_offer(weft_link *l, weft_link_op *op) {
  unsigned won;
  weft_link_op **at = &l->ops;
  for (; *at; at = &(*at)->next)
    if (*at == op) return true; /* The operation is under way already. */
  op->in_doubt = op->sent = op->leaving = op->asked = false;
  op->length = 0;
  op->status = (uint8_t)look(l, op, &won);
  op->won = (uint8_t)won;
  if (op->status) return false;
  op->next = 0;
  *at = op;
  l->fresh = true;
  return true;
}
void weft_link_withdraw(weft_link *l, weft_link_op *op) {
  for (weft_link_op *o = l->ops; o; o = o->next)
    if (o == op) {
      if (!op->sent) return finish(l, op, WEFT_LINK_WITHDRAWN, 0);
      op->leaving = l->fresh = true;
      return;
    }
}
void weft_link_retire(weft_link *l, weft_link_end *e) {
  if (e->state > OURS) return;
  e->state = e->state == OURS ? GIVEN_UP : REFUSED;
  if (!l->why) e->owes |= OWES_RETIRE, l->fresh = true;
}
void weft_link_poison(weft_link *l, weft_link_end *e, uint8_t strength) {
  if (e->state > OURS || e->how || l->why || !strength) return;
  e->how = POISONED, e->strength = strength, e->owes |= OWES_POISON;
  l->fresh = true;
}

/* ---- the end of a session ---- */

static void over(weft_link *l, const char *why) {
  if (l->why) return;
  l->why = why;
  for (unsigned i = 0; i < l->count; i++) {
    l->ends[i].owes = 0;
    if (!l->ends[i].how) l->ends[i].how = DIED;
  }
  weft_link_op *all = l->ops; /* Operations offered from now on wait for the next session. */
  l->ops = l->sink = 0;
  while (all) {
    weft_link_op *op = all;
    all = op->next;
    op->in_doubt = op->sent && writes(op);
    finish(l, op, WEFT_LINK_DIED, 0);
  }
  if (l->news) l->news(l);
}
static void bye(weft_link *l, const char *why) {
  size_t n = length_of(why);
  if (l->why) return;
  if (l->linked && room_for(l, n)) {
    put_head(l, BYE, 0, 0, 0, 0, n, n);
    while (*why) push(l, (uint8_t)*why++);
    why -= n;
  }
  over(l, why);
}
void weft_link_close(weft_link *l, const char *why) {
  say(l);
  bye(l, why);
}
bool weft_link_settled(const weft_link *l) { return !l->linked || l->lost || !l->held; }
static void lose(weft_link *l, const char *why) {
  l->lost = true;
  over(l, why);
}

void weft_link_begin(weft_link *l, uint32_t token, uint32_t random, uint32_t now) {
  uint8_t *p = (uint8_t *)&l->mine, *end = (uint8_t *)(l + 1);
  if (l->mine) over(l, "the board began another session");
  weft_link_op *waiting = l->ops;
  while (p < end) *p++ = 0;
  l->why = 0;
  l->ops = waiting;
  for (unsigned i = 0; i < l->count; i++) {
    weft_link_end *e = &l->ends[i];
    e->state = e->dropped ? REFUSED : AWAITED;
    e->owes = e->dropped ? OWES_RETIRE : 0;
    e->how = 0;
  }
  if (!l->lease) l->lease = 3000;
  if (!l->again) l->again = 200;
  l->mine = token ? token : 1;
  l->random = random;
  l->start_at = now;
  l->again_ = l->again;
  l->largest = 256;
  const char *name = l->name ? l->name : "board";
  size_t n = length_of(name);
  if (n > 60) n = 60;
  if (!room_for(l, 8 + n)) return lose(l, "the board has no room for a frame");
  put_head(l, HELLO, 0, 0x54464557, 0x10001, (uint64_t)random << 32 | token,
           (uint64_t)LARGEST << 32, 8 + n);
  for (unsigned i = 0; i < 8; i++) push(l, 0);
  while (n--) push(l, (uint8_t)*name++);
}

/* ---- the serial line ---- */

static uint32_t own_lease(const weft_link *l) {
  return l->lease == WEFT_LINK_NO_LEASE ? 0 : l->lease;
}

static size_t packet(weft_link *l, uint8_t *to, uint32_t number, unsigned from, unsigned length,
                     unsigned flags, uint32_t now) {
  uint8_t *p = to + 1;
  set32(p + 4, number), set32(p + 8, l->due);
  p[12] = (uint8_t)length, p[13] = 0, p[14] = (uint8_t)flags, p[15] = 0;
  for (unsigned i = 0, at = l->first + from; i < length; i++, at++)
    p[WEFT_LINK_HEAD + i] = l->out[at % l->out_room];
  set32(p, crc32(p + 4, WEFT_LINK_HEAD - 4 + length) ^ key(l->mine, l->theirs));
  l->owes = false;
  l->beat_at = now + l->lease_ / 3;
  return cobs(to, WEFT_LINK_HEAD + length);
}
static size_t start(weft_link *l, uint8_t *to) {
  static const char magic[8] = {'W', 'E', 'F', 'T', 'L', 'I', 'N', 'E'};
  uint8_t *p = to + 1;
  for (unsigned i = 0; i < START; i++) p[i] = i >= 4 && i < 12 ? (uint8_t)magic[i - 4] : 0;
  set32(p + 12, l->mine), set32(p + 16, l->theirs), set32(p + 20, own_lease(l)),
      set32(p + 24, l->again);
  set32(p, crc32(p + 4, START - 4));
  return cobs(to, START);
}

/* Set the time to `now`: check whether the lease has expired, and send unacknowledged packets
 * again. */
static void pass(weft_link *l, uint32_t now) {
  if (!l->linked || l->lost) return;
  if (l->lease_ && is_past(l->heard + l->lease_, now))
    return lose(l, "nothing was heard of the PC for the lease");
  if (!l->kept || !is_past(l->again_at, now)) return;
  l->again_at = now + l->again_;
  l->sent = 0;
  l->whiles++;
  if (l->lease_ && l->whiles >= 10 + 2 * (l->lease_ / l->again_))
    lose(l, "the PC acknowledges nothing");
}

size_t weft_link_output(weft_link *l, uint8_t *to, uint32_t now) {
  pass(l, now);
  if (l->lost) return 0;
  if (l->says || (!l->linked && is_past(l->start_at, now))) {
    l->says = false;
    l->start_at = now + l->again_;
    return start(l, to);
  }
  if (!l->linked) return 0;
  say(l);
  l->fresh = false;
  if (l->sent == l->kept && l->kept < WEFT_LINK_WINDOW && l->held > l->kept_bytes) {
    unsigned n = l->held - l->kept_bytes;
    l->lengths[l->kept] = (uint8_t)(n < WEFT_LINK_MAX ? n : WEFT_LINK_MAX);
    l->kept_bytes = (uint16_t)(l->kept_bytes + l->lengths[l->kept]);
    if (!l->kept++) l->again_at = now + l->again_;
  }
  if (l->sent < l->kept) {
    unsigned from = 0, i = l->sent++;
    for (unsigned k = 0; k < i; k++) from += l->lengths[k];
    return packet(l, to, l->base + i, from, l->lengths[i], 1, now);
  }
  return l->owes || (l->lease_ && is_past(l->beat_at, now)) ? packet(l, to, 0, 0, 0, 0, now) : 0;
}

static uint32_t nearer(uint32_t least, uint32_t t, uint32_t now) {
  uint32_t in = is_past(t, now) ? 0 : t - now;
  return in < least ? in : least;
}
uint32_t weft_link_due(const weft_link *l, uint32_t now) {
  uint32_t in = ALL;
  if (l->lost) return ALL;
  if (l->says) return 0;
  if (!l->linked) return nearer(ALL, l->start_at, now);
  bool more = l->sent < l->kept || (l->kept < WEFT_LINK_WINDOW && l->held > l->kept_bytes);
  if (l->fresh || l->owes || more) return 0;
  if (l->kept) in = nearer(in, l->again_at, now);
  if (l->lease_) in = nearer(nearer(in, l->beat_at, now), l->heard + l->lease_, now);
  return in;
}

/* ---- receiving frames ---- */

static void fault(weft_link *l, const char *why) { bye(l, why); }

static weft_link_op *op_of(weft_link *l) {
  for (weft_link_op *op = l->ops; op; op = op->next)
    if (op->sent && op->number == l->field[OP]) return op;
  return 0;
}
/* Return the index of the guard that has the number `n` among the offered guards; op->count if
 * there is none. */
static unsigned guard_of(const weft_link_op *op, uint64_t n) {
  unsigned i = 0;
  for (; i < op->count; i++)
    if (!is_silent(op, i) && n-- == 0) break;
  return i;
}
static void value_byte(weft_link_op *op, uint8_t b) {
  if (op->whole < op->room) op->into[op->whole] = b;
  op->whole++;
}

static void greet(weft_link *l) {
  uint32_t low = l->field[TXN] & 0xffff, high = (uint32_t)l->field[TXN] >> 16,
           largest = (uint32_t)(l->field[VAL] >> 32);
  if (l->kind != HELLO || l->field[WHERE] != 0x54464557)
    return fault(l, "the PC does not speak Weft's wire");
  if (low > 1 || high < 1) return fault(l, "no common version: this board speaks 1");
  if (largest < 256 || largest > 65528)
    return fault(l, "the PC's largest frame is not between 256 and 65528");
  l->largest = (uint16_t)(largest < LARGEST ? largest : LARGEST);
  l->greeted = l->fresh = true;
}

/* Handle the body of a GIVE: key 8, "cbor", 0, the requested name, perhaps a space and the
 * channel's own name. */
static void give(weft_link *l) {
  char *text = (char *)l->text + 8, *name;
  if (l->field[VAL] > l->field[LENGTH] + 7 || l->field[VAL] < 13 || !same(text, "cbor"))
    return fault(l, "an end of another type than cbor");
  if (l->field[VAL] < sizeof l->text) l->text[l->field[VAL]] = 0;
  l->text[sizeof l->text - 1] = 0;
  name = text + 5;
  for (char *p = name; *p; p++)
    if (*p == ' ') *p = 0;
  for (unsigned i = 0; i < l->count; i++) {
    weft_link_end *e = &l->ends[i];
    if ((e->state == AWAITED || e->state == REFUSED) &&
        e->writes == ((l->flags & WRITE) != 0) && same(e->name, name)) {
      e->number = (uint32_t)l->field[WHERE];
      e->state = e->state == AWAITED ? OURS : GIVEN_UP;
      l->fresh = true;
      if (e->state == OURS && l->news) l->news(l);
      return;
    }
  }
}

static void ended(weft_link *l, weft_link_op *op) {
  unsigned i = guard_of(op, l->field[WHERE]), how = l->field[VAL] & 255, won;
  weft_link_status status;
  if (i == op->count) return fault(l, "an answer for a guard that was not offered");
  if (how < RETIRED || how > DIED)
    return finish(l, op, how == 4 ? WEFT_LINK_TOO_LONG : WEFT_LINK_BAD_USE, i);
  if (!op->guards[i].end->how) {
    op->guards[i].end->how = (uint8_t)how;
    op->guards[i].end->strength = (uint8_t)(l->field[VAL] >> 8);
  }
  if (op->leaving) return finish(l, op, status_of(op->guards[i].end), i);
  status = look(l, op, &won); /* A choice continues with the other guards. */
  if (status) return finish(l, op, status, status == WEFT_LINK_RETIRED ? i : won);
  /* The operation gets a new number, so that a late answer to the old number belongs to no
   * operation. */
  op->sent = false;
  l->fresh = true;
}

static void done(weft_link *l, weft_link_op *op) {
  unsigned i = guard_of(op, l->field[WHERE]);
  if (i == op->count) return fault(l, "an answer for a guard that was not offered");
  if (op->guards[i].end->writes) return finish(l, op, WEFT_LINK_OK, i);
  if (!(l->flags & BODY) || !op->whole) return fault(l, "a value that is not there");
  if (op->whole > op->room) return finish(l, op, WEFT_LINK_TOO_LONG, i);
  op->length = (uint16_t)op->whole;
  if (!weft_cbor_is_whole(op->into, op->length))
    return fault(l, "a value that is not CBOR of a link");
  finish(l, op, WEFT_LINK_OK, i);
}

/* Called when the head of a frame is complete: choose the place where its body is stored. */
static void frame_begins(weft_link *l) {
  weft_link_op *op = l->kind == DONE || l->kind == VALUE ? op_of(l) : 0;
  l->sink = op && (l->kind == VALUE || l->flags & BODY) ? op : 0;
  l->body = 0;
  for (unsigned i = 0; i < sizeof l->text; i++) l->text[i] = 0;
}
static void body_byte(weft_link *l, uint8_t b) {
  if (l->sink) {
    if (l->body < l->field[VAL]) value_byte(l->sink, b);
  } else if (l->body < sizeof l->text)
    l->text[l->body] = b;
  l->body++;
}
static void frame_ends(weft_link *l) {
  weft_link_op *op;
  if (!l->greeted) return greet(l);
  if (l->kind == BYE) return over(l, "the PC has ended the session");
  if (l->kind == GIVE) return give(l);
  if (l->kind != DONE && l->kind != VALUE && l->kind != WITHDRAWN && l->kind != ENDED)
    return fault(l, "a frame that has no business on a board");
  if (l->sink) { /* Up to seven zeros at the end of the value have been left out. */
    if (l->field[VAL] > padded(l->body))
      return fault(l, "a value that is not of the length it says");
    for (uint64_t k = l->body; k < l->field[VAL]; k++) value_byte(l->sink, 0);
  }
  op = op_of(l);
  if (!op || l->kind == VALUE) return;
  if (l->kind == WITHDRAWN)
    finish(l, op, WEFT_LINK_WITHDRAWN, 0);
  else if (l->kind == DONE)
    done(l, op);
  else
    ended(l, op);
}

/* Handle one byte of the session: a frame is its kind, flags, five varints, and the body. */
static void session_byte(weft_link *l, uint8_t b) {
  static const uint64_t most[FIELDS] = {ALL, ALL, ~(uint64_t)0, ~(uint64_t)0, 65496};
  if (l->why) return;
  if (l->stage == 0) {
    l->kind = b, l->stage = 1;
    return;
  }
  if (l->stage == 1) {
    l->flags = b, l->stage = 2, l->shift = 0, l->field[0] = 0;
    return;
  }
  if (l->stage < 2 + FIELDS) {
    uint64_t *f = &l->field[l->stage - 2];
    if (l->shift == 63 && b > 1) return fault(l, "a number of a compact frame does not end");
    *f |= (uint64_t)(b & 127) << l->shift;
    if (b > 127) {
      l->shift = (uint8_t)(l->shift + 7);
      return;
    }
    if (*f > most[l->stage - 2]) return fault(l, "a field of a compact frame is too large");
    l->shift = 0;
    if (++l->stage < 2 + FIELDS) {
      l->field[l->stage - 2] = 0;
      return;
    }
    frame_begins(l);
  } else
    body_byte(l, b);
  if (l->body == l->field[LENGTH]) {
    l->stage = 0;
    frame_ends(l);
  }
}

/* ---- receiving packets ---- */

static void link_now(weft_link *l, uint32_t now) {
  l->linked = true;
  l->heard = now;
  l->beat_at = now + l->lease_ / 3;
}
static void started(weft_link *l, uint32_t now) {
  uint32_t from = get32(l->in + 12), to = get32(l->in + 16), lease = get32(l->in + 20),
           again = get32(l->in + 24);
  if (from == NOBODY || from == l->mine) return; /* The START is an echo. */
  if (l->linked) {
    if (from != l->theirs || (l->knows_me && to == NOBODY))
      return lose(l, "the PC has started anew");
    l->heard = now;
    l->says |= to != l->mine;
    return;
  }
  l->says = true;
  /* The START is meant for an earlier session of this board. */
  if (to != NOBODY && to != l->mine) return;
  l->theirs = from;
  if (lease > 3600000) lease = 3600000;
  if (again > 60000) again = 60000;
  l->lease_ = !lease ? 0 : !own_lease(l) || own_lease(l) > lease ? own_lease(l) : lease;
  l->again_ = l->again > again ? l->again : again;
  if (to == l->mine) link_now(l, now);
}
static void take_packet(weft_link *l, uint32_t now) {
  uint8_t *p = l->in;
  unsigned n = l->in_length;
  if (n < WEFT_LINK_HEAD) return;
  uint32_t sum = crc32(p + 4, n - 4), number = get32(p + 4), moves = get32(p + 8) - l->base,
           mine = l->mine;
  if (n == START && get32(p) == sum && p[4] == 'W' && p[5] == 'E' && p[6] == 'F' && p[7] == 'T' &&
      p[8] == 'L' && p[9] == 'I' && p[10] == 'N' && p[11] == 'E')
    return started(l, now);
  if (!l->theirs || (get32(p) ^ key(l->theirs, l->mine)) != sum) return;
  if (p[15] || p[14] > 1 || n != WEFT_LINK_HEAD + p[12] + 256u * p[13]) return;
  if (!l->linked) link_now(l, now);
  l->heard = now;
  l->knows_me = true;
  if (moves && moves <= l->kept) {
    unsigned gone = 0;
    for (unsigned i = 0; i < l->kept; i++) {
      if (i < moves)
        gone += l->lengths[i];
      else
        l->lengths[i - moves] = l->lengths[i];
    }
    l->base += moves;
    l->kept = (uint8_t)(l->kept - moves);
    l->sent = (uint8_t)(l->sent > moves ? l->sent - moves : 0);
    l->kept_bytes = (uint16_t)(l->kept_bytes - gone), l->held = (uint16_t)(l->held - gone);
    l->first = (uint16_t)((l->first + gone) % l->out_room);
    l->whiles = 0;
    l->again_at = now + l->again_;
  }
  if (!p[14]) return;
  l->owes = true;
  if (number != l->due) return;
  l->due++;
  /* The loop stops if `news` has begun the next session, to which these bytes do not belong. */
  for (unsigned i = WEFT_LINK_HEAD; i < n && l->mine == mine; i++) session_byte(l, p[i]);
}

/* Undo COBS byte by byte. `left` bytes of a block are still to come. A block ends in a zero unless
 * it is the last or has 254 bytes. */
static void line_byte(weft_link *l, uint8_t b, uint32_t now) {
  if (b == 0) {
    if (!l->spoilt && !l->left && l->code) take_packet(l, now);
    l->code = l->left = 0, l->in_length = 0, l->spoilt = false;
    return;
  }
  if (l->left == 0) {
    uint8_t before = l->code;
    l->code = b, l->left = (uint8_t)(b - 1);
    if (before == 0 || before == 255) return;
    b = 0;
  } else
    l->left--;
  if (l->in_length < sizeof l->in)
    l->in[l->in_length++] = b;
  else
    l->spoilt = true;
}
void weft_link_input(weft_link *l, const uint8_t *bytes, size_t n, uint32_t now) {
  while (n-- && !l->lost) line_byte(l, *bytes++, now);
}
