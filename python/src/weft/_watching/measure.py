"""Measures where time is lost: how long readers and writers waited at each channel (rule 14.4).

The observers (_watching/observers.py) report these events of one operation

    begin ──► park ──► commit, or raise        `park` only if it has to wait
       │                     ▲
       └─────────────────────┘

At `begin` the operation's channels become known, so that the values that pass there are counted. At
`park` the operation joins the waiting queues at its *places* (a channel and a side; a select has
several). At `commit` or `raise` the operation leaves these queues, and the time since `park` counts
for the one place at which it had its outcome.

Invariants
- Channels with the same name (made in one line of the program) share a row.
- A channel is kept alive while it is measured. From time to time the channels to which nothing else
  refers are added to their row and dropped, so that a program that makes many channels does not
  grow.
- Values are counted in the OS process where the channel was made: also values that pass only
  between other OS processes, from the beginning of the measurement or, if that was later, from when
  an end was first lent. Other OS processes measure how long their own processes waited, and all
  figures of the channels that they made (rule 14.7).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft._watching import observers as _observers
from weft._watching import shares as _shares
from weft._watching import verdict as _verdict

_SWEEP = 1024  # how many channels are kept until unused ones are dropped
_READERS, _WRITERS = 0, 1  # the sides of a channel


@dataclass
class ChannelMeasure:
    """The figures measured at the channels of one name."""

    name: str  #: the name of the channels
    channels: int = 0  #: channels of this name
    transfers: int = 0  #: values passed
    dropped: int = 0  #: values dropped
    parked_reads: int = 0  #: reads, and selects that took an input here, that had to wait
    parked_writes: int = 0  #: writes, and selects that took an output here, that had to wait
    blocked_readers: float = 0.0  #: seconds that all reads together waited, until they went on
    blocked_writers: float = 0.0  #: seconds that all writes together waited, until they went on
    max_waiting_readers: int = 0  #: the longest waiting queue of readers
    max_waiting_writers: int = 0  #: the longest waiting queue of writers
    max_buffered: int = 0  #: the largest number of values that were in a buffer

    def _add(self, figures: dict[str, Any]) -> None:
        """Adds the figures that were measured at the same channels in another OS process."""
        for name, value in figures.items():
            if name != "name":
                mine = getattr(self, name)
                setattr(self, name, max(mine, value) if name.startswith("max") else mine + value)


class _Live:
    """A channel that was seen. fold() adds the values that have passed since the last call to the
    channel's row.
    """

    def __init__(self, channel: Any) -> None:
        stats = channel._stats()
        self.channel = channel
        self.name = channel.name
        self.used = False  # whether an operation of this OS process has used the channel
        self.transfers = stats.transfers
        self.dropped = stats.dropped
        self.waiting = [0, 0]  # the lengths of the waiting queues of readers and of writers

    def fold(self, rows: dict[str, ChannelMeasure]) -> None:
        """Adds the values that have passed to the channel's row in `rows`. If the channel is
        dropped afterwards, `rows` are the real rows, otherwise a copy of them.
        """
        stats = self.channel._stats()
        transfers, dropped = stats.transfers - self.transfers, stats.dropped - self.dropped
        if not (self.used or transfers or dropped):
            return
        row = rows.setdefault(self.name, ChannelMeasure(self.name))
        row.transfers += transfers
        row.dropped += dropped
        # The channel counts if it was made in this OS process.
        row.channels += type(self.channel) is _native.Channel

    @property
    def refers_alone(self) -> bool:
        # The two references are self.channel and the argument.
        return sys.getrefcount(self.channel) == 2


def _side(writes: bool) -> int:
    return _WRITERS if writes else _READERS


_Place = tuple[_Live, int]  # a channel, and the side of an operation there


class _Parked(NamedTuple):
    """A waiting operation."""

    since: int  # when the wait began, in ns
    places: list[_Place]


class Measurement:
    """The measurement of :func:`measuring`. It can be read during the measurement, and
    afterwards."""

    kind = "measure"

    def __init__(self) -> None:
        # name → its row, without the values that are still in _live
        self._rows: dict[str, ChannelMeasure] = {}
        self._live: dict[int, _Live] = {}  # id() of a channel → the channel
        self._targets: dict[int, Any] = {}  # process → the target of its operation
        self._parked: dict[int, _Parked] = {}  # process → its waiting operation
        self._elsewhere: dict[Any, dict[str, dict[str, Any]]] = {}  # OS process → rows, by name
        self._goes_on = False
        self._shares = _shares.Shares()  # the shares of time of the processes of this OS process
        #: The pids of OS processes that died or did not answer, so that a part of their figures is
        #: missing.
        self.lost: list[int] = []

    # --- reading ----------------------------------------------------------------------------------

    def rows(self) -> list[ChannelMeasure]:
        """Returns a row for each name. The rows with the most lost time are first."""
        if self._goes_on:
            _observers.tell_others()  # makes other OS processes send their figures
        rows = self._rows_here()
        for measured in list(self._elsewhere.values()):
            for name, figures in list(measured.items()):
                rows.setdefault(name, ChannelMeasure(name))._add(figures)
        for row in rows.values():
            row.channels = row.channels or 1
        return sorted(
            rows.values(), key=lambda r: (-(r.blocked_readers + r.blocked_writers), r.name)
        )

    def _rows_here(self) -> dict[str, ChannelMeasure]:
        rows = {name: ChannelMeasure(**asdict(row)) for name, row in list(self._rows.items())}
        for live in list(self._live.values()):
            live.fold(rows)
        return rows

    def _rows_sent(self) -> list[dict[str, Any]]:
        """Returns the rows of this OS process alone, in no order."""
        return [asdict(row) for row in self._rows_here().values()]

    @property
    def verdict(self) -> str:
        """Describes in one sentence where the time goes: which process of this OS process is the
        bottleneck, if there is one (rule 14.12).
        """
        return _verdict.verdict(self._shares.nodes()).text

    def __getitem__(self, channel: Any) -> ChannelMeasure:
        """Returns the row of a channel, or of a name. Raises KeyError if there is no row."""
        name = channel if isinstance(channel, str) else channel.name
        for row in self.rows():
            if row.name == name:
                return row
        raise KeyError(name)

    def json(self) -> str:
        """Returns the rows as a JSON array, with times in seconds."""
        import json

        return json.dumps([asdict(row) for row in self.rows()])

    def table(self, file: Any = None) -> None:
        """Prints the rows as a table to `file` (standard output if None)."""
        headings = (
            "channel",
            "passed",
            "dropped",
            "readers waited",
            "writers waited",
            "longest lines",
            "buffered",
        )
        lines: list[tuple[str, ...]] = [headings]
        for row in self.rows():
            lines.append(
                (
                    row.name if row.channels == 1 else f"{row.name} ({row.channels} of them)",
                    str(row.transfers),
                    str(row.dropped),
                    f"{row.blocked_readers:.6f} s",
                    f"{row.blocked_writers:.6f} s",
                    f"{row.max_waiting_readers} / {row.max_waiting_writers}",
                    str(row.max_buffered),
                )
            )
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        out = sys.stdout if file is None else file
        for first, *others in lines:
            cells = [first.ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
            print("  ".join(cells), file=out)
        print(f"where the time goes: {self.verdict}", file=out)
        for pid in self.lost:
            print(f"OS process {pid} was lost, and some of what it did is missing", file=out)

    # --- in other OS processes --------------------------------------------------------------------

    def _for_others(self) -> None:
        """Returns None, since another OS process needs no setting."""

    def _add_records(self, source: tuple[int, int], records: list[dict[str, Any]]) -> None:
        self._elsewhere.setdefault(source, {}).update({row["name"]: row for row in records})

    def _host_ended(self, pid: int) -> None:
        if pid not in self.lost:
            self.lost.append(pid)

    # --- observing --------------------------------------------------------------------------------

    def _begin(self) -> None:
        _observers.add(self._event)
        for channel in _native._lent():
            if not _observers.is_own(channel):
                self._seen(channel)
        self._goes_on = True

    def _end(self) -> None:
        self._goes_on = False
        _observers.remove(self._event)
        live, self._live = self._live, {}  # another thread might still be in _event()
        for one in list(live.values()):
            one.fold(self._rows)

    def _seen(self, channel: Any) -> _Live:
        live = self._live.get(id(channel))
        if live is None:
            if len(self._live) >= _SWEEP:
                self._sweep()
            live = self._live[id(channel)] = _Live(channel)
        return live

    def _used(self, channel: Any) -> _Live:
        """Does what _seen() does, for a channel at which there is an operation."""
        live = self._seen(channel)
        live.used = True
        return live

    def _row(self, live: _Live) -> ChannelMeasure:
        return self._rows.setdefault(live.name, ChannelMeasure(live.name))

    def _sweep(self) -> None:
        for key, live in list(self._live.items()):
            # If several threads reach this point, only one of them drops the channel.
            if live.refers_alone and self._live.pop(key, None) is live:
                live.fold(self._rows)

    def _places(self, operation: str | None, target: Any) -> list[_Place]:
        """Returns the places of an operation; for a select, one place for each enabled guard."""
        if isinstance(target, tuple):
            return [
                (self._used(end.channel), _side(kind == "output"))
                for kind, end, _, on, _ in target
                if on and kind in ("input", "output")
            ]
        channel = _observers.channel_of(target)
        return [] if channel is None else [(self._used(channel), _side(operation == "write"))]

    def _event(
        self, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        key = _observers.key_of(process)
        if process is not None:
            self._share(key, what, process, operation, target, detail)
        if what == "begin":
            self._targets[key] = target
            # This call makes the channels known, so that their transfers count from now on.
            self._places(operation, target)
        elif what == "park":
            places = self._places(
                operation, target if target is not None else self._targets.get(key)
            )
            for live, side in places:
                live.waiting[side] += 1
                row = self._row(live)
                if side == _WRITERS:
                    row.max_waiting_writers = max(row.max_waiting_writers, live.waiting[side])
                else:
                    row.max_waiting_readers = max(row.max_waiting_readers, live.waiting[side])
            self._parked[key] = _Parked(_native._steady_ns(), places)
        elif what in ("commit", "raise"):
            self._settled(key, what, operation, target, detail)
        elif what in ("end", "left"):
            self._targets.pop(key, None)
        elif what == "lent":
            self._seen(target)

    def _share(
        self, key: int, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        """Records, for the verdict, how the process spends its time."""
        now, shares = _native._steady_ns(), self._shares
        if not shares.knows(key):
            shares.seen(key, process.path, None, now)
        if what == "park":
            shares.begins(key, operation or "", now)
        elif what in ("commit", "raise"):
            places = self._outcome_at(what, operation, target, detail)
            select = isinstance(target, tuple)
            kind = (
                ("output" if places[0][1] == _WRITERS else "input") if select and places else None
            )
            channel = f"{places[0][0].name} {id(places[0][0])}" if places else None
            shares.done(key, operation or "", kind, channel, shares.waited(key, now))
        elif what in ("end", "left"):
            shares.over(key, now)

    def _settled(
        self, key: int, what: str, operation: str | None, target: Any, detail: Any
    ) -> None:
        self._targets.pop(key, None)
        parked = self._parked.pop(key, None)
        if parked is not None:
            for live, side in parked.places:
                live.waiting[side] -= 1
        for live, side in self._outcome_at(what, operation, target, detail):
            row = self._row(live)
            if parked is not None:
                seconds = (_native._steady_ns() - parked.since) * 1e-9
                if side == _WRITERS:
                    row.parked_writes += 1
                    row.blocked_writers += seconds
                else:
                    row.parked_reads += 1
                    row.blocked_readers += seconds
            if side == _WRITERS and what == "commit":
                row.max_buffered = max(row.max_buffered, live.channel._stats().buffered)

    def _outcome_at(
        self, what: str, operation: str | None, target: Any, detail: Any
    ) -> list[_Place]:
        """Returns a list with the place at which an operation had its outcome, or an empty list if
        a select chose no channel.
        """
        if not isinstance(target, tuple):
            return self._places(operation, target)
        if operation != "select":
            return []
        guard = detail[0] if what == "commit" else getattr(detail, "guard", None)
        if not isinstance(guard, int):
            return []
        kind, end, *_ = target[guard]
        if kind not in ("input", "output"):
            return []
        return [(self._used(end.channel), _side(kind == "output"))]


@contextlib.contextmanager
def measuring() -> Iterator[Measurement]:
    """Measures every channel used in the block (rule 14.4): `with measuring() as m: run(…)`, then
    `m.table()`, `m.json()`.
    """
    m = Measurement()
    try:
        m._begin()
        _observers.begin_everywhere(m)
        yield m
    finally:
        try:
            m._end()
        finally:
            _observers.end_everywhere(m)


_standing: Measurement | None = None


def measure(on: bool) -> Measurement | None:
    """Begins (True) or ends (False) a measurement of the whole program.

    Returns:
        The measurement that has begun, or the one that has ended; None if there was none.
    """
    global _standing
    before = _standing
    if before is not None:
        _standing = None
        before._end()
        _observers.end_everywhere(before)
    if not on:
        return before
    _standing = Measurement()
    _standing._begin()
    _observers.begin_everywhere(_standing)
    return _standing
