// @ts-check
/**
 * Packets of gdb's remote serial protocol (gdb manual, appendix E), made from the bytes received.
 *
 * Invariants
 * - A text has one character per byte (latin1). Packets from PacketReader are unescaped and have a
 *   right checksum.
 * - Any bytes may be pushed, in any pieces: nothing is thrown, and no more than LIMIT bytes are
 *   kept.
 *
 *   IDLE ── '$' ──▶ BODY ── '#' ──▶ FIRST ──▶ SECOND ──▶ IDLE
 *                    │ ▲ '$' begins again
 *
 * The result is a packet, or 'bad' if its checksum is wrong or it is longer than LIMIT.
 */

/** The length of the longest packet that is accepted; the answer to qSupported announces it. */
export const LIMIT = 0x4000;

const IDLE = 0;
const BODY = 1;
const FIRST = 2;
const SECOND = 3;

/**
 * 'ack' and 'nack' are gdb's '+' and '-', 'interrupt' is Ctrl-C.
 * @typedef {{ kind: 'packet', text: string } | { kind: 'bad' | 'ack' | 'nack' | 'interrupt' }}
 *   Event
 */

/** @param {string} text @returns {number} */
function checksum(text) {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum += text.charCodeAt(i);
  return sum & 0xff;
}

/** @param {string} text */
const unescape = (text) =>
  text.replace(/\}([^])/g, (_, c) => String.fromCharCode(c.charCodeAt(0) ^ 0x20));

/**
 * Makes a packet of a text, escaped where the protocol needs it.
 * @param {string} text
 * @returns {string}
 */
export function packet(text) {
  const body = text.replace(/[#$}*]/g, (c) => `}${String.fromCharCode(c.charCodeAt(0) ^ 0x20)}`);
  return `$${body}#${checksum(body).toString(16).padStart(2, '0')}`;
}

export class PacketReader {
  constructor() {
    this.state = IDLE;
    this.body = '';
    this.long = false;
    this.sum = '';
  }

  /** @param {Uint8Array} bytes @returns {Event[]} in the order of the bytes */
  push(bytes) {
    /** @type {Event[]} */
    const events = [];
    for (const byte of bytes) {
      const c = String.fromCharCode(byte);
      switch (this.state) {
        case IDLE:
          if (c === '$') this.begin();
          else if (c === '+') events.push({ kind: 'ack' });
          else if (c === '-') events.push({ kind: 'nack' });
          else if (byte === 3) events.push({ kind: 'interrupt' });
          break;
        case BODY:
          if (c === '#') this.state = FIRST;
          else if (c === '$') this.begin();
          else if (this.body.length < LIMIT) this.body += c;
          else this.long = true;
          break;
        case FIRST:
          this.sum = c;
          this.state = SECOND;
          break;
        default: {
          this.state = IDLE;
          const sum = /^[0-9a-f]{2}$/i.test(this.sum + c) ? parseInt(this.sum + c, 16) : -1;
          if (this.long || sum !== checksum(this.body)) events.push({ kind: 'bad' });
          else events.push({ kind: 'packet', text: unescape(this.body) });
          this.body = '';
        }
      }
    }
    return events;
  }

  begin() {
    this.state = BODY;
    this.body = '';
    this.long = false;
  }
}
