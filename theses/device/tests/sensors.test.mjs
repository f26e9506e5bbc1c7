// @ts-check
/**
 * Tests the ball's sensor path as processes (firmware/ball_sensors.cpp) with the simulated plant,
 * and the memory of the controller that is a program for LTA. All checks are exact.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { test } from 'node:test';
import { Machine } from '../../../emulator/src/index.mjs';
import { Plant } from '../src/plant.mjs';

const MCU = fileURLToPath(new URL('../../../mcu', import.meta.url));
const US = 125;

/**
 * Builds a firmware of this device. Returns the path of its ELF.
 * @param {string} name
 * @param {string} folder
 * @param {string[]} options of make
 */
function built(name, folder, ...options) {
  const out = join('..', '.build', 'mcu', folder);
  const target = join(out, `${name}.elf`);
  const words = ['-s', '-C', MCU, '-f', '../theses/device/firmware.mk', `OUT=${out}`];
  execFileSync('make', [...words, ...options, target], { stdio: ['ignore', 'ignore', 'inherit'] });
  return join(MCU, target);
}
const images = {
  '-O2': built('ball_sensors', 'sensors'),
  '-Os': built('ball_sensors', 'sensors-os', 'OPTIMISE=-Os'),
};
/** @param {string} path */
function load(path) {
  const m = new Machine().load(readFileSync(path));
  let text = '';
  m.onUart((byte) => {
    text += String.fromCharCode(byte);
  });
  return { m, text: () => text };
}

test('the core sleeps while every process waits (M10)', () => {
  const { m } = load(images['-O2']);
  m.run(10e6); // the dropper holds the magnet
  const before = m.cores[0].instructions;
  m.run(12e6);
  assert.equal(m.cores[0].instructions, before, 'instructions in 16 ms');
});

test('nothing takes memory from a heap, and nothing is started before main', () => {
  const symbols = execFileSync('arm-none-eabi-nm', ['-C', images['-O2']]).toString().split('\n');
  const heap =
    /\b(_?malloc|_?calloc|_?realloc|_?free|_sbrk|__cxa_\w+|__aeabi_atexit|operator (new|delete)(\[\])?\((unsigned|void)[^)]*\))/;
  assert.deepEqual(
    symbols.filter((line) => heap.test(line) && !/promise_type/.test(line)),
    [],
  );
  const sections = execFileSync('arm-none-eabi-objdump', ['-h', images['-O2']]).toString();
  assert.doesNotMatch(sections, /\.init_array|\.ctors/);
});

/** @type {[keyof typeof images, number][]} */
const runs = [
  ['-O2', 3],
  ['-O2', 4],
  ['-Os', 3],
];
for (const [image, seed] of runs)
  test(`each burst of a photogate is one sighting, and tells when the ball arrives: ${image}, seed ${seed}`, () => {
    const { m, text } = load(images[image]);
    const plant = new Plant(m, { seed });
    /** @type {import('../src/plant.mjs').Drop[]} */
    const drops = [];
    plant.onVerdict = (drop) => drops.push(drop);
    m.watch(22, (pin, level) => level && m.after(10, () => plant.placeBall()));
    const stop = m.run(4e6 * US);
    assert.equal(`${stop.reason} ${stop.code}`, 'break 0');
    assert.equal(drops.length, 5);
    const seen = [...text().matchAll(/^(blocked|free) (\d)\nat (\d+)\narrives (\d+)$/gm)].map(
      ([, what, gate, at, arrives]) => ({
        blocked: what === 'blocked',
        gate: +gate,
        at: +at,
        arrives: +arrives,
      }),
    );
    assert.equal(seen.length, 20, 'sightings: four a drop');
    let stamps = 0;
    let estimate = 0;
    drops.forEach((drop, n) => {
      /** @type {{ pin: number, first: number, last: number, level: number }[]} */
      const bursts = [];
      for (const e of [...drop.gates].sort((a, b) => a.at - b.at)) {
        const last = bursts.at(-1);
        if (!last || last.pin !== e.pin || e.at - last.last > 200)
          bursts.push({ pin: e.pin, first: e.at, last: e.at, level: Number(e.level) });
        else Object.assign(last, { last: e.at, level: Number(e.level) });
      }
      bursts.forEach((b, i) => {
        const s = seen[4 * n + i];
        assert.equal(s.gate, b.pin === 27 ? 1 : 2, `gate of sighting ${4 * n + i}`);
        assert.equal(s.blocked, b.level === 1, `level of sighting ${4 * n + i}`);
        stamps = Math.max(stamps, Math.abs(s.at - b.first));
        estimate = Math.max(estimate, Math.abs(s.arrives - drop.arrival));
      });
    });
    assert.ok(stamps <= 3, `a stamp is ${stamps} us after its burst's first edge`);
    assert.ok(estimate <= 260, `an estimate is ${estimate} us off; air in the tube is +-200`);
    const bytes = [...text().matchAll(/^bytes (\w+) (\d+)$/gm)];
    /** @type {Record<string, number>} */
    // the bytes that the frame of each process may have
    const limit = { gate: 184, timing: 368, printer: 112, dropper: 136 };
    assert.deepEqual([...new Set(bytes.map((b) => b[1]))].sort(), Object.keys(limit).sort());
    for (const [, name, n] of bytes) assert.ok(+n <= limit[name], `bytes of ${name}: ${n}`);
    assert.equal(/dropped (\d+)/.exec(text())?.[1], '0', 'values that a full port dropped');
  });

test('the image of a program for LTA contains what it uses, and no arena of a fixed size', () => {
  const sizes = execFileSync('arm-none-eabi-size', [built('lta', 'rp2040')]).toString();
  const idle = +sizes.split('\n')[1].trim().split(/\s+/)[2];
  assert.ok(idle <= 1280, `${idle} bytes of static memory, more than 1280`);
});
