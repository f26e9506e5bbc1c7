// @ts-check
/**
 * What the cores cost each other: the AHB-Lite crossbar's ports and the XIP cache (RP2040 datasheet 2.1, 2.6).
 *
 * Invariants
 * - A port serves one core a cycle. `slots[n]` remembers core n's accesses of the last 256 cycles as cycle * 16 + port.
 * - The core that finds its cycle taken waits one cycle; if the other had the next cycle too, the waiting one gets it and the other is
 *   pushed back: round robin, the reset state of BUS_PRIORITY (2.1.1).
 * - The striped address of SRAM selects banks 0-3 by bits 3:2, the non-striped alias by bits 17:16; scratch X and Y are banks 4, 5.
 * - The XIP cache has 1024 sets of two 8-byte lines; a miss holds the port until the line is there (2.6.3).
 *
 * Approximations: the instruction that begins earlier is arbitrated first; replacement is least recently used; DMA is not a master.
 */
import { UnimplementedPeripheralLike } from './package.mjs';

/**
 * @typedef {{ missCycles?: number, xip?: boolean, banks?: boolean }} BusOptions
 *   missCycles: of a line fill over QSPI: 8 SCK of address and mode, 4 dummy, 16 of data at clk_sys / 2, and 4 cycles of hand-over
 */

export const MISS_CYCLES = 2 * (8 + 4 + 16) + 4;
const SETS = 1024;

const PORT_SCRATCH_X = 4;
const PORT_XIP = 6;
const PORT_ROM = 7;
const PORT_APB = 8;
const PORT_AHB = 9;
const NO_PORT = 15;

/** Which downstream port an address belongs to. @param {number} address */
export function portOf(address) {
  switch (address >>> 28) {
    case 0:
      return PORT_ROM;
    case 1:
      return PORT_XIP;
    case 2:
      if (address >= 0x21000000) return (address >>> 16) & 3;
      if (address >= 0x20040000) return PORT_SCRATCH_X + ((address >>> 12) & 1);
      return (address >>> 2) & 3;
    case 4:
      return PORT_APB;
    case 5:
      return PORT_AHB;
    default:
      return NO_PORT;
  }
}

export class BusModel {
  /** @param {BusOptions} options @param {import('./memory.mjs').Memory} memory */
  constructor(options, memory) {
    this.memory = memory;
    this.missCycles = options.missCycles ?? MISS_CYCLES;
    this.xip = options.xip ?? true;
    this.banks = options.banks ?? true;
    this.slots = [new Float64Array(256).fill(-1), new Float64Array(256).fill(-1)];
    /** @type {import('./core.mjs').Core[]} */
    this.cores = [];
    this.tags = new Int32Array(2 * SETS).fill(-1);
    this.older = new Uint8Array(SETS);
    this.xipFreeAt = 0;
    this.apbFreeAt = 0;
    this.hits = 0;
    this.misses = 0;
    /** Conflicts by port. */
    this.conflicts = new Float64Array(16);
  }

  /** @param {import('./core.mjs').Core[]} cores */
  attach(cores) {
    this.cores = cores;
  }

  /** @param {import('./core.mjs').Core} core @param {number} cycle @param {number} address @returns {number} cycles to wait */
  fetch(core, cycle, address) {
    return this.access(core, cycle, address >>> 0);
  }

  /** @param {import('./core.mjs').Core} core @param {number} cycle @param {number} address @returns {number} */
  data(core, cycle, address) {
    return this.access(core, cycle, address >>> 0);
  }

  /** @param {import('./core.mjs').Core} core @param {number} cycle @param {number} address @returns {number} */
  access(core, cycle, address) {
    const port = portOf(address);
    if (port === NO_PORT) return 0;
    let wait = 0;
    if (port === PORT_XIP && this.xipFreeAt > cycle) wait = this.xipFreeAt - cycle;
    else if (port === PORT_APB && this.apbFreeAt > cycle) wait = this.apbFreeAt - cycle;
    if (this.banks) wait += this.arbitrate(core, cycle + wait, port);
    if (port === PORT_XIP && this.xip) wait += this.lookUp(cycle + wait, address);
    else if (port === PORT_APB && this.banks) this.apbFreeAt = cycle + wait + 3;
    core.stallCycles += wait;
    return wait;
  }

  /** @param {import('./core.mjs').Core} core @param {number} cycle @param {number} port @returns {number} */
  arbitrate(core, cycle, port) {
    const mine = this.slots[core.id];
    const theirs = this.slots[core.id ^ 1];
    const key = cycle * 16 + port;
    if (theirs[cycle & 255] !== key) {
      mine[cycle & 255] = key;
      return 0;
    }
    this.conflicts[port]++;
    const next = cycle + 1;
    if (theirs[next & 255] === key + 16) {
      const other = this.cores[core.id ^ 1];
      other.t++;
      other.stallCycles++;
      theirs[(next + 1) & 255] = key + 32;
    }
    mine[next & 255] = key + 16;
    return 1;
  }

  /** @param {number} cycle @param {number} address @returns {number} */
  lookUp(cycle, address) {
    const alias = (address >>> 24) & 3;
    const line = (address & 0xffffff) >>> 3;
    const set = line & (SETS - 1);
    if (alias < 2) {
      const way = this.tags[2 * set] === line ? 0 : this.tags[2 * set + 1] === line ? 1 : -1;
      if (way >= 0) {
        this.hits++;
        this.older[set] = way ^ 1;
        return 0;
      }
      if (alias === 0) {
        const victim = this.older[set];
        this.tags[2 * set + victim] = line;
        this.older[set] = victim ^ 1;
      }
    }
    this.misses++;
    this.xipFreeAt = cycle + this.missCycles;
    return this.missCycles;
  }

  flush() {
    this.tags.fill(-1);
    this.older.fill(0);
  }

  /** The XIP_CTRL registers at 0x14000000 (2.6.3.6). @param {import('rp2040js').RP2040} rp */
  xipControl(rp) {
    return new XipControl(rp, this);
  }
}

class XipControl extends UnimplementedPeripheralLike {
  /** @param {import('rp2040js').RP2040} rp @param {BusModel} bus */
  constructor(rp, bus) {
    super(rp, 'XIP_CTRL');
    this.bus = bus;
    this.registers[0] = 3;
  }

  /** @param {number} offset @returns {number} */
  readUint32(offset) {
    switch (offset) {
      case 0x08:
        return 2; // STAT: FIFO empty, flush ready
      case 0x0c:
        return this.bus.hits;
      case 0x10:
        return this.bus.hits + this.bus.misses;
    }
    return super.readUint32(offset);
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    if (offset === 0x04) this.bus.flush();
    else if (offset === 0x0c || offset === 0x10) this.bus.hits = this.bus.misses = 0;
    else super.writeUint32(offset, value);
  }
}
