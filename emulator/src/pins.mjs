// @ts-check
/**
 * The GPIO pads and IO_BANK0: the level of each pad, and each core's pin interrupts (RP2040
 * datasheet 2.19).
 *
 * Invariants
 * - A pad's level comes from the first of these that applies: the output driver if enabled, the
 *   test bench's drive, the pull, the pad's last level (2.19.4). If the bench drives an enabled
 *   output to the other level, that is a short circuit: it is recorded in `shorts`, and the driver
 *   determines the level.
 * - An input's edge is latched when its level changes, never when an enable changes. Each core has
 *   its own enable, force and status registers (2.19.5).
 * - `watch` callbacks see every change of a pad's level, with the cycle of the access that caused
 *   it.
 */
import { GPIOPinState } from 'rp2040js';

const IO_BANK0 = 13;
export const PINS = 30;

/** @typedef {(pin: number, level: 0 | 1, cycle: number) => void} PinWatcher */

export class Pins {
  /**
   * @param {import('rp2040js').RP2040} rp
   * @param {import('./clock.mjs').Clock} clock
   * @param {(core: number, irq: number, level: boolean) => void} setLine
   */
  constructor(rp, clock, setLine) {
    this.rp = rp;
    this.clock = clock;
    this.setLine = setLine;
    this.levels = 0;
    /**
     * The levels that the test bench drives: 0, 1, or null for none.
     * @type {(0 | 1 | null)[]}
     */
    this.drives = new Array(PINS).fill(null);
    /** Latched edges: bit n of edgeLow and edgeHigh belongs to pin n. */
    this.edgeLow = 0;
    this.edgeHigh = 0;
    this.inputs = 0;
    /** The enable and force nibbles, by core and by register of eight pins. */
    this.enables = [new Uint32Array(4), new Uint32Array(4)];
    this.forces = [new Uint32Array(4), new Uint32Array(4)];
    /** @type {PinWatcher[]} */
    this.watchers = [];
    /** @type {{ pin: number, cycle: number }[]} */
    this.shorts = [];
    this.install();
  }

  install() {
    const { rp } = this;
    rp.gpio.forEach((pin, n) => {
      pin.padValue = 0x56; // the reset value of the pad: input enabled, pulled down (datasheet 2.19.6.3)
      pin.addListener(() => this.settle(n));
      // The package latches an edge at every call; in this emulator only a level change is an edge.
      // The call still notifies PIO and PWM.
      const notify = pin.setInputValue.bind(pin);
      pin.setInputValue = (value) => {
        notify(value);
        this.inputChanged(n);
      };
    });
    rp.updateIOInterrupt = () => this.updateLines();
    const bank = /** @type {any} */ (rp.peripherals)[0x40014];
    const read = bank.readUint32.bind(bank);
    const write = bank.writeUint32.bind(bank);
    bank.readUint32 = (/** @type {number} */ offset) =>
      offset >= 0xf0 && offset < 0x160 ? this.readRegister(offset) : read(offset);
    bank.writeUint32 = (/** @type {number} */ offset, /** @type {number} */ value) => {
      if (offset >= 0xf0 && offset < 0x160) this.writeRegister(offset, value, bank.rawWriteValue);
      else write(offset, value);
    };
    for (let n = 0; n < PINS; n++) this.settle(n);
  }

  /** @param {number} n @param {0 | 1 | null} level */
  drive(n, level) {
    if (!(n >= 0 && n < PINS))
      throw new RangeError(`GPIO ${n} does not exist: the RP2040 has 0 to ${PINS - 1}`);
    this.drives[n] = level;
    this.settle(n);
  }

  /** @param {number} n @returns {0 | 1} */
  level(n) {
    return /** @type {0 | 1} */ ((this.levels >>> n) & 1);
  }

  /** Recomputes a pad's level. @param {number} n */
  settle(n) {
    const pin = this.rp.gpio[n];
    const drive = this.drives[n];
    const state = pin.value;
    let level = (this.levels >>> n) & 1;
    if (state === GPIOPinState.High || state === GPIOPinState.Low) {
      level = pin.outputDisable ? level : state === GPIOPinState.High ? 1 : 0;
      if (drive !== null && drive !== level) this.shorts.push({ pin: n, cycle: this.clock.cycle });
    } else if (drive !== null) level = drive;
    else if (state === GPIOPinState.InputPullUp) level = 1;
    else if (state === GPIOPinState.InputPullDown) level = 0;
    const bit = 1 << n;
    if (level === ((this.levels >>> n) & 1)) return;
    this.levels ^= bit;
    pin.setInputValue(level === 1);
    for (const watcher of this.watchers) watcher(n, /** @type {0 | 1} */ (level), this.clock.cycle);
  }

  /** @param {number} n */
  inputChanged(n) {
    const bit = 1 << n;
    const now = this.rp.gpio[n].inputValue;
    if (now === ((this.inputs & bit) !== 0)) return;
    this.inputs ^= bit;
    if (now) this.edgeHigh |= bit;
    else this.edgeLow |= bit;
    this.updateLines();
  }

  /**
   * The raw status nibbles of eight pins: level low, level high, edge low, edge high.
   * @param {number} group
   * @returns {number}
   */
  status(group) {
    let value = 0;
    for (let i = 0; i < 8; i++) {
      const bit = 1 << (group * 8 + i);
      if (group * 8 + i >= PINS) break;
      const nibble =
        (this.inputs & bit ? 2 : 1) | (this.edgeLow & bit ? 4 : 0) | (this.edgeHigh & bit ? 8 : 0);
      value |= nibble << (4 * i);
    }
    return value;
  }

  updateLines() {
    for (let core = 0; core < 2; core++) {
      let asserted = false;
      for (let group = 0; group < 4 && !asserted; group++) {
        const enable = this.enables[core][group];
        if (enable === 0 && this.forces[core][group] === 0) continue;
        asserted = ((this.status(group) & enable) | this.forces[core][group]) !== 0;
      }
      this.setLine(core, IO_BANK0, asserted);
    }
  }

  /** @param {number} offset @returns {number} */
  readRegister(offset) {
    const group = (offset >> 2) & 3;
    if (offset < 0x100) return this.status(group);
    const core = offset < 0x130 ? 0 : 1;
    switch ((offset - 0x100 - core * 0x30) >> 4) {
      case 0:
        return this.enables[core][group];
      case 1:
        return this.forces[core][group];
      default:
        return (this.status(group) & this.enables[core][group]) | this.forces[core][group];
    }
  }

  /**
   * @param {number} offset
   * @param {number} value after the atomic alias
   * @param {number} raw as written
   */
  writeRegister(offset, value, raw) {
    const group = (offset >> 2) & 3;
    if (offset < 0x100) {
      for (let i = 0; i < 8; i++) {
        const bit = 1 << (group * 8 + i);
        if (raw & (4 << (4 * i))) this.edgeLow &= ~bit;
        if (raw & (8 << (4 * i))) this.edgeHigh &= ~bit;
      }
    } else {
      const core = offset < 0x130 ? 0 : 1;
      const which = (offset - 0x100 - core * 0x30) >> 4;
      if (which === 0) this.enables[core][group] = value;
      else if (which === 1) this.forces[core][group] = value;
    }
    this.updateLines();
  }
}
