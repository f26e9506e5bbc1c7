// @ts-check
/**
 * Plays the person who uses the device: presses the button, waits, places balls, records the drops.
 *
 * Invariants
 * - Every wait has a limit; when the limit is exceeded, a SessionError that describes the expected
 *   event is thrown.
 * - Lateness of an edge on STEP is measured from the pads, in cycles: against the due time that the
 *   controller recorded before the edge (symbol `step_due`, us), or, if there is no such symbol,
 *   against the periods that went through PIO's FIFO.
 */
import { readFileSync } from 'node:fs';
import { Machine, parseImage } from '../../../emulator/src/index.mjs';
import { firmware } from './firmware.mjs';
import { Plant, PINS } from './plant.mjs';

export class SessionError extends Error {}

/**
 * Returns the image of a controller of the user's own. A file that is not an ELF is refused: its
 * contents would be taken for bare instructions, and run for ever.
 * @param {string} file
 */
function own(file) {
  let data;
  try {
    data = readFileSync(file);
    if (parseImage(data, undefined, '.elf').segments.length > 0) return data;
  } catch (error) {
    throw new SessionError(`--image ${file}: ${error instanceof Error ? error.message : error}`);
  }
  throw new SessionError(`--image ${file}: nothing to load in it`);
}

export const CONTROLLERS = /** @type {const} */ (['actors', 'lta', 'pio']);
/** @typedef {typeof CONTROLLERS[number]} Controller */

const TXF0 = 0x10;
/** The cycles of a half period in the PIO program besides its count (firmware/steps_pio.h). */
export const PIO_OVERHEAD = 38;

/** Counts how late the edges on STEP are. */
class Lateness {
  /** @param {Machine} machine */
  constructor(machine) {
    this.edges = 0;
    this.worst = -Infinity;
    this.best = Infinity;
    this.sum = 0;
    const due = machine.image?.symbols.find((symbol) => symbol.name === 'step_due')?.address;
    if (due === undefined) this.followFifo(machine);
    else {
      const cycles = machine.clock;
      machine.watch(PINS.step, () => {
        const late = (machine.timer.micros - machine.read32(due)) | 0;
        const phase = (machine.micros % 1) * (cycles.hz / 1e6);
        this.add(late * (cycles.hz / 1e6) + Math.round(phase));
      });
    }
  }

  reset() {
    this.edges = 0;
    this.worst = -Infinity;
    this.best = Infinity;
    this.sum = 0;
  }

  /** @returns {never} */
  unknown() {
    throw new SessionError(
      "a step that nothing tells the due time of: the controller has no symbol 'step_due' (us, set before each step; load its ELF), and pushed no count to PIO",
    );
  }

  /** @param {number} cycles */
  add(cycles) {
    this.edges++;
    if (cycles > this.worst) this.worst = cycles;
    if (cycles < this.best) this.best = cycles;
    this.sum += cycles;
  }

  /** @param {Machine} machine */
  followFifo(machine) {
    const pio = /** @type {any} */ (machine.pios)[0];
    /** @type {number[]} half periods that were pushed but have not begun */
    const pushed = [];
    const write = pio.writeUint32.bind(pio);
    pio.writeUint32 = (/** @type {number} */ offset, /** @type {number} */ value) => {
      if (offset === TXF0) pushed.push((value & 0xffff) * 32 + (value >>> 16) + PIO_OVERHEAD);
      write(offset, value);
    };
    let due = -1;
    let half = 0;
    machine.watch(PINS.step, (_, level, cycle) => {
      if (due < 0) due = cycle;
      this.add(cycle - due);
      if (level) half = pushed.shift() ?? this.unknown();
      due += half;
    });
  }
}

/**
 * @typedef {import('./plant.mjs').PlantOptions & { controller?: Controller, image?: string,
 *   constants?: 'calibrated' | 'thesis',
 *   conflicts?: boolean, record?: boolean }} SessionOptions
 *   image: the ELF file of your own controller, instead of a built-in one; constants: 'thesis' builds the
 *   controller with the numbers of the thesis; record: keeps every edge of a drop, to draw it
 */
export class Session {
  /** @param {SessionOptions} [options] */
  constructor(options = {}) {
    this.options = options;
    const controller = (this.controller = options.controller ?? 'actors');
    if (!CONTROLLERS.includes(controller))
      throw new SessionError(
        `there is no controller '${controller}'; controllers: ${CONTROLLERS.join(', ')}`,
      );
    const pulses = options.pulsesPerTurn ?? 1600;
    this.machine = new Machine({ uartDelay: true, conflicts: options.conflicts ?? false });
    if (options.image) this.machine.load(own(options.image));
    else
      this.machine.load(
        readFileSync(firmware(controller, { pulses, thesis: options.constants === 'thesis' })),
      );
    this.plant = new Plant(this.machine, { ...options, pulsesPerTurn: pulses });
    this.lateness = new Lateness(this.machine);
    this.text = '';
    this.machine.onUart((byte) => (this.text += String.fromCharCode(byte)));
    /** @type {import('./plant.mjs').Edge[]} */
    this.edges = [];
    if (options.record)
      this.machine.watch(null, (pin, level) => {
        if (pin >= PINS.step) this.edges.push({ pin, level, at: this.machine.micros });
      });
    /** @type {import('./plant.mjs').Drop | null} */
    this.last = null;
    this.plant.onVerdict = (drop) => (this.last = drop);
    this.armed = false;
  }

  /**
   * Runs until a condition holds; checks it every millisecond.
   * @param {() => boolean} holds
   * @param {number} seconds
   * @param {string} what
   */
  wait(holds, seconds, what) {
    const end = this.machine.micros + seconds * 1e6;
    while (!holds()) {
      if (this.machine.micros >= end)
        throw new SessionError(
          `the controller did not ${what} within ${seconds} s; it said: ${JSON.stringify(this.text.slice(-200))}`,
        );
      const stop = this.machine.runMicros(1000);
      if (stop.reason !== 'limit')
        throw new SessionError(
          `the controller stopped: ${JSON.stringify(stop)}; it said: ${JSON.stringify(this.text.slice(-200))}`,
        );
    }
  }

  /** @param {number} micros */
  pass(micros) {
    const end = this.machine.micros + micros;
    this.wait(() => this.machine.micros >= end, micros / 1e6 + 1, 'keep running');
  }

  /** Switches the device on and presses the button once, so that the disc reaches full speed. */
  arm() {
    const { machine, plant } = this;
    this.wait(() => plant.turned(machine.micros) > 20, 6, 'start the motor slowly');
    plant.press();
    this.wait(
      () => machine.level(PINS.magnet) === 1,
      1,
      'switch the magnet on when the button was pressed',
    );
    this.wait(() => plant.turnsPerSecond() > 4.98, 12, 'bring the disc to 5 turns a second');
    this.pass(200000);
    this.armed = true;
  }

  /**
   * Performs one drop.
   * @returns {import('./plant.mjs').Drop & { lateness: { worst: number, best: number, mean: number,
   *   edges: number }, text: string, edges: import('./plant.mjs').Edge[] }}
   */
  drop() {
    const { machine, plant, lateness } = this;
    if (!this.armed) this.arm();
    this.wait(
      () => machine.level(PINS.magnet) === 1 && plant.turnsPerSecond() > 4.98,
      5,
      'arm itself for the next drop',
    );
    plant.placeBall();
    this.pass(1100000); // an earlier press would count as a bounce
    this.last = null;
    this.edges = [];
    const said = this.text.length;
    lateness.reset();
    plant.press();
    this.wait(() => plant.ball === 'falling', 1.5, 'let the ball go');
    this.wait(() => this.last !== null, 1, 'live to see the ball arrive');
    this.pass(60000);
    const { worst, best, sum, edges } = lateness;
    const drop = /** @type {import('./plant.mjs').Drop} */ (/** @type {unknown} */ (this.last));
    return {
      ...drop,
      lateness: { worst, best, mean: sum / edges, edges },
      text: this.text.slice(said),
      edges: this.edges,
    };
  }
}
