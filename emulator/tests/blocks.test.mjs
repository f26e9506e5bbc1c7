// @ts-check
/** Tests I2C, SPI, ADC and PWM at their registers against the RP2040 datasheet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SpiFlash, TemperatureSensor } from '../src/index.mjs';
import { boot, finish } from './bench.mjs';

const I2C = `
  enum { I2C0 = 0x40044000, CON = 0, TAR = 4, DATA = 0x10, HIGH = 0x1c, LOW = 0x20, RAW = 0x34,
         CLR_ABRT = 0x54, CLR_STOP = 0x60, ENABLE = 0x6c, RXFLR = 0x78, SOURCE = 0x80 };
  static volatile uint32_t *reg(int at) { return &REG(I2C0 + at); }
  static void on(unsigned address) {
    *reg(ENABLE) = 0; *reg(CON) = 0x65; *reg(HIGH) = 125; *reg(LOW) = 187; *reg(TAR) = address;
    *reg(ENABLE) = 1;
  }
`;

test('I2C: a register of a sensor is read with a repeated START, and each bit takes its time (4.3)', () => {
  const m = boot(`${I2C}
    int main(void) {
      on(0x48);
      *reg(DATA) = 0; *reg(DATA) = 1 << 10 | 1 << 8; *reg(DATA) = 1 << 9 | 1 << 8;
      while (!(*reg(RAW) & 1 << 9)) {}
      check(*reg(RXFLR) == 2); check(*reg(DATA) == 0x15); check(*reg(DATA) == 0x80);
      check(*reg(CLR_STOP) == 1); check(!(*reg(RAW) & 1 << 9));
      return 0; }`);
  const sensor = new TemperatureSensor(21.5);
  m.i2cs[0].attach(0x48, sensor);
  /** @type {number[]} */
  const starts = [];
  sensor.address = () => ((sensor.count = 0), starts.push(m.cycle), true);
  assert.equal(finish(m), 0);
  // Between the acknowledgements of the two addresses: a byte (9 bits), START and address (10).
  assert.equal(starts[1] - starts[0], 19 * 312);
});

test('I2C: an absent part aborts, flushes, and holds the FIFO empty until the abort is cleared (4.3.10.3)', () => {
  const m = boot(`${I2C}
    int main(void) {
      on(0x20);
      *reg(DATA) = 1; *reg(DATA) = 2; *reg(DATA) = 1 << 9 | 3;
      while (!(*reg(RAW) & 1 << 6)) {}
      check(*reg(SOURCE) == (3u << 23 | 1)); *reg(DATA) = 9;
      check(REG(I2C0 + 0x74) == 0);
      while (!(*reg(RAW) & 1 << 9)) {}
      check(*reg(CLR_ABRT) == 1); check(*reg(SOURCE) == 0);
      return 0; }`);
  assert.equal(finish(m), 0);
});

test('I2C: a held clock stops the bus, and RESETS frees the controller', () => {
  const m = boot(`${I2C}
    int main(void) {
      on(0x48);
      *reg(DATA) = 1 << 9;
      for (volatile int i = 0; i < 2000; i++) {}
      check(!(*reg(RAW) & 1 << 9)); check(REG(I2C0 + 0x9c) == 1);
      REG(0x4000c000 + 0x2000) = 8; REG(0x4000c000 + 0x3000) = 8;
      check(REG(I2C0 + 0x9c) == 0); check(*reg(TAR) == 0x55);
      return 0; }`);
  m.i2cs[0].attach(0x48, new TemperatureSensor());
  m.i2cs[0].hold(true);
  assert.equal(finish(m), 0);
});

const SPI = `
  enum { SPI0 = 0x4003c000 };
  static void on(unsigned cr0) {
    REG(SPI0 + 0x10) = 2; REG(SPI0) = cr0; REG(SPI0 + 4) = 2;
    REG(0xd0000014) = 1 << 17; REG(0xd0000024) = 1 << 17; REG(0x40014004 + 8 * 17) = 5;
  }
  static void hold(int low) { REG(low ? 0xd0000018 : 0xd0000014) = 1 << 17; }
  static unsigned move(unsigned out) {
    REG(SPI0 + 8) = out; while (!(REG(SPI0 + 0xc) & 4)) {} return REG(SPI0 + 8);
  }
`;

test('SPI: the JEDEC id of a flash; a part that is not selected sends ones; overrun (4.4)', () => {
  const m = boot(`${SPI}
    int main(void) {
      on(9 << 8 | 7);
      check(move(0x9f) == 0xff);
      hold(1); move(0x9f); check(move(0) == 0xef); check(move(0) == 0x40); hold(0);
      for (int i = 0; i < 8; i++) REG(SPI0 + 8) = i;
      while (REG(SPI0 + 0xc) & 16) {}
      check((REG(SPI0 + 0x18) & 1) == 0); REG(SPI0 + 8) = 8; while (REG(SPI0 + 0xc) & 16) {}
      check((REG(SPI0 + 0x18) & 1) == 1); REG(SPI0 + 0x20) = 1; check((REG(SPI0 + 0x18) & 1) == 0);
      return 0; }`);
  m.spis[0].attach(17, new SpiFlash(m));
  assert.equal(finish(m), 0);
  assert.equal(m.spis[0].lost, 1);
  assert.equal(m.spis[0].hz, 6.25e6);
});

test('SPI: a warning names a part in another mode, or with too fast a clock, once per selection', () => {
  const m = boot(`${SPI}
    int main(void) { on(9 << 8 | 1 << 7 | 7); hold(1); move(0x9f); move(0); hold(0); return 0; }`);
  m.spis[0].attach(17, new SpiFlash(m));
  assert.equal(finish(m), 0);
  assert.deepEqual(
    m.warnings.map((w) => w.why),
    ['SPI0: the part selected by pin 17 has no mode 1'],
  );
});

test('ADC: conversions begin DIV + 1 cycles of 48 MHz apart, without drift; the FIFO keeps four (4.9)', () => {
  const m = boot(`
    int main(void) {
      REG(0x4004c010) = 479 << 8; REG(0x4004c008) = 1 << 24 | 1; REG(0x4004c000) = 1;
      REG(0x4004c000) = 1 | 8;
      for (int i = 0; i < 40; i++) {
        while (REG(0x4004c008) & 1 << 8) {} check(REG(0x4004c00c) == (uint32_t)(100 + i)); }
      for (volatile int i = 0; i < 2000; i++) {}
      check((REG(0x4004c008) >> 9 & 7) == 5); check((REG(0x4004c008) >> 16 & 15) == 4);
      return 0; }`);
  /** @type {number[]} */
  const times = [];
  m.adc.set(0, (micros) => (times.push(micros), 99 + times.length));
  assert.equal(finish(m), 0);
  times.slice(1).forEach((t, i) => assert.ok(Math.abs(t - times[0] - 10 * (i + 1)) < 0.01));
  assert.ok(m.adc.lost > 0);
});

test('PWM: a slice counts and drives its pins from the cycle in which it is turned on (4.5)', () => {
  const m = boot(`
    int main(void) {
      REG(0x40014004 + 8 * 2) = 4; REG(0x40050000 + 0x14 + 4) = 1 << 4;
      REG(0x40050000 + 0x14 + 0x10) = 999; REG(0x40050000 + 0x14 + 0xc) = 250;
      for (volatile int i = 0; i < 100; i++) {}
      REG(0x40050000 + 0x14) = 1;
      for (volatile int i = 0; i < 400; i++) {}
      return 0; }`);
  /** @type {number[]} */
  const edges = [];
  m.watch(2, (_pin, _level, cycle) => edges.push(cycle));
  assert.equal(finish(m), 0);
  assert.deepEqual(
    edges.slice(0, 5).map((cycle) => cycle - edges[0]),
    [0, 250, 1000, 1250, 2000],
  );
});

test('an address of 8 bits and an input that does not exist are refused', () => {
  const m = boot('int main(void) { return 0; }');
  assert.throws(() => m.i2cs[0].attach(0x90, new TemperatureSensor()), /7 bits/);
  assert.throws(() => m.adc.set(5, 0), /inputs 0 to 4/);
});
