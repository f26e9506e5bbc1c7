/* log.c: the packets of a log (weft_mcu/log.h). Before COBS a packet has its CRC-32, then 'L', the
 * time of its first record in four bytes, how many records were lost before this record (varint);
 * then for each record
 *
 *   varint of its entry, low 16 bits
 *   varint of 4 * (us since the record before) + (bytes of an argument - 1)
 *   the arguments, of so many bytes each; the reader extends the sign of each
 *
 * A varint has 7 bits a byte, the low ones first. */
#include "weft_mcu/log.h"

#include "frame.h"

enum { SUM = 4, LOG_PACKET = 'L', RECORD = 3 + 5 + 8, LONGEST_GAP = 1 << 28 };

static uint8_t *varint(uint8_t *p, uint32_t v) {
  for (; v > 127; v >>= 7) *p++ = (uint8_t)(v | 128);
  *p++ = (uint8_t)v;
  return p;
}
/* Copy the oldest record, which stays in its slot. Records that were overwritten are counted
 * first. */
static bool oldest(weft_log *l, weft_log_slot *copy) {
  weft_irq_t irq = WEFT_IRQ_OFF();
  uint32_t behind = l->in - l->out;
  if (behind > WEFT_LOG_SLOTS) {
    l->lost += behind - WEFT_LOG_SLOTS;
    l->out += behind - WEFT_LOG_SLOTS;
  }
  *copy = l->slot[l->out % WEFT_LOG_SLOTS];
  WEFT_IRQ_ON(irq);
  return behind != 0;
}
/* Return the number of bytes that hold v, less 1. */
static unsigned size_of(uint32_t v) {
  uint32_t folded = v ^ (uint32_t)((int32_t)v >> 31);
  return folded < 0x80 ? 0 : folded < 0x8000 ? 1 : folded < 0x800000 ? 2 : 3;
}

size_t weft_log_packet(weft_log *l, uint8_t *to, size_t room) {
  uint8_t *begin = to + 1, *p = begin + SUM, *most = to + room - 1 - RECORD;
  weft_log_slot s;
  if (!oldest(l, &s)) return 0;
  uint32_t before = s.time;
  *p++ = LOG_PACKET;
  set32(p, before);
  p = varint(p + 4, l->lost);
  l->lost = 0;
  do {
    unsigned n = s.entry & 3, size = 0;
    uint32_t gap = s.time - before;
    if (gap >= LONGEST_GAP) break;
    for (unsigned i = 0; i < n; i++)
      if (size_of(s.args[i]) > size) size = size_of(s.args[i]);
    p = varint(p, s.entry & 0xffff);
    p = varint(p, gap << 2 | size);
    for (unsigned i = 0; i < n; i++)
      for (unsigned k = 0; k <= size; k++) *p++ = (uint8_t)(s.args[i] >> 8 * k);
    before = s.time;
    l->out++;
    /* The next packet reports the records that are lost now. */
  } while (p <= most && oldest(l, &s) && !l->lost);
  set32(begin, crc32(begin + SUM, (size_t)(p - begin) - SUM));
  return cobs(to, (size_t)(p - begin));
}
