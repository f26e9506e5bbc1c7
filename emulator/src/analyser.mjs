// @ts-check
/**
 * The logic analyser: it hashes every change of a watched pad, and writes the changes as VCD
 * (IEEE 1364-2005 section 18).
 *
 * Invariants
 * - The hash covers (cycle, pin, level) of every edge of all pins in order. Therefore two runs with
 *   the same hash have made the same edges.
 * - A VCD file is complete after close(), even if the run was interrupted; times never decrease.
 */
import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { PINS } from './pins.mjs';

/** Counts and hashes edges. */
export class EdgeHash {
  constructor() {
    this.hash = createHash('sha256');
    this.count = 0;
    this.buffer = Buffer.alloc(10 * 1024);
    this.used = 0;
  }

  /** @param {number} pin @param {0 | 1} level @param {number} cycle */
  edge(pin, level, cycle) {
    this.count++;
    this.buffer.writeDoubleLE(cycle, this.used);
    this.buffer[this.used + 8] = pin;
    this.buffer[this.used + 9] = level;
    this.used += 10;
    if (this.used === this.buffer.length) this.flush();
  }

  flush() {
    this.hash.update(this.buffer.subarray(0, this.used));
    this.used = 0;
  }

  /** 16 hex digits over the edges so far. */
  get digest() {
    return this.hash.copy().update(this.buffer.subarray(0, this.used)).digest('hex').slice(0, 16);
  }
}

/** Identifier of a pin in the file: printable, one character. @param {number} pin */
const code = (pin) => String.fromCharCode(33 + pin);

export class VcdWriter {
  /**
   * @param {string} path
   * @param {{ levels: number, pins?: number[], names?: Record<number, string>, nanosOf: (cycle:
   *   number) => number }} options
   *   levels: the current levels of the pads; pins: the pads to record (default all); names: labels
   *   by pin
   */
  constructor(path, { levels, pins, names = {}, nanosOf }) {
    this.file = openSync(path, 'w');
    this.nanosOf = nanosOf;
    const wanted = pins ?? Array.from({ length: PINS }, (_, n) => n);
    this.mask = wanted.reduce((mask, n) => mask | (1 << n), 0);
    this.at = -1;
    /** @type {string[]} */
    this.lines = [
      '$comment weft-rp2040 logic analyser $end',
      '$timescale 1 ns $end',
      '$scope module rp2040 $end',
      ...wanted.map(
        (n) => `$var wire 1 ${code(n)} ${(names[n] ?? `gpio${n}`).replace(/\s/g, '_')} $end`,
      ),
      '$upscope $end',
      '$enddefinitions $end',
      '#0',
      '$dumpvars',
      ...wanted.map((n) => `${(levels >>> n) & 1}${code(n)}`),
      '$end',
    ];
  }

  /** @param {number} pin @param {0 | 1} level @param {number} cycle */
  edge(pin, level, cycle) {
    if ((this.mask & (1 << pin)) === 0) return;
    this.moveTo(cycle);
    this.lines.push(`${level}${code(pin)}`);
    if (this.lines.length > 4096) this.flush();
  }

  /** @param {number} cycle */
  moveTo(cycle) {
    const nanos = Math.round(this.nanosOf(cycle));
    if (nanos <= this.at) return;
    this.at = nanos;
    if (nanos > 0) this.lines.push(`#${nanos}`);
  }

  flush() {
    if (this.lines.length) writeSync(this.file, this.lines.join('\n') + '\n');
    this.lines = [];
  }

  /** Ends the file at a cycle, so that viewers show the whole run. @param {number} cycle */
  close(cycle) {
    if (this.file < 0) return;
    this.moveTo(cycle);
    this.flush();
    closeSync(this.file);
    this.file = -1;
  }
}
