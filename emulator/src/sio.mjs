// @ts-check
/**
 * The single-cycle IO block (RP2040 datasheet 2.3.1): CPUID, mailbox FIFOs, spinlocks, and each
 * core's divider and interpolators. The package provides the GPIO registers and the arithmetic of
 * the interpolators.
 *
 * Invariants
 * - `words[n]` are the words that wait for core n, at most 8. The interrupt line SIO_IRQ_PROCn is
 *   VLD | WOF | ROE of core n (2.3.1.4).
 * - Only one core at a time reads a spinlock: the run loop orders reads of the same cycle
 *   (2.3.1.3).
 * - A quotient becomes readable 8 cycles after its operand was written; before that the old result
 *   is read (2.3.1.5).
 */

const IRQ_PROC0 = 15;
const FIFO_DEPTH = 8;
const DIVIDER_CYCLES = 8;

/** One core's divider. */
class Divider {
  constructor() {
    this.dividend = 0;
    this.divisor = 0;
    this.quotient = 0;
    this.remainder = 0;
    this.oldQuotient = 0;
    this.oldRemainder = 0;
    this.readyAt = 0;
    this.dirty = false;
  }

  /** @param {boolean} signed @param {number} cycle */
  start(signed, cycle) {
    if (cycle >= this.readyAt) {
      this.oldQuotient = this.quotient;
      this.oldRemainder = this.remainder;
    }
    const { dividend, divisor } = this;
    if (divisor === 0) {
      this.quotient = signed && dividend < 0 ? 1 : -1;
      this.remainder = dividend;
    } else if (signed) {
      this.quotient = (dividend / divisor) | 0; // the one overflow, -2^31 / -1, wraps as the hardware does
      this.remainder = (dividend % divisor) | 0;
    } else {
      this.quotient = Math.floor((dividend >>> 0) / (divisor >>> 0)) | 0;
      this.remainder = ((dividend >>> 0) % (divisor >>> 0)) | 0;
    }
    this.readyAt = cycle + DIVIDER_CYCLES;
    this.dirty = true;
  }

  /** @param {number} offset @param {number} cycle @returns {number} */
  read(offset, cycle) {
    const ready = cycle >= this.readyAt;
    switch (offset) {
      case 0x60:
      case 0x68:
        return this.dividend;
      case 0x64:
      case 0x6c:
        return this.divisor;
      case 0x70:
        this.dirty = false;
        return ready ? this.quotient : this.oldQuotient;
      case 0x74:
        return ready ? this.remainder : this.oldRemainder;
      default:
        return (ready ? 1 : 0) | (this.dirty ? 2 : 0);
    }
  }

  /** @param {number} offset @param {number} value @param {number} cycle */
  write(offset, value, cycle) {
    switch (offset) {
      case 0x60:
      case 0x68:
        this.dividend = value | 0;
        this.start(offset === 0x68, cycle);
        break;
      case 0x64:
      case 0x6c:
        this.divisor = value | 0;
        this.start(offset === 0x6c, cycle);
        break;
      case 0x70:
        this.quotient = value | 0;
        this.dirty = true;
        this.readyAt = cycle;
        break;
      case 0x74:
        this.remainder = value | 0;
        this.dirty = true;
        this.readyAt = cycle;
        break;
    }
  }
}

export class Sio {
  /**
   * @param {import('rp2040js').RP2040} rp
   * @param {import('./clock.mjs').Clock} clock
   */
  constructor(rp, clock) {
    this.clock = clock;
    this.gpio = rp.sio;
    const Block = /** @type {new (rp: any) => any} */ (rp.sio.constructor);
    /**
     * The interpolators: the package's own block for core 0, and a second block, otherwise unused,
     * for core 1.
     */
    this.interpolators = [rp.sio, new Block({ gpio: [], qspi: [], core: { cycles: 0 } })];
    this.dividers = [new Divider(), new Divider()];
    /** @type {number[][]} */
    this.words = [[], []];
    this.overflow = [false, false];
    this.underflow = [false, false];
    this.last = [0, 0];
    this.locks = 0;
    /**
     * While core 1 waits in the bootrom, words for it are passed to this function.
     * @type {((word: number) => void) | null}
     */
    this.bootrom = null;
    /** @type {(core: number, irq: number, level: boolean) => void} */
    this.onLine = () => {};
    /**
     * Called with each attempt to claim a spinlock and each release.
     * @type {((core: number, lock: number, taken: boolean | null) => void) | null}
     */
    this.onSpinlock = null;
  }

  /** @param {number} core */
  updateLine(core) {
    this.onLine(
      core,
      IRQ_PROC0 + core,
      this.words[core].length > 0 || this.overflow[core] || this.underflow[core],
    );
  }

  /**
   * Puts a word where `core` will read it.
   * @param {number} core
   * @param {number} word
   * @returns {boolean} false when full
   */
  deliver(core, word) {
    if (this.words[core].length >= FIFO_DEPTH) return false;
    this.words[core].push(word | 0);
    this.updateLine(core);
    return true;
  }

  /** @param {number} core @param {number} offset @returns {number} */
  read(core, offset) {
    if (offset >= 0x100 && offset < 0x180) {
      const bit = 1 << ((offset - 0x100) >> 2);
      const free = (this.locks & bit) === 0;
      this.locks |= bit;
      if (this.onSpinlock) this.onSpinlock(core, (offset - 0x100) >> 2, free);
      return free ? bit : 0;
    }
    if (offset >= 0x60 && offset < 0x7c) return this.dividers[core].read(offset, this.clock.cycle);
    if (offset >= 0x80 && offset < 0x100) return this.interpolators[core].readUint32(offset);
    const other = core ^ 1;
    switch (offset) {
      case 0:
        return core;
      case 0x50: {
        const room = other === 1 && this.bootrom ? true : this.words[other].length < FIFO_DEPTH;
        return (
          (this.words[core].length ? 1 : 0) |
          (room ? 2 : 0) |
          (this.overflow[core] ? 4 : 0) |
          (this.underflow[core] ? 8 : 0)
        );
      }
      case 0x58: {
        const word = this.words[core].shift();
        if (word === undefined) this.underflow[core] = true;
        else this.last[core] = word;
        this.updateLine(core);
        return this.last[core];
      }
      case 0x5c:
        return this.locks;
    }
    if (offset <= 0x4c) return this.gpio.readUint32(offset);
    return 0;
  }

  /** @param {number} core @param {number} offset @param {number} value */
  write(core, offset, value) {
    if (offset >= 0x100 && offset < 0x180) {
      this.locks &= ~(1 << ((offset - 0x100) >> 2));
      if (this.onSpinlock) this.onSpinlock(core, (offset - 0x100) >> 2, null);
      return;
    }
    if (offset >= 0x60 && offset < 0x7c)
      return this.dividers[core].write(offset, value, this.clock.cycle);
    if (offset >= 0x80 && offset < 0x100)
      return this.interpolators[core].writeUint32(offset, value >>> 0);
    switch (offset) {
      case 0x50:
        if (value & 4) this.overflow[core] = false;
        if (value & 8) this.underflow[core] = false;
        this.updateLine(core);
        return;
      case 0x54:
        if (core === 0 && this.bootrom) this.bootrom(value | 0);
        else if (!this.deliver(core ^ 1, value)) {
          this.overflow[core] = true;
          this.updateLine(core);
        }
        return;
    }
    if (offset <= 0x4c) this.gpio.writeUint32(offset, value >>> 0);
  }
}
