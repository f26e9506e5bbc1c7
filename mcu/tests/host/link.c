/* link.c: tests the client of weft_mcu/link.h alone: the bytes that it sends
 * (conformance/wire/serial.txt), and how it handles everything that a PC may answer.
 * micropython/tests/test_link_mcu.py tests the client with a PC. Usage: link VECTORS
 */
#include "link_kit.h"

static const char *vectors;
/* Reads the bytes of a vector. */
static unsigned vector(const char *name, uint8_t *to) {
  static char line[1024];
  unsigned n = 0, byte;
  FILE *f = fopen(vectors, "r");
  if (!f) return 0;
  while (fgets(line, sizeof line, f)) {
    size_t length = strlen(name);
    if (strncmp(line, name, length) || line[length] != ' ') continue;
    for (const char *p = line + length + 1; sscanf(p, "%2x", &byte) == 1; p += 2)
      to[n++] = (uint8_t)byte;
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
  weft_link_guard all[] = {
      {&ends[0], 0, 0}, {&ends[1], value, (uint16_t)(w.at - value)}, {&ends[2], 0, 0}};
  weft_link_op one = {.guards = all,
                      .count = 1,
                      .into = got,
                      .room = sizeof got,
                      .over = count_over},
               two = one, three = one;
  two.guards = all + 1, three.count = 3;
  CHECK(kit_says() == 0);
  CHECK(weft_link_offer(&pc, &one) && is_vector("offer_read", said, kit_says()));
  CHECK(weft_link_offer(&pc, &two) && is_vector("offer_write", said, kit_says()));
  CHECK(weft_link_offer(&pc, &three) && is_vector("offer_choice", said, kit_says()));
  weft_link_withdraw(&pc, &three);
  CHECK(is_vector("withdraw", said, kit_says()));
  weft_link_withdraw(&pc, &three); /* The request is sent only once. */
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
#define PACKED(name, calls) \
  do { \
    w = weft_cbor_writer(to, sizeof to), calls; \
    CHECK(!w.bad && is_vector("cbor_" name, to, (size_t)(w.at - to))); \
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
  PACKED("map", (weft_cbor_map(&w, 2), weft_cbor_text(&w, "a", 1), weft_cbor_int(&w, 1),
                 weft_cbor_int(&w, 2), weft_cbor_array(&w, 0)));
  w = weft_cbor_writer(to, 4), weft_cbor_text(&w, "volts", 5);
  CHECK(w.bad);
}

static void reads_numbers_of_each_size(void) {
  static const struct {
    const char *bytes;
    unsigned n;
    float f;
  } floats[] = {{"\xf9\x3e\0", 3, 1.5f},
                {"\xf9\0\1", 3, 5.9604645e-8f},
                {"\xfa\x3f\xc0\0\0", 5, 1.5f},
                {"\xfb\xbf\xf8\0\0\0\0\0\0", 9, -1.5f},
                {"\xfb\x36\xa0\0\0\0\0\0\0", 9, 1.401298464e-45f},
                {"\xfb\x7f\xe0\0\0\0\0\0\0", 9, __builtin_inff()},
                {"\x18\x64", 2, 100},
                {"\x20", 1, -1}};
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
  /* The end has not been handed out yet, so the operation waits. */
  CHECK(weft_link_offer(&pc, &op));
  CHECK(kit_says() == 0);
  kit_give("a", false, 5);
  CHECK(kit_says() > 0);
  kit_frame(20, 128, 0, op.number, 3, "\x19\x03\xe8", 3);
  CHECK(overs == 1 && op.status == WEFT_LINK_OK && op.length == 3 &&
        !memcmp(got, "\x19\x03\xe8", 3));
  kit_frame(20, 128, 0, op.number, 3, "\x19\x03\xe8",
            3); /* The operation is over, so the answer has no effect. */
  CHECK(overs == 1 && !pc.why);
  CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
  /* The frame comes in pieces; the zeros at the end are left out. */
  kit_frame(48, 0, 0, op.number, 2, "\x64z", 2);
  kit_frame(20, 128, 0, op.number, 3, "z\0", 1);
  CHECK(overs == 2 && op.status == WEFT_LINK_TOO_LONG &&
        got[4] == 0x55); /* Five bytes do not fit into four. */
  op.room = 5;
  CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
  kit_frame(48, 0, 0, op.number, 2, "\x64z", 2);
  kit_frame(20, 128, 0, op.number, 3, "z", 1);
  CHECK(overs == 3 && op.status == WEFT_LINK_OK && op.length == 5 && !memcmp(got, "\x64zz\0\0", 5));
}

static void a_choice_goes_on_without_a_channel_that_has_retired(void) {
  weft_link_guard all[] = {{&ends[0], 0, 0}, {&ends[2], 0, 0}};
  weft_link_op op = {
      .guards = all, .count = 2, .into = got, .room = sizeof got, .over = count_over};
  kit_linked();
  kit_give("a", false, 5), kit_give("c", false, 7);
  CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
  kit_frame(25, 0, 0, op.number, 1, "", 0);
  CHECK(overs == 0 && kit_says() > 0);
  /* Guard 0 of the guards offered now is guard 1 of the operation. */
  kit_frame(20, 128, 0, op.number, 1, "\x07", 1);
  CHECK(overs == 1 && op.status == WEFT_LINK_OK && op.won == 1 && got[0] == 7);
  CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
  kit_frame(25, 0, 0, op.number, 1, "", 0);
  CHECK(overs == 2 && op.status == WEFT_LINK_RETIRED && !weft_link_offer(&pc, &op) &&
        op.status == WEFT_LINK_RETIRED);
}

static void bad_use_is_told_and_nothing_is_sent(void) {
  static uint8_t large[300];
  weft_link_guard a = {&ends[0], 0, 0}, b = {&ends[1], large, 200};
  weft_link_op none = {.count = 0}, closed = {.guards = &a, .count = 1},
               longer = {.guards = &b, .count = 1, .over = count_over};
  kit_linked();
  kit_give("a", false, 5), kit_give("b", true, 6);
  CHECK(!weft_link_offer(&pc, &none) && none.status == WEFT_LINK_BAD_USE);
  weft_link_retire(&pc, &ends[0]);
  CHECK(!weft_link_offer(&pc, &closed) && closed.status == WEFT_LINK_BAD_USE);
  kit_says();
  pc.largest = 256; /* a PC with short frames: 232 bytes are too long together with their head */
  b.length = 230;
  CHECK(weft_link_offer(&pc, &longer) && kit_says() == 0 && overs == 1 &&
        longer.status == WEFT_LINK_TOO_LONG);
  b.length = sizeof large;
  CHECK(!weft_link_offer(&pc, &longer) && longer.status == WEFT_LINK_TOO_LONG && overs == 1);
}

static void a_session_that_is_over_tells_each_operation_once_and_the_next_begins(void) {
  weft_link_guard a = {&ends[0], 0, 0}, b = {&ends[1], (const uint8_t *)"\x07", 1};
  weft_link_op read = {.guards = &a,
                       .count = 1,
                       .into = got,
                       .room = sizeof got,
                       .over = count_over},
               write = {.guards = &b, .count = 1, .over = count_over};
  kit_linked();
  kit_give("a", false, 5), kit_give("b", true, 6);
  CHECK(weft_link_offer(&pc, &read) && weft_link_offer(&pc, &write) && kit_says() > 0);
  kit_frame(41, 0, 0, 0, 3, "bye", 3);
  CHECK(overs == 2 && read.status == WEFT_LINK_DIED && !read.in_doubt &&
        write.status == WEFT_LINK_DIED && write.in_doubt);
  CHECK(pc.why && weft_link_offer(&pc, &write)); /* The operation waits for the next session. */
  kit_again();
  CHECK(overs == 2 && kit_says() == 0);
  kit_give("b", true, 2);
  CHECK(kit_says() > 0);
  kit_frame(20, 0, 0, write.number, 0, "", 0);
  CHECK(overs == 3 && write.status == WEFT_LINK_OK);
}

/* Return the position after the kind of a compact frame of this kind for `number` that begins at
 * `at` or later (number < 128, WIRE-LINKS.md 12.7). */
static size_t frame_at(size_t at, size_t n, uint8_t kind, uint8_t number) {
  for (; at + 6 < n; at++)
    if (said[at] == kind && said[at + 2] == number && !said[at + 1] && !said[at + 3]) return at + 1;
  return 0;
}

/* Rules 2.1, 4.1: a poison counts even if the end is given up right after it. The PC receives both
 * messages, in this order. */
static void a_poison_is_said_before_the_end_is_given_up(void) {
  kit_linked();
  kit_give("a", false, 5);
  weft_link_poison(&pc, &ends[0], 9), weft_link_retire(&pc, &ends[0]);
  size_t n = kit_says(), poison = frame_at(0, n, 11, 5);
  CHECK(n == 14 && poison == 1 && said[5] == 9 && frame_at(poison, n, 10, 5) == 8);
  CHECK(kit_says() == 0);
}

/* A write that waits for room is sent before its end is given up (WIRE.md 7.3), and completes. */
static void a_write_that_waits_for_room_goes_before_the_retirement(void) {
  static uint8_t large[90] = {0x58, 88};
  weft_link_guard b = {&ends[1], large, sizeof large};
  weft_link_op ops[3];
  uint8_t line[WEFT_LINK_PACKET];
  kit_linked();
  kit_give("b", true, 6);
  for (unsigned i = 0; i < 3; i++) {
    ops[i] = (weft_link_op){.guards = &b, .count = 1, .over = count_over};
    CHECK(weft_link_offer(&pc, &ops[i]));
  }
  while (weft_link_output(&pc, line, kit_now)) {
  }
  CHECK(ops[1].sent && !ops[2].sent); /* There is no room for this write. */
  weft_link_retire(&pc, &ends[1]);
  kit_says(); /* The two writes that were sent are acknowledged. */
  size_t n = kit_says();
  CHECK(ops[2].sent && n > 96 && frame_at(96, n, 10, 6));
  for (unsigned i = 0; i < 3; i++) kit_frame(20, 0, 0, ops[i].number, 0, "", 0);
  CHECK(overs == 3 && ops[2].status == WEFT_LINK_OK);
}

/* Rule 2.3: an end that is given up early is given back when the PC hands it out, poisoned or not.
 * A dropped end is given back in later sessions too. An operation that waits at the end is over. */
static void an_end_that_was_given_up_before_it_came_is_given_back(void) {
  weft_link_guard a = {&ends[0], 0, 0};
  weft_link_op op = {
      .guards = &a, .count = 1, .into = got, .room = sizeof got, .over = count_over};
  kit_linked();
  CHECK(weft_link_offer(&pc, &op));
  weft_link_retire(&pc, &ends[0]);
  CHECK(kit_says() == 0 && overs == 1 && op.status == WEFT_LINK_BAD_USE);
  CHECK(!weft_link_offer(&pc, &op) && op.status == WEFT_LINK_BAD_USE);
  weft_link_poison(&pc, &ends[1], 3);
  kit_give("a", false, 5);
  CHECK(frame_at(0, kit_says(), 10, 5) == 1);
  kit_give("b", true, 6);
  CHECK(frame_at(0, kit_says(), 11, 6) == 1);
  ends[0].dropped = true;
  kit_again();
  kit_give("b", true, 4), kit_give("a", false, 5);
  CHECK(frame_at(0, kit_says(), 10, 5) == 1);
  CHECK(ends[1].state == 1 && !weft_link_offer(&pc, &op) && op.status == WEFT_LINK_BAD_USE);
  ends[0].dropped = false;
  kit_linked();
  kit_give("a", false, 5);
  CHECK(kit_says() == 0 && weft_link_offer(&pc, &op) && kit_says() > 0);
}

static void an_operation_offered_twice_is_under_way_once(void) {
  weft_link_guard a = {&ends[0], 0, 0};
  weft_link_op op = {.guards = &a,
                     .count = 1,
                     .into = got,
                     .room = sizeof got,
                     .over = count_over};
  kit_linked();
  kit_give("a", false, 5);
  CHECK(weft_link_offer(&pc, &op) && weft_link_offer(&pc, &op) && kit_says() == 7);
  CHECK(weft_link_offer(&pc, &op) && kit_says() == 0);
  kit_frame(20, 128, 0, op.number, 1, "\x07", 1);
  CHECK(overs == 1 && op.status == WEFT_LINK_OK && !pc.ops);
}

static void begin_next(weft_link *l) {
  if (l->why) weft_link_begin(l, KIT_MINE + 1, 8, kit_now);
}
/* The user begins the next session in the call that reports the end of the old one. The rest of the
 * packet that ended the session belongs to the old session. */
static void the_next_session_may_begin_in_news(void) {
  static const uint8_t bye_and_more[] = {41, 0, 0, 0, 0, 1, 8, 'x', 0, 0, 0, 0, 0, 0, 0, 21, 0, 0};
  kit_linked();
  pc.news = begin_next;
  kit_packet(bye_and_more, sizeof bye_and_more);
  pc.news = 0;
  CHECK(!pc.why && pc.mine == KIT_MINE + 1);
  kit_number = kit_acknowledged = 0;
  kit_greet();
  kit_give("a", false, 5);
  CHECK(!pc.why && ends[0].state == 1);
}

static void what_a_pc_may_not_send_ends_the_session(void) {
  static const struct {
    uint8_t kind, flags;
    uint32_t where;
    uint64_t val;
    const char *body;
    unsigned n;
  } rows[] = {{99, 0, 0, 0, "", 0},
              {20, 0, 0, 1, "", 0},
              {20, 128, 9, 1, "\x07", 1},
              {20, 128, 0, 1, "\xff", 1},
              {20, 128, 0, 99, "\x07", 1},
              {25, 0, 4, 1, "", 0},
              {30, 0, 1, 20, "12345678i4\0a", 12},
              {40, 0, 0x54464557, 0, "", 0}};
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
    weft_link_guard a = {&ends[0], 0, 0};
    weft_link_op op = {
        .guards = &a, .count = 1, .into = got, .room = sizeof got, .over = count_over};
    kit_linked();
    kit_give("a", false, 5);
    CHECK(weft_link_offer(&pc, &op) && kit_says() > 0);
    kit_frame(rows[i].kind, rows[i].flags, rows[i].where, op.number, rows[i].val, rows[i].body,
              rows[i].n);
    if (!pc.why) printf("row %u\n", i);
    /* The message that is held back is a BYE. */
    CHECK(pc.why && overs == 1 && op.status == WEFT_LINK_DIED && pc.held > 0);
  }
}

static void time_is_taken_from_its_caller(void) {
  uint8_t line[WEFT_LINK_PACKET];
  kit_linked();
  uint32_t t = kit_now;
  CHECK(weft_link_output(&pc, line, t) == 0);
  /* A third of the lease has passed, so a sign of life is due. */
  CHECK(weft_link_due(&pc, t) == 1000);
  CHECK(weft_link_output(&pc, line, t + 1000) > 0);
  CHECK(weft_link_output(&pc, line, t + 2999) > 0 && !pc.why);
  CHECK(weft_link_output(&pc, line, t + 3000) == 0 && pc.why &&
        weft_link_due(&pc, t + 3000) == 0xffffffff);
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
  TEST(a_poison_is_said_before_the_end_is_given_up);
  TEST(a_write_that_waits_for_room_goes_before_the_retirement);
  TEST(an_end_that_was_given_up_before_it_came_is_given_back);
  TEST(an_operation_offered_twice_is_under_way_once);
  TEST(the_next_session_may_begin_in_news);
  TEST(what_a_pc_may_not_send_ends_the_session);
  TEST(time_is_taken_from_its_caller);
  return check_end();
}
