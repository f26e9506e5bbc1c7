// @ts-check
/**
 * The ADC (RP2040 datasheet 4.9): a converter, its input switch and its FIFO.
 *
 * Invariants
 * - A conversion takes 96 cycles of clk_adc. This model's clk_adc is always 48 MHz, whatever
 *   CLK_ADC_CTRL says.
 *   Free-running conversions begin max(96, 1 + DIV) cycles of clk_adc apart and never drift: each
 *   begins at a multiple of the period after the first one.
 * - The FIFO keeps four results. A result that finds the FIFO full is lost and counted, and OVER is
 *   set until the firmware clears it.
 * - The interrupt and the DMA request are raised while the FIFO has at least as many results as the
 *   threshold.
 */
import { BasePeripheral } from 'rp2040js';
import { Alarm } from './clock.mjs';

/** The voltage at an input, as the result of a conversion (0 to 4095): a number, or a function of
the
 * time in microseconds.
 * @typedef {number | ((micros: number) => number)} AdcInput */

const IRQ_ADC_FIFO = 22;
const DREQ_ADC = 36;
const DEPTH = 4;
const INPUTS = 5;
const CLOCK = 48e6;
const CONVERSION = 96;
const OVER = 1 << 11;
const UNDER = 1 << 10;

export class Adc extends BasePeripheral {
  control = 0;
  fifoControl = 0;
  divider = 0;
  enable = 0;
  result = 0;
  /** OVER and UNDER of FCS. */
  over = 0;
  /** @type {number[]} */
  fifo = [];
  busy = false;
  /** The start of the free-running conversions in nanoseconds, and how many have begun. */
  origin = 0;
  begun = 0;

  /** @param {import('rp2040js').RP2040} rp @param {import('./clock.mjs').Clock} clock */
  constructor(rp, clock) {
    super(rp, 'ADC');
    this.clock = clock;
    /** @type {AdcInput[]} */
    this.inputs = new Array(INPUTS).fill(0);
    /** Results that found the FIFO full. */
    this.lost = 0;
    this.converted = new Alarm(clock, () => this.finish());
    this.reset();
  }

  /** Puts the registers into their state after a reset. */
  reset() {
    this.converted.cancel();
    this.control = 0;
    this.fifoControl = 0;
    this.divider = 0;
    this.enable = 0;
    this.result = 0;
    this.over = 0;
    this.fifo = [];
    this.busy = false;
    this.origin = 0;
    this.begun = 0;
    this.update();
  }

  /** Sets an input: 0 to 3 are pins 26 to 29, 4 is the temperature sensor.
   * @param {number} input @param {AdcInput} value */
  set(input, value) {
    if (!(input >= 0 && input < INPUTS))
      throw new RangeError(`the ADC has inputs 0 to 4, not ${input}`);
    this.inputs[input] = value;
  }

  get periodNanos() {
    const divider = 1 + (this.divider >>> 8) + (this.divider & 255) / 256;
    return (Math.max(CONVERSION, divider) / CLOCK) * 1e9;
  }

  start() {
    if (this.busy || !(this.control & 1)) return;
    this.origin = this.clock.nanos;
    this.begun = 0;
    this.convert();
  }

  convert() {
    this.busy = true;
    this.begun++;
    const began = this.origin + (this.begun - 1) * this.periodNanos;
    this.converted.schedule(began + (CONVERSION / CLOCK) * 1e9 - this.clock.nanos);
  }

  finish() {
    this.busy = false;
    const input = (this.control >> 12) & 7;
    const value = this.inputs[input] ?? 0;
    const level = typeof value === 'number' ? value : value(this.clock.nanos / 1000);
    this.result = Math.max(0, Math.min(4095, Math.round(level)));
    if (this.fifoControl & 1) {
      if (this.fifo.length < DEPTH)
        this.fifo.push(this.fifoControl & 2 ? this.result >> 4 : this.result);
      else {
        this.lost++;
        this.over |= OVER;
      }
    }
    const turns = (this.control >> 16) & 0x1f;
    if (turns) {
      let next = input;
      do next = (next + 1) % INPUTS;
      while (!(turns & (1 << next)));
      this.control = (this.control & ~(7 << 12)) | (next << 12);
    }
    if (this.control & 8 && this.control & 1) this.convert();
    this.update();
  }

  get ready() {
    return this.fifo.length >= ((this.fifoControl >>> 24) & 15);
  }

  update() {
    this.rp2040.setInterrupt(IRQ_ADC_FIFO, this.ready && (this.enable & 1) !== 0);
    const dma = /** @type {any} */ (this.rp2040.dma);
    if (this.fifoControl & 8 && this.ready && this.fifo.length) dma?.setDREQ(DREQ_ADC);
    else dma?.clearDREQ(DREQ_ADC);
  }

  /** @param {number} offset @returns {number} */
  readUint32(offset) {
    switch (offset) {
      case 0x00:
        return this.control | (this.busy ? 0 : 1 << 8);
      case 0x04:
        return this.result;
      case 0x08:
        return (
          this.fifoControl |
          this.over |
          (this.fifo.length << 16) |
          (this.fifo.length === DEPTH ? 1 << 9 : 0) |
          (this.fifo.length === 0 ? 1 << 8 : 0)
        );
      case 0x0c: {
        if (this.fifo.length === 0) this.over |= UNDER;
        const value = this.fifo.shift() ?? 0;
        this.update();
        return value;
      }
      case 0x10:
        return this.divider;
      case 0x14:
        return this.ready ? 1 : 0;
      case 0x18:
        return this.enable;
      case 0x20:
        return this.ready ? this.enable : 0;
    }
    return 0;
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    switch (offset) {
      case 0x00: {
        this.control = value & 0x1f700b;
        if (value & 0xc) this.start();
        break;
      }
      case 0x08:
        this.over &= ~this.rawWriteValue;
        this.fifoControl = value & 0x0f00000f;
        break;
      case 0x10:
        this.divider = value & 0xffffff;
        break;
      case 0x18:
        this.enable = value & 1;
        break;
    }
    this.update();
  }
}
