/* link_fuzz.c: a fuzz target for everything that may come over the serial line (clang
 * -fsanitize=fuzzer,address,undefined). The first byte of the input determines how the rest is
 * used: as raw bytes of the line; as packets whose checksums are corrected; as answers to open
 * operations; or as a CBOR value.
 *
 * The target checks that nothing crashes, that no byte beyond a buffer is touched, that each
 * operation is over exactly once, and that afterwards a new session works.
 */
#include "link_kit.h"

static int told[3];
static void tell(weft_link_op *op);
static const weft_link_guard guards[] = {
    {&ends[0], 0, 0}, {&ends[1], (const uint8_t *)"\x65volts", 6}, {&ends[2], 0, 0}};
static weft_link_op ops[3] = {{.guards = guards, .count = 1, .room = 16, .over = tell},
                              {.guards = guards + 1, .count = 1, .over = tell},
                              {.guards = guards, .count = 3, .room = 5, .over = tell}};
static void tell(weft_link_op *op) { told[op - ops]++; }
static void require(bool so) {
  if (!so) abort();
}

static void as_cbor(const uint8_t *data, size_t n) {
  weft_cbor r = weft_cbor_reader(data, n), w;
  unsigned items = 0;
  if (!weft_cbor_is_whole(data, n)) return;
  while (weft_cbor_next(&r).kind != WEFT_CBOR_NONE) items++;
  require(!r.bad && r.at == r.end && items > 0);
  uint8_t again[9];
  w = weft_cbor_writer(again, sizeof again), r = weft_cbor_reader(data, n);
  int64_t v = weft_cbor_read_int(&r);
  if (r.bad) return;
  weft_cbor_int(&w, v);
  r = weft_cbor_reader(again, (size_t)(w.at - again));
  require(!w.bad && weft_cbor_read_int(&r) == v && !r.bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  unsigned how = *data++ & 7;
  size--;
  if (how == 7) return as_cbor(data, size), 0;
  pc.ops = 0;
  memset(told, 0, sizeof told);
  kit_begin(KIT_MINE, 7);
  if (how & 1) kit_greet();
  if (how & 2) kit_give("a", false, 5), kit_give("b", true, 6), kit_give("c", false, 7);
  uint8_t *into[2] = {malloc(16), malloc(5)}; /* on the heap, so that an access beyond the end is
                                               * detected */
  ops[0].into = into[0], ops[2].into = into[1];
  bool begun[3];
  for (unsigned i = 0; i < 3; i++) begun[i] = weft_link_offer(&pc, &ops[i]);
  kit_says();
  if (how < 4) {
    weft_link_input(&pc, data, size, kit_now);
  } else if (how < 6) {
    for (size_t n; size; data += n, size -= n) {
      n = size < 1u + data[0] % 200 ? size : 1u + data[0] % 200;
      kit_packet(data, n);
      kit_says();
    }
  } else { /* kind, flags, where, op, val, length, body */
    while (size >= 6) {
      static const uint8_t kinds[] = {20, 21, 25, 30, 41, 48, 20, 48};
      size_t n = data[5] % 64 < size - 6 ? data[5] % 64 : size - 6;
      kit_frame(kinds[data[0] % 8], data[1], data[2] % 4, data[3] % 5, data[4], data + 6, n);
      kit_says();
      if (data[0] & 64) weft_link_withdraw(&pc, &ops[data[0] >> 4 & 3 ? 1 : 0]);
      data += 6 + n, size -= 6 + n;
    }
  }
  weft_link_close(&pc, "the test is over");
  for (unsigned i = 0; i < 3; i++)
    require(told[i] == begun[i] && ops[i].status != WEFT_LINK_PENDING);
  kit_again();
  require(pc.linked && !pc.why);
  kit_give("b", true, 1);
  require(weft_link_offer(&pc, &ops[1]) && kit_says() > 0);
  kit_frame(20, 0, 0, ops[1].number, 0, "", 0);
  require(ops[1].status == WEFT_LINK_OK);
  free(into[0]), free(into[1]);
  return 0;
}
