// @ts-check
/**
 * ./run thesis experiments: measures everything, checks the budgets, writes RESULTS.md and plots/. See
 * --help.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { budgets } from './budgets.mjs';
import {
  codeSizes,
  holds,
  interference,
  most,
  mostLoops,
  structures,
  tasks,
  US,
} from './measure.mjs';
import { bars, lines } from './plot.mjs';

const HELP = `usage: ./run thesis experiments [--full]    the thesis's experiments on the emulated RP2040, beside its figures

  --full   fib(25) and 100 matrix products a run, as the thesis has them (ten minutes and more); otherwise fib(20) and 10

writes theses/experiments/RESULTS.md and theses/experiments/plots/; exit status 1 if a budget is exceeded`;

const args = process.argv.slice(2);
if (args.includes('--help') || args.includes('-h')) {
  console.log(HELP);
  process.exit(0);
}
const unknown = args.find((a) => a !== '--full');
if (unknown) {
  console.error(
    `experiments: there is no option '${unknown}'; ./run thesis experiments --help lists the options`,
  );
  process.exit(2);
}
const full = args.includes('--full');
const here = join(dirname(fileURLToPath(import.meta.url)), '..');
const us = (/** @type {number} */ cycles, digits = 2) => (cycles / US).toFixed(digits);
const table = (/** @type {(string | number)[][]} */ [head, ...rows]) =>
  [
    `| ${head.join(' | ')} |`,
    `|${head.map((_, i) => (i ? '---:' : '---')).join('|')}|`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
const worst = (
  /** @type {ReturnType<typeof tasks>} */ cores,
  /** @type {'execution' | 'total' | 'between'} */ what,
  /** @type {'mean' | 'deviation' | 'max'} */ which,
) => Math.max(...cores.map((c) => c[what][which]));
const note = (/** @type {string} */ words) => console.error(`experiments: ${words}`);
mkdirSync(join(here, 'plots'), { recursive: true });
const plot = (/** @type {string} */ name, /** @type {string} */ svg) =>
  writeFileSync(join(here, 'plots', name), svg);
const out = [];

// ---- chapter 7 ----------------------------------------------------------------------------------
note('timing (chapter 7)');
const kinds = /** @type {[string, Omit<Parameters<typeof tasks>[0], 'loops'>][]} */ ([
  ['a queue each', {}],
  ['a queue each, conflicts', { conflicts: true }],
  ['shared queue', { shared: true }],
  ['shared queue, conflicts', { shared: true, conflicts: true }],
]);
const overheads = [];
for (const posts of [false, true])
  for (const [name, options] of kinds) {
    const cores = tasks({ loops: 300, posts, fixed: true, ...options });
    const overhead = Math.max(...cores.map((c) => c.total.mean - c.execution.mean));
    overheads.push({
      name: `${name}; ${posts ? 'posts its event' : 'returns its period'}`,
      overhead,
      most: worst(cores, 'between', 'max'),
      execution: worst(cores, 'execution', 'mean'),
      total: worst(cores, 'total', 'mean'),
    });
  }
const flash = tasks({ loops: 300, conflicts: true, flash: true });
overheads.push({
  name: 'a queue each, conflicts, tasks and queue looked up, in flash; returns its period',
  overhead: Math.max(...flash.map((c) => c.total.mean - c.execution.mean)),
  most: worst(flash, 'between', 'max'),
  execution: worst(flash, 'execution', 'mean'),
  total: worst(flash, 'total', 'mean'),
});
const measuredOverhead = overheads[0].overhead / US;

const range = [
  10,
  ...Array.from({ length: 30 }, (_, i) => 10 + 10 * (i + 1)).filter((n) => n >= 40 && n <= 300),
];
const sweep = kinds.map(([name, options]) => ({
  name,
  rows: range.map((loops) => ({ loops, cores: tasks({ loops, ms: 30, ...options }) })),
}));
const held = [
  ...kinds,
  /** @type {[string, Omit<Parameters<typeof tasks>[0], 'loops'>]} */ ([
    'a queue each, conflicts, flash',
    { conflicts: true, flash: true },
  ]),
].map(([name, options]) => ({ name, loops: mostLoops(options) }));
const alone = tasks({ loops: 250 });
const contended = tasks({ loops: 250, conflicts: true, flash: true });

// ---- chapter 5 ----------------------------------------------------------------------------------
note('memory and code (chapter 5)');
const bytes = structures();
const capacity = most();
const code = codeSizes();

// ---- chapter 6 ----------------------------------------------------------------------------------
const n = full ? 25 : 20;
const products = full ? 100 : 10;
note(`core interference (chapter 6): fib(${n}), ${products} matrix products, 100 runs each`);
const cases =
  /** @type {[string, Omit<Parameters<typeof interference>[0], 'work' | 'amount'>][]} */ ([
    ['core 1 idle', { core1: 'idle' }],
    ['core 1 the same', { core1: 'same' }],
    ['core 1 in a loop of one instruction', { core1: 'loop' }],
    ['the same, stacks on a striped heap', { core1: 'same', stacks: 'striped' }],
    ['the same, stacks on a heap that is not', { core1: 'same', stacks: 'blocked' }],
  ]);
/**
 * @type {({ work: 'fib' | 'matrices', inFlash: boolean, name: string } & ReturnType<typeof
 *   interference>)[]}
 */
const measured = [];
for (const work of /** @type {const} */ (['fib', 'matrices']))
  for (const inFlash of [true, false])
    for (const [name, options] of cases)
      measured.push({
        work,
        inFlash,
        name,
        ...interference({
          work,
          amount: work === 'fib' ? n : products,
          flash: inFlash,
          ...options,
        }),
      });
const of = (/** @type {string} */ work, /** @type {boolean} */ inFlash, /** @type {number} */ i) =>
  /** @type {typeof measured[0]} */ (
    measured.filter((m) => m.work === work && m.inFlash === inFlash)[i]
  );

// ---- budgets ------------------------------------------------------------------------------------
const figures = {
  overheadReturns: Math.max(...overheads.slice(0, 4).map((o) => o.most)),
  overheadPosts: Math.max(
    ...overheads
      .filter((o) => o.name.includes('posts') && !o.name.includes('conflicts'))
      .map((o) => o.most),
  ),
  lightDeviation: Math.max(...sweep.map((s) => worst(s.rows[0].cores, 'total', 'deviation'))),
  heavyDeviation: Math.max(
    ...sweep.map((s) =>
      worst(s.rows.filter((row) => row.loops === 210)[0].cores, 'total', 'deviation'),
    ),
  ),
  heldOff: Math.min(...held.filter((h) => !h.name.includes('conflicts')).map((h) => h.loops)),
  heldOn: Math.min(...held.filter((h) => h.name.includes('conflicts')).map((h) => h.loops)),
  unit: worst(alone, 'execution', 'mean') / US,
  unitContended: worst(contended, 'execution', 'mean') / US,
  bytesEach: capacity.bytesEach,
  actors: capacity.actors,
  notFired: 2 * capacity.actors - capacity.fired,
  runtime: code.runtime,
  blink: code.blinkFlash,
  fibLoopLoss: 1 - of('fib', true, 0).mean / of('fib', true, 2).mean,
  fibOrder: Number(
    of('fib', true, 0).mean < of('fib', true, 1).mean &&
      of('fib', true, 1).mean < of('fib', true, 2).mean,
  ),
  fibBlocked: of('fib', false, 4).mean / of('fib', false, 1).mean - 1,
  fibStriped: of('fib', true, 3).mean / of('fib', true, 1).mean - 1,
  matrixStacks:
    Math.max(of('matrices', true, 3).mean, of('matrices', true, 4).mean) /
      of('matrices', true, 1).mean -
    1,
};
const checked = budgets(figures);

// ---- the page -----------------------------------------------------------------------------------
out.push(`# The thesis's experiments, repeated

Written by \`./run thesis experiments${full ? ' --full' : ''}\`: firmware on the emulated RP2040 at 125 MHz, exact and the same each time. The thesis's figures are from a
board, with LTA, FreeRTOS and Lingua Franca (LF) on it. "Conflicts": with the emulator's model of SRAM bank and XIP cache conflicts,
which is a bound to design with, not a promise (emulator/README.md). Everything runs from SRAM unless it says flash.

## Budgets

${table([['', 'here', 'budget', ''], ...checked.map((b) => [b.name, b.shown, b.limit, b.ok ? 'ok' : '**exceeded**'])])}

## Overhead at saturation (7.3)

Two interleaved 10 kHz tasks, one a core, with more work than fits: the time from start to start less the task's own, as the thesis counts
it. It has 250 loops of its work; here they still fit (see below), so there are 300. 250 loops take ${us(worst(alone, 'execution', 'mean'))} µs of a core
alone (thesis: 90.0), and ${us(worst(contended, 'execution', 'mean'))} µs in flash with both cores busy and conflicts (thesis: 103.9).

${table([['', 'task, µs', 'start to start, µs', 'overhead, µs', 'cycles', 'at most'], ...overheads.map((o) => [`Weft: ${o.name}`, us(o.execution), us(o.total), us(o.overhead, 3), o.overhead.toFixed(0), o.most]), ['thesis: LTA', 103.9, 112.5, 8.6, 1075, ''], ['thesis: FreeRTOS (ticks included)', 103.9, 128.6, 24.7, 3088, ''], ['thesis: LF (one task)', '90.0', '122.0', '32.0', 4000, '']])}

![overhead](plots/overhead.svg)

## Start deviation (7.4, 7.5)

The standard deviation of the time from start to start, µs; the larger of the two cores.

${table([['loops', ...kinds.map(([name]) => name)], ...range.map((loops, i) => [loops, ...sweep.map((s) => `${us(worst(s.rows[i].cores, 'total', 'deviation'), 3)}${holds(s.rows[i].cores) ? '' : ' *'}`)])])}

\\* 10 kHz no longer held. Thesis at 10 loops: LTA and FreeRTOS almost 0, LF 4.3; in the same emulator at 210 loops LTA 0.24 to 1.89, FreeRTOS 0.94.

![start deviation](plots/deviation.svg)

Loops at which 10 kHz are held, both cores:

${table([['', 'loops'], ...held.map((h) => [`Weft: ${h.name}`, h.loops]), ['thesis: LTA', 'up to 220'], ['thesis: FreeRTOS', 'up to 190'], ['thesis: LF (one task)', 'up to 190']])}

![held](plots/held.svg)

## Memory (5.1 to 5.3)

${table([
  ['bytes', 'Weft', 'LTA', 'FreeRTOS', 'LF'],
  ['an event', bytes.event, 24, '', ''],
  ['an actor, a thread without stack, a reactor', bytes.actor, 1, 144, ''],
  [
    'a minimal periodic actor, thread with 128 bytes of stack, reactor',
    capacity.bytesEach,
    25,
    272,
    360,
  ],
  ['a queue', bytes.queue, 48, '', ''],
  ['as many as fit, created and firing', capacity.actors, 10068, 892, 681],
])}

Further: an index heap ${bytes.heap} and 2 an event; an event with deadline ${bytes.deadline}, periodic with a count of skips ${bytes.periodic}, with a 64-bit time ${bytes.far}; all of
the ${capacity.actors} fired twice, ${capacity.fired} actions in all. The thesis has \`printf\` and the SDK beside its actors; here the runtime and start-up alone are.

![memory](plots/memory.svg)

## Code (5.4)

${table([
  ['bytes', 'Weft', 'bare', 'LTA', 'FreeRTOS', 'LF'],
  ['blink, image in flash', code.blinkFlash, 8700, 15100, 23100, 96100],
  ['of which the runtime', code.runtime, '', '', '', ''],
])}

Blink from SRAM: ${code.blinkSram}. The thesis's images have the SDK's start-up and, for LF, USB; Weft's has its own start-up, clocks and boot code.

## Core interference (chapter 6)

Two actors, one a core, 100 runs each, conflicts on. Actors run on their cores' stacks, in scratch memory. The last two rows of each have the
work's stack where an RTOS keeps those of its threads.

${table([['', '', 'mean, µs', 'against core 1 the same', 'deviation, µs'], ...measured.map((m) => [`${m.work === 'fib' ? `fib(${n})` : `${products} products of 10 × 10`}, ${m.inFlash ? 'flash' : 'SRAM'}`, m.name, us(m.mean), `${((100 * m.mean) / of(m.work, m.inFlash, 1).mean - 100).toFixed(1)} %`, us(m.deviation, 3)])])}

Thesis: core 1 in the loop costs 20 % of fib's speed, here ${(100 * figures.fibLoopLoss).toFixed(1)} %; FreeRTOS with stacks on a heap that is not striped 19 % slower, here ${(100 * figures.fibBlocked).toFixed(1)} % with
code in SRAM and ${(100 * (of('fib', true, 4).mean / of('fib', true, 1).mean - 1)).toFixed(1)} % in flash; on a striped one within 1 %, here ${(100 * figures.fibStriped).toFixed(1)} %; the matrix product within 1 % whatever the stacks, here ${(100 * figures.matrixStacks).toFixed(1)} %. The
thesis finds ten times the deviation for threads on a striped heap; the model, without the tick and without an idle task, does not show that.

![fib](plots/fib.svg)
![matrices](plots/matrices.svg)
`);
writeFileSync(join(here, 'RESULTS.md'), out.join('\n'));

plot(
  'overhead.svg',
  bars({
    title: 'Overhead of an event at saturation',
    y: 'µs',
    bars: [
      { name: 'Weft', value: measuredOverhead, note: measuredOverhead.toFixed(2) },
      { name: 'LTA (thesis)', value: 8.6, group: 5 },
      { name: 'FreeRTOS (thesis)', value: 24.7, group: 5 },
      { name: 'LF (thesis)', value: 32, group: 5 },
    ],
  }),
);
plot(
  'deviation.svg',
  lines({
    title: 'Start deviation (where 10 kHz are held)',
    x: 'loops',
    y: 'µs',
    series: sweep.map((s, i) => ({
      name: s.name,
      dashed: i > 1,
      points: /** @type {[number, number][]} */ (
        s.rows
          .filter((row) => holds(row.cores))
          .map((row) => [row.loops, worst(row.cores, 'total', 'deviation') / US])
      ),
    })),
    top: 0.1,
  }),
);
plot(
  'held.svg',
  bars({
    title: 'Loops at which 10 kHz are held on both cores',
    y: 'loops',
    bars: [
      ...held.map((h) => ({
        name: h.name.replace(' queue', '\nqueue').replace(', ', ',\n'),
        value: h.loops,
      })),
      { name: 'LTA\n(thesis)', value: 220, group: 5 },
      { name: 'FreeRTOS\n(thesis)', value: 190, group: 5 },
    ],
  }),
);
plot(
  'memory.svg',
  bars({
    title: 'As many periodic actors, threads, reactors as fit',
    y: 'number',
    bars: [
      { name: 'Weft', value: capacity.actors },
      { name: 'LTA (thesis)', value: 10068, group: 5 },
      { name: 'FreeRTOS (thesis)', value: 892, group: 5 },
      { name: 'LF (thesis)', value: 681, group: 5 },
    ],
  }),
);
const short = ['idle', 'the same', 'loop', 'striped\nstacks', 'one-bank\nstacks'];
for (const work of /** @type {const} */ (['fib', 'matrices']))
  plot(
    `${work}.svg`,
    bars({
      title: `${work === 'fib' ? `fib(${n})` : `${products} products of 10 × 10 matrices`}: left from flash, right from SRAM`,
      y: 'µs',
      bars: measured
        .filter((m) => m.work === work)
        .map((m, i) => ({
          name: short[i % 5],
          value: m.mean / US,
          note: (m.mean / US).toFixed(0),
          group: m.inFlash ? 0 : 2,
        })),
    }),
  );

for (const b of checked)
  console.log(`${b.ok ? 'ok' : 'not ok'} - ${b.name}: ${b.shown} (${b.limit})`);
const failed = checked.filter((b) => !b.ok).length;
console.log(`written: theses/experiments/RESULTS.md, theses/experiments/plots/`);
console.log(`${checked.length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
