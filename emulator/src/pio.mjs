// @ts-check
/**
 * The package's PIO, driven by the system clock: each state machine executes on its own divided
 * ticks (RP2040 datasheet 3.5.5).
 *
 * Invariants
 * - `next[n]` is machine n's next tick in 1/256 cycles. Ticks are `divider(n)` apart, so a
 *   fractional divider jitters by one cycle and never drifts. An instruction takes one tick and its
 *   delay.
 * - A stalled machine is parked: it costs nothing until something that it may wait for changes;
 *   then it checks at its next tick. WAIT on a pin sees the pad two cycles late, because of the
 *   input synchroniser (3.5.6.3).
 * - All machines that tick in the same cycle execute before the pads change.
 */
import { FIFO, RPPIO } from 'rp2040js';
import { Alarm } from './clock.mjs';

const SYNC_CYCLES = 2;
const WAIT_PIN = 1;
const CTRL = 0;
const SHIFTCTRL = 0x0d0;
const STRIDE = 0x18;

export class LockstepPio extends RPPIO {
  /**
   * @param {import('rp2040js').RP2040} rp
   * @param {import('./clock.mjs').Clock} clock
   * @param {number} index
   */
  constructor(rp, clock, index) {
    super(rp, `PIO${index}`, 7 + 2 * index, index);
    this.clock = clock;
    this.alarm = new Alarm(clock, () => this.tick());
    this.next = [0, 0, 0, 0];
    this.parked = [false, false, false, false];
    this.ticking = false;
    /** @type {(() => void)[]} */
    this.look = [];
    this.machines.forEach((machine, n) => {
      this.look[n] = machine.checkWait.bind(machine);
      machine.checkWait = () => this.mayGoOn(n);
      machine.clkDivRestart = () => {
        this.next[n] = (this.clock.cycle + 1) * 256;
      };
    });
  }

  /** The distance between two ticks in 1/256 cycles. @param {number} n */
  divider(n) {
    const machine = this.machines[n];
    // An integer part of 0 means 65536 without a fraction (3.5.5).
    return machine.clockDivInt === 0
      ? 65536 * 256
      : machine.clockDivInt * 256 + machine.clockDivFrac;
  }

  /** Makes rp2040js check whether the wait of machine n has ended. @param {number} n */
  mayGoOn(n) {
    const machine = this.machines[n];
    if (this.ticking || !machine.enabled) {
      this.look[n]();
      return;
    }
    if (!machine.waiting || !this.parked[n]) return;
    this.parked[n] = false;
    const sync =
      /** @type {number} */ (machine.waitType) === WAIT_PIN &&
      !(this.inputSyncBypass & (1 << machine.waitIndex))
        ? SYNC_CYCLES
        : 0;
    this.notBefore(n, this.clock.cycle + 1 + sync);
    this.arm();
  }

  /**
   * Moves machine n's next tick to its first possible tick in or after a cycle.
   * @param {number} n
   * @param {number} cycle
   */
  notBefore(n, cycle) {
    const late = (cycle - 1) * 256 + 1 - this.next[n];
    if (late > 0) {
      const divider = this.divider(n);
      this.next[n] += Math.ceil(late / divider) * divider;
    }
  }

  arm() {
    let first = Infinity;
    for (let n = 0; n < 4; n++)
      if (this.machines[n].enabled && !this.parked[n] && this.next[n] < first) first = this.next[n];
    if (first === Infinity) this.alarm.cancel();
    else {
      const cycle = Math.ceil(first / 256);
      if (!this.alarm.scheduled || this.alarm.cycle !== cycle) this.alarm.scheduleAt(cycle);
    }
  }

  tick() {
    const now = this.clock.cycle * 256;
    this.ticking = true;
    for (let n = 0; n < 4; n++) {
      const machine = this.machines[n];
      if (!machine.enabled || this.parked[n] || this.next[n] > now) continue;
      const before = machine.cycles;
      if (machine.waiting) {
        this.look[n]();
        if (machine.waiting) {
          this.parked[n] = true;
          this.next[n] += this.divider(n);
          continue;
        }
        this.next[n] += (1 + machine.cycles - before) * this.divider(n);
      } else {
        machine.updatePC = true;
        machine.executeInstruction(this.instructions[machine.pc]);
        if (machine.updatePC) machine.nextPC();
        this.next[n] += Math.max(1, machine.cycles - before) * this.divider(n);
        if (machine.waiting) this.parked[n] = true;
      }
    }
    this.ticking = false;
    this.checkChangedPins();
    this.arm();
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    const enabled = this.machines.map((machine) => machine.enabled);
    super.writeUint32(offset, value);
    if (offset === CTRL)
      this.machines.forEach((machine, n) => {
        if (!machine.enabled) return;
        if (!enabled[n]) this.next[n] = (this.clock.cycle + 1) * 256;
        // A restart ends a stall too, so the machine checks again.
        this.parked[n] = false;
      });
    else if (offset >= 0xc8 && (offset - SHIFTCTRL) % STRIDE === 0 && offset < 0x128)
      this.joinFifos((offset - SHIFTCTRL) / STRIDE);
    else if (offset >= 0xc8 && offset < 0x128)
      // An instruction written to SMn_INSTR may have begun or ended a stall, and it moves pads
      // immediately.
      this.parked = this.parked.map((parked, n) => parked && this.machines[n].waiting);
    if (offset < 0x48 || offset >= 0xc8) {
      this.checkChangedPins();
      this.machines.forEach(
        (machine, n) =>
          machine.enabled && !this.parked[n] && this.notBefore(n, this.clock.cycle + 1),
      );
      this.arm();
    }
  }

  /**
   * FJOIN gives one direction both FIFOs' entries (3.5.4.1); joining empties them.
   * @param {number} n
   */
  joinFifos(n) {
    const machine = this.machines[n];
    const joinTx = (machine.shiftCtrl >>> 30) & 1;
    const joinRx = (machine.shiftCtrl >>> 31) & 1;
    const sizes = [joinTx ? 8 : joinRx ? 0 : 4, joinRx ? 8 : joinTx ? 0 : 4];
    if (machine.txFIFO.size === sizes[0] && machine.rxFIFO.size === sizes[1]) return;
    Object.assign(machine, { txFIFO: new FIFO(sizes[0]), rxFIFO: new FIFO(sizes[1]) });
  }

  run() {
    // Empty on purpose. rp2040js would step in real time here; instead, writeUint32 has set an
    // alarm of the clock.
  }

  stop() {
    for (const machine of this.machines) machine.enabled = false;
    this.stopped = true;
    this.alarm.cancel();
  }
}
