// @ts-check
/**
 * The 64-bit microsecond timer and its four alarms (RP2040 datasheet 4.6).
 *
 * Invariants
 * - The counter is virtual time in whole microseconds plus `offset`; nothing ticks.
 * - An armed alarm fires in the cycle in which TIMERAWL becomes equal to its target: never early,
 *   never late (4.6.3).
 * - A target equal to the current microsecond has missed its edge: like a past target, it fires a
 *   full turn (2^32 µs) later. With `alarmNow: 'fire'` it fires at once. The datasheet leaves this
 *   case open, so firmware must pass with both settings.
 */
import { BasePeripheral } from 'rp2040js';
import { Alarm } from './clock.mjs';

const TURN = 2 ** 32;

export class Timer extends BasePeripheral {
  /**
   * @param {import('rp2040js').RP2040} rp
   * @param {import('./clock.mjs').Clock} clock
   * @param {'miss' | 'fire'} alarmNow
   */
  constructor(rp, clock, alarmNow) {
    super(rp, 'TIMER');
    this.clock = clock;
    this.alarmNow = alarmNow;
    /** µs added to virtual time. */
    this.offset = 0;
    this.latchedHigh = 0;
    this.writtenLow = 0;
    this.raw = 0;
    this.enable = 0;
    this.force = 0;
    /** @type {number | null} the frozen counter while PAUSE is set */
    this.frozen = null;
    this.targets = [0, 0, 0, 0];
    this.alarms = [0, 1, 2, 3].map((n) => new Alarm(clock, () => this.fire(n)));
  }

  /** The counter in µs. */
  get micros() {
    // The allowance undoes rounding at microsecond boundaries if a cycle is not a whole number of
    // nanoseconds.
    return this.frozen ?? Math.floor(this.clock.nanos / 1000 + 1e-6) + this.offset;
  }

  /** Sets the counter, as a write to TIMEHW does; armed alarms are kept. @param {number} micros */
  set(micros) {
    this.offset += micros - this.micros;
    if (this.frozen !== null) this.frozen = micros;
    this.rearm();
  }

  rearm() {
    for (let n = 0; n < 4; n++) if (this.alarms[n].scheduled) this.arm(n, this.targets[n]);
  }

  /** @param {number} n @param {number} target */
  arm(n, target) {
    this.targets[n] = target >>> 0;
    const now = this.micros;
    let delta = (this.targets[n] - now) % TURN;
    if (delta < 0) delta += TURN;
    if (delta === 0) {
      if (this.alarmNow === 'fire') {
        this.alarms[n].scheduleAt(this.clock.cycle + 1);
        return;
      }
      delta = TURN;
    }
    this.alarms[n].scheduleAt(this.clock.cycleOf((now + delta - this.offset) * 1000));
  }

  /** @param {number} n */
  fire(n) {
    if (this.frozen !== null) return;
    this.raw |= 1 << n;
    this.update();
  }

  update() {
    const status = (this.raw & this.enable) | this.force;
    for (let n = 0; n < 4; n++) this.rp2040.setInterrupt(n, (status & (1 << n)) !== 0);
  }

  /** @param {number} offset @returns {number} */
  readUint32(offset) {
    switch (offset) {
      case 0x08:
        return this.latchedHigh;
      case 0x0c:
        this.latchedHigh = Math.floor(this.micros / TURN);
        return this.micros % TURN;
      case 0x10:
      case 0x14:
      case 0x18:
      case 0x1c:
        return this.targets[(offset - 0x10) >> 2];
      case 0x20:
        return this.alarms.reduce((set, alarm, n) => set | (alarm.scheduled ? 1 << n : 0), 0);
      case 0x24:
        return Math.floor(this.micros / TURN);
      case 0x28:
        return this.micros % TURN;
      case 0x2c:
        return 6;
      case 0x30:
        return this.frozen === null ? 0 : 1;
      case 0x34:
        return this.raw;
      case 0x38:
        return this.enable;
      case 0x3c:
        return this.force;
      case 0x40:
        return (this.raw & this.enable) | this.force;
    }
    return 0;
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    switch (offset) {
      case 0x00:
        this.set((value >>> 0) * TURN + this.writtenLow);
        break;
      case 0x04:
        this.writtenLow = value >>> 0;
        break;
      case 0x10:
      case 0x14:
      case 0x18:
      case 0x1c:
        this.arm((offset - 0x10) >> 2, value);
        break;
      case 0x20:
        for (let n = 0; n < 4; n++) if (this.rawWriteValue & (1 << n)) this.alarms[n].cancel();
        break;
      case 0x30:
        if (value & 1) this.frozen ??= this.micros;
        else if (this.frozen !== null) {
          const micros = this.frozen;
          this.frozen = null;
          this.set(micros);
        }
        break;
      case 0x34:
        this.raw &= ~this.rawWriteValue;
        this.update();
        break;
      case 0x38:
        this.enable = value & 15;
        this.update();
        break;
      case 0x3c:
        this.force = value & 15;
        this.update();
        break;
    }
  }
}
