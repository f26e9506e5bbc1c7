// @ts-check
/**
 * Connects UARTs to Unix sockets and runs the machine in real time, for a program on this computer
 * at the other end of the serial line.
 *
 * A socket represents the cable: the connected program receives the bytes that the UART sends, and
 * the bytes of the program go to the UART. While no program is connected, bytes are lost, as on an
 * unplugged cable. A second program that tries to connect is refused.
 *
 * Invariants
 * - The machine's time is never ahead of real time by more than a slice. It may fall behind; it
 *   does not catch up afterwards.
 * - Bytes reach the machine only between two slices, so a slice is a run like any other.
 */
import { createServer } from 'node:net';
import { rmSync } from 'node:fs';

/** A UART of the machine, connected to a socket. */
export class Cable {
  /** @param {import('./machine.mjs').Machine} machine @param {number} uart @param {string} path */
  constructor(machine, uart, path) {
    /** @type {import('node:net').Socket | null} */
    this.peer = null;
    /** The bytes that the UART has sent since the last exchange. @type {number[]} */
    this.said = [];
    /** The bytes that have arrived since the last slice. @type {Buffer[]} */
    this.heard = [];
    this.path = path;
    this.feed = (/** @type {Buffer} */ bytes) => machine.feed(bytes, uart);
    /** Called when bytes have arrived. */
    this.onNews = () => {};
    machine.onUart((byte) => void this.said.push(byte), uart);
    this.server = createServer((peer) => this.plug(peer));
  }

  /**
   * Resolves once a program can connect; rejects if the socket cannot be created. @returns
   * {Promise<void>}
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

  /** Between two slices: sends the UART's bytes out and feeds the received bytes in. */
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

/** The length of a slice in microseconds: the longest time for which a received byte may wait. */
const SLICE = 1000;

/** Runs a machine no faster than real time, with cables. */
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
   * Runs one slice as soon as real time has reached its start. @param {number} limit cycle
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
    // A byte that arrives may wake two cores that would otherwise sleep forever.
    const cancel = machine.at(end + 1, () => {});
    const stop = machine.run(Math.min(end, limit));
    cancel();
    for (const cable of this.cables) cable.exchange();
    return stop;
  }

  /**
   * Waits for the given time, or until bytes arrive.
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
