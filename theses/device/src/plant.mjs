// @ts-check
/**
 * The tunnelling-ball device around an emulated RP2040: stepper and disc, magnet, ball, photogates,
 * button.
 *
 * Invariants
 * - The plant knows only the pins of the controller: its behaviour follows from the edges on them,
 *   from the geometry and from the seed.
 * - Times are microseconds of the machine's virtual clock, fractional; an edge has its exact cycle.
 * - The disc follows the pulses (rising edges on STEP) evenly between them: a pulse requests
 *   the next microstep, and the turning rotor is half a microstep behind that. The disc starts with
 *   a hole under the tube.
 * - Pulses faster than the motor can follow without a load (thesis 8.2) lose steps: afterwards the
 *   angle means nothing, and every drop fails as `stalled`.
 *
 *   no ball ── placeBall() ──▶ held ── magnet off ──▶ falling ── arrival ──▶ no ball, onVerdict(drop)
 */
import { fallOf, GEOMETRY, verdictOf } from './geometry.mjs';
import { randomOf } from './random.mjs';

export const PINS = Object.freeze({
  step: 16,
  button: 17,
  magnet: 22,
  gates: Object.freeze([27, 26]),
});

/**
 * @typedef {{
 *   geometry?: import('./geometry.mjs').Geometry, seed?: number, pulsesPerTurn?: number, topTurns?: number,
 *   fallSpread?: number, fallOffset?: number, airSpread?: number, noise?: boolean,
 * }} PlantOptions
 *   fallSpread: the time from magnet off to arrival varies by plus or minus this, us (2000);
 *   fallOffset: and is longer by this, us (0); airSpread: how much of it is air in the tube, which
 *   also moves the times from gate to disc: plus or minus us over the whole fall (2000, so about
 *   200 between the upper gate and the disc; thesis 8.3); topTurns: turns a second above which the
 *   motor stalls (10)
 *
 * @typedef {{ pin: number, level: 0 | 1, at: number }} Edge
 * @typedef {{
 *   number: number, released: number, arrival: number, fallError: number, airError: number, gates: Edge[], bursts: number[],
 *   angle: number, turnsPerSecond: number, stalled: boolean, verdict: ReturnType<typeof verdictOf>,
 *   passes: boolean, steps: number[], fall: ReturnType<typeof fallOf>, leaves: number,
 * }} Drop
 */

export class Plant {
  /**
   * @param {import('../../../emulator/src/index.mjs').Machine} machine
   * @param {PlantOptions} [options]
   */
  constructor(machine, options = {}) {
    this.machine = machine;
    this.geometry = options.geometry ?? GEOMETRY;
    this.pulsesPerTurn = options.pulsesPerTurn ?? 1600;
    this.topTurns = options.topTurns ?? 10;
    this.fallSpread = options.fallSpread ?? 2000;
    this.fallOffset = options.fallOffset ?? 0;
    this.airSpread = options.airSpread ?? 2000;
    this.noise = options.noise ?? true;
    this.random = randomOf(options.seed ?? 1);
    /** The time of each pulse since `firstPulse`. @type {number[]} */
    this.pulses = [];
    this.firstPulse = 0;
    this.stalled = false;
    /** @type {'none' | 'held' | 'falling'} */
    this.ball = 'none';
    this.drops = 0;
    /** @type {((drop: Drop) => void) | null} */
    this.onVerdict = null;
    machine.drive(PINS.button, null);
    for (const gate of PINS.gates) machine.drive(gate, 0);
    machine.watch(PINS.step, (_, level) => level && this.pulse(machine.micros));
    machine.watch(
      PINS.magnet,
      (_, level) => !level && this.ball === 'held' && this.letGo(machine.micros),
    );
  }

  /** @param {number} at */
  pulse(at) {
    const last = this.pulses.length ? this.pulses[this.pulses.length - 1] : -Infinity;
    if (at - last < 1e6 / (this.topTurns * this.pulsesPerTurn) - 0.01) this.stalled = true;
    this.pulses.push(at);
    if (this.pulses.length > 40000 && this.ball !== 'falling') {
      this.pulses.splice(0, 20000);
      this.firstPulse += 20000;
    }
  }

  /**
   * Returns how many pulses the disc has turned by a moment, as a fraction.
   * @param {number} at not after the last pulse but one
   */
  turned(at) {
    let k = this.pulses.length;
    while (k > 0 && this.pulses[k - 1] > at) k--;
    if (k === 0 || k === this.pulses.length) return this.firstPulse + k;
    return (
      this.firstPulse + k - 0.5 + (at - this.pulses[k - 1]) / (this.pulses[k] - this.pulses[k - 1])
    );
  }

  /**
   * Returns the turns a second over the last pulses before a moment. @param {number} [at]
   * @param {number} [over] pulses
   */
  turnsPerSecond(at = this.machine.micros, over = 8) {
    let k = this.pulses.length;
    while (k > 0 && this.pulses[k - 1] > at) k--;
    if (k <= over || at - this.pulses[k - 1] > 1e5) return 0;
    return (over / (this.pulses[k - 1] - this.pulses[k - 1 - over]) / this.pulsesPerTurn) * 1e6;
  }

  /**
   * Puts the ball under the magnet. Throws an Error if the magnet is off or the ball is elsewhere.
   */
  placeBall() {
    if (this.ball !== 'none')
      throw new Error(`the ball is ${this.ball} already: wait for its verdict before the next one`);
    if (this.machine.level(PINS.magnet) !== 1)
      throw new Error(
        'the magnet is off and does not hold a ball: arm the device first (press its button)',
      );
    this.ball = 'held';
  }

  /** @param {number} released the time at which the magnet went off */
  letGo(released) {
    const { machine, random, geometry } = this;
    this.ball = 'falling';
    const fallError = random.between(-this.fallSpread, this.fallSpread) + this.fallOffset;
    const airError = random.between(-this.airSpread, this.airSpread);
    const fall = fallOf(geometry, geometry.fallTime + airError / 1e6);
    // The magnet releases the ball a little before or after the nominal moment, so that the whole
    // fall is off by fallError.
    const arrival = released + fallOf(geometry).arrival * 1e6 + fallError;
    const leaves = arrival - fall.arrival * 1e6;
    /** @type {Edge[]} */
    const gates = [];
    /** @type {number[]} */
    const bursts = [];
    fall.gates.forEach(({ blocked, free }, i) => {
      for (const [time, level] of /** @type {[number, 0 | 1][]} */ ([
        [blocked, 1],
        [free, 0],
      ]))
        bursts.push(this.gateEdge(PINS.gates[i], level, leaves + time * 1e6, gates));
    });
    this.at(arrival + 2000, () =>
      this.judge({ released, arrival, leaves, fallError, airError, gates, bursts, fall }),
    );
  }

  /**
   * Calls f at a moment, or now if the moment is past.
   * @param {number} micros
   * @param {() => void} f
   */
  at(micros, f) {
    this.machine.after(Math.max(0, micros - this.machine.micros), f);
  }

  /**
   * Makes an edge of a photogate: a burst of 4 to 10 edges within a few microseconds (thesis 8.3),
   * which ends at the level.
   * @param {number} pin
   * @param {0 | 1} level
   * @param {number} at
   * @param {Edge[]} record
   * @returns {number} the edges towards `level`
   */
  gateEdge(pin, level, at, record) {
    const towards = this.noise ? this.random.whole(4, 10) : 1;
    let time = at;
    for (let n = 0; n < 2 * towards - 1; n++) {
      const to = /** @type {0 | 1} */ (n % 2 ? 1 - level : level);
      this.at(time, () => {
        this.machine.drive(pin, to);
        record.push({ pin, level: to, at: this.machine.micros });
      });
      time += this.random.between(0.08, 0.4);
    }
    return towards;
  }

  /**
   * @param {Pick<Drop, 'released' | 'arrival' | 'leaves' | 'fallError' | 'airError' | 'gates' |
   *   'bursts' | 'fall'>} drop
   */
  judge(drop) {
    const turned = this.turned(drop.arrival);
    const angle = (2 * Math.PI * turned) / this.pulsesPerTurn;
    const turnsPerSecond = this.turnsPerSecond(drop.arrival);
    const verdict = verdictOf(this.geometry, { speed: drop.fall.speed, turnsPerSecond, angle });
    this.ball = 'none';
    const from = drop.arrival - 4000;
    this.onVerdict?.({
      number: this.drops++,
      ...drop,
      angle: angle % (2 * Math.PI),
      turnsPerSecond,
      stalled: this.stalled,
      verdict,
      passes: !this.stalled && verdict.outcome === 'passes',
      steps: this.pulses.filter((t) => t >= from && t <= drop.arrival + 2000),
    });
  }

  /** Presses the button for a while; its contacts bounce. @param {number} [micros] */
  press(micros = 80000) {
    let time = this.machine.micros + 10;
    const go = (/** @type {number} */ at, /** @type {0 | 1 | null} */ level) =>
      this.at(at, () => this.machine.drive(PINS.button, level));
    for (const to of /** @type {(0 | 1)[]} */ ([0, 1])) {
      const bounces = this.random.whole(1, 6);
      for (let n = 0; n < 2 * bounces + 1; n++) {
        go(time, n % 2 ? /** @type {0 | 1} */ (1 - to) : to);
        time += this.random.between(20, 400);
      }
      time += micros;
    }
  }
}
