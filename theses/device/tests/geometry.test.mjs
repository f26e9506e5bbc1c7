// @ts-check
/**
 * Compares the plant's geometry with the figures of the thesis (8.3), and the controllers'
 * calibration with the plant.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fallOf, GEOMETRY, verdictOf } from '../src/geometry.mjs';
import { randomOf } from '../src/random.mjs';

const at5 = { speed: 2.45, turnsPerSecond: 5, angle: 0 };
const near = (
  /** @type {number} */ value,
  /** @type {number} */ wanted,
  /** @type {number} */ within,
) => assert.ok(Math.abs(value - wanted) <= within, `${value} is not within ${within} of ${wanted}`);

test('8.3: at 5 turns a second 1.92 mm to either side, 0.42 mm and 335 us after mechanical tolerances', () => {
  const verdict = verdictOf(GEOMETRY, at5);
  near(verdict.theta, 1.097, 0.001);
  near(verdict.room, 0.00192, 0.000005);
  near(verdict.budget, 0.00042, 0.000005);
  near(verdict.budgetMicros, 335, 1);
  near(verdict.holeSpeed, 1.26, 0.005);
  assert.equal(verdict.outcome, 'passes');
});

test('8.3: the ball ends at 2.45 m/s; gravity without air would be faster', () => {
  const fall = fallOf(GEOMETRY);
  near(fall.acceleration * GEOMETRY.fallTime, 2.45, 0.005);
  assert.ok(fall.acceleration < 9.81);
  near(fall.fallen(GEOMETRY.fallTime), GEOMETRY.fall, 1e-12);
});

test('the verdict is symmetric, has both holes, and its limits are where it says', () => {
  const { budget, room } = verdictOf(GEOMETRY, at5);
  for (const sign of [-1, 1])
    for (const [off, outcome] of /** @type {[number, string][]} */ ([
      [budget - 1e-6, 'passes'],
      [budget + 1e-6, 'grazes'],
      [room - 1e-6, 'grazes'],
      [room + 1e-6, 'hits'],
      [0.02, 'hits'],
    ]))
      for (const hole of [0, Math.PI, 10 * Math.PI])
        assert.equal(
          verdictOf(GEOMETRY, { ...at5, angle: hole + (sign * off) / GEOMETRY.radius }).outcome,
          outcome,
          `${sign * off} m at hole ${hole}`,
        );
});

test('a quarter turn off hits; a disc so fast that the slanted path is wider than the hole lets nothing through', () => {
  assert.equal(verdictOf(GEOMETRY, { ...at5, angle: Math.PI / 2 }).outcome, 'hits');
  const fast = verdictOf(GEOMETRY, { ...at5, turnsPerSecond: 12 });
  assert.ok(fast.room < 0);
  assert.equal(fast.outcome, 'hits');
});

test('a disc at rest with a hole under the tube passes and gives no times', () => {
  const verdict = verdictOf(GEOMETRY, { ...at5, turnsPerSecond: 0 });
  assert.equal(verdict.outcome, 'passes');
  assert.equal(verdict.errorMicros, 0);
});

test("the controllers' times before the disc are those of the nominal fall, to the microsecond", () => {
  const header = readFileSync(new URL('../firmware/controller.h', import.meta.url), 'utf8');
  const tables = [...header.matchAll(/before_disc\[ESTIMATES\] = \{([\d, ]+)\}/g)].map((m) =>
    m[1].split(',').map(Number),
  );
  const fall = fallOf(GEOMETRY);
  const times = [0, ...fall.gates.flatMap((g) => [g.blocked, g.free])].map(
    (t) => (fall.arrival - t) * 1e6,
  );
  times.forEach((t, i) => near(tables[1][i], t, 0.6));
  assert.deepEqual(tables[0], [286300, 25300, 21800, 4800, 1600]);
});

test('the random numbers are the seed alone', () => {
  const take = (/** @type {number} */ seed) => Array.from({ length: 100 }, randomOf(seed).next);
  assert.deepEqual(take(5), take(5));
  assert.notDeepEqual(take(5), take(6));
  const random = randomOf(1);
  const faces = Array.from({ length: 7000 }, () => random.whole(4, 10));
  for (let face = 4; face <= 10; face++) near(faces.filter((f) => f === face).length, 1000, 150);
});
