// @ts-check
/** Tests images: which are accepted, and the error for each fault. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ImageError, Machine, parseImage, startOf } from '../src/index.mjs';
import { RP2040_FAMILY, boot2Crc, parseElf, parseUf2, rawBinary } from '../src/image.mjs';
import { image } from './build.mjs';

/**
 * A UF2 of 256-byte payloads.
 * @param {{ address: number, bytes: Uint8Array }[]} segments
 * @param {number} [family]
 */
function uf2(segments, family = RP2040_FAMILY) {
  const pieces = segments.flatMap(({ address, bytes }) =>
    Array.from({ length: Math.ceil(bytes.length / 256) }, (_, i) => ({
      address: address + 256 * i,
      bytes: bytes.subarray(256 * i, 256 * i + 256),
    })),
  );
  const out = new Uint8Array(512 * pieces.length);
  pieces.forEach(({ address, bytes }, i) => {
    const view = new DataView(out.buffer, 512 * i, 512);
    [0x0a324655, 0x9e5d5157, 0x2000, address, 256, i, pieces.length, family].forEach((word, n) =>
      view.setUint32(4 * n, word, true),
    );
    out.set(bytes, 512 * i + 32);
    view.setUint32(508, 0x0ab16f30, true);
  });
  return out;
}

const source =
  '#include "fw.h"\nvolatile uint32_t answer = 41; int main(void) { answer++; return 0; }';
const elf = image({ source });
const flashElf = image({ source, memory: 'flash' });

/** @param {Uint8Array} bytes @param {number} at @param {number[]} values */
function patched(bytes, at, values) {
  const copy = bytes.slice();
  copy.set(values, at);
  return copy;
}

test('one program as ELF, UF2 and raw binary runs the same, from SRAM and from flash', () => {
  for (const bytes of [elf, flashElf]) {
    const parsed = parseElf(bytes);
    const images = [bytes, uf2(parsed.segments)];
    const segment = parsed.segments[0];
    const runs = images.map((i) => {
      const m = new Machine().load(i);
      assert.equal(m.run(1e5).code, 0);
      return [m.edges.digest, m.cycle];
    });
    const raw = new Machine().load(segment.bytes, { base: segment.address });
    assert.equal(raw.run(1e5).code, 0);
    runs.push([raw.edges.digest, raw.cycle]);
    assert.deepEqual(runs[1], runs[0]);
    assert.deepEqual(runs[2], runs[0]);
  }
});

test('symbols: functions without the Thumb bit, memory read and written by name', () => {
  const m = new Machine().load(elf);
  assert.equal(m.address('main') & 1, 0);
  m.run(1e5);
  assert.equal(m.read32('answer'), 42);
  m.write32('answer', 7);
  assert.equal(m.read32('answer'), 7);
  assert.throws(() => m.read32('no_such_thing'), /no symbol 'no_such_thing'/);
  assert.throws(() => m.read(0x40000000, 4), /not in SRAM or flash/);
});

test('a valid boot2 moves the vectors to 0x10000100 and is run when asked (2.8.1.3)', () => {
  const at100 = new Uint8Array(1024);
  const view = new DataView(at100.buffer);
  // boot2: ldr r0, =0x10000100; ldr r1, [r0]; mov sp, r1; ldr r0, [r0, #4]; bx r0
  [0x4802, 0x6801, 0x468d, 0x6840, 0x4700, 0xbf00].forEach((op, i) =>
    view.setUint16(2 * i, op, true),
  );
  view.setUint32(12, 0x10000100, true);
  view.setUint32(252, boot2Crc(at100.subarray(0, 252)), true);
  view.setUint32(256, 0x20042000, true);
  view.setUint32(260, 0x10000109, true);
  view.setUint16(264, 0xbe00, true);
  const parsed = rawBinary(at100, 0x10000000);
  assert.deepEqual(startOf(parsed), { how: 'vectors', vectors: 0x10000100, boot2: true });
  const skipped = new Machine().load(parsed).run(1000);
  const executed = new Machine({ runBoot2: true }).load(parsed).run(1000);
  assert.equal(skipped.reason, 'break');
  assert.equal(executed.reason, 'break');
  assert.ok(executed.cycle > skipped.cycle);
  at100[253] ^= 1;
  assert.throws(() => startOf(rawBinary(at100.slice(0, 256), 0x10000000)), /no vector table found/);
});

test('the boot2 checksum is CRC-32/MPEG-2 (2.8.1.3.1)', () => {
  assert.equal(boot2Crc(Buffer.from('123456789')), 0x0376e6e7);
});

const good = uf2(parseElf(elf).segments);
/** @type {[string, Uint8Array, RegExp][]} */
const bad = [
  ['an empty file', new Uint8Array(0), /empty/],
  ['a UF2 cut short', good.subarray(0, 700), /not a whole number of 512-byte blocks/],
  ['a UF2 with a damaged block', patched(good, 512, [0]), /block 1 has a wrong magic number/],
  ['a UF2 with a damaged end', patched(good, 508, [0]), /wrong magic number/],
  [
    'a UF2 for another chip',
    uf2(parseElf(elf).segments, 0x57755a57),
    /family 0x57755a57, not the RP2040/,
  ],
  [
    'a UF2 without its last block',
    good.subarray(0, good.length - 512),
    /blocks: the file is incomplete/,
  ],
  ['a UF2 with a block twice', patched(good, 512 + 20, [0, 0, 0, 0]), /appears twice/],
  ['a UF2 with an impossible payload', patched(good, 16, [0xff, 0xff]), /payload of 65535 bytes/],
  ['a UF2 that counts wrongly', patched(good, 512 + 24, [99]), /numbered 1 of 99/],
  ['a UF2 for nowhere', patched(good, 12, [0, 0, 0, 0x50]), /neither in flash nor in SRAM/],
  ['an ELF cut short', elf.subarray(0, 80), /truncated/],
  ['an ELF header alone', elf.subarray(0, 20), /not an ELF file/],
  ['an ELF for another machine', patched(elf, 18, [62, 0]), /machine 62, not ARM/],
  ['a 64-bit ELF', patched(elf, 4, [2]), /not 32-bit/],
  ['an object file', patched(elf, 16, [1, 0]), /not an executable/],
];
for (const [what, bytes, message] of bad)
  test(`bad image: ${what}`, () => {
    assert.throws(
      () =>
        parseImage(
          bytes,
          0x20000000,
          what.includes('ELF') ? 'x.elf' : what.includes('UF2') ? 'x.uf2' : 'x.bin',
        ),
      (/** @type {unknown} */ error) =>
        error instanceof ImageError && message.test(error.message) && !error.message.includes('\n'),
    );
  });

test('a raw binary without vectors, and one for a place that does not exist', () => {
  assert.deepEqual(startOf(rawBinary(new Uint8Array(64), 0x20000000)), {
    how: 'entry',
    pc: 0x20000000,
  });
  assert.throws(() => rawBinary(new Uint8Array(64), 0x30000000), /neither in flash nor in SRAM/);
  assert.throws(
    () => startOf(rawBinary(new Uint8Array(64), 0x10000000)),
    /no vector table found at 0x10000000/,
  );
});

test('an image whose stack is where only an RP2350 has SRAM says so', () => {
  const vectors = new Uint8Array(64);
  new DataView(vectors.buffer).setUint32(0, 0x20082000, true);
  new DataView(vectors.buffer).setUint32(4, 0x10000021, true);
  assert.throws(
    () => startOf(rawBinary(vectors, 0x10000000)),
    (/** @type {unknown} */ error) =>
      error instanceof ImageError && /0x20082000 is beyond .* RP2350/.test(error.message),
  );
});

test('random damage to a UF2 or ELF never crashes the loader', () => {
  let x = 12345;
  const next = () => (x = (Math.imul(x, 1103515245) + 12345) >>> 0) >>> 8;
  for (let i = 0; i < 3000; i++) {
    const bytes = (i & 1 ? good : elf).slice();
    for (let k = 0; k < 3; k++)
      bytes[next() % Math.min(bytes.length, i & 2 ? 600 : bytes.length)] = next();
    try {
      startOf(parseImage(bytes, 0x20000000, i & 1 ? 'x.uf2' : 'x.elf'));
    } catch (error) {
      assert.ok(error instanceof ImageError, `seed 12345, round ${i}: ${error}`);
    }
  }
});

test('parseUf2 skips blocks marked as not for main flash', () => {
  const marked = patched(good, 8, [1, 0x20]);
  assert.throws(() => parseUf2(marked), /incomplete/);
});
