// @ts-check
/**
 * The machine as gdb sees it: each core is a thread (1 and 2), registers have gdb's numbers, memory
 * has addresses, and there are breakpoints, and orders that determine how far a core runs. gdb.mjs
 * implements the protocol.
 *
 * Invariants
 * - Time passes only in `advance`. Inspecting and changing the machine takes no time.
 * - Memory (SRAM, flash, ROM) is read and written directly, as a debugger's loader does. Registers
 *   of peripherals are accessed as if by core 0, with all side effects of such an access.
 * - A breakpoint stops a core before the instruction. A core whose stop at this breakpoint has been
 *   reported continues; any other core stops.
 */
import { BusFault, FLASH, SRAM, SRAM_SIZE } from './memory.mjs';
import { ROM_SIZE } from './rom.mjs';

/** gdb's org.gnu.gdb.arm.m-profile and m-system, in the order of TARGET_XML. */
const NAMES = [
  ...Array.from({ length: 13 }, (_, n) => `r${n}`),
  'sp',
  'lr',
  'pc',
  'xpsr',
  'msp',
  'psp',
  'primask',
  'control',
];
export const REGISTERS = NAMES.length;
/** Registers in a 'g' packet; gdb requests the other registers one by one. */
const T_BIT = 0x01000000;

/** @param {string} name */
function describe(name) {
  const type =
    name === 'pc' ? ' type="code_ptr"' : /^[mp]?sp$/.test(name) ? ' type="data_ptr"' : '';
  return `<reg name="${name}" bitsize="32"${type}/>`;
}

export const TARGET_XML =
  '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target version="1.0"><architecture>armv6s-m</architecture>' +
  `<feature name="org.gnu.gdb.arm.m-profile">${NAMES.slice(0, 17).map(describe).join('')}</feature>` +
  `<feature name="org.gnu.gdb.arm.m-system">${NAMES.slice(17).map(describe).join('')}</feature></target>`;

/** @param {number} start @param {number} length @param {string} type @param {string} [more] */
const region = (start, length, type, more = '') =>
  `<memory type="${type}" start="0x${start.toString(16)}" length="0x${length.toString(16)}">${more}</memory>`;

/** @param {number} flash the size of the flash in bytes */
export const memoryMap = (flash) =>
  '<?xml version="1.0"?><!DOCTYPE memory-map PUBLIC "+//IDN gnu.org//DTD GDB Memory Map V1.0//EN" ' +
  '"http://sourceware.org/gdb/gdb-memory-map.dtd"><memory-map>' +
  region(0, ROM_SIZE, 'rom') +
  region(FLASH, flash, 'flash', '<property name="blocksize">0x1000</property>') +
  region(SRAM, SRAM_SIZE, 'ram') +
  region(0x21000000, 0x40000, 'ram') +
  region(0x40000000, 0xc0000000, 'ram') +
  '</memory-map>';

/**
 * The reason why time stopped; `core` is the core that caused the stop.
 * @typedef {{ why: 'slice' | 'breakpoint' | 'step' | 'end', core: number, note?: string }} Halt
 */

/**
 * The order for one core: run, hold, or step while its pc is in [from, to). @typedef {'run' |
 * 'hold' | { from: number, to: number }} Order
 */

/** @typedef {{ pc: number, instructions: number }} Told */

export class Target {
  /** @param {import('./machine.mjs').Machine} machine */
  constructor(machine) {
    this.machine = machine;
    /** @type {Map<number, () => void>} for each breakpoint the function that removes it */
    this.set = new Map();
    /** The place of each core's last reported stop. @type {[Told | null, Told | null]} */
    this.told = [null, null];
  }

  // ---- registers ----

  /** @param {number} id core @param {number} n gdb's number @returns {number} unsigned */
  register(id, n) {
    const core = this.machine.cores[id];
    if (n < 15) return core.r[n] >>> 0;
    switch (n) {
      case 15:
        return core.pc >>> 0;
      case 16:
        return (core.apsr | core.ipsr | T_BIT) >>> 0;
      case 17:
        return core.msp >>> 0;
      case 18:
        return core.psp >>> 0;
      case 19:
        return core.primask ? 1 : 0;
      default:
        return (core.spsel ? 2 : 0) | (core.npriv ? 1 : 0);
    }
  }

  /**
   * Writes a register. The exception number in xpsr and the stack in use (control) cannot be
   * written.
   * @param {number} id
   * @param {number} n
   * @param {number} value
   */
  setRegister(id, n, value) {
    const core = this.machine.cores[id];
    if (n === 13) core.r[13] = value & ~3;
    else if (n < 15) core.r[n] = value;
    else if (n === 15) {
      core.pc = (value & ~1) >>> 0;
      core.branched = true;
    } else if (n === 16) core.apsr = value;
    else if (n === 17) core.msp = value;
    else if (n === 18) core.psp = value;
    else if (n === 19) {
      core.primask = (value & 1) !== 0;
      core.check = true;
    }
  }

  // ---- memory ----

  /**
   * @param {number} address
   * @param {number} length
   * @returns {Uint8Array | null} null if nothing answers at that address
   */
  read(address, length) {
    const plain = this.plain(address, length);
    if (plain) return plain.slice();
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) {
      const at = (address + i) >>> 0;
      const word = this.access(() =>
        this.machine.memory.read32((at & ~3) >>> 0, this.machine.cores[0]),
      );
      if (word === null) return null;
      // There is one access per word, however many of its bytes are needed.
      for (let n = at & 3; n < 4 && i < length; n++, i++) bytes[i] = word >>> (8 * n);
      i--;
    }
    return bytes;
  }

  /** @param {number} address @param {Uint8Array} bytes @returns {boolean} */
  write(address, bytes) {
    const plain = this.plain(address, bytes.length);
    if (plain) {
      plain.set(bytes);
      return true;
    }
    const { memory, cores } = this.machine;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const whole = bytes.length % 4 === 0 && address % 4 === 0;
    for (let i = 0; i < bytes.length; i += whole ? 4 : 1) {
      const at = (address + i) >>> 0;
      const done = this.access(() => {
        if (whole) memory.write32(at, view.getInt32(i, true), cores[0]);
        else memory.write8(at, bytes[i], cores[0]);
        return 0;
      });
      if (done === null) return false;
    }
    return true;
  }

  /**
   * Returns memory without side effects as a window on it.
   * @param {number} address
   * @param {number} length
   * @returns {Uint8Array | null}
   */
  plain(address, length) {
    const { rp } = this.machine;
    const within = (/** @type {Uint8Array} */ all, /** @type {number} */ base) =>
      address >= base && address + length <= base + all.length
        ? all.subarray(address - base, address - base + length)
        : null;
    const rom = new Uint8Array(rp.bootrom.buffer, rp.bootrom.byteOffset, ROM_SIZE);
    // The ROM is returned as a copy, because a write to it changes nothing on the chip.
    return within(rp.sram, SRAM) ?? within(rp.flash, FLASH) ?? within(rom.slice(), 0);
  }

  /** @param {() => number} f @returns {number | null} */
  access(f) {
    try {
      return f();
    } catch (error) {
      if (error instanceof BusFault) return null;
      throw error;
    }
  }

  /** @param {number} address @param {number} length @returns {boolean} */
  erase(address, length) {
    const flash = this.machine.rp.flash;
    if (address < FLASH || address + length > FLASH + flash.length) return false;
    flash.fill(0xff, address - FLASH, address - FLASH + length);
    return true;
  }

  // ---- breakpoints and time ----

  /** @param {number} address */
  insert(address) {
    const at = (address & ~1) >>> 0;
    if (this.set.has(at)) return;
    const stop = (/** @type {import('./core.mjs').Core} */ core) => {
      const told = this.told[core.id];
      return !(told && told.pc === core.pc && told.instructions === core.instructions);
    };
    this.set.set(at, this.machine.breakpoint(at, stop));
  }

  /** @param {number} address */
  remove(address) {
    const at = (address & ~1) >>> 0;
    this.set.get(at)?.();
    this.set.delete(at);
  }

  clear() {
    for (const at of [...this.set.keys()]) this.remove(at);
  }

  /**
   * Sends core 0 through the boot ROM again, and core 1 back into it. Peripherals keep their state.
   */
  restart() {
    this.machine.waitForVector();
    this.machine.boot();
    this.told = [null, null];
  }

  /** @param {number} id */
  state(id) {
    const core = this.machine.cores[id];
    const asleep =
      core.sleeping === 1 ? 'asleep in WFI' : core.sleeping ? 'asleep in WFE' : 'awake';
    const where = core.ipsr ? `, exception ${core.ipsr}` : '';
    return core.running
      ? `core ${id}: ${asleep}${where}`
      : `core ${id}: in the boot ROM or in reset`;
  }

  /**
   * Lets at most `cycles` cycles pass, in which each core follows its order.
   * @param {[Order, Order]} orders @param {number} cycles @returns {Halt}
   */
  advance(orders, cycles) {
    const { machine } = this;
    const { cores } = machine;
    const held = cores.filter((core, id) => orders[id] === 'hold' && core.running);
    const stepped = cores.findIndex((_, id) => typeof orders[id] === 'object');
    if (stepped >= 0 && !cores[stepped].running) return this.tell({ why: 'step', core: stepped });
    if (cores.every((core, id) => orders[id] === 'hold' || !core.running))
      return this.tell({ why: 'end', core: 0, note: 'no core runs' });
    held.forEach((core) => (core.running = false));
    try {
      const stop = machine.run(
        machine.cycle + cycles,
        stepped >= 0 ? this.leaves(stepped, /** @type {any} */ (orders[stepped])) : undefined,
      );
      switch (stop.reason) {
        case 'limit':
          return { why: 'slice', core: 0 };
        case 'until':
          return this.tell({ why: 'step', core: stepped });
        case 'stopped':
          return this.tell({ why: 'breakpoint', core: stop.core ?? 0 });
        default:
          return this.tell({
            why: 'end',
            core: stop.core ?? 0,
            note: machine.failure(stop) ?? `${stop.reason} ${stop.why ?? ''}`.trim(),
          });
      }
    } finally {
      for (const core of held) {
        core.running = true;
        core.t = Math.max(core.t, machine.cycle);
      }
    }
  }

  /**
   * Returns a condition that holds when a core has executed an instruction and is outside a range.
   * @param {number} id
   * @param {{ from: number, to: number }} range
   */
  leaves(id, { from, to }) {
    const core = this.machine.cores[id];
    const { instructions, exceptions } = core;
    return () =>
      (core.instructions !== instructions || core.exceptions !== exceptions) &&
      (core.pc < from || core.pc >= to);
  }

  /** @param {Halt} halt @returns {Halt} */
  tell(halt) {
    const core = this.machine.cores[halt.core];
    this.told[halt.core] = { pc: core.pc, instructions: core.instructions };
    return halt;
  }
}
