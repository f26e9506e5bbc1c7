"""Partial deadlock: processes that will never be woken by anything that can still run (rules 10.5,
14.3).

From the facts of one moment (python/native/partial.cpp) the processes that may go on are found, as
a least fixed point (cpp/include/weft/runtime/going_on.hpp):

- a process that runs, is due to run, sleeps, has a timer in its select, or was cancelled, may go
  on;
- a process that waits at a channel may go on if a process that may go on holds an end of it, if one
  of its ends is held by no known process (but by a local variable, a value under way, another
  thread), or if its other side never had an end; a guard that is silent, since its channel has
  retired, does not count;
- a process that waits at a barrier may go on if any process elsewhere may;
- a process that waits for its children may go on if all of them may.

The others are stuck. (Ends of either side count, since the holder of any end may poison it.)
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from weft._extension import native as _native
from weft.errors import BadUse, BlockedProcess, Deadlock, WeftWarning

Action = Literal["warn", "raise"]


class Place(NamedTuple):
    """A channel or barrier at which a process waits. Holders are the numbers of processes."""

    name: str
    is_channel: bool
    readers: tuple[int, ...]
    writers: tuple[int, ...]
    unknown_readers: int  #: open ends that no process is known to hold
    unknown_writers: int


class Waiter(NamedTuple):
    """A process at one moment."""

    id: int
    path: str
    operation: str
    at: str
    parent: int
    state: str  #: "able", "places" or "children"
    places: list[tuple[int, bool]]  #: key of the place, and whether it writes
    #: channels that have ended for its select: no partner will come there (rule 5.6)
    silent: Sequence[str] = ()
    may_go_on: bool = True


class Stuck(NamedTuple):
    """One process that is stuck."""

    path: str
    operation: str
    places: tuple[str, ...]  #: channels and barriers
    at: str  #: file:line
    waits_for: tuple[str, ...]  #: paths of the processes that hold ends there; all are stuck


class PartialDeadlock:
    """What :func:`deadlocks` has found; false if nothing.

    Attributes:
        processes: the stuck processes, by path, without those that only wait for stuck children.
    """

    def __init__(self, processes: list[Stuck], ids: frozenset[int]) -> None:
        self.processes = processes
        self._ids = ids

    def __bool__(self) -> bool:
        return bool(self.processes)

    def __str__(self) -> str:
        n = len(self.processes)
        if n == 0:
            return "no process is stuck"
        lines = [
            f"{n} process{' is' if n == 1 else 'es are'} stuck: nothing that can run holds an end there"
        ]
        for p in self.processes:
            if not p.places:  # a time that never comes
                lines.append(f"  {p.path}: {p.operation} at {p.at}")
                continue
            who = " and ".join(p.waits_for) if p.waits_for else "nobody"
            lines.append(
                f"  {p.path}: {p.operation} {', '.join(p.places)} at {p.at}; held by {who}"
            )
        return "\n".join(lines)

    __repr__ = __str__


def _found(waiters: dict[int, Waiter], places: dict[int, Place]) -> tuple[list[Stuck], set[int]]:
    stuck = [w for w in waiters.values() if not w.may_go_on and w.state == "places"]
    rows = []
    for w in stuck:
        holders: set[int] = set()
        for key, writing in w.places:
            place = places[key]
            if place.is_channel:
                holders.update(place.readers if writing else place.writers)
        rows.append(
            Stuck(
                w.path,
                w.operation,
                (
                    *(places[key].name for key, _ in w.places),
                    *(f"{name} (ended)" for name in w.silent),
                ),
                w.at,
                tuple(sorted(waiters[i].path for i in holders if i in waiters)),
            )
        )
    return sorted(rows), {w.id for w in stuck}


def deadlocks() -> PartialDeadlock:
    """The processes of all runs of this program that are stuck at this moment. May be called from
    any thread or process.

    It knows the ends that processes hold by their arguments; docs/observing.md says what it cannot
    see.
    """
    rows: list[Stuck] = []
    ids: set[int] = set()
    for raw_waiters, raw_places in _native._facts():
        waiters = {raw[0]: Waiter(*raw) for raw in raw_waiters}
        found, stuck = _found(waiters, {key: Place(*raw) for key, raw in raw_places.items()})
        rows += found
        ids |= stuck
    return PartialDeadlock(sorted(rows), frozenset(ids))


class _IdleCheck:
    """Looks whenever a scheduler or a thread process becomes idle, and reports processes that were
    not reported before.
    """

    def __init__(self, action: Action) -> None:
        self._action = action
        self._told: set[int] = set()

    def __call__(self) -> None:
        found = deadlocks()
        if found._ids <= self._told:
            return
        self._told |= found._ids
        if self._action == "warn":
            warnings.warn(f"partial deadlock: {found}", WeftWarning, stacklevel=2)
        else:
            raise Deadlock(
                f"partial deadlock: {found}",
                [p.path for p in found.processes],
                [BlockedProcess(*p[:4]) for p in found.processes],
            )


_checks: list[_IdleCheck] = []


@contextlib.contextmanager
def watching_deadlocks(action: Action = "warn") -> Iterator[None]:
    """While the block runs, looks for partial deadlocks whenever an executor becomes idle.

    Args:
        action: "warn": a WeftWarning, once for each process; "raise": the run is cancelled and
            raises Deadlock.
    Raises:
        BadUse: there is no such action.
    """
    if action not in ("warn", "raise"):
        raise BadUse(f"a partial deadlock can be reported by 'warn' or 'raise', not {action!r}")
    check = _IdleCheck(action)
    _checks.append(check)
    _native._set_idle(check)
    try:
        yield
    finally:
        _checks.remove(check)
        _native._set_idle(_checks[-1] if _checks else None)
