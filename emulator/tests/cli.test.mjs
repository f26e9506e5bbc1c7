// @ts-check
/** Tests the command as its user calls it. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';

const command = join(dirname(fileURLToPath(import.meta.url)), '../bin/weft-rp2040');
const directory = mkdtempSync(join(tmpdir(), 'weft-rp2040-'));
after(() => rmSync(directory, { recursive: true }));

/** @param {...string} args */
function weft(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

const hello = build({
  source: `#include "fw.h"
    static void say(const char *s) { while (*s) REG(UART0) = *s++; }
    __attribute__((noinline)) void busy(int n) { for (volatile int i = 0; i < n; i++) {} }
    int main(void) { pin_out(2); for (int i = 0; i < 3; i++) { pin_high(2); busy(100); pin_low(2); busy(20); } say("hello\\n"); busy(1000); say("done\\n"); return 0; }`,
});
const forever = build({
  source: '#include "fw.h"\nint main(void) { pin_out(4); for (;;) { pin_high(4); pin_low(4); } }',
});
const failing = build({
  source: '#include "fw.h"\nint main(void) { __asm volatile("bkpt 3"); return 0; }',
});
const asleep = build({ source: '#include "fw.h"\nint main(void) { for (;;) wfi(); }' });
const echo = build({
  source:
    '#include "fw.h"\nint main(void) { for (;;) { while (REG(UART0 + 0x18) & 1 << 4) {} uint32_t c = REG(UART0) & 0xff; REG(UART0) = c; if (c == \'.\') return 0; } }',
});

test('run shows the UART on stdout and ends with the firmware', () => {
  const r = weft('run', hello);
  assert.equal(r.status, 0);
  assert.equal(r.stdout, 'hello\ndone\n');
  assert.match(r.stderr, /bkpt 0 on core 0 .* 6 edges, hash [0-9a-f]{16}/);
});

test('two runs print the same hash', () => {
  const hash = () => /hash ([0-9a-f]{16})/.exec(weft('run', hello).stderr)?.[1];
  const first = hash();
  assert.ok(first);
  assert.equal(hash(), first);
});

test('--until-uart stops at the text, and fails if the text is not sent', () => {
  const r = weft('run', hello, '--until-uart', 'hello');
  assert.equal(r.status, 0);
  assert.equal(r.stdout, 'hello');
  const missing = weft('run', hello, '--until-uart', 'goodbye');
  assert.equal(missing.status, 1);
  assert.match(missing.stderr, /'goodbye' did not appear on the UART/);
});

test('--until stops at a function', () => {
  const r = weft('run', hello, '--until', 'busy', '--json', '--quiet');
  assert.equal(r.status, 0);
  assert.equal(JSON.parse(r.stdout).stop.reason, 'stopped');
  assert.equal(weft('run', hello, '--until', 'nowhere').status, 2);
});

test('--trace writes VCD: header, first levels, edges in order with their nanoseconds', () => {
  const file = join(directory, 't.vcd');
  assert.equal(weft('run', hello, '--trace', file, '--pins', '2,3').status, 0);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  assert.ok(lines.includes('$timescale 1 ns $end'));
  assert.deepEqual(
    lines.filter((l) => l.startsWith('$var')),
    ['$var wire 1 # gpio2 $end', '$var wire 1 $ gpio3 $end'],
  );
  const dump = lines.indexOf('$dumpvars');
  assert.deepEqual(lines.slice(dump + 1, dump + 4), ['0#', '0$', '$end']);
  const body = lines.slice(dump + 4);
  const times = body.filter((l) => l.startsWith('#')).map((l) => Number(l.slice(1)));
  assert.deepEqual(
    [...times].sort((a, b) => a - b),
    times,
  );
  assert.ok(times.every((t) => t % 8 === 0));
  assert.deepEqual(
    body.filter((l) => !l.startsWith('#')),
    ['1#', '0#', '1#', '0#', '1#', '0#'],
  );
});

test('--profile counts every awake cycle, by function', () => {
  const r = weft('run', hello, '--profile', '--json', '--no-uart');
  const { profile, cores } = JSON.parse(r.stdout);
  const total = profile.reduce(
    (/** @type {number} */ sum, /** @type {{ total: number }} */ row) => sum + row.total,
    0,
  );
  assert.equal(total, cores[0].cycles);
  assert.equal(profile[0].name, 'busy');
  assert.equal(profile[0].calls, 7);
  assert.match(weft('run', hello, '--profile').stderr, /cycles +% +calls/);
});

test('--input reaches the UART', () => {
  const r = weft('run', echo, '--input', 'ab\\n.');
  assert.equal(r.status, 0);
  assert.equal(r.stdout, 'ab\n.');
});

test('--uart-socket: a program at the other end of the line, one at a time, and a run without a limit', async () => {
  const path = join(directory, 'uart.sock');
  const child = spawn(
    process.execPath,
    [command, 'run', echo, '--uart-socket', path, '--quiet', '--no-uart'],
    { stdio: 'inherit' },
  );
  const ended = new Promise((resolve) => child.on('exit', resolve));
  /** @returns {Promise<import('node:net').Socket>} */
  const plugged = async () => {
    for (;;) {
      const socket = connect(path);
      const there = await new Promise((resolve) =>
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
      );
      if (there) return socket;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const first = await plugged();
  /** @param {import('node:net').Socket} socket @param {string} text */
  const says = (socket, text) =>
    new Promise((resolve) => {
      let said = '';
      socket.on('data', (data) => void ((said += data) === text && resolve(said)));
      socket.write(text);
    });
  await says(first, 'one');
  const second = await plugged();
  await new Promise((resolve) => second.on('close', resolve)); // refused
  first.destroy();
  await new Promise((resolve) => first.on('close', resolve));
  // The emulator may not have seen yet that the first program has disconnected.
  for (;;) {
    const third = await plugged();
    const gone = new Promise((resolve) => third.once('close', () => resolve('gone')));
    if ((await Promise.race([gone, says(third, 'two')])) === 'two') {
      third.write('.');
      break;
    }
  }
  assert.equal(await ended, 0);
  assert.equal(existsSync(path), false);
});

test('--uart-socket: cores that sleep until bytes arrive do not end the run', () => {
  const path = join(directory, 'asleep.sock');
  const r = weft('run', asleep, '--uart-socket', path, '--max-us', '20000');
  assert.equal(r.status, 0, r.stderr);
});

test('--until-stdin: the run ends when standard input ends', async () => {
  const path = join(directory, 'until.sock');
  const child = spawn(
    process.execPath,
    [command, 'run', asleep, '--uart-socket', path, '--until-stdin', '--quiet'],
    { stdio: ['pipe', 'inherit', 'inherit'] },
  );
  const ended = new Promise((resolve) => child.on('exit', resolve));
  while (!existsSync(path)) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(child.exitCode, null);
  child.stdin.end();
  assert.equal(await ended, 0);
  assert.equal(existsSync(path), false);
});

test('a socket that cannot be made is status 2', () => {
  const r = weft('run', echo, '--uart-socket', '/no/such/dir/uart.sock');
  assert.equal(r.status, 2);
  assert.match(r.stderr, /^weft-rp2040: .*(EACCES|ENOENT)/);
});

test('--max-cycles and --max-us end a run that does not end', () => {
  assert.equal(
    JSON.parse(weft('run', forever, '--max-cycles', '10_000', '--json', '--quiet').stdout).cycles,
    10000,
  );
  assert.equal(
    JSON.parse(weft('run', forever, '--max-us', '80', '--json', '--quiet').stdout).cycles,
    10000,
  );
});

test('a failing firmware is exit status 1 with its reason in one line', () => {
  assert.deepEqual(weft('run', failing, '--quiet'), {
    status: 1,
    stdout: '',
    stderr: 'weft-rp2040: the firmware stopped with bkpt 3 on core 0\n',
  });
  assert.deepEqual(weft('run', asleep, '--quiet'), {
    status: 1,
    stdout: '',
    stderr: 'weft-rp2040: both cores sleep and nothing is set to wake them\n',
  });
});

test('an image that cannot run is exit status 1, with the reason, also where its own handlers end in bkpt 0 as the pico-sdk does', () => {
  const sdk =
    'void hardfault(void) { __asm volatile("bkpt 0"); } void timer0(void) { __asm volatile("bkpt 0"); }';
  const exit =
    '__attribute__((noinline, noreturn)) void _exit(int status) { (void)status; for (;;) __asm volatile("bkpt 0"); }';
  /** @type {[string, RegExp | null][]} */
  const rows = [
    [
      `${sdk} int main(void) { ((void (*)(void))0x20001000)(); return 0; }`,
      /core 0 is in HardFault: branch to ARM state/,
    ],
    [
      `${sdk} int main(void) { ((void (*)(void))1)(); return 0; }`,
      /core 0 is in HardFault: .*null function pointer/,
    ],
    [
      'void hardfault(void) { for (;;) {} } int main(void) { REG(0x70000000) = 1; return 0; }',
      /core 0 is in HardFault: write to unmapped address at 0x70000000/,
    ],
    [
      `${sdk} int main(void) { NVIC_ISER = 1; NVIC_ISPR = 1; return 0; }`,
      /bkpt 0 on core 0 in the handler of interrupt 0/,
    ],
    [
      `${sdk} void core1(void) { ((void (*)(void))1)(); } int main(void) { start_core1(core1, 0x20041000); for (;;) wfe(); }`,
      /core 1 is in HardFault/,
    ],
    [`${exit} int main(void) { _exit(3); }`, /called exit\(3\) on core 0/],
    [`${exit} int main(void) { _exit(0); }`, null],
    [
      'int main(void) { REG(0x40058000) = 1u << 31; for (;;) wfi(); }',
      /the watchdog resets the chip/,
    ],
    [
      'int main(void) { volatile uintptr_t rom = 0; uint16_t *t = (uint16_t *)(uintptr_t)*(uint16_t *)(rom + 0x14); ' +
        "for (; t[0] != ('U' | 'B' << 8); t += 2) {} ((void (*)(uint32_t, uint32_t))(uintptr_t)t[1])(0, 0); for (;;) wfi(); }",
      /asks for the USB boot loader/,
    ],
  ];
  for (const [source, message] of rows) {
    const r = weft(
      'run',
      build({ source: `#include "fw.h"\n${source}` }),
      '--quiet',
      '--max-cycles',
      '100000',
    );
    assert.equal(r.status, message ? 1 : 0, source + r.stderr);
    assert.match(r.stderr, message ?? /^$/);
    assert.ok(r.stderr.split('\n').length <= 2, r.stderr);
  }
});

test('Ctrl-C ends the run with a complete trace and status 130', async () => {
  const file = join(directory, 'c.vcd');
  const child = spawn(
    process.execPath,
    [command, 'run', forever, '--max-cycles', '1e12', '--trace', file],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let errors = '';
  child.stderr.on('data', (data) => (errors += data));
  const grown = () => {
    try {
      return readFileSync(file).length > 10000;
    } catch {
      return false;
    }
  };
  while (!grown()) await new Promise((resolve) => setImmediate(resolve));
  child.kill('SIGINT');
  const status = await new Promise((resolve) => child.on('exit', resolve));
  assert.equal(status, 130);
  assert.match(errors, /interrupted after \d+ cycles/);
  const text = readFileSync(file, 'utf8');
  assert.ok(text.endsWith('\n'));
  assert.match(text.trimEnd().split('\n').slice(-1)[0], /^(#\d+|[01]%)$/);
});

test('info prints format, segments, start and symbols', () => {
  const r = weft('info', hello);
  assert.equal(r.status, 0);
  assert.match(
    r.stdout,
    /elf, \d+ bytes\n {2}0x20000000 .*\n {2}starts by the vector table at 0x20000000\n {2}\d+ symbols, \d+ functions\n/,
  );
  assert.equal(JSON.parse(weft('info', hello, '--json').stdout).format, 'elf');
});

test('bad usage is status 2 and one line that says what to do', () => {
  const junk = join(directory, 'junk.uf2');
  writeFileSync(junk, 'not a uf2');
  /** @type {[string[], RegExp][]} */
  const rows = [
    [[], /no command/],
    [['fly'], /no command 'fly'/],
    [['run'], /run wants an IMAGE/],
    [['run', 'a', 'b'], /too many arguments/],
    [['run', '/no/such.uf2'], /\/no\/such\.uf2: cannot read it: ENOENT/],
    [['run', junk], /junk\.uf2: not a UF2/],
    [['run', hello, '--max-cycles', 'many'], /--max-cycles wants a number, not 'many'/],
    [['run', hello, '--nonsense'], /--nonsense/],
    [['run', hello, '--alarm-now', 'maybe'], /miss or fire/],
    [['run', hello, '--pins', '31'], /GPIO numbers from 0 to 29/],
    [['run', hello, '--trace', '/no/such/dir/t.vcd'], /ENOENT/],
  ];
  for (const [args, message] of rows) {
    const r = weft(...args);
    assert.equal(r.status, 2, args.join(' '));
    assert.match(r.stderr, message);
    assert.equal(r.stderr.split('\n').length, 2, r.stderr);
    assert.equal(r.stdout, '');
  }
});

test('help names every option', () => {
  const r = weft('--help');
  assert.equal(r.status, 0);
  for (const option of [
    '--trace',
    '--profile',
    '--max-cycles',
    '--until-uart',
    '--conflicts',
    '--uart',
    '--json',
  ])
    assert.ok(r.stdout.includes(option));
});
