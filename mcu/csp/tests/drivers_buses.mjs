/**
 * Tests of the drivers of buses (mcu/DRIVERS.md, rule M26) on the emulated RP2040, with models of
 * the parts on the bus. All checks are exact, because the emulator is deterministic.
 *
 * drivers_buses.mjs IMAGES writes one line per test and, last, `N passed, N failed`. IMAGES is the
 * folder that csp/tests/build fills.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { SpiFlash, TemperatureSensor, TextDisplay } from '../../../emulator/src/index.mjs';
import { LogReader, logTexts } from '../../../emulator/src/log.mjs';
import { atMost, check, finish, images, load, random } from './bench.mjs';

const STATUS = ['ok', 'no_address', 'no_data', 'lost_bus', 'timed_out', 'bad_request'];

/** The layouts of a request in memory: name, offset, size of each member; where the bytes are. */
const I2C_LAYOUT = {
  fields: { address: [0, 2], write: [2, 2], read: [4, 2], status: [6, 1], within: [8, 4] },
  bytes: 12,
  room: 40,
};
const SPI_LAYOUT = {
  fields: {
    count: [0, 2],
    select: [2, 1],
    mode: [3, 1],
    status: [4, 1],
    hz: [8, 4],
    within: [12, 4],
  },
  bytes: 16,
  room: 272,
};

/** A bus under test: `ask` puts a request into a client's table, `answers` reads the table. */
function bus(image, layout) {
  const bench = load(image);
  const { m } = bench;
  m.runTo('main', 1e6);
  const size = layout.bytes + layout.room;
  const entry = size + 8;
  const table = (client) => m.address('bus_tables') + client * (8 + 24 * entry);
  const place = (client, i) => table(client) + 8 + i * entry;
  const figure = (name) => m.read32(m.address(`bus_${name}`));
  const read = (at, n) => m.read(at, n).reduce((sum, byte, i) => sum + byte * 256 ** i, 0);
  return {
    ...bench,
    figure,
    ask(client, request, bytes = []) {
      const n = m.read32(table(client));
      const at = place(client, n);
      const values = { within: 5000, status: 99, ...request };
      for (const [name, [offset, width]] of Object.entries(layout.fields))
        m.write(
          at + offset,
          Uint8Array.from({ length: width }, (_, i) => values[name] >> (8 * i)),
        );
      m.write(at + layout.bytes, Uint8Array.from(bytes));
      m.write32(table(client), n + 1);
    },
    answers(client) {
      const answered = m.read32(table(client) + 4);
      return Array.from({ length: answered }, (_, i) => {
        const at = place(client, i);
        const [offset] = layout.fields.status;
        return {
          status: STATUS[read(at + offset, 1)] ?? 'none',
          bytes: (n, from = 0) => [...m.read(at + layout.bytes + from, n)],
          done: read(at + size, 4),
          took: read(at + size + 4, 4),
        };
      });
    },
  };
}

// ---- I²C (rule M26) -----------------------------------------------------------------------------
{
  const I2C0 = 23;
  const { m, masked, cycles, figure, ask, answers } = bus('i2c', I2C_LAYOUT);
  const wire = m.i2cs[0];
  const [sensor, refuses, slow, hangs, contended] = [21.5, 0, -10.25, 0, 0].map(
    (celsius) => new TemperatureSensor(celsius),
  );
  const absent = new TemperatureSensor();
  absent.absent = true;
  refuses.refuses = true;
  slow.stretchMicros = 300;
  hangs.address = () => (wire.hold(true), true);
  contended.address = () => (wire.contended = true);
  const parts = { 0x48: sensor, 0x49: refuses, 0x4a: absent, 0x4b: slow, 0x4c: hangs };
  for (const [address, part] of Object.entries(parts)) wire.attach(Number(address), part);
  wire.attach(0x4d, contended);
  /** Keeps the controller's interrupt from the core for some microseconds. */
  function interruptsLate(us) {
    const set = m.rp.setInterrupt;
    set(I2C0, false);
    m.rp.setInterrupt = (irq, level) => irq !== I2C0 && set(irq, level);
    m.after(us, () => {
      m.rp.setInterrupt = set;
      wire.update();
    });
  }
  const memory = Array.from({ length: 40 }, () => random(256));
  let at = 0;
  const seen = [];
  wire.attach(0x50, {
    write: (byte) => (seen.push(byte), true),
    read: () => {
      if (at === 12) interruptsLate(2000); // the controller continues alone, as far as it can
      return memory[at++ % memory.length];
    },
  });
  // The bus stays held until the bench lets it go; then the next transaction is carried out.
  const release = () => m.after(2500, () => wire.hold(false));
  const held = hangs.address;
  hangs.address = () => (release(), held());

  const get = { address: 0x48, write: 1, read: 2 };
  ask(0, get, [0]); // 0: the temperature
  ask(0, { ...get, address: 0x4a }, [0]); // 1: the part does not answer
  ask(0, { ...get, address: 0x60 }, [0]); // 2: no such part
  ask(0, { ...get, address: 0x49 }, [0]); // 3: the first byte is refused
  ask(0, { ...get, address: 0x4d }, [0]); // 4: another master wins
  ask(0, { ...get, address: 0x4b }, [0]); // 5: the part holds the clock, in time
  ask(0, { ...get, address: 0x4b, within: 700 }, [0]); // 6: the same, too long
  ask(0, { ...get, address: 0x4c, within: 2000 }, [0]); // 7: the clock is never let go
  ask(0, get, [0]); // 8: the bus works again
  ask(0, { address: 0x50, write: 40, read: 0 }, memory); // 9: longer than the FIFO
  ask(0, { address: 0x50, write: 0, read: 40 }); // 10: the same, reading
  ask(0, { address: 0x50, write: 3, read: 40 }, [1, 2, 3]); // 11: both
  ask(0, { ...get, read: 1 }, [1]); // 12: one byte
  const bad = [
    { address: 0x07, write: 1, read: 0 },
    { address: 0x78, write: 1, read: 0 },
    { address: 0x48, write: 0, read: 0 },
    { address: 0x48, write: 41, read: 0 },
    { address: 0x48, write: 1, read: 41 },
    { address: 0x48, write: 1, read: 0, within: 0 },
    { address: 0x48, write: 1, read: 0, within: 2 ** 28 + 1 },
  ];
  for (const request of bad) ask(0, request); // 13 to 19
  for (let i = 0; i < 24; i++) ask(1, get, [0]); // the other process, all the time
  m.run(1e6, () => figure('bytes') !== 0);
  sensor.celsius = -12.75;
  const stop = m.run(20e6);
  check('i2c: ends', `${stop.reason} ${stop.code}`, 'break 0');
  check('i2c: starts; mistakes that are not refused', [figure('failed'), figure('wrong')], '0,0');
  const a = answers(0);
  const b = answers(1);
  const celsius = (answer) => {
    const [high, low] = answer.bytes(2);
    return (((high << 24) >> 16) | low) / 256;
  };
  check('i2c: answers to each process', [a.length, b.length], '20,24');
  check('i2c: temperature', `${a[0].status} ${celsius(a[0])}`, 'ok -12.75');
  check('i2c: a part that is absent', a[1].status, 'no_address');
  check('i2c: an address without a part', a[2].status, 'no_address');
  check('i2c: a part that refuses the byte', a[3].status, 'no_data');
  check('i2c: another master wins', a[4].status, 'lost_bus');
  check('i2c: a part that stretches the clock', `${a[5].status} ${celsius(a[5])}`, 'ok -10.25');
  check('i2c: a part that stretches it too long', a[6].status, 'timed_out');
  check('i2c: a part that never lets go', a[7].status, 'timed_out');
  check('i2c: the bus afterwards', `${a[8].status} ${celsius(a[8])}`, 'ok -12.75');
  check('i2c: 40 bytes written', a[9].status, 'ok', seen.slice(0, 40).join() === memory.join());
  check('i2c: 40 bytes read', a[10].status, 'ok', a[10].bytes(40).join() === memory.join());
  check('i2c: 3 written, 40 read', a[11].status, 'ok', a[11].bytes(40).join() === memory.join());
  check('i2c: the 3 as they were', seen.slice(40).join(), '1,2,3');
  check('i2c: one byte', `${a[12].status} ${a[12].bytes(1)}`, 'ok 0');
  const refused = a.slice(13).map((answer) => answer.status);
  check('i2c: bad requests', [...new Set(refused)], 'bad_request');
  const others = new Set(b.map((answer) => `${answer.status} ${celsius(answer)}`));
  check('i2c: the other process', [...others], 'ok -12.75');
  check('i2c: bytes that the controller lost', wire.lost, 0);
  check('i2c: processes left', figure('left'), 0);
  check('i2c: faults', m.warnings.map((w) => w.why).join(), '');
  atMost('i2c: cycles of the interrupt', Math.max(...cycles(I2C0)), 606);
  atMost('i2c: cycles with interrupts off', masked.longest, 130);
  atMost('i2c: bytes of an I2c<40>', figure('bytes'), 256);
  atMost('i2c: bytes of the frame of a pair of channels', figure('frame'), 352);
}

{
  // The last bit arrives at about the time limit `within`, at each of 24 distances from it. An
  // interrupt that arrives too late must not end the next transaction.
  const { m, ask, answers } = bus('i2c', I2C_LAYOUT);
  const sensor = new TemperatureSensor();
  m.i2cs[0].attach(0x48, sensor);
  let transfers = -3; // the first transfer has the number -2
  let bytes = 0;
  sensor.address = (read) => {
    if (!read) sensor.celsius = ++transfers;
    bytes = sensor.count = 0;
    return true;
  };
  sensor.stretch = () => (++bytes === 2 ? 74.5 + (transfers + 2) * 0.12 : 0);
  for (let i = 0; i < 24; i++) ask(0, { address: 0x48, write: 1, read: 2, within: 200 }, [0]);
  m.run(20e6);
  const all = answers(0);
  const kinds = new Set(all.map((answer) => answer.status));
  check('i2c, the end and the limit together: answers', all.length, 24);
  check('i2c, the end and the limit together: both kinds', [...kinds].sort(), 'ok,timed_out');
  const wrong = all.filter(
    (answer, i) => answer.status === 'ok' && answer.bytes(1)[0] - all[0].bytes(1)[0] !== i,
  );
  check('i2c, the end and the limit together: wrong answers', wrong.length, 0);
}

// ---- SPI (rule M26) -----------------------------------------------------------------------------
{
  const SPI0 = 18;
  const FLASH = 17;
  const OTHER = 20;
  const { m, masked, cycles, figure, ask, answers } = bus('spi', SPI_LAYOUT);
  const wire = m.spis[0];
  const flash = new SpiFlash(m);
  flash.programMicros = 2000; // a slow chip: the other process has the bus in between
  wire.attach(FLASH, flash);
  const seen = []; // by the other part: mode, clock, frame; it sends back what it received
  let last = 0;
  wire.attach(OTHER, {
    select: () => (last = 0xa5),
    transfer: (out) => {
      seen.push(`${wire.mode} ${Math.round(wire.hz)} ${out}`);
      const back = last;
      last = out;
      return back;
    },
  });
  const page = Array.from({ length: 256 }, () => random(256));
  const chip = { select: FLASH, mode: 0, hz: 8e6 };
  const command = (bytes, request = {}) =>
    ask(0, { ...chip, count: bytes.length, ...request }, bytes);
  command([0x9f, 0, 0, 0]); // 0: the JEDEC id
  command([0x02, 0, 1, 0, 1, 2, 3]); // 1: programming without a write enable
  command([0x06]); // 2: one byte
  command([0x05, 0]); // 3: enabled
  command([0x02, 0, 1, 0, ...page]); // 4: a page
  command([0x05, 0]); // 5: busy
  command([0x03, 0, 1, 0, 0, 0]); // 6: a read while it is busy
  for (let i = 0; i < 3; i++) command([0x05, ...new Array(250).fill(0)], { hz: 2e6 }); // 7 to 9
  command([0x03, 0, 1, 0, ...new Array(256).fill(0)]); // 10: the page
  command([0x03, 0, 1, 0, ...new Array(256).fill(0)], { hz: 62.5e6 }); // 11: faster than the part
  command([0x03, 0, 1, 0, 0, 0], { mode: 1 }); // 12: a mode that the part lacks
  command([0x03, 0, 1, 0, ...new Array(60).fill(0)], { hz: 30000, within: 1000 }); // 13: too slow
  command([0x9f, 0, 0, 0]); // 14: the bus works again
  const bad = [
    { count: 0 },
    { count: 273 },
    { select: 21 },
    { select: 30 },
    { mode: 4 },
    { hz: 1999 },
    { hz: 62500001 },
    { within: 0 },
    { within: 2 ** 28 + 1 },
  ];
  for (const request of bad) ask(0, { ...chip, count: 1, ...request }, [0]); // 15 to 23
  const sizes = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 31];
  const speeds = [1e6, 1.3e6, 50e6, 33e6, 12.5e6, 3e6, 62.5e6, 8.7e6, 20e6, 5e6, 400000, 2000];
  for (const [i, size] of sizes.entries())
    ask(
      1,
      { select: OTHER, mode: i % 4, hz: speeds[i], count: size, within: 200000 },
      Array.from({ length: size }, (_, k) => i + k),
    );
  const stop = m.run(100e6);
  check('spi: ends', `${stop.reason} ${stop.code}`, 'break 0');
  check('spi: starts; mistakes that are not refused', [figure('failed'), figure('wrong')], '0,0');
  const a = answers(0);
  const b = answers(1);
  check('spi: answers to each process', [a.length, b.length], '24,12');
  check('spi: JEDEC id', `${a[0].status} ${a[0].bytes(3, 1)}`, 'ok 239,64,16');
  check('spi: commands that the flash ignored', flash.ignored, 2);
  check('spi: write enabled', a[3].bytes(1, 1), 2);
  check('spi: busy after the page', a[5].bytes(1, 1), 1);
  check('spi: a read of a busy flash', a[6].bytes(2, 4), '255,255');
  const polls = [7, 8, 9].flatMap((i) => a[i].bytes(250, 1));
  const ready = polls.indexOf(0);
  check('spi: polls until the flash is ready', ready, 'some', ready > 0);
  check('spi: ready for good', new Set(polls.slice(ready)).size, 1);
  check('spi: the page', a[10].bytes(256, 4).join() === page.join(), true);
  check('spi: a clock that is too fast', new Set(a[11].bytes(260)).size, 1);
  check('spi: a mode that the part has not', a[12].bytes(6).join(), '255,255,255,255,255,255');
  check('spi: a transaction that takes too long', a[13].status, 'timed_out');
  check('spi: the bus afterwards', `${a[14].status} ${a[14].bytes(3, 1)}`, 'ok 239,64,16');
  const refused = a.slice(15).map((answer) => answer.status);
  check('spi: bad requests', [...new Set(refused)], 'bad_request');
  check(
    'spi: warnings',
    m.warnings.map((w) => w.why.replace('SPI0: the part selected by pin 17 ', '')).join('; '),
    'is clocked at 62500000 Hz, too fast; has no mode 1',
  );
  // The other part has seen the bytes of each size, mode and clock, and its own bytes came back.
  const wanted = [];
  let right = 0;
  for (const [i, size] of sizes.entries()) {
    const ratio = Math.ceil(125e6 / speeds[i]);
    let prescale = 2;
    while (prescale * 256 < ratio) prescale += 2;
    const hz = Math.round(125e6 / (prescale * Math.ceil(ratio / prescale)));
    check(`spi: the clock for ${speeds[i]} Hz`, hz, `at most ${speeds[i]}`, hz <= speeds[i]);
    for (let k = 0; k < size; k++) wanted.push(`${i % 4} ${hz} ${i + k}`);
    const back = [0xa5, ...Array.from({ length: size - 1 }, (_, k) => i + k)];
    if (b[i].status === 'ok' && b[i].bytes(size).join() === back.join()) right++;
  }
  check('spi: what the other part saw', seen.join() === wanted.join(), true);
  check('spi: what came back from it', right, sizes.length);
  check('spi: bytes that the controller lost', wire.lost, 0);
  check('spi: processes left', figure('left'), 0);
  check('spi: chip selects at the end', [m.level(FLASH), m.level(OTHER)], '1,1');
  atMost('spi: cycles of the interrupt', Math.max(...cycles(SPI0)), 430);
  atMost('spi: cycles with interrupts off', masked.longest, 130);
  atMost('spi: bytes of a Spi<272>', figure('bytes'), 260);
  atMost('spi: bytes of the frame of a pair of channels', figure('frame'), 1064);
}

// ---- what a bus costs ---------------------------------------------------------------------------
/** The share of the core while a process sends one request after the other, in percent. */
function share({ m, ask, figure }, request) {
  for (let i = 0; i < 20; i++) ask(0, request);
  m.run(1e6, () => figure('bytes') !== 0);
  const [core] = m.cores;
  const [began, slept] = [m.cycle, core.sleepCycles];
  m.run(100e6);
  return (100 * (1 - (core.sleepCycles - slept) / (m.cycle - began))).toFixed(1);
}
for (const [hz, most] of [
  [1e6, 10.9],
  [4e6, 38.8],
  [8e6, 63.9],
]) {
  const spi = bus('spi', SPI_LAYOUT);
  const busy = share(spi, { select: 17, mode: 0, hz, count: 256 });
  atMost(`spi: % of the core, 256 bytes a request at ${hz / 1e6} MHz`, busy, most);
}
for (const [read, most] of [
  [2, 23.6],
  [40, 6.1],
]) {
  const i2c = bus('i2c', I2C_LAYOUT);
  i2c.m.i2cs[0].attach(0x50, { write: () => true, read: () => 7 });
  const busy = share(i2c, { address: 0x50, write: 1, read });
  atMost(`i2c: % of the core, 1 byte written and ${read} read at 400 kHz`, busy, most);
}

// ---- the weather station of the page ------------------------------------------------------------
{
  const { m } = load('weather', { uartDelay: true });
  const thermometer = new TemperatureSensor(21.5);
  const display = new TextDisplay(m, 20);
  m.i2cs[0].attach(0x48, thermometer);
  m.spis[0].attach(17, display);
  const log = [];
  const texts = logTexts(readFileSync(`${images}/weather.elf`));
  const reader = new LogReader(texts, (line) => log.push(line));
  m.onUart((byte) => reader.push([byte]), 0);
  let console_ = '';
  m.onUart((byte) => (console_ += String.fromCharCode(byte)), 1);
  const shown = () => display.lines[0].trim();
  /** Types a line on the console, and returns what it answers. */
  function type(text) {
    console_ = '';
    m.feed(text, 1);
    m.runMicros(50000);
    return console_;
  }
  m.runMicros(500000);
  check('weather: on the display', shown(), '21.5 C');
  check('weather: on the console', JSON.stringify(type('t')), JSON.stringify('21.5 C\r\n'));
  check('weather: another key', JSON.stringify(type('?')), JSON.stringify('t or e?\r\n'));
  thermometer.celsius = -7.25;
  m.runMicros(1e6);
  check('weather: below zero', `${shown()} ${type('t')}`.trim(), '-7.2 C -7.2 C');
  thermometer.absent = true;
  m.runMicros(1e6);
  check('weather: without a sensor', `${shown()} ${type('te')}`.trim(), 'no sensor no sensor\r\n1');
  thermometer.absent = false;
  m.i2cs[0].hold(true);
  m.runMicros(1e6);
  check('weather: a bus that hangs', shown(), 'no sensor');
  m.i2cs[0].hold(false);
  thermometer.celsius = 30;
  const [core] = m.cores;
  const [began, slept] = [m.cycle, core.sleepCycles];
  const stop = m.runMicros(5e6); // five times the watchdog's period
  const busy = (100 * (1 - (core.sleepCycles - slept) / (m.cycle - began))).toFixed(2);
  check('weather: goes on', `${stop.reason} ${shown()}`, 'limit 30.0 C');
  check('weather: failed readings', type('e').trim(), 2);
  check(
    'weather: the log',
    log.map((line) => line.trim().replace(/^[0-9.]+ /, '')).join('; '),
    'the weather station starts; the sensor does not answer: status 1; ' +
      'the sensor does not answer: status 4',
  );
  check('weather: faults', m.warnings.map((w) => w.why).join(), '');
  atMost('weather: % of the core', busy, 0.05);
  const size = execFileSync('arm-none-eabi-size', [`${images}/weather.elf`]).toString();
  const bytes = Number(size.split('\n')[1].trim().split(/\s+/)[0]);
  atMost('weather: bytes of code, everything', bytes, 51000);
  m.spis[0].next = () => {}; // no more bytes arrive: each transaction is given up in time
  check('weather: the display hangs', m.runMicros(4e6).reason, 'limit');
}

// ---- misuse (rule M15) --------------------------------------------------------------------------
for (const [i, words] of [
  'a bus is connected before it is started',
  'a bus is started twice',
  'pins that are not SDA and SCL',
  'an I2C speed that is not 2,000 to 1,000,000 Hz',
  'an I2C request without bytes, with too many',
  'pins that are not SCK, TX and RX',
  'an SPI bus without a chip select',
  'an SPI request without bytes or with too many',
  'ADC inputs that are not bits 0 to 4, a rate',
  'an AdcStream is started twice',
  'a PWM slice that is not 0 to 7, pins that are not its own',
  'a PWM slice is started twice',
  'g++ has made a wrong frame for a process',
  'a PIO that is not 0 or 1, a state machine',
  'a state machine of a PIO is started twice',
  'a FlashStore is started twice',
  'a place of a FlashStore that does not begin with a sector',
  'a FlashStore where one with another number of sectors is',
  'a FlashStore is connected before it is started',
  'a request to a FlashStore with a key',
  'a PWM frequency below the lowest of start()',
].entries()) {
  const { m, text } = load('driver_mistakes-debug');
  m.runTo('main', 1e6);
  m.write32(m.address('mistake'), i + 1);
  m.run(20e6);
  const said = text().trim();
  check(`misuse ${i + 1}`, said, `weft: ${words}…`, said.startsWith(`weft: ${words}`));
}
finish();
