// @ts-check
/** Tests the parts around the cores against the RP2040 datasheet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boot, finish, reach } from './bench.mjs';

const IDLE = 'int main(void) { for (;;) wfe(); }';

test('CPUID distinguishes the cores, and core 1 starts by the handshake with its own SP and vectors (2.3.1.1, 2.8.2)', () => {
  const m = boot(
    'volatile uint32_t id[2] = {9, 9}, sp; static void core1(void) { id[1] = REG(SIO); __asm volatile("mov %0, sp" : "=r"(sp)); sev(); for (;;) wfe(); } int main(void) { id[0] = REG(SIO); start_core1(core1, 0x20041000); for (volatile int i = 0; i < 100; i++) {} return 0; }',
  );
  assert.equal(finish(m), 0);
  assert.equal(m.read32('id'), 0);
  assert.equal(m.read32(m.address('id') + 4), 1);
  assert.ok(m.read32('sp') <= 0x20041000 && m.read32('sp') > 0x20040f00);
});

test('the handshake starts again after a wrong word (2.8.2)', () => {
  const m = boot(`
    static void put(uint32_t w) { REG(SIO + 0x54) = w; sev(); }
    volatile uint32_t started; static void core1(void) { started = 1; for (;;) wfe(); }
    int main(void) { put(0); put(0); put(7); put(0); put(0); put(1); put((uint32_t)vectors); put(0x20041000); put((uint32_t)core1); for (volatile int i = 0; i < 100; i++) {} check(started == 1); return 0; }`);
  assert.equal(finish(m), 0);
});

test('PSM holds core 1 in reset and releases it again; after reset core 1 sends a 0 (2.13, 2.8.2)', () => {
  const m = boot(`
    volatile uint32_t runs; static void core1(void) { runs++; for (;;) wfe(); }
    int main(void) {
      start_core1(core1, 0x20041000); for (volatile int i = 0; i < 100; i++) {}
      REG(0x40010004) = 1u << 16; for (volatile int i = 0; i < 20; i++) {} REG(0x40010004) = 0;
      while (!(REG(SIO + 0x50) & 1)) wfe();
      check(REG(SIO + 0x58) == 0);
      start_core1(core1, 0x20041000); for (volatile int i = 0; i < 100; i++) {}
      check(runs == 2); return 0; }`);
  assert.equal(finish(m), 0);
});

test('core 1 starts the configured number of cycles after the last word', () => {
  const source =
    'void core1(void) { for (;;) wfe(); } int main(void) { start_core1(core1, 0x20041000); for (;;) wfe(); }';
  const start = (/** @type {number} */ core1Delay) => {
    const m = boot(source, { core1Delay });
    reach(m, 'core1', 1);
    return m.cores[1].t;
  };
  assert.equal(start(1000) - start(40), 960);
});

test('FIFO: 8 deep each way, VLD and RDY, WOF and ROE sticky until written (2.3.1.4)', () => {
  const m = boot(`
    volatile uint32_t seen, sum; static void core1(void) { while (!seen) {} for (int i = 0; i < 8; i++) sum += REG(SIO + 0x58); seen = 2; for (;;) wfe(); }
    int main(void) {
      start_core1(core1, 0x20041000);
      check((REG(SIO + 0x50) & 15) == 2);
      for (int i = 1; i <= 8; i++) REG(SIO + 0x54) = i;
      check((REG(SIO + 0x50) & 15) == 0);
      REG(SIO + 0x54) = 99;
      check((REG(SIO + 0x50) & 15) == 4);
      REG(SIO + 0x50) = 4;
      check((REG(SIO + 0x50) & 15) == 0);
      (void)REG(SIO + 0x58);
      check((REG(SIO + 0x50) & 15) == 8);
      REG(SIO + 0x50) = 8;
      seen = 1; while (seen != 2) {}
      check(sum == 36); check((REG(SIO + 0x50) & 15) == 2); return 0; }`);
  assert.equal(finish(m), 0);
});

test('a word in the FIFO interrupts the reader, and only it (2.3.1.4: SIO_IRQ_PROC0 and PROC1)', () => {
  const m = boot(`
    volatile uint32_t got, wrong;
    void sio_proc1(void) { got = REG(SIO + 0x58) + REG(SIO); } void sio_proc0(void) { wrong = 1; REG(SIO + 0x50) = 12; }
    static void core1(void) { NVIC_ICPR = 1u << 16; NVIC_ISER = 1u << 16; for (;;) wfi(); }
    int main(void) { start_core1(core1, 0x20041000); NVIC_ICPR = 1u << 15; NVIC_ISER = 1u << 15; for (volatile int i = 0; i < 100; i++) {} REG(SIO + 0x54) = 41; for (volatile int i = 0; i < 100; i++) {} check(got == 42 && !wrong); return 0; }`);
  assert.equal(finish(m), 0);
});

test('a spinlock is claimed by its reader once, released by any write (2.3.1.3)', () => {
  const m = boot(`int main(void) {
    check(REG(SIO + 0x100 + 4 * 7) == 1u << 7); check(REG(SIO + 0x100 + 4 * 7) == 0); check(REG(SIO + 0x5c) == 1u << 7);
    REG(SIO + 0x100 + 4 * 7) = 0; check(REG(SIO + 0x5c) == 0); check(REG(SIO + 0x100 + 4 * 7) != 0); return 0; }`);
  assert.equal(finish(m), 0);
});

test('two cores incrementing under a spinlock lose nothing; without it they do (2.3.1.3)', () => {
  const source = (/** @type {boolean} */ locked) => `
    volatile uint32_t count, done;
    static void work(void) { for (int i = 0; i < 2000; i++) { ${locked ? 'while (!REG(SIO + 0x100)) {}' : ''} count++; ${locked ? 'REG(SIO + 0x100) = 0;' : ''} } }
    static void core1(void) { work(); done = 1; for (;;) wfe(); }
    int main(void) { start_core1(core1, 0x20041000); work(); while (!done) {} return 0; }`;
  const safe = boot(source(true));
  finish(safe);
  assert.equal(safe.read32('count'), 4000);
  const racy = boot(source(false));
  finish(racy);
  assert.ok(racy.read32('count') < 4000);
});

test('the divider: a result after 8 cycles, division by zero, signs, and one for each core (2.3.1.5)', () => {
  const m = boot(`
    #define DIV(k) REG(SIO + 0x60 + 4 * (k))
    static void pause8(void) { __asm volatile("b 1f\\n1: b 1f\\n1: b 1f\\n1: b 1f\\n1:"); }
    volatile uint32_t other, done;
    static void core1(void) { DIV(0) = 1000; DIV(1) = 10; pause8(); other = DIV(4); done = 1; for (;;) wfe(); }
    int main(void) {
      DIV(0) = 100; DIV(1) = 7; check((DIV(6) & 1) == 0); pause8(); check((DIV(6) & 3) == 3);
      check(DIV(5) == 2); check(DIV(4) == 14); check((DIV(6) & 2) == 0);
      DIV(2) = -100; DIV(3) = 7; pause8(); check((int)DIV(5) == -2 && (int)DIV(4) == -14);
      DIV(0) = 5; DIV(1) = 0; pause8(); check(DIV(5) == 5 && DIV(4) == 0xffffffff);
      DIV(2) = -5; DIV(3) = 0; pause8(); check((int)DIV(5) == -5 && DIV(4) == 1);
      DIV(2) = 0x80000000; DIV(3) = -1; pause8(); check(DIV(5) == 0 && DIV(4) == 0x80000000);
      DIV(0) = 77; DIV(1) = 7; pause8(); start_core1(core1, 0x20041000); while (!done) {} check(other == 100 && DIV(4) == 11); return 0; }`);
  assert.equal(finish(m), 0);
});

test('each core has its own interpolators (2.3.1.6)', () => {
  const m = boot(`
    volatile uint32_t done; static void core1(void) { REG(SIO + 0x80) = 5; done = 1; for (;;) wfe(); }
    int main(void) { REG(SIO + 0x80) = 3; start_core1(core1, 0x20041000); while (!done) {} check(REG(SIO + 0x80) == 3); return 0; }`);
  assert.equal(finish(m), 0);
});

test('an alarm fires in the cycle TIMERAWL reaches it, and disarms (4.6.3)', () => {
  const m = boot(
    'void timer0(void) { REG(TIMER + 0x34) = 1; pin_high(2); } int main(void) { pin_out(2); NVIC_ISER = 1; REG(TIMER + 0x38) = 1; REG(TIMER + 0x10) = 40; while (REG(TIMER + 0x20) & 1) wfi(); return 0; }',
  );
  let pended = 0;
  const pend = m.cores[0].pend.bind(m.cores[0]);
  m.cores[0].pend = (bits) => {
    pended = m.cycle;
    pend(bits);
  };
  assert.equal(finish(m), 0);
  assert.equal(pended, 40 * 125);
});

test('an alarm in the past fires after a full turn, one set to now is missed or fires as configured (4.6.3)', () => {
  const source = (/** @type {string} */ target) =>
    `volatile uint32_t fired; void timer0(void) { REG(TIMER + 0x34) = 1; fired = 1; } int main(void) { NVIC_ISER = 1; REG(TIMER + 0x38) = 1; uint32_t now = REG(TIMER + 0x28); while (REG(TIMER + 0x28) == now) {} now = REG(TIMER + 0x28); REG(TIMER + 0x10) = ${target}; while (!fired) wfi(); return 0; }`;
  const past = boot(source('now - 1'));
  assert.equal(past.run(125e6 * 4000).reason, 'limit');
  assert.equal(finish(past, 125e6 * 4400), 0);
  assert.ok(Math.abs(past.micros - 2 ** 32) < 10);
  const missed = boot(source('now'), { alarmNow: 'miss' });
  assert.equal(missed.run(125e6 * 10).reason, 'limit');
  const fires = boot(source('now'), { alarmNow: 'fire' });
  assert.equal(finish(fires), 0);
});

test('TIMELR latches TIMEHR; TIMEHW and TIMELW set the time; the low word wraps (4.6.2)', () => {
  const m = boot(
    'volatile uint32_t h, l; int main(void) { REG(TIMER + 4) = 0xfffffffe; REG(TIMER) = 6; while (REG(TIMER + 0x24) == 6) {} l = REG(TIMER + 0x0c); h = REG(TIMER + 0x08); return 0; }',
  );
  assert.equal(finish(m), 0);
  assert.equal(m.read32('h'), 7);
  assert.ok(m.read32('l') < 3);
});

test('an armed alarm can be disarmed, and PAUSE stops the counter (4.6.3, 4.6.5)', () => {
  const m =
    boot(`int main(void) { NVIC_ISER = 1; REG(TIMER + 0x38) = 1; REG(TIMER + 0x10) = 20; check(REG(TIMER + 0x20) == 1); REG(TIMER + 0x20) = 1; check(REG(TIMER + 0x20) == 0);
    REG(TIMER + 0x30) = 1; uint32_t t = REG(TIMER + 0x28); for (volatile int i = 0; i < 2000; i++) {} check(REG(TIMER + 0x28) == t); REG(TIMER + 0x30) = 0; for (volatile int i = 0; i < 200; i++) {} check(REG(TIMER + 0x28) > t); return 0; }`);
  assert.equal(finish(m), 0);
});

test('a peripheral interrupt goes to both cores, each with its own enable (2.3.2)', () => {
  const m = boot(`
    volatile uint32_t took[2]; void timer0(void) { took[REG(SIO)]++; REG(TIMER + 0x34) = 1; NVIC_ICER = 1; }
    static void core1(void) { NVIC_ISER = 1; for (;;) wfi(); }
    int main(void) { start_core1(core1, 0x20041000); REG(TIMER + 0x38) = 1; REG(TIMER + 0x10) = 50; for (volatile int i = 0; i < 3000; i++) {} check(took[0] == 0 && took[1] == 1); return 0; }`);
  assert.equal(finish(m), 0);
});

test('pin interrupts: edges latch once, levels follow, each core has its own enables (2.19.5)', () => {
  const m = boot(`
    volatile uint32_t edges, low; void io_bank0(void) { low |= REG(IO_BANK0 + 0x120 + 4) & 0xf; REG(IO_BANK0 + 0xf0 + 4) = 0xc; edges++; }
    int main(void) { REG(IO_BANK0 + 8 * 8 + 4) = 5; REG(IO_BANK0 + 0x100 + 4) = 0x8; NVIC_ISER = 1u << 13; while (edges < 2) wfi(); return 0; }`);
  for (const [cycle, level] of [
    [3000, 1],
    [4000, 1],
    [5000, 0],
    [6000, 1],
  ])
    m.at(cycle, () => m.drive(8, /** @type {0 | 1} */ (level)));
  assert.equal(finish(m), 0);
  assert.equal(m.read32('low'), 8 | 0);
  assert.ok(m.cores[0].t > 6000 && m.cores[0].t < 6200);
});

test('a pad: pulled up when it is not driven, an output read back, a short recorded (2.19.4)', () => {
  const m = boot(
    `volatile uint32_t in[3]; int main(void) { REG(0x4001c004 + 4 * 9) = 0x5a; REG(IO_BANK0 + 8 * 9 + 4) = 5; in[0] = REG(SIO + 4) >> 9 & 1; pin_out(10); pin_high(10); in[1] = REG(SIO + 4) >> 10 & 1; wfe(); in[2] = REG(SIO + 4) >> 9 & 1; return 0; }`,
  );
  m.at(5000, () => {
    m.drive(9, 0);
    m.drive(10, 0);
    m.cores[0].signalEvent();
  });
  assert.equal(finish(m), 0);
  assert.deepEqual(
    [0, 4, 8].map((o) => m.read32(m.address('in') + o)),
    [1, 1, 0],
  );
  assert.deepEqual(m.pins.shorts, [{ pin: 10, cycle: 5000 }]);
});

test('UART: at 115200 baud a character takes 10 bits, the FIFO 32, TXFF holds the writer (4.2.3)', () => {
  const source = `int main(void) { REG(UART0 + 0x24) = 67; REG(UART0 + 0x28) = 52; REG(UART0 + 0x2c) = 0x70; REG(UART0 + 0x30) = 0x301;
    for (int i = 0; i < 40; i++) { while (REG(UART0 + 0x18) & 1 << 5) {} REG(UART0) = 'a' + i % 26; } while (REG(UART0 + 0x18) & 1 << 3) {} return 0; }`;
  const slow = boot(source, { uartDelay: true });
  /** @type {number[]} */
  const times = [];
  let text = '';
  slow.onUart((byte, cycle) => {
    times.push(cycle);
    text += String.fromCharCode(byte);
  });
  assert.equal(finish(slow), 0);
  assert.equal(text.length, 40);
  const character = (10 * 16 * (67 + 52 / 64) * 125e6) / 125e6;
  for (let i = 1; i < 40; i++) assert.ok(Math.abs(times[i] - times[i - 1] - character) <= 1);
  assert.equal(slow.uarts[0].lost, 0);
  const fast = boot(source);
  finish(fast);
  assert.ok(fast.cycle < 5000);
});

test('UART receive: FIFO, threshold and timeout interrupts (4.2.6)', () => {
  const m = boot(
    `volatile uint32_t n, sum; void uart0(void) { REG(UART0 + 0x44) = 0x50; while (!(REG(UART0 + 0x18) & 1 << 4)) { sum += REG(UART0) & 0xff; n++; } }
    int main(void) { REG(UART0 + 0x24) = 67; REG(UART0 + 0x28) = 52; REG(UART0 + 0x2c) = 0x70; REG(UART0 + 0x30) = 0x301; REG(UART0 + 0x38) = 0x50; NVIC_ISER = 1u << 20; while (n < 3) wfi(); return 0; }`,
    { uartDelay: true },
  );
  m.at(4000, () => m.feed('abc'));
  assert.equal(finish(m), 0);
  assert.equal(m.read32('sum'), 97 + 98 + 99);
});

const PIO = 0x50200000;
/**
 * SET PINDIRS 1; loop: SET PINS 1 [delay]; SET PINS 0 [delay], on GPIO 3.
 * @param {string} divider
 * @param {number} delay
 */
const squareWave = (divider, delay) => `int main(void) {
  REG(IO_BANK0 + 8 * 3 + 4) = 6;
  uint32_t program[] = {0xe081, 0xe001 | ${delay} << 8, 0xe000 | ${delay} << 8};
  for (int i = 0; i < 3; i++) REG(${PIO}u + 0x48 + 4 * i) = program[i];
  REG(${PIO}u + 0xc8) = ${divider}; REG(${PIO}u + 0xcc) = 2u << 12 | 1u << 7; REG(${PIO}u + 0xdc) = 1u << 26 | 3u << 5; REG(${PIO}u) = 1; for (;;) wfe(); }`;

test('PIO runs in lock-step with clk_sys through its clock divider (3.5.5)', () => {
  for (const [divider, delay, half] of /** @type {[string, number, number][]} */ ([
    ['1u << 16', 0, 1],
    ['10u << 16', 0, 10],
    ['5u << 16', 3, 20],
    ['1000u << 16', 31, 32000],
  ])) {
    const m = boot(squareWave(divider, delay));
    /** @type {number[]} */
    const edges = [];
    m.watch(3, (_, __, cycle) => edges.push(cycle));
    m.run(half * 20 + 5000);
    assert.ok(edges.length >= 10);
    edges.slice(1, 10).forEach((t, i) => assert.equal(t - edges[i], half, divider));
  }
});

test('a fractional PIO divider jitters by one cycle and does not drift (3.5.5)', () => {
  const m = boot(squareWave('2u << 16 | 128u << 8', 0));
  /** @type {number[]} */
  const edges = [];
  m.watch(3, (_, __, cycle) => edges.push(cycle));
  m.run(9000);
  const gaps = new Set(edges.slice(1).map((t, i) => t - edges[i]));
  assert.deepEqual([...gaps].sort(), [2, 3]);
  const n = edges.length - 1 - ((edges.length - 1) % 2);
  assert.equal(edges[n] - edges[0], n * 2.5);
});

test('a PIO machine stalled on PULL continues at its next tick, on a pin after the synchroniser (3.5.6.3, 3.4.7)', () => {
  const m = boot(`int main(void) {
    REG(IO_BANK0 + 8 * 3 + 4) = 6; uint32_t program[] = {0xe081, 0x80a0, 0x2088, 0xe001, 0xe000};
    for (int i = 0; i < 5; i++) REG(${PIO}u + 0x48 + 4 * i) = program[i];
    REG(${PIO}u + 0xc8) = 1u << 16; REG(${PIO}u + 0xcc) = 4u << 12 | 1u << 7; REG(${PIO}u + 0xdc) = 1u << 26 | 3u << 5; REG(${PIO}u) = 1;
    wfe(); REG(${PIO}u + 0x10) = 1; for (;;) wfe(); }`);
  /** @type {[number, number][]} */
  const edges = [];
  m.watch(3, (_, level, cycle) => edges.push([level, cycle]));
  m.at(4000, () => m.cores[0].signalEvent());
  m.at(6000, () => m.drive(8, 1));
  m.run(8000);
  assert.deepEqual(edges, [
    [1, 6004],
    [0, 6005],
  ]);
});

test('PIO interrupts reach the core: a non-empty receive FIFO (3.6)', () => {
  const m = boot(`volatile uint32_t word; void pio0(void) { word = REG(${PIO}u + 0x20); }
    int main(void) { uint32_t program[] = {0xe03a, 0x4020, 0x8020, 0x0003}; for (int i = 0; i < 4; i++) REG(${PIO}u + 0x48 + 4 * i) = program[i];
    REG(${PIO}u + 0xc8) = 1u << 16; REG(${PIO}u + 0xcc) = 31u << 12; REG(${PIO}u + 0x12c) = 1; NVIC_ISER = 1u << 7; REG(${PIO}u) = 1; while (!word) wfi(); return 0; }`);
  assert.equal(finish(m), 0);
  assert.equal(m.read32('word'), 26);
});

test('clocks: clk_sys from the PLL changes the length of a cycle, not the microsecond (2.15.3, 2.18)', () => {
  const m = boot(`int main(void) {
    REG(0x40024000) = 0xaa0; REG(0x4002400c) = 47; REG(0x40024000) = 0xfabaa0; while (!(REG(0x40024004) & 1u << 31)) {}
    REG(0x40008030) = 2;
    REG(0x4002800c) = 0; REG(0x40028000) = 1; REG(0x40028008) = 125; REG(0x40028004) = 0x2d & ~0x21; while (!(REG(0x40028000) & 1u << 31)) {}
    REG(0x4002800c) = 6u << 16 | 5u << 12; REG(0x40028004) = 0;
    REG(0x4000803c) = 1;
    NVIC_ISER = 1; REG(TIMER + 0x38) = 1; uint32_t t = REG(TIMER + 0x28); REG(TIMER + 0x10) = t + 2; wfi();
    REG(TIMER + 0x10) = t + 102; pin_out(2); pin_high(2); wfi(); return 0; }
    void timer0(void) { REG(TIMER + 0x34) = 1; }`);
  /** @type {number[]} */
  const taken = [];
  m.cores[0].onException = (core, _, entry) => void (entry && taken.push(core.t));
  assert.equal(finish(m), 0);
  assert.equal(m.clock.hz, 50e6);
  assert.equal(taken[1] - taken[0], 100 * 50);
});

test('two runs of one image make the same edges; another offset of core 1 makes others', () => {
  const source =
    'static void core1(void) { for (;;) { pin_high(3); for (volatile int i = 0; i < 7; i++) {} pin_low(3); } } int main(void) { pin_out(2); pin_out(3); start_core1(core1, 0x20041000); for (;;) { pin_high(2); for (volatile int i = 0; i < 11; i++) {} pin_low(2); } }';
  const digest = (/** @type {number} */ core1Delay, /** @type {boolean} */ conflicts) => {
    const m = boot(source, { core1Delay, conflicts });
    m.run(200000);
    return m.edges.digest;
  };
  assert.equal(digest(40, false), digest(40, false));
  assert.equal(digest(40, true), digest(40, true));
  assert.notEqual(digest(40, false), digest(41, false));
});

test('a run in which both cores sleep and nothing can wake them ends as a deadlock', () => {
  const m = boot(IDLE);
  assert.equal(m.run(1e9).reason, 'deadlock');
});
