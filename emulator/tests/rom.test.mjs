// @ts-check
/**
 * Tests the boot ROM against the datasheet's description of its interface (2.8.2, 2.8.3) and the
 * costs that README.md names.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Machine } from '../src/index.mjs';
import { DOUBLE_COSTS, NAMES, SINGLE_COSTS } from '../src/rom_float.mjs';
import { ERASE_MICROS, PROGRAM_MICROS } from '../src/rom.mjs';
import { boot, finish } from './bench.mjs';
import { image } from './build.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const STACK = 0x20020000;
const RAM = 0x20030000;
const idle = image({ source: '#include "fw.h"\nint main(void) { return 0; }' });
/** The place to which every call of the ROM returns: the closing bkpt 0 of main. */
const machine = new Machine().load(idle);
const back = machine.address('main');

/** @param {number} address */
const half = (address) => machine.cores[0].load16(address);

/**
 * Calls a function of the ROM on a stopped core; returns the result and the cycles of the function.
 * Asserts that the function kept the registers that it must keep.
 * @param {number} place with the Thumb bit @param {number[]} args
 */
function call(place, ...args) {
  const core = machine.cores[0];
  const kept = [4, 5, 6, 7, 8, 9, 10, 11, 12];
  kept.forEach((n) => (core.r[n] = 0x1000 * n));
  args.forEach((value, n) => (core.r[n] = value));
  core.r[13] = STACK;
  core.r[14] = back | 1;
  core.pc = (place & ~1) >>> 0;
  const began = core.t;
  const stop = machine.runTo(back, began + 1e8);
  assert.equal(stop.reason, 'stopped', stop.why);
  assert.ok(
    kept.every((n) => core.r[n] === 0x1000 * n),
    'a register that belongs to the caller has changed',
  );
  assert.equal(core.r[13], STACK);
  return { r: [...core.r.subarray(0, 4)], cycles: core.t - began };
}

/** @param {string} code @param {0x14 | 0x16} [table] */
function look(code, table = 0x14) {
  return call(half(0x18), half(table), code.charCodeAt(0) | (code.charCodeAt(1) << 8)).r[0];
}

let seed = 1;
/** Returns the next word of an xorshift generator, the same in every run. */
function random() {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return seed | 0;
}

test('rom/make produces the committed image', () => {
  execFileSync(process.execPath, [join(here, '../rom/make'), '--check']);
});

test('magic, version, and every function and table that the pico-sdk looks up; an unknown code gives 0 (2.8.2, 2.8.3)', () => {
  const m = machine.cores[0];
  assert.deepEqual(
    [0x10, 0x11, 0x12, 0x13].map((a) => m.load8(a)),
    ['M'.charCodeAt(0), 'u'.charCodeAt(0), 1, 3],
  );
  for (const code of [
    'P3',
    'R3',
    'L3',
    'T3',
    'MS',
    'S4',
    'MC',
    'C4',
    'UB',
    'IF',
    'EX',
    'RE',
    'RP',
    'FC',
    'CX',
    'WV',
  ]) {
    const place = look(code);
    assert.ok(place > 0 && place < 0x4000 && place & 1, code);
  }
  for (const code of ['CR', 'GR', 'SF', 'SD', 'FS', 'FE']) assert.ok(look(code, 0x16) > 0, code);
  assert.equal(look('??'), 0);
  assert.equal(look('\0\0'), 0);
  assert.equal(look('P3', 0x16), 0);
  assert.equal(m.load8(look('SF', 0x16) - 2), 32);
});

test('popcount32, reverse32, clz32, ctz32 (2.8.3.1.1), and their costs', () => {
  const [popcount, reverse, clz, ctz] = ['P3', 'R3', 'L3', 'T3'].map((code) => look(code));
  const words = [0, 1, 2, 0x80000000, 0xffffffff, 0x00010000, 0x8000, 0x7fffffff, 0x12345678];
  for (let i = 0; i < 300; i++) words.push(random() >>> (random() & 31));
  let most = 0;
  for (const x of words.map((w) => w | 0)) {
    const bits = (x >>> 0).toString(2).padStart(32, '0');
    assert.equal(call(popcount, x).r[0], bits.replaceAll('0', '').length);
    assert.equal(call(reverse, x).r[0] >>> 0, parseInt([...bits].reverse().join(''), 2));
    assert.equal(call(clz, x).r[0], Math.clz32(x));
    assert.equal(call(ctz, x).r[0], x === 0 ? 32 : 31 - Math.clz32(x & -x));
    most = Math.max(most, call(clz, x).cycles, call(ctz, x).cycles);
  }
  assert.equal(call(popcount, 5).cycles, 22);
  assert.equal(call(reverse, 5).cycles, 24);
  assert.ok(most <= 29, `${most}`);
});

test('memset and memcpy: for lengths up to 70 at every alignment, only the given bytes change, and the destination is returned (2.8.3.1.2)', () => {
  const [set, copy] = [look('MS'), look('MC')];
  assert.deepEqual([look('S4'), look('C4')], [set, copy]);
  for (let bytes = 0; bytes <= 70; bytes++)
    for (let to = 0; to < 4; to++) {
      const clean = new Uint8Array(96).fill(0xee);
      machine.write(RAM, clean);
      assert.equal(call(set, RAM + 8 + to, 0x1a5, bytes).r[0], RAM + 8 + to);
      const expected = clean.slice();
      expected.fill(0xa5, 8 + to, 8 + to + bytes);
      assert.deepEqual(machine.read(RAM, 96), expected);
      for (let from = 0; from < 4; from++) {
        const source = Uint8Array.from({ length: 80 }, (_, i) => i + bytes + from);
        machine.write(RAM, clean);
        machine.write(RAM + 128, source);
        assert.equal(call(copy, RAM + 8 + to, RAM + 128 + from, bytes).r[0], RAM + 8 + to);
        const copied = clean.slice();
        copied.set(source.subarray(from, from + bytes), 8 + to);
        assert.deepEqual(machine.read(RAM, 96), copied);
      }
    }
});

test('memcpy and memset: the costs that README.md names', () => {
  const [set, copy] = [look('MS'), look('MC')];
  const cost = (/** @type {(n: number) => number} */ f) => [f(4096) - f(2048), f(1024)];
  const [aligned, whole] = cost((n) => call(copy, RAM, RAM + 0x4000, n).cycles);
  assert.equal(aligned / 128, 13);
  assert.ok(whole <= 13 * 64 + 40);
  assert.equal(cost((n) => call(copy, RAM + 1, RAM + 0x4000, n).cycles)[0] / 2048, 9);
  assert.equal(cost((n) => call(set, RAM, 7, n).cycles)[0] / 128, 9);
});

/** @param {number} value */
const bits = (value) => new Int32Array(new Float32Array([value]).buffer)[0];
/** @param {number} value */
const words = (value) => new Int32Array(new Float64Array([value]).buffer);
/** @param {number[]} r */
const asSingle = (r) => new Float32Array(Int32Array.of(r[0]).buffer)[0];
/** @param {number[]} r @param {number} [at] */
const asDouble = (r, at = 0) => new Float64Array(Int32Array.of(r[at], r[at + 1]).buffer)[0];
/** @param {number} n */
const single = (n) => machine.cores[0].load32(look('SF', 0x16) + 4 * n);
/** @param {number} n */
const double = (n) => machine.cores[0].load32(look('SD', 0x16) + 4 * n);
/** @param {number} n @param {...number} values */
const f = (n, ...values) => asSingle(call(single(n), ...values.map(bits)).r);
/** @param {number} n @param {...number} values */
const d = (n, ...values) => asDouble(call(double(n), ...values.flatMap((v) => [...words(v)])).r);

test('single precision: add, sub, mul, div, sqrt are the nearest value (2.8.3.2)', () => {
  for (let i = 0; i < 400; i++) {
    const [a, b] = [0, 0].map(() => Math.fround((random() / 2 ** 31) * 2 ** (random() % 30)));
    assert.equal(f(0, a, b), Math.fround(a + b));
    assert.equal(f(1, a, b), Math.fround(a - b));
    assert.equal(f(2, a, b), Math.fround(a * b));
    assert.equal(f(3, a, b), Math.fround(a / b));
    assert.equal(f(6, Math.abs(a)), Math.fround(Math.sqrt(Math.abs(a))));
    assert.equal(call(single(0x54 / 4), bits(a), bits(b)).r[0], Math.sign(a - b));
  }
});

test('double precision: the same, and both of sincos (2.8.3.2)', () => {
  for (let i = 0; i < 200; i++) {
    const [a, b] = [0, 0].map(
      () => (random() / 2 ** 31 + random() / 2 ** 62) * 2 ** (random() % 200),
    );
    assert.equal(d(0, a, b), a + b);
    assert.equal(d(1, a, b), a - b);
    assert.equal(d(2, a, b), a * b);
    assert.equal(d(3, a, b), a / b);
    assert.equal(d(6, Math.abs(a)), Math.sqrt(Math.abs(a)));
  }
  const { r } = call(double(0x48 / 4), ...words(0.75));
  assert.deepEqual([asDouble(r), asDouble(r, 2)], [Math.sin(0.75), Math.cos(0.75)]);
  const both = call(single(0x40 / 4), bits(0.75)).r;
  assert.deepEqual(
    [asSingle(both), asSingle([both[1]])],
    [Math.fround(Math.sin(0.75)), Math.fround(Math.cos(0.75))],
  );
});

test('denormals become zero of their sign, no result is a NaN (2.8.3.2)', () => {
  const tiny = 2 ** -140;
  assert.ok(Object.is(f(0, tiny, -0), 0));
  assert.ok(Object.is(f(2, -(2 ** -100), 2 ** -100), -0));
  assert.equal(f(1, Infinity, Infinity), Infinity);
  assert.equal(f(3, 0, 0), Infinity);
  assert.equal(f(3, -1, 0), -Infinity);
  assert.equal(f(6, -4), -Infinity);
  assert.equal(f(0x50 / 4, 0), -Infinity);
  assert.equal(f(0, NaN, 1), Infinity);
  assert.equal(d(0x50 / 4, -3), -Infinity);
  assert.ok(Object.is(d(2, 2 ** -1000, -(2 ** -1000)), -0));
});

test('to integers: towards minus infinity, clamped; fixed point; 64 bits (2.8.3.2)', () => {
  const to = (/** @type {number} */ n, /** @type {number} */ value, e = 0) =>
    call(single(n), bits(value), e).r;
  assert.deepEqual(
    [2.9, -2.1, 3e9, -3e9, NaN].map((v) => to(7, v)[0]),
    [2, -3, 0x7fffffff, -0x80000000, 0x7fffffff],
  );
  assert.deepEqual(
    [2.9, -2.1, 3e9, 5e9].map((v) => to(9, v)[0] >>> 0),
    [2, 0, 3000000000, 0xffffffff],
  );
  assert.equal(to(8, 0.5, 16)[0], 0x8000);
  assert.equal(to(8, -0.5, 1)[0], -1);
  assert.equal(to(10, 0.75, 2)[0], 3);
  assert.deepEqual(to(0x6c / 4, -1.5).slice(0, 2), [-2, -1]);
  assert.deepEqual(to(0x74 / 4, 2 ** 40).slice(0, 2), [0, 256]);
  assert.deepEqual(to(0x70 / 4, 1e30, 0).slice(0, 2), [-1, 0x7fffffff]);
  const wide = call(double(0x78 / 4), ...words(0.5), 33).r;
  assert.deepEqual(wide.slice(0, 2), [0, 1]);
});

test('from integers: the nearest, rounded once; fixed point; 64 bits; between the precisions (2.8.3.2)', () => {
  const from = (/** @type {number} */ n, /** @type {number[]} */ ...args) =>
    asSingle(call(single(n), ...args).r);
  assert.equal(from(11, -7), -7);
  assert.equal(from(13, -1), Math.fround(4294967295));
  assert.equal(from(12, 3, 1), 1.5);
  assert.equal(from(14, -1, 32), 1);
  // 2^24 + 1 is a tie (to even); one more bit far below breaks the tie, and rounding to double
  // first would lose that bit.
  assert.equal(from(0x64 / 4, 1, 0x01000001 << 7), 2 ** 63 + 2 ** 40);
  assert.equal(from(0x5c / 4, -1, -1), -1);
  assert.equal(asDouble(call(double(0x5c / 4), -2, -1).r), -2);
  assert.equal(asDouble(call(double(0x60 / 4), 0, 1, 1).r), 2 ** 31);
  assert.equal(asDouble(call(single(0x7c / 4), bits(0.1)).r), Math.fround(0.1));
  assert.equal(asSingle(call(double(0x7c / 4), ...words(0.1)).r), Math.fround(0.1));
});

test('every entry of both tables takes the cycles that its list says, whatever its operands', () => {
  for (let n = 0; n < 32; n++) {
    assert.equal(call(single(n), bits(0.5), 3, 0).cycles, SINGLE_COSTS[n], NAMES[n]);
    assert.equal(call(double(n), ...words(0.5), ...words(2)).cycles, DOUBLE_COSTS[n], NAMES[n]);
    assert.equal(call(single(n), -1, -1, -1, -1).cycles, SINGLE_COSTS[n], NAMES[n]);
  }
});

const INTERRUPTED = `
  typedef void *(*look_t)(uint16_t *, uint32_t);
  static volatile uint32_t rom; /* 0, which the compiler must not know */
  #define POINTER(at) ((uintptr_t)*(volatile uint16_t *)(rom + at))
  static uint32_t (*sine)(uint32_t), (*add)(uint32_t, uint32_t);
  volatile uint32_t sum, result, taken;
  void timer0(void) { taken++; sum = add(0x3f800000, 0x40000000); }
  int main(void) {
    look_t look = (look_t)POINTER(0x18);
    uint32_t *table = look((uint16_t *)POINTER(0x16), 'S' | 'F' << 8);
    add = (uint32_t (*)(uint32_t, uint32_t))table[0]; sine = (uint32_t (*)(uint32_t))table[16];
    NVIC_ISER = 1;
    result = sine(0x3f400000);
    return 0;
  }`;

test('a native is interrupted every few cycles, also by a handler that calls one, and gives the same result', () => {
  const plain = boot(INTERRUPTED);
  assert.equal(finish(plain), 0);
  const expected = plain.read32('result');
  const total = plain.cores[0].instructions;
  let inside = 0;
  for (let n = 10; n < total; n++) {
    const m = boot(INTERRUPTED);
    m.injectInterrupt(0, n, 0);
    let raised = 0;
    let latency = 0;
    let enabled = 0;
    m.inject(0, n, () => ((raised = m.cycle), (enabled = m.cores[0].enabled)));
    m.cores[0].onException = (core, _, entry) => entry && (latency = core.t - raised);
    assert.equal(finish(m), 0);
    if (enabled === 0 || m.read32('taken') === 0) continue; // too early, or as the program ends
    inside++;
    assert.equal(m.read32('result'), expected);
    assert.equal(m.read32('sum'), bits(3));
    assert.ok(latency <= 4, `${latency}`);
  }
  assert.ok(inside > 100);
});

test('a jump into the ROM where there is no function is a fault, and the message gives the reason', () => {
  for (const [place, words] of /** @type {[number, RegExp][]} */ ([
    [1, /null function pointer/],
    [0x2001, /no function/],
  ])) {
    const m = boot(`int main(void) { ((void (*)(void))${place})(); return 0; }`);
    const stop = m.run(1e6);
    assert.match(String(m.warnings[0]?.why), words);
    assert.ok(m.failure(stop));
  }
});

test('core 1 goes back to the ROM when its program returns, and can be launched again (2.8.2)', () => {
  const m = boot(`
    volatile uint32_t runs; static void core1(void) { runs++; }
    int main(void) {
      for (unsigned i = 1; i <= 3; i++) { start_core1(core1, 0x20041000); while (runs != i) {} for (volatile int k = 0; k < 20; k++) {} }
      return 0; }`);
  assert.equal(finish(m), 0);
  assert.equal(m.cores[1].running, false);
});

test('flash: a sector is erased, a page programmed (ones to zeros only), each in its time (2.8.3.1.3)', () => {
  const [erase, program] = [look('RE'), look('RP')];
  machine.write(0x10100000, new Uint8Array(0x2000));
  const e = call(erase, 0x100000, 0x1000, 0x10000, 0xd8);
  assert.deepEqual([...machine.read(0x10100ffe, 4)], [0xff, 0xff, 0, 0]);
  assert.equal(e.cycles, ERASE_MICROS * 125);
  machine.write(
    RAM,
    Uint8Array.from({ length: 256 }, (_, i) => i),
  );
  const p = call(program, 0x100000, RAM, 256);
  assert.deepEqual([...machine.read(0x10100000, 256)], [...machine.read(RAM, 256)]);
  assert.equal(p.cycles, PROGRAM_MICROS * 125);
  machine.write(RAM, new Uint8Array(256).fill(0xf0));
  call(program, 0x100000, RAM, 256);
  assert.equal(machine.read(0x10100033, 1)[0], 0x30);
});

test('the ROM sends core 0 through the start of the image again: the entry that a debugger and the SDK use (2.8.1)', () => {
  const m = boot(`
    int main(void) {
      volatile uint32_t *count = (volatile uint32_t *)0x2003ff00;
      if (++*count < 3) { __asm volatile("ldr r0, [%0, #4]\\n\\tbx r0" : : "r"(0) : "r0"); }
      return 0; }`);
  assert.equal(finish(m), 0);
  assert.equal(m.read32(0x2003ff00), 3);
});
