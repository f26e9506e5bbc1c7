// @ts-check
/**
 * The boot ROM: its image, and the native functions behind its `udf` instructions (rom/rom.S).
 *
 * Invariants
 * - A native does its work when it is entered, and writes its result when its cycles have passed.
 *   Until then the core stays at the `udf` and takes interrupts every CHUNK cycles. Calls under
 *   way are distinguished by core and stack pointer. A call that has been abandoned (by a longjmp
 *   or a reset) is forgotten as soon as a call with a higher stack pointer begins. A call that is
 *   forgotten too early starts again, and gives the same result.
 * - Only CODE … CODE_END may be executed: `guard` faults at other addresses, which reveals calls
 *   through null function pointers.
 */
import { CODE, CODE_END, IMAGE, STUBS } from './rom_image.mjs';
import { DOUBLE, SINGLE } from './rom_float.mjs';
import { BusFault, FLASH } from './memory.mjs';

/** The longest time in cycles between two checks for interrupts. */
const CHUNK = 4;
/** Cycles of the `bx lr` after the native. */
const RETURN_CYCLES = 2;
const SINGLE_FIRST = 0x20;
const DOUBLE_FIRST = 0x40;
export const ROM_SIZE = 0x4000;

/**
 * Typical times of a W25Q16 (its data sheet, 9.6) in microseconds: to erase a sector of 4 KB, and
 * to program a page of 256 bytes.
 */
export const ERASE_MICROS = 45000;
export const PROGRAM_MICROS = 700;
/** clk_sys cycles of those ROM flash functions that send only a few commands. */
const COMMAND_CYCLES = 1000;

/** Where core 1 waits to be launched, and where it returns when its program ends. */
export const WAIT_FOR_VECTOR = STUBS + 4;

/** @param {Uint32Array} rom the 4,096 words to fill */
export function loadRom(rom) {
  const bytes = Buffer.from(IMAGE.replaceAll('\n', ''), 'hex');
  new Uint8Array(rom.buffer, rom.byteOffset, bytes.length).set(bytes);
}

/** @param {number} pc below ROM_SIZE */
export function guard(pc) {
  if (pc < CODE || pc >= CODE_END) {
    const what = pc < 0x100 ? 'a null function pointer?' : 'the ROM has no function';
    throw new BusFault(`jump into the boot ROM where there is no code (${what})`, pc);
  }
}

/**
 * The interface that the natives need from the machine.
 * @typedef {{
 *   boot(): void,
 *   waitForVector(): void,
 *   bootLoader(core: import('./core.mjs').Core): void,
 *   flash: Uint8Array,
 *   cyclesOf(micros: number): number,
 *   flushCache(): void,
 *   onFlash(change: FlashChange): void,
 *   load8(address: number): number,
 * }} RomHost
 */

/**
 * A change that the flash is about to undergo: the bytes from `offset` on become `after`.
 * @typedef {{ kind: 'erase' | 'program', offset: number, after: Uint8Array }} FlashChange
 */

/** @typedef {{ sp: number, pc: number, left: number, result: Int32Array }} Call */

export class Rom {
  /** @param {RomHost} host */
  constructor(host) {
    this.host = host;
    /** Calls under way, by core. @type {[Call[], Call[]]} */
    this.calls = [[], []];
  }

  /** @param {number} core */
  reset(core) {
    this.calls[core] = [];
  }

  /**
   * Runs one step of the native at whose `udf` the core is.
   * @param {import('./core.mjs').Core} core
   * @param {number} n the number in `udf #n`
   * @returns {number} cycles
   */
  step(core, n) {
    const calls = this.calls[core.id];
    const sp = core.r[13] >>> 0;
    while (calls.length && calls[calls.length - 1].sp < sp) calls.pop();
    let call = calls[calls.length - 1];
    if (!call || call.sp !== sp || call.pc !== core.pc) {
      const result = new Int32Array(core.r.subarray(0, 4));
      const left = this.begin(core, n, result);
      if (left === null) return 1;
      call = { sp, pc: core.pc, left: Math.max(1, left - RETURN_CYCLES), result };
      calls.push(call);
    }
    const cycles = Math.min(CHUNK, call.left);
    call.left -= cycles;
    if (call.left === 0) {
      calls.pop();
      core.r.set(call.result, 0);
      core.pc += 2;
    }
    return cycles;
  }

  /**
   * @param {import('./core.mjs').Core} core
   * @param {number} n
   * @param {Int32Array} r r0-r3, to be replaced by the result
   * @returns {number | null} cycles including the return; null if the core continues elsewhere
   */
  begin(core, n, r) {
    const native =
      n >= DOUBLE_FIRST
        ? DOUBLE[n - DOUBLE_FIRST]
        : n >= SINGLE_FIRST
          ? SINGLE[n - SINGLE_FIRST]
          : null;
    if (native) {
      native.call(r);
      return native.cycles;
    }
    const host = this.host;
    switch (n) {
      case 0: // reset
        if (core.id === 0) host.boot();
        else host.waitForVector();
        return null;
      case 1:
        if (core.id === 0)
          throw new BusFault('core 0 waits in the boot ROM to be launched', core.pc);
        host.waitForVector();
        return null;
      case 2:
        host.bootLoader(core);
        return null;
      case 3: // connect_internal_flash
      case 4: // flash_exit_xip
      case 8: // flash_enter_cmd_xip
        return COMMAND_CYCLES;
      case 5:
        return this.erase(r[0] >>> 0, r[1] >>> 0);
      case 6:
        return this.program(r[0] >>> 0, r[1] >>> 0, r[2] >>> 0);
      case 7: // flash_flush_cache
        host.flushCache();
        return COMMAND_CYCLES;
      default:
        throw new BusFault(`the boot ROM has no function number ${n}`, core.pc);
    }
  }

  /** @param {number} offset @param {number} count bytes */
  check(offset, count) {
    if (offset + count > this.host.flash.length)
      throw new BusFault('flash erased or programmed beyond its end', FLASH + offset);
  }

  /** @param {number} offset @param {number} count @returns {number} cycles */
  erase(offset, count) {
    this.check(offset, count);
    const first = offset & ~0xfff;
    const end = (offset + count + 0xfff) & ~0xfff;
    this.change('erase', first, new Uint8Array(end - first).fill(0xff));
    return this.host.cyclesOf(((end - first) / 0x1000) * ERASE_MICROS);
  }

  /**
   * Programs flash: programming turns ones to zeros, never zeros to ones.
   * @param {number} offset
   * @param {number} from
   * @param {number} count
   * @returns {number} cycles
   */
  program(offset, from, count) {
    this.check(offset, count);
    const after = this.host.flash.slice(offset, offset + count);
    for (let i = 0; i < count; i++) after[i] &= this.host.load8(from + i);
    this.change('program', offset, after);
    return this.host.cyclesOf(Math.ceil(count / 256) * PROGRAM_MICROS);
  }

  /** @param {FlashChange['kind']} kind @param {number} offset @param {Uint8Array} after */
  change(kind, offset, after) {
    this.host.onFlash({ kind, offset, after });
    this.host.flash.set(after, offset);
  }
}
