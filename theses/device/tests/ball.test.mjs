// @ts-check
/**
 * Tests drops on the emulated device: some of the drops of tests/soak. Seeds are in the messages.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CONTROLLERS, Session, SessionError } from '../src/session.mjs';
import { PINS } from '../src/plant.mjs';
import { inWords, picture } from '../src/picture.mjs';
import { GEOMETRY } from '../src/geometry.mjs';

const US = 125;
const LATEST = { actors: 0.5, lta: 3.06, pio: 0.5 };
const SEED = 11;

for (const controller of CONTROLLERS)
  test(`${controller}: four drops over falls within 2 ms pass, steps within ${LATEST[controller]} us, printing all the while`, () => {
    const session = new Session({ controller, seed: SEED });
    for (let n = 0; n < 4; n++) {
      const drop = session.drop();
      const about = `seed ${SEED}, drop ${n}: ${inWords(drop)}`;
      assert.ok(drop.passes, about);
      assert.ok(
        drop.lateness.worst <= LATEST[controller] * US && drop.lateness.best >= 0,
        `${about} lateness ${drop.lateness.best} to ${drop.lateness.worst} cycles`,
      );
      assert.ok(drop.lateness.edges > 4000, about);
      assert.ok(drop.text.length > 200, `printed ${drop.text.length} characters during the drop`);
      assert.match(drop.text, /aiming\ndropping\n/);
    }
    assert.equal(session.machine.pins.shorts.length, 0);
    assert.equal(session.machine.warnings.length, 0);
  });

test('actors: with bus conflicts the steps are still within 0.5 us', () => {
  const session = new Session({ seed: SEED, conflicts: true });
  const drop = session.drop();
  assert.ok(drop.passes, inWords(drop));
  assert.ok(drop.lateness.worst <= 0.5 * US, `worst ${drop.lateness.worst} cycles`);
});

test('actors: a stepper of 3200 pulses a turn, 32,000 toggles a second', () => {
  const session = new Session({ seed: SEED, pulsesPerTurn: 3200 });
  const drop = session.drop();
  assert.ok(drop.passes, inWords(drop));
  assert.ok(drop.lateness.worst <= 0.5 * US, `worst ${drop.lateness.worst} cycles`);
});

for (const offset of [-6000, 6000])
  test(`the plant can say no: a fall ${offset} us off hits the disc, whatever the motor does`, () => {
    const drop = new Session({ seed: SEED, fallOffset: offset, fallSpread: 0 }).drop();
    assert.equal(drop.verdict.outcome, 'hits', inWords(drop));
    assert.match(inWords(drop), /hits the disc/);
  });

test("the thesis's own constants are for the thesis's own device: its ball takes 8 ms less to the disc, and here it hits", () => {
  const drop = new Session({ seed: SEED, controller: 'lta', constants: 'thesis' }).drop();
  assert.equal(drop.verdict.outcome, 'hits', inWords(drop));
});

test('photogates: every edge is a burst of 4 to 10 within a few microseconds and ends at its level', () => {
  const session = new Session({ seed: SEED });
  const drop = session.drop();
  assert.equal(drop.bursts.length, 4);
  for (const n of drop.bursts) assert.ok(n >= 4 && n <= 10, `${n}`);
  for (const pin of PINS.gates) {
    const edges = drop.gates.filter((e) => e.pin === pin);
    const groups = edges.reduce(
      (all, e) => (
        all.length && e.at - all[all.length - 1][all[all.length - 1].length - 1].at < 50
          ? all[all.length - 1].push(e)
          : all.push([e]),
        all
      ),
      /** @type {typeof edges[]} */ ([]),
    );
    assert.deepEqual(
      groups.map((g) => g[g.length - 1].level),
      [1, 0],
    );
    for (const g of groups)
      assert.ok(g[g.length - 1].at - g[0].at < 10, `${g[g.length - 1].at - g[0].at} us`);
  }
});

test('the same seed gives the same edges; another seed another fall', () => {
  const [a, b, c] = [3, 3, 4].map((seed) => {
    const session = new Session({ seed });
    const drop = session.drop();
    return { hash: session.machine.statistics().edgeHash, fall: drop.fallError };
  });
  assert.deepEqual(a, b);
  assert.notEqual(a.fall, c.fall);
});

test('a motor stepped faster than it can follow stalls, and no ball passes', () => {
  const session = new Session({ seed: SEED });
  session.plant.topTurns = 4;
  assert.equal(session.drop().passes, false);
  assert.equal(session.plant.stalled, true);
});

test('mistakes at the device are named: a ball without a magnet, two balls, an unknown controller', () => {
  const session = new Session({ seed: SEED });
  assert.throws(() => session.plant.placeBall(), /magnet is off.*press its button/);
  session.arm();
  session.plant.placeBall();
  assert.throws(() => session.plant.placeBall(), /is held already/);
  assert.throws(
    () => new Session({ controller: /** @type {any} */ ('rtos') }),
    (e) => e instanceof SessionError && /controllers: actors, lta, pio/.test(e.message),
  );
});

test('a second press within a second is a bounce: the device stays armed', () => {
  const session = new Session({ seed: SEED });
  session.arm();
  session.pass(1100000);
  session.text = '';
  session.plant.placeBall();
  session.plant.press(20000);
  session.pass(50000);
  assert.equal(session.text, 'aiming\n');
  session.wait(() => session.plant.ball === 'none', 2, 'drop');
  session.wait(() => session.text.endsWith('armed\n'), 1, 'arm again');
  session.plant.press(20000); // 0.4 s after the first press: has no effect
  session.pass(400000);
  assert.ok(session.text.endsWith('armed\n'), session.text.slice(-60));
});

test('the picture has the verdict, both gates and the disc', () => {
  const session = new Session({ seed: SEED, record: true });
  const drop = session.drop();
  const svg = picture(drop, { geometry: GEOMETRY, controller: 'actors', seed: SEED });
  for (const word of [inWords(drop), 'gate 1', 'gate 2', 'hole 18 mm', 'ball in the disc'])
    assert.ok(svg.includes(word), word);
  assert.ok(!/NaN|undefined|Infinity/.test(svg));
});

test('the command: figures as JSON, exit status 1 for a hit, 2 with advice for a wrong option', () => {
  const cli = fileURLToPath(new URL('../src/cli.mjs', import.meta.url));
  const run = (/** @type {string[]} */ ...args) =>
    spawnSync(process.execPath, [cli, ...args], { encoding: 'utf8' });
  const good = run('--json', '--seed', '2');
  assert.equal(good.status, 0, good.stderr);
  assert.equal(JSON.parse(good.stdout).passed, 1);
  assert.equal(run('--json', '--fall', '6000').status, 1);
  for (const [args, words] of /** @type {[string[], RegExp][]} */ ([
    [['--controller', 'x'], /there are actors, lta, pio/],
    [['--seed', 'x'], /whole number from 0/],
    [['--pulses', '7'], /1600 or 3200/],
    [['--out', 'a.gif'], /\.svg and \.png/],
    [['--what'], /no option '--what'.*--help/],
  ])) {
    const bad = run(...args);
    assert.equal(bad.status, 2);
    assert.match(bad.stderr, words);
  }
  for (const [image, words] of /** @type {[string, RegExp][]} */ ([
    ['/dev/null', /^ball: --image \/dev\/null: not an ELF file\n$/],
    [cli, /^ball: --image .*cli\.mjs: not an ELF file\n$/],
    ['.', /^ball: --image \.: EISDIR.*\n$/],
  ])) {
    const bad = run('--image', image);
    assert.equal(bad.status, 1);
    assert.match(bad.stderr, words);
  }
});
