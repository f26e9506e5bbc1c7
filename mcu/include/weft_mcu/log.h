/* weft_mcu/log.h: a log whose texts stay on the host (rule M23).
 *
 *   static weft_log log_;
 *   WEFT_LOG(&log_, "button %u after %d ms", button, ms);
 *
 * The text is in a section of the ELF that is not loaded. A record in the log's ring has 16 bytes:
 * the number of the text, the time, two arguments. weft_log_packet turns records into bytes for a
 * serial line or a file, and `weft-rp2040 log ELF` turns these bytes into lines of text.
 *
 *                WEFT_LOG                     weft_log_packet
 *   free slot ──────────────► record ──────────────────────────► free slot
 *                               │  the ring has gone round
 *                               └──────────────────────────────► lost, and counted
 *
 * A log belongs to one core: any action and interrupt of that core may put records into it, and
 * weft_log_packet is called on that core as well. A program with two cores has two logs. LOG.md has
 * the costs.
 */
#ifndef WEFT_MCU_LOG_H
#define WEFT_MCU_LOG_H
#include "weft_mcu/platform.h"

#ifndef WEFT_LOG_SLOTS
#define WEFT_LOG_SLOTS 64u /* a power of two */
#endif
/* Switch this core's interrupts off and on. A port can define shorter code than its local lock. */
#ifndef WEFT_IRQ_OFF
#define WEFT_IRQ_OFF() weft_lock(WEFT_LOCAL)
#define WEFT_IRQ_ON(irq) weft_unlock(WEFT_LOCAL, (irq))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t entry; /* 4 * the number of the text + the number of arguments */
  uint32_t time;  /* in us */
  uint32_t args[2];
} weft_log_slot;

/* A weft_log that is all zero is an empty log. */
typedef struct {
  uint32_t in, out; /* records put and taken; both wrap */
  uint32_t lost;    /* records that were overwritten and that no packet has reported yet */
  weft_log_slot slot[WEFT_LOG_SLOTS];
} weft_log;

/* Log a text with at most two arguments of 32 bits. The text is a literal whose conversions are %d,
 * %i, %u, %x, %X, %c and %%, with flags and width as in printf. Called in any context of the log's
 * core. WEFT_LOG never waits; a full ring loses its oldest record. */
#define WEFT_LOG(log, ...)                                                                 \
  WEFT_LOG_JOIN(WEFT_LOG_, WEFT_LOG_ARGS(__VA_ARGS__, many, many, many, many, 2, 1, 0, 0)) \
  (log, __VA_ARGS__)

/* Write the oldest records to `to`, as one packet of at most `room` bytes (WEFT_LOG_ROOM to 254),
 * and free their slots. Return the number of bytes, 0 if there is no record. Called on the log's
 * core, outside interrupts. */
size_t weft_log_packet(weft_log *l, uint8_t *to, size_t room);
enum { WEFT_LOG_ROOM = 32 };

WEFT_INLINE weft_log_slot *weft_log_next(weft_log *l) {
  uint32_t in = l->in;
  l->in = in + 1;
  return &l->slot[in % WEFT_LOG_SLOTS];
}
WEFT_INLINE void weft_log_put0(weft_log *l, uint32_t entry) {
  weft_irq_t irq = WEFT_IRQ_OFF();
  weft_log_slot *s = weft_log_next(l);
  s->entry = entry;
  s->time = weft_now32();
  WEFT_IRQ_ON(irq);
}
WEFT_INLINE void weft_log_put1(weft_log *l, uint32_t entry, uint32_t a) {
  weft_irq_t irq = WEFT_IRQ_OFF();
  weft_log_slot *s = weft_log_next(l);
  s->entry = entry;
  s->time = weft_now32();
  s->args[0] = a;
  WEFT_IRQ_ON(irq);
}
WEFT_INLINE void weft_log_put2(weft_log *l, uint32_t entry, uint32_t a, uint32_t b) {
  weft_irq_t irq = WEFT_IRQ_OFF();
  weft_log_slot *s = weft_log_next(l);
  s->entry = entry;
  s->time = weft_now32();
  s->args[0] = a;
  s->args[1] = b;
  WEFT_IRQ_ON(irq);
}

/* The compiler compares the arguments with the conversions. */
__attribute__((format(printf, 1, 2))) static inline void weft_log_checked(const char *format, ...) {
  (void)format;
}
#define WEFT_LOG_JOIN(a, b) WEFT_LOG_JOIN_(a, b)
#define WEFT_LOG_JOIN_(a, b) a##b
#define WEFT_LOG_ARGS(format, a, b, c, d, e, f, n, ...) n
/* The text, and a word that stands for the text. The address of the word in its section is 4 * the
 * number of the text, so its two lowest bits are free for the number of arguments. */
#define WEFT_LOG_TEXT(format)                                                               \
  static const char weft_log_text[] __attribute__((section(".weft_log_text"))) = format;    \
  static const char *const weft_log_entry __attribute__((section(".weft_log"), used)) =     \
      weft_log_text
#define WEFT_LOG_ENTRY(n) ((uint32_t)(uintptr_t)&weft_log_entry + (n))
#define WEFT_LOG_0(log, format)               \
  do {                                        \
    WEFT_LOG_TEXT(format);                    \
    if (0) weft_log_checked(format);          \
    weft_log_put0((log), WEFT_LOG_ENTRY(0u)); \
  } while (0)
#define WEFT_LOG_1(log, format, a)                             \
  do {                                                         \
    WEFT_LOG_TEXT(format);                                     \
    if (0) weft_log_checked(format, (int)(a));                 \
    weft_log_put1((log), WEFT_LOG_ENTRY(1u), (uint32_t)(a));   \
  } while (0)
#define WEFT_LOG_2(log, format, a, b)                                         \
  do {                                                                        \
    WEFT_LOG_TEXT(format);                                                    \
    if (0) weft_log_checked(format, (int)(a), (int)(b));                      \
    weft_log_put2((log), WEFT_LOG_ENTRY(2u), (uint32_t)(a), (uint32_t)(b));   \
  } while (0)
#define WEFT_LOG_many(log, ...) \
  _Static_assert(0, "WEFT_LOG takes at most two arguments after its text: log twice")
#ifdef __cplusplus
}
#endif
#endif
