/**
 * Reactors on the emulated RP2040: the exact cost of a tag and of a reaction in cycles, how many
 * reactors fit, and whether reactions run on time.
 *
 * reactors.mjs [--emulator DIR] IMAGES
 */
import { check, edges, finish, load, text, US } from './harness.mjs';

/** The cycles between a falling and the next rising edge of pin 2, once these gaps are steady. */
function gaps(name, cycles = 400000) {
  const m = load(name),
    list = edges(m, 2);
  m.run(cycles);
  const steady = list.slice(9);
  return steady
    .slice(1)
    .flatMap((e, i) => (e.level && !steady[i].level ? [e.cycle - steady[i].cycle] : []));
}
const most = (list) => Math.max(...list);
/**
 * For tags with groups of n reactions: the gaps between tags (the longest of each n gaps), and the
 * gaps within a tag.
 */
function tags(name, n) {
  const g = gaps(name),
    between = [],
    within = [];
  const first = g.indexOf(most(g.slice(0, n)));
  for (let i = first; i + n <= g.length; i += n) {
    between.push(g[i]);
    within.push(...g.slice(i + 1, i + n));
  }
  return { between, within };
}

check('reactors: a tag, one timer, cycles', most(gaps('reactors-1')), 90);
check('reactors: a tag, two timers in turn, cycles', most(gaps('reactors-2')), 110);
check('reactors: a tag, two timers in turn and a far one, cycles', most(gaps('reactors-3')), 120);
check('reactors: a tag with anything from outside, cycles', most(gaps('reactors-outside')), 120);
{
  const t = tags('reactors-chain', 4);
  check('reactors: each further reaction of a tag, cycles', most(t.within), 30);
  check('reactors: a tag of four reactions, before the first, cycles', most(t.between), 90);
}
{
  const t = tags('reactors-ports', 4);
  check('reactors: each further reaction, through a port, cycles', most(t.within), 30);
  check('reactors: the tag after one with three ports to clear, cycles', most(t.between), 120);
}
{
  const t = tags('reactors-words', 4);
  check('reactors: each further reaction, more than 32 of them, cycles', most(t.within), 40);
  check('reactors: a tag, more than 32 reactions, three ports, cycles', most(t.between), 190);
}
{
  const g = gaps('reactors-static').sort((a, b) => a - b);
  check('reactors: a tag of a static schedule, cycles', g[0], 60);
  check('reactors: the same where the table begins again', most(g), 70);
}
{
  // waiting: the first instruction of the reaction against its microsecond, and no drift
  const m = load('reactors-light'),
    rises = edges(m, 2);
  m.run(5000 * US);
  const up = rises.filter((e) => e.level).slice(4),
    after = up.map((e) => Math.round(e.cycle % US));
  check(
    'reactors: jitter of a reaction at light load, cycles',
    most(after) - Math.min(...after),
    8,
  );
  check(
    'reactors: period of two timers 50 us apart, worst, cycles off',
    most(up.slice(1).map((e, i) => Math.abs(e.cycle - up[i].cycle - 50 * US))),
    8,
  );
}
{
  const m = load('reactors-many'),
    out = text(m),
    list = edges(m, 2);
  m.run(400e6);
  const q = JSON.parse(out()),
    g = list
      .slice(101)
      .flatMap((e, i, all) =>
        i && e.level && !all[i - 1].level ? [e.cycle - all[i - 1].cycle] : [],
      );
  check(
    'reactors: most, in 256 KB',
    q.reactors,
    8000,
    q.reactors >= 8000 && q.wrong === 0 && q.fired === 2 * q.reactors,
  );
  check('reactors: bytes of a minimal one', q.bytes_each, 24);
  check('reactors: bytes in the heap for each timer, above 64', q.bytes_in_heap, 4);
  check('reactors: a tag that fires one of 8,000, cycles', most(g), 1000);
}
/**
 * Two enclaves, one for each core: the periods and gaps of both pins, and how many messages were
 * lost.
 */
function cores(name, options) {
  const m = load(name, options),
    pins = [edges(m, 2), edges(m, 3)],
    lost = [edges(m, 4), edges(m, 5)];
  m.run(20000 * US);
  return {
    lost: lost[0].length + lost[1].length,
    got: name.endsWith('linked') ? pins.map((p) => p.length / 2) : [],
    periods: pins.flatMap((list) =>
      list
        .filter((e) => e.level)
        .slice(10)
        .map((e, i, all) => (i ? e.cycle - all[i - 1].cycle : 12500)),
    ),
    gaps: pins.flatMap((list) =>
      list.slice(20).flatMap((e, i, all) => (i && e.level ? [e.cycle - all[i - 1].cycle] : [])),
    ),
  };
}
for (const conflicts of [false, true])
  check(
    `reactors: two staggered 10 kHz timers with 270 loops on both cores${conflicts ? ', bus conflicts modelled' : ''}: worst period`,
    most(cores('reactors-cores-270', { conflicts }).periods),
    12500 + (conflicts ? 60 : 8),
  );
check('reactors: a tag with both cores, cycles', most(cores('reactors-cores-300').gaps), 180);
{
  const c = cores('reactors-cores-linked');
  check(
    'reactors: messages lost or out of order between two enclaves',
    c.lost,
    0,
    c.lost === 0 && c.got.every((n) => n > 150),
  );
  check(
    'reactors: 200 loops and a message each way held at 10 kHz, worst period',
    most(c.periods),
    12600,
  );
}
{
  // from an interrupt: every edge becomes a tag of its own, in order, at every phase of the
  // microsecond and near a timer's tags
  const m = load('reactors-wake'),
    out = edges(m, 7),
    tick = edges(m, 8),
    lost = edges(m, 9),
    driven = [];
  let level = 1;
  m.drive(6, 1);
  for (let k = 0; k < 200; k++) {
    const cycle = 2000000 + k * 25013;
    driven.push(cycle);
    m.at(cycle, () => m.drive(6, (level ^= 1)));
  }
  for (let k = 0; k < 125; k++) {
    // so close to a tick that the interrupt and the tick come together
    const cycle =
      2000000 + 200 * 25013 + (k + 4) * 125000 - ((2000000 + 200 * 25013) % 125000) - 300 + 5 * k;
    driven.push(cycle);
    m.at(cycle, () => m.drive(6, (level ^= 1)));
  }
  m.run(2000000 + 200 * 25013 + 140 * 125000);
  const took = out.map((e, k) => e.cycle - driven[k]);
  check(
    'reactors: pin edge to reaction, through an interrupt and a physical action, cycles',
    most(took.slice(0, 200)),
    1100,
    out.length === driven.length && most(took.slice(0, 200)) <= 1100,
  );
  check(
    'reactors: the same beside a timer due at that moment, cycles',
    most(took.slice(200)),
    1100,
  );
  check('reactors: edges lost or out of order', lost.length, 0);
  const ticks = tick.slice(3).map((e, i) => Math.abs(e.cycle - tick[i + 2].cycle - 125000));
  check('reactors: a timer beside them, cycles off at most', most(ticks), 900);
}
{
  // the reactions of a level on both cores
  const busy = (cores) => {
    const m = load(`reactors-level-${cores}`),
      whole = edges(m, 4),
      lost = edges(m, 5),
      two = edges(m, 3);
    m.run(20000 * US);
    const took = whole
      .slice(2)
      .flatMap((e, i, all) =>
        i && !e.level && all[i - 1].level ? [e.cycle - all[i - 1].cycle] : [],
      );
    return { took: most(took), lost: lost.length, two: two.length, n: took.length };
  };
  const one = busy(1),
    both = busy(2);
  check(
    'reactors: four reactions of a level and their reader, one core, cycles',
    one.took,
    19000,
    one.lost === 0 && one.two === 0 && one.n > 15,
  );
  check(
    'reactors: the same on both cores',
    both.took,
    one.took * 0.55,
    both.lost === 0 && both.two > 60 && both.n > 15 && both.took <= one.took * 0.55,
  );
}
for (const name of ['reactors', 'reactors-flash']) {
  const m = load(name),
    led = edges(m, 25);
  m.run(2.2e6 * US);
  const off = led.slice(2).map((e, i) => Math.abs(e.cycle - led[i + 1].cycle - 62.5e6)); // the start delays the first edge
  check(
    `${name}: blinks, edges in 2.2 s`,
    led.length,
    '4 or 5',
    led.length >= 4 && led.length <= 5 && most(off) < 3 * US,
  );
}
finish();
