/**
 * Tests of the drivers of the ADC, PWM and PIO (mcu/DRIVERS.md, rules M27 to M29) on the emulated
 * RP2040, with waves at the inputs. All checks are exact, because the emulator is deterministic.
 *
 * drivers_streams.mjs IMAGES writes one line per test and, last, `N passed, N failed`. IMAGES is
 * the folder that csp/tests/build fills.
 */
import { atMost, check, finish, load } from './bench.mjs';

const SAMPLES = 64;

// ---- ADC (rule M27) -----------------------------------------------------------------------------
/** A wave of which each sample is one more than the sample before it, at a rate. */
const ramp =
  (hz, offset = 0) =>
  (micros) =>
    (Math.round((micros * hz) / 1e6) + offset) % 4096;

function sample(kind, hz) {
  const bench = load('adc');
  const { m } = bench;
  m.adc.set(0, ramp(hz));
  m.adc.set(1, 1000);
  m.adc.set(3, 3000);
  m.adc.set(4, 876);
  m.runTo('main', 1e6);
  m.write32(m.address('adc_kind'), kind);
  const figure = (name) => m.read32(m.address(`adc_${name}`));
  const blocks = [];
  m.breakpoint('adc_seen', (core) => {
    const raw = m.read(core.r[0], 2 * SAMPLES + 4);
    const view = new DataView(raw.buffer);
    blocks.push({
      samples: Array.from({ length: SAMPLES }, (_, i) => view.getUint16(2 * i, true)),
      number: view.getUint32(2 * SAMPLES, true),
    });
    return false;
  });
  const [core] = m.cores;
  m.run(1e6, () => figure('ready') === 1);
  const [began, slept] = [m.cycle, core.sleepCycles];
  const stop = m.run(100e6);
  const busy = 100 * (1 - (core.sleepCycles - slept) / (m.cycle - began));
  check(`adc ${kind}: ends`, `${stop.reason} ${stop.code}`, 'break 0');
  check(`adc ${kind}: starts; mistakes not refused`, [figure('failed'), figure('wrong')], '0,0');
  check(`adc ${kind}: faults`, m.warnings.map((w) => w.why).join(), '');
  check(`adc ${kind}: samples that the FIFO lost`, [m.adc.lost, figure('overruns')], '0,0');
  return { ...bench, blocks, figure, busy };
}
/** Counts the samples that differ from the ramp at their place in the stream. */
function wrong(blocks) {
  const [first] = blocks[0].samples;
  return blocks
    .flatMap(({ samples, number }) =>
      samples.map((s, i) => (s - first - number * SAMPLES - i) % 4096 !== 0),
    )
    .filter(Boolean).length;
}
const gaps = (blocks) =>
  blocks.filter((b, i) => i > 0 && b.number !== blocks[i - 1].number + 1).length;
const inAll = (blocks) => blocks.at(-1).number + 1;
{
  const DMA0 = 11;
  const { blocks, figure, busy, cycles, masked } = sample(0, 100000);
  check('adc: blocks at 100,000 a second', `${blocks.length} ${inAll(blocks)}`, '200 200');
  check('adc: samples that are wrong', wrong(blocks), 0);
  check('adc: blocks lost', figure('lost'), 0);
  check('adc: closed, then retired', figure('end'), 2);
  atMost('adc: % of the core at 100,000 samples a second', busy.toFixed(2), 2.1);
  atMost('adc: cycles of the interrupt', Math.max(...cycles(DMA0)), 727);
  atMost('adc: cycles with interrupts off', masked.longest, 473);
  atMost('adc: bytes of an AdcStream<4, 64>', figure('bytes'), 1280);
}
{
  const { blocks, figure } = sample(1, 100000);
  check('adc, a reader that sleeps: samples that are wrong', wrong(blocks), 0);
  check('adc, a reader that sleeps: gaps', gaps(blocks), 1);
  check(
    'adc, a reader that sleeps: lost',
    figure('lost'),
    'the gap',
    figure('lost') === inAll(blocks) - blocks.length && figure('lost') > 5,
  );
}
{
  const { blocks, figure } = sample(2, 100000);
  check('adc, interrupts off: samples that are wrong', wrong(blocks), 0);
  check(
    'adc, interrupts off: blocks lost',
    figure('lost'),
    'the gaps',
    figure('lost') > 0 && figure('lost') === inAll(blocks) - blocks.length,
  );
}
{
  const { blocks } = sample(3, 44100);
  const all = blocks.flatMap(({ samples }) => samples);
  const turns = [1000, 3000, 876];
  check(
    'adc, three inputs: samples that are wrong',
    all.filter((s, i) => s !== turns[i % 3]).length,
    0,
  );
}
{
  const { blocks, figure, busy } = sample(4, 500000);
  check('adc at 500,000: samples that are wrong', wrong(blocks), 0);
  check('adc at 500,000: blocks lost', figure('lost'), 0);
  atMost('adc: % of the core at 500,000 samples a second', busy.toFixed(2), 10.2);
}
{
  const { blocks, figure } = sample(5, 100000);
  check('adc: blocks that are read after close()', blocks.length - 20, 0);
  check('adc: closed, then retired', figure('end'), 2);
}
{
  const { blocks, cycles } = sample(6, 100000);
  check('adc: a reader that has gone', blocks.length, 20);
  atMost('adc: interrupts without a reader', cycles(11).length - 20, 2);
}

// ---- PWM (rule M28) -----------------------------------------------------------------------------
const PWM = 4;
const TICK = 2; // cycles, for a lowest frequency of 1,000 Hz
/**
 * Runs the program with a table of settings, the first `fast` of them without a pause. With `late`
 * the first interrupt comes that many cycles late.
 */
function modulate(settings, fast, late = 0) {
  const bench = load('pwm');
  const { m } = bench;
  m.runTo('main', 1e6);
  const table = m.address('pwm_table');
  m.write32(table, settings.length);
  m.write32(table + 4, fast);
  settings.forEach((setting, i) =>
    setting.forEach((value, k) => m.write32(table + 8 + 12 * i + 4 * k, value)),
  );
  const set = m.rp.setInterrupt;
  if (late)
    m.rp.setInterrupt = (irq, level) => {
      if (irq !== PWM || !level) return set(irq, level);
      m.rp.setInterrupt = set;
      m.at(m.cycle + late, () => set(irq, m.rp.pwm.intStatus !== 0));
    };
  const edges = [];
  m.watch(null, (pin, level, cycle) => {
    if (pin === 6 || pin === 7) edges.push({ pin, level, cycle });
  });
  const stop = m.run(50e6);
  return { ...bench, edges, stop, figure: (name) => m.read32(m.address(`pwm_${name}`)) };
}

/**
 * Counts the whole periods of each setting, one setting after the other, and the edges after the
 * last whole period. A wave with any other period ends the count.
 */
function periodsOf(settings, edges) {
  const duty = (part, period) => (part < 65536 ? Math.floor((part * period) / 65536) : period);
  const used = settings
    .filter(([hz]) => hz >= 1000 && hz <= 250000)
    .map(([hz, a, b]) => {
      const period = Math.floor((62.5e6 + hz / 2) / hz);
      return { period: period * TICK, high: [a, b].map((part) => duty(part, period) * TICK) };
    });
  /** What the pins do from a cycle on: levels at its beginning, and edges before the end. */
  function seen(from, period) {
    const before = edges.filter((e) => e.cycle <= from);
    const level = (pin) => before.filter((e) => e.pin === pin).at(-1)?.level ?? 0;
    const inside = edges.filter((e) => e.cycle > from && e.cycle < from + period);
    const falls = inside.map((e) => `${e.pin}${e.level}@${e.cycle - from}`);
    return `${level(6)}${level(7)} ${falls.sort()}`;
  }
  function ideal({ period, high: [a, b] }) {
    const falls = [a, b].flatMap((n, i) => (n > 0 && n < period ? [`${6 + i}0@${n}`] : []));
    return `${a > 0 ? 1 : 0}${b > 0 ? 1 : 0} ${falls.sort()}`;
  }
  const fits = (at, setting) => setting && seen(at, setting.period) === ideal(setting);
  const periods = used.map(() => 0);
  let now = 0;
  let at = edges[0].cycle;
  while (fits(at, used[now + 1]) || fits(at, used[now])) {
    if (periods[now] > 0 && fits(at, used[now + 1])) now++;
    periods[now]++;
    at += used[now].period;
  }
  return { periods, rest: edges.filter((e) => e.cycle > at).length };
}
{
  const settings = [
    [10000, 32768, 16384],
    [10000, 1000, 65000],
    [250000, 32768, 32768],
    [1000, 6554, 58982],
    [50000, 65536, 0],
    [50000, 0, 70000],
    [20000, 32768, 32767],
    [999, 1, 1], // refused
    [250001, 1, 1], // refused
    [20000, 1, 65535],
    [5000, 16384, 49152],
    [5000, 49152, 16384],
  ];
  const { m, masked, cycles, edges, stop, figure } = modulate(settings, 8);
  check('pwm: ends', `${stop.reason} ${stop.code}`, 'break 0');
  check('pwm: starts; mistakes not refused', [figure('failed'), figure('wrong')], '0,0');
  check('pwm: no room in an arena', figure('small'), 1);
  check('pwm: frequencies that are refused', figure('refused'), 2);
  const { periods, rest } = periodsOf(settings, edges);
  check('pwm: settings that did not come', periods.filter((n) => n === 0).length, 0);
  atMost('pwm: periods of those without a pause', Math.max(...periods.slice(0, 6)), 2);
  atMost('pwm: edges after the last whole period', rest, 2);
  check('pwm: levels at the end', [m.level(6), m.level(7)], '0,0');
  check('pwm: processes left', figure('left'), 0);
  check('pwm: shorts, faults', [m.pins.shorts.length, m.warnings.length], '0,0');
  atMost('pwm: cycles of the interrupt', Math.max(...cycles(PWM)), 267);
  atMost('pwm: cycles with interrupts off', masked.longest, 130);
  atMost('pwm: bytes of a Pwm', figure('bytes'), 188);
  atMost('pwm: bytes of the frame that reads', figure('frame'), 104);
}
{
  // The interrupt is so late that the next wrap is near; each distance is tried.
  const settings = [
    [50000, 32768, 16384],
    [40000, 1000, 65000],
    [50000, 65000, 1000],
  ];
  let wrong = 0;
  for (let late = 2300; late < 2520; late += 4) {
    const { edges } = modulate(settings, 3, late);
    const { periods, rest } = periodsOf(settings, edges);
    if (periods.some((n) => n === 0) || rest > 2) wrong++;
  }
  check('pwm: late interrupts after which a period was mixed', wrong, 0);
}

// ---- PIO (rule M29) -----------------------------------------------------------------------------
for (const kind of [0, 1]) {
  const PIO1 = 9;
  const { m, masked, cycles } = load('pio_words');
  m.runTo('main', 1e6);
  m.write32(m.address('pio_kind'), kind);
  const figure = (name) => m.read32(m.address(`pio_${name}`));
  const edges = [];
  m.watch(9, (_pin, level, cycle) => edges.push([level, cycle]));
  const stop = m.run(50e6);
  check(`pio ${kind}: ends`, `${stop.reason} ${stop.code}`, 'break 0');
  check(
    `pio ${kind}: starts; mistakes that are refused`,
    [figure('failed'), figure('refused')],
    '0,6',
  );
  check(`pio ${kind}: processes left`, figure('left'), 0);
  check(`pio ${kind}: faults`, m.warnings.map((w) => w.why).join(), '');
  // A pulse of word + 2 ticks of two cycles for each word, although the FIFO holds only four words.
  const widths = edges.flatMap(([level, cycle], i) => (level ? [] : [cycle - edges[i - 1]?.[1]]));
  const wanted = Array.from({ length: 12 }, (_, i) => 2 * (102 + 50 * i));
  check(`pio ${kind}: pulses`, widths.join(), wanted.join());
  const [right, wrong, lost] = ['right', 'wrong', 'lost'].map(figure);
  if (kind === 0) {
    check('pio: words there and back', `${right} ${wrong} ${lost}`, '100 0 0');
    check('pio: stalls of the machine', figure('stalls'), 1);
    atMost('pio: cycles of the interrupt', Math.max(...cycles(PIO1)), 375);
    atMost('pio: bytes of a Pio<32>', figure('bytes'), 392);
    atMost('pio: bytes of the frame that sends', figure('frame'), 96);
  } else {
    check('pio, a reader that sleeps: words that it read', `${right} ${wrong}`, '32 0');
    check('pio, a reader that sleeps: words lost', lost, 68);
    atMost('pio: cycles with interrupts off', masked.longest, 93);
  }
}
finish();
