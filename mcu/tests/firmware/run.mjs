/**
 * Runs firmware on the emulated RP2040: asserts every budget of the runtime, and uses every
 * example. All checks are exact, because the emulator is deterministic.
 *
 * run.mjs [--emulator DIR] IMAGES writes one line per test and, last, `N passed, N failed`. IMAGES
 * is the folder of the built firmware.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { check, edges, finish, image, load, text, US } from './harness.mjs';

const steady = (list) => list.slice(10); // the first few tasks begin before both cores run

/** The two 10 kHz tasks: gaps and starts of each pin. */
function tasks(name, ms, options) {
  const m = load(name, options);
  const pins = [edges(m, 2), edges(m, 3)];
  m.run(ms * 1000 * US);
  return pins.map((list) => {
    const s = steady(list),
      rises = s.filter((e) => e.level),
      gaps = [];
    for (let i = 1; i < s.length; i++)
      if (s[i].level && !s[i - 1].level) gaps.push(s[i].cycle - s[i - 1].cycle);
    const periods = rises.slice(1).map((e, i) => e.cycle - rises[i].cycle);
    return { gaps, periods, phases: rises.map((e) => e.cycle % US), n: rises.length };
  });
}

// ---- cost of an event ---------------------------------------------------------------------------
for (const [name, label, limit] of [
  ['periodic-own-saturated', 'own queues, returning the period', 110],
  ['periodic-shared-saturated', 'shared queue, returning the period', 110],
  ['periodic-own-saturated-post', 'own queues, posting', 150],
  ['periodic-shared-saturated-post', 'shared queue, posting', 150],
])
  check(
    `overhead at saturation, ${label}, cycles`,
    Math.max(...tasks(name, 20).flatMap((t) => t.gaps)),
    limit,
  );
for (const name of ['periodic-own-270', 'periodic-shared-270', 'periodic-own-270-post'])
  check(
    `10 kHz held with 270 loops, ${name}: worst period, cycles`,
    Math.max(...tasks(name, 50).flatMap((t) => t.periods)),
    12500 + 8,
  );
for (const name of ['periodic-own-235', 'periodic-shared-235'])
  check(
    `10 kHz held with 235 loops, bus conflicts modelled, ${name}: worst period, cycles`,
    Math.max(...tasks(name, 50, { conflicts: true }).flatMap((t) => t.periods)),
    12500 + 60,
  );
{
  // the unit of work is the one of the thesis: 250 loops are 90.0 us
  const t = tasks('periodic-own-saturated', 20)[0];
  const loop = (t.periods[0] - t.gaps[0]) / 300;
  check(
    '250 loops of work, us',
    (250 * loop) / US,
    '90 +- 2',
    Math.abs((250 * loop) / US - 90) < 2,
  );
}
for (const name of ['periodic-own-light', 'periodic-shared-light']) {
  const t = tasks(name, 50);
  check(
    `start deviation at 10 loops, ${name}, cycles`,
    Math.max(...t.flatMap((x) => x.periods.map((p) => Math.abs(p - 12500)))),
    8,
  );
}
{
  // entry after release: the first instruction of an action against the microsecond's beginning;
  // over all phases of release and core start
  let worst = 0,
    best = 1e9,
    n = 0;
  for (let delay = 0; delay < 140; delay += 7) {
    const m = load('periodic-own-light', { core1Delay: 40 + delay });
    for (const task of ['task_a', 'task_b'])
      m.breakpoint(task, () => {
        const after = Math.round((m.micros % 1) * US); // since the microsecond began
        if (n++ >= 4) ((worst = Math.max(worst, after)), (best = Math.min(best, after)));
        return false;
      });
    m.run(3000 * US);
    n = 0;
  }
  check('entry after release, cycles', worst, 20);
  check('jitter of the entry, cycles', worst - best, 8);
}
{
  // entry after release if the core's previous action ended shortly before: one cycle closer each
  // time
  const near = [],
    waited = [];
  for (let stall = 0; stall < 420; stall++) {
    const m = load('entry'),
      core = m.cores[0];
    let ended = 0,
      began = 0;
    m.breakpoint('first', () => {
      core.t += stall;
      ended = m.micros * US + stall;
      return false;
    });
    m.breakpoint('second', () => {
      began = m.micros * US;
      return false;
    });
    m.run(2000 * US);
    const release = m.read32('release_of_second') * US,
      ahead = release - ended;
    if (ahead > 2.2 * US) waited.push(Math.round(began - release));
    else if (ahead > 0.65 * US) near.push(Math.round(began - release));
  }
  check(
    'entry after release, last action 2.2 us before or more, WEFT_LOCAL: cycles',
    Math.max(...waited),
    14,
    waited.length > 100 && Math.max(...waited) <= 14,
  );
  check('jitter of it', Math.max(...waited) - Math.min(...waited), 0);
  check(
    'entry after release, last action 0.65 to 2.2 us before: cycles at most',
    Math.max(...near),
    18,
    near.length > 150 && Math.max(...near) <= 18,
  );
  check('the same, at least', Math.min(...near), 12, Math.min(...near) >= 12);
}
{
  // schedule: from the first instruction of weft_post to its return, into an empty queue
  const m = load('periodic-own-saturated-post');
  let worst = 0,
    n = 0,
    back = 0,
    began = 0;
  const entry = m.address('weft_list_post') & ~1;
  m.onInstruction = (core) => {
    if (core !== m.cores[0]) return;
    if (core.pc === entry) ((back = core.r[14] & ~1), (began = core.t));
    else if (core.pc === back) {
      if (n++ > 4) worst = Math.max(worst, core.t - began);
      back = 0;
    }
  };
  m.run(3000 * US);
  check('schedule into an empty queue, cycles', worst, 45, n > 10 && worst <= 45);
}
{
  const m = load('queue'),
    out = text(m);
  const stop = m.run(125e6);
  const q = JSON.parse(out());
  check('queue bench ends, breakpoint', stop.code, 0);
  check('each entry passed, cycles', q.entry_passed, 11);
  check('post behind the last inserted, cycles', q.post_behind_last, 68);
  // The limits are 3 % above the figures (229, 480) from before events stored their place in the
  // heap, which makes cancel and move logarithmic.
  check('heap push at 10,000, cycles', Math.max(q.heap_push_worst, q.heap_push_random_worst), 236);
  check('heap pop at 10,000, cycles', Math.max(q.heap_pop_worst, q.heap_pop_random_worst), 480);
  check('heap push at 10,000, mean of random times, cycles', q.heap_push_random_mean, 120);
  check('heap push among ties, cycles', q.heap_push_ties_worst, 360);
  check('heap pop among ties, mean cycles', q.heap_pop_ties_mean, 510);
  check('heap pop among ties, cycles', q.heap_pop_ties_worst, 1000);
}
{
  // saturated actors with the same period; the figures include the few instructions of the counting
  // action
  const m = load('many'),
    out = text(m);
  m.run(500e6);
  const q = JSON.parse(out());
  for (const n of ['10_1', '50_1', '50_0']) {
    check(
      `actors of one period (number_apart: ${n}), list, returning it, cycles an event`,
      q[`returns_list_${n}`],
      200,
    );
    check(
      `actors of one period (number_apart: ${n}), list, posting, cycles an event`,
      q[`posts_list_${n}`],
      200,
    );
  }
  check('50 actors of one period, heap, returning it, cycles an event', q.returns_heap_50_1, 620);
}
{
  const m = load('most'),
    out = text(m);
  m.run(500e6);
  const q = JSON.parse(out());
  check('bytes a periodic actor', q.bytes_each, 17);
  check('most actors in 256 KB', q.actors, 14000, q.actors >= 14000);
  check('of which fired twice', q.fired / 2, q.actors, q.fired === 2 * q.actors);
}
// ---- interrupt to action ------------------------------------------------------------------------
for (const [image, limits] of [
  ['wake', [180, 180]],
  ['wake-claimed', [280, 280]],
])
  for (const [i, limit] of limits.entries()) {
    const m = load(`${image}-${i}`),
      out = edges(m, 8 + i),
      driven = [];
    let level = 1;
    m.drive(6, 1);
    for (let k = 0; k < 100; k++) {
      const cycle = 2000000 + k * 12500 + k * 13; // every phase of the microsecond
      driven.push(cycle);
      m.at(cycle, () => m.drive(6, (level ^= 1)));
    }
    m.run(2000000 + 100 * 12600);
    const took = out.map((e, k) => e.cycle - driven[k]);
    check(
      `interrupt to action, ${i ? 'other' : 'same'} core${image === 'wake' ? '' : ', which holds a claim'}, cycles`,
      Math.max(...took),
      limit,
      out.length === 100 && Math.max(...took) <= limit,
    );
  }
// ---- idle ---------------------------------------------------------------------------------------
{
  const m = load('blink'),
    led = edges(m, 25);
  m.run(3.2e6 * US);
  check('blink: edges in 3.2 s', led.length, 6, led.length === 6);
  check(
    'blink: every half second to the cycle, worst',
    Math.max(...led.slice(1).map((e, i) => Math.abs(e.cycle - led[i].cycle - 62.5e6))),
    0,
  );
  check('idle: instructions in 3.2 s', m.cores[0].instructions + m.cores[1].instructions, 2500);
}
{
  const m = load('blink-flash'),
    led = edges(m, 25);
  m.run(1.2e6 * US);
  check('blink from flash: edges in 1.2 s', led.length, 2, led.length === 2);
}
{
  // started as the boot ROM starts an image in SRAM: at its first byte, which is the vector table
  const m = load('blink'),
    led = edges(m, 25);
  m.cores[0].pc = 0x20000000;
  m.cores[0].r[13] = 0x20041f00;
  m.run(1.2e6 * US);
  check('blink, vector table run as code: edges in 1.2 s', led.length, 2, led.length === 2);
}
{
  // boot2 itself runs: its checksum is right, and it reaches the program with the vector table set
  const m = load('blink-flash', { runBoot2: true }),
    led = edges(m, 25);
  m.run(1.2e6 * US);
  check('blink from flash, through boot2: edges in 1.2 s', led.length, 2, led.length === 2);
}
// ---- examples -----------------------------------------------------------------------------------
{
  const m = load('button'),
    led = edges(m, 25);
  m.drive(17, 1);
  let t = 100000 * US;
  for (let press = 0; press < 3; press++)
    // each press and release bounces seven times within 1 ms
    for (const level of [0, 1]) {
      for (let b = 0; b < 7; b++, t += 137 * US) m.at(t, () => m.drive(17, level ^ (b & 1)));
      t += 60000 * US;
    }
  m.run(t);
  check('button: toggles for three presses with 42 bounces', led.length, 3, led.length === 3);
}
{
  const m = load('console'),
    out = text(m),
    led = edges(m, 25);
  m.at(10000 * US, () => m.feed('on\r'));
  m.at(20000 * US, () => m.feed('blink 5\r\n'));
  m.at(60000 * US, () => m.feed('off\r'));
  m.at(70000 * US, () => m.feed('blink\r'));
  m.run(80000 * US);
  check(
    'console: answers',
    JSON.stringify(out()),
    'weft, on, blink 5 ms, off, help',
    out() === 'weft\non\nblink 5 ms\noff\non | off | blink MS\n',
  );
  check('console: edges of the lamp', led.length, '8 to 11', led.length >= 8 && led.length <= 11);
}
for (const [what, uartDelay] of [
  ['at the speed of the line', true],
  ['all at once', false],
]) {
  // pasted: 30 lines, none lost
  const m = load('console', { uartDelay }),
    out = text(m);
  const wanted = [],
    lines = [];
  for (let i = 1; i <= 30; i++) {
    lines.push(i % 3 ? `blink ${i}` : i % 2 ? 'on' : 'off');
    wanted.push(i % 3 ? `blink ${i} ms` : i % 2 ? 'on' : 'off');
  }
  m.at(10000 * US, () => m.feed(`${lines.join('\r\n')}\r\n`));
  m.run(200000 * US);
  check(
    `console: answers to 30 lines pasted ${what}`,
    out() === `weft\n${wanted.join('\n')}\n` ? 30 : JSON.stringify(out()),
    30,
    out() === `weft\n${wanted.join('\n')}\n`,
  );
}
{
  // more input than the ring holds comes while a line is answered: the overflow is reported, and no
  // line is made of pieces of two lines
  const m = load('console', { uartDelay: true }),
    out = text(m);
  m.at(10000 * US, () => m.feed('blink 12345\r'.repeat(300)));
  m.at(1500000 * US, () => m.feed('on\r'));
  m.run(2000000 * US);
  const lines = out().split('\n'),
    lost = lines
      .map((l) => /^(\d+) characters lost$/.exec(l))
      .reduce((n, l) => n + Number(l?.[1] ?? 0), 0);
  const right = lines.filter((l) => l === 'blink 12345 ms').length,
    rest = lines.filter((l) => !/^(blink 12345 ms|\d+ characters lost)$/.test(l));
  check(
    'console: characters lost of 3,600 with answers as long as they',
    lost,
    '1 or more, no wrong line',
    lost > 0 && right > 50 && rest.join() === 'weft,on,',
  );
}
{
  const m = load('logger'),
    out = text(m);
  const stop = m.run(2e6 * US);
  check('logger: ends', stop.reason, 'break', stop.reason === 'break' && stop.code === 0);
  check(
    'logger: prints five means, drops none',
    out()
      .split('\n')
      .filter((l) => /^mean (49|50), dropped 0$/.test(l)).length,
    5,
    out()
      .split('\n')
      .filter((l) => /^mean (49|50), dropped 0$/.test(l)).length === 5 && out().endsWith('done\n'),
  );
}
{
  const a = load('tasks'),
    b = load('tasks');
  for (const m of [a, b]) m.run(20000 * US);
  check(
    'deterministic: two runs, the same edges',
    a.statistics().hash ?? a.statistics().edgeHash,
    'equal',
    JSON.stringify(a.statistics()) === JSON.stringify(b.statistics()),
  );
}
// ---- low power (M10) ----------------------------------------------------------------------------
{
  const seen = ['asleep-wait', 'asleep-sleep'].map((name) => {
    const m = load(name);
    m.run(1e6 * US);
    return m;
  });
  const [wait, sleep] = seen.map((m) => m.statistics());
  check('asleep: edges in a second', wait.edges, 998);
  check(
    'asleep: SLEEP changes no edge',
    sleep.edgeHash,
    wait.edgeHash,
    sleep.edgeHash === wait.edgeHash,
  );
  const share = (n) => ((100 * n) / (1e6 * US)).toFixed(2);
  check('asleep: % with WFE alone', share(wait.power.wait), '99.79');
  check('asleep: % in SLEEP', share(sleep.power.sleep), '99.79');
  check('asleep: each in its state only', wait.power.sleep + sleep.power.wait, 0);
  check('asleep: warnings', seen.flatMap((m) => m.warnings).length, 0);
  const [, m] = seen;
  m.rp.writeUint32(0x400080ac, 1 << 12); // the watchdog has a clock, the timer has none
  m.runMicros(5000);
  check(
    'asleep: a timer without a clock is told',
    m.warnings.length,
    1,
    m.warnings.length === 1 && /the timer of a chip would stand still/.test(m.warnings[0].why),
  );
}

// ---- the log (M23) ------------------------------------------------------------------------------
{
  const m = load('log_cost'),
    out = text(m);
  m.run(50e6);
  const r = JSON.parse(out());
  check('log: a record without arguments, cycles', r.none, 34);
  check('log: a record with one argument, cycles', r.one, 34);
  check('log: a record with two arguments, cycles', r.two, 37);
  check('log: bytes on the wire, an argument of 32 bits, 1 ms after the last record', r.bytes, 7);
  check('log: bytes on the wire, a small argument', r.bytes_small, 4);
  check('log: bytes on the wire, an argument of 32 bits, 0.1 s later', r.bytes_later, 8);
  check('log: a packet of ten records, cycles', r.packet_of_ten, 5000);
}
{
  const command = resolve(import.meta.dirname, '../../../emulator/bin/weft-rp2040');
  const ran = spawnSync(process.execPath, [command, 'run', image('log'), '--log', '--quiet'], {
    encoding: 'utf8',
  });
  const lines = ran.stdout.trimEnd().split('\n');
  const ticks = lines.filter((line) => /^ +0\.\d{6} tick \d+, [01] us late$/.test(line));
  check(
    'log: the command shows each record of the example, in order',
    `${ran.status} ${lines.length} ${ticks.length}`,
    '0 102 100',
    ran.status === 0 &&
      lines.length === 102 &&
      /^ +0\.\d{6} begin$/.test(lines[0]) &&
      ticks.every((line, i) => line.includes(` tick ${i},`)) &&
      lines[101].endsWith('that was all'),
  );
  const capture = join(mkdtempSync(join(tmpdir(), 'weft-log-')), 'capture.bin');
  const options = ['--quiet', '--uart', capture];
  spawnSync(process.execPath, [command, 'run', image('log'), ...options]);
  const read = spawnSync(process.execPath, [command, 'log', image('log'), capture], {
    encoding: 'utf8',
  });
  check('log: the same lines from a captured file', read.status, 0, read.stdout === ran.stdout);
  const wrong = spawnSync(process.execPath, [command, 'log', image('blink'), capture], {
    encoding: 'utf8',
  });
  check(
    'log: an ELF that logs nothing is named',
    wrong.stderr.trim(),
    'one line',
    wrong.status === 2 && /blink\.elf: no section \.weft_log: /.test(wrong.stderr),
  );
  rmSync(dirname(capture), { recursive: true });
}
// ---- mistakes, named over the UART by a debug build ---------------------------------------------
for (const [kind, word] of [
  ['twice', 'in the queue already'],
  ['horizon', 'horizon'],
  ['unlocked', 'without a lock'],
  ['stack', 'stack'],
  ['core', 'core 1 is already running'],
]) {
  const m = load(`mistake-${kind}-debug`),
    out = text(m);
  const stop = m.run(2e6 * US);
  check(
    `mistake "${kind}" is named`,
    JSON.stringify(out()),
    word,
    stop.reason === 'break' && stop.code === 77 && out().includes(word),
  );
  check(
    `mistake "${kind}" is in the emulator's report of the stop (M15)`,
    JSON.stringify(m.failure(stop)),
    out(),
    m.failure(stop) === `the firmware stopped with bkpt 77 on core ${stop.core}: ${out()}`,
  );
}
finish();
