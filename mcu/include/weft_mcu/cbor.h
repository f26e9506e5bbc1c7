/* weft_mcu/cbor.h: writes values as CBOR (RFC 8949) into the user's bytes and reads them back,
 * within the subset that a link carries (WIRE-LINKS.md 12.8).
 *
 *   uint8_t room[32];
 *   weft_cbor w = weft_cbor_writer(room, sizeof room);
 *   weft_cbor_array(&w, 2), weft_cbor_int(&w, -7), weft_cbor_text(&w, "volts", 5);
 *   if (!w.bad) … w.at - room bytes
 *
 * Invariant: nothing is read or written beyond `end`. A value for which there is no room, or an
 * item that is not of the requested kind, sets `bad`; every later call then does nothing. Therefore
 * it is enough to check `bad` once, at the end.
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
/* Make a reader of one whole value, such as weft_link gives. */
static inline weft_cbor weft_cbor_reader(const uint8_t *from, size_t length) {
  return weft_cbor_writer((uint8_t *)from, length);
}

void weft_cbor_null(weft_cbor *w);
void weft_cbor_bool(weft_cbor *w, bool v);
void weft_cbor_int(weft_cbor *w, int64_t v);
void weft_cbor_uint(weft_cbor *w, uint64_t v);
void weft_cbor_float(weft_cbor *w, float v);
void weft_cbor_text(weft_cbor *w, const char *text, size_t length);
void weft_cbor_bytes(weft_cbor *w, const void *bytes, size_t length);
void weft_cbor_array(weft_cbor *w, size_t count); /* followed by `count` values */
void weft_cbor_map(weft_cbor *w, size_t count);   /* followed by `count` pairs of a key and a
                                                   * value */

typedef enum weft_cbor_kind {
  WEFT_CBOR_UINT,
  WEFT_CBOR_NEGATIVE,
  WEFT_CBOR_BYTES,
  WEFT_CBOR_TEXT,
  WEFT_CBOR_ARRAY,
  WEFT_CBOR_MAP,
  WEFT_CBOR_LARGE, /* an integer of more than 64 bits; it is skipped */
  WEFT_CBOR_BOOL,
  WEFT_CBOR_NULL,
  WEFT_CBOR_FLOAT,
  WEFT_CBOR_NONE, /* there are no more items, or `bad` is set */
} weft_cbor_kind;
typedef struct weft_cbor_item {
  weft_cbor_kind kind;
  uint64_t n; /* UINT: the value; NEGATIVE: -1 less the value; ARRAY, MAP: the number of items;
                 TEXT, BYTES: the length; BOOL: 0 or 1 */
  const uint8_t *bytes; /* the text (TEXT) or the bytes (BYTES) */
  float f;              /* the value (FLOAT); a double becomes the nearest float towards zero */
} weft_cbor_item;
/* Return the next item. Of an array or a map only the head is read. */
weft_cbor_item weft_cbor_next(weft_cbor *r);
/* Return the next item as this type. `bad` is set if the item is of another kind, or is a number
 * that does not fit. */
int64_t weft_cbor_read_int(weft_cbor *r);
bool weft_cbor_read_bool(weft_cbor *r);
float weft_cbor_read_float(weft_cbor *r); /* accepts integers too */
/* Return whether the bytes are exactly one value of a kind that a link carries. */
bool weft_cbor_is_whole(const uint8_t *from, size_t length);

#ifdef __cplusplus
}
#endif
#endif
