/**
 * Tests of processes and channels on the emulated RP2040: their behaviour, their cost, and the size
 * of the images. All checks are exact, because the emulator is deterministic.
 *
 * run.mjs IMAGES writes one line per test and, last, `N passed, N failed`. IMAGES is the folder
 * that csp/tests/build fills.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Machine } from '../../../emulator/src/index.mjs';
import { checkBehaviour, RETIRED } from './behaviour.mjs';

const images = resolve(process.argv[2]);
const US = 125;
let passed = 0,
  failed = 0;

function check(what, value, wanted, ok = String(value) === String(wanted)) {
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}: ${value} (${wanted})`);
}
const atMost = (what, value, limit) => check(what, value, `at most ${limit}`, value <= limit);
function load(name) {
  const m = new Machine().load(readFileSync(`${images}/${name}.elf`));
  let text = '';
  m.onUart((byte) => {
    text += String.fromCharCode(byte);
  });
  return { m, text: () => text };
}

function bytes(name) {
  const lines = execFileSync('arm-none-eabi-size', [`${images}/${name}.elf`])
    .toString()
    .split('\n');
  return Number(lines[1].trim().split(/\s+/)[0]);
}

// ---- the costs ----------------------------------------------------------------------------------
// Budgets are the figures of README.md with a little room for another compiler.
for (const [name, communication, most] of [
  ['commstime', 210, 10450],
  ['commstime-os', 275, 7450],
  ['commstime-flash', 210, 10900],
]) {
  const { m, text } = load(name);
  const stop = m.run(80e6);
  check(`${name}: ends`, `${stop.reason} ${stop.code}`, 'break 0');
  const r = JSON.parse(text());
  check(`${name}: numbers that are wrong, of 1016`, r.wrong, 0);
  check(`${name}: communications to the consumer`, r.transfers, 1016);
  check(`${name}: processes left after the last end was dropped (rule 3)`, r.left, 0);
  atMost(`${name}: cycles a communication`, r.cycles_communication, communication);
  for (const process of ['prefix', 'delta', 'succ', 'consumer'])
    atMost(`${name}: bytes of ${process}`, r[`frame_${process}`], 96);
  atMost(`${name}: bytes a channel`, r.channel, 56);
  atMost(`${name}: bytes a scheduler`, r.scheduler, 96);
  atMost(`${name}: bytes of code, everything`, bytes(name), most);
}
// One source for all placements costs about what the processes above cost (rule 19.6).
for (const kind of ['', '-os']) {
  const figures = [`commstime${kind}`, `placed_commstime${kind}`].map((name) => {
    const { m, text } = load(name);
    const stop = m.run(80e6);
    check(`${name}: ends`, `${stop.reason} ${stop.code}`, 'break 0');
    return { ...JSON.parse(text()), bytes: bytes(name) };
  });
  const [own, placed] = figures;
  check(
    `placed_commstime${kind}: numbers that are wrong, left`,
    [placed.wrong, placed.left],
    '0,0',
  );
  const ratio = (figure) => (placed[figure] / own[figure]).toFixed(3);
  atMost(`placed_commstime${kind}: cycles a loop ÷ commstime's`, ratio('cycles_loop'), 1.03);
  atMost(`placed_commstime${kind}: bytes ÷ commstime's`, ratio('bytes'), 1.05);
}
for (const name of ['commstime', 'checks', 'two_cores', 'placed']) {
  const symbols = execFileSync('arm-none-eabi-nm', ['-C', `${images}/${name}.elf`]).toString();
  const heap = symbols
    .split('\n')
    .filter(
      (l) =>
        /\b(_?malloc|_?calloc|_?realloc|_?free|_sbrk|__cxa_\w+|__aeabi_atexit|operator (new|delete)(\[\])?\((unsigned|void)[^)]*\))/.test(
          l,
        ) && !/promise_type|PlacedPromise/.test(l),
    );
  check(`${name}: heap and exception symbols`, JSON.stringify(heap), '[]');
  check(
    `${name}: sections of start-up code`,
    /\.init_array|\.ctors/.test(
      execFileSync('arm-none-eabi-objdump', ['-h', `${images}/${name}.elf`]).toString(),
    ),
    false,
  );
}

// ---- the behaviour ------------------------------------------------------------------------------
{
  const { m, text } = load('checks');
  const late = [],
    due = m.address('_ZN12_GLOBAL__N_17timeout3dueE');
  m.drive(6, 1);
  m.watch(2, (pin, level, cycle) => late.push(Math.round((m.micros - m.read32(due)) * US)));
  m.run(60e6, () => text().endsWith('ready\n'));
  const began = m.cycle;
  // Ten edges while a reader reads, then eight while it sleeps for 2000 us.
  let level = 1;
  const values = [];
  m.watch(3, (pin, l, cycle) => values.push(cycle));
  const edges = [];
  for (let k = 0; k < 18; k++) {
    const cycle = began + (k < 10 ? 200 + 53 * k : 1000 + 50 * k) * US;
    if (k < 10) edges.push(cycle);
    m.at(cycle, () => m.drive(6, (level ^= 1)));
  }
  const stop = m.run(began + 20e6);
  check('checks: ends', `${stop.reason} ${stop.code}`, 'break 0');
  checkBehaviour(text(), check);
  check('timeout: reads that an event ended', late.length, 20);
  check(
    'timeout: never early, cycles after the microsecond began',
    Math.min(...late),
    '> 0',
    Math.min(...late) > 0,
  );
  atMost('timeout: process goes on, cycles after its microsecond began', Math.max(...late), 220);
  check('timeout: jitter, cycles', Math.max(...late) - Math.min(...late), 0);
  const took = edges.map((e, i) => values[i] - e);
  check('port: values seen', values.length, 10);
  atMost('port: pin edge to reading process, core idle, cycles', Math.max(...took), 540);
}
{
  const { m, text } = load('two_cores');
  m.run(20e6);
  check('two_cores: values, wrong, dropped, end (M20)', text().trim(), `200 0 0 ${RETIRED}`);
}
for (const [image, rule, wanted] of [
  ['mistake', 'no room in the arena (M21)', 'refused\n'],
  ['mistake-1-debug', 'no room in the arena (M21)', 'weft: no room in the arena for a process'],
  ['mistake-2-debug', 'a deadlock (rule 10.1)', 'weft: deadlock: every process of this scheduler'],
  ['mistake-3', 'a port is not connected (M20)', 'refused\n'],
  ['mistake-3-debug', 'a port is not connected (M20)', 'weft: a value is posted to a port that is'],
  ['mistake-4', 'an hour is not early (rule 8.5)', 'the value\n'],
  ['mistake-4-debug', 'an hour is not early (rule 8.5)', 'the value\n'],
]) {
  const { m, text } = load(image);
  m.run(20e6);
  check(
    `${image}: ${rule}`,
    JSON.stringify(text().slice(0, wanted.length)),
    JSON.stringify(wanted),
  );
}
// ---- a placeable source -------------------------------------------------------------------------
{
  const { m, text } = load('placed');
  const stop = m.run(80e6);
  check('placed: ends', `${stop.reason} ${stop.code}`, 'break 0');
  const expected = readFileSync(
    resolve(import.meta.dirname, '../../../cpp/tests/anywhere_small.expected'),
    'utf8',
  );
  const lines = expected.slice('R"('.length).split('\n').slice(0, -2);
  const got = text().trimEnd().split(/\r?\n/);
  lines.forEach((line, i) =>
    check(`placed: ${line.split(' ')[0]}, as elsewhere (rules 19.1 to 19.6)`, got[i], line),
  );
}
// ---- the flight recorder ------------------------------------------------------------------------
{
  // The goal of rule M24 is 40 cycles an event, apart from reading the timer.
  const { m, text } = load('flight');
  const stop = m.run(40e6);
  check('flight: ends', `${stop.reason} ${stop.code}`, 'break 0');
  atMost('flight: cycles an event', m.read32(m.address('flight_cycles')), 40);
  check('flight: the bytes begin', text().slice(1, 5), 'WEFT');
}
// ---- an interrupt at every instruction ----------------------------------------------------------
{
  const probe = load('sweep').m;
  const stretch = probe.address('sweep_stretch'),
    interrupts = probe.address('sweep_interrupts');
  probe.run(1e6, () => probe.read32(stretch) === 1);
  const first = probe.cores[0].instructions;
  probe.run(1e6, () => probe.read32(stretch) === 2);
  const last = probe.cores[0].instructions;
  let bad = 0,
    n = 0;
  for (let k = first; k < last; k++, n++) {
    const { m } = load('sweep');
    m.injectInterrupt(0, k, 5);
    const stop = m.run(1e6);
    if (stop.reason !== 'break' || stop.code !== 0 || m.read32(interrupts) !== 1) {
      if (bad++ < 5) console.log(`     before instruction ${k}: ${stop.reason} ${stop.code}`);
    }
  }
  check(
    `an interrupt that writes into a channel, before each of ${n} instructions: runs that went wrong (M19, M20)`,
    bad,
    0,
    bad === 0 && n > 1000,
  );
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
