/**
 * Runs this folder's pico-sdk programs on the emulated chip, one of them started in every possible
 * way, and checks their UARTs, their pads and their exit status.
 *
 * run.mjs FOLDER writes one line per test and, last, `N passed, N failed`. FOLDER holds
 * two_cores.elf, two_cores.uf2, drivers.elf and weather.elf.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Machine, TemperatureSensor, TextDisplay } from '../../../emulator/src/index.mjs';
import { LogReader, logTexts } from '../../../emulator/src/log.mjs';

const folder = resolve(process.argv[2]);
const command = resolve(import.meta.dirname, '../../../emulator/bin/weft-rp2040');
let passed = 0;
let failed = 0;

function check(what, good, seen = '') {
  if (good) passed++;
  else failed++;
  console.log(`${good ? 'ok  ' : 'FAIL'} ${what}${good ? '' : `: ${JSON.stringify(seen)}`}`);
}

const EXPECTED = [
  /^clk_sys 125000000 Hz$/,
  /^sqrt 1\.414214 1\.414213562000 sin 0\.909297 0\.909297427000 exp 7\.38906$/,
  /^core 1 runs$/,
  /^core 0: 200 releases, 0 on the wrong core, at most (\d+) us late$/,
  /^core 1: 200 releases, 0 on the wrong core, at most (\d+) us late$/,
  /^50 rounds$/,
  /^done$/,
];

/**
 * Runs an image; checks its text, its end, how late the actors were, and the edges of the pads
 * against the periods.
 */
function run(name, file, options, late) {
  const m = new Machine(options).load(readFileSync(`${folder}/${file}`), { name: file });
  let text = '';
  m.onUart((byte) => (text += String.fromCharCode(byte)));
  const edges = { 2: [], 3: [] };
  m.watch(null, (pin, _, cycle) => edges[pin]?.push(cycle));
  const stop = m.run(60e6);
  const lines = text.trimEnd().split(/\r?\n/);
  check(
    `${name}: the text`,
    lines.length === EXPECTED.length && EXPECTED.every((line, i) => line.test(lines[i])),
    lines,
  );
  const worst = Math.max(
    ...lines.flatMap((line, i) => EXPECTED[i]?.exec(line)?.slice(1).map(Number) ?? []),
  );
  check(`${name}: at most ${late} us late`, worst <= late, worst);
  check(`${name}: ends well`, stop.reason === 'break' && m.failure(stop) === null, [
    stop,
    m.failure(stop),
  ]);
  check(`${name}: no warnings`, m.warnings.length === 0, m.warnings.slice(0, 3));
  for (const [pin, period] of [
    [2, 100],
    [3, 70],
  ]) {
    const gaps = edges[pin].slice(1).map((cycle, i) => cycle - edges[pin][i]);
    const off = Math.max(...gaps.map((gap) => Math.abs(gap - period * 125)));
    check(`${name}: pin ${pin} changes 200 times`, edges[pin].length === 200, edges[pin].length);
    check(`${name}: pin ${pin} keeps its ${period} us`, off <= (late + 1) * 125, off);
  }
  return m;
}

const plain = run('ELF', 'two_cores.elf', {}, 0);
run('UF2', 'two_cores.uf2', {}, 0);
run('by boot2', 'two_cores.elf', { runBoot2: true }, 0);
run('with the UART at its speed', 'two_cores.elf', { uartDelay: true }, 0);
// The task's program is in flash except for its hot part; a cache miss costs half a microsecond.
run('with bus conflicts', 'two_cores.elf', { conflicts: true }, 2);

// README.md, "pico-sdk": the runtime's hot code runs from SRAM, even if all other code runs from
// flash.
for (const name of ['weft_list_post', 'weft_list_work'])
  check(
    `${name} is in SRAM`,
    plain.address(name) >>> 24 === 0x20,
    plain.address(name).toString(16),
  );
const again = run('ELF again', 'two_cores.elf', {}, 0);
check('two runs make the same edges', plain.edges.digest === again.edges.digest);

const cli = spawnSync(
  process.execPath,
  [command, 'run', `${folder}/two_cores.uf2`, '--quiet', '--until-uart', 'done'],
  { encoding: 'utf8' },
);
check('the command runs it', cli.status === 0 && cli.stderr === '', cli);

// ---- the drivers (rules M25 to M30) in programs of the SDK ----------------------------------------
let held;
for (const start of [1, 2]) {
  const m = new Machine({ uartDelay: true }).load(readFileSync(`${folder}/drivers.elf`));
  if (held) m.rp.flash.set(held, 0x1f0000);
  let text = '';
  m.onUart((byte) => (text += String.fromCharCode(byte)));
  m.adc.set(0, 1234);
  m.drive(17, 1);
  const rises = [];
  const falls = [];
  m.watch(25, (_, level, cycle) => (level ? rises : falls).push(cycle));
  m.after(400000, () => m.drive(17, 0));
  const stop = m.run(125e6 * 2);
  const wanted =
    `starts 0\r\nstart ${start}: 0\r\nsample 1234\r\nword edcba987\r\n` + 'level 0\r\ndone\r\n';
  check(`drivers, start ${start}: flash, ADC, PIO, pin`, text === wanted, text);
  check('drivers: ends well', stop.reason === 'break' && m.failure(stop) === null, stop);
  const [period, high] = [rises[11] - rises[10], falls[11] - rises[10]];
  check('drivers: PWM at 1 kHz', period === 125000, period);
  check('drivers: PWM high for a quarter', high % period === 31250, high);
  check('drivers: no warnings', m.warnings.length === 0, m.warnings.slice(0, 3));
  held = m.rp.flash.slice(0x1f0000, 0x200000);
}
{
  const m = new Machine({ uartDelay: true }).load(readFileSync(`${folder}/weather.elf`));
  const display = new TextDisplay(m, 20);
  m.i2cs[0].attach(0x48, new TemperatureSensor(21.5));
  m.spis[0].attach(17, display);
  const log = [];
  const texts = logTexts(readFileSync(`${folder}/weather.elf`));
  const reader = new LogReader(texts, (line) => log.push(line));
  m.onUart((byte) => reader.push([byte]), 0);
  let console_ = '';
  m.onUart((byte) => (console_ += String.fromCharCode(byte)), 1);
  m.runMicros(500000);
  check(
    'weather: on the display, by I2C and SPI',
    display.lines[0].trim() === '21.5 C',
    display.lines,
  );
  m.feed('t', 1);
  const stop = m.runMicros(5e6); // five times the watchdog's period
  check('weather: on the console, by UART', console_ === '21.5 C\r\n', console_);
  check('weather: the log', log.length === 1 && /the weather station starts$/.test(log[0]), log);
  check('weather: the watchdog is fed', stop.reason === 'limit', stop);
  check('weather: no warnings', m.warnings.length === 0, m.warnings.slice(0, 3));
}

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
