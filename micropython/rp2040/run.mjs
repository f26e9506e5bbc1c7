// node run.mjs FIRMWARE.elf PROGRAM.py…: runs a program on MicroPython's firmware for the RP2040,
// under emulator/, through the raw prompt on UART 0, as mpremote does. Before each further program
// it makes a soft reset, even while core 1 runs. Prints the output of the programs; the exit status
// is 1 if one raises, or if the board stops.
import { readFileSync } from 'node:fs';
import { Machine } from '../../emulator/src/index.mjs';

const [firmware, ...programs] = process.argv.slice(2);
if (!programs.length) {
  console.error('usage: node run.mjs FIRMWARE.elf PROGRAM.py…');
  process.exit(2);
}
const SECOND = 125e6;
const machine = new Machine({ uartDelay: true }).load(readFileSync(firmware));
let said = '';
machine.onUart((byte) => (said += String.fromCharCode(byte)));

// Runs until the board has written `text`. A prompt that waits for input sleeps forever.
function until(text, seconds) {
  const end = machine.cycle + seconds * SECOND;
  for (;;) {
    const stop = machine.run(Math.min(end, machine.cycle + SECOND / 100));
    const at = said.indexOf(text);
    if (at >= 0) {
      const before = said.slice(0, at);
      said = said.slice(at + text.length);
      return before;
    }
    if (stop.reason !== 'limit' || machine.cycle >= end) {
      console.error(said);
      console.error(
        machine.failure(stop) ??
          `the board did not say ${JSON.stringify(text)} within ${seconds} s of its time`,
      );
      process.exit(1);
    }
  }
}

// Sends one character at a time: the port's interrupt takes a character when the line has been
// quiet for 32 bits.
function send(text) {
  for (const character of text) {
    machine.feed(character);
    machine.runFor(SECOND / 2000);
  }
}

until('>>> ', 2);
send('\x01');
until('raw REPL; CTRL-B to exit\r\n>', 2);
for (const program of programs) {
  if (program !== programs[0]) {
    send('\x04');
    until('soft reboot\r\n', 2);
    until('raw REPL; CTRL-B to exit\r\n>', 2);
  }
  send(readFileSync(program, 'utf8') + '\x04');
  until('OK', 2);
  process.stdout.write(until('\x04', 600).replaceAll('\r\n', '\n'));
  const raised = until('\x04', 2);
  if (raised) {
    console.error(raised.replaceAll('\r\n', '\n'));
    process.exit(1);
  }
  until('>', 2);
}
