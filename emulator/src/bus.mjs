// @ts-check
/**
 * The conflicts by which the cores slow each other down: the ports of the AHB-Lite crossbar, and
 * the XIP cache (RP2040 datasheet 2.1, 2.6).
 *
 * Invariants
 * - A port serves one core per cycle. `slots[n]` remembers core n's accesses of the last 256 cycles
 *   as cycle * 32 + port * 2 + retry.
 * - When both cores request a port anew in the same cycle, they win in turn. The loser waits one
 *   cycle and then wins, and that access does not count as the core's turn: round robin, the reset
 *   state of BUS_PRIORITY (2.1.1). If the winner's instruction is simulated second, it delays
 *   the accesses that the other core has already made from that cycle on.
 * - In the striped address range of SRAM bits 3:2 select banks 0-3, in the non-striped alias bits
 *   17:16; scratch X and Y are banks 4 and 5.
 * - The XIP cache has 1024 sets of two 8-byte lines; a miss holds the port until the line has been
 *   filled (2.6.3).
 *
 * Approximations: the instruction that begins earlier is arbitrated first; replacement is least
 * recently used; DMA is not a master.
 */
import { UnimplementedPeripheralLike } from './package.mjs';

/**
 * @typedef {{ missCycles?: number, xip?: boolean, banks?: boolean }} BusOptions
 *   missCycles: cycles of a line fill over QSPI: 8 SCK of address and mode, 4 dummy, 16 of data at
 *   clk_sys / 2, and 4 cycles to hand over
 */

export const MISS_CYCLES = 2 * (8 + 4 + 16) + 4;
const SETS = 1024;

const PORT_SCRATCH_X = 4;
const PORT_XIP = 6;
const PORT_ROM = 7;
const PORT_APB = 8;
const PORT_AHB = 9;
const NO_PORT = 15;
/** Marks an access that has already lost a conflict once. */
const RETRY = 1;

/** The downstream port of an address. @param {number} address */
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
    /**
     * Per core: the cycle of the last fetch ahead, the first cycle in which its word can be
     * executed, and the first cycle in which the core's bus is free.
     */
    this.ahead = [-1, -1];
    this.ready = [0, 0];
    this.free = [0, 0];
    this.tags = new Int32Array(2 * SETS).fill(-1);
    this.older = new Uint8Array(SETS);
    this.xipFreeAt = 0;
    this.apbFreeAt = 0;
    this.hits = 0;
    this.misses = 0;
    /** The core that wins the next conflict, by port. */
    this.turn = new Uint8Array(16);
    /** Conflicts by port. */
    this.conflicts = new Float64Array(16);
  }

  /** @param {import('./core.mjs').Core[]} cores */
  attach(cores) {
    this.cores = cores;
  }

  /**
   * Called when an instruction begins a word or follows a branch: waits for its word, then fetches
   * the next word ahead.
   * @param {import('./core.mjs').Core} core
   * @param {number} cycle
   * @param {number} pc
   * @returns {number} cycles to wait
   */
  prefetch(core, cycle, pc) {
    const id = core.id;
    const stall = !core.branched && this.ready[id] > cycle ? this.ready[id] - cycle : 0;
    const at = Math.max(cycle + stall, this.free[id]);
    const done = at + this.access(core, at, ((pc & ~3) >>> 0) + 4);
    this.ahead[id] = done;
    this.ready[id] = this.free[id] = done + 1;
    core.stallCycles += stall;
    return stall;
  }

  /**
   * Fetches the word to which a branch goes; the core waits until the word has arrived. @param
   * {import('./core.mjs').Core} core
   * @param {number} cycle
   * @param {number} address
   */
  target(core, cycle, address) {
    return this.data(core, cycle, address);
  }

  /**
   * @param {import('./core.mjs').Core} core
   * @param {number} cycle
   * @param {number} address
   * @returns {number} cycles to wait
   */
  data(core, cycle, address) {
    const id = core.id;
    if (portOf(address) === NO_PORT) return 0;
    const at = Math.max(cycle, this.free[id]);
    const done = at + this.access(core, at, address >>> 0);
    this.free[id] = done + 1;
    core.stallCycles += done - cycle;
    return done - cycle;
  }

  /**
   * @param {import('./core.mjs').Core} core
   * @param {number} cycle
   * @param {number} address
   * @returns {number}
   */
  access(core, cycle, address) {
    const port = portOf(address);
    if (port === NO_PORT) return 0;
    let wait = 0;
    if (port === PORT_XIP && this.xipFreeAt > cycle) wait = this.xipFreeAt - cycle;
    else if (port === PORT_APB && this.apbFreeAt > cycle) wait = this.apbFreeAt - cycle;
    if (this.banks) wait += this.arbitrate(core, cycle + wait, port);
    if (port === PORT_XIP && this.xip) wait += this.lookUp(cycle + wait, address);
    else if (port === PORT_APB && this.banks) this.apbFreeAt = cycle + wait + 3;
    return wait;
  }

  /**
   * @param {import('./core.mjs').Core} core
   * @param {number} cycle
   * @param {number} port
   * @returns {number} cycles to wait
   */
  arbitrate(core, cycle, port) {
    const mine = this.slots[core.id];
    const theirs = this.slots[core.id ^ 1];
    const key = cycle * 32 + port * 2;
    const rival = theirs[cycle & 255];
    if (rival !== key && rival !== key + RETRY) {
      mine[cycle & 255] = key;
      return 0;
    }
    this.conflicts[port]++;
    if (rival === key) {
      const won = this.turn[port] === core.id;
      this.turn[port] ^= 1;
      if (won) {
        mine[cycle & 255] = key;
        this.pushBack(this.cores[core.id ^ 1], theirs, cycle);
        return 0;
      }
    }
    if (theirs[(cycle + 1) & 255] === key + 32)
      this.pushBack(this.cores[core.id ^ 1], theirs, cycle + 1);
    mine[(cycle + 1) & 255] = key + 32 + RETRY;
    return 1;
  }

  /**
   * Delays by one cycle the accesses that a core has already made from `cycle` on; the first of
   * them becomes a retry.
   * @param {import('./core.mjs').Core} core @param {Float64Array} slots @param {number} cycle
   */
  pushBack(core, slots, cycle) {
    const id = core.id;
    let blocked = false;
    let moved = slots[cycle & 255] + RETRY;
    slots[cycle & 255] = -1;
    let c = cycle;
    for (; moved >= c * 32;) {
      if (this.ahead[id] === c) {
        this.ahead[id]++;
        this.ready[id]++;
      } else blocked = true;
      c++;
      const next = slots[c & 255];
      slots[c & 255] = moved + 32;
      moved = next;
      // The access of cycle c is now at c + 1; the access that was at c + 1 is delayed in turn.
    }
    if (this.free[id] > cycle) this.free[id]++;
    if (blocked) {
      core.t++;
      core.stallCycles++;
    }
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
