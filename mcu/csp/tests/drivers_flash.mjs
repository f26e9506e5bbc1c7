/**
 * Tests of the store in flash (mcu/DRIVERS.md, rule M30) on the emulated RP2040. The power is cut
 * at each write of a run: a second machine starts with the flash as the cut has left it.
 *
 * drivers_flash.mjs IMAGES [SEED] writes one line per test and, last, `N passed, N failed`. IMAGES
 * is the folder that csp/tests/build fills.
 */
import { readFileSync } from 'node:fs';
import { Machine, parseImage } from '../../../emulator/src/index.mjs';
import { atMost, check, finish, images, load, random, US } from './bench.mjs';

const STATUS = ['ok', 'absent', 'full', 'too_long', 'damaged', 'bad_request'];
const OPS = { get: 0, set: 1, remove: 2 };
const ORIGIN = 0x1f8000;
const BYTES = 8 * 4096;
/** A request in memory: op, status, count, key, bytes; in the table `done` and `took` follow. */
const KEY = 4;
const VALUE = 20;
const ENTRY = VALUE + 256 + 8;
const ENTRIES = 24;

/** Returns a machine before main(), with functions that write requests and read answers. */
function bench(m, flash) {
  if (flash) m.rp.flash.set(flash, ORIGIN);
  m.runTo('main', 1e6);
  const table = (client) => m.address('bus_tables') + client * (8 + ENTRIES * ENTRY);
  const place = (client, i) => table(client) + 8 + i * ENTRY;
  const answered = (client) => m.read32(table(client) + 4);
  return {
    m,
    answered,
    figure: (name) => m.read32(m.address(`bus_${name}`)),
    flash: () => m.rp.flash.slice(ORIGIN, ORIGIN + BYTES),
    ask(client, { op, key, value = [], count = value.length }) {
      const n = m.read32(table(client));
      const at = place(client, n);
      m.write(at, Uint8Array.from([OPS[op] ?? op, 99, count & 255, count >> 8]));
      m.write(at + KEY, Buffer.from(key.padEnd(16, '\0')));
      m.write(at + VALUE, Uint8Array.from(value));
      m.write32(table(client), n + 1);
    },
    answers: (client) =>
      Array.from({ length: answered(client) }, (_, i) => {
        const at = place(client, i);
        const [, status, low, high] = m.read(at, 4);
        const count = low + 256 * high;
        const [took] = new Uint32Array(m.read(at + ENTRY - 4, 4).buffer);
        return {
          status: STATUS[status] ?? 'none',
          count,
          value: [...m.read(at + VALUE, Math.min(count, 256))],
          took,
        };
      }),
  };
}
const parsed = parseImage(readFileSync(`${images}/flash_store.elf`), undefined, 'flash_store');
const started = (flash) => bench(new Machine().load(parsed), flash);

/** Some bytes, the same for the same two numbers. */
const bytes = (kind, n) => Array.from({ length: n }, (_, i) => (kind * 37 + i * 11 + n) & 255);

/** The requests of two processes: each has keys of its own. */
function workload() {
  const sizes = [256, 200, 17, 256, 240, 1, 256, 150];
  const first = Array.from({ length: ENTRIES }, (_, i) => {
    const key = ['speed', 'pid.gains', 'a'][i % 3];
    if (i % 8 === 6) return { op: 'remove', key };
    return { op: 'set', key, value: bytes(i, sizes[i % sizes.length]) };
  });
  const second = Array.from({ length: ENTRIES }, (_, i) => ({
    op: 'set',
    key: i % 2 ? 'fifteen_letters' : 'counter',
    value: bytes(100 + i, i % 2 ? 256 : 180),
  }));
  return [first, second];
}
/** What the keys hold after the first n requests of a process. */
function state(requests, n) {
  const held = new Map(requests.map(({ key }) => [key, null]));
  for (const { op, key, value } of requests.slice(0, n)) held.set(key, op === 'set' ? value : null);
  return held;
}
const text = (value) => (value === null ? 'absent' : value.join());

// ---- the power is cut at each write ---------------------------------------------------------------
/** Returns the flash after a cut within a change: some bits have changed, others have not. */
function torn(before, { offset, after }, how) {
  const flash = before.slice();
  const at = offset - ORIGIN;
  const end = how === 'a part' ? random(after.length + 1) : after.length;
  for (let i = 0; i < end; i++) {
    const keep = how === 'some bits' ? random(256) & random(256) : 0;
    flash[at + i] = (after[i] & ~keep) | (flash[at + i] & keep);
  }
  return flash;
}
{
  const { m, ask, answered, figure, flash, answers } = started();
  const asked = workload();
  for (const client of [0, 1]) for (const request of asked[client]) ask(client, request);
  const cuts = [];
  const kinds = { erase: 0, program: 0 };
  m.onFlash = (change) => {
    const how = ['a part', 'some bits', 'all of it'][cuts.length % 3];
    kinds[change.kind]++;
    cuts.push({
      what: `${change.kind}, ${how}`,
      done: [answered(0), answered(1)],
      flash: torn(flash(), change, how),
    });
  };
  const stop = m.run(125e6 * 20);
  check('store: ends', `${stop.reason} ${stop.code}`, 'break 0');
  check('store: starts, is new', [figure('started') - 1, figure('formatted')], '0,1');
  check('store: mistakes that are not refused', figure('wrong'), 0);
  const all = [...answers(0), ...answers(1)].map((answer) => answer.status);
  check('store: answers', all.filter((status) => status === 'ok').length, 2 * ENTRIES);
  check('store: processes left', figure('left'), 0);
  check('store: faults', m.warnings.map((w) => w.why).join(), '');
  check('store: erasures', kinds.erase, 'more than 3', kinds.erase > 3);
  atMost('store: ms of a request', Math.max(...answers(0).map((a) => a.took)) / 1000, 400);
  cuts.push({ what: 'no cut', done: [ENTRIES, ENTRIES], flash: flash() });

  /** Starts with the flash after a cut; returns the problems, and the flash after a second cut. */
  function restart(cut) {
    const again = started(cut.flash);
    const keys = asked.map((requests) => [...state(requests, 0).keys()]);
    for (const client of [0, 1]) {
      for (const key of keys[client]) again.ask(client, { op: 'get', key });
      const value = bytes(200 + client, 120);
      again.ask(client, { op: 'set', key: `then${client}`, value });
      again.ask(client, { op: 'get', key: `then${client}` });
    }
    let second;
    let writes = random(6);
    again.m.onFlash = (change) => {
      if (writes-- === 0) second = { ...cut, flash: torn(again.flash(), change, 'some bits') };
    };
    const end = again.m.run(125e6 * 5);
    const problems = end.reason === 'break' ? [] : [`ends with ${end.reason}`];
    for (const client of [0, 1]) {
      const got = again.answers(client);
      const [old, next] = [0, 1].map((more) => state(asked[client], cut.done[client] + more));
      for (const [k, key] of keys[client].entries()) {
        const { status, value } = got[k] ?? { status: 'none', value: [] };
        const seen = status === 'ok' ? text(value) : status;
        if (seen !== text(old.get(key)) && seen !== text(next.get(key)))
          problems.push(`${key} is ${seen.slice(0, 40)}`);
      }
      const [set, get] = got.slice(keys[client].length);
      if (set?.status !== 'ok' || get?.value.join() !== bytes(200 + client, 120).join())
        problems.push(`cannot be written afterwards: ${set?.status}`);
    }
    return { problems, second };
  }
  const wrong = [0, 0];
  let seconds = 0;
  for (const [i, cut] of cuts.entries()) {
    const first = restart(cut);
    if (first.problems.length) wrong[0]++;
    // After every third cut the power is cut during the next start as well.
    const then = i % 3 === 0 && first.second ? restart(first.second) : null;
    if (then) seconds++;
    if (then?.problems.length) wrong[1]++;
    const problems = [...first.problems, ...(then?.problems ?? [])];
    if (problems.length && wrong[0] + wrong[1] < 5)
      console.log(`  cut ${i} (${cut.what}): ${problems}`);
  }
  check('store: power cuts', cuts.length, 'more than 100', cuts.length > 100);
  check('store: cuts after which a value is neither the old nor the new one', wrong[0], 0);
  check('store: cuts of the start after a cut', seconds, 'more than 20', seconds > 20);
  check('store: values that are neither, after two cuts', wrong[1], 0);
}

// ---- what is refused; a flash that is full --------------------------------------------------------
{
  const { m, ask, answers } = started();
  const bad = [
    { op: 'get', key: '' },
    { op: 'get', key: 'sixteen_letters_' },
    { op: 'get', key: 'a/b' },
    { op: 'get', key: '.' },
    { op: 'get', key: 'a b' },
    { op: 3, key: 'a' },
    { op: 'set', key: 'a', count: 0 },
    { op: 'set', key: 'a', count: 257 },
  ];
  for (const request of bad) ask(0, request);
  ask(0, { op: 'get', key: 'a' });
  ask(0, { op: 'remove', key: 'a' });
  m.run(125e6 * 5);
  const said = answers(0).map((answer) => answer.status);
  check('store: bad requests', [...new Set(said.slice(0, bad.length))], 'bad_request');
  check('store: a key without a value', said.slice(bad.length), 'absent,absent');
}
{
  let held;
  let number = 0;
  const full = [];
  for (let round = 0; round < 8 && full.length === 0; round++) {
    const { m, ask, answers, flash } = started(held);
    for (let i = 0; i < 20; i++, number++)
      ask(0, { op: 'set', key: `k${number}`, value: bytes(number, 256) });
    m.run(125e6 * 30);
    answers(0).forEach((a, i) => a.status === 'full' && full.push(number - 20 + i));
    held = flash();
  }
  check('store: values of 256 bytes in 32 KB', full[0], '30 to 120', full[0] > 30);
  const { m, ask, answers } = started(held);
  ask(0, { op: 'get', key: `k${full[0] - 1}` });
  ask(0, { op: 'get', key: `k${full[0]}` });
  ask(0, { op: 'set', key: 'k0', value: bytes(7, 200) });
  for (let i = 1; i < 16; i++) ask(0, { op: 'remove', key: `k${i}` });
  ask(0, { op: 'set', key: 'new', value: bytes(8, 256) });
  ask(0, { op: 'get', key: 'new' });
  m.run(125e6 * 30);
  const a = answers(0);
  check(
    'store: full: the last value that had room',
    a[0].value.join() === bytes(full[0] - 1, 256).join(),
    true,
  );
  check('store: full: the first that had none', a[1].status, 'absent');
  const removed = a.slice(3, 18).map((answer) => answer.status);
  check('store: full: to remove values', [...new Set(removed)], 'ok');
  check('store: full: room again', a[19].value.join() === bytes(8, 256).join(), true);
}

// ---- the example of the page --------------------------------------------------------------------
{
  let held;
  let said = '';
  for (let start = 0; start < 3; start++) {
    const { m, text } = load('starts-flash');
    if (held) m.rp.flash.set(held, 0x1f0000);
    m.run(125e6);
    said += text();
    held = m.rp.flash.slice(0x1f0000, 0x200000);
  }
  check(
    'starts: three times',
    JSON.stringify(said),
    JSON.stringify('start 1\r\nstart 2\r\nstart 3\r\n'),
  );
}

// ---- what it costs ------------------------------------------------------------------------------
for (const [image, limit] of [
  ['flash_store', 200],
  ['flash_store-flash', 46000 * US],
]) {
  const { m, masked } = load(image);
  const counted = m.onInstruction;
  let lowest = Infinity;
  let changing = 0; // the cycle from which the flash can be read again
  let read = 0; // instructions that were fetched from flash while it could not be read
  m.onInstruction = (core) => {
    counted(core);
    lowest = Math.min(lowest, core.r[13] >>> 0);
    if (core.t < changing && core.pc >>> 24 === 0x10) read++;
  };
  m.onFlash = ({ kind }) => (changing = m.cores[0].t + (kind === 'erase' ? 45000 : 700) * US);
  const store = bench(m);
  for (const client of [0, 1])
    for (let i = 0; i < 6; i++)
      store.ask(client, { op: 'set', key: `k${client}`, value: bytes(i, 256) });
  m.run(125e6 * 10);
  check(`${image}: answers`, store.answers(1).filter((a) => a.status === 'ok').length, 6);
  check(`${image}: places that are refused`, store.figure('wrong'), 0);
  check(`${image}: instructions from a flash that is busy`, read, 0);
  atMost(`${image}: cycles with interrupts off`, masked.longest, limit);
  atMost(`${image}: bytes of the stack`, 0x20042000 - lowest, 2200);
  atMost(`${image}: bytes of a FlashStore<256>`, store.figure('bytes'), 1012);
  atMost(`${image}: bytes of the frame of a pair of channels`, store.figure('frame'), 912);
}
finish();
