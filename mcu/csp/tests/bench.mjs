/**
 * What the tests of the drivers share: checks, a seed, and an emulated RP2040 that runs an image of
 * csp/tests/build and is measured.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Machine } from '../../../emulator/src/index.mjs';

export const images = resolve(process.argv[2]);
export const US = 125; // cycles
const EXIT = 13; // cycles that leaving a handler takes
let seed = Number(process.argv[3] ?? 45);
let passed = 0,
  failed = 0;

export function check(what, value, wanted, ok = String(value) === String(wanted)) {
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}: ${value} (${wanted})`);
}
export const atMost = (what, value, limit) =>
  check(what, value, `at most ${limit}`, value <= limit);
console.log(`seed ${seed}`);
/** A number from 0 to n - 1. */
export function random(n) {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * n);
}

export function load(name, options) {
  const m = new Machine(options).load(readFileSync(`${images}/${name}.elf`));
  let text = '';
  const lines = []; // the cycle in which each line ended
  m.onUart((byte, cycle) => {
    text += String.fromCharCode(byte);
    if (byte === 10) lines.push(cycle);
  });
  const ends = (key) => lines.filter((_, i) => text.split('\n')[i].startsWith(`${key} `));
  const values = (key) =>
    text
      .split('\n')
      .filter((line) => line.startsWith(`${key} `))
      .map((line) => line.split(' ').slice(1).map(Number));
  // The cycles of each run of a handler, from the interrupt to the instruction after it.
  const handlers = new Map();
  let entered = 0;
  m.cores[0].onException = (core, number, entry) => {
    if (entry) entered = core.t;
    else handlers.set(number, [...(handlers.get(number) ?? []), core.t + EXIT - entered]);
  };
  // The longest stretch with interrupts off, in cycles.
  const masked = { began: null, longest: 0 };
  m.onInstruction = (core) => {
    if (core !== m.cores[0]) return;
    if (core.primask) masked.began ??= core.t;
    else if (masked.began !== null) {
      masked.longest = Math.max(masked.longest, core.t - masked.began);
      masked.began = null;
    }
  };
  return {
    m,
    masked,
    text: () => text,
    values,
    ends,
    cycles: (irq) => handlers.get(irq + 16) ?? [],
  };
}

/** Prints the line that mcu/tests/run reads, and sets the exit status. */
export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}
