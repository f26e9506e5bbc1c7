// @ts-check
/**
 * A PL011 UART (RP2040 datasheet 4.2): FIFOs, interrupts, and, as an option, the time that a
 * character takes on the line.
 *
 * Invariants
 * - Bytes leave in the order in which they were written. Without delay a byte is sent in the cycle
 *   in which it is written, and TXFF never shows a full FIFO.
 * - With delay one character is in the shifter and at most `depth` wait in the FIFO; a write to a
 *   full FIFO is lost and counted.
 * - Listeners receive a byte in the cycle in which its stop bit ends.
 */
import { BasePeripheral } from 'rp2040js';
import { Alarm } from './clock.mjs';

const IRQ_UART0 = 20;
const DREQ_UART0_TX = 20;
const RX = 1 << 4;
const TX = 1 << 5;
const RT = 1 << 6;
const OE = 1 << 10;
/** Receive-timeout: 32 bit periods without a read (4.2.6.4). */
const TIMEOUT_BITS = 32;
/** FIFO thresholds by IFLS field, of 32. */
const LEVELS = [4, 8, 16, 24, 28];

export class Uart extends BasePeripheral {
  /**
   * @param {import('rp2040js').RP2040} rp
   * @param {import('./clock.mjs').Clock} clock
   * @param {number} index
   * @param {boolean} delay
   */
  constructor(rp, clock, index, delay) {
    super(rp, `UART${index}`);
    this.clock = clock;
    this.index = index;
    this.delay = delay;
    this.control = 0x300;
    this.line = 0;
    this.integer = 0;
    this.fraction = 0;
    this.levelSelect = 0x12;
    this.mask = 0;
    this.latched = 0;
    /** @type {number[]} */
    this.tx = [];
    /** @type {number[]} */
    this.rx = [];
    /** Received bytes that have not reached the FIFO yet. @type {number[]} */
    this.incoming = [];
    /** @type {number | null} */
    this.shifting = null;
    this.lost = 0;
    /** @type {((byte: number, cycle: number) => void)[]} */
    this.listeners = [];
    this.sent = new Alarm(clock, () => this.finishSending());
    this.arrival = new Alarm(clock, () => this.arrive());
    this.timeout = new Alarm(clock, () => this.latch(RT));
  }

  get enabled() {
    return (this.control & 1) !== 0;
  }

  get depth() {
    return this.line & 0x10 ? 32 : 1;
  }

  get baudRate() {
    const divisor = this.integer + this.fraction / 64;
    return divisor ? this.rp2040.clkPeri / (16 * divisor) : 0;
  }

  /** Nanoseconds of one bit; 0 before the divider is set. */
  get bitNanos() {
    const rate = this.baudRate;
    return rate ? 1e9 / rate : 0;
  }

  get characterNanos() {
    const data = 5 + ((this.line >>> 5) & 3);
    return this.bitNanos * (1 + data + (this.line & 2 ? 1 : 0) + (this.line & 8 ? 2 : 1));
  }

  /** Called by the package when clk_peri changes; the divider is read again for every character. */
  clkPeriChanged() {}

  // ---- sending ----

  /** @param {number} byte */
  send(byte) {
    if (!this.delay || this.bitNanos === 0) {
      for (const listener of this.listeners) listener(byte, this.clock.cycle);
      this.latch(TX);
      return;
    }
    if (this.shifting === null) this.shift(byte);
    else if (this.tx.length < this.depth) this.tx.push(byte);
    else this.lost++;
    if (this.tx.length > LEVELS[this.levelSelect & 7]) this.latched &= ~TX;
    this.update();
  }

  /** @param {number} byte */
  shift(byte) {
    this.shifting = byte;
    this.sent.schedule(this.characterNanos);
  }

  finishSending() {
    const byte = /** @type {number} */ (this.shifting);
    this.shifting = null;
    for (const listener of this.listeners) listener(byte, this.clock.cycle);
    const next = this.tx.shift();
    if (next !== undefined) this.shift(next);
    if (this.depth === 1 || this.tx.length <= LEVELS[this.levelSelect & 7]) this.latch(TX);
  }

  // ---- receiving ----

  /**
   * Receives a byte from outside: at once if there is room and no delay is modelled, otherwise when
   * its stop bit has passed.
   * @param {number} byte
   */
  receive(byte) {
    this.incoming.push(byte & 0xff);
    if (!this.arrival.scheduled) this.expect();
  }

  expect() {
    if (this.incoming.length === 0) return;
    if (this.delay) this.arrival.schedule(this.characterNanos);
    else if (this.rx.length < this.depth) this.arrival.scheduleAt(this.clock.cycle);
  }

  arrive() {
    const byte = /** @type {number} */ (this.incoming.shift());
    if (this.rx.length < this.depth) {
      this.rx.push(byte);
      const threshold = this.depth === 1 ? 1 : LEVELS[(this.levelSelect >>> 3) & 7];
      if (this.rx.length >= threshold) this.latch(RX);
      this.timeout.schedule(this.bitNanos * TIMEOUT_BITS);
    } else {
      this.lost++;
      this.latch(OE);
    }
    this.expect();
  }

  /** @returns {number} */
  pull() {
    const byte = this.rx.shift() ?? 0;
    const threshold = this.depth === 1 ? 1 : LEVELS[(this.levelSelect >>> 3) & 7];
    if (this.rx.length < threshold) this.latched &= ~RX;
    if (this.rx.length === 0) {
      this.latched &= ~RT;
      this.timeout.cancel();
    }
    if (!this.delay && !this.arrival.scheduled) this.expect();
    this.update();
    return byte;
  }

  // ---- interrupts and registers ----

  /** @param {number} bits */
  latch(bits) {
    this.latched |= bits;
    this.update();
  }

  update() {
    this.rp2040.setInterrupt(IRQ_UART0 + this.index, (this.latched & this.mask) !== 0);
    const dma = /** @type {any} */ (this.rp2040.dma);
    const tx = DREQ_UART0_TX + 2 * this.index;
    if (this.enabled && this.tx.length < this.depth) dma.setDREQ(tx);
    else dma.clearDREQ(tx);
    if (this.rx.length) dma.setDREQ(tx + 1);
    else dma.clearDREQ(tx + 1);
  }

  /** @param {number} offset @returns {number} */
  readUint32(offset) {
    switch (offset) {
      case 0x00:
        return this.pull();
      case 0x18:
        return (
          (this.shifting !== null ? 1 << 3 : 0) |
          (this.rx.length === 0 ? 1 << 4 : 0) |
          (this.tx.length >= this.depth && this.shifting !== null ? 1 << 5 : 0) |
          (this.rx.length >= this.depth ? 1 << 6 : 0) |
          (this.tx.length === 0 ? 1 << 7 : 0)
        );
      case 0x24:
        return this.integer;
      case 0x28:
        return this.fraction;
      case 0x2c:
        return this.line;
      case 0x30:
        return this.control;
      case 0x34:
        return this.levelSelect;
      case 0x38:
        return this.mask;
      case 0x3c:
        return this.latched;
      case 0x40:
        return this.latched & this.mask;
    }
    const identity = [0x11, 0x10, 0x34, 0x00, 0x0d, 0xf0, 0x05, 0xb1];
    return offset >= 0xfe0 && offset < 0x1000 ? identity[(offset - 0xfe0) >> 2] : 0;
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    switch (offset) {
      case 0x00:
        this.send(value & 0xff);
        break;
      case 0x24:
        this.integer = value & 0xffff;
        break;
      case 0x28:
        this.fraction = value & 0x3f;
        break;
      case 0x2c:
        this.line = value & 0xff;
        break;
      case 0x30:
        this.control = value & 0xff87;
        this.update();
        break;
      case 0x34:
        this.levelSelect = value & 0x3f;
        break;
      case 0x38:
        this.mask = value & 0x7ff;
        this.update();
        break;
      case 0x44:
        this.latched &= ~this.rawWriteValue;
        this.update();
        break;
    }
  }
}
