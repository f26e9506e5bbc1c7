"""Tests two channels, their ends and choices over them as a state machine: random steps, each
compared with a small oracle.

Each operation is a separate thread process. After every step the machine waits (on a condition, not
for a time) until as many operations have ended as the oracle predicts, and then compares the
outcomes, the waiting queues and the buffers. Rules 1 to 6.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from weft.threads import (
    Cancelled,
    Channel,
    ChannelEnd,
    Group,
    Output,
    Poisoned,
    Retired,
    process,
    select,
)

BOUND = 280  # seconds, after which a machine counts as hanging


@dataclass
class Guard:
    channel: int
    writes: bool
    value: int = 0


@dataclass(eq=False)
class Party:
    """One operation, as the oracle sees it."""

    guards: list[Guard]
    # Guards that ignore that their channel has retired.
    silent: set[int] = field(default_factory=set)
    process: Any = None
    outcome: Any = None  # (guard, value) | (exception's type, guard of a select) | over()


@dataclass
class Line:
    """One channel, as the oracle sees it."""

    capacity: int
    buffer: list[int] = field(default_factory=list)
    readers: list[Party] = field(default_factory=list)
    writers: list[Party] = field(default_factory=list)
    reader_open: bool = True
    writer_open: bool = True
    poison: int = 0


@process
def _operate(machine: ChannelMachine, party: Party) -> None:
    try:
        outcome: Any = machine.operate(party.guards)
    except (ChannelEnd, Cancelled) as end:
        outcome = (type(end), getattr(end, "guard", None))
    with machine.condition:
        machine.ended[party] = outcome
        machine.condition.notify()


class ChannelMachine(RuleBasedStateMachine):
    @initialize(capacities=st.tuples(st.integers(0, 2), st.integers(0, 2)))
    def start(self, capacities: tuple[int, int]) -> None:
        self.condition = threading.Condition()
        self.ended: dict[Party, Any] = {}  # protected by the condition
        self.expected = 0
        self.waiting: list[Party] = []
        self.channels = [Channel(f"c{i}", capacity=n) for i, n in enumerate(capacities)]
        self.readers = [c.reader() for c in self.channels]
        self.writers = [c.writer() for c in self.channels]
        self.lines = [Line(n) for n in capacities]
        self.values = itertools.count(1)
        self.group = Group()
        self.group.__enter__()

    def teardown(self) -> None:
        if not hasattr(self, "group"):
            return
        for p in self.waiting:
            p.process.cancel()
        self.group.__exit__(None, None, None)
        # No operation was doubled: every party that does not wait has ended exactly once.
        assert len(self.ended) == self.expected + len(self.waiting)

    # --- the processes ----------------------------------------------------------------------------

    def operate(self, guards: list[Guard]) -> Any:
        if len(guards) == 1:
            (g,) = guards
            if g.writes:
                self.writers[g.channel].write(g.value)
                return (0, None)
            return (0, self.readers[g.channel].read())
        return select(
            *(
                Output(self.writers[g.channel], g.value) if g.writes else self.readers[g.channel]
                for g in guards
            )
        )

    # --- the oracle -------------------------------------------------------------------------------

    def ended_for(self, g: Guard) -> type[ChannelEnd] | None:
        line = self.lines[g.channel]
        if line.poison:
            return Poisoned
        if g.writes:
            return None if line.reader_open or line.readers else Retired
        gone = not (line.writer_open or line.writers or line.buffer)
        return Retired if gone else None

    def over(self, party: Party) -> dict[int, type[ChannelEnd]]:
        """Returns the guards whose ends make the party ready, and these ends (rule 5.6): any
        poisoned guard; the outputs once all of them have retired; without outputs, the inputs once
        all have retired. A single operation is a choice of one guard. A silent guard stays silent.
        """
        guards = party.guards
        ends = [Retired if i in party.silent else self.ended_for(g) for i, g in enumerate(guards)]
        deciding = [i for i, g in enumerate(guards) if g.writes] or list(range(len(guards)))
        retired = deciding if all(ends[i] is Retired for i in deciding) else []
        return {i: end for i, end in enumerate(ends) if end and (end is Poisoned or i in retired)}

    def fall_silent(self, party: Party) -> None:
        """Withdraws the party's guards whose channels have retired from the waiting queues."""
        for i, g in enumerate(party.guards):
            if self.ended_for(g) is Retired:
                party.silent.add(i)
                line = self.lines[g.channel]
                parties = line.writers if g.writes else line.readers
                if party in parties:
                    parties.remove(party)

    def ready(self, g: Guard) -> bool:
        """Returns whether the guard has a partner, or room in the buffer. A guard that is ready has
        no end: see over()."""
        line = self.lines[g.channel]
        if self.ended_for(g):
            return False
        if g.writes:
            return bool(line.readers) or len(line.buffer) < line.capacity
        return bool(line.buffer or line.writers)

    def leave(self, party: Party) -> None:
        for line in self.lines:
            for parties in (line.readers, line.writers):
                if party in parties:
                    parties.remove(party)
        if party in self.waiting:
            self.waiting.remove(party)

    def settle(self, party: Party, outcome: Any) -> None:
        self.leave(party)
        party.outcome = outcome
        self.expected += 1

    def finish(self, party: Party, channel: int, writes: bool, value: Any) -> None:
        """Commits a waiting party by its guard at this channel."""
        index = next(
            i for i, g in enumerate(party.guards) if (g.channel, g.writes) == (channel, writes)
        )
        self.settle(party, (index, value))

    def commit(self, party: Party, index: int) -> None:
        """Commits the arriving party at a guard that is ready."""
        g = party.guards[index]
        line = self.lines[g.channel]
        end = self.ended_for(g)
        if end:
            self.settle(party, (end, index if len(party.guards) > 1 else None))
        elif g.writes:
            if line.readers:
                self.finish(line.readers[0], g.channel, False, g.value)
            else:
                line.buffer.append(g.value)
            self.settle(party, (index, None))
        else:
            if line.buffer:
                value = line.buffer.pop(0)
                if line.writers:
                    line.buffer.append(self.value_of(line.writers[0], g.channel))
                    self.finish(line.writers[0], g.channel, True, None)
            else:
                value = self.value_of(line.writers[0], g.channel)
                self.finish(line.writers[0], g.channel, True, None)
            self.settle(party, (index, value))
        self.end_those_left()

    def value_of(self, party: Party, channel: int) -> int:
        return next(g.value for g in party.guards if g.channel == channel and g.writes)

    def end_those_left(self) -> None:
        """Ends the waiting parties whose channels have ended."""
        for party in list(self.waiting):
            over = self.over(party)
            if over:
                self.settle(party, over)
            else:
                self.fall_silent(party)

    # --- steps ------------------------------------------------------------------------------------

    def begin(self, guards: list[Guard]) -> None:
        for g in guards:
            open_ = (
                self.lines[g.channel].writer_open if g.writes else self.lines[g.channel].reader_open
            )
            if not open_:
                return  # such a select is bad use, which other tests cover
        party = Party(guards)
        choices = [i for i, g in enumerate(guards) if self.ready(g)] + list(self.over(party))
        party.process = self.group.start(_operate(self, party))
        if choices:
            self.wait_until(lambda: party in self.ended)
            outcome = self.ended[party]
            index = choices[0] if len(guards) == 1 else outcome[0]
            if isinstance(index, type):
                index = outcome[1]
            assert index in choices, (outcome, choices)
            self.commit(party, index)
        else:
            self.waiting.append(party)
            for g in guards:
                line = self.lines[g.channel]
                (line.writers if g.writes else line.readers).append(party)
            self.fall_silent(party)

    @rule(channel=st.integers(0, 1), readers=st.integers(1, 3))
    def read(self, channel: int, readers: int) -> None:
        for _ in range(readers):
            self.begin([Guard(channel, False)])
            self.they_agree()

    @rule(channel=st.integers(0, 1), writers=st.integers(1, 3))
    def write(self, channel: int, writers: int) -> None:
        for _ in range(writers):
            self.begin([Guard(channel, True, next(self.values))])
            self.they_agree()

    @rule(first=st.booleans(), second=st.booleans())
    def choose(self, first: bool, second: bool) -> None:
        self.begin([Guard(0, first, next(self.values)), Guard(1, second, next(self.values))])

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        party = data.draw(st.sampled_from(self.waiting))
        party.process.cancel()
        self.settle(party, (Cancelled, None))
        # That reader may have been the last that counted as an end (rule 3.2).
        self.end_those_left()

    @rule(channel=st.integers(0, 1), writer=st.booleans(), seldom=st.integers(0, 9))
    def retire(self, channel: int, writer: bool, seldom: int) -> None:
        if seldom < 8:
            return
        line = self.lines[channel]
        if writer:
            self.writers[channel].retire()
            line.writer_open = False
        else:
            self.readers[channel].retire()
            line.reader_open = False
            if not line.readers:
                line.buffer.clear()
        self.end_those_left()

    @rule(channel=st.integers(0, 1), strength=st.integers(1, 3), seldom=st.integers(0, 9))
    def poison(self, channel: int, strength: int, seldom: int) -> None:
        if seldom < 9:
            return
        line = self.lines[channel]
        self.channels[channel].poison(strength)
        line.poison = max(line.poison, strength)
        line.buffer.clear()
        self.end_those_left()

    # --- comparison -------------------------------------------------------------------------------

    def wait_until(self, done: Any) -> None:
        with self.condition:
            assert self.condition.wait_for(done, BOUND), "an operation did not end"

    @invariant()
    def they_agree(self) -> None:
        if not hasattr(self, "group"):
            return
        self.wait_until(lambda: len(self.ended) >= self.expected)
        assert len(self.ended) == self.expected
        for party, outcome in self.ended.items():
            if isinstance(party.outcome, dict):  # any of the guards that ended may be named
                end, guard = outcome
                assert (guard is None) == (len(party.guards) == 1)
                assert party.outcome.get(guard or 0) is end
            else:
                assert outcome == party.outcome
        for c, line in zip(self.channels, self.lines, strict=True):
            # A party that the oracle expects to wait has arrived once the channel counts it.
            lines = len(line.readers), len(line.writers)
            for _ in range(BOUND * 1000):
                if (c.stats().waiting_readers, c.stats().waiting_writers) == lines:
                    break
                with self.condition:
                    self.condition.wait(0.001)
            assert (c.stats().waiting_readers, c.stats().waiting_writers) == lines
            assert len(self.ended) == self.expected
            assert c.stats().buffered == len(line.buffer)


ChannelMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestChannels = ChannelMachine.TestCase
