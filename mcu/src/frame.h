/* frame.h: COBS and CRC-32 for the packets of a serial line, which zero bytes separate: those of a
 * link to a PC (link.c) and those of a log (log.c). Both kinds may share a line, because each
 * reader passes over packets that are not its own. */
#ifndef WEFT_FRAME_H
#define WEFT_FRAME_H
#include <stddef.h>
#include <stdint.h>
#define WEFT_FRAME_STATIC __attribute__((unused)) static

WEFT_FRAME_STATIC void set32(uint8_t *p, uint32_t v) {
  for (unsigned i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}
WEFT_FRAME_STATIC uint32_t get32(const uint8_t *p) {
  return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

WEFT_FRAME_STATIC uint32_t crc32(const uint8_t *p, size_t n) {
  static const uint32_t table[16] = {0,          0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                     0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                     0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  uint32_t c = 0xffffffff;
  while (n--) {
    c ^= *p++;
    c = table[c & 15] ^ c >> 4;
    c = table[c & 15] ^ c >> 4;
  }
  return ~c;
}

/* Apply COBS in place: p has one byte of room before its n bytes, and one after them. n is less
 * than 254, so each block needs only one code byte. */
WEFT_FRAME_STATIC size_t cobs(uint8_t *p, size_t n) {
  size_t last = 0;
  for (size_t i = 1; i <= n; i++)
    if (!p[i]) p[last] = (uint8_t)(i - last), last = i;
  p[last] = (uint8_t)(n + 1 - last);
  p[n + 1] = 0;
  return n + 2;
}
#endif
