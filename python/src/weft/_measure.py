"""Where time is lost: for each channel how long readers and writers waited there (rule 14.4).

Invariants
- Channels of one name (made in one line of the program) share a row.
- A channel is kept alive while it is measured. From time to time those to which nothing else refers
  are added to their row and dropped, so that a program that makes many does not grow.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from weft import _observers
from weft._extension import native as _native

_SWEEP = 1024  # channels


@dataclass
class ChannelMeasure:
    """What was measured at the channels of one name."""

    name: str
    channels: int = 0  #: channels of this name
    transfers: int = 0  #: values passed
    dropped: int = 0  #: values dropped
    parked_reads: int = 0  #: reads, and selects that took an input here, that had to wait
    parked_writes: int = 0  #: writes, and selects that took an output here, that had to wait
    blocked_readers: float = 0.0  #: seconds that all reads together waited, until they went on
    blocked_writers: float = 0.0  #: seconds that all writes together waited
    max_waiting_readers: int = 0  #: the longest line of readers
    max_waiting_writers: int = 0  #: the longest line of writers
    max_buffered: int = 0  #: the most values that were in a buffer


class _Live:
    """A channel, since it was first seen."""

    def __init__(self, channel: Any, row: ChannelMeasure) -> None:
        stats = channel.stats()
        self.channel = channel
        self.row = row
        self.transfers = stats.transfers
        self.dropped = stats.dropped
        self.waiting = [0, 0]  # readers, writers
        row.channels += 1

    def fold(self, row: ChannelMeasure) -> None:
        stats = self.channel.stats()
        row.transfers += stats.transfers - self.transfers
        row.dropped += stats.dropped - self.dropped


class _Operation(NamedTuple):
    since: int
    places: list[tuple[_Live, int]]


class Measurement:
    """Made by :func:`measuring`. It can be read while it goes on, and afterwards."""

    def __init__(self) -> None:
        self._rows: dict[str, ChannelMeasure] = {}
        self._live: dict[int, _Live] = {}
        self._targets: dict[int, Any] = {}  # process → the target of its operation
        self._parked: dict[int, _Operation] = {}

    # --- reading ------------------------------------------------------------------------------------

    def rows(self) -> list[ChannelMeasure]:
        """A row for each name; those where most time was lost come first."""
        rows = {name: ChannelMeasure(**asdict(row)) for name, row in self._rows.items()}
        for live in self._live.values():
            live.fold(rows[live.row.name])
        return sorted(
            rows.values(), key=lambda r: (-(r.blocked_readers + r.blocked_writers), r.name)
        )

    def __getitem__(self, channel: Any) -> ChannelMeasure:
        """The row of a channel, or of a name. Raises KeyError if nothing happened there."""
        name = channel if isinstance(channel, str) else channel.name
        for row in self.rows():
            if row.name == name:
                return row
        raise KeyError(name)

    def json(self) -> str:
        """The rows as a JSON array, with times in seconds."""
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

    # --- observing ----------------------------------------------------------------------------------

    def _of(self, channel: Any) -> _Live:
        live = self._live.get(id(channel))
        if live is None:
            if len(self._live) >= _SWEEP:
                self._sweep()
            row = self._rows.setdefault(channel.name, ChannelMeasure(channel.name))
            live = self._live[id(channel)] = _Live(channel, row)
        return live

    def _sweep(self) -> None:
        for key, live in list(self._live.items()):
            if sys.getrefcount(live.channel) == 2:  # only live.channel and the argument refer to it
                live.fold(live.row)
                del self._live[key]

    def _places(self, operation: str | None, target: Any) -> list[tuple[_Live, int]]:
        if isinstance(target, tuple):
            return [
                (self._of(end.channel), int(kind == "output"))
                for kind, end, _, on, _ in target
                if on and kind in ("input", "output")
            ]
        channel = _observers.channel_of(target)
        return [] if channel is None else [(self._of(channel), int(operation == "write"))]

    def _event(
        self, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        key = _observers.key_of(process)
        if what == "begin":
            self._targets[key] = target
            self._places(operation, target)  # from here on its transfers count
        elif what == "park":
            places = self._places(
                operation, target if target is not None else self._targets.get(key)
            )
            for live, side in places:
                live.waiting[side] += 1
                if side:
                    live.row.max_waiting_writers = max(
                        live.row.max_waiting_writers, live.waiting[1]
                    )
                else:
                    live.row.max_waiting_readers = max(
                        live.row.max_waiting_readers, live.waiting[0]
                    )
            self._parked[key] = _Operation(_native._steady_ns(), places)
        elif what in ("commit", "raise"):
            self._settled(key, what, operation, target, detail)
        elif what in ("end", "left"):
            self._targets.pop(key, None)

    def _settled(
        self, key: int, what: str, operation: str | None, target: Any, detail: Any
    ) -> None:
        self._targets.pop(key, None)
        parked = self._parked.pop(key, None)
        if parked is not None:
            for live, side in parked.places:
                live.waiting[side] -= 1
        chosen: list[tuple[_Live, int]] = []
        if not isinstance(target, tuple):
            chosen = self._places(operation, target)
        elif operation == "select":
            guard = detail[0] if what == "commit" else getattr(detail, "guard", None)
            if isinstance(guard, int):
                kind, end, *_ = target[guard]
                if kind in ("input", "output"):
                    chosen = [(self._of(end.channel), int(kind == "output"))]
        for live, side in chosen:
            if parked is not None:
                seconds = (_native._steady_ns() - parked.since) * 1e-9
                if side:
                    live.row.parked_writes += 1
                    live.row.blocked_writers += seconds
                else:
                    live.row.parked_reads += 1
                    live.row.blocked_readers += seconds
            if side and what == "commit":
                live.row.max_buffered = max(live.row.max_buffered, live.channel.stats().buffered)


@contextlib.contextmanager
def measuring() -> Iterator[Measurement]:
    """Measures every channel used in the block (rule 14.4): `with measuring() as m: run(…)`, then
    `m.table()`, `m.json()`.
    """
    m = Measurement()
    _observers.add(m._event)
    try:
        yield m
    finally:
        _observers.remove(m._event)


_standing: Measurement | None = None


def measure(on: bool) -> Measurement | None:
    """Begins (True) or ends (False) a measurement of the whole program.

    Returns:
        The measurement that has begun, or the one that has ended; None if there was none.
    """
    global _standing
    before = _standing
    if before is not None:
        _observers.remove(before._event)
        _standing = None
    if not on:
        return before
    _standing = Measurement()
    _observers.add(_standing._event)
    return _standing
