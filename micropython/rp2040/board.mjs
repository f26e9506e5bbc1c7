// node board.mjs FIRMWARE.elf DISK.img|- SOCKET [PROMPT]: runs MicroPython's firmware for the
// RP2040 under emulator/ in real time. UART 1 is the Unix socket SOCKET. The file system in flash
// is DISK.img, or empty for "-". UART 0, the board's prompt, is the Unix socket PROMPT, and the
// program ends with its standard input; without PROMPT it prints the output of UART 0 until killed.
import { readFileSync, writeSync } from 'node:fs';
import { Cable, Machine, Pace } from '../../emulator/src/index.mjs';

const [firmware, disk, path, prompt] = process.argv.slice(2);
if (!path) {
  console.error('usage: node board.mjs FIRMWARE.elf DISK.img|- SOCKET [PROMPT]');
  process.exit(2);
}
const DISK = 0x10100000; // the second half of a Pico's flash: MICROPY_HW_FLASH_STORAGE_BYTES
const QUIET = 400; // microseconds between two characters sent to the prompt: the port's
// interrupt takes a character when the line has been quiet for 32 bits, 280 microseconds
const machine = new Machine({ uartDelay: true }).load(readFileSync(firmware));
if (disk !== '-') machine.write(DISK, readFileSync(disk));
const cable = new Cable(machine, 1, path);
const cables = [cable];
if (prompt) {
  const slow = new Cable(machine, 0, prompt);
  const waiting = [];
  const next = () => {
    machine.feed(Uint8Array.of(waiting.shift()));
    if (waiting.length) machine.after(QUIET, next);
  };
  slow.feed = (bytes) => {
    const idle = waiting.length === 0;
    waiting.push(...bytes);
    if (idle) machine.after(QUIET, next);
  };
  cables.push(slow);
  process.stdin.on('end', () => process.exit(0)).resume();
} else {
  machine.onUart((byte) => writeSync(1, Uint8Array.of(byte)));
}
for (const each of cables) await each.open();
const pace = new Pace(machine, cables);
for (;;) {
  const stop = await pace.slice(Infinity);
  const why = machine.failure(stop) ?? (stop.reason === 'limit' ? null : stop.reason);
  if (why) {
    console.error(`board: ${why}`);
    process.exit(1);
  }
}
