// @ts-check
/**
 * gdb's remote protocol over TCP (gdb manual, appendix E): `weft-rp2040 gdb IMAGE`, then `target
 * remote :3333`.
 *
 * Invariants
 * - All-stop: a stop stops both cores, and while gdb inspects the machine no time passes.
 * - `Session.receive` answers every packet with one reply: an empty one for an unknown packet, E01
 *   for an invalid packet. It never throws, whatever a client sends. The answer to a command that
 *   runs the machine is sent later, through `send`.
 * - The server listens only on the loopback interface, and serves one client at a time. Between
 *   clients the machine's time does not advance.
 *
 *   HALTED ── c, s, vCont ──▶ RUNNING ── breakpoint, step done, Ctrl-C, end ──▶ HALTED
 */
import { createServer } from 'node:net';
import { LIMIT, PacketReader, packet } from './gdb_packet.mjs';
import { REGISTERS, TARGET_XML, Target, memoryMap } from './gdb_target.mjs';

/** Cycles between two checks of the socket: a few milliseconds. */
const SLICE = 200_000;
const SIGINT = 2;
const SIGTRAP = 5;
const MONITOR = `monitor commands:
  reset   core 0 through the boot ROM again, core 1 into it; peripherals stay as they are
  time    the cycle and the microsecond
`;

/** @param {Uint8Array} bytes */
const toHex = (bytes) => Buffer.from(bytes).toString('hex');

/** Bytes of hex digits, or null. @param {string} text */
function fromHex(text) {
  return text.length % 2 === 0 && /^[0-9a-f]*$/i.test(text)
    ? new Uint8Array(Buffer.from(text, 'hex'))
    : null;
}

/** A word as gdb writes registers: the bytes in memory order. @param {number} value */
function word(value) {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return toHex(bytes);
}

/** @param {Uint8Array} bytes @param {number} [at] */
const unword = (bytes, at = 0) => new DataView(bytes.buffer, bytes.byteOffset).getInt32(at, true);

/**
 * Returns the hex numbers that the groups of a pattern match in a text; null if the pattern does
 * not match.
 * @param {string} text
 * @param {RegExp} pattern
 */
function numbers(text, pattern) {
  const match = pattern.exec(text);
  return match ? match.slice(1).map((digits) => parseInt(digits, 16)) : null;
}

export class Session {
  /** @param {Target} target @param {(text: string) => void} send one whole packet's text */
  constructor(target, send) {
    this.target = target;
    this.send = send;
    /**
     * @type {[import('./gdb_target.mjs').Order, import('./gdb_target.mjs').Order] | null} while
     *   running
     */
    this.orders = null;
    /** The core whose registers are read, and to which `c` and `s` apply. */
    this.looked = 0;
    this.last = `T${SIGTRAP.toString(16).padStart(2, '0')}thread:1;`;
    this.acks = true;
    this.killed = false;
  }

  get running() {
    return this.orders !== null;
  }

  /**
   * @param {string} text of a packet
   * @returns {string | null} the reply; null if the reply is sent when the target stops, or never
   */
  receive(text) {
    const rest = text.slice(1);
    switch (text[0]) {
      case '?':
        return this.last;
      case 'g':
        return Array.from({ length: REGISTERS }, (_, n) =>
          word(this.target.register(this.looked, n)),
        ).join('');
      case 'G':
        return this.setAll(fromHex(rest));
      case 'p': {
        const n = numbers(rest, /^([0-9a-f]{1,8})$/i);
        return n && n[0] < REGISTERS ? word(this.target.register(this.looked, n[0])) : 'E01';
      }
      case 'P': {
        const n = numbers(rest, /^([0-9a-f]{1,8})=[0-9a-f]{8}$/i);
        if (!n || n[0] >= REGISTERS) return 'E01';
        this.target.setRegister(
          this.looked,
          n[0],
          unword(/** @type {Uint8Array} */ (fromHex(rest.slice(-8)))),
        );
        return 'OK';
      }
      case 'm':
        return this.read(rest);
      case 'M':
      case 'X':
        return this.write(rest, text[0] === 'X');
      case 'Z':
      case 'z':
        return this.breakpoint(text[0] === 'Z', rest);
      case 'c':
      case 's':
        return this.resume(text[0], rest);
      case 'H':
        return this.select(rest);
      case 'T':
        return /^0*[12]$/.test(rest) ? 'OK' : 'E01';
      case 'D':
        this.target.clear();
        return 'OK';
      case 'k':
        this.killed = true;
        return null;
      case 'v':
        return this.verbose(text);
      case 'q':
      case 'Q':
        return this.query(text);
      default:
        return '';
    }
  }

  // ---- registers and memory ----

  /** @param {Uint8Array | null} bytes */
  setAll(bytes) {
    if (!bytes || bytes.length % 4 || bytes.length > 4 * REGISTERS) return 'E01';
    for (let n = 0; 4 * n < bytes.length; n++)
      this.target.setRegister(this.looked, n, unword(bytes, 4 * n));
    return 'OK';
  }

  /** @param {string} rest */
  read(rest) {
    const n = numbers(rest, /^([0-9a-f]{1,8}),([0-9a-f]{1,8})$/i);
    if (!n) return 'E01';
    const bytes = this.target.read(n[0], Math.min(n[1], LIMIT / 2));
    return bytes ? toHex(bytes) : 'E0e';
  }

  /** @param {string} rest @param {boolean} binary */
  write(rest, binary) {
    const colon = rest.indexOf(':');
    const n = numbers(rest.slice(0, Math.max(0, colon)), /^([0-9a-f]{1,8}),([0-9a-f]{1,8})$/i);
    const data = rest.slice(colon + 1);
    const bytes = binary ? new Uint8Array(Buffer.from(data, 'latin1')) : fromHex(data);
    if (!n || !bytes || bytes.length !== n[1]) return 'E01';
    return this.target.write(n[0], bytes) ? 'OK' : 'E0e';
  }

  // ---- breakpoints and running ----

  /**
   * Inserts or removes a breakpoint. Software and hardware breakpoints are the same here, and their
   * number has no limit.
   * @param {boolean} insert
   * @param {string} rest
   */
  breakpoint(insert, rest) {
    if (!/^[01],/.test(rest)) return '';
    const n = numbers(rest, /^[01],([0-9a-f]{1,8}),[0-9a-f]+$/i);
    if (!n) return 'E01';
    if (insert) this.target.insert(n[0]);
    else this.target.remove(n[0]);
    return 'OK';
  }

  /** @param {string} rest of Hg or Hc: 0 and -1 mean any thread */
  select(rest) {
    const match = /^[gc](-1|0*[0-2])$/.exec(rest);
    if (!match) return 'E01';
    const thread = Number(match[1]);
    if (thread > 0) this.looked = thread - 1;
    return 'OK';
  }

  /**
   * The older packets to resume: `c` and `s` with an optional address.
   * @param {string} how
   * @param {string} rest
   */
  resume(how, rest) {
    if (rest !== '') {
      const n = numbers(rest, /^([0-9a-f]{1,8})$/i);
      if (!n) return 'E01';
      this.target.setRegister(this.looked, 15, n[0]);
    }
    this.orders = ['run', 'run'];
    if (how === 's') this.orders[this.looked] = { from: 0, to: 0 };
    return null;
  }

  /**
   * vCont;ACTION[:THREAD]…: a core gets the first action that names it or names all cores.
   * @param {string} text
   */
  continueAs(text) {
    /**
     * @type {[import('./gdb_target.mjs').Order | null, import('./gdb_target.mjs').Order | null]}
     */
    const orders = [null, null];
    for (const part of text.split(';').slice(1)) {
      const match =
        /^(c|s|C[0-9a-f]{2}|S[0-9a-f]{2}|t|r([0-9a-f]{1,8}),([0-9a-f]{1,8}))(?::(-1|0*[0-2]))?$/i.exec(
          part,
        );
      if (!match) return 'E01';
      const [, action, from, to, thread] = match;
      const kind = action[0].toLowerCase();
      const range = { from: parseInt(from ?? '0', 16), to: parseInt(to ?? '0', 16) };
      const order = kind === 'c' ? 'run' : kind === 't' ? 'hold' : range;
      const all = thread === undefined || Number(thread) <= 0;
      for (const id of [0, 1]) if (all || Number(thread) === id + 1) orders[id] ??= order;
    }
    if (orders[0] === null && orders[1] === null) return 'E01';
    // Two cores cannot step at the same time: the second one runs.
    if (
      typeof orders[0] === 'object' &&
      orders[0] !== null &&
      typeof orders[1] === 'object' &&
      orders[1] !== null
    )
      orders[1] = 'run';
    this.orders = [orders[0] ?? 'hold', orders[1] ?? 'hold'];
    return null;
  }

  /** Runs one slice; sends the stop reply when the run has ended. */
  slice() {
    if (!this.orders) return;
    const halt = this.target.advance(this.orders, SLICE);
    if (halt.why === 'slice') return;
    if (halt.note) this.send(`O${toHex(Buffer.from(`weft-rp2040: ${halt.note}\n`))}`);
    this.stop(SIGTRAP, halt.core);
  }

  /** Handles Ctrl-C. */
  interrupt() {
    if (!this.orders) return;
    this.stop(SIGINT, this.looked);
  }

  /** @param {number} signal @param {number} core */
  stop(signal, core) {
    this.orders = null;
    this.looked = core;
    this.last = `T${signal.toString(16).padStart(2, '0')}thread:${core + 1};`;
    this.send(this.last);
  }

  // ---- v and q packets ----

  /** @param {string} text */
  verbose(text) {
    if (text === 'vCont?') return 'vCont;c;C;s;S;t;r';
    if (text.startsWith('vCont;')) return this.continueAs(text);
    if (text.startsWith('vKill')) {
      this.killed = true;
      return 'OK';
    }
    if (text.startsWith('vFlashErase:')) {
      const n = numbers(text, /^vFlashErase:([0-9a-f]{1,8}),([0-9a-f]{1,8})$/i);
      return n && this.target.erase(n[0], n[1]) ? 'OK' : 'E01';
    }
    if (text.startsWith('vFlashWrite:')) {
      const n = numbers(text, /^vFlashWrite:([0-9a-f]{1,8}):/i);
      const data = text.slice(text.indexOf(':', 12) + 1);
      return n && this.target.write(n[0], new Uint8Array(Buffer.from(data, 'latin1')))
        ? 'OK'
        : 'E01';
    }
    return text === 'vFlashDone' ? 'OK' : '';
  }

  /** @param {string} text */
  query(text) {
    const [name] = text.split(/[:,]/, 1);
    switch (name) {
      case 'qSupported':
        return `PacketSize=${LIMIT.toString(16)};QStartNoAckMode+;vContSupported+;qXfer:features:read+;qXfer:memory-map:read+`;
      case 'QStartNoAckMode':
        this.acks = false;
        return 'OK';
      case 'qXfer':
        return this.transfer(text);
      case 'qfThreadInfo':
        return 'm1,2';
      case 'qsThreadInfo':
        return 'l';
      case 'qThreadExtraInfo': {
        const match = /^qThreadExtraInfo,0*([12])$/.exec(text);
        return match ? toHex(Buffer.from(this.target.state(Number(match[1]) - 1))) : 'E01';
      }
      case 'qC':
        return `QC${this.looked + 1}`;
      case 'qAttached':
        return '1';
      case 'qRcmd':
        return this.monitor(fromHex(text.slice('qRcmd,'.length)));
      default:
        return '';
    }
  }

  /** @param {string} text qXfer:OBJECT:read:ANNEX:OFFSET,LENGTH */
  transfer(text) {
    const match =
      /^qXfer:(features|memory-map):read:([^:]*):([0-9a-f]{1,8}),([0-9a-f]{1,8})$/i.exec(text);
    if (!match) return /^qXfer:(features|memory-map):/.test(text) ? 'E00' : '';
    const [, object, annex, offset, length] = match;
    if (object === 'features' && annex !== 'target.xml') return 'E00';
    const all = object === 'features' ? TARGET_XML : memoryMap(this.target.machine.rp.flash.length);
    const from = parseInt(offset, 16);
    const part = all.slice(from, from + Math.min(parseInt(length, 16), LIMIT - 1));
    return (from + part.length < all.length ? 'm' : 'l') + part;
  }

  /** @param {Uint8Array | null} bytes a command of gdb's `monitor` */
  monitor(bytes) {
    if (!bytes) return 'E01';
    const { machine } = this.target;
    switch (Buffer.from(bytes).toString().trim()) {
      case 'reset':
      case 'reset halt':
      case 'reset init':
        this.target.restart();
        return 'OK';
      case 'time':
        return toHex(Buffer.from(`cycle ${machine.cycle}, ${machine.micros.toFixed(3)} us\n`));
      default:
        return toHex(Buffer.from(MONITOR));
    }
  }
}

/**
 * Serves a machine to gdb on the loopback interface until a client kills it or `signal` is aborted.
 * @param {import('./machine.mjs').Machine} machine
 * @param {{ port: number, signal?: AbortSignal, onListening?: (port: number) => void }} options
 *   port: 0 for any free port
 * @returns {Promise<'killed' | 'aborted'>} rejects if the port is not available
 */
export function serve(machine, { port, signal, onListening }) {
  const target = new Target(machine);
  return new Promise((resolve, reject) => {
    /** @type {import('node:net').Socket | null} */
    let client = null;
    const server = createServer((socket) => {
      if (client) return void socket.destroy();
      client = socket;
      attend(socket, target, () => finish('killed')).then(() => (client = null));
    });
    const finish = (/** @type {'killed' | 'aborted'} */ how) => {
      client?.destroy();
      server.close(() => resolve(how));
    };
    server.on('error', reject);
    signal?.addEventListener('abort', () => finish('aborted'), { once: true });
    server.listen(port, '127.0.0.1', () =>
      onListening?.(/** @type {import('node:net').AddressInfo} */ (server.address()).port),
    );
  });
}

/**
 * Serves one client until it disconnects.
 * @param {import('node:net').Socket} socket
 * @param {Target} target
 * @param {() => void} killed
 * @returns {Promise<void>}
 */
function attend(socket, target, killed) {
  socket.setNoDelay(true);
  const reader = new PacketReader();
  let sent = '';
  const send = (/** @type {string} */ text) => {
    sent = packet(text);
    socket.write(sent, 'latin1');
  };
  const session = new Session(target, send);
  let turning = false;
  const turn = () => {
    turning = false;
    if (socket.destroyed) return;
    session.slice();
    if (session.running) go();
  };
  const go = () => {
    if (!turning) setImmediate(turn);
    turning = true;
  };
  /** Called when the current client has disconnected, so that the next client may connect. */
  let left = () => {};
  socket.on('data', (bytes) => {
    for (const event of reader.push(bytes)) {
      if (event.kind === 'interrupt') session.interrupt();
      else if (event.kind === 'nack') socket.write(sent, 'latin1');
      else if (event.kind === 'bad') socket.write('-');
      else if (event.kind === 'packet') {
        if (session.acks) socket.write('+');
        const reply = session.running ? null : session.receive(event.text);
        if (reply !== null) send(reply);
        if (session.killed) return killed();
        if (event.text[0] === 'D') {
          socket.end();
          return left();
        }
      }
    }
    if (session.running) go();
  });
  return new Promise((resolve) => {
    socket.on('error', () => {}); // a reset connection: 'close' follows
    left = () => {
      left = () => {}; // A late 'close' must not touch the state that the next client sets.
      target.clear();
      resolve();
    };
    socket.on('close', () => left());
  });
}
