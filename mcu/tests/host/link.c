/* link.c: the client of weft_mcu/link.h by itself: what it says byte for byte (conformance/wire/serial.txt), and what it makes of what a PC
 * may answer. The whole of it, with a PC, is in micropython/tests/test_link_mcu.py. Usage: link VECTORS
 */
#include "link_kit.h"

static const char *vectors;
/* The bytes of a vector. */
static unsigned vector(const char *name, uint8_t *to) {
  static char line[1024];
  unsigned n = 0, byte;
  FILE *f = fopen(vectors, "r");
  if (!f) return 0;
  while (fgets(line, sizeof line, f)) {
    size_t length = strlen(name);
    if (strncmp(line, name, length) || line[length] != ' ') continue;
    for (const char *p = line + length + 1; sscanf(p, "%2x", &byte) == 1; p += 2) to[n++] = (uint8_t)byte;
  }
  fclose(f);
  return n;
}
static bool is_vector(const char *name, const uint8_t *bytes, size_t n) {
  uint8_t wanted[1024];
  return n && vector(name, wanted) == n && !memcmp(wanted, bytes, n);
}

static void says_what_the_others_say(void) {
  uint8_t line[WEFT_LINK_PACKET], heard[256];
  kit_begin(0x01020304, 0x11121314);
  CHECK(is_vector("start", line, weft_link_output(&pc, line, 0)));
  CHECK(weft_link_output(&pc, line, 0) == 0);
  weft_link_input(&pc, heard, vector("heard", heard), 0);
  CHECK(is_vector("start_linked", line, weft_link_output(&pc, line, 0)));
  CHECK(is_vector("packet", line, weft_link_output(&pc, line, 0)));
  CHECK(is_vector("hello", pc.out, pc.held));
}

static void offers_as_the_others_do(void) {
  uint8_t value[16];
  weft_cbor w = weft_cbor_writer(value, sizeof value);
  weft_cbor_array(&w, 2), weft_cbor_int(&w, -7), weft_cbor_text(&w, "volts", 5);
  kit_linked();
  kit_give("a", false, 5), kit_give("b", true, 300), kit_give("c", false, 7);
  weft_link_guard all[] = {{&ends[0], 0, 0}, {&ends[1], value, (uint16_t)(w.at - value)}, {&ends[2], 0, 0}};
  weft_link_op one = {.guards = all, .count = 1, .into = got, .room = sizeof got, .over = count_over}, two = one, three = one;
  two.guards = all + 1, three.count = 3;
  CHECK(kit_says() == 0);
  CHECK(weft_link_offer(&pc, &one) && is_vector("offer_read", said, kit_says()));
  CHECK(weft_link_offer(&pc, &two) && is_vector("offer_write", said, kit_says()));
  CHECK(weft_link_offer(&pc, &three) && is_vector("offer_choice", said, kit_says()));
  weft_link_withdraw(&pc, &three);
  CHECK(is_vector("withdraw", said, kit_says()));
  weft_link_withdraw(&pc, &three); /* asked once */
  CHECK(kit_says() == 0);
  weft_link_retire(&pc, &ends[1]);
  CHECK(is_vector("retire", said, kit_says()));
  weft_link_retire(&pc, &ends[1]);
  CHECK(kit_says() == 0);
  weft_link_poison(&pc, &ends[0], 9);
  CHECK(is_vector("poison", said, kit_says()));
  CHECK(overs == 0);
}

static void packs_as_the_others_do(void) {
  uint8_t to[64];
  weft_cbor w;
#define PACKED(name, calls)                                                  \
  do {                                                                       \
    w = weft_cbor_writer(to, sizeof to), calls;                              \
    CHECK(!w.bad && is_vector("cbor_" name, to, (size_t)(w.at - to)));       \
  } while (0)
  PACKED("zero", weft_cbor_int(&w, 0));
  PACKED("minus_one", weft_cbor_int(&w, -1));
  PACKED("thousand", weft_cbor_uint(&w, 1000));
  PACKED("minus_70000", weft_cbor_int(&w, -70000));
  PACKED("two_to_40", weft_cbor_int(&w, 1ll << 40));
  PACKED("true", weft_cbor_bool(&w, true));
  PACKED("null", weft_cbor_null(&w));
  PACKED("text", weft_cbor_text(&w, "volts", 5));
  PACKED("bytes", weft_cbor_bytes(&w, "\0\xff", 2));
  PACKED("array", (weft_cbor_array(&w, 2), weft_cbor_int(&w, -7), weft_cbor_text(&w, "volts", 5)));
  PACKED("map", (weft_cbor_map(&w, 2), weft_cbor_text(&w, "a", 1), weft_cbor_int(&w, 1), weft_cbor_int(&w, 2), weft_cbor_array(&w, 0)));
  w = weft_cbor_writer(to, 4), weft_cbor_text(&w, "volts", 5);
  CHECK(w.bad);
}

static void reads_numbers_of_each_size(void) {
  static const struct {
    const char *bytes;
    unsigned n;
    float f;
  } floats[] = {{"\xf9\x3e\0", 3, 1.5f}, {"\xf9\0\1", 3, 5.9604645e-8f}, {"\xfa\x3f\xc0\0\0", 5, 1.5f}, {"\xfb\xbf\xf8\0\0\0\0\0\0", 9, -1.5f},
                {"\xfb\x36\xa0\0\0\0\0\0\0", 9, 1.401298464e-45f}, {"\xfb\x7f\xe0\0\0\0\0\0\0", 9, __builtin_inff()}, {"\x18\x64", 2, 100}, {"\x20", 1, -1}};
  for (unsigned i = 0; i < sizeof floats / sizeof *floats; i++) {
    weft_cbor r = weft_cbor_reader((const uint8_t *)floats[i].bytes, floats[i].n);
    CHECK(weft_cbor_is_whole((const uint8_t *)floats[i].bytes, floats[i].n));
    CHECK(weft_cbor_read_float(&r) == floats[i].f && !r.bad);
  }
  uint8_t edge[9];
  for (unsigned k = 0; k < 2; k++) {
    weft_cbor w = weft_cbor_writer(edge, 9), r = w;
    weft_cbor_int(&w, k ? INT64_MIN : INT64_MAX);
    CHECK(weft_cbor_read_int(&r) == (k ? INT64_MIN : INT64_MAX) && !r.bad);
  }
  weft_cbor text = weft_cbor_reader((const uint8_t *)"\x61z", 2);
  CHECK(weft_cbor_read_int(&text) == 0 && text.bad);
}

static void a_read_is_done_with_its_value_and_no_more(void) {
  weft_link_guard a = {&ends[0], 0, 0};
  weft_link_op op = {.guards = &a, .count = 1, .into = got, .room = 4, .over = count_over};
  kit_linked();
  CHECK(weft_link_offer(&pc, &op)); /* before the end is there: it waits */
  CHECK(kit_says() == 0);
  kit_give("a", false, 5);
  CHECK(kit_says() > 0);
  kit_frame(20, 128, 0, op.number, 3, "\x19\x03\xe8", 3);
  CHECK(overs == 1 && op.status == WEFT_LINK_OK && op.length == 3 && !memcmp(got, "\x19\x03\xe8", 3));
  kit_frame(20, 128, 0, op.number, 3, "\x19\x03\xe8", 3); /* of an operation that is over: nothing */
  CHECK(overs == 1 && !pc.why);
  CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
  kit_frame(48, 0, 0, op.number, 2, "\x64z", 2); /* in pieces; the zeros at the end are left out */
  kit_frame(20, 128, 0, op.number, 3, "z\0", 1);
  CHECK(overs == 2 && op.status == WEFT_LINK_TOO_LONG && got[4] == 0x55); /* five bytes, room for four */
  op.room = 5;
  CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
  kit_frame(48, 0, 0, op.number, 2, "\x64z", 2);
  kit_frame(20, 128, 0, op.number, 3, "z", 1);
  CHECK(overs == 3 && op.status == WEFT_LINK_OK && op.length == 5 && !memcmp(got, "\x64zz\0\0", 5));
}

static void a_choice_goes_on_without_a_channel_that_has_retired(void) {
  weft_link_guard all[] = {{&ends[0], 0, 0}, {&ends[2], 0, 0}};
  weft_link_op op = {.guards = all, .count = 2, .into = got, .room = sizeof got, .over = count_over};
  kit_linked();
  kit_give("a", false, 5), kit_give("c", false, 7);
  CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
  kit_frame(25, 0, 0, op.number, 1, "", 0);
  CHECK(overs == 0 && kit_says() > 0);
  kit_frame(20, 128, 0, op.number, 1, "\x07", 1); /* guard 0 of what was offered now is guard 1 */
  CHECK(overs == 1 && op.status == WEFT_LINK_OK && op.won == 1 && got[0] == 7);
  CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
  kit_frame(25, 0, 0, op.number, 1, "", 0);
  CHECK(overs == 2 && op.status == WEFT_LINK_RETIRED && !weft_link_offer(&pc, &op) && op.status == WEFT_LINK_RETIRED);
}

static void bad_use_is_told_and_nothing_is_sent(void) {
  static uint8_t large[300];
  weft_link_guard a = {&ends[0], 0, 0}, b = {&ends[1], large, 200};
  weft_link_op none = {.count = 0}, closed = {.guards = &a, .count = 1}, longer = {.guards = &b, .count = 1, .over = count_over};
  kit_linked();
  kit_give("a", false, 5), kit_give("b", true, 6);
  CHECK(!weft_link_offer(&pc, &none) && none.status == WEFT_LINK_BAD_USE);
  weft_link_retire(&pc, &ends[0]);
  CHECK(!weft_link_offer(&pc, &closed) && closed.status == WEFT_LINK_BAD_USE);
  kit_says();
  pc.largest = 256; /* a PC whose frames are short: 232 bytes are too long with their head */
  b.length = 230;
  CHECK(weft_link_offer(&pc, &longer) && kit_says() == 0 && overs == 1 && longer.status == WEFT_LINK_TOO_LONG);
  b.length = sizeof large;
  CHECK(!weft_link_offer(&pc, &longer) && longer.status == WEFT_LINK_TOO_LONG && overs == 1);
}

static void a_session_that_is_over_tells_each_operation_once_and_the_next_begins(void) {
  weft_link_guard a = {&ends[0], 0, 0}, b = {&ends[1], (const uint8_t *)"\x07", 1};
  weft_link_op read = {.guards = &a, .count = 1, .into = got, .room = sizeof got, .over = count_over}, write = {.guards = &b, .count = 1, .over = count_over};
  kit_linked();
  kit_give("a", false, 5), kit_give("b", true, 6);
  CHECK(weft_link_offer(&pc, &read) && weft_link_offer(&pc, &write) && kit_says() > 0);
  kit_frame(41, 0, 0, 0, 3, "bye", 3);
  CHECK(overs == 2 && read.status == WEFT_LINK_DIED && !read.in_doubt && write.status == WEFT_LINK_DIED && write.in_doubt);
  CHECK(pc.why && weft_link_offer(&pc, &write)); /* for the next session */
  kit_again();
  CHECK(overs == 2 && kit_says() == 0);
  kit_give("b", true, 2);
  CHECK(kit_says() > 0);
  kit_frame(20, 0, 0, write.number, 0, "", 0);
  CHECK(overs == 3 && write.status == WEFT_LINK_OK);
}

static void what_a_pc_may_not_send_ends_the_session(void) {
  static const struct {
    uint8_t kind, flags;
    uint32_t where;
    uint64_t val;
    const char *body;
    unsigned n;
  } rows[] = {{99, 0, 0, 0, "", 0}, {20, 0, 0, 1, "", 0}, {20, 128, 9, 1, "\x07", 1}, {20, 128, 0, 1, "\xff", 1}, {20, 128, 0, 99, "\x07", 1}, {25, 0, 4, 1, "", 0},
              {30, 0, 1, 20, "12345678i4\0a", 12}, {40, 0, 0x54464557, 0, "", 0}};
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
    weft_link_guard a = {&ends[0], 0, 0};
    weft_link_op op = {.guards = &a, .count = 1, .into = got, .room = sizeof got, .over = count_over};
    kit_linked();
    kit_give("a", false, 5);
    CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
    kit_frame(rows[i].kind, rows[i].flags, rows[i].where, op.number, rows[i].val, rows[i].body, rows[i].n);
    if (!pc.why) printf("row %u\n", i);
    CHECK(pc.why && overs == 1 && op.status == WEFT_LINK_DIED && pc.held > 0); /* and it says BYE */
  }
}

static void time_is_taken_from_its_caller(void) {
  uint8_t line[WEFT_LINK_PACKET];
  kit_linked();
  uint32_t t = kit_now;
  CHECK(weft_link_output(&pc, line, t) == 0);
  CHECK(weft_link_due(&pc, t) == 1000); /* a third of the lease: a sign of life */
  CHECK(weft_link_output(&pc, line, t + 1000) > 0);
  CHECK(weft_link_output(&pc, line, t + 2999) > 0 && !pc.why);
  CHECK(weft_link_output(&pc, line, t + 3000) == 0 && pc.why && weft_link_due(&pc, t + 3000) == 0xffffffff);
}

int main(int argc, char **argv) {
  (void)argc, vectors = argv[1];
  TEST(says_what_the_others_say);
  TEST(offers_as_the_others_do);
  TEST(packs_as_the_others_do);
  TEST(reads_numbers_of_each_size);
  TEST(a_read_is_done_with_its_value_and_no_more);
  TEST(a_choice_goes_on_without_a_channel_that_has_retired);
  TEST(bad_use_is_told_and_nothing_is_sent);
  TEST(a_session_that_is_over_tells_each_operation_once_and_the_next_begins);
  TEST(what_a_pc_may_not_send_ends_the_session);
  TEST(time_is_taken_from_its_caller);
  return check_end();
}
