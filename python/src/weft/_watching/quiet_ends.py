"""Names the processes that the end of a channel has ended, and the guards that fell silent (rules
3.5, 4.3, 5.6).

If `Retired` or `Poisoned` leaves a process, the process ends quietly. That may be a sign of a
mistake: a single `read` where a loop was meant, or a network that closes from the wrong side. A
loop that ends with its channel is not named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft._watching import observers as _observers
from weft.errors import ChannelEnd, PeerDied


class Left(NamedTuple):
    """A process that ended quietly because of the end of a channel."""

    path: str
    how: str  #: "Retired" or "Poisoned"
    channel: str
    file: str
    line: int  #: the line of the operation

    def __str__(self) -> str:
        return f"process {self.path}{self.without_path()}"

    def without_path(self) -> str:
        return f" was left by {self.how}: channel {self.channel}, at {self.file}:{self.line}"


def is_quiet(error: BaseException) -> bool:
    """Returns whether the exception is an end of a channel after which a process ends quietly."""
    kind = type(error)
    return issubclass(kind, ChannelEnd) and not issubclass(kind, PeerDied) and error.met  # type: ignore[attr-defined]


def place_of(error: BaseException) -> tuple[str, int]:
    """Returns the line of the call of the operation that raised the exception: the innermost line
    outside this package.
    """
    at: TracebackType | None = error.__traceback__
    file, line = "?", 0
    while at is not None:
        if not _observers.is_ours(at.tb_frame):
            file, line = at.tb_frame.f_code.co_filename, at.tb_lineno
        at = at.tb_next
    return file, line


def place_in(process: Any, error: BaseException | None = None) -> tuple[str, int]:
    """Returns where a process is, or where it was when `error` was raised. The process of a
    component has no frames, but itself reports the source line of its operation.
    """
    place: tuple[str, int] | None = _native._component_place(process)
    if place is not None:
        return place
    return caller() if error is None else place_of(error)


def caller() -> tuple[str, int]:
    """Returns where the program is: the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _observers.is_ours(frame):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def left_by(process: Any, error: BaseException) -> Left | None:
    """Returns how the end of a channel ended the process, or None if no quiet end of a channel did
    so.
    """
    if not is_quiet(error):
        return None
    channel = getattr(error, "channel", None)
    name = getattr(channel, "name", None) or "?"
    return Left(process.path, type(error).__name__, name, *place_in(process, error))


class Naming:
    """Reports which processes were ended by the end of a channel and, with `guards`, which guards
    fell silent, each guard once per process. Between begin() and end() other OS processes are
    included (rule 14.7).

    Args:
        say: called with a line of text.
        guards: whether guards are reported.
    """

    kind = "leaving"

    def __init__(self, say: Callable[[str], object], guards: bool = True) -> None:
        self._say = say
        self._guards = guards
        # Process → the guards that were reported, as (kind, channel).
        self._named: dict[int, set[tuple[str, int]]] = {}
        # processes that run in another OS process, which reports them itself
        self._away: set[int] = set()

    def begin(self) -> None:
        _observers.add(self.event)
        _observers.begin_everywhere(self)

    def end(self) -> None:
        """Ends the reports. Does nothing if they have not begun."""
        _observers.remove(self.event)
        _observers.end_everywhere(self)

    def event(
        self, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        """The observer that is registered with weft._watching.observers."""
        key = _observers.key_of(process)
        if what == "away":
            if isinstance(detail, int):  # a host of a network reports nothing
                self._away.add(key)
        elif what in ("left", "end"):
            self._named.pop(key, None)
            left = left_by(process, detail) if what == "left" and key not in self._away else None
            self._away.discard(key)
            if left is not None:
                self._tell(process, left.without_path())
        elif self._guards and operation == "select" and what in ("commit", "raise"):
            self._silent(process, target or ())

    def _silent(self, process: Any, guards: Any) -> None:
        for index, (kind, end, _, _, silent) in enumerate(guards):
            channel = _observers.channel_of(end)
            if not silent or channel is None:
                continue
            named = self._named.setdefault(_observers.key_of(process), set())
            if (kind, id(channel)) in named:
                continue
            named.add((kind, id(channel)))
            file, line = place_in(process)
            self._tell(
                process,
                f": guard {index} ({kind} {channel.name}) of its select fell silent: the channel has "
                f"retired, at {file}:{line}",
            )

    def _tell(self, process: Any, what: str) -> None:
        who = f"process {process.path}" if process is not None else "the program"
        self._say(who + what)

    # --- in other OS processes ------------------------------------------------------------------

    def _for_others(self) -> bool:
        return self._guards

    def _add_records(self, source: tuple[int, int], records: list[dict[str, Any]]) -> None:
        for r in records:
            who = f"process {r['p']} in OS process" if r["p"] else "OS process"
            self._say(f"{who} {source[0]}{r['text']}")

    def _host_ended(self, pid: int) -> None:
        """Does nothing: quiet ends in that OS process that were not reported yet are lost."""
