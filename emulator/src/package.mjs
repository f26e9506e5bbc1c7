// @ts-check
/**
 * The parts of rp2040js that the emulator uses: the chip, the parts that the package does not
 * export but an instance reveals, and peripherals made from them.
 */
import { BasePeripheral, RP2040 } from 'rp2040js';

export { BasePeripheral, RP2040 };

/**
 * A block of registers that keep the values that are written. Start-up code configures such
 * registers; nothing in the emulator depends on their values.
 */
export class UnimplementedPeripheralLike extends BasePeripheral {
  /** @param {RP2040} rp @param {string} name */
  constructor(rp, name) {
    super(rp, name);
    this.registers = new Uint32Array(1024);
  }

  /** @param {number} offset @returns {number} */
  readUint32(offset) {
    return this.registers[(offset & 0xfff) >> 2];
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    this.registers[(offset & 0xfff) >> 2] = value;
  }
}

/**
 * The ring oscillator: always on and stable; its random bits are the same in every run (datasheet
 * 2.17).
 */
export class Rosc extends UnimplementedPeripheralLike {
  /** @param {RP2040} rp */
  constructor(rp) {
    super(rp, 'ROSC');
    this.noise = 1;
  }

  /** @param {number} offset @returns {number} */
  readUint32(offset) {
    if (offset === 0x18) return 0x80001000; // STATUS: STABLE, ENABLED
    if (offset !== 0x1c) return super.readUint32(offset);
    this.noise ^= this.noise << 13;
    this.noise ^= this.noise >>> 17;
    this.noise ^= this.noise << 5;
    return this.noise & 1;
  }
}
