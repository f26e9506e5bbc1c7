// @ts-check
/**
 * Models of parts for test benches: the parts that a board has at the other end of its I²C and SPI
 * lines. Each model behaves as the data sheets of such parts say. The sensor and the flash can be
 * slow. The sensor can also be absent, and can refuse bytes.
 */

/**
 * A temperature sensor on I²C with the registers of an LM75: a pointer register, then register 0
 * (temperature, 16 bits, in 1/256 °C), 1 (configuration, 8 bits), 2 and 3 (hysteresis and limit, 16
 * bits). A write sets the pointer, then the register; a read returns the register repeatedly.
 */
export class TemperatureSensor {
  /** @param {number} celsius */
  constructor(celsius = 21.5) {
    this.registers = [0, 0, 75 << 8, 80 << 8];
    this.celsius = celsius;
    this.pointer = 0;
    /** How many bytes of the present transfer have been moved. */
    this.count = 0;
    /** Faults: the part is absent; it refuses each data byte; how long it holds the clock before
    each
     * byte. */
    this.absent = false;
    this.refuses = false;
    this.stretchMicros = 0;
    /** The number of times that the part was addressed. */
    this.transfers = 0;
  }

  get celsius() {
    return ((this.registers[0] << 16) >> 16) / 256;
  }

  set celsius(value) {
    this.registers[0] = Math.round(value * 256) & 0xffff;
  }

  /** @param {boolean} _read */
  address(_read) {
    if (this.absent) return false;
    this.count = 0;
    this.transfers++;
    return true;
  }

  /** @param {number} byte */
  write(byte) {
    if (this.refuses) return false;
    if (this.count === 0) {
      if (byte > 3) return false;
      this.pointer = byte;
    } else if (this.pointer === 1) this.registers[1] = byte;
    else if (this.pointer > 1) {
      const shift = this.count % 2 ? 8 : 0;
      this.registers[this.pointer] =
        (this.registers[this.pointer] & ~(0xff << shift)) | (byte << shift);
    }
    this.count++;
    return true;
  }

  read() {
    const value = this.registers[this.pointer];
    if (this.pointer === 1) return value;
    return this.count++ % 2 ? value & 0xff : value >> 8;
  }

  stretch() {
    return this.stretchMicros;
  }
}

const PAGE = 256;
const SECTOR = 4096;

/**
 * A NOR flash on SPI with the common commands: 9F JEDEC id, 06 and 04 write enable and disable, 05
 * status, 03 read, 02 program a page (ones become zeros, addresses wrap in the page), 20 erase a
 * sector. While the flash is busy it answers only command 05, as the chips do.
 */
export class SpiFlash {
  /** @param {import('./machine.mjs').Machine} machine @param {number} [size] bytes */
  constructor(machine, size = 65536) {
    this.machine = machine;
    this.memory = new Uint8Array(size).fill(0xff);
    this.id = [0xef, 0x40, 0x10];
    this.modes = [0, 3];
    this.hz = 50e6;
    this.programMicros = 700;
    this.eraseMicros = 45000;
    this.writable = false;
    /** The microsecond until which the chip is busy. */
    this.busyUntil = 0;
    /** Commands that arrived while the chip was busy, or not enabled to write. */
    this.ignored = 0;
    /** @type {number[]} */
    this.sent = [];
  }

  get busy() {
    return this.machine.micros < this.busyUntil;
  }

  select() {
    this.sent = [];
  }

  /** @param {number} out */
  transfer(out) {
    this.sent.push(out);
    const [command] = this.sent;
    const n = this.sent.length - 1; // bytes after the command
    if (command === 0x05) return n ? (this.busy ? 1 : 0) | (this.writable ? 2 : 0) : 0xff;
    if (this.busy) return 0xff;
    if (command === 0x9f && n) return this.id[(n - 1) % 3];
    if (command === 0x03 && n > 3) return this.memory[(this.where() + n - 4) % this.memory.length];
    return 0xff;
  }

  where() {
    return ((this.sent[1] << 16) | (this.sent[2] << 8) | this.sent[3]) % this.memory.length;
  }

  /** Ends a command. A command that changes something takes effect only now. */
  deselect() {
    const [command] = this.sent;
    const long = this.sent.length;
    if (command === undefined || [0x05, 0x03, 0x9f].includes(command)) {
      if (this.busy && command !== undefined && command !== 0x05) this.ignored++;
      return;
    }
    if (this.busy) this.ignored++;
    else if (command === 0x06) this.writable = true;
    else if (command === 0x04) this.writable = false;
    else if (!this.writable) this.ignored++;
    else if (command === 0x02 && long > 4) this.program();
    else if (command === 0x20 && long === 4) {
      const sector = this.where() & ~(SECTOR - 1);
      this.memory.fill(0xff, sector, sector + SECTOR);
      this.begin(this.eraseMicros);
    } else this.ignored++;
  }

  program() {
    const where = this.where();
    const page = where & ~(PAGE - 1);
    this.sent.slice(4).forEach((byte, i) => {
      this.memory[page + ((where + i) % PAGE)] &= byte;
    });
    this.begin(this.programMicros);
  }

  /** @param {number} micros */
  begin(micros) {
    this.writable = false;
    this.busyUntil = this.machine.micros + micros;
  }
}

/**
 * A character display of 2 lines of 16 characters on SPI, like the ST7036. While its data pin is
 * high, a byte is a character. While the pin is low, a byte is a command: 01 clears the display, 80
 * + place (hexadecimal) moves to a place, and line 2 begins at place 40. The model ignores other
 * commands.
 */
export class TextDisplay {
  /** @param {import('./machine.mjs').Machine} machine @param {number} dataPin */
  constructor(machine, dataPin) {
    this.machine = machine;
    this.dataPin = dataPin;
    this.modes = [0, 3];
    this.hz = 1e6;
    /** @type {string[]} */
    this.cells = [];
    this.place = 0;
    this.clear();
  }

  clear() {
    this.cells = new Array(0x50).fill(' ');
    this.place = 0;
  }

  /** @param {number} out */
  transfer(out) {
    if (this.machine.level(this.dataPin)) {
      this.cells[this.place] = String.fromCharCode(out);
      this.place = (this.place + 1) % this.cells.length;
    } else if (out === 1) this.clear();
    else if (out & 0x80) this.place = (out & 0x7f) % this.cells.length;
    return 0xff;
  }

  /** The two lines. @returns {string[]} */
  get lines() {
    return [0, 0x40].map((at) => this.cells.slice(at, at + 16).join(''));
  }
}
