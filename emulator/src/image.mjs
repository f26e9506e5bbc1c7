// @ts-check
/**
 * Firmware images: turns UF2, ELF32 and raw binaries into segments, symbols and a way to start.
 *
 * Invariants
 * - `segments` contain the data to program into the chip: non-empty pieces at physical (load)
 *   addresses in
 *   SRAM or flash. Overlaps are not checked.
 * - For every malformed input an ImageError is thrown, which names the fault and the remedy;
 *   nothing else is thrown.
 */
import { FLASH, SRAM, SRAM_SIZE } from './memory.mjs';

/** A bad image; the message is one line. */
export class ImageError extends Error {}

/**
 * @typedef {{ address: number, bytes: Uint8Array }} Segment
 * @typedef {{ name: string, address: number, size: number, kind: 'function' | 'object' | 'other' }}
 *   Symbol
 * @typedef {{ format: 'uf2' | 'elf' | 'bin', segments: Segment[], symbols: Symbol[], entry: number
 *   | null }} Image
 */

const UF2_MAGIC0 = 0x0a324655;
const UF2_MAGIC1 = 0x9e5d5157;
const UF2_END = 0x0ab16f30;
const UF2_FAMILY_PRESENT = 0x2000;
const UF2_NOT_MAIN_FLASH = 0x0001;
export const RP2040_FAMILY = 0xe48bff56;

/** @param {number} value */
export function hex(value) {
  return `0x${(value >>> 0).toString(16).padStart(8, '0')}`;
}

/** @param {Segment} segment */
function checkPlace({ address, bytes }) {
  const end = address + bytes.length;
  const inSram = address >= SRAM && end <= SRAM + SRAM_SIZE;
  const inFlash = address >= FLASH && end <= FLASH + 0x1000000;
  if (!inSram && !inFlash)
    throw new ImageError(
      `${hex(address)}..${hex(end)} is neither in flash nor in SRAM: link the image for the RP2040`,
    );
}

/** Merges pieces that touch. @param {Segment[]} pieces @returns {Segment[]} */
function merge(pieces) {
  const sorted = [...pieces].sort((a, b) => a.address - b.address);
  /** @type {{ address: number, parts: Uint8Array[], length: number }[]} */
  const runs = [];
  for (const { address, bytes } of sorted) {
    const last = runs[runs.length - 1];
    if (last && last.address + last.length === address) {
      last.parts.push(bytes);
      last.length += bytes.length;
    } else runs.push({ address, parts: [bytes], length: bytes.length });
  }
  return runs.map(({ address, parts }) => ({
    address,
    bytes: new Uint8Array(Buffer.concat(parts)),
  }));
}

/** Reads a UF2 file (github.com/microsoft/uf2). @param {Uint8Array} data @returns {Image} */
export function parseUf2(data) {
  if (data.length === 0 || data.length % 512 !== 0)
    throw new ImageError(
      `not a UF2: ${data.length} bytes is not a whole number of 512-byte blocks (truncated copy?)`,
    );
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const blocks = data.length / 512;
  /** @type {Segment[]} */
  const pieces = [];
  /** @type {Set<number>} */
  const seen = new Set();
  let total = 0;
  for (let i = 0; i < blocks; i++) {
    const at = i * 512;
    const word = (/** @type {number} */ n) => view.getUint32(at + 4 * n, true);
    if (
      word(0) !== UF2_MAGIC0 ||
      word(1) !== UF2_MAGIC1 ||
      view.getUint32(at + 508, true) !== UF2_END
    )
      throw new ImageError(
        `UF2 block ${i} has a wrong magic number: the file is damaged or not a UF2`,
      );
    const flags = word(2);
    if (flags & UF2_NOT_MAIN_FLASH) continue;
    if (flags & UF2_FAMILY_PRESENT && word(7) !== RP2040_FAMILY)
      throw new ImageError(
        `UF2 block ${i} is for family ${hex(word(7))}, not the RP2040 (${hex(RP2040_FAMILY)})`,
      );
    const size = word(4);
    if (size === 0 || size > 476)
      throw new ImageError(`UF2 block ${i} has a payload of ${size} bytes; 1 to 476 are possible`);
    if (total === 0) total = word(6);
    if (word(6) !== total || word(5) >= total)
      throw new ImageError(
        `UF2 block ${i} is numbered ${word(5)} of ${word(6)}, expected of ${total}`,
      );
    if (seen.has(word(5))) throw new ImageError(`UF2 block number ${word(5)} appears twice`);
    seen.add(word(5));
    pieces.push({ address: word(3), bytes: data.slice(at + 32, at + 32 + size) });
  }
  if (pieces.length === 0) throw new ImageError('UF2 has no block for main memory');
  if (seen.size !== total)
    throw new ImageError(`UF2 has ${seen.size} of ${total} blocks: the file is incomplete`);
  pieces.forEach(checkPlace);
  return { format: 'uf2', segments: merge(pieces), symbols: [], entry: null };
}

/**
 * Checks that the data is a 32-bit little-endian ARM executable.
 * @param {Uint8Array} data
 * @returns {{ view: DataView, need: (offset: number, size: number, what: string) => void }} need
 *   throws if the file ends before that piece does
 */
function openElf(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length < 52 || view.getUint32(0, false) !== 0x7f454c46)
    throw new ImageError('not an ELF file');
  if (data[4] !== 1 || data[5] !== 1)
    throw new ImageError('ELF is not 32-bit little-endian: build with -mcpu=cortex-m0plus');
  if (view.getUint16(18, true) !== 40)
    throw new ImageError(`ELF is for machine ${view.getUint16(18, true)}, not ARM (40)`);
  if (view.getUint16(16, true) !== 2)
    throw new ImageError('ELF is not an executable: link it first');
  return {
    view,
    need: (offset, size, what) => {
      if (offset + size > data.length)
        throw new ImageError(`ELF ends inside its ${what}: the file is truncated`);
    },
  };
}

/** Reads a 32-bit little-endian ARM executable. @param {Uint8Array} data @returns {Image} */
export function parseElf(data) {
  const { view, need } = openElf(data);
  /** @type {Segment[]} */
  const segments = [];
  const phoff = view.getUint32(28, true);
  const phentsize = view.getUint16(42, true);
  const phnum = view.getUint16(44, true);
  need(phoff, phentsize * phnum, 'program headers');
  for (let i = 0; i < phnum; i++) {
    const at = phoff + i * phentsize;
    if (view.getUint32(at, true) !== 1) continue;
    const size = view.getUint32(at + 16, true);
    if (size === 0) continue;
    const offset = view.getUint32(at + 4, true);
    need(offset, size, 'segments');
    segments.push({
      address: view.getUint32(at + 12, true),
      bytes: data.slice(offset, offset + size),
    });
  }
  if (segments.length === 0) throw new ImageError('ELF has nothing to load');
  segments.forEach(checkPlace);
  return {
    format: 'elf',
    segments: merge(segments),
    symbols: elfSymbols(data),
    entry: view.getUint32(24, true),
  };
}

/**
 * Returns the symbols of an ELF for any chip with an ARM core, by address. Among the names of one
 * address the weak ones are last, such as those of handlers that the program does not define.
 * @param {Uint8Array} data
 * @returns {Symbol[]}
 */
export function elfSymbols(data) {
  const { view, need } = openElf(data);
  /** @type {Symbol[]} */
  const symbols = [];
  /** @type {Set<string>} */
  const weak = new Set();
  const shoff = view.getUint32(32, true);
  const shentsize = view.getUint16(46, true);
  const shnum = view.getUint16(48, true);
  if (shoff === 0) return symbols;
  need(shoff, shentsize * shnum, 'section headers');
  for (let i = 0; i < shnum; i++) {
    const at = shoff + i * shentsize;
    if (view.getUint32(at + 4, true) !== 2) continue;
    const offset = view.getUint32(at + 16, true);
    const size = view.getUint32(at + 20, true);
    const strings = shoff + view.getUint32(at + 24, true) * shentsize;
    need(offset, size, 'symbol table');
    need(strings, shentsize, 'section headers');
    const text = view.getUint32(strings + 16, true);
    for (let s = offset; s + 16 <= offset + size; s += 16) {
      const name = text + view.getUint32(s, true);
      need(name, 1, 'symbol names');
      let end = name;
      while (end < data.length && data[end]) end++;
      const label = Buffer.from(data.buffer, data.byteOffset + name, end - name).toString();
      const type = data[s + 12] & 15;
      if (label === '' || label.startsWith('$') || type > 2 || view.getUint16(s + 14, true) === 0)
        continue;
      const value = view.getUint32(s + 4, true);
      if (data[s + 12] >> 4 === 2) weak.add(label);
      symbols.push({
        name: label,
        address: type === 2 ? (value & ~1) >>> 0 : value,
        size: view.getUint32(s + 8, true),
        kind: type === 2 ? 'function' : type === 1 ? 'object' : 'other',
      });
    }
  }
  const after = (/** @type {Symbol} */ s) => Number(weak.has(s.name));
  return symbols.sort((a, b) => a.address - b.address || after(a) - after(b));
}

/**
 * Returns the function in which an address is, if there is one. A function without a size, as
 * assembly code may have it, ends where the next one begins.
 * @param {Symbol[]} symbols by address
 * @param {number} address
 */
export function functionAt(symbols, address) {
  const before = symbols.filter((s) => s.kind === 'function' && s.address <= address);
  const nearest = before[before.length - 1]?.address;
  const found = before.filter(
    (s) => address < s.address + s.size || (!s.size && s.address === nearest),
  );
  return found.find((s) => s.address === found[found.length - 1].address);
}

/** @param {Uint8Array} data @param {number} base @returns {Image} */
export function rawBinary(data, base) {
  if (data.length === 0) throw new ImageError('the image is empty');
  const segment = { address: base, bytes: data };
  checkPlace(segment);
  return { format: 'bin', segments: [segment], symbols: [], entry: null };
}

/**
 * Determines the format from the content, and parses the image.
 * @param {Uint8Array} data
 * @param {number} [base] address of a raw binary
 * @param {string} [name] the file's name, for better messages
 * @returns {Image}
 */
export function parseImage(data, base = SRAM, name = '') {
  if (data.length >= 4) {
    const magic = new DataView(data.buffer, data.byteOffset, 4);
    if (magic.getUint32(0, false) === 0x7f454c46) return parseElf(data);
    if (magic.getUint32(0, true) === UF2_MAGIC0 || name.endsWith('.uf2')) return parseUf2(data);
  }
  if (name.endsWith('.elf')) throw new ImageError('not an ELF file');
  if (name.endsWith('.uf2')) return parseUf2(data);
  return rawBinary(data, base);
}

/**
 * The CRC-32 that the bootrom checks over boot2 (polynomial 0x04c11db7, not reflected; datasheet
 * 2.8.1.3.1).
 * @param {Uint8Array} bytes
 */
export function boot2Crc(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let i = 0; i < 8; i++) crc = crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  }
  return crc >>> 0;
}

/**
 * The way in which the chip starts an image.
 * @typedef {{ how: 'vectors', vectors: number, boot2: boolean } | { how: 'entry', pc: number }}
 *   Start
 */

/** @param {Image} image @returns {Start} */
export function startOf(image) {
  const word = (/** @type {number} */ address) => {
    for (const s of image.segments) {
      const o = address - s.address;
      if (o >= 0 && o + 4 <= s.bytes.length)
        return new DataView(s.bytes.buffer, s.bytes.byteOffset).getUint32(o, true);
    }
    return null;
  };
  const isVectors = (/** @type {number} */ address) => {
    const sp = word(address);
    const pc = word(address + 4);
    // The RP2350 has twice the SRAM, and the pico-sdk puts the stack at its end.
    if (
      sp !== null &&
      pc !== null &&
      sp > SRAM + SRAM_SIZE &&
      sp <= 0x20082000 &&
      pc & 1 &&
      word((pc & ~3) >>> 0) !== null
    )
      throw new ImageError(
        `the stack at ${hex(sp)} is beyond the RP2040's SRAM: is the image for an RP2350?`,
      );
    return (
      sp !== null &&
      pc !== null &&
      sp > SRAM &&
      sp <= 0x21040000 &&
      (sp & 3) === 0 &&
      (pc & 1) === 1 &&
      word((pc & ~3) >>> 0) !== null
    );
  };
  const low = Math.min(...image.segments.map((s) => s.address));
  const flash = image.segments.find((s) => s.address === FLASH && s.bytes.length >= 256);
  if (flash && boot2Crc(flash.bytes.subarray(0, 252)) === word(FLASH + 252)) {
    if (!isVectors(FLASH + 256))
      throw new ImageError('the image has a boot2 but no vector table at 0x10000100 after it');
    return { how: 'vectors', vectors: FLASH + 256, boot2: true };
  }
  for (const name of ['__vectors', 'vectors', '__vector_table', '__isr_vector', '__VECTOR_TABLE']) {
    const symbol = image.symbols.find((s) => s.name === name);
    if (symbol && isVectors(symbol.address))
      return { how: 'vectors', vectors: symbol.address, boot2: false };
  }
  for (const s of [...image.segments].sort((a, b) => a.address - b.address))
    if (isVectors(s.address)) return { how: 'vectors', vectors: s.address, boot2: false };
  if (flash && isVectors(FLASH + 256))
    return { how: 'vectors', vectors: FLASH + 256, boot2: false };
  if (image.entry) return { how: 'entry', pc: (image.entry & ~1) >>> 0 };
  if (low >= SRAM) return { how: 'entry', pc: low };
  throw new ImageError(
    `no vector table found at ${hex(low)} or ${hex(low + 256)}: is the base address right (--base)?`,
  );
}
