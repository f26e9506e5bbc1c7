// @ts-check
/**
 * The command `weft-rp2040 explain`: what a code of a release build means (codes.mjs), and in which
 * function and line of the source an address is.
 *
 * Invariants
 * - The function comes from the symbols of the ELF. The lines come from arm-none-eabi-addr2line;
 *   if it is not installed, or the ELF was built without -g, the output says so.
 * - An odd address is a return address, as in lr. The place shown is the call before this
 *   address; the call may be the last instruction of its function.
 */
import { spawnSync } from 'node:child_process';
import { normalize } from 'node:path';
import { parseArgs } from 'node:util';
import { lookUp, mistakesOf } from './codes.mjs';
import { ImageError, elfSymbols, functionAt, hex } from './image.mjs';

const ADDR2LINE = 'arm-none-eabi-addr2line';

/**
 * @typedef {{ function: string, file: string | null, line: number | null }} Frame
 * @typedef {{ address: number, frames: Frame[], note: string | null }} Where
 *   frames: innermost first, each inlined into the next; note: why there are no lines
 */

/**
 * @param {string[]} args
 * @returns {{ code: string, elf: string | undefined, at: string | undefined, json: boolean,
 *   help: boolean, extra: string[] }} the arguments of the command, of which the first may be a
 *   negative number
 */
export function explainArguments(args) {
  // parseArgs would treat -1 as an option.
  const guarded = args.map((arg) => (/^-\d/.test(arg) ? `\0${arg}` : arg));
  const { values, positionals } = parseArgs({
    args: guarded,
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      json: { type: 'boolean' },
      at: { type: 'string' },
    },
  });
  const words = positionals.map((word) => word.replace('\0', ''));
  if (/^bkpt$/i.test(words[0] ?? '') && words.length > 1)
    words.splice(0, 2, `${words[0]} ${words[1]}`);
  const [code = '', elf, ...extra] = words;
  return {
    code,
    elf,
    at: values.at?.replace('\0', ''),
    json: values.json === true,
    help: values.help === true,
    extra,
  };
}

/**
 * Returns the function and the line at an address.
 * @param {Uint8Array} data the ELF
 * @param {string} path the path of the ELF, for addr2line
 * @param {number} address
 * @returns {Where}
 */
export function whereIs(data, path, address) {
  const symbols = elfSymbols(data);
  const place = address & 1 ? address - 2 : address;
  const symbol = functionAt(symbols, place);
  if (!symbol)
    throw new ImageError(
      `${hex(address)} is in no function of this ELF: is it the firmware's own, and the address one of code?`,
    );
  /** @type {Frame[]} */
  const bare = [{ function: symbol.name, file: null, line: null }];
  const ran = spawnSync(ADDR2LINE, ['-f', '-i', '-C', '-e', path, hex(place)], {
    encoding: 'utf8',
  });
  if (ran.error || ran.status !== 0)
    return { address, frames: bare, note: `no line: ${ADDR2LINE} is not installed` };
  const lines = ran.stdout.trimEnd().split(/\r?\n/);
  /** @type {Frame[]} */
  const frames = [];
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const [, file, line] = /^(.*):(\d+)/.exec(lines[i + 1]) ?? [];
    if (file === undefined || file === '??' || line === '0') break;
    const name = lines[i] === '??' ? symbol.name : lines[i];
    frames.push({ function: name, file: normalize(file), line: Number(line) });
  }
  return frames.length
    ? { address, frames, note: null }
    : { address, frames: bare, note: 'no line: this part of the ELF was built without -g' };
}

/** @param {Where} where */
function tellPlace({ address, frames, note }) {
  const lines = frames.map(
    (f, i) =>
      `  ${i ? '  called from' : `at ${hex(address)}:`} ${f.function}${f.file === null ? '' : `, ${f.file}:${f.line}`}${i + 1 < frames.length ? ' (inlined)' : ''}\n`,
  );
  return lines.join('') + (note === null ? '' : `    (${note})\n`);
}

/**
 * Returns what the command prints for a code that has a meaning.
 * @param {string} code @param {Where | null} where @param {boolean} json
 * @returns {string}
 */
export function explain(code, where, json) {
  const found = lookUp(code).map((c) => ({ ...c, mistakes: mistakesOf(c) }));
  if (json) return JSON.stringify({ codes: found, ...(where && { at: where }) }) + '\n';
  const told = found.map((c) => {
    const title = c.kind === 'bkpt' ? c.name : `${c.name} (${c.code})`;
    const texts = c.mistakes.map((text) => `    - ${text}\n`).join('');
    return (
      `${title}: ${c.sentence}\n  What to do: ${c.remedy}\n` +
      (texts && `  A debug build (-DWEFT_DEBUG=1) says which of these it is:\n${texts}`)
    );
  });
  return told.join('') + (where ? tellPlace(where) : '');
}
