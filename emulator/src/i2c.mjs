// @ts-check
/**
 * An I²C controller as master (RP2040 datasheet 4.3), and the bus with the parts on it.
 *
 * Invariants
 * - The bus is in one phase at a time: a START with the address (10 bits), a byte with its
 *   acknowledgement (9 bits) or a STOP (1 bit). Either the end of the phase is scheduled (`phase`),
 *   or the bus rests, or something holds the clock (`holding`).
 * - A command leaves the transmit FIFO when its byte begins. A master with an empty FIFO and no
 *   STOP keeps the bus and holds the clock, so nothing is lost if the firmware is slow.
 * - After an abort the transmit FIFO stays empty until IC_CLR_TX_ABRT is read (4.3.10.3).
 *
 *   REST ──a command──► address ──acknowledged──► byte ──► … ──with STOP──► stop ──► REST
 *                          │                       └──refused──► abort, stop
 *                          └──nobody answers──► abort, stop
 */
import { BasePeripheral } from 'rp2040js';
import { Alarm } from './clock.mjs';

/**
 * A part on the bus. `address` is called at each START with the part's address, `write` with each
 * byte for the part; both return whether the part acknowledges. `stretch` returns for how many
 * microseconds the part holds the clock before the next byte.
 * @typedef {{
 *   address?: (read: boolean) => boolean,
 *   write: (byte: number) => boolean,
 *   read: () => number,
 *   stop?: () => void,
 *   stretch?: () => number,
 * }} I2cPart
 */

const IRQ_I2C0 = 23;
const DEPTH = 16;
const READ = 1 << 8;
const STOP = 1 << 9;
const RESTART = 1 << 10;
const RX_UNDER = 1 << 0;
const RX_OVER = 1 << 1;
const RX_FULL = 1 << 2;
const TX_OVER = 1 << 3;
const TX_EMPTY = 1 << 4;
const TX_ABRT = 1 << 6;
const ACTIVITY = 1 << 8;
const STOP_DET = 1 << 9;
const START_DET = 1 << 10;
const NO_ADDRESS = 1 << 0;
const NO_DATA = 1 << 3;
const LOST = 1 << 12;
const USER = 1 << 16;
/** The interrupt that a read of a register clears, by the register's offset. */
const CLEARS = {
  0x44: RX_UNDER,
  0x48: RX_OVER,
  0x4c: TX_OVER,
  0x54: TX_ABRT,
  0x5c: ACTIVITY,
  0x60: STOP_DET,
  0x64: START_DET,
};

export class I2c extends BasePeripheral {
  /** @type {Map<number, number>} */
  registers = new Map();
  enabled = false;
  mask = 0;
  latched = 0;
  /** IC_TX_ABRT_SOURCE. */
  source = 0;
  /** Whether the transmit FIFO is held empty, after an abort. */
  flushing = false;
  rxLevel = 0;
  txLevel = 0;
  /** @type {number[]} */
  tx = [];
  /** @type {number[]} */
  rx = [];
  /** Called when the phase ends; null while the bus rests. @type {(() => void) | null} */
  ending = null;
  /** The part that has acknowledged its address. @type {I2cPart | null} */
  part = null;
  /** Whether this master has the bus, and in which direction. */
  owns = false;
  reading = false;

  /**
   * @param {import('rp2040js').RP2040} rp
   * @param {import('./clock.mjs').Clock} clock
   * @param {number} index
   */
  constructor(rp, clock, index) {
    super(rp, `I2C${index}`);
    this.clock = clock;
    this.index = index;
    /** @type {Map<number, I2cPart>} */
    this.parts = new Map();
    /** Whether something holds the clock low. No phase ends until this is false again. */
    this.holding = false;
    /** Whether another master wins the bus in the next byte. */
    this.contended = false;
    /** Bytes that the firmware lost by writing to a full FIFO or by not reading. */
    this.lost = 0;
    this.phase = new Alarm(clock, () => this.endPhase());
    this.reset();
  }

  /** Puts the registers into their state after a reset. The bus and its parts keep their state. */
  reset() {
    this.phase.cancel();
    this.registers = new Map([
      [0x00, 0x65],
      [0x04, 0x55],
      [0x14, 0x28],
      [0x18, 0x2f],
      [0x1c, 0x06],
      [0x20, 0x0d],
      [0x7c, 1],
      [0xa0, 7],
    ]);
    this.enabled = false;
    this.mask = 0x8ff;
    this.latched = 0;
    this.source = 0;
    this.flushing = false;
    this.rxLevel = 0;
    this.txLevel = 0;
    this.tx = [];
    this.rx = [];
    this.ending = null;
    this.part = null;
    this.owns = false;
    this.reading = false;
    this.update();
  }

  /** Puts a part onto the bus. @param {number} address 7 bits @param {I2cPart} part */
  attach(address, part) {
    if (!(address >= 0 && address < 128))
      throw new RangeError(
        `an I²C address has 7 bits, not ${address}: leave the direction bit out`,
      );
    this.parts.set(address, part);
  }

  /** Holds the clock low, as a part that hangs does, or releases it. @param {boolean} on */
  hold(on) {
    this.holding = on;
    if (!on && this.ending && !this.phase.scheduled) this.phase.scheduleAt(this.clock.cycle);
  }

  /** Nanoseconds of one bit: the chosen speed's high and low counts, in cycles of clk_sys. */
  get bitNanos() {
    const slow = ((this.register(0) >> 1) & 3) === 1;
    const cycles = slow
      ? this.register(0x14) + this.register(0x18)
      : this.register(0x1c) + this.register(0x20);
    return cycles * this.clock.cycleNanos;
  }

  /** @param {number} offset @returns {number} */
  register(offset) {
    return this.registers.get(offset) ?? 0;
  }

  // ---- the bus ----

  /** @param {number} bits @param {() => void} ending @param {number} [stretch] microseconds */
  begin(bits, ending, stretch = 0) {
    this.ending = ending;
    this.phase.schedule(bits * this.bitNanos + stretch * 1000);
  }

  endPhase() {
    if (this.holding) return; // hold(false) schedules it again
    const ending = /** @type {() => void} */ (this.ending);
    this.ending = null;
    ending();
    this.next();
    this.update();
  }

  /** Begins the next phase, if no phase is under way and there is a command. */
  next() {
    if (this.ending || this.tx.length === 0 || !this.enabled) return;
    const command = this.tx[0];
    const read = (command & READ) !== 0;
    if (!this.owns || command & RESTART || read !== this.reading) {
      this.tx[0] &= ~RESTART;
      this.owns = true;
      this.reading = read;
      this.latched |= START_DET | ACTIVITY;
      this.begin(10, () => this.addressed());
      return;
    }
    this.tx.shift();
    const stretch = this.part?.stretch?.() ?? 0;
    this.begin(9, () => this.byteOver(command), stretch);
  }

  addressed() {
    if (this.contended) return this.loseBus();
    const part = this.parts.get(this.register(4) & 0x7f);
    this.part = part && (part.address?.(this.reading) ?? true) ? part : null;
    if (!this.part) this.abort(NO_ADDRESS);
  }

  /** @param {number} command */
  byteOver(command) {
    if (this.contended) return this.loseBus();
    const part = /** @type {I2cPart} */ (this.part);
    if (command & READ) {
      const byte = part.read() & 0xff;
      if (this.rx.length < DEPTH) this.rx.push(byte);
      else {
        this.lost++;
        this.latched |= RX_OVER;
      }
    } else if (!part.write(command & 0xff)) return this.abort(NO_DATA);
    if (command & STOP || !this.enabled) this.stop();
  }

  stop() {
    this.begin(1, () => {
      this.part?.stop?.();
      this.part = null;
      this.owns = false;
      this.latched = (this.latched | STOP_DET) & ~ACTIVITY;
    });
  }

  /** Ends the transaction by an abort and a STOP. @param {number} why */
  abort(why) {
    this.giveUp(why);
    this.stop();
  }

  /** Called when another master has won the bus: this one leaves the bus without a STOP. */
  loseBus() {
    this.contended = false;
    this.owns = false;
    this.part = null;
    this.giveUp(LOST);
  }

  /** @param {number} why */
  giveUp(why) {
    this.source = (why | (this.tx.length << 23)) >>> 0;
    this.tx.length = 0;
    this.flushing = true;
    this.latched |= TX_ABRT;
  }

  // ---- interrupts and registers ----

  get raw() {
    return (
      this.latched |
      (this.rx.length > this.rxLevel ? RX_FULL : 0) |
      (this.enabled && this.tx.length <= this.txLevel && !this.busyWithByte() ? TX_EMPTY : 0)
    );
  }

  /** Whether TX_EMPTY must wait for the byte of the last command: with TX_EMPTY_CTRL it must. */
  busyWithByte() {
    return (this.register(0) & 0x100) !== 0 && this.ending !== null;
  }

  update() {
    this.rp2040.setInterrupt(IRQ_I2C0 + this.index, (this.raw & this.mask) !== 0);
  }

  /** @param {number} offset @returns {number} */
  readUint32(offset) {
    const clears = /** @type {Record<number, number>} */ (CLEARS)[offset];
    if (clears !== undefined) return this.clear(clears);
    switch (offset) {
      case 0x10: {
        if (this.rx.length === 0) this.latched |= RX_UNDER;
        const byte = this.rx.shift() ?? 0;
        this.update();
        return byte;
      }
      case 0x2c:
        return this.raw & this.mask;
      case 0x30:
        return this.mask;
      case 0x34:
        return this.raw;
      case 0x38:
        return this.rxLevel;
      case 0x3c:
        return this.txLevel;
      case 0x40:
        return this.clear(RX_UNDER | RX_OVER | TX_OVER | TX_ABRT | ACTIVITY | STOP_DET | START_DET);
      case 0x6c:
        return this.enabled ? 1 : 0;
      case 0x70:
        return (
          (this.owns || this.ending ? 0x21 : 0) |
          (this.tx.length < DEPTH ? 2 : 0) |
          (this.tx.length === 0 ? 4 : 0) |
          (this.rx.length > 0 ? 8 : 0) |
          (this.rx.length === DEPTH ? 16 : 0)
        );
      case 0x74:
        return this.tx.length;
      case 0x78:
        return this.rx.length;
      case 0x80:
        return this.source;
      case 0x9c:
        return this.enabled || this.ending ? 1 : 0;
      case 0xfc:
        return 0x44570140;
    }
    return this.register(offset);
  }

  /** @param {number} bits @returns {number} whether one of them was set */
  clear(bits) {
    const was = this.latched & bits;
    this.latched &= ~bits;
    if (bits & TX_ABRT) {
      this.flushing = false;
      this.source = 0;
    }
    this.update();
    return was ? 1 : 0;
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    switch (offset) {
      case 0x10:
        if (this.flushing || !this.enabled) break;
        if (this.tx.length < DEPTH) this.tx.push(value & 0x7ff);
        else {
          this.lost++;
          this.latched |= TX_OVER;
        }
        this.next();
        break;
      case 0x30:
        this.mask = value & 0x1fff;
        break;
      case 0x38:
        this.rxLevel = Math.min(value & 0xff, DEPTH - 1);
        break;
      case 0x3c:
        this.txLevel = Math.min(value & 0xff, DEPTH - 1);
        break;
      case 0x6c:
        this.enabled = (value & 1) !== 0;
        if (!this.enabled) {
          this.tx.length = 0;
          this.rx.length = 0;
        } else if (value & 2) this.abortByUser();
        break;
      case 0x04:
        if (this.enabled) this.warn('IC_TAR is written while the controller is enabled');
        this.registers.set(offset, value);
        break;
      default:
        this.registers.set(offset, value);
    }
    this.update();
  }

  /** IC_ENABLE.ABORT: the byte under way ends, and a STOP follows (4.3.10.2). */
  abortByUser() {
    if (!this.owns) return;
    if (this.ending) this.ending = () => this.abort(USER);
    else this.abort(USER);
  }
}
