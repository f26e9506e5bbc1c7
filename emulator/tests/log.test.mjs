// @ts-check
/** Tests the reader of a firmware's log: its texts, its packets, its formats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ImageError } from '../src/image.mjs';
import { LogReader, format, logTexts } from '../src/log.mjs';

/** The packet of log.c with these bytes after its kind. @param {number[]} body */
function packet(body) {
  const p = [0x4c, ...body];
  let c = 0xffffffff;
  for (const byte of p) {
    c ^= byte;
    for (let i = 0; i < 8; i++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  }
  const bytes = [0, 8, 16, 24].map((s) => (~c >>> s) & 255).concat(p);
  const out = [];
  for (const block of Buffer.from(bytes).toString('latin1').split('\0'))
    out.push(block.length + 1, ...Buffer.from(block, 'latin1'));
  return [...out, 0];
}
const entries = { base: 0, texts: ['begin', 'value %d', 'pair %u %x'] };
/** @param {number[]} bytes */
function lines(bytes) {
  /** @type {string[]} */
  const said = [];
  const reader = new LogReader(entries, (line) => said.push(line.trim()));
  // Pushes single bytes, because a packet may arrive in any pieces.
  for (const byte of bytes) reader.push([byte]);
  return { said, passed: reader.passed };
}
const three = packet([
  10,
  0,
  0,
  0,
  0,
  0,
  0,
  5,
  4 * 2,
  0xfe,
  10,
  4 * 3 + 3,
  7,
  0,
  0,
  0,
  0xff,
  0xff,
  0,
  0,
]);

test('records have times and arguments (M23)', () => {
  assert.deepEqual(lines(three).said, [
    '0.000010 begin',
    '0.000012 value -2',
    '0.000015 pair 7 ffff',
  ]);
});

test('the time continues beyond 32 bits', () => {
  const late = packet([0xf0, 0xff, 0xff, 0xff, 0, 0, 0]);
  const wrapped = packet([16, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual(lines([...late, ...wrapped]).said, ['4294.967280 begin', '4294.967312 begin']);
});

test('lost records are reported (M23)', () => {
  assert.match(lines(packet([1, 0, 0, 0, 0x81, 2, 0, 0])).said[0], /^257 records were lost here/);
});

test('bytes that are no packet of the log, and damaged packets, are skipped', () => {
  const text = [...Buffer.from('hello\n\0')];
  const spoilt = three.map((byte, i) => (i === 9 ? byte ^ 1 : byte));
  const { said, passed } = lines([...text, ...spoilt, ...three, 3, 0, 0, 255, 0]);
  assert.equal(said.length, 3);
  assert.equal(passed, text.length + spoilt.length + 2 + 2);
});

test('random bytes print no line', () => {
  let seed = 1;
  const noise = Array.from({ length: 20000 }, () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed >>> 24;
  });
  assert.deepEqual(lines(noise).said, []);
});

test('a record whose text is missing from the ELF is reported', () => {
  assert.match(lines(packet([1, 0, 0, 0, 0, 4 * 9, 0])).said[0], /text 9 is not in this ELF/);
});

test('formats are those of printf', () => {
  for (const [text, args, wanted] of /** @type {[string, number[], string][]} */ ([
    ['%d %i %u', [-1, 5, -1], '-1 5 4294967295'],
    ['%5d|%-5d|%05d|%+d|% d', [-42, 42, -42, 42, 42], '  -42|42   |-0042|+42| 42'],
    ['%x %X %#x %08x %#06x', [255, 255, 255, -1, 15], 'ff FF 0xff ffffffff 0x000f'],
    ['%c%c %lu %%', [72, 105, 3], 'Hi 3 %'],
  ]))
    assert.equal(format(text, args), wanted);
});

test('an ELF without a log, and a file that is no ELF, give errors of one line', () => {
  assert.throws(() => logTexts(new Uint8Array(100)), ImageError);
  const empty = new Uint8Array(52);
  empty.set([0x7f, 0x45, 0x4c, 0x46, 1, 1]);
  assert.throws(() => logTexts(empty), /logs nothing/);
});
