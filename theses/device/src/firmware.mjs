// @ts-check
/** Builds a controller with the runtime's own Makefile, and returns the path of its ELF. */
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const mcu = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'mcu');
/** @type {Map<string, string>} */
const built = new Map();

/** @param {string} controller @param {{ pulses?: number, thesis?: boolean }} [options] */
export function firmware(controller, { pulses = 1600, thesis = false } = {}) {
  const name = `ball-${pulses}${thesis ? '-thesis' : ''}`;
  const path = join(mcu, '..', '.build', 'mcu', name, `${controller}.elf`);
  if (!built.has(path)) {
    const out = join('..', '.build', 'mcu', name);
    const extra = `-I../theses/device/firmware -DPULSES_PER_TURN=${pulses} -DTHESIS_CONSTANTS=${thesis ? 1 : 0}`;
    execFileSync(
      'make',
      [
        '-s',
        '-C',
        mcu,
        '-f',
        '../theses/device/firmware.mk',
        `OUT=${out}`,
        `EXTRA=${extra}`,
        join(out, `${controller}.elf`),
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    built.set(path, path);
  }
  return path;
}
