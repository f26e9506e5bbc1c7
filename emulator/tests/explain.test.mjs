// @ts-check
/**
 * Tests `weft-rp2040 explain`, and what a run says about a stop at a code of Weft's (M15).
 * mcu/tests/codes.mjs tests that the codes are those of the headers.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CODES, lookUp } from '../src/codes.mjs';
import { explain, explainArguments, whereIs } from '../src/explain.mjs';
import { ImageError, functionAt, hex, parseImage } from '../src/image.mjs';
import { Machine } from '../src/index.mjs';
import { build } from './build.mjs';

const command = join(dirname(fileURLToPath(import.meta.url)), '../bin/weft-rp2040');
const directory = mkdtempSync(join(tmpdir(), 'weft-rp2040-'));
after(() => rmSync(directory, { recursive: true }));

/** @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
function weft(args, env = process.env) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    encoding: 'utf8',
    env,
  });
  return { status, stdout, stderr };
}

/** A firmware with a weft_panic that stops like that of mcu/ports/cortex_m/panic.h. */
const PANIC = `#include "fw.h"
__attribute__((noinline, noreturn)) void weft_panic(const char *what) {
  register const char *text __asm("r0") = what;
  for (;;) __asm volatile("bkpt 77" ::"r"(text));
}
`;
/** A firmware with the handler of mcu/ports/rp2040/vectors.S. */
const HANDLER = `#include "fw.h"
__attribute__((naked)) void weft_isr_default(void) { __asm volatile("bkpt 78"); }
void hardfault(void) __attribute__((alias("weft_isr_default")));
void timer0(void) __attribute__((alias("weft_isr_default")));
`;
const panics = build({
  source: `${PANIC}
static inline __attribute__((always_inline)) void post(void) { weft_panic("weft: posted twice"); }
__attribute__((noinline)) void application(void) { post(); }
int main(void) { application(); return 0; }`,
});

/** Runs a firmware to its stop. @param {string} elf @param {Partial<import('../src/image.mjs').Image>} [change] */
function stopOf(elf, change = {}) {
  const m = new Machine().load({ ...parseImage(new Uint8Array(readFileSync(elf))), ...change });
  return m.run(100_000);
}

test('a code is found by its number, its 32 bits, its name, and as a breakpoint', () => {
  const names = (/** @type {string} */ text) => lookUp(text).map((c) => c.name);
  for (const text of ['-1', '0xffffffff', '4294967295', 'WEFT_E_QUEUED', 'weft_e_queued'])
    assert.deepEqual(names(text), ['WEFT_E_QUEUED'], text);
  for (const text of ['77', 'bkpt 77', 'bkpt77', 'BKPT #0x4d', 'bkpt:77'])
    assert.deepEqual(names(text), ['bkpt 77'], text);
  assert.deepEqual(names('0'), ['WEFT_OK', 'bkpt 0']);
  assert.deepEqual(names('bkpt 0'), ['bkpt 0']);
  assert.deepEqual(names('1'), ['WEFT_LATE', 'schedule_event']);
  for (const text of ['99', 'bkpt 3', 'bkpt -1', '-77', '1.5', '', ' ', 'WEFT', '0x', '1e0'])
    assert.deepEqual(names(text), [], text);
});

test('every code is found, and its sentences end with a full stop', () => {
  for (const code of CODES) {
    assert.match(code.sentence, /^\w.*\.$/);
    assert.match(code.remedy, /^[A-Z].*\.$/);
    assert.ok(lookUp(code.name).includes(code) && lookUp(String(code.code)).includes(code));
    const printed = explain(code.name, null, false);
    assert.ok(printed.includes(code.sentence) && printed.includes(code.remedy));
  }
});

test('the arguments may be a negative number or two words', () => {
  const plain = { at: undefined, json: false, help: false, extra: [] };
  assert.deepEqual(explainArguments(['-1', 'x.elf', '--json']), {
    ...plain,
    code: '-1',
    elf: 'x.elf',
    json: true,
  });
  assert.deepEqual(explainArguments(['bkpt', '77', 'x.elf', '--at', '0x10']), {
    ...plain,
    code: 'bkpt 77',
    elf: 'x.elf',
    at: '0x10',
  });
  assert.deepEqual(explainArguments([]), { ...plain, code: '', elf: undefined });
});

test('the sentence, what to do, and what a debug build would say', () => {
  const r = weft(['explain', '-1']);
  assert.equal(r.status, 0);
  assert.equal(r.stderr, '');
  assert.match(
    r.stdout,
    /^WEFT_E_QUEUED \(-1\): An event was posted .*\n {2}What to do: .*WEFT_MOVE.*\n {2}A debug build .*\n( {4}- .*\n)+$/,
  );
});

test('a panic is reported with its text, and the printed command finds the line', () => {
  const run = weft(['run', panics, '--quiet']);
  assert.equal(run.status, 1);
  const report =
    /^weft-rp2040: the firmware stopped with bkpt 77 on core 0: weft: posted twice; to see where: weft-rp2040 (.*)\n$/;
  assert.match(run.stderr, report);
  const args = /** @type {RegExpExecArray} */ (report.exec(run.stderr))[1].split(' ');
  const told = weft([...args, '--json']);
  assert.equal(told.status, 0, told.stderr);
  const { codes, at } = JSON.parse(told.stdout);
  assert.equal(codes[0].name, 'bkpt 77');
  assert.deepEqual(
    at.frames.map((/** @type {import('../src/explain.mjs').Frame} */ f) => f.function),
    ['post', 'application'],
  );
  assert.match(
    weft(args).stdout,
    /at 0x[0-9a-f]+: post, .*:7 \(inlined\)\n {4}called from application, .*:8\n$/,
  );
});

test("the printed command can be pasted also if the file's name is odd", () => {
  const odd = join(directory, "it's odd.elf");
  writeFileSync(odd, readFileSync(panics));
  const [, line] =
    /to see where: weft-rp2040 (.*)\n$/.exec(weft(['run', odd, '--quiet']).stderr) ?? [];
  const r = spawnSync('sh', ['-c', `"$0" "$1" ${line}`, process.execPath, command], {
    encoding: 'utf8',
  });
  assert.equal(r.status, 0, r.stderr);
  assert.match(r.stdout, /called from application/);
});

test('without addr2line the output names the function, and says why there is no line', () => {
  const at = stopOf(panics).at ?? 0;
  const args = ['explain', 'bkpt77', panics, '--at', hex(at)];
  const r = weft(args, { ...process.env, PATH: directory });
  assert.equal(r.status, 0);
  assert.match(
    r.stdout,
    /: application\n {4}\(no line: arm-none-eabi-addr2line is not installed\)\n$/,
  );
});

test('an odd address is a return address, also directly after the last instruction of a function', () => {
  const data = new Uint8Array(readFileSync(panics));
  const { symbols } = parseImage(data);
  const of = (/** @type {number} */ address) =>
    whereIs(data, panics, address).frames.at(-1)?.function;
  const { address, size } = /** @type {import('../src/image.mjs').Symbol} */ (
    symbols.find((s) => s.name === 'application')
  );
  // weft_panic does not return, so its call is the last instruction here.
  assert.equal(of((address + size) | 1), 'application');
  assert.equal(of(address), 'application');
  assert.notEqual(of(address | 1), 'application');
});

test('of several names of one address, a name that is not weak is used', () => {
  const elf = build({
    source: `#include "fw.h"
__attribute__((noinline)) void real_name(void) { __asm volatile(""); }
void a_weak_name(void) __attribute__((weak, alias("real_name")));
int main(void) { a_weak_name(); return 0; }`,
  });
  const { symbols } = parseImage(new Uint8Array(readFileSync(elf)));
  const weak = symbols.find((s) => s.name === 'a_weak_name');
  assert.equal(functionAt(symbols, weak?.address ?? 0)?.name, 'real_name');
});

test('a function without a size ends where the next one begins', () => {
  const f = (/** @type {string} */ name, /** @type {number} */ address, size = 0) => ({
    name,
    address,
    size,
    kind: /** @type {const} */ ('function'),
  });
  const symbols = [f('a', 0), f('b', 16, 4), f('strong', 32), f('weak', 32)];
  const name = (/** @type {number} */ at) => functionAt(symbols, at)?.name;
  assert.deepEqual([14, 18, 20, 32, 99].map(name), ['a', 'b', undefined, 'strong', 'strong']);
  assert.equal(functionAt([], 4), undefined);
});

test('an interrupt or a fault without a handler is named, with the address that it interrupted', () => {
  const interrupt = build({
    source: `${HANDLER} void application(void); int main(void) { application(); return 0; }
      __attribute__((noinline)) void application(void) { NVIC_ISER = 1; NVIC_ISPR = 1; for (;;) {} }`,
  });
  const fault = build({
    source: `${HANDLER} void application(void); int main(void) { application(); return 0; }
      __attribute__((noinline)) void application(void) { REG(0x70000000) = 1; }`,
  });
  for (const [elf, wanted] of /** @type {[string, RegExp][]} */ ([
    [interrupt, /bkpt 78 on core 0: interrupt 0 came, for which the program has no handler$/],
    [fault, /bkpt 78 on core 0: HardFault, .*: write to unmapped address at 0x70000000/],
  ])) {
    const stop = stopOf(elf);
    assert.match(stop.failed ?? '', wanted);
    const where = whereIs(new Uint8Array(readFileSync(elf)), elf, stop.at ?? 0);
    assert.equal(where.frames.at(-1)?.function, 'application');
  }
});

test('a stop of the program itself does not count as a stop of Weft', () => {
  const own = build({
    source: '#include "fw.h"\nint main(void) { __asm volatile("bkpt 77"); return 0; }',
  });
  assert.equal(stopOf(own).failed, 'the firmware stopped with bkpt 77 on core 0');
  assert.equal(stopOf(own).at, undefined);
  // In an image without symbols the owner of a stop is unknown.
  assert.match(
    stopOf(own, { symbols: [] }).failed ?? '',
    /core 0: weft_panic has stopped this core/,
  );
});

test('a panic whose r0 is no text has the sentence of the code', () => {
  const long = `"${'x'.repeat(401)}"`;
  for (const r0 of [
    '0',
    '0x70000000',
    '""',
    '"\\1control"',
    '"caf\\xe9"',
    long,
    '0x20041ffc',
    '~0u',
  ]) {
    const elf = build({
      source: `${PANIC} int main(void) { weft_panic((const char *)(uintptr_t)(${r0})); return 0; }`,
    });
    assert.match(stopOf(elf).failed ?? '', /core 0: weft_panic has stopped this core/, r0);
  }
});

test('bad usage is status 2 and one line that says what to do (M15)', () => {
  const junk = join(directory, 'junk.elf');
  writeFileSync(junk, 'no ELF at all');
  const cut = join(directory, 'cut.elf');
  writeFileSync(cut, readFileSync(panics).subarray(0, 600));
  /** @type {[string[], RegExp][]} */
  const rows = [
    [[], /explain wants a CODE, such as WEFT_E_QUEUED/],
    [['99'], /no code of Weft's is '99': there are WEFT_OK \(0\), .*bkpt 78.* the program's own/],
    [['bkpt', '3'], /no code of Weft's is 'bkpt 3'/],
    [['bkpt'], /no code of Weft's is 'bkpt'/],
    [['-1', '--at', '0x20000000'], /--at wants the ELF too/],
    [['-1', panics, '--at', 'main'], /--at wants a number, not 'main'/],
    [['-1', panics, '--at', '-4'], /--at/],
    [['-1', panics, '--at', '0x100000000'], /--at wants an address of 32 bits/],
    [['-1', panics, '--at', '0x40000000'], /0x40000000 is in no function of this ELF/],
    [['-1', junk], /junk\.elf: not an ELF file/],
    [['-1', cut, '--at', '0x20000000'], /cut\.elf: ELF ends inside its section headers/],
    [['-1', '/no/such.elf'], /\/no\/such\.elf: cannot read it: ENOENT/],
    [['-1', 'a', 'b'], /too many arguments: b/],
    [['-1', '--trace', 'x'], /--trace/],
  ];
  for (const [args, message] of rows) {
    const r = weft(['explain', ...args]);
    assert.equal(r.status, 2, args.join(' '));
    assert.match(r.stderr, message);
    assert.equal(r.stderr.split('\n').length, 2, r.stderr);
    assert.equal(r.stdout, '');
  }
  assert.throws(() => whereIs(new Uint8Array(3), 'x', 0), ImageError);
});

test('help and --json before the command; for an ELF without --at the output explains --at', () => {
  assert.match(weft(['explain', '--help']).stdout, /weft-rp2040 explain CODE \[ELF\]/);
  assert.equal(JSON.parse(weft(['--json', 'explain', '-2']).stdout).codes[0].code, -2);
  const r = weft(['explain', '-2', panics]);
  assert.equal(r.status, 0);
  assert.match(r.stderr, /^weft-rp2040: with --at ADDRESS .*\n$/);
});
