"""The static schedule of a program whose timing is known at compile time (SEMANTICS.md, R23): what fires when, as a table.

A program qualifies if all that ever triggers it are startup, shutdown and timers outside modes: no actions, no delayed
connections, one worker. Then what it does is a beginning and a round that repeats, and no queue is needed.

Invariants
- The times are those that the timers' own ticks give (ticks.py), so the trace is the same.
- The first slot of the round stands one after its first repeated time: then the gap before it is the same on the way in and back.
- A round, or a beginning, of more than MOST slots is none: the program keeps its timers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from weft_lf.layout import Layout
from weft_lf.model import Model
from weft_lf.ticks import Tick, in_ticks, period_of

MOST = 128


@dataclass(frozen=True)
class Slot:
    gap: int  # ticks since the slot before
    reactions: tuple[int, ...]  # their numbers


@dataclass(frozen=True)
class Schedule:
    slots: list[Slot]
    loop: int  # the slot to go on with after the last


def schedule(model: Model, layout: Layout, tick: Tick) -> Schedule | None:
    """The table, or None where the program's timing is not known, or its table would be long."""
    if layout.enclaves.count > 1:
        return None
    actions = any(made.actions for made in model.instances)
    if actions or model.delays or layout.modes or model.program.config.threads > 1:
        return None
    periodic, onces = [], []
    for key in layout.timers:
        offset, period, *_ = key
        numbers = tuple(layout.readers[key])
        if period > 0:
            periodic.append((in_ticks(offset, tick), *period_of(period, tick), numbers))
        else:
            onces.append((in_ticks(offset, tick), numbers))
    if not periodic:
        return None
    # ticks / per divides a whole number of ticks first at lcm(ticks); so the round is the least common multiple.
    round_ = lcm(*(ticks for _, ticks, _, _ in periodic))
    begin = max([*(offset for offset, *_ in periodic), *(offset + 1 for offset, _ in onces)])
    for span in (round_, begin):
        if sum(span * per // ticks for _, ticks, per, _ in periodic) > MOST:
            return None
    end = begin + 2 * round_ + 1
    at: dict[int, set[int]] = {}
    for offset, ticks, per, numbers in periodic:
        k = 0
        while (time := offset + k * ticks // per) < end:
            at.setdefault(time, set()).update(numbers)
            k += 1
    for offset, numbers in onces:
        at.setdefault(offset, set()).update(numbers)
    times = sorted(at)
    first = next(i for i, time in enumerate(times) if time >= begin)
    count = sum(times[first] <= time < times[first] + round_ for time in times)
    used = times[: first + 1 + count]
    gaps = [b - a for a, b in zip([0, *used], used, strict=False)]
    if len(used) > 2 * MOST or max(gaps) >= (1 << 60 if tick.wide else 1 << 30):
        return None
    slots = [Slot(gap, tuple(sorted(at[time]))) for gap, time in zip(gaps, used, strict=True)]
    return Schedule(slots, first + 1)


__all__ = ["MOST", "Schedule", "Slot", "schedule"]
