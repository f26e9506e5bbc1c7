// node board.mjs FIRMWARE.elf DISK.img SOCKET: MicroPython's firmware for the RP2040 under
// emulator/, in real time, with a file system in its flash and UART 1 on a Unix socket. Prints the
// output of UART 0, the board's prompt; runs until it is killed.
import { readFileSync, writeSync } from 'node:fs';
import { Cable, Machine, Pace } from '../../emulator/src/index.mjs';

const [firmware, disk, path] = process.argv.slice(2);
if (!path) {
  console.error('usage: node board.mjs FIRMWARE.elf DISK.img SOCKET');
  process.exit(2);
}
const DISK = 0x10100000; // the second half of a Pico's flash: MICROPY_HW_FLASH_STORAGE_BYTES
const machine = new Machine({ uartDelay: true }).load(readFileSync(firmware));
machine.write(DISK, readFileSync(disk));
machine.onUart((byte) => writeSync(1, Uint8Array.of(byte)));
const cable = new Cable(machine, 1, path);
await cable.open();
const pace = new Pace(machine, [cable]);
for (;;) {
  const stop = await pace.slice(Infinity);
  const why = machine.failure(stop) ?? (stop.reason === 'limit' ? null : stop.reason);
  if (why) {
    console.error(`board: ${why}`);
    process.exit(1);
  }
}
