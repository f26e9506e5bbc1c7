/**
 * Measures how long each call keeps interrupts off at worst, in cycles, with 10, 100 and 10,000
 * events in the queue. The test counts from the instruction that turns interrupts off to the
 * instruction that turns them on, and asserts the result (mcu/RESULTS.md contains the table).
 *
 * masked.mjs [--emulator DIR] IMAGES writes one line a test and, last, `N passed, N failed`.
 */
import { check, finish, load } from './harness.mjs';

/**
 * For each call the limits in cycles at 10, 100 and 10,000 events: for a list, for a heap, for a
 * heap with equal times. The limits are the figures of mcu/RESULTS.md with a little room.
 */
const limits = {
  1: ['weft_post', [210, 1200, 110200], [122, 158, 245], [365, 570, 1040]],
  2: ['weft_cancel', [130, 850, 80100], [255, 366, 630], [552, 1010, 2060]],
  3: ['weft_post_as, move', [310, 2030, 190200], [410, 560, 910], [995, 1720, 3200]],
  4: ['weft_work', [70, 70, 70], [248, 320, 550], [597, 1130, 2560]],
  5: [
    'weft_work, all before the last of a busy actor',
    [225, 1670, 160100],
    [735, 5950, 517000],
    [735, 5950, 517000],
  ],
  6: ['weft_post_as, keep', [20, 20, 20], [20, 20, 20], [20, 20, 20]],
  7: ['weft_stop', [16, 16, 16], [16, 16, 16], [16, 16, 16]],
};
const column = { 1: 1, 2: 3, 3: 2 },
  kinds = ['', 'list', 'heap', 'heap, equal times'],
  power = { 1: 0, 2: 1, 4: 2 };
const m = load('masked'),
  core = m.cores[0],
  section = m.address('section');
const worst = new Map();
let began = null;
m.onInstruction = (which) => {
  if (which !== core) return;
  if (core.primask && began === null) began = core.t;
  else if (!core.primask && began !== null) {
    const at = m.read32(section);
    worst.set(at, Math.max(worst.get(at) ?? 0, core.t - began));
    began = null;
  }
};
const stop = m.run(10e9);
check('masked ends, breakpoint', `${stop.reason} ${stop.code}`, 'break 0', stop.code === 0);
for (const [call, [name, ...tables]] of Object.entries(limits))
  for (const [queue, c] of Object.entries(column))
    for (const [p, k] of Object.entries(power)) {
      const cycles = worst.get(queue * 1000 + call * 100 + Number(p)) ?? NaN,
        limit = tables[c - 1][k];
      check(`interrupts off, ${kinds[c]}, ${name}, ${10 ** p} events, cycles`, cycles, limit);
    }
for (const [at, [name, limit]] of Object.entries({
  4: ['weft_ring_put, 4 bytes', 70],
  5: ['weft_ring_get, 4 bytes', 80],
  64: ['weft_ring_put, 64 bytes', 550],
  65: ['weft_ring_get, 64 bytes', 560],
}))
  check(`interrupts off, ${name}, cycles`, worst.get(Number(at)) ?? NaN, limit);
finish();
