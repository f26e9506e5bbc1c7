// @ts-check
/**
 * Counts cycles by address, and adds them up by function.
 *
 * Invariants
 * - Every cycle in which a core is awake is counted once, at the instruction that spent it.
 *   Exception entry counts at the handler's first instruction, as "exceptions" of that function.
 * - A function owns the addresses from its symbol to the end of its size, or to the next function
 *   if the symbol has no size.
 */
import { FLASH, SRAM, SRAM_SIZE } from './memory.mjs';

const FLASH_LIMIT = 0x200000;

export class Profile {
  /** @param {import('./memory.mjs').Memory} memory */
  constructor(memory) {
    this.memory = memory;
    /** Per core: cycles and visits by halfword, SRAM then flash (2 MB). */
    const places = (SRAM_SIZE + FLASH_LIMIT) / 2;
    this.cycles = [new Float64Array(places), new Float64Array(places)];
    this.visits = [new Float64Array(places), new Float64Array(places)];
    this.elsewhere = [0, 0];
  }

  /** @param {number} address @returns {number} index, -1 outside */
  place(address) {
    const a = this.memory.canonical(address);
    const inSram = a - SRAM;
    if (inSram >= 0 && inSram < SRAM_SIZE) return inSram >>> 1;
    const inFlash = a - FLASH;
    if (inFlash >= 0 && inFlash < FLASH_LIMIT) return (SRAM_SIZE + inFlash) >>> 1;
    return -1;
  }

  /**
   * @param {import('./core.mjs').Core} core
   * @param {number} pc
   * @param {number} cycles
   * @param {boolean} exception
   */
  add(core, pc, cycles, exception) {
    const at = this.place(exception ? core.pc : pc);
    if (at < 0) {
      this.elsewhere[core.id] += cycles;
      return;
    }
    this.cycles[core.id][at] += cycles;
    if (!exception) this.visits[core.id][at]++;
  }

  /**
   * Returns the cycles by function, most cycles first.
   * @param {import('./image.mjs').Symbol[]} symbols
   * @returns {{ name: string, address: number, calls: number, cycles: number[], total: number }[]}
   */
  functions(symbols) {
    const functions = symbols.filter((s) => s.kind === 'function' && this.place(s.address) >= 0);
    const unique = functions.filter((s, i) => i === 0 || s.address !== functions[i - 1].address);
    const rows = unique.map((s, i) => {
      const next = unique[i + 1]?.address ?? Infinity;
      const end = s.size > 0 ? s.address + s.size : Math.min(next, s.address + 0x1000);
      const row = { name: s.name, address: s.address, calls: 0, cycles: [0, 0], total: 0 };
      const first = this.place(s.address);
      row.calls = this.visits[0][first] + this.visits[1][first];
      for (let a = s.address; a < end; a += 2) {
        const at = this.place(a);
        if (at < 0) break;
        row.cycles[0] += this.cycles[0][at];
        row.cycles[1] += this.cycles[1][at];
      }
      row.total = row.cycles[0] + row.cycles[1];
      return row;
    });
    const all = [0, 1].map((core) =>
      this.cycles[core].reduce((sum, c) => sum + c, this.elsewhere[core]),
    );
    const rest = [0, 1].map(
      (core) => all[core] - rows.reduce((sum, row) => sum + row.cycles[core], 0),
    );
    if (rest[0] + rest[1] > 0)
      rows.push({
        name: '(no symbol)',
        address: 0,
        calls: 0,
        cycles: rest,
        total: rest[0] + rest[1],
      });
    return rows.filter((row) => row.total > 0).sort((a, b) => b.total - a.total);
  }
}
