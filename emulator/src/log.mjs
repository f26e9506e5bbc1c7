// @ts-check
/**
 * The log of a firmware (mcu/LOG.md): its texts from the ELF, its records from a serial line.
 *
 * Invariants
 * - A packet whose checksum is wrong is skipped, and so is everything that is not a packet. So text
 *   of the firmware and packets of other kinds may be on the same line.
 * - If a packet has a correct checksum, but its text is missing from the ELF, then the ELF is not
 *   the firmware's; the printed line reports this.
 */
import { ImageError } from './image.mjs';

const KIND = 0x4c;
const HEADER = 9; // checksum, kind, time

/**
 * Returns the texts, in the order of their numbers, and the address of the first entry.
 * @param {Uint8Array} data an ELF
 */
export function logTexts(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length < 52 || view.getUint32(0, false) !== 0x7f454c46 || data[4] !== 1)
    throw new ImageError('not a 32-bit ELF file: the texts of the log are in the .elf alone');
  const table = view.getUint32(32, true);
  const size = view.getUint16(46, true);
  const count = view.getUint16(48, true);
  if (table + size * count > data.length)
    throw new ImageError('ELF ends inside its section headers: the file is truncated');
  const field = (/** @type {number} */ i, /** @type {number} */ at) =>
    view.getUint32(table + i * size + at, true);
  const string = (/** @type {number} */ at) => {
    let end = at;
    while (end < data.length && data[end]) end++;
    return Buffer.from(data.buffer, data.byteOffset + at, end - at).toString();
  };
  const names = count ? field(view.getUint16(50, true), 16) : 0;
  /** @param {string} name */
  const section = (name) => {
    for (let i = 0; i < count; i++)
      if (string(names + field(i, 0)) === name) {
        const [address, offset, length] = [field(i, 12), field(i, 16), field(i, 20)];
        if (offset + length > data.length)
          throw new ImageError(`ELF ends inside its section ${name}: the file is truncated`);
        return { address, offset, length };
      }
    throw new ImageError(`no section ${name}: the firmware logs nothing (mcu/LOG.md)`);
  };
  const entries = section('.weft_log');
  const texts = section('.weft_log_text');
  const list = [];
  for (let at = 0; at + 4 <= entries.length; at += 4)
    list.push(string(texts.offset + view.getUint32(entries.offset + at, true) - texts.address));
  return { base: entries.address, texts: list };
}

/**
 * Formats as the firmware's printf would.
 * @param {string} text @param {number[]} args
 */
export function format(text, args) {
  let next = 0;
  return text.replace(/%([-+ 0#]*)(\d*)(?:hh?|l)?([diuxXc%])/g, (_, flags, width, kind) => {
    if (kind === '%') return '%';
    const value = args[next++] ?? 0;
    const positive = kind === 'd' || kind === 'i' ? value : value >>> 0;
    let digits =
      kind === 'c'
        ? String.fromCharCode(value & 255)
        : Math.abs(positive).toString(kind === 'x' || kind === 'X' ? 16 : 10);
    if (kind === 'X') digits = digits.toUpperCase();
    let sign = positive < 0 ? '-' : /[di]/.test(kind) ? (/[+ ]/.exec(flags)?.[0] ?? '') : '';
    if (flags.includes('#') && /[xX]/.test(kind) && value) sign = `0${kind}`;
    const length = Number(width) - sign.length;
    if (flags.includes('-')) return (sign + digits).padEnd(Number(width));
    if (flags.includes('0') && kind !== 'c') return sign + digits.padStart(length, '0');
    return (sign + digits).padStart(Number(width));
  });
}

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let i = 0; i < 8; i++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});

/**
 * Returns the CRC-32 that zip uses. (The oldest Node.js that runs this emulator has none built in.)
 *
 * @param {Uint8Array} bytes
 */
function crc32(bytes) {
  let c = 0xffffffff;
  for (const byte of bytes) c = TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return ~c >>> 0;
}

/** Undoes COBS. Returns null if the bytes are not COBS. @param {number[]} line */
function unstuff(line) {
  const bytes = [];
  for (let at = 0; at < line.length;) {
    const end = at + line[at];
    if (end > line.length) return null;
    const code = line[at++];
    while (at < end) bytes.push(line[at++]);
    if (at < line.length && code < 255) bytes.push(0);
  }
  return Uint8Array.from(bytes);
}

/** Turns the bytes of a line into lines of text. */
export class LogReader {
  /**
   * @param {{ base: number, texts: string[] }} entries
   * @param {(line: string) => void} say
   */
  constructor(entries, say) {
    this.entries = entries;
    this.say = say;
    /** @type {number[]} */
    this.line = [];
    /** the time of the last record in microseconds; a packet contains only its lower 32 bits */
    this.time = 0;
    /** bytes that belonged to no packet */
    this.passed = 0;
  }

  /** @param {Iterable<number>} bytes */
  push(bytes) {
    for (const byte of bytes) {
      if (byte) this.line.push(byte);
      else {
        if (this.line.length && !this.packet(this.line)) this.passed += this.line.length + 1;
        this.line = [];
      }
      if (this.line.length > 1024) {
        this.passed += this.line.length;
        this.line = [];
      }
    }
  }

  /** @param {number[]} line @returns {boolean} whether it was a packet of the log */
  packet(line) {
    const p = unstuff(line);
    if (!p || p.length < HEADER + 1 || p[4] !== KIND) return false;
    const view = new DataView(p.buffer);
    if (view.getUint32(0, true) !== crc32(p.subarray(4))) return false;
    let at = HEADER;
    const varint = () => {
      let value = 0;
      for (let scale = 1; at < p.length; scale *= 128) {
        const byte = p[at++];
        value += (byte & 127) * scale;
        if (byte < 128) return value;
      }
      return value;
    };
    let low = view.getUint32(5, true);
    const lost = varint();
    if (lost) this.say(`             ${lost} records were lost here: the log's ring was full`);
    while (at < p.length) {
      const entry = varint();
      const spaced = varint();
      const size = (spaced % 4) + 1;
      low = (low + Math.floor(spaced / 4)) % 2 ** 32;
      const args = [];
      for (let i = 0; i < (entry & 3); i++) {
        let value = 0;
        for (let k = 0; k < size && at < p.length; k++) value |= p[at++] << (8 * k);
        args.push((value << (32 - 8 * size)) >> (32 - 8 * size));
      }
      this.time += (low - (this.time % 2 ** 32) + 2 ** 32) % 2 ** 32;
      const number = ((entry & ~3) - (this.entries.base & 0xffff)) & 0xffff;
      const text = this.entries.texts[number / 4];
      const seconds = `${Math.floor(this.time / 1e6)}.${String(this.time % 1e6).padStart(6, '0')}`;
      this.say(
        `${seconds.padStart(12)} ${text === undefined ? `text ${number / 4} is not in this ELF: is it the firmware's?` : format(text, args)}`,
      );
    }
    return true;
  }
}
