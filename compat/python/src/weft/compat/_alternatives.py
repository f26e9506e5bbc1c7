"""The parts that the layers for aPyCSP and for PyCSP-locksharing share: in both, a channel has one
read end and one write end, poison without strength, and alternatives that take the first ready
guard.

Invariants
- A channel keeps its two native ends for as long as it exists: only poison ends the channel.
- The guard that a select returns is the object that the alternative was given.
"""

from __future__ import annotations

import collections
import os
import sys
from types import FrameType
from typing import Any

from weft import threads as _weft
from weft.errors import BadUse, Poisoned

__all__ = [
    "AnyAlternative",
    "AnyChannel",
    "ChannelEnd",
    "Guard",
    "PendingChanWriteGuard",
    "PoisonException",
    "Skip",
    "Timer",
]

PoisonException = Poisoned


class Guard:
    """The base of the guards of an alternative: a read end, a pending write, Skip, Timer.

    Guards of the program's own, with enable and disable, are not supported; a channel can take
    their place.
    """

    _native: Any = None


class Skip(Guard):
    """A guard that is always ready."""

    def __init__(self) -> None:
        self._native = _weft.skip()


class Timer(Guard):
    """A guard that is ready when `seconds` have passed since the select began; it may be used
    again."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._native = _weft.after(seconds)

    def __repr__(self) -> str:
        return f"<Timer ({self.seconds} S)>"


class PendingChanWriteGuard(Guard):
    """A write that is performed if its guard is chosen."""

    def __init__(self, chan: AnyChannel, obj: Any) -> None:
        self.chan = chan
        self.obj = obj
        self._native = _weft.Output(chan._writer, obj)

    def __repr__(self) -> str:
        return f"<PendingChanWriteGuard for {self.chan.name}>"


class ChannelEnd:
    """The base of both ends."""

    _chan: Any

    def __init__(self, chan: Any) -> None:
        self._chan = chan

    def channel(self) -> Any:
        """Returns the channel of this end."""
        return self._chan

    def __repr__(self) -> str:
        return f"<{type(self).__name__} wrapping {self._chan}>"


def born(frame: FrameType | None) -> str:
    """Returns the name that Weft gives to a channel without a name: the place where the program
    made it (rule 1.7).
    """
    while frame and frame.f_globals.get("__name__", "").startswith("weft.compat"):
        frame = frame.f_back
    if frame is None:
        return "channel"
    return f"{frame.f_code.co_filename.rpartition(os.sep)[2]}:{frame.f_lineno}"


class AnyChannel:
    """The base of the channels of both layers; `name` is a label."""

    _limit: dict[str, Any] = {}  # noqa: RUF012 - never changed; of the native channel

    def __init__(self, name: str = "") -> None:
        self._native: Any = _weft.Channel(name or born(sys._getframe(1)), **self._limit)
        self._reader = self._native.reader()
        self._writer = self._native.writer()
        self._sent = 0  # how many writes to a buffered channel have completed
        self.name = name
        self.poisoned = False

    def queue_len(self) -> int:
        """Returns how many operations wait, and how many values are in a buffered channel."""
        s = self._native.stats()
        held = self._sent - s.transfers - s.dropped if self._limit else 0
        return int(s.waiting_readers + s.waiting_writers + held)

    @property
    def queue(self) -> collections.deque[str]:
        """Returns the operations that wait, as an "r" or a "w" for each."""
        s = self._native.stats()
        return collections.deque("r" * s.waiting_readers + "w" * s.waiting_writers)

    def verify(self) -> bool:
        """Returns True: a channel never has both readers and writers waiting, and no operation
        waits at a poisoned channel.
        """
        s = self._native.stats()
        assert not (s.waiting_readers and s.waiting_writers)
        assert not (self.poisoned and (s.waiting_readers or s.waiting_writers))
        return True

    def _poison(self) -> None:
        self.poisoned = True
        self._native.poison()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} ql={self.queue_len()} p={self.poisoned}>"


class AnyAlternative:
    """A choice between guards. If several are ready, the first in the list is taken.

    Raises:
        BadUse: there is no guard, or one of the objects is not a guard.
    """

    def __init__(self, *guards: Any) -> None:
        self.guards = guards
        self._natives = [self._native_of(g) for g in guards]

    @staticmethod
    def _native_of(guard: Any) -> Any:
        native = getattr(guard, "_native", None)
        if not isinstance(guard, Guard) or native is None:
            raise BadUse(
                f"Alternative with {guard!r}: it takes a channel's read end, write.alt_pending_write(value), Skip() and "
                "Timer(seconds)"
            )
        return native

    def _outcome(self, index: int, value: Any) -> tuple[Any, Any]:
        """Returns the outcome of a select: the guard, and either the value that was read or the
        result of the write."""
        guard = self.guards[index]
        if not isinstance(guard, PendingChanWriteGuard):
            return guard, value
        guard.chan._sent += 1
        return guard, 0
