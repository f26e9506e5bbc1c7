// @ts-check
/**
 * Builds the firmware of the tests with the Arm cross compiler into .build/, once per content of
 * its sources.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, '..', '.build');
const FLAGS = [
  '-mcpu=cortex-m0plus',
  '-mthumb',
  '-O2',
  '-g',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-ffreestanding',
  '-nostdlib',
  '-fno-tree-loop-distribute-patterns',
];

/**
 * Compiles C source text or a file of tests/fw with start.c.
 * @param {{ file?: string, source?: string, memory?: 'ram' | 'flash' }} what
 * @returns {string} path of the ELF
 */
export function build({ file, source, memory = 'ram' }) {
  const parts = ['fw/start.c', 'fw/fw.h', `fw/${memory}.ld`].map((name) =>
    readFileSync(join(here, name), 'utf8'),
  );
  const text = source ?? readFileSync(join(here, 'fw', /** @type {string} */ (file)), 'utf8');
  const key = createHash('sha256')
    .update([...parts, text, memory, ...FLAGS].join('\0'))
    .digest('hex')
    .slice(0, 16);
  mkdirSync(out, { recursive: true });
  const elf = join(out, `${key}.elf`);
  if (existsSync(elf)) return elf;
  const temporary = join(out, `${key}.${process.pid}.elf`);
  const inputs = [join(here, 'fw/start.c'), '-x', 'c', '-'];
  execFileSync(
    'arm-none-eabi-gcc',
    [
      ...FLAGS,
      '-I',
      join(here, 'fw'),
      '-T',
      join(here, `fw/${memory}.ld`),
      '-Wl,--no-warn-rwx-segments',
      ...inputs,
      '-o',
      temporary,
      '-lgcc',
    ],
    {
      input: text,
      stdio: ['pipe', 'inherit', 'inherit'],
    },
  );
  renameSync(temporary, elf);
  return elf;
}

/** @param {Parameters<typeof build>[0]} what @returns {Uint8Array} */
export function image(what) {
  return new Uint8Array(readFileSync(build(what)));
}
