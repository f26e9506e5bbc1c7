// @ts-check
/**
 * One Cortex-M0+: registers, exceptions, the NVIC's pending latch, sleep and the event register.
 * Instructions are executed by thumb.mjs; this file decides whether an instruction or an exception
 * handler runs next.
 *
 * Invariants
 * - `t` is the core's local time in cycles: the start of its next instruction. Only the run loop
 *   and wake() change it.
 * - `check` is true whenever an exception may have become takeable since the last check;
 *   takeException() clears it.
 * - `line` contains the level of each peripheral's interrupt line; `pending` is the latch. A
 *   falling level never clears the latch; only handler entry and ICPR do. ICPR and handler return
 *   set the latch again while the line is still high (ARMv6-M B3.4.1).
 * - `sleeping` is AWAKE, WFI or WFE. PRIMASK is ignored in the decision to wake from WFI, and
 *   respected in the decision to wake from WFE (ARMv6-M B1.5.17-19).
 *
 *            execute() WFI/WFE
 *   AWAKE ────────────────────▶ WFI | WFE
 *     ▲                            │
 *     └────────────────────────────┘ wake(): considerWaking() after a change of pending state, signalEvent() for WFE
 */
import { BusFault, SRAM, SRAM_SIZE } from './memory.mjs';
import { WFE, WFI, execute } from './thumb.mjs';

/**
 * Cycles from taking an exception to the first cycle of its handler, with memory without wait
 * states (Cortex-M0+ TRM 1.1).
 */
export const ENTRY_CYCLES = 15;
/** Cycles from the return instruction to the first cycle of the resumed program. */
export const EXIT_CYCLES = 13;

export const AWAKE = 0;

export const NMI = 2;
export const HARDFAULT = 3;
export const SVCALL = 11;
export const PENDSV = 14;
export const SYSTICK = 15;

const THREAD_PRIORITY = 4;

/**
 * Extra cycles of a bus access; see bus.mjs.
 * @typedef {{
 *   prefetch(core: Core, cycle: number, pc: number): number,
 *   target(core: Core, cycle: number, address: number): number,
 *   data(core: Core, cycle: number, address: number): number
 * }} Contention
 */

export class Core {
  /**
   * @param {number} id 0 or 1
   * @param {import('./clock.mjs').Clock} clock
   * @param {import('./memory.mjs').Memory} memory
   */
  constructor(id, clock, memory) {
    this.id = id;
    this.clock = clock;
    this.memory = memory;
    this.sram32 = memory.sram32;
    this.sram16 = memory.sram16;
    this.sram8 = memory.sram8;
    this.flash16 = memory.flash16;
    /** r0-r12, active SP, LR; r[15] is unused, see `pc`. */
    this.r = new Int32Array(16);
    this.pc = 0;
    /**
     * `nr` contains the sign (N); `zr` is zero exactly if Z is set. The two variables are separate
     * because MSR can set both flags.
     */
    this.nr = 1;
    this.zr = 1;
    this.c = false;
    this.v = false;
    this.primask = false;
    this.ipsr = 0;
    this.spsel = false;
    this.npriv = false;
    this.bankedSP = 0;

    this.t = 0;
    this.instructions = 0;
    this.sleepCycles = 0;
    this.exceptions = 0;
    this.stallCycles = 0;
    this.sleeping = AWAKE;
    /** False while the core is held in reset or in the bootrom (core 1 before its launch). */
    this.running = false;
    this.event = false;
    this.check = false;
    /** True when the last instruction branched: the prefetch buffer is empty (bus.mjs). */
    this.branched = true;

    this.line = 0;
    this.pending = 0;
    this.enabled = 0;
    this.active = 0;
    this.priority = new Uint8Array(32);
    this.pendNMI = false;
    this.pendSVC = false;
    this.pendPendSV = false;
    this.pendSysTick = false;
    this.prioritySVC = 0;
    this.priorityPendSV = 0;
    this.prioritySysTick = 0;
    this.vtor = 0;
    /** SCR: bit 1 SLEEPONEXIT, bit 2 SLEEPDEEP, bit 4 SEVONPEND. */
    this.scr = 0;

    /** @type {Contention | null} */
    this.contention = null;
    /** The native functions of the boot ROM. @type {import('./rom.mjs').Rom | null} */
    this.rom = null;
    /** @type {{ read(offset: number): number, write(offset: number, value: number): void }} */
    this.ppb = { read: () => 0, write: () => {} };
    /** Called by SEV, which reaches both cores. @type {() => void} */
    this.onSEV = () => {};
    /**
     * Called by BKPT, which ends the run, since there is no debugger to handle it. @type {(core:
     * Core, code: number) => void}
     */
    this.onBreak = () => {};
    /**
     * Called at a fault, before its exception is taken.
     * @type {(core: Core, why: string, locked: boolean) => void}
     */
    this.onFault = () => {};
    /**
     * Called at entry to each handler and at return from it, for analysers.
     * @type {((core: Core, exception: number, entry: boolean) => void) | null}
     */
    this.onException = null;
  }

  /** Sets the state after a core reset; the caller sets SP, PC and VTOR. */
  reset() {
    this.r.fill(0);
    this.nr = this.zr = 1;
    this.c = this.v = this.primask = this.spsel = this.npriv = false;
    this.ipsr = this.bankedSP = 0;
    this.sleeping = AWAKE;
    this.event = false;
    this.check = true;
    this.branched = true;
    this.pending = this.enabled = this.active = 0;
    this.priority.fill(0);
    this.pendNMI = this.pendSVC = this.pendPendSV = this.pendSysTick = false;
    this.prioritySVC = this.priorityPendSV = this.prioritySysTick = 0;
    this.vtor = this.scr = 0;
    this.pending = this.line;
    if (this.rom !== null) this.rom.reset(this.id);
  }

  // ---- program status ----

  get apsr() {
    return (
      (this.nr < 0 ? 0x80000000 : 0) |
      (this.zr === 0 ? 0x40000000 : 0) |
      (this.c ? 0x20000000 : 0) |
      (this.v ? 0x10000000 : 0)
    );
  }

  set apsr(value) {
    this.nr = value & 0x80000000 ? -1 : 1;
    this.zr = value & 0x40000000 ? 0 : 1;
    this.c = (value & 0x20000000) !== 0;
    this.v = (value & 0x10000000) !== 0;
  }

  get msp() {
    return this.spsel ? this.bankedSP : this.r[13];
  }

  set msp(value) {
    if (this.spsel) this.bankedSP = value & ~3;
    else this.r[13] = value & ~3;
  }

  get psp() {
    return this.spsel ? this.r[13] : this.bankedSP;
  }

  set psp(value) {
    if (this.spsel) this.r[13] = value & ~3;
    else this.bankedSP = value & ~3;
  }

  /** @param {boolean} process */
  selectStack(process) {
    if (this.spsel === process) return;
    const other = this.bankedSP;
    this.bankedSP = this.r[13];
    this.r[13] = other;
    this.spsel = process;
  }

  // ---- memory ----

  /** @param {number} a unsigned address @returns {number} signed 32-bit value */
  load32(a) {
    const o = a - SRAM;
    if (o >= 0 && o < SRAM_SIZE && (a & 3) === 0) return this.sram32[o >>> 2];
    return this.memory.read32(a, this);
  }

  /** @param {number} a @param {number} value */
  store32(a, value) {
    const o = a - SRAM;
    if (o >= 0 && o < SRAM_SIZE && (a & 3) === 0) this.sram32[o >>> 2] = value;
    else this.memory.write32(a, value, this);
  }

  /** @param {number} a @returns {number} */
  load16(a) {
    const o = a - SRAM;
    if (o >= 0 && o < SRAM_SIZE && (a & 1) === 0) return this.sram16[o >>> 1];
    return this.memory.read16(a, this);
  }

  /** @param {number} a @returns {number} */
  load8(a) {
    const o = a - SRAM;
    if (o >= 0 && o < SRAM_SIZE) return this.sram8[o];
    return this.memory.read8(a, this);
  }

  // ---- NVIC ----

  /** Drives an interrupt line of this core. @param {number} irq 0-31 @param {boolean} level */
  setLine(irq, level) {
    const bit = 1 << irq;
    if (!level) {
      this.line &= ~bit;
      return;
    }
    if (this.line & bit) return;
    this.line |= bit;
    this.pend(bit);
  }

  /**
   * Latches interrupts. Under SEVONPEND a newly pending interrupt raises an event, whether or not
   * it is enabled (ARMv6-M B1.5.18).
   * @param {number} bits
   */
  pend(bits) {
    const fresh = bits & ~this.pending;
    if (fresh === 0) return;
    this.pending |= bits;
    this.check = true;
    if (this.scr & 16) this.signalEvent();
    if (this.sleeping) this.considerWaking();
  }

  /**
   * Clears pending bits (ICPR); an interrupt whose line is still high stays pending.
   * @param {number} bits
   */
  unpend(bits) {
    this.pending = (this.pending & ~bits) | (this.line & bits & ~this.active);
  }

  pendSystemTick() {
    if (this.pendSysTick) return;
    this.pendSysTick = true;
    this.check = true;
    if (this.scr & 16) this.signalEvent();
    if (this.sleeping) this.considerWaking();
  }

  pendSystemCall() {
    if (this.pendPendSV) return;
    this.pendPendSV = true;
    this.check = true;
    if (this.scr & 16) this.signalEvent();
    if (this.sleeping) this.considerWaking();
  }

  /** @param {number} exception @returns {number} its priority; lower runs first */
  priorityOf(exception) {
    if (exception >= 16) return this.priority[exception - 16];
    switch (exception) {
      case 0:
        return THREAD_PRIORITY;
      case NMI:
        return -2;
      case HARDFAULT:
        return -1;
      case SVCALL:
        return this.prioritySVC;
      case PENDSV:
        return this.priorityPendSV;
      case SYSTICK:
        return this.prioritySysTick;
      default:
        return THREAD_PRIORITY;
    }
  }

  /**
   * The pending exception with the highest priority, whatever the current priority is; 0 if none is
   * pending. The lower number wins a tie.
   */
  firstPending() {
    let best = 0;
    let bestPriority = THREAD_PRIORITY;
    if (this.pendNMI) return NMI;
    if (this.pendSVC && this.prioritySVC < bestPriority) {
      best = SVCALL;
      bestPriority = this.prioritySVC;
    }
    if (this.pendPendSV && this.priorityPendSV < bestPriority) {
      best = PENDSV;
      bestPriority = this.priorityPendSV;
    }
    if (this.pendSysTick && this.prioritySysTick < bestPriority) {
      best = SYSTICK;
      bestPriority = this.prioritySysTick;
    }
    let set = this.pending & this.enabled;
    while (set) {
      const irq = 31 - Math.clz32(set & -set);
      if (this.priority[irq] < bestPriority) {
        best = 16 + irq;
        bestPriority = this.priority[irq];
      }
      set &= set - 1;
    }
    return best;
  }

  /**
   * Takes the first pending exception if it preempts.
   * @returns {number} cycles spent, 0 if none was taken
   */
  takeException() {
    this.check = false;
    const exception = this.firstPending();
    if (exception === 0) return 0;
    let current = this.priorityOf(this.ipsr);
    if (this.primask && current > 0) current = 0;
    if (this.priorityOf(exception) >= current) return 0;
    if (exception >= 16) {
      const bit = 1 << (exception - 16);
      this.pending &= ~bit;
      this.active |= bit;
    } else if (exception === NMI) this.pendNMI = false;
    else if (exception === SVCALL) this.pendSVC = false;
    else if (exception === PENDSV) this.pendPendSV = false;
    else this.pendSysTick = false;
    this.check = true;
    return this.enter(exception, this.pc);
  }

  /**
   * Exception entry (ARMv6-M B1.5.6).
   * @param {number} exception
   * @param {number} returnAddress
   * @returns {number} cycles
   */
  enter(exception, returnAddress) {
    const r = this.r;
    const sp = r[13];
    const frame = ((sp - 32) & ~4) >>> 0;
    const xpsr = this.apsr | this.ipsr | 0x01000000 | (sp & 4 ? 0x200 : 0);
    const words = [r[0], r[1], r[2], r[3], r[12], r[14], returnAddress | 0, xpsr];
    let cycles = ENTRY_CYCLES;
    for (let i = 0; i < 8; i++) {
      if (this.contention)
        cycles += this.contention.data(this, this.t + cycles - ENTRY_CYCLES + 4 + i, frame + 4 * i);
      this.store32(frame + 4 * i, words[i]);
    }
    r[13] = frame;
    r[14] = this.ipsr ? 0xfffffff1 : this.spsel ? 0xfffffffd : 0xfffffff9;
    this.ipsr = exception;
    this.selectStack(false);
    this.event = true;
    this.exceptions++;
    this.sleeping = AWAKE;
    this.branched = true;
    this.pc = (this.load32((this.vtor + 4 * exception) >>> 0) & ~1) >>> 0;
    if (this.onException) this.onException(this, exception, true);
    return cycles;
  }

  /**
   * Exception return (ARMv6-M B1.5.8).
   * @param {number} code EXC_RETURN
   * @returns {number} cycles beyond the return instruction
   */
  leave(code) {
    const returning = this.ipsr;
    const kind = code & 0xf;
    if ((kind !== 1 && kind !== 9 && kind !== 13) || returning === 0)
      throw new BusFault('bad exception return', code);
    if (this.onException) this.onException(this, returning, false);
    if (returning >= 16) {
      const bit = 1 << (returning - 16);
      this.active &= ~bit;
      if (this.line & bit) this.pend(bit);
    }
    this.selectStack(kind === 13);
    const r = this.r;
    const frame = r[13] >>> 0;
    let cycles = EXIT_CYCLES;
    if (this.contention)
      for (let i = 0; i < 8; i++)
        cycles += this.contention.data(this, this.t + 2 + cycles - EXIT_CYCLES + i, frame + 4 * i);
    r[0] = this.load32(frame);
    r[1] = this.load32(frame + 4);
    r[2] = this.load32(frame + 8);
    r[3] = this.load32(frame + 12);
    r[12] = this.load32(frame + 16);
    r[14] = this.load32(frame + 20);
    this.pc = (this.load32(frame + 24) & ~1) >>> 0;
    const psr = this.load32(frame + 28);
    r[13] = (frame + 32) | (psr & 0x200 ? 4 : 0);
    this.apsr = psr;
    this.ipsr = kind === 1 ? psr & 0x3f : 0;
    this.event = true;
    this.check = true;
    this.branched = true;
    if (kind !== 1 && this.scr & 2) this.sleep(WFI);
    return cycles;
  }

  // ---- sleep ----

  /**
   * @param {1 | 2} how WFI or WFE; called by the instruction
   * @returns {boolean} whether the core now sleeps
   */
  sleep(how) {
    if (how === WFE && this.event) {
      this.event = false;
      return false;
    }
    if (this.wouldWake(how)) return false;
    this.sleeping = how;
    return true;
  }

  /** @param {number} how */
  wouldWake(how) {
    const exception = this.firstPending();
    if (exception === 0) return false;
    let current = this.priorityOf(this.ipsr);
    if (how === WFE && this.primask && current > 0) current = 0;
    return this.priorityOf(exception) < current;
  }

  considerWaking() {
    if (this.sleeping && this.wouldWake(this.sleeping)) this.wake();
  }

  /** Sets the event register, or ends a WFE (ARMv6-M B1.5.18). */
  signalEvent() {
    if (this.sleeping === WFE) this.wake();
    else this.event = true;
  }

  wake() {
    this.sleeping = AWAKE;
    this.check = true;
    const now = this.clock.cycle;
    if (now > this.t) {
      this.sleepCycles += now - this.t;
      this.t = now;
    }
  }

  // ---- execution ----

  /** Runs one instruction, or enters one exception. @returns {number} the cycles spent */
  step() {
    try {
      if (this.check) {
        const cycles = this.takeException();
        if (cycles) return cycles;
      }
      this.instructions++;
      return execute(this);
    } catch (error) {
      if (error instanceof BusFault) return this.fault(error.message);
      throw error;
    }
  }

  /**
   * HardFault, or lockup when one is already being handled (ARMv6-M B1.5.14).
   * @param {string} why
   * @returns {number} cycles
   */
  fault(why) {
    const locked = this.ipsr === HARDFAULT || this.ipsr === NMI;
    this.onFault(this, why, locked);
    if (locked) {
      this.running = false;
      return 1;
    }
    try {
      return this.enter(HARDFAULT, this.pc);
    } catch (error) {
      if (!(error instanceof BusFault)) throw error;
      this.onFault(this, `${error.message} while entering HardFault`, true);
      this.running = false;
      return 1;
    }
  }
}
