// @ts-check
/**
 * The experiments of the thesis's chapters 5 to 7 as functions: each runs firmware on the emulated
 * RP2040 and returns its figures.
 *
 * Times are cycles of 125 MHz unless a name says otherwise. Every figure is exact and the same in
 * each run.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Machine } from '../../../emulator/src/index.mjs';

const MCU = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'mcu');
export const US = 125;

/** @type {Map<string, Uint8Array>} */
const images = new Map();
/**
 * Returns a firmware of this folder, or of mcu/bench or mcu/examples.
 * @param {string} name
 * @param {{ flash?: boolean }} [options]
 */
export function image(name, { flash = false } = {}) {
  const key = `${name}${flash ? '-flash' : ''}`;
  let bytes = images.get(key);
  if (!bytes) {
    const out = join('..', '.build', 'mcu', `experiments${flash ? '-flash' : ''}`);
    execFileSync(
      'make',
      [
        '-s',
        '-C',
        MCU,
        '-f',
        '../theses/experiments/firmware.mk',
        `OUT=${out}`,
        ...(flash ? ['FLASH=1'] : []),
        join(out, `${name}.uf2`),
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    bytes = new Uint8Array(readFileSync(join(MCU, out, `${name}.elf`)));
    images.set(key, bytes);
  }
  return bytes;
}
/**
 * Builds bench/periodic.c, whose tasks are fixed at compile time, so that nothing is looked up
 * between them. @param {number} loops
 * @param {boolean} shared
 * @param {boolean} posts
 */
function periodic(loops, shared, posts) {
  const name = `periodic-${loops}${shared ? '-shared' : ''}${posts ? '-posts' : ''}`;
  let bytes = images.get(name);
  if (!bytes) {
    const out = join('..', '.build', 'mcu', 'experiments');
    const target = join(out, `${name}.variant.elf`);
    execFileSync(
      'make',
      [
        '-s',
        '-C',
        MCU,
        '-f',
        '../theses/experiments/firmware.mk',
        `OUT=${out}`,
        'VARIANT=bench/periodic.c',
        `EXTRA=-DLOOPS=${loops} -DSHARED=${Number(shared)} -DREPOST=${Number(posts)}`,
        target,
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    bytes = new Uint8Array(readFileSync(join(MCU, target)));
    images.set(name, bytes);
  }
  return bytes;
}
/** Returns the bytes of the program in memory. @param {string} name @param {boolean} flash */
export function imageSize(name, flash) {
  image(name, { flash });
  return statSync(
    join(MCU, '..', '.build', 'mcu', `experiments${flash ? '-flash' : ''}`, `${name}.bin`),
  ).size;
}

/** @param {number[]} values */
export function statistics(values) {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
  return {
    n: values.length,
    mean,
    deviation: Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length),
    min: Math.min(...values),
    max: Math.max(...values),
  };
}

/**
 * @param {Machine} m
 * @param {number[]} words written to the firmware's `setup` once its memory is initialised
 */
function setUp(m, words) {
  m.runTo('main');
  const at = m.address('setup');
  words.forEach((word, i) => m.write32(at + 4 * i, word));
}

/**
 * Measures chapter 7: two interleaved 10 kHz tasks.
 * @param {{ loops: number, shared?: boolean, posts?: boolean, conflicts?: boolean, flash?: boolean,
 *   ms?: number, fixed?: boolean }} options
 *   fixed: bench/periodic.c instead of loops.c, which looks up its number of loops, and so adds to
 *   the time between tasks
 * @returns for each core: the task's own time, the time from start to start (their deviation is the
 *   start deviation), and between tasks
 */
export function tasks({
  loops,
  shared = false,
  posts = false,
  conflicts = false,
  flash = false,
  ms = 50,
  fixed = false,
}) {
  const m = new Machine({ conflicts }).load(
    fixed ? periodic(loops, shared, posts) : image('loops', { flash }),
  );
  if (!fixed) setUp(m, [loops, Number(shared), Number(posts)]);
  /** @type {{ level: number, cycle: number }[][]} */
  const edges = [[], []];
  m.watch(null, (pin, level, cycle) => {
    if (pin === 2 || pin === 3) edges[pin - 2].push({ level, cycle });
  });
  m.runMicros(ms * 1000);
  return edges.map((all) => {
    const rises = all.map((e, i) => ({ ...e, i })).filter((e) => e.level && e.i >= 20); // both cores are at work from the tenth run on
    const complete = rises.slice(0, -1);
    return {
      execution: statistics(complete.map((e) => all[e.i + 1].cycle - e.cycle)),
      total: statistics(complete.map((e, k) => rises[k + 1].cycle - e.cycle)),
      between: statistics(complete.map((e, k) => rises[k + 1].cycle - all[e.i + 1].cycle)),
    };
  });
}
/** Returns whether both tasks start every 100 us. @param {ReturnType<typeof tasks>} cores */
export const holds = (cores) =>
  cores.every((core) => Math.abs(core.total.mean - 100 * US) < 1 && core.total.max <= 101 * US);

/**
 * Finds by bisection the largest number of loops at which the task still runs at 10 kHz.
 * @param {Omit<Parameters<typeof tasks>[0], 'loops'>} options
 */
export function mostLoops(options) {
  let low = 100;
  let high = 300;
  while (high - low > 1) {
    const loops = (low + high) >> 1;
    if (holds(tasks({ ...options, loops, ms: 20 }))) low = loops;
    else high = loops;
  }
  return low;
}

export const STACKS = {
  /** The stacks of the two cores, in scratch memory, which actors use. */
  scratch: [0, 0],
  /** The stacks are anywhere on a striped heap, like the stacks of threads. */
  striped: [0x20020800, 0x20030404],
  /** The stacks are on a heap that is not striped, both in bank 1. */
  blocked: [0x2101a000, 0x2101e000],
};
const WORK = { fib: 0, matrices: 1 };
const CORE1 = { idle: 0, same: 1, loop: 2 };

/**
 * Measures chapter 6.
 * @param {{ work: keyof typeof WORK, amount: number, core1: keyof typeof CORE1, stacks?: keyof
 *   typeof STACKS, runs?: number, conflicts?: boolean, flash?: boolean, seed?: number }} options
 */
export function interference({
  work,
  amount,
  core1,
  stacks = 'scratch',
  runs = 100,
  conflicts = true,
  flash = true,
  seed = 1,
}) {
  const m = new Machine({ conflicts }).load(image('interference', { flash }));
  setUp(m, [WORK[work], amount, runs, CORE1[core1], ...STACKS[stacks], seed]);
  /** @type {number[]} */
  const times = [];
  let began = 0;
  m.watch(2, (_, level, cycle) => {
    if (level) began = cycle;
    else times.push(cycle - began);
  });
  const stop = m.run(1e12);
  if (stop.reason !== 'break' || stop.code !== 0)
    throw new Error(`interference ended with ${JSON.stringify(stop)}`);
  return { ...statistics(times), result: m.read32('result') };
}

/** Returns the bytes of the structures on the device (chapter 5). */
export function structures() {
  const m = new Machine().load(image('sizes'));
  const names = ['event', 'actor', 'queue', 'heap', 'periodic', 'deadline', 'far', 'ltaQueue'];
  const at = m.address('sizes');
  return /** @type {Record<string, number>} */ (
    Object.fromEntries(names.map((name, i) => [name, m.read32(at + 4 * i)]))
  );
}

/** Runs as many periodic actors as fit, all of which fire twice (chapter 5, bench/most.c). */
export function most() {
  const m = new Machine().load(image('most'));
  let text = '';
  m.onUart((byte) => (text += String.fromCharCode(byte)));
  const stop = m.run(1e9);
  if (stop.reason !== 'break') throw new Error(`most ended with ${JSON.stringify(stop)}: ${text}`);
  const { actors, bytes_each: bytesEach, fired } = JSON.parse(text);
  return { actors, bytesEach, fired };
}

/** Returns the bytes of the runtime's code that a program links, and of the blink program (chapter
 * 5). */
export function codeSizes() {
  image('blink', { flash: true });
  const elf = join(MCU, '..', '.build', 'mcu', 'experiments-flash', 'blink.elf');
  const listing = execFileSync('arm-none-eabi-nm', ['-S', '-l', elf], { encoding: 'utf8' });
  let runtime = 0;
  for (const row of listing.split('\n')) {
    const found = /^\w+ (\w+) [tT] (\w+)\t.*\/mcu\/(\w+)\//.exec(row);
    if (found && found[3] === 'src') runtime += parseInt(found[1], 16);
  }
  return { runtime, blinkFlash: imageSize('blink', true), blinkSram: imageSize('blink', false) };
}
