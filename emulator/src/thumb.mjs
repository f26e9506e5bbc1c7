// @ts-check
/**
 * The ARMv6-M instruction set with the timing of the Cortex-M0+ (TRM table 3-1). One call executes
 * one instruction.
 *
 * Invariants
 * - If an instruction may fault, it changes no state of the core before its last memory access,
 *   except registers that LDM or POP has already loaded; `pc` still names the instruction when it
 *   throws.
 * - The cycle counts assume memory without wait states. SIO answers in one cycle; an APB register
 *   adds 2 cycles to a load and 3 to a store compared with SRAM (RP2040 datasheet 2.1.3). With a
 *   contention model every access also passes through the model at its own cycle.
 * - `core.branched` informs the fetch model that the prefetch buffer is empty.
 */
import { BusFault } from './memory.mjs';
import { ROM_SIZE, guard } from './rom.mjs';

/** The instruction that put a core to sleep (Core.sleeping). */
export const WFI = 1;
export const WFE = 2;

/** @typedef {import('./core.mjs').Core} Core */

/** Cycles of a load after the first. @param {number} a */
function loadCycles(a) {
  const top = a >>> 28;
  return top < 4 ? 1 : top === 13 ? 0 : top === 4 ? 3 : 1;
}

/** Cycles of a store after the first. @param {number} a */
function storeCycles(a) {
  const top = a >>> 28;
  return top < 4 ? 1 : top === 13 ? 0 : top === 4 ? 4 : 1;
}

/** @param {Core} core @param {number} a @param {number} b @param {number} carry */
function addWithCarry(core, a, b, carry) {
  const sum = (a >>> 0) + (b >>> 0) + carry;
  const result = sum | 0;
  core.nr = core.zr = result;
  core.c = sum > 0xffffffff;
  core.v = ((a ^ result) & (b ^ result)) < 0;
  return result;
}

/** @param {Core} core @param {number} rm the number of the register @returns {number} */
function readHigh(core, rm) {
  return rm === 15 ? (core.pc + 4) | 0 : core.r[rm];
}

/** @param {Core} core @param {number} cond 0-13 */
function passes(core, cond) {
  switch (cond) {
    case 0:
      return core.zr === 0;
    case 1:
      return core.zr !== 0;
    case 2:
      return core.c;
    case 3:
      return !core.c;
    case 4:
      return core.nr < 0;
    case 5:
      return core.nr >= 0;
    case 6:
      return core.v;
    case 7:
      return !core.v;
    case 8:
      return core.c && core.zr !== 0;
    case 9:
      return !core.c || core.zr === 0;
    case 10:
      return core.nr < 0 === core.v;
    case 11:
      return core.nr < 0 !== core.v;
    case 12:
      return core.zr !== 0 && core.nr < 0 === core.v;
    default:
      return core.zr === 0 || core.nr < 0 !== core.v;
  }
}

/** @param {Core} core @param {number} op */
function undefinedInstruction(core, op) {
  throw new BusFault(`undefined instruction 0x${op.toString(16).padStart(4, '0')}`, core.pc);
}

/** Reads one halfword of program. @param {Core} core @param {number} pc */
function fetch(core, pc) {
  if (pc < ROM_SIZE) guard(pc);
  if (pc >>> 28 >= 4) throw new BusFault('instruction fetch from peripheral space', pc);
  return core.load16(pc);
}

/**
 * Writes the PC, which may cause an exception return.
 * @param {Core} core
 * @param {number} target
 * @returns {number} extra cycles
 */
function branchExchange(core, target) {
  if (core.ipsr !== 0 && target >>> 28 === 15) return core.leave(target >>> 0);
  if ((target & 1) === 0) throw new BusFault('branch to ARM state', target);
  core.pc = (target & ~1) >>> 0;
  return 0;
}

/** @param {Core} core @returns {number} cycles the instruction took */
export function execute(core) {
  const r = core.r;
  const pc = core.pc;
  // The two fast paths repeat load16 so that the common fetch costs no call.
  let op;
  const inSram = pc - 0x20000000;
  if (inSram >= 0 && inSram < 0x42000) op = core.sram16[inSram >>> 1];
  else if (pc >>> 24 === 0x10) op = core.flash16[(pc & 0xffffff) >>> 1];
  else op = fetch(core, pc);

  const bus = core.contention;
  const t = core.t;
  let cycles = 1;
  if (bus !== null) {
    // The prefetch buffer holds a word, which is two instructions. The next word is fetched when an
    // instruction begins a word, or directly after a branch into the second half of a word.
    if ((pc & 2) === 0 || core.branched) cycles += bus.prefetch(core, t, pc);
    core.branched = false;
  }
  let next = pc + 2;

  switch (op >>> 11) {
    case 0: {
      // LSLS immediate; MOVS register when the shift is 0
      const n = (op >>> 6) & 31;
      const a = r[(op >>> 3) & 7];
      if (n) core.c = ((a >>> (32 - n)) & 1) !== 0;
      core.nr = core.zr = r[op & 7] = a << n;
      break;
    }
    case 1: {
      const n = (op >>> 6) & 31;
      const a = r[(op >>> 3) & 7];
      core.c = ((n ? a >>> (n - 1) : a >>> 31) & 1) !== 0;
      core.nr = core.zr = r[op & 7] = n ? a >>> n : 0;
      break;
    }
    case 2: {
      const n = (op >>> 6) & 31 || 32;
      const a = r[(op >>> 3) & 7];
      core.c = ((a >> (n - 1)) & 1) !== 0;
      core.nr = core.zr = r[op & 7] = n === 32 ? a >> 31 : a >> n;
      break;
    }
    case 3: {
      const a = r[(op >>> 3) & 7];
      const b = op & 0x400 ? (op >>> 6) & 7 : r[(op >>> 6) & 7];
      r[op & 7] = op & 0x200 ? addWithCarry(core, a, ~b, 1) : addWithCarry(core, a, b, 0);
      break;
    }
    case 4:
      core.nr = core.zr = r[(op >>> 8) & 7] = op & 0xff;
      break;
    case 5:
      addWithCarry(core, r[(op >>> 8) & 7], ~(op & 0xff), 1);
      break;
    case 6:
      r[(op >>> 8) & 7] = addWithCarry(core, r[(op >>> 8) & 7], op & 0xff, 0);
      break;
    case 7:
      r[(op >>> 8) & 7] = addWithCarry(core, r[(op >>> 8) & 7], ~(op & 0xff), 1);
      break;
    case 8:
      if (op & 0x400) {
        const rm = (op >>> 3) & 15;
        const rd = (op & 7) | ((op >>> 4) & 8);
        switch ((op >>> 8) & 3) {
          case 0: {
            const sum = (readHigh(core, rd) + readHigh(core, rm)) | 0;
            if (rd === 15) {
              next = (sum & ~1) >>> 0;
              cycles += 1;
              core.branched = true;
            } else r[rd] = rd === 13 ? sum & ~3 : sum;
            break;
          }
          case 1:
            addWithCarry(core, readHigh(core, rd), ~readHigh(core, rm), 1);
            break;
          case 2: {
            const value = readHigh(core, rm);
            if (rd === 15) {
              next = (value & ~1) >>> 0;
              cycles += 1;
              core.branched = true;
            } else r[rd] = rd === 13 ? value & ~3 : value;
            break;
          }
          default: {
            const target = readHigh(core, rm);
            if (op & 0x80) {
              if ((target & 1) === 0) throw new BusFault('branch to ARM state', target);
              r[14] = (pc + 2) | 1;
              core.pc = (target & ~1) >>> 0;
            } else cycles += branchExchange(core, target);
            cycles += 1;
            core.branched = true;
            if (bus !== null) cycles += bus.target(core, t + cycles - 1, core.pc);
            return cycles;
          }
        }
      } else {
        const m = r[(op >>> 3) & 7];
        const d = op & 7;
        const a = r[d];
        switch ((op >>> 6) & 15) {
          case 0:
            core.nr = core.zr = r[d] = a & m;
            break;
          case 1:
            core.nr = core.zr = r[d] = a ^ m;
            break;
          case 2: {
            const n = m & 0xff;
            if (n) core.c = n <= 32 && ((n === 32 ? a : a >>> (32 - n)) & 1) !== 0;
            core.nr = core.zr = r[d] = n < 32 ? a << n : 0;
            break;
          }
          case 3: {
            const n = m & 0xff;
            if (n) core.c = n <= 32 && ((a >>> (n - 1)) & 1) !== 0;
            core.nr = core.zr = r[d] = n < 32 ? a >>> n : 0;
            break;
          }
          case 4: {
            const n = m & 0xff;
            if (n) core.c = (n <= 32 ? (a >> (n - 1)) & 1 : a >>> 31) !== 0;
            core.nr = core.zr = r[d] = n < 32 ? a >> n : a >> 31;
            break;
          }
          case 5:
            r[d] = addWithCarry(core, a, m, core.c ? 1 : 0);
            break;
          case 6:
            r[d] = addWithCarry(core, a, ~m, core.c ? 1 : 0);
            break;
          case 7: {
            const n = m & 31;
            const result = n ? (a >>> n) | (a << (32 - n)) : a;
            if (m & 0xff) core.c = result < 0;
            core.nr = core.zr = r[d] = result;
            break;
          }
          case 8:
            core.nr = core.zr = a & m;
            break;
          case 9:
            r[d] = addWithCarry(core, ~m, 0, 1);
            break;
          case 10:
            addWithCarry(core, a, ~m, 1);
            break;
          case 11:
            addWithCarry(core, a, m, 0);
            break;
          case 12:
            core.nr = core.zr = r[d] = a | m;
            break;
          case 13:
            core.nr = core.zr = r[d] = Math.imul(a, m);
            break;
          case 14:
            core.nr = core.zr = r[d] = a & ~m;
            break;
          default:
            core.nr = core.zr = r[d] = ~m;
        }
      }
      break;
    case 9: {
      const a = (((pc + 4) & ~3) >>> 0) + ((op & 0xff) << 2);
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      r[(op >>> 8) & 7] = core.load32(a);
      cycles += loadCycles(a);
      break;
    }
    case 10:
    case 11: {
      const a = (r[(op >>> 3) & 7] + r[(op >>> 6) & 7]) >>> 0;
      const d = op & 7;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      switch ((op >>> 9) & 7) {
        case 0:
          core.store32(a, r[d]);
          cycles += storeCycles(a);
          break;
        case 1:
          core.memory.write16(a, r[d], core);
          cycles += storeCycles(a);
          break;
        case 2:
          core.memory.write8(a, r[d], core);
          cycles += storeCycles(a);
          break;
        case 3:
          r[d] = (core.load8(a) << 24) >> 24;
          cycles += loadCycles(a);
          break;
        case 4:
          r[d] = core.load32(a);
          cycles += loadCycles(a);
          break;
        case 5:
          r[d] = core.load16(a);
          cycles += loadCycles(a);
          break;
        case 6:
          r[d] = core.load8(a);
          cycles += loadCycles(a);
          break;
        default:
          r[d] = (core.load16(a) << 16) >> 16;
          cycles += loadCycles(a);
      }
      break;
    }
    case 12: {
      const a = (r[(op >>> 3) & 7] + ((op >>> 4) & 0x7c)) >>> 0;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      core.store32(a, r[op & 7]);
      cycles += storeCycles(a);
      break;
    }
    case 13: {
      const a = (r[(op >>> 3) & 7] + ((op >>> 4) & 0x7c)) >>> 0;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      r[op & 7] = core.load32(a);
      cycles += loadCycles(a);
      break;
    }
    case 14: {
      const a = (r[(op >>> 3) & 7] + ((op >>> 6) & 0x1f)) >>> 0;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      core.memory.write8(a, r[op & 7], core);
      cycles += storeCycles(a);
      break;
    }
    case 15: {
      const a = (r[(op >>> 3) & 7] + ((op >>> 6) & 0x1f)) >>> 0;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      r[op & 7] = core.load8(a);
      cycles += loadCycles(a);
      break;
    }
    case 16: {
      const a = (r[(op >>> 3) & 7] + ((op >>> 5) & 0x3e)) >>> 0;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      core.memory.write16(a, r[op & 7], core);
      cycles += storeCycles(a);
      break;
    }
    case 17: {
      const a = (r[(op >>> 3) & 7] + ((op >>> 5) & 0x3e)) >>> 0;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      r[op & 7] = core.load16(a);
      cycles += loadCycles(a);
      break;
    }
    case 18: {
      const a = (r[13] + ((op & 0xff) << 2)) >>> 0;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      core.store32(a, r[(op >>> 8) & 7]);
      cycles += storeCycles(a);
      break;
    }
    case 19: {
      const a = (r[13] + ((op & 0xff) << 2)) >>> 0;
      if (bus !== null) cycles += bus.data(core, t + cycles, a);
      r[(op >>> 8) & 7] = core.load32(a);
      cycles += loadCycles(a);
      break;
    }
    case 20:
      r[(op >>> 8) & 7] = ((pc + 4) & ~3) + ((op & 0xff) << 2);
      break;
    case 21:
      r[(op >>> 8) & 7] = r[13] + ((op & 0xff) << 2);
      break;
    case 22:
    case 23:
      return miscellaneous(core, op, cycles);
    case 24: {
      const n = (op >>> 8) & 7;
      let a = r[n] >>> 0;
      for (let list = op & 0xff, i = 0; list; list >>>= 1, i++) {
        if ((list & 1) === 0) continue;
        if (bus !== null) cycles += bus.data(core, t + cycles, a);
        core.store32(a, r[i]);
        a += 4;
        cycles += 1;
      }
      r[n] = a;
      break;
    }
    case 25: {
      const n = (op >>> 8) & 7;
      let a = r[n] >>> 0;
      for (let list = op & 0xff, i = 0; list; list >>>= 1, i++) {
        if ((list & 1) === 0) continue;
        if (bus !== null) cycles += bus.data(core, t + cycles, a);
        r[i] = core.load32(a);
        a += 4;
        cycles += 1;
      }
      if ((op & (1 << n)) === 0) r[n] = a;
      break;
    }
    case 26:
    case 27: {
      const cond = (op >>> 8) & 15;
      if (cond >= 14) return call(core, op, cycles);
      if (passes(core, cond)) {
        next = (pc + 4 + ((op << 24) >> 23)) >>> 0;
        core.branched = true;
        if (bus !== null) cycles += bus.target(core, t + cycles, next);
        cycles += 1;
      }
      break;
    }
    case 28:
      next = (pc + 4 + ((op << 21) >> 20)) >>> 0;
      core.branched = true;
      if (bus !== null) cycles += bus.target(core, t + cycles, next);
      cycles += 1;
      break;
    case 30:
      return wide(core, op, cycles);
    default:
      undefinedInstruction(core, op);
  }
  core.pc = next;
  return cycles;
}

/** SVC and UDF. @param {Core} core @param {number} op @param {number} cycles */
function call(core, op, cycles) {
  if ((op & 0xff00) === 0xde00) {
    if (core.pc < ROM_SIZE && core.rom !== null) return core.rom.step(core, op & 0xff);
    undefinedInstruction(core, op);
  }
  let current = core.priorityOf(core.ipsr);
  if (core.primask && current > 0) current = 0;
  if (core.prioritySVC >= current) throw new BusFault('SVC at a priority that masks it', core.pc);
  core.pc += 2;
  core.pendSVC = true;
  core.check = true;
  return cycles;
}

/** The 0xb000 group. @param {Core} core @param {number} op @param {number} cycles */
function miscellaneous(core, op, cycles) {
  const r = core.r;
  const bus = core.contention;
  const m = r[(op >>> 3) & 7];
  switch ((op >>> 8) & 15) {
    case 0:
      r[13] += op & 0x80 ? -((op & 0x7f) << 2) : (op & 0x7f) << 2;
      break;
    case 2:
      switch ((op >>> 6) & 3) {
        case 0:
          r[op & 7] = (m << 16) >> 16;
          break;
        case 1:
          r[op & 7] = (m << 24) >> 24;
          break;
        case 2:
          r[op & 7] = m & 0xffff;
          break;
        default:
          r[op & 7] = m & 0xff;
      }
      break;
    case 4:
    case 5: {
      let count = op & 0x100 ? 1 : 0;
      for (let list = op & 0xff; list; list &= list - 1) count++;
      let a = (r[13] - 4 * count) >>> 0;
      const low = a;
      for (let i = 0; i < 9; i++) {
        if ((op & (1 << i)) === 0) continue;
        if (bus !== null) cycles += bus.data(core, core.t + cycles, a);
        core.store32(a, r[i === 8 ? 14 : i]);
        a += 4;
        cycles += 1;
      }
      r[13] = low;
      break;
    }
    case 6:
      if ((op & 0xffef) !== 0xb662) undefinedInstruction(core, op);
      core.primask = (op & 0x10) !== 0;
      core.check = true;
      break;
    case 10:
      switch ((op >>> 6) & 3) {
        case 0:
          r[op & 7] = (m << 24) | ((m & 0xff00) << 8) | ((m >>> 8) & 0xff00) | (m >>> 24);
          break;
        case 1:
          r[op & 7] = ((m & 0x00ff00ff) << 8) | ((m >>> 8) & 0x00ff00ff);
          break;
        case 3:
          r[op & 7] = (((m & 0xff) << 24) >> 16) | ((m >>> 8) & 0xff);
          break;
        default:
          undefinedInstruction(core, op);
      }
      break;
    case 12:
    case 13: {
      let a = r[13] >>> 0;
      for (let list = op & 0xff, i = 0; list; list >>>= 1, i++) {
        if ((list & 1) === 0) continue;
        if (bus !== null) cycles += bus.data(core, core.t + cycles, a);
        r[i] = core.load32(a);
        a += 4;
        cycles += 1;
      }
      if (op & 0x100) {
        if (bus !== null) cycles += bus.data(core, core.t + cycles, a);
        const target = core.load32(a);
        // SP changes first: an exception return reads its frame from above the popped words.
        r[13] = a + 4;
        cycles += 3 + branchExchange(core, target);
        core.branched = true;
        if (bus !== null) cycles += bus.target(core, core.t + cycles - 1, core.pc);
        return cycles;
      }
      r[13] = a;
      break;
    }
    case 14:
      core.onBreak(core, op & 0xff);
      core.pc += 2;
      return cycles;
    case 15:
      switch (op & 0xff) {
        case 0x00: // NOP
        case 0x10: // YIELD
          break;
        case 0x20: {
          core.pc += 2;
          core.sleep(WFE);
          return cycles + 1;
        }
        case 0x30:
          core.pc += 2;
          core.sleep(WFI);
          return cycles + 1;
        case 0x40:
          core.onSEV();
          break;
        default:
          // Unallocated hints execute as NOP (ARMv6-M A5.2.5); IT does not exist on this core.
          if (op & 15) undefinedInstruction(core, op);
      }
      break;
    default:
      undefinedInstruction(core, op);
  }
  core.pc += 2;
  return cycles;
}

/** The 32-bit instructions. @param {Core} core @param {number} op @param {number} cycles */
function wide(core, op, cycles) {
  const pc = core.pc;
  const op2 = fetch(core, pc + 2);
  const bus = core.contention;
  // If the first halfword did not begin a word, the second halfword does: then the next word is
  // fetched.
  if (bus !== null && (pc & 2) !== 0) cycles += bus.prefetch(core, core.t + cycles - 1, pc + 2);
  if ((op2 & 0xd000) === 0xd000) {
    const s = (op >>> 10) & 1;
    const i1 = ((op2 >>> 13) & 1) ^ s ^ 1;
    const i2 = ((op2 >>> 11) & 1) ^ s ^ 1;
    const offset =
      (s ? 0xff000000 : 0) | (i1 << 23) | (i2 << 22) | ((op & 0x3ff) << 12) | ((op2 & 0x7ff) << 1);
    core.r[14] = (pc + 4) | 1;
    core.pc = (pc + 4 + offset) >>> 0;
    core.branched = true;
    if (bus !== null) cycles += bus.target(core, core.t + cycles + 1, core.pc);
    return cycles + 2;
  }
  if ((op2 & 0xd000) !== 0x8000) undefinedInstruction(core, op);
  if ((op & 0xffe0) === 0xf380 && (op2 & 0xff00) === 0x8800)
    writeSpecial(core, op2 & 0xff, core.r[op & 15]);
  else if (op === 0xf3ef && (op2 & 0xf000) === 0x8000)
    core.r[(op2 >>> 8) & 15] = readSpecial(core, op2 & 0xff);
  else if (
    op === 0xf3bf &&
    (op2 & 0xff0f) === 0x8f0f &&
    ((op2 >>> 4) & 15) >= 4 &&
    ((op2 >>> 4) & 15) <= 6
  ) {
    // DSB, DMB, ISB: the model has no write buffer to drain.
  } else undefinedInstruction(core, op);
  core.pc = pc + 4;
  return cycles + 2;
}

/** @param {Core} core @param {number} which SYSm @returns {number} */
function readSpecial(core, which) {
  switch (which) {
    case 0:
    case 2: // EPSR reads as zero
      return core.apsr;
    case 1:
    case 3:
      return core.apsr | core.ipsr;
    case 5:
    case 7:
      return core.ipsr;
    case 8:
      return core.msp;
    case 9:
      return core.psp;
    case 16:
      return core.primask ? 1 : 0;
    case 20:
      return (core.spsel ? 2 : 0) | (core.npriv ? 1 : 0);
    default:
      return 0;
  }
}

/** @param {Core} core @param {number} which SYSm @param {number} value */
function writeSpecial(core, which, value) {
  switch (which) {
    case 0:
    case 1:
    case 2:
    case 3:
      core.apsr = value;
      break;
    case 8:
      core.msp = value;
      break;
    case 9:
      core.psp = value;
      break;
    case 16:
      core.primask = (value & 1) !== 0;
      core.check = true;
      break;
    case 20:
      if (core.ipsr === 0) {
        core.selectStack((value & 2) !== 0);
        core.npriv = (value & 1) !== 0;
      }
      break;
  }
}
