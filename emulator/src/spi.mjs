// @ts-check
/**
 * An SPI controller as master, a PL022 (RP2040 datasheet 4.4), and the parts on its lines. A part
 * is selected while the pad of its chip select is low, whoever drives that pad.
 *
 * Invariants
 * - One frame at a time is on the lines. Each bit of a frame takes SSPCPSR × (1 + SCR) cycles of
 *   clk_peri.
 * - The received value enters the receive FIFO when the frame ends. A value that finds the FIFO
 *   full is lost and counted, and SSPRORRIS is set.
 * - If a part is selected in a mode that it does not have, or with a faster clock than it allows,
 *   it sees nothing and drives nothing. The machine warns once for each selection.
 */
import { BasePeripheral } from 'rp2040js';
import { Alarm } from './clock.mjs';

/**
 * A part on the lines: `transfer` takes a frame and returns the value that the part sends
 * meanwhile. `modes` are the modes of the clock that the part has (0 to 3), `hz` is its highest
 * clock. @typedef {{
 *   transfer: (out: number) => number,
 *   select?: () => void,
 *   deselect?: () => void,
 *   modes?: number[],
 *   hz?: number,
 * }} SpiPart
 */

const IRQ_SPI0 = 18;
const DREQ_SPI0_TX = 16;
const DEPTH = 8;
const OVERRUN = 1;
const TIMEOUT = 2;
const RX = 4;
const TX = 8;
/** Receive timeout: 32 bit periods without a read (4.4.4.1). */
const TIMEOUT_BITS = 32;

export class Spi extends BasePeripheral {
  control0 = 0;
  control1 = 0;
  prescale = 0;
  mask = 0;
  latched = 0;
  dma = 0;
  /** @type {number[]} */
  tx = [];
  /** @type {number[]} */
  rx = [];
  /** The value that is on the lines. @type {number | null} */
  shifting = null;

  /**
   * @param {import('rp2040js').RP2040} rp
   * @param {import('./clock.mjs').Clock} clock
   * @param {number} index
   * @param {(pin: number) => 0 | 1} level the level of a pad
   */
  constructor(rp, clock, index, level) {
    super(rp, `SPI${index}`);
    this.clock = clock;
    this.index = index;
    this.level = level;
    /** @type {{ pin: number, part: SpiPart, warned: boolean }[]} */
    this.parts = [];
    /** Received values that found the FIFO full. */
    this.lost = 0;
    this.frame = new Alarm(clock, () => this.endFrame());
    this.timeout = new Alarm(clock, () => this.latch(TIMEOUT));
    this.reset();
  }

  /** Puts the registers into their state after a reset. */
  reset() {
    this.frame.cancel();
    this.timeout.cancel();
    this.control0 = 0;
    this.control1 = 0;
    this.prescale = 0;
    this.mask = 0;
    this.latched = 0;
    this.dma = 0;
    this.tx = [];
    this.rx = [];
    this.shifting = null;
    this.update();
  }

  /** Connects a part whose chip select is the pad `pin`.
   * @param {number} pin @param {SpiPart} part */
  attach(pin, part) {
    this.parts.push({ pin, part, warned: false });
  }

  /** Notifies the parts that a pad has changed. @param {number} pin @param {0 | 1} level */
  padChanged(pin, level) {
    for (const one of this.parts) {
      if (one.pin !== pin) continue;
      one.warned = false;
      if (level === 0) one.part.select?.();
      else one.part.deselect?.();
    }
  }

  get bits() {
    return (this.control0 & 15) + 1;
  }

  /** The mode of the clock: CPOL in bit 1, CPHA in bit 0. */
  get mode() {
    return ((this.control0 >> 6) & 1) * 2 + ((this.control0 >> 7) & 1);
  }

  get hz() {
    return this.prescale
      ? this.rp2040.clkPeri / (this.prescale * (1 + ((this.control0 >> 8) & 255)))
      : 0;
  }

  // ---- the lines ----

  next() {
    if (this.shifting !== null || !(this.control1 & 2) || this.hz === 0) return;
    const value = this.tx.shift();
    if (value === undefined) return;
    this.shifting = value;
    this.frame.schedule((this.bits * 1e9) / this.hz);
  }

  endFrame() {
    const value = this.exchange(/** @type {number} */ (this.shifting));
    this.shifting = null;
    if (this.rx.length < DEPTH) this.rx.push(value & ((1 << this.bits) - 1));
    else {
      this.lost++;
      this.latched |= OVERRUN;
    }
    this.timeout.schedule((TIMEOUT_BITS * 1e9) / this.hz);
    this.next();
    this.update();
  }

  /** @param {number} out @returns {number} the value on the line; all ones if no part drives it */
  exchange(out) {
    let value = -1;
    for (const one of this.parts) {
      if (this.level(one.pin) !== 0) continue;
      const why = this.unfit(one.part);
      if (why === null) value &= one.part.transfer(out);
      else if (!one.warned) {
        one.warned = true;
        this.warn(`the part selected by pin ${one.pin} ${why}`);
      }
    }
    return value;
  }

  /** @param {SpiPart} part @returns {string | null} */
  unfit(part) {
    if (part.modes && !part.modes.includes(this.mode)) return `has no mode ${this.mode}`;
    if (part.hz && this.hz > part.hz) return `is clocked at ${Math.round(this.hz)} Hz, too fast`;
    return null;
  }

  // ---- interrupts and registers ----

  get raw() {
    return (
      this.latched | (this.rx.length >= DEPTH / 2 ? RX : 0) | (this.tx.length <= DEPTH / 2 ? TX : 0)
    );
  }

  /** @param {number} bits */
  latch(bits) {
    this.latched |= bits;
    this.update();
  }

  update() {
    this.rp2040.setInterrupt(IRQ_SPI0 + this.index, (this.raw & this.mask) !== 0);
    const dma = /** @type {any} */ (this.rp2040.dma);
    const tx = DREQ_SPI0_TX + 2 * this.index;
    if (this.tx.length < DEPTH) dma?.setDREQ(tx);
    else dma?.clearDREQ(tx);
    if (this.rx.length) dma?.setDREQ(tx + 1);
    else dma?.clearDREQ(tx + 1);
  }

  pull() {
    const value = this.rx.shift() ?? 0;
    this.latched &= ~TIMEOUT;
    if (this.rx.length) this.timeout.schedule((TIMEOUT_BITS * 1e9) / this.hz);
    else this.timeout.cancel();
    this.update();
    return value;
  }

  /** @param {number} offset @returns {number} */
  readUint32(offset) {
    switch (offset) {
      case 0x00:
        return this.control0;
      case 0x04:
        return this.control1;
      case 0x08:
        return this.pull();
      case 0x0c:
        return (
          (this.tx.length === 0 ? 1 : 0) |
          (this.tx.length < DEPTH ? 2 : 0) |
          (this.rx.length > 0 ? 4 : 0) |
          (this.rx.length === DEPTH ? 8 : 0) |
          (this.shifting !== null || this.tx.length > 0 ? 16 : 0)
        );
      case 0x10:
        return this.prescale;
      case 0x14:
        return this.mask;
      case 0x18:
        return this.raw;
      case 0x1c:
        return this.raw & this.mask;
      case 0x24:
        return this.dma;
    }
    const identity = [0x22, 0x10, 0x34, 0x00, 0x0d, 0xf0, 0x05, 0xb1];
    return offset >= 0xfe0 && offset < 0x1000 ? identity[(offset - 0xfe0) >> 2] : 0;
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    switch (offset) {
      case 0x00:
        this.control0 = value & 0xffff;
        break;
      case 0x04:
        this.control1 = value & 0xf;
        break;
      case 0x08:
        if (this.tx.length < DEPTH) this.tx.push(value & ((1 << this.bits) - 1));
        break;
      case 0x10:
        this.prescale = value & 0xfe;
        break;
      case 0x14:
        this.mask = value & 0xf;
        break;
      case 0x20:
        this.latched &= ~(this.rawWriteValue & (OVERRUN | TIMEOUT));
        break;
      case 0x24:
        this.dma = value & 3;
        break;
    }
    this.next();
    this.update();
  }
}
