/**
 * Tests of the drivers (mcu/DRIVERS.md) on the emulated RP2040, with a model of the part at the
 * other end. All checks are exact, because the emulator is deterministic.
 *
 * drivers.mjs IMAGES [SEED] writes one line per test and, last, `N passed, N failed`. IMAGES is the
 * folder that csp/tests/build fills.
 */
import { execFileSync } from 'node:child_process';
import { US, atMost, check, finish, images, load, random } from './bench.mjs';

// ---- pins (rule M25) ----------------------------------------------------------------------------
{
  const IO_BANK0 = 13;
  const { m, masked, text, values, ends, cycles } = load('pin_edges');
  for (const pin of [6, 7]) m.drive(pin, 1);
  m.run(1e6, () => text().endsWith('\n'));
  const [[start, bytes]] = values('start');
  const cycle = (us) => (start + us) * US;
  const first = m.micros * US - m.cycle; // the cycle of the timer at the emulator's cycle 0
  const at = (us, f) => m.at(cycle(us) - first, f);
  /** Sets a contact to a level, with bounces: `gaps` are the us between its edges. */
  function contact(pin, us, level, gaps) {
    let now = level;
    at(us, () => m.drive(pin, level));
    for (const gap of gaps) at((us += gap), () => m.drive(pin, (now ^= 1)));
    return us;
  }
  const often = (n, us) => new Array(n).fill(us);
  const edges = () => cycles(IO_BANK0).length;
  const quiet = [
    contact(6, 1000, 0, often(8, 250)),
    contact(6, 30000, 1, often(60, 400)), // bounces for longer than the quiet time
  ];
  m.run(cycle(65000) - first);
  check('key: interrupts of 70 edges', edges(), 2);
  contact(6, 70000, 0, [30]); // a glitch
  m.run(cycle(90000) - first);
  check('key: interrupts of a glitch', edges() - 2, 1);
  // The reader sleeps until 400,000, and the port has room for four of nine changes.
  for (let k = 0; k < 9; k++) contact(6, 110000 + 20000 * k, k % 2, []);

  // Pin 7. First random contacts that rest for at least 430 us: each change must be read.
  const rests = []; // [level, us of the first edge]
  let us = 450000;
  for (let k = 0; k < 100; k++) {
    rests.push([k % 2, us]);
    const gaps = Array.from({ length: 2 * random(6) }, () => 5 + random(190));
    us = contact(7, us, k % 2, gaps) + 430 + random(300);
  }
  // Then contacts that open again in the cycles in which the driver checks the pin. Each contact is
  // a glitch or two changes, and no change is lost in between.
  const TRIES = 150;
  for (let k = 0; k < TRIES; k++, us += 800) {
    at(us, () => m.drive(7, 0));
    m.at(cycle(us + 200) - first - 40 + 2 * k, () => m.drive(7, 1));
  }
  check('knob: the last try is over in time', us, 'below 700000', us < 700000);
  contact(7, 705000, 0, []);
  m.run(cycle(710000) - first);
  const read = edges();
  for (let k = 0; k < 40; k++) contact(7, 710000 + 1000 * k, (k + 1) % 2, []);
  const stop = m.run(cycle(900000) - first);
  check('pin_edges: ends', `${stop.reason} ${stop.code}`, 'break 0');
  check(
    'a reader that has gone: interrupts of 40 changes',
    edges() - read,
    'at most 2',
    edges() - read <= 2,
  );
  const key = values('key');
  check('key: levels alternate', key.map(([level]) => level).join(''), '0101010');
  check(
    'key: each has the microsecond of its first edge',
    key.map(([, time]) => time - start),
    [1000, 30000, 110000, 130000, 150000, 170000, 270000],
  );
  const after = quiet.map((end, i) => Math.round(ends('key')[i] / US + first / US - start - end));
  check(
    'key: read 5 to 10 ms after the last edge, us',
    after,
    '5000 to 10100',
    after.every((n) => n >= 5000 && n <= 10100),
  );
  check('key: changes lost, glitches', values('key_counts'), '4,1');
  check('key: closed, then retired (rule 3.1)', values('key_end'), '2,7');
  const knob = values('knob').map(([level, time]) => [level, time - start]);
  check(
    'knob: random contacts that are not read as they were made',
    rests.filter(([level, time], i) => knob[i]?.[0] !== level || knob[i]?.[1] !== time).length,
    0,
  );
  check(
    'knob: levels that do not alternate',
    knob.filter(([level], i) => level !== i % 2).length,
    0,
  );
  const [[lost, glitches]] = values('knob_counts');
  check('knob: changes lost', lost, 0);
  const pairs = (knob.length - rests.length - 1) / 2;
  check('knob: tries that are changes or glitches', pairs + glitches, TRIES);
  const tries = knob.slice(rests.length, -1);
  const apart = tries.filter(([, time], i) => i % 2 === 1 && time - tries[i - 1][1] > 210).length;
  check('knob: tries whose second change was seen late', apart, 0);
  check('knob: tries of both kinds', `${pairs} ${glitches}`, 'both', pairs > 10 && glitches > 10);
  atMost('pin: cycles of the interrupt', Math.max(...cycles(IO_BANK0)), 200);
  atMost('pin: cycles with interrupts off', masked.longest, 160);
  atMost('pin: bytes of a PinEdges<4>', bytes, 176);
}

// ---- UART (rule M25) ----------------------------------------------------------------------------
for (const [image, most, cycleLimit, bytesLimit, frameLimit] of [
  ['uart', 4.8, 600, 332, 96],
  ['uart_blocks', 1.8, 500, 364, 112],
]) {
  const UART1 = 21;
  const CHARACTER = (125e6 * 10) / 115200;
  const { m, masked, cycles } = load(image, { uartDelay: true });
  const [core] = m.cores;
  const figure = (name) => m.read32(m.address(`uart_${name}`));
  const back = [];
  m.onUart((byte) => back.push(byte ^ 0x80), 1);
  /** Makes the line bring these values: a byte, with the error bits of the data register above it.
   * */
  function line(values) {
    m.uarts[1].incoming.push(...values);
    if (!m.uarts[1].arrival.scheduled) m.uarts[1].expect();
  }
  const text = (n) => Array.from({ length: n }, () => 32 + random(96));
  const settle = (characters) => m.runFor(Math.ceil(characters * CHARACTER));
  m.run(1e6, () => figure('ready') === 1);
  check(`${image}: starts`, figure('failed'), 0);
  check(`${image}: no room in an arena`, figure('refused'), 1);

  const sent = text(1000);
  line(sent);
  const [began, slept] = [m.cycle, core.sleepCycles];
  settle(1000);
  const busy = (100 * (1 - (core.sleepCycles - slept) / (m.cycle - began))).toFixed(2);
  atMost(`${image}: % of the core, 115,200 both ways`, busy, most);
  check(
    `${image}: bytes that are back when the last one has come`,
    back.length,
    'all but 24',
    back.length >= 976,
  );
  settle(20);
  check(`${image}: 1000 bytes there and back, as they were`, back.join() === sent.join(), true);
  check(`${image}: bytes that the UART lost`, m.uarts[1].lost, 0);

  // A process that writes faster than the line waits, and the line has no pause.
  back.length = 0;
  line([4]);
  m.run(m.cycle + 1e6, () => back.length === 1);
  const firstSent = m.cycle;
  m.run(m.cycle + 4e6, () => back.length === 192);
  const sending = (m.cycle - firstSent) / CHARACTER;
  check(
    `${image}: 192 bytes written at once`,
    back.every((b, i) => (b ^ 0x80) === i),
    true,
  );
  check(`${image}: characters that 191 took`, sending.toFixed(1), '191.0');
  check(`${image}: bytes that the UART lost`, m.uarts[1].lost, 0);

  atMost(`${image}: cycles with interrupts off`, masked.longest, 160);

  // While the reader sleeps, its port keeps 64 bytes. The command arrives alone.
  back.length = 0;
  const burst = text(200);
  line([1]);
  settle(5); // after the receive timeout the command is read
  line(burst);
  settle(500);
  check(`${image}: the first 64 of 200 are read`, back.join() === burst.slice(0, 64).join(), true);

  // Errors on the line: a break, a byte without stop bit.
  back.length = 0;
  line([65, 0x500, 66, 0x143, 67, 0x500, 68]);
  settle(30);
  check(`${image}: bytes beside breaks and framing errors`, Buffer.from(back).toString(), 'ABCD');

  // The FIFO is not read for 5 ms: it keeps 32 bytes.
  back.length = 0;
  const missed = text(56);
  line([2]);
  settle(5);
  line(missed);
  settle(150);
  const kept = back.length;
  check(
    `${image}: the first of 56 bytes with interrupts off`,
    back.slice(0, 32).join() === missed.slice(0, 32).join(),
    true,
  );
  check(
    `${image}: bytes that the FIFO lost`,
    56 - kept,
    m.uarts[1].lost,
    kept < 56 && 56 - kept === m.uarts[1].lost,
  );
  line([3]);
  const stop = m.runFor(50e6);
  check(`${image}: ends`, `${stop.reason} ${stop.code}`, 'break 0');
  check(`${image}: bytes lost for want of room`, figure('lost'), 136);
  check(`${image}: overruns seen`, figure('overruns'), 1);
  check(`${image}: breaks, framing errors`, `${figure('breaks')} ${figure('framing')}`, '2 1');
  check(`${image}: processes left`, figure('left'), 0);
  const all = cycles(UART1);
  atMost(`${image}: cycles of the interrupt`, Math.max(...all), cycleLimit);
  atMost(`${image}: bytes of a Uart<64>`, figure('bytes'), bytesLimit);
  atMost(`${image}: bytes of the frame that sends`, figure('frame'), frameLimit);
}

// ---- watchdog (rule M25) ------------------------------------------------------------------------
for (const [kind, what, reason, name, from, to] of [
  [0, 'a silent process', 'watchdog', 'p', 150000, 220000],
  [1, 'a process that holds the scheduler', 'watchdog', 't', 100000, 145000],
  [2, 'processes that leave', 'break', '', 1000000, 1010000],
  [3, 'a process that ends unsaid', 'watchdog', 'p', 150000, 220000],
]) {
  const { m } = load('watchdog');
  const figure = (word) => m.read32(m.address(`dog_${word}`));
  const letter = (word) => String.fromCharCode(figure(word)).replace('\0', '');
  m.runTo('main', 1e6);
  m.write32(m.address('dog_kind'), kind);
  m.run(1e6, () => figure('ready') === 1);
  const began = m.micros;
  const stop = m.run(250e6);
  check(`watchdog: ${what}`, stop.reason, reason);
  const took = Math.round(m.micros - began);
  check(`watchdog: ${what}: us until then`, took, `${from} to ${to}`, took >= from && took <= to);
  check(`watchdog: ${what}: the others see the name`, letter('silent'), name === 'p' ? name : '');
  if (kind === 0) {
    atMost('watchdog: cycles of alive()', figure('alive_cycles'), 20);
    atMost('watchdog: bytes of a Watchdog<2>', figure('bytes'), 64);
  }
  if (reason !== 'watchdog') continue;
  // The chip restarts: its memory is cleared, and the watchdog's registers keep their values.
  const dog = m.rp.peripherals[0x40058];
  const again = load('watchdog').m;
  again.rp.peripherals[0x40058].scratchData.set(dog.scratchData);
  again.rp.peripherals[0x40058].reason = dog.reason;
  again.run(1e6, () => again.read32(again.address('dog_ready')) === 1);
  const seen = String.fromCharCode(again.read32(again.address('dog_seen')));
  check(`watchdog: ${what}: after the reset`, seen, name);
}
{
  const { m } = load('watchdog');
  m.run(1e6, () => m.read32(m.address('dog_ready')) === 1);
  check('watchdog: after power-on', m.read32(m.address('dog_seen')), 0);
}

// ---- the example of the page --------------------------------------------------------------------
{
  const { m, text } = load('panel');
  m.drive(17, 1);
  m.runMicros(3e6); // longer than the watchdog's two periods
  for (const at of [0, 300, 900]) m.after(at, () => m.drive(17, at === 300 ? 1 : 0));
  m.after(50000, () => m.drive(17, 1));
  m.after(60000, () => m.feed('x'));
  m.runMicros(100000);
  check('panel: one press', JSON.stringify(text()), JSON.stringify('pressed\r\n'));
  check('panel: the LED after an x', m.level(25), 1);
  const size = execFileSync('arm-none-eabi-size', [`${images}/panel.elf`]).toString();
  atMost(
    'panel: bytes of code, everything',
    Number(size.split('\n')[1].trim().split(/\s+/)[0]),
    24700,
  );
  check('panel: faults', m.warnings.length, 0);
}
finish();
