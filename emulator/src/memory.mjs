// @ts-check
/**
 * The bus as a core sees it, and the parts of the chip that answer at each address.
 *
 * Invariants
 * - SRAM banks 0-3 are one array in striped order; the non-striped aliases at 0x21000000 map onto
 *   it (RP2040 datasheet 2.6.2).
 * - Flash answers at its four XIP aliases (2.6.3). A write to it faults, because the XIP window is
 *   read-only.
 * - A misaligned access and an access to an empty address throw BusFault; the core turns it into a
 *   HardFault (ARMv6-M B1.5.6).
 * - Accesses to SIO and PPB carry the core that makes them; other accesses do not depend on the
 *   core.
 */

export const SRAM = 0x20000000;
export const SRAM_SIZE = 0x42000;
export const SRAM_STRIPED = 0x40000;
export const SRAM_ALIAS = 0x21000000;
export const FLASH = 0x10000000;

/** Thrown by an access at an address where nothing answers; caught by the core. */
export class BusFault extends Error {
  /** @param {string} why @param {number} address */
  constructor(why, address) {
    super(`${why} at 0x${(address >>> 0).toString(16).padStart(8, '0')}`);
    this.address = address >>> 0;
  }
}

/** @param {number} address in the non-striped alias; returns the offset in SRAM. */
export function aliasOffset(address) {
  const bank = (address >>> 16) & 3;
  const offset = address & 0xffff;
  return ((offset >>> 2) << 4) | (bank << 2) | (offset & 3);
}

/**
 * The interface that memory needs from a core.
 * @typedef {{ id: number, ppb: { read(offset: number): number, write(offset: number, value:
 *   number): void } }} BusMaster
 */

export class Memory {
  /**
   * @param {import('rp2040js').RP2040} rp
   * @param {{ read(core: number, offset: number): number, write(core: number, offset: number,
   *   value: number): void }} sio
   */
  constructor(rp, sio) {
    this.rp = rp;
    this.sio = sio;
    this.sram8 = rp.sram;
    this.sram16 = new Uint16Array(rp.sram.buffer, 0, SRAM_SIZE / 2);
    this.sram32 = new Int32Array(rp.sram.buffer, 0, SRAM_SIZE / 4);
    this.flash8 = rp.flash;
    this.flash16 = new Uint16Array(rp.flash.buffer);
    this.flash32 = new Int32Array(rp.flash.buffer);
  }

  /**
   * The address without its alias, for callers that use it as an index.
   * @param {number} address
   */
  canonical(address) {
    const top = address >>> 24;
    if (top === 0x21) return SRAM + aliasOffset(address);
    if (top >= 0x11 && top <= 0x13) return FLASH | (address & 0xffffff);
    return address;
  }

  /** @param {number} a unsigned address @param {BusMaster} core @returns {number} */
  read32(a, core) {
    if (a & 3) throw new BusFault('unaligned word read', a);
    switch (a >>> 28) {
      case 0:
        if (a < 0x4000) return this.rp.bootrom[a >>> 2] | 0;
        break;
      case 1:
        if (a < 0x14000000) return this.flash32[(a & 0xffffff) >>> 2];
        if (this.rp.findPeripheral(a)) return this.rp.readUint32(a) | 0;
        break;
      case 2:
        if (a < SRAM + SRAM_SIZE) return this.sram32[(a - SRAM) >>> 2];
        if (a >= SRAM_ALIAS && a < SRAM_ALIAS + SRAM_STRIPED)
          return this.sram32[aliasOffset(a) >>> 2];
        break;
      case 4:
      case 5:
        if (this.rp.findPeripheral(a) || (a >= 0x50100000 && a < 0x50101000))
          return this.rp.readUint32(a) | 0;
        break;
      case 13:
        return this.sio.read(core.id, a & 0xffff) | 0;
      case 14:
        if (a >>> 12 === 0xe000e) return core.ppb.read(a & 0xfff) | 0;
        break;
    }
    throw new BusFault('read from unmapped address', a);
  }

  /** @param {number} a @param {BusMaster} core @returns {number} */
  read16(a, core) {
    if (a & 1) throw new BusFault('unaligned halfword read', a);
    if (a >>> 24 === 0x21) {
      const o = aliasOffset(a);
      return this.sram16[o >>> 1];
    }
    const word = this.read32((a & ~3) >>> 0, core);
    return a & 2 ? word >>> 16 : word & 0xffff;
  }

  /** @param {number} a @param {BusMaster} core @returns {number} */
  read8(a, core) {
    const word = this.read32((a & ~3) >>> 0, core);
    return (word >>> ((a & 3) * 8)) & 0xff;
  }

  /** @param {number} a @param {number} value @param {BusMaster} core */
  write32(a, value, core) {
    if (a & 3) throw new BusFault('unaligned word write', a);
    switch (a >>> 28) {
      case 1:
        if (a >= 0x14000000 && this.rp.findPeripheral(a))
          return void this.rp.writeUint32(a, value >>> 0);
        break;
      case 2:
        if (a < SRAM + SRAM_SIZE) return void (this.sram32[(a - SRAM) >>> 2] = value);
        if (a >= SRAM_ALIAS && a < SRAM_ALIAS + SRAM_STRIPED)
          return void (this.sram32[aliasOffset(a) >>> 2] = value);
        break;
      case 4:
      case 5:
        if (this.rp.findPeripheral(a) || (a >= 0x50100000 && a < 0x50101000))
          return void this.rp.writeUint32(a, value >>> 0);
        break;
      case 13:
        return this.sio.write(core.id, a & 0xffff, value);
      case 14:
        if (a >>> 12 === 0xe000e) return core.ppb.write(a & 0xfff, value);
        break;
    }
    throw new BusFault('write to unmapped address', a);
  }

  /** @param {number} a @param {number} value @param {BusMaster} core */
  write16(a, value, core) {
    if (a & 1) throw new BusFault('unaligned halfword write', a);
    if (a >>> 24 === 0x21) this.sram16[aliasOffset(a) >>> 1] = value;
    else if (a >>> 28 === 4 || a >>> 28 === 5) this.rp.writeUint16(a, value & 0xffff);
    else this.narrow(a, value & 0xffff, 2, core);
  }

  /** @param {number} a @param {number} value @param {BusMaster} core */
  write8(a, value, core) {
    if (a >>> 24 === 0x21) this.sram8[aliasOffset(a)] = value;
    else if (a >>> 28 === 4 || a >>> 28 === 5) this.rp.writeUint8(a, value & 0xff);
    else this.narrow(a, value & 0xff, 1, core);
  }

  /**
   * A store of a byte or halfword outside memory: the bus replicates it over the word, and IO
   * registers take the whole word (RP2040 datasheet 2.1.4).
   * @param {number} a @param {number} value @param {1 | 2} size @param {BusMaster} core
   */
  narrow(a, value, size, core) {
    if (a >= SRAM && a < SRAM + SRAM_SIZE) {
      if (size === 1) this.sram8[a - SRAM] = value;
      else this.sram16[(a - SRAM) >>> 1] = value;
      return;
    }
    const wide = size === 1 ? value * 0x01010101 : value * 0x00010001;
    this.write32((a & ~3) >>> 0, wide | 0, core);
  }
}
