/* link_kit.h: a link, and a PC that sends the frames that a test wants. The PC computes checksums
 * and COBS itself, so that the link's code is not checked against itself. */
#include <string.h>

#include "check.h"
#include "weft_mcu/cbor.h"
#include "weft_mcu/link.h"

enum { KIT_MINE = 0x01020304, KIT_THEIRS = 0x0a0b0c0d };
static weft_link_end ends[] = {WEFT_LINK_READER("a"), WEFT_LINK_WRITER("b"), WEFT_LINK_READER("c")};
static uint8_t room[288], got[64], said[sizeof room];
static weft_link pc = {.ends = ends, .count = 3, .out = room, .out_room = sizeof room};
static uint32_t kit_now, kit_number, kit_acknowledged;
static int overs;

static inline void count_over(weft_link_op *op) { (void)op, overs++; }

static uint32_t kit_crc(const uint8_t *p, size_t n) {
  uint32_t c = 0xffffffff;
  while (n--) {
    c ^= *p++;
    for (unsigned i = 0; i < 8; i++) c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
  }
  return ~c;
}
static void kit_put32(uint8_t *p, uint32_t v) {
  p[0] = (uint8_t)v, p[1] = (uint8_t)(v >> 8), p[2] = (uint8_t)(v >> 16), p[3] = (uint8_t)(v >> 24);
}
/* Send to the link over the line, in COBS. */
static void kit_line(const uint8_t *p, size_t n) {
  uint8_t out[600];
  size_t at = 0, k = 1;
  for (size_t i = 0; i < n; i++) {
    if (p[i]) out[k++] = p[i];
    if (!p[i] || k - at == 255) out[at] = (uint8_t)(k - at), at = k++;
  }
  out[at] = (uint8_t)(k - at);
  out[k++] = 0;
  weft_link_input(&pc, out, k, kit_now);
}
static void kit_start(uint32_t to) {
  uint8_t p[40] = "----WEFTLINE";
  kit_put32(p + 12, KIT_THEIRS), kit_put32(p + 16, to), kit_put32(p + 20, 3000),
      kit_put32(p + 24, 200);
  kit_put32(p, kit_crc(p + 4, 36));
  kit_line(p, 40);
}
static void kit_packet(const uint8_t *bytes, size_t n) {
  uint8_t p[16 + 256], tokens[8];
  kit_put32(tokens, KIT_THEIRS), kit_put32(tokens + 4, pc.mine);
  kit_put32(p + 4, kit_number++), kit_put32(p + 8, kit_acknowledged),
      kit_put32(p + 12, (uint32_t)n | 1u << 16);
  memcpy(p + 16, bytes, n);
  kit_put32(p, kit_crc(p + 4, 12 + n) ^ kit_crc(tokens, 8));
  kit_line(p, 16 + n);
}
static void kit_frame_of(uint8_t kind, uint8_t flags, uint32_t where, uint32_t txn, uint64_t op,
                         uint64_t val, const void *body, size_t n) {
  uint8_t frame[256];
  uint64_t fields[5] = {where, txn, op, val, n};
  size_t k = 0;
  frame[k++] = kind, frame[k++] = flags;
  for (unsigned i = 0; i < 5; i++) {
    for (; fields[i] > 127; fields[i] >>= 7) frame[k++] = (uint8_t)(fields[i] | 128);
    frame[k++] = (uint8_t)fields[i];
  }
  memcpy(frame + k, body, n);
  kit_packet(frame, k + n);
}
static void kit_frame(uint8_t kind, uint8_t flags, uint32_t where, uint64_t op, uint64_t val,
                      const void *body, size_t n) {
  kit_frame_of(kind, flags, where, 0, op, val, body, n);
}
static void kit_give(const char *name, bool writes, uint32_t number) {
  uint8_t body[32] = "12345678cbor";
  size_t n = strlen(name);
  memcpy(body + 13, name, n);
  kit_frame(30, writes, number, 0, 13 + n, body, 13 + n);
}
/* Take everything that the link sends to the PC, and acknowledge it. Return the number of bytes of
 * the session that are in `said`.
 */
static size_t kit_says(void) {
  uint8_t line[WEFT_LINK_PACKET];
  size_t n = 0;
  while (weft_link_output(&pc, line, kit_now)) {
  }
  for (unsigned i = 0; i < pc.held; i++) said[n++] = pc.out[(pc.first + i) % pc.out_room];
  kit_acknowledged = pc.base + pc.kept;
  if (n) kit_packet((const uint8_t *)"", 0);
  while (weft_link_output(&pc, line, kit_now)) {
  }
  return n;
}
static void kit_begin(uint32_t token, uint32_t random) {
  overs = 0, kit_number = kit_acknowledged = 0;
  memset(got, 0x55, sizeof got);
  weft_link_begin(&pc, token, random, kit_now);
}
static void kit_greet(void) {
  kit_start(0), kit_start(pc.mine);
  kit_frame_of(40, 0, 0x54464557, 0x10001, 1, 1024ull << 32, "", 0);
  kit_says();
}
static inline void kit_linked(void) {
  pc.ops = 0; /* Drops the operations of the previous test. */
  kit_begin(KIT_MINE, 7);
  kit_greet();
}
static void kit_again(void) {
  kit_number = kit_acknowledged = 0;
  weft_link_begin(&pc, KIT_MINE + 1, 8, kit_now);
  kit_greet();
}
