/* log.c: the log against rule M23, on the fake machine: random records are put and taken, and what
 * the packets say is compared with what was put. */
#include "weft_mcu/log.h"

#include "../../src/frame.h"
#include "../fake/fake.h"
#include "check.h"
#include <string.h>

enum { MANY = 4000 };
static weft_log log_;
static struct { uint32_t entry, time, args[2]; } put[MANY];
static unsigned made, told, lost;

static uint32_t take_varint(const uint8_t **p) {
  uint32_t v = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t b = *(*p)++;
    v |= (uint32_t)(b & 127) << shift;
    if (b < 128) return v;
  }
}
/* Read a packet, and compare its records with those that were put. */
static void read_packet(uint8_t *line, size_t n) {
  uint8_t p[256];
  size_t at = 0, length = 0;
  CHECK(line[n - 1] == 0 && !memchr(line, 0, n - 1));
  while (at < n - 1) {
    size_t end = at + line[at];
    for (at++; at < end && at < n - 1;) p[length++] = line[at++];
    if (at < n - 1) p[length++] = 0;
  }
  CHECK(get32(p) == crc32(p + 4, length - 4) && p[4] == 'L');
  const uint8_t *r = p + 9;
  uint32_t time = get32(p + 5), gone = take_varint(&r);
  lost += gone, told += gone;
  while (r < p + length) {
    uint32_t entry = take_varint(&r), spaced = take_varint(&r), args[2] = {0, 0};
    unsigned size = (spaced & 3) + 1;
    time += spaced >> 2;
    for (unsigned i = 0; i < (entry & 3); i++) {
      for (unsigned k = 0; k < size; k++) args[i] |= (uint32_t)*r++ << 8 * k;
      if (size < 4 && args[i] >> (8 * size - 1)) args[i] |= ~0u << 8 * size;
    }
    CHECK(told < made && (put[told].entry & 0xffff) == entry && put[told].time == time);
    for (unsigned i = 0; i < (entry & 3); i++) CHECK(put[told].args[i] == args[i]);
    told++;
  }
  CHECK(r == p + length);
}
static void take(size_t room) {
  uint8_t line[254];
  memset(line, 0xaa, sizeof line);
  size_t n = weft_log_packet(&log_, line, room);
  CHECK(n <= room);
  for (size_t i = room; i < sizeof line; i++) CHECK(line[i] == 0xaa);
  if (n) read_packet(line, n);
}
static void one(uint32_t entry, unsigned n) {
  uint32_t args[2];
  for (unsigned i = 0; i < 2; i++) {
    args[i] = fake_random(1u << 16) << 16 | fake_random(1u << 16);
    args[i] = fake_random(2) ? args[i] >> fake_random(32)
                             : (uint32_t)((int32_t)args[i] >> fake_random(32));
  }
  if (n == 0) weft_log_put0(&log_, entry);
  if (n == 1) weft_log_put1(&log_, entry + 1, args[0]);
  if (n == 2) weft_log_put2(&log_, entry + 2, args[0], args[1]);
  put[made].entry = entry + n;
  put[made].time = log_.slot[(log_.in - 1) % WEFT_LOG_SLOTS].time;
  memcpy(put[made++].args, args, sizeof args);
}
static void put_and_taken(void) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    fake_reset(seed, seed % 2 ? (1ull << 32) - 5000 : 10);
    log_ = (weft_log){.in = seed % 3 ? 0 : ~0u - 20, .out = seed % 3 ? 0 : ~0u - 20};
    made = told = lost = 0;
    while (made < MANY) {
      unsigned burst = fake_random(seed % 4 ? 20 : 3 * WEFT_LOG_SLOTS);
      for (; burst-- && made < MANY; fake_advance(fake_random(30)))
        one(fake_random(20000) * 4, fake_random(3));
      take(WEFT_LOG_ROOM + fake_random(254 - WEFT_LOG_ROOM));
      if (fake_random(3) == 0) take(254);
    }
    while (log_.out != log_.in) take(254);
    CHECK(told == made);
    CHECK(seed % 4 ? true : lost > 0);
  }
}
/* The newest records stay, the others are counted. */
static void a_full_ring(void) {
  fake_reset(1, 10);
  log_ = (weft_log){0};
  made = told = lost = 0;
  for (unsigned i = 0; i < WEFT_LOG_SLOTS; i++) one(4 * i, 1);
  for (unsigned i = 0; i < 10; i++) take(254);
  CHECK(told == WEFT_LOG_SLOTS && !lost);
  for (unsigned i = 0; i < WEFT_LOG_SLOTS + 3; i++) one(4 * i, 1);
  take(254);
  CHECK(lost == 3);
  while (told < made) take(254);
  CHECK(lost == 3 && !weft_log_packet(&log_, (uint8_t[254]){0}, 254));
}
/* The macro: the number of arguments is in the lowest bits, a text has one entry for each place. */
static void the_macro(void) {
  fake_reset(1, 10);
  log_ = (weft_log){0};
  for (unsigned i = 0; i < 2; i++) WEFT_LOG(&log_, "again");
  WEFT_LOG(&log_, "one %d", -5);
  WEFT_LOG(&log_, "two %u %x", 7, 0xffffffffu);
  CHECK(log_.in == 4 && log_.slot[0].entry == log_.slot[1].entry);
  CHECK((log_.slot[0].entry & 3) == 0 && (log_.slot[2].entry & 3) == 1 &&
        (log_.slot[3].entry & 3) == 2);
  CHECK(log_.slot[2].args[0] == (uint32_t)-5 && log_.slot[3].args[1] == 0xffffffff);
}
int main(void) {
  TEST(put_and_taken);
  TEST(a_full_ring);
  TEST(the_macro);
  return check_end();
}
