"""One attempt at a supervised call (supervisor.py), as the code that runs the call sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft.errors import BadUse, Cancelled

__all__ = ["Attempt", "Terms"]


class Terms(NamedTuple):
    """The terms on which an OS process is supervised, as far as its loops need them (loops.py)."""

    redeliver: bool = False  #: whether `for job in jobs` holds each job until it asks for the next
    max_values: int | None = None  #: the process is recycled after this many values of its loops
    max_age: float | None = None  #: the process is recycled after this many seconds
    max_memory: int | None = None  #: the process is recycled once it has this many bytes of memory

    @property
    def loops(self) -> int:
        """How `for` loops over readers read in the process. 0: as in any other process. Bit 0 is
        set if the process is recycled, bit 1 if its loops redeliver.
        """
        return 2 * self.redeliver + (self[1:] != (None, None, None))


class Attempt:
    """One attempt at a call. SupervisedPort in native/wire/far.hpp says what an attempt means for
    its ends.
    """

    def __init__(self, last: bool, in_hand: list[Any] | None, terms: Terms | None = None) -> None:
        self.last = last  #: whether it is known from the beginning that no attempt follows
        #: a list for the values that the attempt holds; if None, these values go back to their
        #: channels
        self.in_hand = in_hand
        self.terms = terms or Terms()
        self.died = False
        self.cancelled: Cancelled | None = None  #: the request to end, if one came before the death
        self.barriers: list[Any] = []
        self.pid: int | None = None
        self._ends: list[Any] = []
        self._read: list[tuple[str, list[Any]]] = []
        self._kill: Callable[[], None] | None = None
        self._stopped = False

    def give(self, link: Any, end: Any, name: str) -> None:
        """Gives an end to the OS process at the other end of the link, under the name `name`."""
        lost: list[Any] = []
        if not isinstance(end, _native.Barrier):
            self._read.append((str(end.channel.name), lost))
            if not self.last:
                self._ends.append(end)
        link.give(end, name, self.last, self.in_hand, lost)

    def lost(self) -> list[tuple[str, Any]]:
        """Returns the values that are lost with the attempt, once it has died, and the names of
        their channels. For each end this is the last value that a plain read had given to the
        attempt, unless the attempt had asked for the next one. The values are still packed.
        """
        return [(name, value) for name, values in self._read for value in values]

    def runs(self, pid: int, kill: Callable[[], None]) -> None:
        """Records that the attempt runs in the OS process `pid`, which runs nothing else."""
        self.pid, self._kill = pid, kill
        if self._stopped:
            kill()

    def stop(self) -> None:
        """Kills the OS process of the attempt; if there is none yet, the OS process is killed as
        soon as it exists.
        """
        self._stopped = True
        if self._kill is not None:
            self._kill()

    def give_up(self) -> None:
        """Lets the ends die (rule 4.5), because no attempt follows. It was not known from the
        beginning that this attempt is the last.
        """
        for end in self._ends:
            with contextlib.suppress(BadUse):  # the end is already closed
                end.die()
        if not self.last:
            for barrier in self.barriers:
                _native._barrier_dies(barrier)
