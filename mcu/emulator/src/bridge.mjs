// @ts-check
/**
 * UARTs on Unix sockets, and a run in the time of the wall, for a program on this machine at the
 * other end of the line.
 *
 * A socket stands for the cable: whoever is connected gets what the UART sends, and is heard.
 * Without anybody bytes are lost, as on a line that is plugged out; a second one who connects is
 * turned away.
 *
 * Invariants
 * - The machine's time is never ahead of the wall's by more than a slice. It may fall behind: then
 *   nothing is caught up with.
 * - Bytes reach the machine between two slices only, so a slice is a run as any other.
 */
import { createServer } from 'node:net';
import { rmSync } from 'node:fs';

/** A UART of the machine at a socket. */
export class Cable {
  /** @param {import('./machine.mjs').Machine} machine @param {number} uart @param {string} path */
  constructor(machine, uart, path) {
    /** @type {import('node:net').Socket | null} */
    this.peer = null;
    /** What the UART has sent since the last flush. @type {number[]} */
    this.said = [];
    /** What has come since the last slice. @type {Buffer[]} */
    this.heard = [];
    this.path = path;
    this.feed = (/** @type {Buffer} */ bytes) => machine.feed(bytes, uart);
    /** Called when something has come. */
    this.onNews = () => {};
    machine.onUart((byte) => void this.said.push(byte), uart);
    this.server = createServer((peer) => this.plug(peer));
  }

  /**
   * Resolves once a program can connect; rejects if there can be no such socket.
   * @returns {Promise<void>}
   */
  open() {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(this.path, () => {
        this.server.removeListener('error', reject);
        resolve();
      });
    });
  }

  /** @param {import('node:net').Socket} peer */
  plug(peer) {
    if (this.peer) {
      peer.destroy();
      return;
    }
    this.peer = peer;
    peer.on('data', (bytes) => {
      this.heard.push(bytes);
      this.onNews();
    });
    peer.on('error', () => {});
    peer.on('close', () => {
      this.peer = null;
    });
  }

  /** Between two slices: what was said goes out, what was heard goes in. */
  exchange() {
    if (this.said.length) {
      const bytes = Buffer.from(this.said);
      this.said = [];
      if (this.peer && !this.peer.destroyed) this.peer.write(bytes);
    }
    for (const bytes of this.heard.splice(0)) this.feed(bytes);
  }

  close() {
    this.peer?.destroy();
    this.server.close();
    rmSync(this.path, { force: true });
  }
}

/** Microseconds of a slice: so long may a byte wait before the machine sees it. */
const SLICE = 1000;

/** Runs a machine no faster than the wall's clock, with cables. */
export class Pace {
  /** @param {import('./machine.mjs').Machine} machine @param {Cable[]} cables */
  constructor(machine, cables) {
    this.machine = machine;
    this.cables = cables;
    this.wall = performance.now();
    this.micros = machine.micros;
    this.news = () => {};
    for (const cable of cables) cable.onNews = () => this.news();
  }

  /**
   * One slice, after the wall's clock has come to it.
   * @param {number} limit cycle
   * @returns {Promise<import('./machine.mjs').Stop>}
   */
  async slice(limit) {
    const { machine } = this;
    const ahead = (machine.micros - this.micros) / 1000 - (performance.now() - this.wall);
    if (ahead < -20) {
      this.wall = performance.now();
      this.micros = machine.micros;
    }
    if (ahead > 1) await this.sleep(ahead);
    else await new Promise((resolve) => setImmediate(resolve));
    for (const cable of this.cables) cable.exchange();
    const end = machine.clock.cycleOf(machine.clock.nanos + SLICE * 1000);
    const cancel = machine.at(end, () => {}); // two cores asleep for good may be woken by what is typed
    const stop = machine.run(Math.min(end, limit));
    cancel();
    for (const cable of this.cables) cable.exchange();
    return stop;
  }

  /**
   * Until then, or until something has come: that is not kept waiting.
   * @param {number} ms
   * @returns {Promise<void>}
   */
  sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.news = () => {
        clearTimeout(timer);
        setImmediate(resolve);
      };
    });
  }
}
