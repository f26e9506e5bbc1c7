// @ts-check
/** Runs interference.c and measures its runs; the tests and the soak share it. */
import { Machine } from '../src/index.mjs';
import { image } from './build.mjs';

export const WORK = { fib: 0, matrices: 1, sumsq: 2 };
export const CORE1 = { idle: 0, same: 1, loop: 2 };
/** Tops of the stacks of the two cores. */
export const STACKS = {
  scratch: [0x20041c00, 0x20040c00],
  /** Both stacks are anywhere on a striped heap. */
  striped: [0x20020800, 0x20010404],
  /** Both stacks are in non-striped bank 1. */
  blocked: [0x21018000, 0x21014000],
  /** Each stack is in a non-striped bank of its own. */
  apart: [0x21018000, 0x21028000],
};

/**
 * @param {{ work: keyof typeof WORK, amount: number, runs?: number, core1: keyof typeof CORE1,
 *   stack?: keyof typeof STACKS,
 *   memory?: 'ram' | 'flash', conflicts?: boolean, gap?: number }} options
 * @returns {{ times: number[], times1: number[], mean: number, deviation: number, machine: Machine
 *   }} cycles of each run on core 0
 */
export function interference({
  work,
  amount,
  runs = 1,
  core1,
  stack = 'scratch',
  memory = 'flash',
  conflicts = true,
  gap = 0,
}) {
  const machine = new Machine({ conflicts });
  machine.load(image({ file: 'interference.c', memory }));
  /** @type {number[][]} */
  const times = [[], []];
  const began = [0, 0];
  machine.watch(null, (pin, level, cycle) => {
    if (pin !== 2 && pin !== 3) return;
    if (level) began[pin - 2] = cycle;
    else times[pin - 2].push(cycle - began[pin - 2]);
  });
  machine.runTo('main');
  const setup = machine.address('setup');
  [WORK[work], amount, runs, CORE1[core1], ...STACKS[stack], gap].forEach((value, i) =>
    machine.write32(setup + 4 * i, value),
  );
  const stop = machine.run(20e9);
  if (stop.reason !== 'break' || stop.code !== 0)
    throw new Error(`interference.c ended with ${JSON.stringify(stop)}`);
  const mean = times[0].reduce((sum, t) => sum + t, 0) / times[0].length;
  const deviation = Math.sqrt(
    times[0].reduce((sum, t) => sum + (t - mean) ** 2, 0) / times[0].length,
  );
  return { times: times[0], times1: times[1], mean, deviation, machine };
}
