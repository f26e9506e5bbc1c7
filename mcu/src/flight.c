/* flight.c: the functions of weft_mcu/flight.h: the rings, and the bytes for `weft trace`.
 *
 * The bytes are those of mcu/FLIGHT.md: eight that say what they are, and pieces. A piece is a
 * letter, the number of bytes that follow (four bytes, the lowest first), and these bytes.
 */
#include "weft_mcu/flight.h"

enum { PIECE = 5, EVENT = 16, LONGEST = 60 };

static uint8_t *put32(uint8_t *p, uint32_t v) {
  for (unsigned i = 0; i < 4; i++) *p++ = (uint8_t)(v >> 8 * i);
  return p;
}
static uint8_t *put_text(uint8_t *p, const char *text) {
  for (unsigned i = 0; text && text[i] && i < LONGEST; i++) *p++ = (uint8_t)text[i];
  return p;
}
/* Completes the piece that begins at `piece` and ends at `end`. Returns the end of the piece. */
static uint8_t *close_piece(uint8_t *piece, char letter, uint8_t *end) {
  piece[0] = (uint8_t)letter;
  put32(piece + 1, (uint32_t)(end - piece) - PIECE);
  return end;
}
#if WEFT_FLIGHT
/* Writes the address of a thing, which stands for the thing in events. On a host the upper half of
 * the address is left out. */
static uint8_t *put_thing(uint8_t *p, const void *thing) {
  return put32(p, (uint32_t)(uintptr_t)thing);
}

typedef struct event {
  const void *who, *place;
  uint32_t what, time;
} event;
/* What a note needs of a core. WEFT_FLIGHT_NOTE of a port depends on this layout. `noted` and
 * `mask` count STEP for each event, so on a microcontroller they count bytes. */
enum { STEP = 16 };
typedef struct lane {
  uint32_t noted, mask;
  event *ring;
  uint32_t from; /* the number of the first event that is neither taken nor lost */
} lane;
static event rings[WEFT_CORES][WEFT_FLIGHT];
#define LANE(core) \
  { 0, (WEFT_FLIGHT - 1) * STEP, rings[core], 0 }
lane weft_flight_lanes[WEFT_CORES] = {
    LANE(0),
#if WEFT_CORES > 1
    LANE(1),
#endif
};
/* While the rings are read, the events from number `until` on are lost, and `first` is a copy of
 * the ring's first event. */
static struct {
  uint32_t until;
  event first;
} reading[WEFT_CORES];
static const weft_flight_name *names;
static unsigned named;
typedef struct process {
  const char *name;
} process;
static process processes[WEFT_FLIGHT_PROCESSES];
static unsigned started;
static uint32_t lost, taken; /* taken: events that earlier readings have taken */
const void *weft_flight_hidden;

#ifdef WEFT_FLIGHT_NOTE
_Static_assert(sizeof(event) == STEP, "WEFT_FLIGHT_NOTE counts on this size");
__attribute__((naked)) WEFT_HOT void weft_flight_note(const void *who, const void *place,
                                                      uint32_t what) {
  (void)who, (void)place, (void)what; /* The assembly finds them in r0, r1 and r2. */
  WEFT_FLIGHT_NOTE(weft_flight_lanes);
}
#else
WEFT_HOT void weft_flight_note(const void *who, const void *place, uint32_t what) {
  lane *l = &weft_flight_lanes[weft_core()];
  uint32_t noted = WEFT_PEEK(l->noted);
  event *e = &l->ring[(noted & WEFT_PEEK(l->mask)) / STEP];
  e->who = who, e->place = place, e->what = what, e->time = weft_now32();
  WEFT_POKE(l->noted, noted + STEP);
}
#endif
void weft_flight_names(const weft_flight_name *table, unsigned count) {
  names = table, named = count;
}
const void *weft_flight_process(const char *name) {
  process *p = &processes[started < WEFT_FLIGHT_PROCESSES ? started++ : WEFT_FLIGHT_PROCESSES - 1];
  p->name = name;
  return p;
}

/* Events are counted modulo COUNTS + 1. */
enum { COUNTS = (uint32_t)-1 / STEP };
static uint32_t count_of(const lane *l) { return WEFT_PEEK(l->noted) / STEP; }
static uint32_t missing(uint32_t later, uint32_t earlier) { return (later - earlier) & COUNTS; }

static void stop(weft_flight_reader *r) {
  for (unsigned i = 0; i < WEFT_CORES; i++) {
    lane *l = &weft_flight_lanes[i];
    uint32_t until = count_of(l);
    reading[i].first = l->ring[0];
    WEFT_POKE(l->mask, 0);
    /* go_on() has skipped one event of another core, which that core may not have noted yet. */
    if (missing(until, l->from) > COUNTS / 2) until = l->from;
    /* The other core may be in the middle of a note, which overwrites the oldest event. */
    if (missing(until, l->from) > WEFT_FLIGHT - 1) {
      lost += missing(until, l->from) - (WEFT_FLIGHT - 1);
      l->from = until - (WEFT_FLIGHT - 1);
    }
    reading[i].until = until;
  }
  r->index = r->lane = 0;
}
static void go_on(void) {
  for (unsigned i = 0; i < WEFT_CORES; i++) {
    lane *l = &weft_flight_lanes[i];
    uint32_t count = count_of(l);
    lost += missing(count, reading[i].until);
    /* One more event of another core is skipped: that core may be in the middle of its note. */
    l->from = count + (i != weft_core());
    WEFT_POKE(l->mask, (WEFT_FLIGHT - 1) * STEP);
  }
}
/* Returns how many events of a core are still to be taken. */
static uint32_t left(unsigned core) {
  return missing(reading[core].until, weft_flight_lanes[core].from);
}
static uint8_t *put_events(weft_flight_reader *r, uint8_t *p, const uint8_t *end) {
  while (r->lane < WEFT_CORES && !left(r->lane)) r->lane++;
  if (r->lane == WEFT_CORES) return p;
  lane *l = &weft_flight_lanes[r->lane];
  uint8_t *piece = p;
  p = put32(p + PIECE, r->lane);
  for (; left(r->lane) && end - p >= EVENT; l->from++, taken++) {
    unsigned i = l->from & (WEFT_FLIGHT - 1);
    const event *e = i ? &l->ring[i] : &reading[r->lane].first;
    p = put32(put_thing(put_thing(put32(p, e->time), e->who), e->place), e->what);
  }
  return close_piece(piece, 'R', p);
}
static uint8_t *put_name(weft_flight_reader *r, uint8_t *p) {
  uint8_t *piece = p;
  if (r->index < named) {
    const weft_flight_name *n = &names[r->index++];
    return close_piece(piece, 'N', put_text(put_thing(p + PIECE, n->thing), n->name));
  }
  if (r->index - named >= started) return p;
  const process *one = &processes[r->index++ - named];
  return close_piece(piece, 'P', put_text(put_thing(p + PIECE, one), one->name));
}
#else
static const uint32_t lost, taken;
static void stop(weft_flight_reader *r) { r->index = 0; }
static void go_on(void) {}
static uint8_t *put_events(weft_flight_reader *r, uint8_t *p, const uint8_t *end) {
  return (void)r, (void)end, p;
}
static uint8_t *put_name(weft_flight_reader *r, uint8_t *p) { return (void)r, p; }
#endif

enum { BEGINNING, NAMES, EVENTS, END, OVER };

static uint8_t *put_head(const weft_flight_reader *r, uint8_t *p) {
  static const uint8_t magic[8] = {0x89, 'W', 'E', 'F', 'T', '\n', 0x1a, 'b'};
  for (unsigned i = 0; i < sizeof magic; i++) *p++ = magic[i];
  uint64_t now = weft_now64();
  uint8_t *piece = p;
  p = put32(put32(p + PIECE, (uint32_t)now), (uint32_t)(now >> 32));
  p = put32(put32(put32(p, lost), WEFT_FLIGHT), taken);
  return close_piece(piece, 'T', put_text(p, r->board ? r->board : "board"));
}

size_t weft_flight_take(weft_flight_reader *r, uint8_t *to, size_t room) {
  uint8_t *p = to;
  if (room < WEFT_FLIGHT_LEAST) return 0;
  if (r->stage == BEGINNING) {
    stop(r);
    p = put_head(r, p);
    r->stage = NAMES;
  } else if (r->stage == NAMES) {
    p = put_name(r, p);
    if (p == to) r->stage = EVENTS;
  }
  if (r->stage == EVENTS) {
    p = put_events(r, p, to + room);
    if (p == to) r->stage = END;
  }
  if (r->stage == END) {
    go_on();
    p = close_piece(p, 'Z', p + PIECE);
    r->stage = OVER;
  }
  return (size_t)(p - to);
}
