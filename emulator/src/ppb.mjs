// @ts-check
/**
 * The private peripherals of one core: NVIC and SCB registers, SysTick (ARMv6-M B3.2-B3.4).
 *
 * Invariants
 * - SysTick does not count every cycle: its value is computed from the cycle at which it last had a
 *   known value (`base`, `value`), and one alarm waits for the next transition from 1 to 0.
 * - The period is RELOAD + 1 cycles. A write to CVR clears the counter, and the next tick loads
 *   RELOAD (ARMv6-M B3.3).
 */
import { Alarm } from './clock.mjs';

/** RP2040: Cortex-M0+ r0p1. */
const CPUID = 0x410cc601;

export class Ppb {
  /** @param {import('./core.mjs').Core} core @param {import('./clock.mjs').Clock} clock */
  constructor(core, clock) {
    this.core = core;
    this.clock = clock;
    this.alarm = new Alarm(clock, () => this.reachedZero());
    this.enabled = false;
    this.interrupt = false;
    this.processorClock = false;
    this.counted = false;
    this.reload = 0;
    this.base = 0;
    this.value = 0;
  }

  reset() {
    this.alarm.cancel();
    this.enabled = this.interrupt = this.processorClock = this.counted = false;
    this.reload = this.value = this.base = 0;
  }

  // ---- SysTick ----

  /** The cycles of one SysTick count: 1, or the cycles of the 1 µs reference tick. */
  get unit() {
    return this.processorClock ? 1 : this.clock.hz / 1e6;
  }

  get ticks() {
    return Math.floor((this.clock.cycle - this.base) / this.unit + 1e-9);
  }

  get current() {
    if (!this.enabled) return this.value;
    const ticks = this.ticks;
    if (ticks <= this.value) return this.value - ticks;
    const phase = (ticks - this.value) % (this.reload + 1);
    return phase === 0 ? 0 : this.reload + 1 - phase;
  }

  /**
   * Makes the current cycle the known point of the counter, and sets the alarm for the next zero.
   * @param {number} value
   */
  rebase(value) {
    this.value = value;
    this.base = this.clock.cycle;
    this.alarm.cancel();
    if (!this.enabled) return;
    const ticks = value > 0 ? value : this.reload > 0 ? this.reload + 1 : 0;
    if (ticks) this.alarm.scheduleAt(this.base + Math.ceil(ticks * this.unit - 1e-9));
  }

  reachedZero() {
    this.counted = true;
    this.rebase(0);
    if (this.interrupt) this.core.pendSystemTick();
  }

  // ---- registers ----

  /** @param {number} offset from 0xe000e000 @returns {number} */
  read(offset) {
    const core = this.core;
    switch (offset) {
      case 0x010: {
        const value =
          (this.counted ? 1 << 16 : 0) |
          (this.processorClock ? 4 : 0) |
          (this.interrupt ? 2 : 0) |
          (this.enabled ? 1 : 0);
        this.counted = false;
        return value;
      }
      case 0x014:
        return this.reload;
      case 0x018:
        return this.current;
      case 0x01c:
        return 0x0000270f;
      case 0x100:
      case 0x180:
        return core.enabled;
      case 0x200:
      case 0x280:
        return core.pending;
      case 0xd00:
        return CPUID;
      case 0xd04: {
        const first = core.firstPending();
        return (
          (core.pendNMI ? 1 << 31 : 0) |
          (core.pendPendSV ? 1 << 28 : 0) |
          (core.pendSysTick ? 1 << 26 : 0) |
          ((core.pending & core.enabled) !== 0 ? 1 << 22 : 0) |
          (first << 12) |
          core.ipsr
        );
      }
      case 0xd08:
        return core.vtor;
      case 0xd0c:
        return 0xfa050000;
      case 0xd10:
        return core.scr;
      case 0xd14:
        return 0x208;
      case 0xd1c:
        return core.prioritySVC << 30;
      case 0xd20:
        return (core.prioritySysTick << 30) | (core.priorityPendSV << 22);
      case 0xd24:
        return core.pendSVC ? 1 << 15 : 0;
    }
    if (offset >= 0x400 && offset < 0x420) {
      let value = 0;
      for (let i = 0; i < 4; i++) value |= core.priority[offset - 0x400 + i] << (8 * i + 6);
      return value;
    }
    return 0; // the MPU is not modelled: its registers read as zero, as reserved ones do
  }

  /** @param {number} offset @param {number} value */
  write(offset, value) {
    const core = this.core;
    switch (offset) {
      case 0x010: {
        const now = this.current;
        this.interrupt = (value & 2) !== 0;
        this.processorClock = (value & 4) !== 0;
        this.enabled = (value & 1) !== 0;
        this.rebase(now);
        return;
      }
      case 0x014: {
        const now = this.current;
        this.reload = value & 0xffffff;
        this.rebase(now);
        return;
      }
      case 0x018:
        this.counted = false;
        this.rebase(0);
        return;
      case 0x100:
        core.enabled |= value;
        core.check = true;
        return;
      case 0x180:
        core.enabled &= ~value;
        return;
      case 0x200:
        core.pend(value);
        return;
      case 0x280:
        core.unpend(value);
        return;
      case 0xd04:
        if (value & (1 << 31)) core.pendNMI = true;
        if (value & (1 << 28)) core.pendSystemCall();
        if (value & (1 << 27)) core.pendPendSV = false;
        if (value & (1 << 26)) core.pendSystemTick();
        if (value & (1 << 25)) core.pendSysTick = false;
        core.check = true;
        return;
      case 0xd08:
        core.vtor = (value & ~0xff) >>> 0;
        return;
      case 0xd10:
        core.scr = value & 0x16;
        return;
      case 0xd1c:
        core.prioritySVC = value >>> 30;
        core.check = true;
        return;
      case 0xd20:
        core.prioritySysTick = value >>> 30;
        core.priorityPendSV = (value >>> 22) & 3;
        core.check = true;
        return;
    }
    if (offset >= 0x400 && offset < 0x420) {
      for (let i = 0; i < 4; i++) core.priority[offset - 0x400 + i] = (value >>> (8 * i + 6)) & 3;
      core.check = true;
    }
  }
}
