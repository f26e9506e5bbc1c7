"""Partial deadlock: processes that will never be woken by anything that can still run (rules 10.5,
14.3).

From the facts of one moment (python/native/rounds/partial.cpp), the processes that may go on are
found as a least fixed point (cpp/include/weft/runtime/going_on.hpp):

- a process that runs, is due to run, sleeps, has a timer in its select, or was cancelled, may go
  on;
- a process that waits at a channel may go on if a process that may go on holds an end of the
  channel, if an end of the channel is held by no known process (but by a local variable, a value
  under way, another thread), or if the other side of the channel never had an end; a guard that is
  silent, since its channel has retired, does not count;
- a process that waits at a barrier may go on if any process elsewhere may go on;
- a process that waits for its children may go on if all of them may go on.

The others are stuck. (Ends of either side count, since the holder of any end may poison it.)

Each OS process of the program finds its own stuck processes. It does not know the holder of an end
that it has lent to another OS process or received from one, so a process that waits there may go
on. _distributed_deadlock/partial.py asks all OS processes together.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from weft._extension import native as _native
from weft._watching import observers as _observers
from weft.errors import BadUse, BlockedProcess, Deadlock, WeftWarning

Action = Literal["warn", "raise"]


class Place(NamedTuple):
    """A channel or barrier at which a process waits. Its holders are given by the numbers of
    processes.
    """

    name: str
    is_channel: bool
    readers: tuple[int, ...]
    writers: tuple[int, ...]
    unknown_readers: int  #: open reader ends whose holder is not known
    unknown_writers: int
    #: Of a channel: the values passed, the values dropped, the values in its buffer.
    figures: tuple[int, int, int] | None = None


class Waiter(NamedTuple):
    """A process at one moment."""

    id: int
    path: str
    operation: str
    at: str
    parent: int
    state: str  #: "able", "places" or "children"
    places: list[tuple[int, bool]]  #: for each place its key, and whether the process writes there
    #: Channels that have ended for the process's select, so that no partner will arrive (rule 5.6).
    silent: Sequence[str] = ()
    may_go_on: bool = True

    def names(self, places: dict[int, Place]) -> tuple[str, ...]:
        """Returns the names of the places where the process waits, in the form that reports use."""
        ended = (f"{name} (ended)" for name in self.silent)
        return (*(places[key].name for key, _ in self.places), *ended)


def line(path: str, operation: str, names: Iterable[str], at: str) -> str:
    """Returns the line of a report for a process that waits."""
    return f"{path}: {operation} {', '.join(names)}".rstrip() + f" at {at}"


def parsed(facts: tuple[Any, Any]) -> tuple[list[Waiter], dict[int, Place]]:
    """Returns the facts of a run as objects. Their form is described in partial.cpp."""
    waiters, places = facts
    return [Waiter(*raw) for raw in waiters], {key: Place(*raw) for key, raw in places.items()}


class Stuck(NamedTuple):
    """One process that is stuck."""

    path: str  #: the path of the process
    operation: str  #: the operation in which the process waits, in words
    places: tuple[str, ...]  #: the names of the channels and barriers at which it waits
    at: str  #: file and line of the operation
    waits_for: tuple[str, ...]  #: paths of the processes that hold ends there; all are stuck
    pid: int | None = None  #: the OS process of the stuck process; None if it is the one that asked

    def line(self) -> str:
        """Returns the line of a report for this process."""
        where = "" if self.pid is None else f" in OS process {self.pid}"
        held = ""
        if self.places:  # a process without places waits for a time that is never reached
            held = f"; held by {' and '.join(self.waits_for) or 'nobody'}"
        return line(self.path, self.operation, self.places, self.at) + where + held


class PartialDeadlock:
    """The result of :func:`deadlocks`. It is false if no process is stuck.

    Attributes:
        processes: the stuck processes, by path, without those that only wait for stuck children.
        silent: the pids of OS processes of the program that did not answer within a second.
    """

    def __init__(
        self, processes: list[Stuck], ids: frozenset[int], silent: Sequence[int] = ()
    ) -> None:
        self.processes = processes
        self.silent = sorted(silent)
        self._ids = ids

    def __bool__(self) -> bool:
        return bool(self.processes)

    def __str__(self) -> str:
        n = len(self.processes)
        lines = ["no process is stuck"]
        if n:
            are = "process is" if n == 1 else "processes are"
            lines = [f"{n} {are} stuck: nothing that can run holds an end there"]
        lines += [f"  {p.line()}" for p in self.processes]
        lines += [f"  OS process {pid} does not answer" for pid in self.silent]
        return "\n".join(lines)

    __repr__ = __str__


Waiters = dict[int, Waiter]  #: the waiters of one run, by their numbers


def _path(waiters: Waiters, number: int) -> Any:
    return waiters[number].path


def _found(
    waiters: Waiters, places: dict[int, Place], named: Callable[[Waiters, int], Any]
) -> tuple[list[Stuck], set[int]]:
    stuck = [w for w in waiters.values() if not w.may_go_on and w.state == "places"]
    rows = []
    for w in sorted(stuck, key=lambda w: w.path):
        holders: set[int] = set()
        for key, writing in w.places:
            place = places[key]
            if place.is_channel:
                holders.update(place.readers if writing else place.writers)
        rows.append(
            Stuck(
                named(waiters, w.id),
                w.operation,
                w.names(places),
                w.at,
                tuple(
                    named(waiters, i)
                    for i in sorted(holders & waiters.keys(), key=lambda i: waiters[i].path)
                ),
            )
        )
    return rows, {w.id for w in stuck}


def stuck_here(
    named: Callable[[Waiters, int], Any] = _path,
) -> tuple[list[Stuck], frozenset[int]]:
    """Returns the stuck processes of this OS process, with the names that `named` returns, and
    their numbers.
    """
    rows: list[Stuck] = []
    ids: set[int] = set()
    for facts in _native._facts():
        waiters, places = parsed(facts)
        found, stuck = _found({w.id: w for w in waiters}, places, named)
        rows += found
        ids |= stuck
    return rows, frozenset(ids)


def to_tell(row: Stuck, pid: int) -> dict[str, Any]:
    """Returns a stuck process as a record for the parent. The names in the row are already those
    for the parent (_distributed_deadlock/call_names.py).
    """
    named: Any = row.path
    rest = {"operation": row.operation, "places": row.places, "at": row.at}
    return {**named, **rest, "others": list(row.waits_for), "pid": pid}


def stuck_from(record: dict[str, Any]) -> Stuck:
    """Returns the stuck process of a record whose names have been changed into those of this OS
    process.
    """
    where = record["operation"], record["places"], record["at"]
    others = tuple(sorted(other["p"] for other in record["others"]))
    return Stuck(record["p"], *where, others, record["pid"])


def _nobody() -> tuple[list[Stuck], list[int]]:
    """Returns no stuck process, since there are no other OS processes."""
    return [], []


# Returns the stuck processes of other OS processes, and the OS processes that do not answer.
# _distributed_deadlock/rounds.py, which is imported for the first other OS process, replaces this
# function.
stuck_elsewhere: Callable[[], tuple[list[Stuck], list[int]]] = _nobody


def _nothing() -> None:
    """Does nothing, since there are no other OS processes."""


# Called when an executor has become idle, in this OS process or in a host.
# _distributed_deadlock/partial.py, which is imported for the first host, replaces this function.
fell_idle: Callable[[], None] = _nothing


def deadlocks() -> PartialDeadlock:
    """Returns the processes of all runs of this program that are stuck at this moment, including
    those in the OS processes that it has started. deadlocks() may be called from any thread or
    process.

    The function knows the ends that processes hold by their arguments; docs/observing.md says which
    ends it cannot see.
    """
    rows, ids = stuck_here()
    elsewhere, silent = stuck_elsewhere()
    return PartialDeadlock(_in_order([*rows, *elsewhere]), ids, silent)


def _in_order(rows: list[Stuck]) -> list[Stuck]:
    return sorted(rows, key=lambda row: row[:5])


class _IdleCheck:
    """Searches whenever a scheduler or a thread process becomes idle, and reports processes that
    were not reported before. Other OS processes search on their own, and their warnings are shown
    here (rule 14.7).
    """

    kind = "partial"
    for_another = False  #: whether this check reports to another OS process, which has asked for it
    _named: Callable[[Waiters, int], Any] = staticmethod(_path)

    def __init__(self, action: Action) -> None:
        self._action = action
        self._reported: set[int] = set()
        #: The processes found so far that only all OS processes together could find.
        self.told_beyond: set[Any] = set()

    def begin(self) -> None:
        _checks.append(self)
        _native._set_idle(self)

    def end(self) -> None:
        if self in _checks:
            _checks.remove(self)
        _native._set_idle(_checks[-1] if _checks else None)

    def __call__(self) -> None:
        self._fell_idle()
        rows, ids = stuck_here(self._named)
        if ids <= self._reported:
            return
        self._reported |= ids
        self._found(rows, ids)

    def _fell_idle(self) -> None:
        fell_idle()

    def _found(self, rows: list[Stuck], ids: frozenset[int]) -> None:
        found = PartialDeadlock(_in_order(rows), ids)
        if self._action == "warn":
            warnings.warn(f"partial deadlock: {found}", WeftWarning, stacklevel=3)
        else:
            raise Deadlock(
                f"partial deadlock: {found}",
                [p.path for p in found.processes],
                [BlockedProcess(*p[:4]) for p in found.processes],
            )

    # --- in other OS processes ------------------------------------------------------------------

    def _for_others(self) -> Action:
        return self._action

    def _add_records(self, source: tuple[int, int], records: list[dict[str, Any]]) -> None:
        rows = [stuck_from(r) for r in records if "idle" not in r]
        if rows:
            self._found(rows, frozenset())
        if len(rows) < len(records):
            fell_idle()

    def _host_ended(self, pid: int) -> None:
        """Does nothing, since no process is stuck in that OS process any more."""


_checks: list[_IdleCheck] = []


def begun_here() -> list[_IdleCheck]:
    """Returns the checks that were begun in this OS process."""
    return [check for check in _checks if not check.for_another]


@contextlib.contextmanager
def watching_deadlocks(action: Action = "warn") -> Iterator[None]:
    """While the block runs, searches for partial deadlocks whenever an executor becomes idle.

    Args:
        action: "warn": a WeftWarning, once for each process; "raise": the run is cancelled and
            raises Deadlock.
    Raises:
        BadUse: there is no such action.
    """
    if action not in ("warn", "raise"):
        raise BadUse(f"a partial deadlock must be reported by 'warn' or 'raise', not {action!r}")
    check = _IdleCheck(action)
    try:
        check.begin()
        _observers.begin_everywhere(check)
        yield
    finally:
        try:
            check.end()
        finally:
            _observers.end_everywhere(check)
