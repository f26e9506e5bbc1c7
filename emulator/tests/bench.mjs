// @ts-check
/** Shared by the tests: a machine around a few lines of C or assembler. */
import { Machine } from '../src/index.mjs';
import { image } from './build.mjs';

/**
 * Loads C source with fw.h included; functions and globals are found by name.
 * @param {string} source
 * @param {import('../src/machine.mjs').MachineOptions & { memory?: 'ram' | 'flash' }} [options]
 */
export function boot(source, options = {}) {
  const machine = new Machine(options);
  machine.load(image({ source: `#include "fw.h"\n${source}`, memory: options.memory }));
  return machine;
}

/**
 * Returns a naked function of these assembler lines.
 * @param {string} name
 * @param {string} lines
 * @returns {string} C text
 */
export function assembler(name, lines) {
  const text = lines
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .map((line) => `"${line}\\n"`)
    .join(' ');
  return `__asm(".syntax unified\\n.thumb\\n.text\\n.balign 4\\n.global ${name}\\n.type ${name},%function\\n.thumb_func\\n${name}:\\n" ${text} ".balign 4\\n.ltorg\\n.size ${name},.-${name}\\n");\nvoid ${name}(void);\n`;
}

/**
 * Runs to the firmware's bkpt and returns its code.
 * @param {Machine} machine
 * @param {number} [limit]
 */
export function finish(machine, limit = 50e6) {
  const stop = machine.run(limit);
  if (stop.reason !== 'break')
    throw new Error(
      `expected a bkpt, got ${JSON.stringify(stop)}; ${machine.warnings.map((w) => w.why).join('; ')}`,
    );
  return stop.code;
}

/**
 * Returns the cycles between two places, both on core 0.
 * @param {Machine} machine
 * @param {import('../src/machine.mjs').Place} from
 * @param {import('../src/machine.mjs').Place} to
 */
export function between(machine, from, to) {
  reach(machine, from);
  const began = machine.cores[0].t;
  reach(machine, to);
  return machine.cores[0].t - began;
}

/**
 * @param {Machine} machine
 * @param {import('../src/machine.mjs').Place} place
 * @param {number} [core]
 */
export function reach(machine, place, core) {
  const stop = machine.runTo(place, machine.cycle + 10e6, core);
  if (stop.reason !== 'stopped')
    throw new Error(
      `'${place}' not reached: ${JSON.stringify(stop)}; ${machine.warnings.map((w) => w.why).join('; ')}`,
    );
}
