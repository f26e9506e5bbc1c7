"""A schedule, line by line: an observer that records what each process does while a schedule is
replayed.

       1  main/clerk      select orders, news   shop.py:19   waits, until 4
       2  main/customer   write orders 'pen'    shop.py:8    done

Invariants
- A line is made when an operation begins, and completed when the operation has its outcome. "until
  4" means: line 4 was the last one when the process went on.
- After a deadlock or a failure the processes only clear up (rules 7.2, 10.1): their operations then
  have no lines.
- Of the program's objects only the repr is used, which may fail.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weft._checking.patches import place
from weft._watching import observers as _observers
from weft.errors import Cancelled

_LONGEST = 24  # how many characters of a value are shown
_MAX_LINES = 400  # how many lines of a long schedule are shown; these are the last ones
_FOR_EVER = "waits for ever"


@dataclass
class Line:
    number: int
    key: int
    what: str
    at: str
    outcome: str = ""
    waits: bool = False
    path: str = ""


def shown(value: object) -> str:
    """Returns the repr of a value, shortened to a few characters."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr fails: {type(error).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Teller:
    """Observes one run, and keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.left_out = 0
        self._count = 0
        self._open: dict[int, Line] = {}  # process → the line of its operation
        self._over = False  # whether the processes are clearing up
        # Process → its last path. A path gets an index when a second process of that name is
        # started.
        self._paths: dict[int, str] = {}

    @contextlib.contextmanager
    def observing(self) -> Iterator[None]:
        try:
            with _observers.observing_this_thread(self.event):
                yield
        finally:
            for line in self.lines:
                line.path = self._paths.get(line.key, "main")

    def event(
        self, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        """The observer function that is registered with weft._watching.observers."""
        key = _observers.key_of(process)
        if process is not None and what in ("start", "begin", "commit", "raise", "end", "left"):
            self._paths[key] = process.path
        if what == "begin":
            if self._over or operation == "wait for":
                return
            value = f" {shown(detail)}" if operation == "write" else ""
            where = _target(target)
            text = f"{operation} {where}{value}" if where else f"{operation}{value}"
            self._open[key] = self._line(key, text, str(place()))
        elif what == "park":
            if key in self._open:
                self._open[key].waits = True
        elif what == "commit":
            line = self._open.pop(key, None)
            if line is not None:
                self._commit(line, operation, target, detail)
        elif what == "raise":
            line = self._open.pop(key, None)
            if isinstance(detail, Cancelled):
                self._over = True
                if line is not None:
                    line.outcome = _FOR_EVER
            elif line is not None:
                kind = "the channel has retired" if detail is None else type(detail).__name__
                if isinstance(detail, StopAsyncIteration):
                    kind = "the channel has retired"
                self._complete(line, kind)
        elif what == "left":
            if not isinstance(detail, Cancelled) and not self._over:
                self._line(key, f"ends: {type(detail).__name__}", "")
        elif what == "end" and not self._over:
            self._line(key, "ends", "")

    def _line(self, key: int, what: str, at: str) -> Line:
        self._count += 1
        line = Line(self._count, key, what, at)
        self.lines.append(line)
        if len(self.lines) > 2 * _MAX_LINES:
            self.left_out += _MAX_LINES
            del self.lines[:_MAX_LINES]
        return line

    def _complete(self, line: Line, outcome: str) -> None:
        if line.waits and self._count > line.number:
            outcome = f"waits, until {self._count}" + ("" if outcome == "done" else f": {outcome}")
        line.outcome = outcome

    def _commit(self, line: Line, operation: str | None, target: Any, detail: Any) -> None:
        outcome = "done"
        if operation == "select" and isinstance(detail, tuple) and len(detail) == 2:
            guard, value = detail
            outcome = f"takes guard {guard}"
            with contextlib.suppress(Exception):
                kind, end, *_ = target[guard]
                name = _name(end)
                outcome = f"{_VERBS.get(kind, kind)} {name}".strip()
                if kind != "output" and value is not None:
                    outcome += f": {shown(value)}"
        elif operation in ("read", "extended read"):
            outcome = f"takes {shown(detail)}"
        self._complete(line, outcome)

    # --- as text ---

    def text(self, deadlock: bool = False) -> str:
        """Returns all lines. With `deadlock`, a cancelled operation is shown as waiting forever."""
        lines = self.lines[-_MAX_LINES:]
        left_out = self.left_out + len(self.lines) - len(lines)
        paths = max((len(line.path) for line in lines), default=0)
        whats = min(40, max((len(line.what) for line in lines), default=0))
        places = max((len(line.at) for line in lines), default=0)
        rows = [f"      ({left_out} lines before)"] if left_out else []
        for line in lines:
            outcome = line.outcome
            if outcome == _FOR_EVER and not deadlock:
                outcome = "is cancelled"
            elif not outcome and line.at:
                outcome = "waits" if line.waits else ""
            rows.append(
                f"{line.number:4}  {line.path:{paths}}  {line.what:{whats}}  {line.at:{places}}  {outcome}".rstrip()
            )
        return "\n".join(rows)

    def differs(self, other: Teller) -> str:
        """Returns a sentence about the first line in which another run differs; empty if no line
        differs.
        """
        for mine, its in itertools.zip_longest(self.lines, other.lines):
            if _step(mine) != _step(its):
                return f"line {(mine or its).number} is {_line_text(mine)} in one run, and {_line_text(its)} in the next"
        return ""

    def cycle(self) -> str:
        """Returns the steps that repeat at the end of the run, each once; empty if no steps
        repeat.
        """
        steps = [(line.path, line.what.split(" ", 2)[:2], line.at) for line in self.lines]
        for period in range(1, len(steps) // 3 + 1):
            last = steps[-period:]
            if last == steps[-2 * period : -period] == steps[-3 * period : -2 * period]:
                rows = [f"      {path}  {' '.join(what)}  {at}".rstrip() for path, what, at in last]
                return "\n".join(rows)
        return ""


def _step(line: Line | None) -> tuple[str, ...]:
    return () if line is None else (line.path, line.what, line.at, line.outcome)


def _line_text(line: Line | None) -> str:
    if line is None:
        return "the end of the run"
    return " ".join(f"{line.path}: {line.what} {line.at} {line.outcome}".split())


_VERBS = {"input": "reads", "output": "writes", "after": "time", "timer": "time", "at": "time"}


def _name(end: Any) -> str:
    channel = _observers.channel_of(end)
    return (channel.name or "") if channel is not None else ""


def _target(target: Any) -> str:
    if isinstance(target, tuple):
        guards = []
        for kind, end, _, on, *_rest in target:
            if on:
                name = _name(end)
                guards.append(f"!{name}" if kind == "output" else name or str(kind))
        return ", ".join(guards)
    if target is None or isinstance(target, list):
        return ""
    return _name(target)
