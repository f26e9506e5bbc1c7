"""One attempt at a call that is supervised (supervisor.py), as the code that runs the call sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft.errors import BadUse, Cancelled

__all__ = ["Attempt", "Terms"]


class Terms(NamedTuple):
    """What an OS process is told of how it is supervised (loops.py)."""

    redeliver: bool = False  #: `for job in jobs` holds each job until the loop asks for the next
    max_values: int | None = None  #: after so many values in such loops it is recycled
    max_age: float | None = None  #: after so many seconds
    max_memory: int | None = None  #: once it has so many bytes of memory

    @property
    def loops(self) -> int:
        """How its loops read: 0 as any other; bit 0 is set if it is recycled, bit 1 if it
        redelivers.
        """
        return 2 * self.redeliver + (self[1:] != (None, None, None))


class Attempt:
    """One attempt at a call. What it means for the ends is described at SupervisedPort in
    native/wire/far.hpp.
    """

    def __init__(self, last: bool, in_hand: list[Any] | None, terms: Terms | None = None) -> None:
        self.last = last  #: whether no attempt follows this one, as is known from the beginning
        self.in_hand = in_hand  #: the list for values in the attempt's hand; None: they go back
        self.terms = terms or Terms()
        self.died = False
        self.cancelled: Cancelled | None = None  #: the request to end that came before the death
        self.barriers: list[Any] = []
        self.pid: int | None = None
        self._ends: list[Any] = []
        self._read: list[tuple[str, list[Any]]] = []
        self._kill: Callable[[], None] | None = None
        self._stopped = False

    def give(self, link: Any, end: Any, name: str) -> None:
        """Gives an end to the OS process at the other side of the link, by this name."""
        lost: list[Any] = []
        if not isinstance(end, _native.Barrier):
            self._read.append((str(end.channel.name), lost))
            if not self.last:
                self._ends.append(end)
        link.give(end, name, self.last, self.in_hand, lost)

    def lost(self) -> list[tuple[str, Any]]:
        """Returns, once the attempt has died, the values that plain reads had given to it, with the
        names of their channels: the last of each end, unless it had asked for the next one. They
        are still packed.
        """
        return [(name, value) for name, values in self._read for value in values]

    def runs(self, pid: int, kill: Callable[[], None]) -> None:
        """The attempt runs in this OS process, which runs nothing else."""
        self.pid, self._kill = pid, kill
        if self._stopped:
            kill()

    def stop(self) -> None:
        """Kills the OS process of the attempt, or else the one in which it is about to run."""
        self._stopped = True
        if self._kill is not None:
            self._kill()

    def give_up(self) -> None:
        """No attempt follows, which was not known from the beginning: the ends have died (rule
        4.5).
        """
        for end in self._ends:
            with contextlib.suppress(BadUse):  # it is closed already
                end.die()
        if not self.last:
            for barrier in self.barriers:
                _native._barrier_dies(barrier)
