/* weft_mcu/cbor.h: values as CBOR (RFC 8949), as far as a link carries them (WIRE.md 12.8): into bytes of the user's, and out of them.
 *
 *   uint8_t room[32];
 *   weft_cbor w = weft_cbor_writer(room, sizeof room);
 *   weft_cbor_array(&w, 2), weft_cbor_int(&w, -7), weft_cbor_text(&w, "volts", 5);
 *   if (!w.bad) … w.at - room bytes
 *
 * Invariant: nothing is read or written beyond `end`. What has no room, or is not of the kind that was asked for, sets `bad`, and
 * everything after it does nothing: one look at the end is enough.
 */
#ifndef WEFT_MCU_CBOR_H
#define WEFT_MCU_CBOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_cbor {
  uint8_t *at, *end;
  bool bad;
} weft_cbor;
static inline weft_cbor weft_cbor_writer(uint8_t *to, size_t room) {
  weft_cbor w = {to, to + room, false};
  return w;
}
/* Of one whole value, as weft_link gives it. */
static inline weft_cbor weft_cbor_reader(const uint8_t *from, size_t length) { return weft_cbor_writer((uint8_t *)from, length); }

void weft_cbor_null(weft_cbor *w);
void weft_cbor_bool(weft_cbor *w, bool v);
void weft_cbor_int(weft_cbor *w, int64_t v);
void weft_cbor_uint(weft_cbor *w, uint64_t v);
void weft_cbor_float(weft_cbor *w, float v);
void weft_cbor_text(weft_cbor *w, const char *text, size_t length);
void weft_cbor_bytes(weft_cbor *w, const void *bytes, size_t length);
void weft_cbor_array(weft_cbor *w, size_t count); /* then so many values */
void weft_cbor_map(weft_cbor *w, size_t count);   /* then so many times a key and a value */

typedef enum weft_cbor_kind {
  WEFT_CBOR_UINT,
  WEFT_CBOR_NEGATIVE,
  WEFT_CBOR_BYTES,
  WEFT_CBOR_TEXT,
  WEFT_CBOR_ARRAY,
  WEFT_CBOR_MAP,
  WEFT_CBOR_LARGE, /* an integer of more than 64 bits: skipped */
  WEFT_CBOR_BOOL,
  WEFT_CBOR_NULL,
  WEFT_CBOR_FLOAT,
  WEFT_CBOR_NONE, /* there is no more, or `bad` */
} weft_cbor_kind;
typedef struct weft_cbor_item {
  weft_cbor_kind kind;
  uint64_t n;           /* UINT: the value; NEGATIVE: -1 less the value; ARRAY, MAP: how many; TEXT, BYTES: how long; BOOL: 0 or 1 */
  const uint8_t *bytes; /* TEXT, BYTES */
  float f;              /* FLOAT: of 64 bits the nearest towards zero */
} weft_cbor_item;
/* The next item: of an array or a map its head. */
weft_cbor_item weft_cbor_next(weft_cbor *r);
/* The next item as this; anything else, or a number that does not fit, is `bad`. */
int64_t weft_cbor_read_int(weft_cbor *r);
bool weft_cbor_read_bool(weft_cbor *r);
float weft_cbor_read_float(weft_cbor *r); /* of integers too */
/* Is this one value, and a link's? */
bool weft_cbor_is_whole(const uint8_t *from, size_t length);

#ifdef __cplusplus
}
#endif
#endif
