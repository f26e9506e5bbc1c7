// @ts-check
/**
 * The thesis's experiments, shortened, each against its budget (src/budgets.mjs). `./run thesis
 * experiments` runs them in full. Experiments that take long are left to ./run soak.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BUDGETS, budgets } from '../src/budgets.mjs';
import {
  codeSizes,
  holds,
  interference,
  most,
  mostLoops,
  statistics,
  structures,
  tasks,
  US,
} from '../src/measure.mjs';
import { bars, lines } from '../src/plot.mjs';

const within = (/** @type {Parameters<typeof budgets>[0]} */ figures) => {
  for (const b of budgets(figures)) assert.ok(b.ok, `${b.name}: ${b.shown}, wanted ${b.limit}`);
};
const worst = (
  /** @type {ReturnType<typeof tasks>} */ cores,
  /** @type {'execution' | 'total' | 'between'} */ what,
  /** @type {'mean' | 'deviation' | 'max'} */ which,
) => Math.max(...cores.map((c) => c[what][which]));
const all = [{}, { shared: true }];
const long = { skip: process.env.WEFT_SOAK ? false : 'left to ./run soak' };

test('7.3: the unit of work is the thesis’s: 90.0 us alone, about 103.9 in flash with both cores busy', () => {
  within({ unit: worst(tasks({ loops: 250, ms: 10 }), 'execution', 'mean') / US });
  within({
    unitContended:
      worst(tasks({ loops: 250, ms: 20, flash: true, conflicts: true }), 'execution', 'mean') / US,
  });
});

test('7.3: overhead at saturation, queues each and shared, conflicts off and on', () => {
  for (const kind of all) {
    for (const conflicts of [false, true])
      within({
        overheadReturns: worst(
          tasks({ loops: 300, fixed: true, conflicts, ms: 20, ...kind }),
          'between',
          'max',
        ),
      });
    within({
      overheadPosts: worst(
        tasks({ loops: 300, fixed: true, posts: true, ms: 20, ...kind }),
        'between',
        'max',
      ),
    });
  }
});

test('7.4, 7.5: start deviation at 10 and at 210 loops', long, () => {
  for (const kind of all) {
    for (const conflicts of [false, true])
      within({
        lightDeviation: worst(
          tasks({ loops: 10, conflicts, ms: 20, ...kind }),
          'total',
          'deviation',
        ),
      });
    within({ heavyDeviation: worst(tasks({ loops: 210, ms: 20, ...kind }), 'total', 'deviation') });
  }
});

test('7.5: 10 kHz held, and the measure can say no', long, () => {
  for (const kind of all) within({ heldOff: mostLoops(kind) });
  within({ heldOn: mostLoops({ conflicts: true, flash: true }) });
  assert.ok(!holds(tasks({ loops: 300, ms: 10 })));
});

test('chapter 5: bytes, as many actors as fit, code', () => {
  const bytes = structures();
  assert.deepEqual([bytes.event, bytes.actor, bytes.queue], [16, 1, 28]);
  const { actors, bytesEach, fired } = most();
  within({ actors, bytesEach, notFired: 2 * actors - fired });
  const code = codeSizes();
  within({ runtime: code.runtime, blink: code.blinkFlash });
  assert.ok(code.runtime > 300, `${code.runtime} bytes: the list of functions was not understood`);
});

test(
  'chapter 6: fib(14) and matrices, core 1 idle, the same, in a loop; stacks in scratch, striped, on one bank',
  long,
  () => {
    const run = (/** @type {'fib' | 'matrices'} */ work, /** @type {object} */ options) =>
      interference({ work, amount: work === 'fib' ? 14 : 2, runs: 30, core1: 'same', ...options });
    const idle = run('fib', { core1: 'idle' });
    const same = run('fib', {});
    const loop = run('fib', { core1: 'loop' });
    assert.equal(idle.result, 377);
    within({
      fibOrder: Number(idle.mean < same.mean && same.mean < loop.mean),
      fibLoopLoss: 1 - idle.mean / loop.mean,
      fibStriped: run('fib', { stacks: 'striped' }).mean / same.mean - 1,
    });
    within({
      fibBlocked:
        run('fib', { flash: false, stacks: 'blocked' }).mean / run('fib', { flash: false }).mean -
        1,
    });
    const product = run('matrices', {});
    within({
      matrixStacks:
        Math.max(
          run('matrices', { stacks: 'striped' }).mean,
          run('matrices', { stacks: 'blocked' }).mean,
        ) /
          product.mean -
        1,
    });
  },
);

test('chapter 6: without the model of conflicts the cores do not feel each other', () => {
  const times = /** @type {const} */ (['idle', 'same', 'loop']).map(
    (core1) => interference({ work: 'fib', amount: 10, runs: 5, core1, conflicts: false }).mean,
  );
  assert.deepEqual(times, [times[0], times[0], times[0]]);
});

test('the same run gives the same figures; another seed other phases', () => {
  const run = (/** @type {number} */ seed) =>
    interference({
      work: 'fib',
      amount: 10,
      runs: 20,
      core1: 'same',
      flash: false,
      stacks: 'blocked',
      seed,
    });
  assert.deepEqual(run(1), run(1));
  assert.notDeepEqual(run(1), run(2));
});

test('a budget that is exceeded is said to be', () => {
  assert.deepEqual(
    budgets({ bytesEach: 18, actors: 13999, blink: 1536 }).map((b) => b.ok),
    [false, false, true],
  );
  assert.throws(() => budgets(/** @type {any} */ ({ nothing: 1 })), /no budget for 'nothing'/);
  for (const b of Object.values(BUDGETS))
    assert.ok(b.atLeast !== undefined || b.atMost !== undefined, b.name);
});

test('means and deviations are those of the textbook', () => {
  assert.deepEqual(statistics([2, 4, 4, 4, 5, 5, 7, 9]), {
    n: 8,
    mean: 5,
    deviation: 2,
    min: 2,
    max: 9,
  });
});

test('plots are well formed', () => {
  for (const svg of [
    bars({
      title: 'a < b',
      y: 'us',
      bars: [
        { name: 'x\ny', value: 3 },
        { name: 'z', value: 1 },
      ],
    }),
    lines({
      title: 't',
      x: 'n',
      y: 'us',
      series: [
        {
          name: 's',
          points: [
            [1, 2],
            [3, 4],
          ],
        },
      ],
    }),
  ]) {
    assert.match(svg, /^<svg[^]*<\/svg>\n$/);
    assert.ok(!/NaN|undefined|a < b/.test(svg));
  }
});

test('the command refuses what it does not know', () => {
  const cli = fileURLToPath(new URL('../src/report.mjs', import.meta.url));
  const bad = spawnSync(process.execPath, [cli, '--fast'], { encoding: 'utf8' });
  assert.equal(bad.status, 2);
  assert.match(bad.stderr, /no option '--fast'.*--help/);
});
