// @ts-check
/**
 * The conflict model: its rules one by one, then the thesis's chapter 6 (core interference) by
 * running firmware.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MISS_CYCLES, Machine, portOf } from '../src/index.mjs';
import { boot, finish } from './bench.mjs';
import { interference } from './interference.mjs';

test('which bank an address is in: striped by word, non-striped by 64 KB, scratch X and Y (2.6.2)', () => {
  assert.deepEqual(
    [0x20000000, 0x20000004, 0x2000000b, 0x2000000c, 0x20000010].map(portOf),
    [0, 1, 2, 3, 0],
  );
  assert.deepEqual(
    [0x21000000, 0x2100fffc, 0x21010000, 0x21020004, 0x2103fffc].map(portOf),
    [0, 0, 1, 2, 3],
  );
  assert.deepEqual([0x20040000, 0x20040ffc, 0x20041000].map(portOf), [4, 4, 5]);
  assert.deepEqual([0x10000000, 0x13ffffff].map(portOf), [6, 6]);
});

test('the non-striped alias shows the words of its bank (2.6.2)', () => {
  const m =
    boot(`int main(void) { for (uint32_t i = 0; i < 8; i++) REG(0x20030000 + 4 * i) = 100 + i;
    check(REG(0x2100c000) == 100 && REG(0x2100c004) == 104 && REG(0x2101c000) == 101 && REG(0x2103c004) == 107);
    *(volatile uint8_t *)0x2102c001 = 7; check(*(volatile uint8_t *)0x20030009 == 7); *(volatile uint16_t *)0x2102c002 = 0xabcd; check(REG(0x20030008) == 0xabcd0766); return 0; }`);
  assert.equal(finish(m), 0);
});

/**
 * Runs loops on two cores, each of which uses its own data. Returns the cycles that core 0 took for
 * its 1000 rounds.
 * @param {number} address0
 * @param {number} address1
 * @param {boolean} conflicts
 */
function loops(address0, address1, conflicts) {
  // Each core's code is in its own scratch bank, so only accesses to data can conflict.
  const m = boot(
    `volatile uint32_t cycles;
     typedef void (*code)(uint32_t, uint32_t);
     extern const uint16_t body[]; extern const uint16_t body_end[];
     static code copy(uint32_t to) { uint16_t *d = (uint16_t *)to; for (const uint16_t *s = body; s < body_end;) *d++ = *s++; return (code)(to | 1); }
     static void core1(void) { copy(0x20040000)(${address1}u, 1u << 30); }
     __asm(".syntax unified\\n.thumb\\n.text\\n.balign 4\\n.global body\\nbody: push {r4, r5, r6, r7, lr}\\n 1: ldmia r0!, {r2, r3, r4, r5, r6, r7}\\n subs r0, #24\\n subs r1, #1\\n bne 1b\\n pop {r4, r5, r6, r7, pc}\\n.global body_end\\nbody_end:\\n");
     int main(void) { pin_out(2); code c = copy(0x20041000); start_core1(core1, 0x20040e00); for (volatile int i = 0; i < 300; i++) {} pin_high(2); c(${address0}u, 1000); pin_low(2); return 0; }`,
    { conflicts },
  );
  /** @type {number[]} */
  const edges = [];
  m.watch(2, (_, __, cycle) => edges.push(cycle));
  assert.equal(finish(m), 0);
  return edges[1] - edges[0];
}

test('loads of two cores conflict in one bank, and do not conflict in different banks (2.1.1, 2.6.2)', () => {
  const free = loops(0x20020000, 0x20020004, false);
  // Six loads in eleven cycles: two such loops on one bank use the bank twelve times, so one of
  // them must wait at least once a round. Outside the loop core 0's caller is in striped SRAM and
  // may conflict with core 1 there, a few times.
  const waits = (/** @type {number} */ a0, /** @type {number} */ a1) => loops(a0, a1, true) - free;
  assert.ok(waits(0x21000000, 0x21010000) <= 8, 'a bank each');
  assert.ok(waits(0x21000000, 0x2100fe00) >= 1000, 'one bank');
  // In striped SRAM both loops pass through the banks, one behind the other.
  assert.ok(waits(0x20020000, 0x20020100) <= 1000, 'striped');
});

test('one core alone never waits for a bank, whatever it does', () => {
  const source = `volatile uint32_t a[64]; int main(void) { for (int r = 0; r < 20; r++) for (int i = 0; i < 64; i++) a[i] = a[63 - i] * 3; return 0; }`;
  const off = boot(source);
  const on = boot(source, { conflicts: true });
  finish(off);
  finish(on);
  assert.equal(on.cores[0].t, off.cores[0].t);
  assert.equal(on.cores[0].stallCycles, 0);
});

test('the XIP cache: a line of 8 bytes is missed once, 16 KB fit, two lines a set (2.6.3.1)', () => {
  const m = boot('int main(void) { return 0; }', { conflicts: true });
  const bus = /** @type {import('../src/index.mjs').BusModel} */ (m.bus);
  assert.equal(bus.lookUp(0, 0x10004000), MISS_CYCLES);
  assert.equal(bus.lookUp(100, 0x10004004), 0);
  assert.equal(bus.lookUp(100, 0x10004008), MISS_CYCLES);
  assert.equal(bus.lookUp(200, 0x10004000 + 8192), MISS_CYCLES);
  assert.equal(bus.lookUp(300, 0x10004000), 0);
  assert.equal(bus.lookUp(400, 0x10004000 + 2 * 8192), MISS_CYCLES);
  assert.equal(bus.lookUp(500, 0x10004000), 0, 'the older line went');
  assert.equal(bus.lookUp(600, 0x10004000 + 8192), MISS_CYCLES);
  bus.flush();
  assert.equal(bus.lookUp(700, 0x10004000), MISS_CYCLES);
});

test('XIP aliases: no-allocate leaves the cache unchanged, no-cache never hits (2.6.3)', () => {
  const bus = /** @type {import('../src/index.mjs').BusModel} */ (
    new Machine({ conflicts: true }).bus
  );
  assert.equal(bus.lookUp(0, 0x11000100), MISS_CYCLES);
  assert.equal(bus.lookUp(100, 0x10000100), MISS_CYCLES);
  assert.equal(bus.lookUp(200, 0x11000100), 0);
  assert.equal(bus.lookUp(300, 0x13000100), MISS_CYCLES);
});

test('a run from flash counts hits and misses where firmware reads them (2.6.3.6 CTR_HIT, CTR_ACC)', () => {
  const m = boot(
    'volatile uint32_t hit, acc; int main(void) { for (volatile int i = 0; i < 100; i++) {} hit = REG(0x1400000c); acc = REG(0x14000010); return 0; }',
    { conflicts: true, memory: 'flash' },
  );
  assert.equal(finish(m), 0);
  assert.ok(
    m.read32('hit') > 100 &&
      m.read32('acc') > m.read32('hit') &&
      m.read32('acc') - m.read32('hit') < 60,
  );
});

/** @param {Parameters<typeof interference>[0]} options */
const mean = (options) => interference({ runs: 10, gap: 3, ...options }).mean;

test('chapter 7.3: the task of 250 loops takes 90.0 us alone and 103.9 with both cores busy; ours within 2 %', () => {
  const alone = mean({ work: 'sumsq', amount: 250, core1: 'idle' }) / 125;
  const both = mean({ work: 'sumsq', amount: 250, core1: 'same' }) / 125;
  assert.ok(Math.abs(alone / 90.0 - 1) < 0.02, `alone ${alone}`);
  assert.ok(Math.abs(both / 103.9 - 1) < 0.02, `both ${both}`);
});

test('figure 6.2: fib with core 1 idle < the same < a one-branch loop, which costs 20 % of the speed; ours within 5 points', () => {
  const idle = mean({ work: 'fib', amount: 16, core1: 'idle' });
  const same = mean({ work: 'fib', amount: 16, core1: 'same' });
  const loop = mean({ work: 'fib', amount: 16, core1: 'loop' });
  assert.ok(same > idle * 1.03, `same ${same / idle}`);
  assert.ok(loop > same * 1.05, `loop ${loop / idle}`);
  assert.ok(Math.abs(1 - idle / loop - 0.2) < 0.05, `lost ${1 - idle / loop}`);
});

test('figure 6.5: stacks on one non-striped bank are about 19 % slower than in scratch, striped ones far less; code in SRAM', () => {
  const scratch = mean({ work: 'fib', amount: 16, core1: 'same', memory: 'ram' });
  const striped = mean({ work: 'fib', amount: 16, core1: 'same', stack: 'striped', memory: 'ram' });
  const blocked = mean({ work: 'fib', amount: 16, core1: 'same', stack: 'blocked', memory: 'ram' });
  assert.ok(Math.abs(blocked / scratch - 1.19) < 0.05, `blocked ${blocked / scratch}`);
  assert.ok(striped / scratch < 1.08, `striped ${striped / scratch}`);
});

test('figure 6.7: the place of the stack hardly changes the time of the matrix product', () => {
  const scratch = mean({ work: 'matrices', amount: 3, core1: 'same' });
  for (const stack of /** @type {const} */ (['striped', 'blocked'])) {
    const other = mean({ work: 'matrices', amount: 3, core1: 'same', stack });
    assert.ok(Math.abs(other / scratch - 1) < 0.04, `${stack} ${other / scratch}`);
  }
});

test('with the model off no access waits', () => {
  const idle = interference({ work: 'fib', amount: 12, core1: 'idle', conflicts: false }).mean;
  const loop = interference({ work: 'fib', amount: 12, core1: 'loop', conflicts: false }).mean;
  assert.equal(idle, loop);
});
