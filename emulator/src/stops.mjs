// @ts-check
/**
 * Explains a `bkpt` at which the firmware stops: by a sentence, and by the address of the place in
 * the program that has caused the stop.
 *
 * Invariants
 * - A number of Weft's runtime (codes.mjs) is explained only if one of the runtime's own functions
 *   has stopped. A program may use the same numbers for itself. In an image without symbols the two
 *   cannot be distinguished, and each such stop counts as the runtime's.
 * - The functions of this file read the machine and do not change it.
 */
import { CODES, NO_HANDLER, PANIC } from './codes.mjs';
import { HARDFAULT } from './core.mjs';

/**
 * @typedef {import('./machine.mjs').Machine} Machine
 * @typedef {import('./core.mjs').Core} Core
 */

/** The functions of Weft's ports that stop with these numbers. @type {Record<number, string>} */
const STOPPERS = { [PANIC]: 'weft_panic', [NO_HANDLER]: 'weft_isr_default' };

/** The longest text of a panic that is shown. */
const LONGEST = 400;

/**
 * Returns whether a core is in the function of this name.
 * @param {Machine} machine @param {Core} core @param {string} name
 */
export function stoodIn(machine, core, name) {
  const symbol = machine.image?.symbols.find((s) => s.name === name);
  return (
    symbol !== undefined &&
    core.pc >= symbol.address &&
    core.pc < symbol.address + Math.max(symbol.size, 4)
  );
}

/** @param {Machine} machine @param {Core} core @param {number} code */
function isWefts(machine, core, code) {
  const name = STOPPERS[code];
  return name !== undefined && (!machine.image?.symbols.length || stoodIn(machine, core, name));
}

/**
 * Returns the text at an address, or null if no text of at most LONGEST characters is there.
 * @param {Machine} machine @param {number} address
 */
function textAt(machine, address) {
  let text = '';
  try {
    for (let i = 0; i <= LONGEST; i++) {
      const byte = machine.read(address + i, 1)[0];
      if (byte === 0) return text || null;
      if (byte < 0x20 || byte > 0x7e) return null;
      text += String.fromCharCode(byte);
    }
  } catch {
    // There is no memory at this address.
  }
  return null;
}

/** @param {Machine} machine @param {Core} core @param {number} code @returns {string} */
function sentenceOf(machine, core, code) {
  if (code === PANIC) {
    const text = textAt(machine, core.r[0] >>> 0);
    if (text !== null) return text;
  } else if (core.ipsr === HARDFAULT)
    return `HardFault, for which the program has no handler: ${machine.faults[core.id] || 'it was pended'}`;
  else if (core.ipsr !== 0) {
    const what = core.ipsr < 16 ? `exception ${core.ipsr}` : `interrupt ${core.ipsr - 16}`;
    return `${what} came, for which the program has no handler`;
  }
  return CODES.find((c) => c.kind === 'bkpt' && c.code === code)?.sentence ?? '';
}

/**
 * Returns the most useful address for a stop. For weft_panic this is the return address in its
 * caller, from lr. For a handler that the program does not define, it is the address of the
 * instruction that the exception interrupted.
 * @param {Machine} machine @param {Core} core @param {number} code
 */
function placeOf(machine, core, code) {
  if (code === PANIC) return core.r[14] >>> 0;
  if (core.ipsr === 0) return core.pc;
  try {
    // The handler has pushed nothing: the frame that the exception pushed is on top (ARMv6-M
    // B1.5.6). Bit 2 of the value in lr (EXC_RETURN) says which stack.
    const frame = core.r[14] & 4 ? core.psp : core.r[13];
    return machine.read32((frame >>> 0) + 24);
  } catch {
    return core.pc;
  }
}

/**
 * Returns the sentence and the address for a `bkpt` of Weft's runtime; null for a `bkpt` of the
 * program itself.
 * @param {Machine} machine @param {Core} core @param {number} code
 */
export function explainStop(machine, core, code) {
  return isWefts(machine, core, code)
    ? { sentence: sentenceOf(machine, core, code), at: placeOf(machine, core, code) }
    : null;
}
