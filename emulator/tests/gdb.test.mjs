// @ts-check
/**
 * Tests the gdb stub: its packets, its session, its socket, and a real gdb that uses it (gdb
 * manual, appendix E).
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Machine } from '../src/index.mjs';
import { Session, serve } from '../src/gdb.mjs';
import { LIMIT, PacketReader, packet } from '../src/gdb_packet.mjs';
import { Target } from '../src/gdb_target.mjs';
import { boot, finish } from './bench.mjs';
import { build } from './build.mjs';

const command = join(dirname(fileURLToPath(import.meta.url)), '../bin/weft-rp2040');

/** Both cores count, each in a function of its own, and toggle a pad. */
const TWO = `
  volatile uint32_t count[2], word = 0x11223344;
  __attribute__((noinline)) void zero(void) { count[0]++; REG(SIO + 0x1c) = 4; }
  __attribute__((noinline)) void one(void) { count[1]++; REG(SIO + 0x1c) = 8; }
  static void core1(void) { for (;;) one(); }
  int main(void) {
    pin_out(2); pin_out(3); start_core1(core1, 0x20041000);
    while (count[0] < 300) zero();
    return 0;
  }`;
const FOREVER =
  'volatile uint32_t n; __attribute__((noinline)) void work(void) { n++; } int main(void) { for (;;) work(); }';

/** @param {string} source @param {import('../src/machine.mjs').MachineOptions} [options] */
function session(source, options) {
  const machine = boot(source, options);
  /** @type {string[]} */
  const sent = [];
  const s = new Session(new Target(machine), (text) => sent.push(text));
  /**
   * Sends a command that lets time pass. Returns its stop reply, or null if the machine still runs
   * after `slices` slices.
   * @param {string} text
   * @param {number} [slices]
   */
  const go = (text, slices = 1000) => {
    assert.equal(s.receive(text), null);
    for (let i = 0; s.running && i < slices; i++) s.slice();
    return s.running ? null : sent[sent.length - 1];
  };
  const place = (/** @type {string} */ name) => machine.address(name).toString(16);
  return { machine, s, sent, go, place };
}

/** A register's value as gdb writes it. @param {string | null} text */
const value = (text) => Buffer.from(String(text), 'hex').readUInt32LE(0);

/** Pseudo-random numbers below n, the same in every run. @param {number} seed */
function dice(seed) {
  let x = seed | 1;
  return (/** @type {number} */ n) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % n;
  };
}

// ---- packets ----

test('a packet has text, checksum and escapes, and is parsed again from pieces of any size', () => {
  assert.equal(packet('OK'), '$OK#9a');
  const text = 'X20000000,4:}#$*\x03\xff';
  const bytes = Buffer.from(`+${packet(text)}-\x03${packet('?')}`, 'latin1');
  for (let size = 1; size < bytes.length; size++) {
    const reader = new PacketReader();
    const events = [];
    for (let at = 0; at < bytes.length; at += size)
      events.push(...reader.push(bytes.subarray(at, at + size)));
    assert.deepEqual(events, [
      { kind: 'ack' },
      { kind: 'packet', text },
      { kind: 'nack' },
      { kind: 'interrupt' },
      { kind: 'packet', text: '?' },
    ]);
  }
});

test('a wrong checksum, and more than the limit, are bad packets; the next one is good', () => {
  const kinds = (/** @type {string} */ text) =>
    new PacketReader().push(Buffer.from(text, 'latin1')).map((e) => e.kind);
  assert.deepEqual(kinds('$OK#9b$OK#9a'), ['bad', 'packet']);
  assert.deepEqual(kinds('$OK#zz$OK#9A'), ['bad', 'packet']);
  assert.deepEqual(kinds('$half$OK#9a'), ['packet']);
  assert.deepEqual(kinds(`$${'a'.repeat(LIMIT + 1)}#00$OK#9a`), ['bad', 'packet']);
  const reader = new PacketReader();
  reader.push(Buffer.from('$' + 'x'.repeat(10 * LIMIT)));
  assert.ok(reader.body.length <= LIMIT);
});

test('any bytes, in pieces of any size, give the same events', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = dice(seed * 7919);
    const parts = Array.from({ length: 20 }, () => {
      const noise = Buffer.from(
        Array.from({ length: random(12) }, () => (random(3) ? 0x20 + random(0x60) : random(256))),
      );
      const good = Buffer.from(packet(noise.toString('latin1')), 'latin1');
      if (random(2)) good[random(good.length)] = '$#}+-\x03a0'.charCodeAt(random(8));
      return random(4) ? good : noise;
    });
    const bytes = Buffer.concat(parts);
    const whole = new PacketReader().push(bytes);
    const reader = new PacketReader();
    const pieces = [];
    for (let at = 0; at < bytes.length;) {
      const size = 1 + random(9);
      pieces.push(...reader.push(bytes.subarray(at, at + size)));
      at += size;
    }
    assert.deepEqual(pieces, whole, `seed ${seed}`);
  }
});

// ---- the session ----

test('registers of each core, one and all; sp, pc and flags as the core has them', () => {
  const { machine, s } = session(TWO);
  const [core] = machine.cores;
  const all = String(s.receive('g'));
  assert.equal(all.length, 8 * 21);
  assert.equal(value(all.slice(8 * 15)), machine.address('reset'));
  assert.equal(value(all.slice(8 * 13)), core.r[13] >>> 0);
  assert.equal(value(s.receive('p10')), (0x01000000 | core.apsr) >>> 0);
  assert.equal(s.receive('P3=78563412'), 'OK');
  assert.equal(core.r[3], 0x12345678);
  assert.equal(s.receive('P10=000000f0'), 'OK');
  assert.equal(core.apsr >>> 0, 0xf0000000);
  assert.equal(s.receive(`G${all}`), 'OK');
  assert.equal(s.receive('g'), all);
  assert.equal(s.receive('Hg2'), 'OK');
  assert.notEqual(s.receive('g'), all);
  for (const bad of ['p15', 'p', 'P3=1', 'P15=00000000', 'G0', 'Gzz', 'Hg3', 'Hx', 'T3'])
    assert.equal(s.receive(bad), 'E01', bad);
});

test('memory: SRAM, flash (as a loader writes it), ROM, registers; a read or write at an empty address is an error', () => {
  const { machine, s, place } = session(TWO);
  machine.runTo('main');
  assert.equal(s.receive(`m${place('word')},4`), '44332211');
  assert.equal(s.receive(`M${place('word')},2:aabb`), 'OK');
  assert.equal(machine.read32('word'), 0x1122bbaa);
  assert.equal(s.receive(`X${place('word')},3:\x01}#`), 'OK');
  assert.equal(machine.read32('word'), 0x11237d01);
  assert.equal(s.receive('X10001000,0:'), 'OK');
  assert.equal(s.receive('vFlashErase:10001000,1000'), 'OK');
  assert.equal(s.receive('vFlashWrite:10001000:ab'), 'OK');
  assert.equal(s.receive('vFlashDone'), 'OK');
  assert.equal(s.receive('m10001000,3'), '6162ff');
  assert.equal(s.receive('m10,4'), '4d750103');
  assert.equal(s.receive('md0000000,4'), '00000000'); // CPUID: as core 0
  assert.equal(s.receive('m40010004,4'), '00000000');
  assert.equal(s.receive('M40010004,4:00000100'), 'OK'); // PSM holds core 1
  assert.equal(s.receive('m40010005,3'), '000100');
  for (const bad of ['m70000000,4', 'M70000000,1:00']) assert.equal(s.receive(bad), 'E0e', bad);
  for (const bad of [
    'm',
    'm1',
    'mz,4',
    'M20000000,2:00',
    'M20000000,1:0',
    'M20000000,1',
    'X20000000,2:a',
    'vFlashErase:20000000,10',
  ])
    assert.equal(s.receive(bad), 'E01', bad);
});

test('a breakpoint stops a core before the instruction, each time, until the breakpoint is removed', () => {
  const { machine, s, go, place } = session(TWO);
  assert.equal(s.receive(`Z1,${place('zero')},2`), 'OK');
  for (let n = 0; n < 3; n++) {
    assert.equal(go('c'), 'T05thread:1;');
    assert.equal(machine.cores[0].pc, machine.address('zero'));
    assert.equal(machine.read32('count'), n);
  }
  assert.equal(s.receive(`z1,${place('zero')},2`), 'OK');
  assert.equal(s.receive(`Z0,${place('one')},2`), 'OK');
  assert.equal(go('vCont;c'), 'T05thread:2;');
  assert.equal(s.receive('qC'), 'QC2');
  assert.equal(value(s.receive('pf')), machine.address('one'));
  assert.equal(s.receive('?'), 'T05thread:2;');
  assert.equal(s.receive('z0,20000000,2'), 'OK'); // there is no such breakpoint
  for (const bad of ['Z0,x,2', 'z1,', 'Z1,20000000']) assert.equal(s.receive(bad), 'E01', bad);
  assert.equal(s.receive('Z2,20000000,4'), '');
});

test('both cores at one breakpoint: each stop is reported', () => {
  const { machine, s, go, place } = session(`
    volatile uint32_t n[2]; __attribute__((noinline)) void both(void) { n[REG(SIO)]++; }
    static void core1(void) { for (;;) both(); }
    int main(void) { start_core1(core1, 0x20041000); for (;;) both(); }`);
  s.receive(`Z1,${place('both')},2`);
  const seen = [0, 0];
  for (let i = 0; i < 40; i++) {
    const before = [machine.read32('n'), machine.read32(machine.address('n') + 4)];
    seen[Number(/thread:(\d)/.exec(String(go('c')))?.[1]) - 1]++;
    // Neither core passed the breakpoint more often than a stop there was reported for that core.
    assert.ok(
      machine.read32('n') - before[0] <= 1 &&
        machine.read32(machine.address('n') + 4) - before[1] <= 1,
    );
  }
  const total = machine.read32('n') + machine.read32(machine.address('n') + 4);
  assert.ok(seen[0] + seen[1] - total <= 2 && seen[0] + seen[1] >= total, `${seen} ${total}`);
  assert.ok(seen[0] > 5 && seen[1] > 5);
});

test('a step is one instruction of one core; the other core runs, or is held if it is not named', () => {
  const { machine, s, go, place } = session(TWO);
  s.receive(`Z1,${place('one')},2`);
  go('c');
  s.receive(`z1,${place('one')},2`);
  const [zero, one] = machine.cores;
  const before = [zero.instructions, one.instructions];
  assert.equal(go('vCont;s:2'), 'T05thread:2;');
  assert.deepEqual([zero.instructions, one.instructions], [before[0], before[1] + 1]);
  for (let n = 0; n < 10; n++) go('vCont;s:1;c');
  assert.equal(zero.instructions, before[0] + 10);
  assert.ok(one.instructions > before[1] + 4);
  // A stopped core does not fall behind in time: it continues from the current cycle.
  for (let n = 0; n < 50; n++) go('vCont;s:1');
  assert.ok(one.t >= zero.t - 10, `${one.t} ${zero.t}`);
  s.receive('Hc1');
  go('s');
  assert.equal(zero.instructions, before[0] + 61);
  const from = machine.address('one');
  const to = from + Number(machine.image?.symbols.find((symbol) => symbol.name === 'one')?.size);
  one.pc = from;
  go(`vCont;r${from.toString(16)},${to.toString(16)}:2;c`);
  assert.ok(one.instructions > before[1] + 10 && (one.pc < from || one.pc >= to));
  for (const bad of ['vCont;', 'vCont;x', 'vCont;r1:1', 'vCont;s:3', 'czz'])
    assert.equal(s.receive(bad), 'E01', bad);
});

test('a step into a pending interrupt is the entry of its handler; core 1 in the boot ROM does not move', () => {
  const { machine, go, s } = session(
    'void timer0(void) { NVIC_ICER = 1; } int main(void) { NVIC_ISER = 1; for (;;) {} }',
  );
  machine.runTo('main');
  for (let n = 0; n < 20; n++) go('s');
  machine.cores[0].pend(1);
  go('s');
  assert.equal(machine.cores[0].pc, machine.address('timer0'));
  s.receive('Hc2');
  const at = machine.cycle;
  assert.equal(go('vCont;s:2'), 'T05thread:2;');
  assert.equal(machine.cycle, at);
});

test('Ctrl-C stops a run; the program’s end and a deadlock stop it with a message', () => {
  const { s, go, sent } = session(FOREVER);
  assert.equal(go('c', 3), null);
  s.interrupt();
  assert.equal(sent.pop(), 'T02thread:1;');
  assert.equal(s.running, false);
  s.interrupt(); // nothing runs, so nothing is sent
  assert.deepEqual(sent, []);
  /** @type {[string, RegExp][]} */
  const ends = [
    ['int main(void) { return 0; }', /^weft-rp2040: break at 0x/],
    ['int main(void) { __asm volatile("bkpt 9"); return 0; }', /bkpt 9/],
    ['int main(void) { for (;;) wfi(); }', /both cores sleep/],
    [
      'void hardfault(void) { REG(0x70000000) = 1; } int main(void) { REG(0x70000000) = 1; return 0; }',
      /locked up/,
    ],
  ];
  for (const [source, words] of ends) {
    const end = session(source);
    assert.equal(end.go('c'), 'T05thread:1;');
    assert.match(Buffer.from(end.sent[0].slice(1), 'hex').toString(), words);
  }
});

test('threads, features, memory map, monitor; the reply to an unknown packet is empty', () => {
  const { machine, s, place } = session(TWO);
  assert.equal(s.receive('qfThreadInfo') + ' ' + s.receive('qsThreadInfo'), 'm1,2 l');
  assert.match(
    Buffer.from(String(s.receive('qThreadExtraInfo,2')), 'hex').toString(),
    /core 1: in the boot ROM/,
  );
  assert.match(String(s.receive('qSupported:multiprocess+')), /PacketSize=4000;.*vContSupported\+/);
  for (const [object, annex] of [
    ['features', 'target.xml'],
    ['memory-map', ''],
  ]) {
    let all = '';
    for (let part = 'm'; part[0] === 'm'; all += part.slice(1))
      part = String(s.receive(`qXfer:${object}:read:${annex}:${all.length.toString(16)},20`));
    assert.match(all, /^<\?xml.*<\/(target|memory-map)>$/);
    assert.equal(s.receive(`qXfer:${object}:read:${annex}:fffff,20`), 'l');
  }
  const monitor = (/** @type {string} */ text) =>
    Buffer.from(String(s.receive(`qRcmd,${Buffer.from(text).toString('hex')}`)), 'hex').toString();
  assert.match(monitor('time'), /^cycle 0, 0\.000 us\n$/);
  assert.match(monitor('what'), /reset.*\n.*time/);
  machine.runTo('one', undefined, 1);
  s.receive(`qRcmd,${Buffer.from('reset halt').toString('hex')}`);
  assert.equal(machine.cores[0].pc, machine.address('reset'));
  assert.equal(machine.cores[1].running, false);
  machine.runTo('one', undefined, 1);
  assert.equal(place('one'), machine.cores[1].pc.toString(16));
  for (const unknown of [
    'qXfer:auxv:read::0,10',
    'vMustReplyEmpty',
    'qOffsets',
    'b',
    '',
    'QNonStop:1',
  ])
    assert.equal(s.receive(unknown), '', unknown);
  for (const bad of ['qXfer:features:read:other:0,10', 'qXfer:features:write:target.xml:0:'])
    assert.equal(s.receive(bad), 'E00', bad);
});

test('debugging changes nothing: stepped and stopped throughout, a program makes the same edges in the same cycles', () => {
  const plain = boot(TWO);
  assert.equal(finish(plain), 0);
  const { machine, s, go, place } = session(TWO);
  s.receive(`Z1,${place('zero')},2`);
  s.receive(`Z1,${place('one')},2`);
  for (let n = 0; ; n++) {
    go(['c', 'vCont;s:1;c', 'vCont;s:2;c', 'vCont;c'][n % 4]);
    if (machine.stop?.reason === 'break') break;
    s.receive('g');
    s.receive(`m${place('count')},8`);
  }
  assert.equal(machine.cycle, plain.cycle);
  assert.equal(machine.edges.digest, plain.edges.digest);
});

test('any packet is answered and none throws, with any registers, memory and breakpoints', () => {
  const words = [
    'g',
    'G',
    'p',
    'P',
    'm',
    'M',
    'X',
    'Z0,',
    'Z1,',
    'z1,',
    'c',
    's',
    'vCont;',
    'vCont;s:1;c',
    'vFlashErase:',
    'vFlashWrite:',
    'H',
    'Hg',
    'T',
    'D',
    'qXfer:features:read:target.xml:',
    'qXfer:',
    'qRcmd,',
    'qThreadExtraInfo,',
    'q',
    'Q',
    'v',
    '?',
    ':',
    ',',
    ';',
    '=',
    '-1',
    '20000000',
    '10000100',
    '40054028',
    'ffffffff',
    'd0000000',
    'e000ed08',
    '4',
    'ff',
    '00000000',
    'r0,40',
    '\x00',
    '}',
    '2',
    '1',
  ];
  for (let seed = 1; seed <= 60; seed++) {
    const random = dice(seed * 104729);
    const { s } = session(TWO);
    for (let n = 0; n < 60; n++) {
      const text = Array.from({ length: 1 + random(5) }, () => words[random(words.length)]).join(
        '',
      );
      try {
        if (s.running) s.interrupt();
        const reply = s.receive(text);
        assert.ok(reply === null ? s.running || s.killed : typeof reply === 'string', text);
        if (s.running) s.slice();
      } catch (error) {
        throw new Error(`seed ${seed}, packet ${JSON.stringify(text)}`, { cause: error });
      }
    }
    s.interrupt();
    assert.match(String(s.receive('?')), /^T0[25]thread:[12];$/);
  }
});

// ---- the socket ----

/** A client that speaks packets. @param {number} port */
async function client(port) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const reader = new PacketReader();
  /** @type {import('../src/gdb_packet.mjs').Event[]} */
  const queue = [];
  let wake = () => {};
  let closed = false;
  socket.on('data', (bytes) => (queue.push(...reader.push(bytes)), wake()));
  for (const ended of ['end', 'close']) socket.on(ended, () => ((closed = true), wake()));
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', () => resolve(0)));
  /**
   * Returns the next event, or null when the connection has ended.
   * @returns {Promise<import('../src/gdb_packet.mjs').Event | null>}
   */
  const next = async () => {
    while (!queue.length && !closed) await new Promise((resolve) => (wake = () => resolve(0)));
    return queue.shift() ?? null;
  };
  const text = async () => {
    for (;;) {
      const event = await next();
      if (event === null || event.kind === 'packet') return event && event.text;
    }
  };
  return {
    socket,
    next,
    text,
    ask: async (/** @type {string} */ t) => (socket.write(packet(t), 'latin1'), text()),
  };
}

test('over TCP: acknowledgements, a lost packet sent again, Ctrl-C, one client at a time, detach and reconnect, kill', async (t) => {
  const machine = boot(FOREVER);
  const ended = new AbortController();
  t.after(() => ended.abort()); // even if an assertion has failed
  /** @type {(port: number) => void} */
  let listening = () => {};
  const port = new Promise((resolve) => (listening = resolve));
  const served = serve(machine, { port: 0, signal: ended.signal, onListening: listening });
  const n = /** @type {number} */ (await port);
  const first = await client(n);
  first.socket.write('$?#00');
  assert.deepEqual(await first.next(), { kind: 'nack' });
  first.socket.write(packet('?'));
  assert.deepEqual(
    [await first.next(), await first.next()],
    [{ kind: 'ack' }, { kind: 'packet', text: 'T05thread:1;' }],
  );
  first.socket.write('-');
  assert.equal(await first.text(), 'T05thread:1;');
  const second = await client(n);
  assert.equal(await second.next(), null);
  assert.equal(await first.ask('QStartNoAckMode'), 'OK');
  first.socket.write(packet('vCont;c'));
  first.socket.write('\x03');
  assert.equal(await first.text(), 'T02thread:1;');
  assert.equal(await first.ask(`Z1,${machine.address('work').toString(16)},2`), 'OK');
  assert.equal(await first.ask('D'), 'OK');
  assert.equal(await first.next(), null);
  const at = machine.cycle;
  assert.equal(machine.breakpoints.size, 0);
  const third = await client(n);
  assert.equal(await third.ask(`Z1,${machine.address('work').toString(16)},2`), 'OK');
  assert.equal(await third.ask('c'), 'T05thread:1;');
  // The first client disconnects only now: the disconnection must not remove the breakpoints that
  // the third client has set.
  await new Promise((resolve) => first.socket.on('close', () => resolve(0)).end());
  for (let i = 0; i < 3; i++) assert.equal(await third.ask('qC'), 'QC1');
  assert.equal(machine.breakpoints.size, 1);
  assert.equal(await third.ask(`z1,${machine.address('work').toString(16)},2`), 'OK');
  third.socket.write(packet('c'));
  third.socket.destroy(); // disconnects during a run, which stops time again
  let fourth = await client(n);
  // Waits until the stub has noticed that the third client has disconnected.
  for (let reply = await fourth.ask('?'); reply === null; reply = await fourth.ask('?'))
    fourth = await client(n);
  const stood = machine.cycle;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(machine.cycle, stood);
  assert.ok(stood >= at);
  fourth.socket.write(packet('k'));
  assert.equal(await served, 'killed');
});

test('a port in use is an error; the stub listens only on the loopback interface', async () => {
  const ended = new AbortController();
  /** @type {(port: number) => void} */
  let listening = () => {};
  const port = new Promise((resolve) => (listening = resolve));
  const served = serve(new Machine(), { port: 0, signal: ended.signal, onListening: listening });
  const n = String(await port);
  const r = spawnSync(
    process.execPath,
    [command, 'gdb', build({ source: `#include "fw.h"\n${FOREVER}` }), '--port', n],
    { encoding: 'utf8' },
  );
  assert.equal(r.status, 2);
  assert.match(r.stderr, /EADDRINUSE.*127\.0\.0\.1/);
  ended.abort();
  assert.equal(await served, 'aborted');
});

test('bad usage of gdb is status 2 and one line', () => {
  const elf = build({ source: `#include "fw.h"\n${FOREVER}` });
  for (const args of [
    ['gdb'],
    ['gdb', elf, '--port', '70000'],
    ['gdb', elf, '--until', 'work'],
    ['run', elf, '--port', '1'],
  ]) {
    const r = spawnSync(process.execPath, [command, ...args], { encoding: 'utf8' });
    assert.equal(r.status, 2, args.join(' '));
    assert.equal(r.stderr.split('\n').length, 2, r.stderr);
  }
});

// ---- a real gdb ----

const GDB = ['gdb-multiarch', 'arm-none-eabi-gdb'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
);

/**
 * Runs gdb's commands on an image served by the command; returns the output of gdb.
 * @param {string} elf
 * @param {string[]} commands
 */
async function gdb(elf, commands) {
  assert.ok(GDB, 'no gdb that knows ARM: apt-get install gdb-multiarch');
  const child = spawn(process.execPath, [command, 'gdb', elf, '--port', '0', '--no-uart'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = new Promise((resolve) => child.on('exit', resolve));
  let errors = '';
  const port = await new Promise((resolve, reject) => {
    child.stderr.on('data', (data) => {
      const match = /127\.0\.0\.1:(\d+)/.exec((errors += data));
      if (match) resolve(match[1]);
    });
    child.on('exit', () => reject(new Error(errors)));
  });
  const lines = [
    'set pagination off',
    'set confirm off',
    `target remote 127.0.0.1:${port}`,
    ...commands,
    'kill',
  ];
  const r = spawnSync(
    String(GDB),
    ['-q', '-nx', '-batch', ...lines.flatMap((line) => ['-ex', line]), elf],
    {
      encoding: 'utf8',
    },
  );
  assert.equal(await exited, 0);
  return r.stdout + r.stderr;
}

test('a real gdb: threads, breakpoints on both cores, back trace, variables, registers, step, finish, load, the end of the program', async () => {
  const elf = build({ source: `#include "fw.h"\n${TWO}` });
  const text = await gdb(elf, [
    'info threads',
    'hbreak one',
    'continue',
    'echo [one]\\n',
    'bt',
    'p count',
    'delete',
    'thread 1',
    'break zero',
    'continue',
    'echo [zero]\\n',
    'bt',
    'p $pc == zero',
    'set var count[0] = 200',
    'finish',
    'p count[0]',
    'stepi',
    'x/1xw &word',
    'delete',
    'load',
    'p $pc == reset',
    'monitor reset',
    'break zero',
    'continue',
    'p count[0]',
    'delete',
    'continue',
    'p count[0]',
  ]);
  assert.match(text, /\* 1 +Thread 1 \(core 0: awake\)/);
  assert.match(text, /2 +Thread 2 \(core 1: in the boot ROM/);
  assert.match(text, /hit .*[Bb]reakpoint 1, (0x\w+ in )?one/);
  assert.match(text, /\[one\]\n#0 .*one \(\).*\n#1 .*core1/);
  assert.match(text, /\[zero\]\n#0 .*zero \(\).*\n#1 .*main/);
  assert.match(text, /= 1\n/);
  assert.match(text, /= 201\n/);
  assert.match(text, /0x11223344/);
  assert.match(text, /Start address 0x\w+, load size \d+/);
  assert.match(text, /weft-rp2040: break at/);
  assert.match(text, /= 300\n$|= 300\n\[Inferior/);
});
