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

const images = resolve(process.argv[2]);
const US = 125;
const [OK, RETIRED, POISONED, TIMED_OUT] = [0, 2, 3, 6]; // weft::Status
const E_ARENA = 3;
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

// ---- the costs ----------------------------------------------------------------------------------
// Budgets are the figures of README.md with a little room for another compiler.
for (const [name, communication, bytes] of [
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
  const [code] = execFileSync('arm-none-eabi-size', [`${images}/${name}.elf`])
    .toString()
    .split('\n')[1]
    .trim()
    .split(/\s+/)
    .map(Number);
  atMost(`${name}: bytes of code, everything`, code, bytes);
}
for (const name of ['commstime', 'checks', 'two_cores']) {
  const symbols = execFileSync('arm-none-eabi-nm', ['-C', `${images}/${name}.elf`]).toString();
  const heap = symbols
    .split('\n')
    .filter(
      (l) =>
        /\b(_?malloc|_?calloc|_?realloc|_?free|_sbrk|__cxa_\w+|__aeabi_atexit|operator (new|delete)(\[\])?\((unsigned|void)[^)]*\))/.test(
          l,
        ) && !/promise_type/.test(l),
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
  const said = new Map();
  for (const line of text().trim().split('\n')) {
    const [name, ...rest] = line.split(' ');
    said.set(name, [...(said.get(name) ?? []), rest.join(' ')]);
  }
  const is = (rule, name, ...wanted) =>
    check(`${name} (${rule})`, JSON.stringify(said.get(name)), JSON.stringify(wanted));
  is('M19: an event ends a read, nothing is transferred', 'timeout', 'transfers 0');
  check('timeout: reads that an event ended', late.length, 20);
  check(
    'timeout: never early, cycles after the microsecond began',
    Math.min(...late),
    '> 0',
    Math.min(...late) > 0,
  );
  atMost('timeout: process goes on, cycles after its microsecond began', Math.max(...late), 220);
  check('timeout: jitter, cycles', Math.max(...late) - Math.min(...late), 0);
  is('M19: a value in time; the event ends nothing later', 'in_time', `${OK} 11 ${OK} 12`);
  is('M19: what is there is read, however late', 'late_but_there', `${OK} 13`);
  is('M19: a deadline that is past ends at once', 'past_and_empty', `${TIMED_OUT} 13 1`);
  check(
    'write_until (M19: in its microsecond)',
    said.get('write_until'),
    `${TIMED_OUT} 200 to 202`,
    /^6 20[0-2]$/.test(said.get('write_until')?.[0]),
  );
  is('M19: an output that was ended has delivered nothing', 'read_after', `${OK} 2`);
  is('rule 1.2', 'write_after', `${OK}`);
  is(
    'M19: tie of value and deadline, decided by order of posting (M5); nothing is lost',
    'tie',
    '0 1 0 0',
    '1 1 1 1',
  );
  is(
    'rules 4.2 poison, 3.1 retire',
    'reader_end',
    `1 ${POISONED} ${POISONED}`,
    `2 ${RETIRED} ${RETIRED}`,
  );
  is('rule 3.3', 'writer_end', `${RETIRED}`);
  is('rule 3.1: a buffer is drained first', 'buffer_end', `6 ${RETIRED}`);
  is('rule 2.5: no end of a side that has ended', 'empty_end', '0 0');
  is('rule 5.4: fair choice takes turns', 'fair', '85 132');
  is('rule 5.6: a merge is over when its last source is', 'over', `${RETIRED}`);
  is('rule 5.6: ends() makes an end an outcome', 'end_is_ready', `0 ${RETIRED}`);
  check(
    'select_until (M19)',
    said.get('select_until'),
    '0 0 to 4',
    /^0 [0-4]$/.test(said.get('select_until')?.[0]),
  );
  is('rule 5.8: an output guard', 'output_guard', `2 ${OK}`);
  is('rule 5.8', 'taken', '900');
  is('M19', 'select_past', '0');
  is('M21: frames of ended processes are used again', 'frames_reused', '0 0');
  is('M21: no room: an empty process', 'no_room', '0 1');
  is('M21: the ends among its arguments are dropped', 'argument_gone', '0 1');
  is('M21: and a code', 'no_room_code', `${E_ARENA} 0`);
  is('M21: made, never started', 'never_started', '0 0');
  is('M20: other actors of the queue have their turn', 'beside', '40 1 1');
  for (const how of ['writes', 'selects', 'sleeps', 'looks', 'ends'])
    is('M20: who never waits lets others run, after 32', `never_waits_${how}`, '31 1 1');
  is('M20: values from an interrupt, in order', 'interrupt_values', '10 45 0 0');
  is('M20: a full port drops the newest and counts', 'ring', '8 4 8');
  is('M20: accepted while the ring has room', 'after_end', '1');
  const took = edges.map((e, i) => values[i] - e);
  check('port: values seen', values.length, 10);
  atMost('port: pin edge to reading process, core idle, cycles', Math.max(...took), 540);
  check('checks: nothing failed to start', said.get('start'), undefined);
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
{
  // The goal of rule M23 is 40 cycles an event, apart from reading the timer.
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
