"""Finds what a look shows of boards (rule 14.20): the ends that a board holds, and those at which
it waits.

    serial.Board ──► Board, one of the boards of this program
    Boards ──sample()──► counts for each process of a board ──add_to()──► rows of an answer

Invariants
- A board is asked nothing: the home of a channel, which is this program, knows the operations that
  a board has open there. So a board whose link has ended has no row.
- A process that waits at none of these ends does something that this program does not see. Its
  state is "io".
"""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from weft.errors import BadUse


class Process(Protocol):
    """A process on a board."""

    path: str
    #: the number of the process that stands for it in this program; None: no process does
    stands_in: int | None


@dataclass
class _Whole:
    """A whole board, of whose program nothing is known, as one process."""

    path: str
    stands_in: int | None = None


class Board:
    """A board that is shown in looks until close() is called, or until nothing refers to this
    object.

    Args:
        where: the board's name for messages.
        link: the _native._Link to the board.
    """

    def __init__(self, where: str, link: Any) -> None:
        *_, above, last = "", "", *where.split("/")
        device = above + last if last.isdigit() else last  # "pts1" for /dev/pts/1
        base = re.sub(r"[^\w.-]", "", device) if "/" in where else "board"
        base = base or "board"
        taken: set[str] = {board.name for board in _boards}
        names = (base, *(f"{base}-{i}" for i in range(2, len(taken) + 3)))
        #: a name that no other board of this program has
        self.name: str = next(name for name in names if name not in taken)
        self.where, self.link = where, link
        self.given: dict[int, str] = {}  #: the names of the ends, by the link's numbers
        #: Returns the processes on the board, and who holds which end, from `given`. None: the
        #: board is one process.
        self.parts: Callable[[dict[int, str]], tuple[Sequence[Process], dict[int, Process]]] | None
        self.parts = None
        self._whole = _Whole("program")
        _boards.add(self)

    def close(self) -> None:
        _boards.discard(self)

    def who_holds(self) -> tuple[Sequence[Process], dict[int, Process]]:
        """Returns the processes on the board, and who holds which end, by the end's number. An end
        without a holder is one of Weft's own.
        """
        given = dict(self.given)
        if self.parts is not None:
            return self.parts(given)
        own = {n: name for n, name in given.items() if not name.startswith("weft.")}
        return [self._whole], dict.fromkeys(own, self._whole)


_boards: weakref.WeakSet[Board] = weakref.WeakSet()


@dataclass
class _Seen:
    """What the samples have found of one process."""

    now: str = ""
    since: float = 0.0
    before: bool = True
    found: dict[str, int] = field(default_factory=dict)
    holds: list[tuple[str, bool]] = field(default_factory=list)
    waits: list[tuple[str, bool]] = field(default_factory=list)


class _End(NamedTuple):
    """An end that a board holds, and the figures of its channel."""

    number: int
    key: int
    writes: bool
    waits: bool
    name: str
    passed: int
    dropped: int
    depth: int
    capacity: int


class Boards:
    """The looks of one visitor at the boards of this program."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[Process, Board, _Seen]] = {}
        #: the channels of the interval: as they were at its first sample, and as they are now
        self._channels: dict[str, tuple[_End, _End]] = {}

    def begin(self) -> None:
        """Begins an interval: earlier samples do not count."""
        for _, _, seen in self._seen.values():
            seen.found = {}
        self._channels = {}

    def sample(self) -> None:
        """Takes one sample."""
        if not _boards and not self._seen:
            return
        met: dict[tuple[str, str], tuple[Process, Board, _Seen]] = {}
        for board in list(_boards):
            try:
                processes, holders = board.who_holds()
                ends = [_End(*end) for end in board.link.ends()]
            except BadUse:  # the session has ended, or the link is closed
                continue
            held: dict[int, list[tuple[str, bool, bool]]] = {}
            for end in ends:
                if end.number in holders:
                    key = str(end.key)
                    self._channels[key] = self._channels.get(key, (end, end))[0], end
                    held.setdefault(id(holders[end.number]), []).append(
                        (key, end.writes, end.waits)
                    )
            for process in processes:
                _, _, seen = self._seen.get((board.name, process.path), (None, None, _Seen()))
                _count(seen, held.get(id(process), []))
                met[board.name, process.path] = process, board, seen
        self._seen = met

    def add_to(
        self, processes: list[dict[str, Any]], channels: dict[str, Any], seconds: float
    ) -> None:
        """Adds the processes of boards, and their channels, to the rows of an answer about an
        interval of so many seconds. The row of a process that stands for a process on a board
        becomes the row of that process.
        """
        for key, (first, end) in self._channels.items():
            if key not in channels:  # no process of this program holds an end
                passed = max(end.passed - first.passed, 0)
                channels[key] = {
                    "name": end.name.strip("'"),
                    "passed": passed,
                    "rate": passed / seconds,
                    "dropped": max(end.dropped - first.dropped, 0),
                    "depth": end.depth,
                    "capacity": end.capacity,
                    "reading": 0.0,
                    "writing": 0.0,
                    "readers": 0,
                    "writers": 0,
                }
        rows = {row["id"]: row for row in processes}
        own: list[str] = []  # Weft's own channels to the board's processes
        for i, (process, board, seen) in enumerate(self._seen.values(), 1):
            row = rows.get(process.stands_in or 0)
            if row is None:
                row = {"id": -i, "parent": 0, "path": process.path}
                processes.append(row)
            own += [key for key, _ in (*row.get("holds", ()), *row.get("waits", ()))]
            samples = sum(seen.found.values()) or 1
            row |= {
                "board": board.name,
                "kind": "board",
                "now": seen.now,
                "for": time.monotonic() - seen.since,
                "before": seen.before,
                "does": _does(seen, board.where, channels),
                "share": {state: n / samples for state, n in seen.found.items()},
                "cpu": None,
                "holds": [list(end) for end in seen.holds],
                "waits": [list(end) for end in seen.waits],
            }
            for side, state in (("reading", "reads"), ("writing", "writes")):
                for key, writes in seen.waits:
                    if key in channels and writes == (side == "writing"):
                        share = row["share"].get(state, 0.0)
                        channels[key][side] = max(channels[key][side], share)
        held = {key for row in processes for key, _ in row["holds"]}
        for key in own:
            if key not in held:
                channels.pop(key, None)


def _count(seen: _Seen, ends: list[tuple[str, bool, bool]]) -> None:
    seen.holds = [(key, writes) for key, writes, _ in ends]
    seen.waits = [(key, writes) for key, writes, waits in ends if waits]
    sides = {writes for _, writes in seen.waits}
    now = {0: "io", 1: "writes" if True in sides else "reads", 2: "either"}[len(sides)]
    if now != seen.now:
        seen.before = not seen.now
        seen.now, seen.since = now, time.monotonic()
    seen.found[now] = seen.found.get(now, 0) + 1


def _does(seen: _Seen, where: str, channels: dict[str, Any]) -> str:
    at = f"on the board at {where}"
    names = ", ".join(f"'{channels[key]['name']}'" for key, _ in seen.waits if key in channels)
    if not names:
        return at
    verb = {"reads": "read", "writes": "write"}.get(seen.now, "select")
    return f"{verb} {names} {at}"
