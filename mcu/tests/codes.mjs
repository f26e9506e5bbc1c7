/**
 * Tests that the codes that `weft-rp2040 explain` knows (emulator/src/codes.mjs) are those of the
 * headers, the runtime and the ports (M15). Each status has the name and number that a header gives
 * it, each breakpoint of a port has an entry, and each text of a mistake stands with its code
 * (emulator/src/mistakes.json).
 *
 * `codes.mjs [--emulator DIR]` compares the two; its last line is `N passed, N failed`. `codes.mjs
 * --write` writes mistakes.json.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const mcu = resolve(import.meta.dirname, '..');
const at = process.argv.indexOf('--emulator');
const emulator = at >= 0 ? process.argv[at + 1] : resolve(mcu, '../emulator');
const { CODES } = await import(pathToFileURL(resolve(emulator, 'src/codes.mjs')).href);

const written = resolve(emulator, 'src/mistakes.json');

const sources = ['include', 'src', 'ports', 'csp/include'].flatMap((folder) =>
  readdirSync(resolve(mcu, folder), { recursive: true })
    .filter((name) => /\.(h|hpp|c|S)$/.test(name))
    .map((name) => readFileSync(resolve(mcu, folder, name), 'utf8')),
);
/** Returns the matches of a pattern in all sources. */
const all = (pattern) => sources.flatMap((text) => [...text.matchAll(pattern)]);

let failed = 0,
  passed = 0;
/** Compares two lists as sets, and prints what only one of them has. */
function same(what, here, there) {
  const [a, b] = [new Set(here), new Set(there)];
  const missing = [...b].filter((x) => !a.has(x)),
    gone = [...a].filter((x) => !b.has(x));
  const ok = b.size > 0 && missing.length + gone.length === 0;
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}: ${b.size}`);
  for (const x of missing) console.log(`  the emulator lacks ${x}`);
  for (const x of gone) console.log(`  the emulator has ${x}, which is not in the sources`);
}

const statuses = CODES.filter((c) => c.kind === 'status' && c.name.startsWith('WEFT_'));
same(
  'every status has its name and number (M15)',
  statuses.map((c) => `${c.name} ${c.code}`),
  all(/^(?:enum \{)?\s*(WEFT_(?:OK|LATE|IGNORED|FULL|E_\w+)) = (-?\d+)\b/gm).map(
    (m) => `${m[1]} ${m[2]}`,
  ),
);
same(
  'no two statuses have one number (M15)',
  statuses.filter((c) => statuses.find((d) => d.code === c.code) === c).map((c) => c.name),
  statuses.map((c) => c.name),
);
same(
  'every breakpoint of a port has its sentence (M15)',
  CODES.filter((c) => c.kind === 'bkpt').map((c) => c.code),
  all(/\bbkpt +(0x[0-9a-f]+|\d+)\b/g).map((m) => Number(m[1])),
);
// A text may consist of several literals. Mistakes with the code 0, which have no code in a release
// build, and those with a BusStatus or StoreStatus, the answer of a driver, are left out. The
// variable `code` in weft_at has WEFT_E_HORIZON; 1 is the code of LTA's functions.
const text = (literals) => [...literals.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map((m) => m[1]).join('');
const NAMES = { code: 'WEFT_E_HORIZON', 1: 'schedule_event' };
const MISTAKE = /WEFT_(MISTAKE|RX_FULL)\(\s*(?:([\w:]+),\s*)?((?:"(?:[^"\\]|\\.)*"\s*)+)\)/g;
const mistakes = {};
for (const [, macro, first, literals] of all(MISTAKE)) {
  if (first === '0' || /^(Bus|Store)Status/.test(first)) continue;
  const name = macro === 'RX_FULL' ? 'WEFT_E_FULL' : (NAMES[first] ?? first);
  const texts = (mistakes[name] ??= []);
  if (!texts.includes(text(literals))) texts.push(text(literals));
}
for (const texts of Object.values(mistakes)) texts.sort();
if (process.argv.includes('--write'))
  writeFileSync(written, JSON.stringify(mistakes, Object.keys(mistakes).sort(), 2) + '\n');
const flat = (table) =>
  Object.entries(table).flatMap(([name, texts]) => texts.map((t) => `${name}: ${t}`));
same(
  'every text of a mistake stands with its code; else codes.mjs --write (M15)',
  flat(JSON.parse(readFileSync(written, 'utf8'))),
  flat(mistakes),
);
same(
  'every code of a mistake has a sentence (M15)',
  CODES.map((c) => c.name).filter((name) => name in mistakes),
  Object.keys(mistakes),
);
// Without this comparison a call that the pattern MISTAKE does not match would be left out
// silently.
const calls = all(/WEFT_(?:MISTAKE|RX_FULL)\(/g).length;
const defined = all(
  /#define WEFT_(?:MISTAKE|RX_FULL)\(|: WEFT_MISTAKE\(WEFT_E_FULL, text\)/g,
).length;
same('every call was understood (M15)', [all(MISTAKE).length], [calls - defined]);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
