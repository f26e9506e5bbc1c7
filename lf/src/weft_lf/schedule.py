"""Makes the static schedule of a program whose timing is known at compile time (SEMANTICS.md, R23):
a table of the times at which reactions may run.

A program has such a schedule if it is for one worker, has no modes, and is triggered only by
startup, shutdown, timers and connections with a fixed delay. The program must have no actions, no
watchdogs, no physical connections, no `after 0`, no delayed tokens, and no timer that triggers
nothing. Then its tags are a beginning and a round that repeats, and the program needs no queue. A
delayed connection keeps its values in a ring until they are due. At every tag at which a value may
arrive, the table triggers a reaction that checks the ring.

Invariants
- The times are those at which the timers would fire (ticks.py), so the trace is the same.
- A tag is in the table if a reaction may run there. The table assumes that a reaction writes all
  ports that it names.
- The loop goes back to the second slot of the round, not to the first. Therefore the gap before
  that slot is the same from the beginning as from the end of the round.
- If a round or a beginning would have more than MAX_SLOTS slots, there is no table, and the program
  keeps its timers.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import lcm

from weft_lf.enclaves import Enclaves
from weft_lf.layout import Layout
from weft_lf.model import Delay, Model, driver
from weft_lf.ticks import Tick, in_ticks, period_of

MAX_SLOTS = 128


@dataclass(frozen=True)
class Slot:
    """One entry of the table."""

    gap: int  # ticks since the previous slot
    reactions: tuple[int, ...]  # the numbers of the reactions that the slot triggers


@dataclass(frozen=True)
class Schedule:
    """The static schedule of a program: the slots of its beginning and of one round."""

    slots: list[Slot]
    loop: int  # the index of the slot that follows the last one
    rings: dict[Delay, int] = field(default_factory=dict)  # delay → the limit on waiting values


def known(model: Model, layout: Layout) -> bool:
    """Returns whether the program's timing is known at compile time."""
    if layout.enclaves.count > 1 or layout.modes or model.program.config.threads > 1:
        return False
    if any(made.actions or made.watchdogs for made in model.instances):
        return False
    if not all(layout.readers[key] for key in layout.timers):
        return False
    return not any(
        delay.physical or delay.interval == 0 or layout.port_type(delay.sinks[0]).token
        for delay in model.delays
    )


class _Play:
    """Simulates tag by tag which reactions can run. Records the times of slots and the times at
    which values are sent. `layout` must have been made with holds=True if there are delays."""

    def __init__(self, model: Model, layout: Layout, tick: Tick) -> None:
        self.layout = layout
        self.at: dict[int, set[int]] = {}  # time → the reactions that the slot triggers
        self.sent: dict[Delay, list[int]] = {delay: [] for delay in model.delays}  # → times
        self.interval = {delay: in_ticks(delay.interval, tick) for delay in model.delays}
        self.sends = {layout.number[delay]: delay for delay in model.delays}
        self.next: dict[int, set[int]] = {}  # reaction → the reactions that it can trigger
        for one in model.reactions:
            into = self.next.setdefault(layout.number[one], set())
            for channel in one.writes:
                into.update(layout.readers.get(driver(channel), ()))
        for delay, number in layout.arrival.items():
            self.next[number] = set(layout.readers.get(delay, ()))
        self.coming: list[int] = []  # a heap of the times of slots still to be played
        # (offset, ticks, per, the reactions that the timer triggers): the timer fires every ticks /
        # per.
        self.periodic: list[tuple[int, int, int, tuple[int, ...]]] = []
        self.onces: list[tuple[int, tuple[int, ...]]] = []  # (offset, reactions it triggers)
        for key in layout.timers:
            offset, period, *_ = key
            numbers = tuple(layout.readers[key])
            if period > 0:
                self.periodic.append((in_ticks(offset, tick), *period_of(period, tick), numbers))
            else:
                self.onces.append((in_ticks(offset, tick), numbers))
        for offset, numbers in self.onces:
            self.at.setdefault(offset, set()).update(numbers)

    def firings(self, span: int) -> int:
        """Returns how many times at most the periodic timers fire in `span` ticks."""
        return sum(span * per // ticks for _, ticks, per, _ in self.periodic)

    def until(self, start: int, end: int) -> bool:
        """Plays the tags from `start` to before `end`. Returns False if the table becomes too
        long."""
        for offset, ticks, per, numbers in self.periodic:
            k = max(0, (start - offset) * per // ticks - 1)
            while (time := offset + k * ticks // per) < end:
                if time >= start:
                    self.at.setdefault(time, set()).update(numbers)
                k += 1
        self.coming = sorted(time for time in self.at if time >= start)
        while self.coming and self.coming[0] < end:
            time = heapq.heappop(self.coming)
            self.tag(time, self.at[time])
            if len(self.at) > 6 * MAX_SLOTS:
                return False
        return True

    def tag(self, time: int, first: set[int]) -> None:
        """Plays one tag, of a slot or of startup: the reactions `first` run, and all reactions that
        they can trigger."""
        done, todo = set(first), list(first)
        while todo:
            fresh = self.next.get(todo.pop(), set()) - done
            done |= fresh
            todo += fresh
        for number in done & self.sends.keys():
            delay = self.sends[number]
            self.sent[delay].append(time)
            due = time + self.interval[delay]
            if due not in self.at:
                heapq.heappush(self.coming, due)
            self.at.setdefault(due, set()).add(self.layout.arrival[delay])

    def pending(self, now: int) -> frozenset[tuple[int, Delay]]:
        """Returns the values that can be in a ring just before `now`: (ticks until the value is
        due, its delay) for each value.
        """
        return frozenset(
            (time + interval - now, delay)
            for delay, interval in self.interval.items()
            for time in self.sent[delay]
            if now - interval <= time < now
        )

    def ring(self, delay: Delay) -> int:
        times, interval = self.sent[delay], self.interval[delay]
        return max(
            (sum(t - interval < s <= t for s in times[: i + 1]) for i, t in enumerate(times)),
            default=1,
        )


def schedule(model: Model, layout: Layout, tick: Tick) -> Schedule | None:
    """Returns the static schedule, or None if the program's timing is not known at compile time or
    the table would be too long. `layout` must have been made with holds=True if there are delays.
    """
    if not known(model, layout):
        return None
    play = _Play(model, layout, tick)
    if not play.periodic:
        return None
    # A period of ticks / per divides `ticks`, and no smaller whole number of ticks. Therefore all
    # timers are in step again after the least common multiple of all `ticks`.
    turn = lcm(*(ticks for _, ticks, _, _ in play.periodic))
    begin = max(
        [*(offset for offset, *_ in play.periodic), *(offset + 1 for offset, _ in play.onces)]
    )
    if play.firings(turn) > MAX_SLOTS or play.firings(begin) > MAX_SLOTS:
        return None
    play.tag(0, set(layout.readers.get(("startup", None, 0), ())))
    if not play.until(0, begin):
        return None
    seen: dict[frozenset[tuple[int, Delay]], int] = {}
    now = begin
    # The round is complete when the rings contain the same values as at the end of an earlier turn.
    while (state := play.pending(now)) not in seen:
        seen[state] = now
        if not play.until(now, now + turn):
            return None
        now += turn
    begin, round_ = seen[state], now - seen[state]
    if not play.until(now, begin + 2 * round_ + 1):
        return None
    return _table(play, begin, round_, 1 << 60 if tick.wide else 1 << 30)


def _table(play: _Play, begin: int, round_: int, longest: int) -> Schedule | None:
    """Returns the schedule whose rounds begin at `begin` and take `round_` ticks, or None if it has
    too many slots or a gap of `longest` ticks or more."""
    times = sorted(play.at)
    first = next(i for i, time in enumerate(times) if time >= begin)
    count = sum(times[first] <= time < times[first] + round_ for time in times)
    used = times[: first + 1 + count]
    gaps = [b - a for a, b in zip([0, *used], used, strict=False)]
    if len(used) > 2 * MAX_SLOTS or count > MAX_SLOTS or max(gaps) >= longest:
        return None
    slots = [Slot(gap, tuple(sorted(play.at[t]))) for gap, t in zip(gaps, used, strict=True)]
    return Schedule(slots, first + 1, {delay: play.ring(delay) for delay in play.sent})


def planned(
    model: Model, enclaves: Enclaves, tick: Tick, table: bool = True
) -> tuple[Layout, Schedule | None]:
    """Returns the layout of a program and its static schedule. The schedule is None if the program
    has none, or if `table` is false."""
    layout = Layout(model, enclaves)
    if not table or not known(model, layout):
        return layout, None
    holding = Layout(model, enclaves, holds=True) if model.delays else layout
    made = schedule(model, holding, tick)
    return (layout, None) if made is None else (holding, made)


__all__ = ["MAX_SLOTS", "Schedule", "Slot", "known", "planned", "schedule"]
