/**
 * Runs the same firmware again and again; each time an interrupt or a start comes one instruction,
 * one cycle or one offset later.
 *
 * sweep.mjs [--emulator DIR] IMAGES writes one line per test and, last, `N passed, N failed`.
 */
import { check, edges, finish, load, US } from './harness.mjs';

// ---- interrupts and the second core's start at every offset -------------------------------------
{
  let bad = 0,
    n = 0;
  for (let delay = 0; delay < 400; delay++) {
    const m = load('periodic-shared-light', { core1Delay: delay }),
      list = [edges(m, 2), edges(m, 3)];
    m.run(1500 * US);
    n++;
    for (const l of list) {
      const rises = l.filter((e) => e.level);
      if (
        rises.length < 13 ||
        rises.slice(3).some((e, i) => e.cycle - rises[i + 2].cycle !== 12500)
      )
        bad++;
    }
  }
  check(`core 1 started at ${n} offsets: runs with a late or missing task`, bad, 0);
}
{
  // an interrupt posts before every instruction of a stretch that schedules, claims, waits and puts
  // back. Each instruction is tried at two phases of the alarms' microsecond; together they cover
  // all 125 phases.
  const probe = load('sweep');
  probe.run(1000 * US);
  const first = 400,
    last = probe.cores[0].instructions - 50;
  let bad = 0,
    n = 0;
  for (let k = first; k < last; k++)
    for (let j = 0; j < 2; j++, n++) {
      const m = load('sweep'),
        phase = (k * 47 + j * 62) % US;
      m.inject(0, 300, () => {
        m.cores[0].t += phase;
      });
      m.injectInterrupt(0, k, 5);
      const stop = m.run(20000 * US);
      if (stop.reason !== 'break' || stop.code !== 0) bad++;
    }
  check(
    `an interrupt before each of ${n / 2} instructions, 2 phases of the alarms: runs that went wrong (M18, M9)`,
    bad,
    0,
    bad === 0 && n > 600,
  );
}
{
  // A core waits for an event, and a pin moves the event at each cycle of 8 us around its alarm:
  // the event runs within 2 us of its new time, the time that the interrupt handler takes.
  const lost = (name) => {
    let bad = 0,
      moved = 0;
    for (let cycle = 0; cycle < 1000; cycle++) {
      const m = load(name);
      m.drive(6, 1);
      m.watch(2, (_, level, began) => level && m.at(began + 35 * US + cycle, () => m.drive(6, 0)));
      m.run(1000 * US);
      moved += m.read32('moves');
      if (m.read32('runs') !== m.read32('wanted') || m.read32('late') > 2) bad++;
    }
    return moved > 500 && moved < 1000 ? bad : NaN; // NaN if the phases are not around the alarm
  };
  for (const name of ['moved', 'moved-nearer'])
    check(`${name} at 1,000 phases of its alarm: runs lost or late (M9, M10, M18)`, lost(name), 0);
  const bad = lost('moved-mutant');
  check(
    'the latch cleared before the alarm is set: runs lost (must not be 0)',
    bad,
    '1 or more',
    bad > 0,
  );
}
finish();
