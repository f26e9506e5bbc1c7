// @ts-check
/**
 * Records how long the chip was in each low-power state, and which clocks run in that state (RP2040
 * datasheet 2.11, 2.15.3.5). No current is modelled.
 *
 *   run ──both cores sleep──► wait (WFE, WFI: every clock runs)
 *                         └─► sleep (both with SLEEPDEEP: only the clocks of SLEEP_EN0/1 run)
 *
 * Invariants
 * - A core that has not been launched counts as asleep with SLEEPDEEP, because the boot ROM is
 *   assumed to wait in this state.
 * - The sum of the three times is the time since the start.
 * - The emulated blocks continue to run in the state `sleep`, whatever SLEEP_EN0/1 contain. If the
 *   timer or its tick has no clock there, a warning reports that the timer of a chip would stop.
 */

/** @typedef {import('./machine.mjs').Machine} Machine */

const SLEEPDEEP = 4;
const WAKE_EN0 = 0xa0;
const SLEEP_EN1 = 0xac;
/** The bits of SLEEP_EN1 that the timer needs: its own, and that of the watchdog, which ticks it. */
const TIMER = (1 << 5) | (1 << 12);

export class Power {
  /** @param {Machine} machine */
  constructor(machine) {
    this.machine = machine;
    /** WAKE_EN0, WAKE_EN1, SLEEP_EN0, SLEEP_EN1 as after a reset. */
    this.clocks = [0xffffffff, 0x7fff, 0xffffffff, 0x7fff];
    this.wait = 0;
    this.sleep = 0;
    this.warned = false;
  }

  /** Puts the four registers beside those of the package. @param {any} block the clocks */
  connect(block) {
    const [read, write] = [block.readUint32.bind(block), block.writeUint32.bind(block)];
    const index = (/** @type {number} */ offset) =>
      offset >= WAKE_EN0 && offset <= SLEEP_EN1 ? (offset - WAKE_EN0) / 4 : -1;
    block.readUint32 = (/** @type {number} */ offset) =>
      index(offset) < 0 ? read(offset) : this.clocks[index(offset)];
    block.writeUint32 = (/** @type {number} */ offset, /** @type {number} */ value) => {
      if (index(offset) < 0) write(offset, value);
      else this.clocks[index(offset)] = value >>> 0;
    };
  }

  /** Counts the time until `cycle`, in which both cores sleep. @param {number} cycle */
  asleepUntil(cycle) {
    const { cores, clock } = this.machine;
    const began = Math.max(clock.cycle, ...cores.map((core) => (core.running ? core.t : 0)));
    if (cycle <= began) return;
    if (!cores.every((core) => !core.running || core.scr & SLEEPDEEP)) {
      this.wait += cycle - began;
      return;
    }
    this.sleep += cycle - began;
    if (this.warned || (this.clocks[3] & TIMER) === TIMER) return;
    this.warned = true;
    this.machine.warn(
      'both cores sleep with SLEEPDEEP, and SLEEP_EN1 has no clock for the timer or the watchdog, ' +
        'which ticks it: the timer of a chip would stand still',
    );
  }

  /** The times in cycles. */
  get times() {
    const { cycle } = this.machine;
    const asleep = this.wait + this.sleep;
    return { run: cycle - asleep, wait: this.wait, sleep: this.sleep };
  }
}
