// @ts-check
/**
 * The one door to rp2040js: what we take from it, and what its entry point does not export but an instance shows.
 */
import { BasePeripheral, RP2040 } from 'rp2040js';

export { BasePeripheral, RP2040 };

/** A block of registers that keep what is written: start-up code configures them, nothing here depends on them. */
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
