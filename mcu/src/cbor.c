/* cbor.c: the functions of weft_mcu/cbor.h. */
#include "weft_mcu/cbor.h"

enum { DEEPEST = 16 };

static void put(weft_cbor *w, const void *bytes, size_t n) {
  if (w->bad || n > (size_t)(w->end - w->at)) {
    w->bad = true;
    return;
  }
  for (const uint8_t *p = (const uint8_t *)bytes; n--;) *w->at++ = *p++;
}
static void head(weft_cbor *w, unsigned major, uint64_t n) {
  uint8_t b[9];
  unsigned size = n < 24 ? 0 : n < 0x100 ? 1 : n < 0x10000 ? 2 : n < 0x100000000u ? 4 : 8, k = 0;
  b[k++] = (uint8_t)(major << 5 | (size == 0   ? n
                                   : size == 1 ? 24
                                   : size == 2 ? 25
                                   : size == 4 ? 26
                                               : 27));
  while (size) b[k++] = (uint8_t)(n >> 8 * --size);
  put(w, b, k);
}

void weft_cbor_null(weft_cbor *w) { put(w, "\xf6", 1); }
void weft_cbor_bool(weft_cbor *w, bool v) { put(w, v ? "\xf5" : "\xf4", 1); }
void weft_cbor_int(weft_cbor *w, int64_t v) { head(w, v < 0, v < 0 ? ~(uint64_t)v : (uint64_t)v); }
void weft_cbor_uint(weft_cbor *w, uint64_t v) { head(w, 0, v); }
void weft_cbor_float(weft_cbor *w, float v) {
  union {
    float f;
    uint32_t n;
  } u = {v};
  uint8_t b[5] = {0xfa, (uint8_t)(u.n >> 24), (uint8_t)(u.n >> 16), (uint8_t)(u.n >> 8),
                  (uint8_t)u.n};
  put(w, b, 5);
}
void weft_cbor_bytes(weft_cbor *w, const void *bytes, size_t length) {
  head(w, 2, length), put(w, bytes, length);
}
void weft_cbor_text(weft_cbor *w, const char *text, size_t length) {
  head(w, 3, length), put(w, text, length);
}
void weft_cbor_array(weft_cbor *w, size_t count) { head(w, 4, count); }
void weft_cbor_map(weft_cbor *w, size_t count) { head(w, 5, count); }

static float make_float(uint32_t bits) {
  union {
    uint32_t n;
    float f;
  } u = {bits};
  return u.f;
}
static float half(uint32_t n) {
  uint32_t sign = n >> 15 << 31, e = n >> 10 & 31, m = n & 1023;
  if (e == 31) return make_float(sign | 0x7f800000 | m << 13);
  if (e) return make_float(sign | (e + 112) << 23 | m << 13);
  if (!m) return make_float(sign);
  for (e = 113; !(m & 1024); e--) m <<= 1;
  return make_float(sign | e << 23 | (m & 1023) << 13);
}
/* Narrow a double to a float with integers only, so that no library for doubles is linked. Surplus
 * bits are cut off, not rounded; a number that is too large becomes infinite. */
static float narrowed(uint64_t n) {
  uint32_t sign = (uint32_t)(n >> 63) << 31, e = n >> 52 & 2047, m = (uint32_t)(n >> 29) & 0x7fffff;
  if (e == 2047) return make_float(sign | 0x7f800000 | m | ((n & 0x1fffffff) != 0));
  if (e > 1150) return make_float(sign | 0x7f800000);
  if (e < 897) return make_float(e < 874 ? sign : sign | (0x800000 | m) >> (897 - e));
  return make_float(sign | (e - 896) << 23 | m);
}

/* Read the head of an item. Return true if the head is whole; otherwise set `bad` and return
 * false. */
static bool take_head(weft_cbor *r, unsigned *major, unsigned *low, uint64_t *n) {
  if (r->bad || r->at == r->end) return r->bad = true, false;
  *major = *r->at >> 5, *low = *r->at & 31;
  r->at++;
  *n = *low;
  if (*low < 24) return true;
  unsigned size = *low > 27 ? 99 : 1u << (*low - 24);
  if (size > (size_t)(r->end - r->at)) return r->bad = true, false;
  for (*n = 0; size--;) *n = *n << 8 | *r->at++;
  return true;
}

static bool is_utf8(const uint8_t *p, const uint8_t *end) {
  while (p < end) {
    uint32_t b = *p++, more = b < 0x80       ? 0
                              : b >> 5 == 6  ? 1
                              : b >> 4 == 14 ? 2
                              : b >> 3 == 30 ? 3
                                             : 9;
    if (more > (size_t)(end - p)) return false;
    uint32_t c = more ? b & 0x3f >> more : b;
    for (uint32_t k = more; k--;) {
      if (*p >> 6 != 2) return false;
      c = c << 6 | (*p++ & 0x3f);
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ||
        (more && c < (more == 1   ? 0x80u
                      : more == 2 ? 0x800u
                                  : 0x10000u)))
      return false;
  }
  return true;
}

weft_cbor_item weft_cbor_next(weft_cbor *r) {
  weft_cbor_item item = {WEFT_CBOR_NONE, 0, 0, 0};
  unsigned major, low;
  if (r->at == r->end || !take_head(r, &major, &low, &item.n)) return item;
  if (major == 6) { /* tag 2 or 3, a big number; its bytes follow */
    unsigned inner;
    bool large = item.n == 2 || item.n == 3;
    if (!take_head(r, &inner, &low, &item.n) || !large || inner != 2 ||
        item.n > (size_t)(r->end - r->at))
      return r->bad = true, item;
    r->at += item.n;
    item.kind = WEFT_CBOR_LARGE;
    return item;
  }
  if (major == 7) {
    if (low == 20 || low == 21)
      item.kind = WEFT_CBOR_BOOL, item.n = low == 21;
    else if (low == 22)
      item.kind = WEFT_CBOR_NULL;
    else if (low >= 25 && low <= 27)
      item.kind = WEFT_CBOR_FLOAT, item.f = low == 25   ? half((uint32_t)item.n)
                                            : low == 26 ? make_float((uint32_t)item.n)
                                                        : narrowed(item.n);
    else
      r->bad = true;
    return item;
  }
  if (major >= 2 && item.n > (size_t)(r->end - r->at))
    return r->bad = true, item; /* Each item has at least one byte. */
  if (major == 2 || major == 3) {
    item.bytes = r->at;
    r->at += item.n;
    if (major == 3 && !is_utf8(item.bytes, r->at)) return r->bad = true, item;
  }
  item.kind = (weft_cbor_kind)major;
  return item;
}

int64_t weft_cbor_read_int(weft_cbor *r) {
  weft_cbor_item i = weft_cbor_next(r);
  if (i.kind > WEFT_CBOR_NEGATIVE || i.n > INT64_MAX) return r->bad = true, 0;
  return i.kind == WEFT_CBOR_UINT ? (int64_t)i.n : -1 - (int64_t)i.n;
}
bool weft_cbor_read_bool(weft_cbor *r) {
  weft_cbor_item i = weft_cbor_next(r);
  return i.kind == WEFT_CBOR_BOOL ? i.n != 0 : (r->bad = true, false);
}
float weft_cbor_read_float(weft_cbor *r) {
  weft_cbor_item i = weft_cbor_next(r);
  if (i.kind == WEFT_CBOR_FLOAT) return i.f;
  if (i.kind > WEFT_CBOR_NEGATIVE) return r->bad = true, 0.0f;
  return i.kind == WEFT_CBOR_UINT ? (float)i.n : -1.0f - (float)i.n;
}

/* The function works without recursion: `left` contains the number of items that each level still
 * needs. An entry of a map counts as two items; its key is the item with the even number. */
bool weft_cbor_is_whole(const uint8_t *from, size_t length) {
  weft_cbor r = weft_cbor_reader(from, length);
  uint64_t left[DEEPEST + 1];
  bool map[DEEPEST + 1];
  unsigned depth = 0;
  left[0] = 1, map[0] = false;
  for (;;) {
    while (left[depth] == 0) {
      if (depth-- == 0) return r.at == r.end;
    }
    bool key = map[depth] && left[depth] % 2 == 0;
    weft_cbor_item i = weft_cbor_next(&r);
    if (r.bad || i.kind == WEFT_CBOR_NONE) return false;
    left[depth]--;
    bool nests = i.kind == WEFT_CBOR_ARRAY || i.kind == WEFT_CBOR_MAP;
    if ((key && nests) || (i.kind == WEFT_CBOR_LARGE && depth == DEEPEST)) return false;
    if (!nests) continue;
    if (depth == DEEPEST) {
      if (i.n) return false; /* The nesting would be too deep; an empty list or map is allowed. */
      continue;
    }
    left[++depth] = i.kind == WEFT_CBOR_MAP ? 2 * i.n : i.n;
    map[depth] = i.kind == WEFT_CBOR_MAP;
  }
}
