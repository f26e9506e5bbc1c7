// @ts-check
/**
 * The limits that the experiments must meet: the project's own budgets, and the distance that the
 * conflict model may have from the thesis's chapter 6.
 */

/**
 * @typedef {{
 *   overheadReturns: number, overheadPosts: number, lightDeviation: number, heavyDeviation: number, heldOff: number, heldOn: number,
 *   unit: number, unitContended: number, bytesEach: number, actors: number, notFired: number, runtime: number, blink: number,
 *   fibLoopLoss: number, fibOrder: number, fibBlocked: number, fibStriped: number, matrixStacks: number,
 * }} Figures
 */
/**
 * @type {{ [K in keyof Figures]: { name: string, atLeast?: number, atMost?: number, unit: string,
 *   scale?: number, digits?: number } }}
 */
export const BUDGETS = {
  overheadReturns: {
    name: 'overhead of an event at saturation, at most, conflicts or not',
    atMost: 150,
    unit: 'cycles',
  },
  overheadPosts: {
    name: 'the same if the action posts its event, without conflicts',
    atMost: 150,
    unit: 'cycles',
  },
  lightDeviation: {
    name: 'start deviation at 10 loops, conflicts or not',
    atMost: 8,
    unit: 'cycles',
    digits: 2,
  },
  heavyDeviation: {
    name: 'start deviation at 210 loops, conflicts or not',
    atMost: 8,
    unit: 'cycles',
    digits: 2,
  },
  heldOff: { name: '10 kHz held', atLeast: 270, unit: 'loops' },
  heldOn: { name: '10 kHz held, conflicts, flash or not', atLeast: 235, unit: 'loops' },
  unit: {
    name: '250 loops take the 90.0 us they took the thesis',
    atLeast: 89.8,
    atMost: 90.4,
    unit: 'us',
    digits: 2,
  },
  unitContended: {
    name: '250 loops in flash, both cores busy, conflicts (thesis: 103.9)',
    atLeast: 101.8,
    atMost: 106,
    unit: 'us',
    digits: 2,
  },
  bytesEach: { name: 'a periodic actor, all in', atMost: 17, unit: 'bytes' },
  actors: { name: 'actors in 256 KB', atLeast: 14000, unit: 'actors' },
  notFired: { name: 'of their two firings each, missing', atMost: 0, unit: 'firings' },
  runtime: { name: 'code of the runtime in blink', atMost: 1024, unit: 'bytes' },
  blink: { name: 'blink in flash', atMost: 1536, unit: 'bytes' },
  fibLoopLoss: {
    name: 'fib in flash: speed lost to a one-instruction loop on core 1 (thesis: 20 %)',
    atLeast: 15,
    atMost: 25,
    unit: '%',
    scale: 100,
    digits: 1,
  },
  fibOrder: { name: 'fib in flash: idle < same < loop', atLeast: 1, unit: '' },
  fibBlocked: {
    name: 'fib in SRAM: both stacks on one bank, slower by (thesis: 19 %)',
    atLeast: 14,
    atMost: 24,
    unit: '%',
    scale: 100,
    digits: 1,
  },
  fibStriped: {
    name: 'fib in flash: stacks on a striped heap, slower by (thesis: within 1 %)',
    atLeast: -2,
    atMost: 2,
    unit: '%',
    scale: 100,
    digits: 1,
  },
  matrixStacks: {
    name: 'matrix product in flash: stacks elsewhere, slower by (thesis: within 1 %)',
    atLeast: -1.5,
    atMost: 1.5,
    unit: '%',
    scale: 100,
    digits: 1,
  },
};

/** @param {Partial<Figures>} figures */
export function budgets(figures) {
  return Object.entries(figures).map(([key, raw]) => {
    const b = BUDGETS[/** @type {keyof Figures} */ (key)];
    if (!b) throw new RangeError(`there is no budget for '${key}'`);
    const value = /** @type {number} */ (raw) * (b.scale ?? 1);
    const limit = [
      b.atLeast === undefined ? '' : `at least ${b.atLeast}`,
      b.atMost === undefined ? '' : `at most ${b.atMost}`,
    ]
      .filter(Boolean)
      .join(', ');
    return {
      key,
      name: b.name,
      value,
      shown: `${value.toFixed(b.digits ?? 0)} ${b.unit}`.trim(),
      limit,
      ok: value >= (b.atLeast ?? -Infinity) && value <= (b.atMost ?? Infinity),
    };
  });
}
