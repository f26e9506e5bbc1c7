// @ts-check
/**
 * Virtual time, counted in clk_sys cycles.
 *
 * Invariants
 * - `cycle` never decreases; an alarm runs with `cycle` equal to the cycle for which it was set.
 * - Alarms run in order of their cycle; alarms of one cycle run in the order in which they were set
 *   (FIFO), so a run is reproducible.
 * - `next` is the cycle of the earliest alarm, or Infinity: the run loop compares time with it
 *   before every instruction.
 *
 * The peripherals of rp2040js count in nanoseconds (`nanos`, `schedule(deltaNanos)`). For them a
 * linear map gives nanos = baseNanos + (cycle - baseCycle) * cycleNanos; the map gets a new base
 * when the firmware changes clk_sys.
 */

/** One pending or idle alarm. */
export class Alarm {
  /** @param {Clock} clock @param {() => void} callback */
  constructor(clock, callback) {
    this.clock = clock;
    this.callback = callback;
    /** @type {number} the cycle at which the alarm runs */
    this.cycle = 0;
    /** @type {number} the same moment in nanoseconds, kept for re-basing; NaN when set in cycles */
    this.nanos = NaN;
    /** @type {Alarm | null} */
    this.link = null;
    this.scheduled = false;
  }

  /** Sets the alarm `deltaNanos` nanoseconds from now. @param {number} deltaNanos */
  schedule(deltaNanos) {
    const clock = this.clock;
    const nanos = clock.nanos + deltaNanos;
    this.scheduleAt(clock.cycleOf(nanos));
    this.nanos = nanos;
  }

  /** Sets the alarm for a cycle; an alarm in the past runs immediately. @param {number} cycle */
  scheduleAt(cycle) {
    if (this.scheduled) this.cancel();
    this.cycle = cycle < this.clock.cycle ? this.clock.cycle : cycle;
    this.nanos = NaN;
    this.clock.insert(this);
  }

  cancel() {
    if (this.scheduled) this.clock.remove(this);
  }
}

export class Clock {
  /** @param {number} [hz] frequency of clk_sys */
  constructor(hz = 125e6) {
    this.cycle = 0;
    this.next = Infinity;
    this.hz = hz;
    this.cycleNanos = 1e9 / hz;
    this.baseCycle = 0;
    this.baseNanos = 0;
    /** @type {Alarm | null} */
    this.head = null;
  }

  get nanos() {
    return this.baseNanos + (this.cycle - this.baseCycle) * this.cycleNanos;
  }

  /** The first cycle that is not before a moment. @param {number} nanos */
  cycleOf(nanos) {
    // The small allowance prevents 3000.0000001 ns from costing one more cycle: periods such as
    // 1e9/12e6 are not exact in binary.
    return this.baseCycle + Math.ceil((nanos - this.baseNanos) / this.cycleNanos - 1e-6);
  }

  /** The moment of a cycle, in nanoseconds. @param {number} cycle */
  nanosOf(cycle) {
    return this.baseNanos + (cycle - this.baseCycle) * this.cycleNanos;
  }

  /**
   * Changes the frequency from the current cycle on. Alarms that were set in nanoseconds keep their
   * moment.
   * @param {number} hz
   */
  setFrequency(hz) {
    this.baseNanos = this.nanos;
    this.baseCycle = this.cycle;
    this.hz = hz;
    this.cycleNanos = 1e9 / hz;
    const moved = [];
    for (let a = this.head; a; a = a.link) if (!Number.isNaN(a.nanos)) moved.push(a);
    for (const a of moved) {
      const nanos = a.nanos;
      a.scheduleAt(this.cycleOf(nanos));
      a.nanos = nanos;
    }
  }

  /** @param {() => void} callback */
  createAlarm(callback) {
    return new Alarm(this, callback);
  }

  /** @param {Alarm} alarm */
  insert(alarm) {
    let before = null;
    let at = this.head;
    while (at && at.cycle <= alarm.cycle) {
      before = at;
      at = at.link;
    }
    alarm.link = at;
    if (before) before.link = alarm;
    else {
      this.head = alarm;
      this.next = alarm.cycle;
    }
    alarm.scheduled = true;
  }

  /** @param {Alarm} alarm */
  remove(alarm) {
    let before = null;
    let at = this.head;
    while (at && at !== alarm) {
      before = at;
      at = at.link;
    }
    if (at) {
      if (before) before.link = at.link;
      else {
        this.head = at.link;
        this.next = this.head ? this.head.cycle : Infinity;
      }
    }
    alarm.scheduled = false;
    alarm.link = null;
  }

  /** Moves time to the earliest alarm and runs it. */
  runNext() {
    const alarm = this.head;
    if (!alarm) return;
    if (alarm.cycle > this.cycle) this.cycle = alarm.cycle;
    this.head = alarm.link;
    this.next = this.head ? this.head.cycle : Infinity;
    alarm.scheduled = false;
    alarm.link = null;
    alarm.callback();
  }
}
