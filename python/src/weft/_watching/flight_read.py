"""Reads files of the flight recorder (docs/flight.md): the figures that `weft trace` prints.

    file ──► python/native/watching/flight_file.cpp ──► sums, the critical path │ events
                                                              lines(): those of a trace ◄──┘

Invariants
- The events of a file are never all in memory.
- lines() yields the same lines as a trace of the same run (docs/observing.md), except for the
  beginnings of operations that did not wait: the time of such a beginning is the time of the
  outcome.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft._watching import flight_board as _board
from weft._watching import shares as _shares
from weft._watching import trace as _trace
from weft._watching import verdict as _verdict
from weft.errors import BadUse

MAGIC = b"\x89WEFT\n\x1a"
# the tags of runtime/flight.hpp
START, END, AWAY, WAITS, OVER = 0x82, 0x83, 0x84, 0x85, 0x86
OPS = (
    "read",
    "write",
    "extended read",
    "select",
    "select",
    "select",
    "sync",
    "sleep",
    "tick",
    "yield_",
    "wait for",
    "",
)
OUTCOMES = ("commit", "withdraw", "ended")
WHYS = ("Retired", "Poisoned", "PeerDied", "BadUse")
HOWS = ("returned", "Retired", "Poisoned", "Cancelled", "failed", "lost")
KINDS = {3: "input", 4: "output"}
DROPS, BARRIER = 1, 2
UNKNOWN_CLOCK = -1  #: the kUnknown of flight_file.hpp
WRITES = (1, 4)
# The order of these names is the order in flight_read.cpp.
_WAITS = ("reads", "writes", "time", "io", "waits")
_AT_A_TIME = 10_000


class Event(NamedTuple):
    t: int  #: ns since the first event
    tag: int
    process: int
    op: int
    place: int  #: -1 if there is none
    outcome: int  #: of an END: how the operation ended
    why: int
    guard: int  #: -1: none
    waited: int  #: how long the operation waited, in ns; -1 if it did not wait
    number: int  #: the number of a commit among the reads, or the writes, of its place
    text: str


@dataclass(frozen=True)
class Step:
    """A process's share of the critical path, in seconds."""

    path: str
    busy: float
    time: float  #: the time in which it waited for a time, or for something that is not a process
    late: float  #: the time in which it could go on, but did not run yet
    unknown: float  #: the time in which it waited for a process that is not in the file


@dataclass(frozen=True)
class Path_:
    """The critical path: the chain of hand-overs that the end of the run waited for."""

    seconds: float
    steps: list[Step]  #: the longest first
    #: (channel, from, to, how often), the most frequent first
    hands: list[tuple[str, str, str, int]]

    def text(self) -> str:
        """Returns the critical path in one sentence."""
        if not self.steps or not self.seconds:
            return "critical path: nothing waited for anything"

        def share(seconds: float) -> str:
            return _verdict.percent(seconds / self.seconds)

        parts = []
        for one in self.steps[:3]:
            does = [
                f"{word} {share(seconds)}"
                for word, seconds in (
                    ("busy", one.busy),
                    ("waits for time", one.time),
                    ("due", one.late),
                    ("waits for others", one.unknown),
                )
                if seconds / self.seconds >= 0.01
            ]
            if does:
                parts.append(f"`{one.path}` ({', '.join(does)})")
        sentence = (
            f"critical path of {self.seconds:.6f} s: {', '.join(parts) or 'very short steps'}"
        )
        count = sum(n for *_, n in self.hands)
        if count:
            channel, giver, taker, n = self.hands[0]
            sentence += f"; {count} hand-overs, most at '{channel}' ({giver} → {taker}, {n})"
        return sentence


def is_binary(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file is not a text, so that it might be a file of the flight recorder.
    Returns true also for an empty file.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(1) in (b"", MAGIC[:1])
    except OSError:
        return False


@contextlib.contextmanager
def _readable(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[str]]:
    """Yields the names of files that the extension can read. The bytes that a board has written are
    turned into such a file. The file is removed afterwards; the extension keeps it open.
    """
    with contextlib.ExitStack() as made:
        names = []
        for path in [os.fspath(p) for p in paths]:
            with contextlib.suppress(OSError), Path(path).open("rb") as file:
                if _board.is_of_a_board(file.read(len(_board.MAGIC))):
                    file.seek(0)
                    taken = _board.read(file.read())
                    folder = made.enter_context(tempfile.TemporaryDirectory(prefix="weft-trace-"))
                    path = str(Path(folder) / Path(path).name)
                    Path(path).write_bytes(_board.file_of(taken, None, ""))
            names.append(path)
        yield names


class Recorded:
    """Several files of the flight recorder, read as one.

    Raises:
        BadUse: one of the files cannot be read, or is not a file of the flight recorder.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        try:
            with _readable(paths) as names:
                self._files = _native._flight_open(names)
        except ValueError as error:
            raise BadUse(str(error)) from None
        self.several = len(paths) > 1
        self._names()

    def _names(self) -> None:
        found = _native._flight_names(self._files)
        #: first_ns: the time of the first event, on the clock that the files' times were brought to
        processes, places, self.heads, self.fault, self.first_ns = found
        self.processes: list[tuple[str, int, int]] = processes
        self.places: list[tuple[str, int]] = places

    def label(self, process: int) -> str:
        path, _, file = self.processes[process]
        pid, host, *_ = self.heads[file]
        # The path of a board's process begins with the name of the board.
        if not self.several or not pid:
            return path
        elsewhere = f" on {host}" if host != self.heads[0][1] else ""
        return f"{path} in OS process {pid}{elsewhere}"

    def exactness(self, file: int) -> str:
        """Returns how exact the times of this file are, such as "± 0.4 ms". Returns "" if they are
        of the clock of the file's own host, and "cannot be compared" if that clock was never
        compared with another.
        """
        within = self.heads[file][5]
        if within == UNKNOWN_CLOCK:
            return "cannot be compared"
        return "" if within < 0 else f"± {max(within, 1) / 1e6:.3g} ms"

    def clocks(self) -> list[str]:
        """Returns a line for each file whose times are not of the clock of the file's own host."""
        lines = []
        for file, (_, _, program, *_) in enumerate(self.heads):
            if self.heads[file][5] == UNKNOWN_CLOCK:
                if self.several:
                    lines.append(
                        f"the clock of {program} was compared with no other: its end stands at the "
                        "end of the others"
                    )
            elif exact := self.exactness(file):
                lines.append(f"the times of {program} are known to {exact}")
        return lines

    # --- sums -------------------------------------------------------------------------------------

    def summary(self) -> _trace.Summary:
        events, first, last, processes, places = _native._flight_summary(self._files)
        self._names()
        shares = _shares.Shares()
        shares.seen(None, "", None, first)
        del shares._all[None]
        shares._last = last
        rows, unfinished = [], []
        for i, (start, end, ended, done, waits, ins, outs, what, since) in enumerate(processes):
            path, number, file = self.processes[i]
            rows.append(_totals(self.label(i), done, waits))
            if number < 0:
                continue
            if not ended:
                unfinished.append(self.label(i))
            one = _shares._One(path, file, start, end if ended else None)
            one.waits = dict(zip(_WAITS, waits, strict=True))
            one.inputs = {self.places[p][0] for p in ins}
            one.outputs = {self.places[p][0] for p in outs}
            if what >= 0:
                one.since, one.what = since, _WAITS[what]
            shares._all[i] = one
        by_name: dict[str, tuple[list[int], list[int]]] = {}
        for (name, flags), (done, waits) in zip(self.places, places, strict=True):
            if not flags & BARRIER:
                sums = by_name.setdefault(name, ([0] * 3, [0] * 5))
                for total, more in zip(sums, (done, waits), strict=True):
                    total[:] = map(sum, zip(total, more, strict=True))
        return _trace.Summary(
            events,
            (last - first) * 1e-9,
            sorted(rows, key=lambda row: (-row.waited, row.name)),
            sorted(
                (_totals(name, *sums) for name, sums in by_name.items()),
                key=lambda row: (-row.waited, row.name),
            ),
            sorted(unfinished),
            bool(self.fault),
            [],
            [],
            _verdict.verdict(shares.nodes()).text,
        )

    def critical(self) -> Path_:
        whole, steps, hands = _native._flight_path(self._files)
        self._names()
        return Path_(
            whole * 1e-9,
            sorted(
                (
                    Step(self.label(p), busy * 1e-9, time * 1e-9, late * 1e-9, unknown * 1e-9)
                    for p, busy, time, unknown, late in steps
                ),
                key=lambda step: -(step.busy + step.time + step.late + step.unknown),
            ),
            sorted(
                (
                    (self.places[place][0], self.label(giver), self.label(taker), n)
                    for place, giver, taker, n in hands
                ),
                key=lambda hand: (-hand[3], hand[:3]),
            ),
        )

    # --- the events, in order
    # -------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Yields all events in the order of their times. Only one such iterator may be read at a
        time.
        """
        _native._flight_rewind(self._files)
        while some := _native._flight_next(self._files, _AT_A_TIME):
            self._names()
            yield from map(Event._make, some)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yields the events as the lines of a trace (docs/observing.md)."""
        for event in self.events():
            yield from self._lines_of(event)

    def _lines_of(self, event: Event) -> Iterator[dict[str, Any]]:
        path, number, file = self.processes[event.process]
        who: dict[str, Any] = {"id": number, "p": path}
        if self.several:
            sign = 1 if number >= 0 else -1
            who = {
                "id": number + sign * ((file + 1) << 32),
                "p": path,
                "pid": self.heads[file][0],
            }
        match event.tag:
            case 0x82:
                yield {"t": event.t, "e": "start", **who}
            case 0x83:
                line = {"t": event.t, "e": "end", **who, "how": HOWS[min(event.outcome, 5)]}
                yield line | ({"error": event.text} if event.text else {})
            case 0x84:
                inside = event.text.removeprefix("OS process ")
                where = int(inside) if inside.isdecimal() else event.text
                yield {"t": event.t, "e": "away", **who, "in": where}
            case 0x85:
                yield {"t": event.t - event.waited, "e": "begin", **who, **self._at(event)}
            case _:
                at = self._at(event)
                begin = {
                    key: at[key] for key in ("op", "c") if key in at and event.op not in (3, 4)
                }
                yield {"t": event.t - max(event.waited, 0), "e": "begin", **who} | (
                    begin or {"op": "select"}
                )
                line = {"t": event.t, "e": OUTCOMES[event.outcome], **who, **at}
                line["waited"] = max(event.waited, 0)
                if event.outcome:
                    line["why"] = "Cancelled" if event.outcome == 1 else WHYS[event.why]
                yield line

    def _at(self, event: Event) -> dict[str, Any]:
        found: dict[str, Any] = {"op": OPS[event.op] or event.text or "?"}
        if event.place >= 0 and not self.places[event.place][1] & BARRIER:
            found["c"] = self.places[event.place][0]
        if event.guard >= 0:
            found["guard"] = event.guard
            if event.op in KINDS:
                found["kind"] = KINDS[event.op]
        return found


def _totals(name: str, done: Sequence[int], waits: Sequence[int]) -> _trace.Totals:
    commit, withdrawn, ended = done
    return _trace.Totals(
        name, commit, withdrawn, ended, waits[0] * 1e-9, waits[1] * 1e-9, sum(waits) * 1e-9
    )
