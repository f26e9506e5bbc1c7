/**
 * Shared by the firmware tests: loading images into the emulator, one line per check, and the
 * closing line.
 *
 * X.mjs [--emulator DIR] IMAGES, where IMAGES is the folder of the built firmware
 * (tests/firmware/build).
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const args = process.argv.slice(2);
const at = args.indexOf('--emulator');
const emulator =
  at >= 0 ? args.splice(at, 2)[1] : resolve(import.meta.dirname, '../../../emulator');
const images = resolve(args[0]);
const { Machine } = await import(pathToFileURL(resolve(emulator, 'src/index.mjs')).href);
/** The number of cycles in a microsecond. */
export const US = 125;
const figures = {};
let passed = 0,
  failed = 0;

export const image = (name) => `${images}/${name}.elf`;
export function load(name, options) {
  return new Machine(options).load(readFileSync(image(name)));
}
export function check(rule, value, limit, ok = value <= limit) {
  figures[rule] = value;
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${rule}: ${value} (${limit})`);
}
export function text(m) {
  let s = '';
  m.onUart((byte) => {
    s += String.fromCharCode(byte);
  });
  return () => s;
}
/** Returns the edges of a pin as {level, cycle}. */
export function edges(m, pin) {
  const list = [];
  m.watch(pin, (_, level, cycle) => list.push({ level, cycle }));
  return list;
}
export function finish() {
  console.log(JSON.stringify(figures));
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}
