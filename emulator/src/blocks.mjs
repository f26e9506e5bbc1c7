// @ts-check
/**
 * The blocks to whose pins a bench connects models of parts. The I²C, SPI and ADC of this folder
 * replace those of the package rp2040js. RESETS resets them, and the package's PWM (RP2040
 * datasheet 2.14).
 *
 * Invariant: when the firmware sets the reset bit of a block, the block's registers get their state
 * after a reset. (Unlike on the chip, the block still answers while the bit is set.)
 */
import { Adc } from './adc.mjs';
import { I2c } from './i2c.mjs';
import { Spi } from './spi.mjs';

/** For each block: its address >> 12, and its bit in RESETS. */
const I2C = [
  [0x40044, 3],
  [0x40048, 4],
];
const SPI = [
  [0x4003c, 16],
  [0x40040, 17],
];
const ADC = [0x4004c, 0];
const PWM_BIT = 14;
const RESETS = 0x4000c;

/**
 * Makes the blocks and puts them into the chip.
 * @param {import('rp2040js').RP2040} rp
 * @param {import('./clock.mjs').Clock} clock
 * @param {import('./pins.mjs').Pins} pins
 */
export function makeBlocks(rp, clock, pins) {
  const i2cs = I2C.map((_, n) => new I2c(rp, clock, n));
  const spis = SPI.map((_, n) => new Spi(rp, clock, n, (pin) => pins.level(pin)));
  const adc = new Adc(rp, clock);
  const chip = /** @type {any} */ (rp);
  chip.i2c = i2cs;
  chip.spi = spis;
  chip.adc = adc;
  /** @type {Map<number, { reset: () => void }>} */
  const byBit = new Map([[ADC[1], adc]]);
  chip.peripherals[ADC[0]] = adc;
  i2cs.forEach((block, n) => {
    chip.peripherals[I2C[n][0]] = block;
    byBit.set(I2C[n][1], block);
  });
  spis.forEach((block, n) => {
    chip.peripherals[SPI[n][0]] = block;
    byBit.set(SPI[n][1], block);
    pins.watchers.push((pin, level) => block.padChanged(pin, level));
  });
  byBit.set(PWM_BIT, chip.pwm);
  for (const slice of chip.pwm.channels) mendStart(slice);
  const resets = chip.peripherals[RESETS];
  const write = resets.writeUint32.bind(resets);
  resets.writeUint32 = (/** @type {number} */ offset, /** @type {number} */ value) => {
    write(offset, value);
    if (offset === 0) for (const [bit, block] of byBit) if (value & (1 << bit)) block.reset();
  };
  return { i2cs, spis, adc };
}

/**
 * Corrects two faults of the package's PWM. With this change a slice begins to count when it is
 * turned on, not when its divider is written; and its outputs are high from that cycle on, not from
 * its first wrap on (4.5.2.1). @param {any} slice
 */
function mendStart(slice) {
  const write = slice.writeRegister.bind(slice);
  slice.writeRegister = (/** @type {number} */ offset, /** @type {number} */ value) => {
    const was = slice.csr & 1;
    write(offset, value);
    if (offset === 4) slice.updateEnable();
    if (offset !== 0 || was || !(value & 1) || value & 2) return;
    slice.setA(slice.alarmA.target > slice.timer.counter);
    slice.setB(slice.alarmB.target > slice.timer.counter);
  };
}
