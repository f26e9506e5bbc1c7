"""Calls of the parent that run in this host: what their processes are called there, and where they
are.

    running(process, call) ──name_for_parent(), named()──► {path here, the call, the path within it}
                                                              ──in the parent: name_here()──► its path there
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from weft._distributed_deadlock.members import Member
from weft._extension import native as _native
from weft._watching import deadlocks as _deadlocks

__all__ = [
    "Named",
    "Row",
    "call_of",
    "forget",
    "lines",
    "name_for_parent",
    "name_here",
    "named",
    "once_each",
    "rows_named",
    "rows_of",
    "running",
]

_running: dict[int, tuple[str, Any]] = {}  # calls that run here, each with its process, by id()


@contextlib.contextmanager
def running(process: Any, call: str) -> Iterator[None]:
    """This process, which is to be run in the block, is that call of the parent."""
    _running[id(process)] = call, process
    try:
        yield
    finally:
        del _running[id(process)]


def call_of(process: Any) -> tuple[str, str] | None:
    """The call of the parent within which this process runs, and its path within that, or None."""
    if not _running or process is None:
        return None
    around = _native._ancestors(process)
    for call, first in list(_running.values()):
        if first.id in around:
            return call, process.path[len(first.path) :]
    return None


Named = dict[str, Any]  #: a process, or what one did, for the parent: "p", "call", "within"


def name_for_parent(path: str, call: tuple[str, str] | None) -> Named:
    """A process by its path here and, if it is part of a call of the parent's, by that and its path
    within."""
    return {"p": path} if call is None else {"p": path, "call": call[0], "within": call[1]}


def name_here(member: Member, named: Named) -> None:
    """What a host has named so is named by its path here: the caller's takes the place of the
    call's."""
    call, within = named.pop("call", None), named.pop("within", "")
    if (caller := member.away.get(call)) is not None:
        named["p"] = caller.path + within
        if (up := call_of(caller)) is not None:
            named["call"], named["within"] = up[0], up[1] + within


def named(waiters: _deadlocks.Waiters, number: int) -> Named:
    """The same for one of these."""
    firsts = {first.id: (call, first.path) for call, first in list(_running.values())}
    path, at = waiters[number].path, number
    while at in waiters:
        if (found := firsts.get(at)) is not None:
            return name_for_parent(path, (found[0], path[len(found[1]) :]))
        at = waiters[at].parent
    return name_for_parent(path, None)


Row = tuple[int, str, str]  #: of a process here: its number, its path, what it does


def rows_of(call: str) -> list[Row]:
    """A row for each process of this call, which runs here."""
    of = [process for name, process in list(_running.values()) if name == call]
    return [row for process in of for row in _native._where(process)]


def rows_named(rows: list[Row]) -> list[tuple[int, Named]]:
    """These processes, named for the parent, with what they do ("does")."""
    calls: dict[int, tuple[str, str]] = {}  # a process → its call, and the path of the call here
    for call, first in list(_running.values()):
        calls.update((number, (call, first.path)) for number, _, _ in _native._where(first))
    named = []
    for number, path, does in rows:
        call, around = calls.get(number, ("", ""))
        of = (call, path[len(around) :]) if call else None
        named.append((number, {**name_for_parent(path, of), "does": does}))
    return named


def once_each(
    rows: list[Row],
    answers: list[tuple[Member, list[Named] | None]],
    far: list[tuple[int | None, str]],
    only: set[int] | None,
) -> list[Named]:
    """The processes in `rows`, those that hosts have named (None: the host does not answer), and
    those of calls on other machines (remote_calls.lines()), each once. If a process here waits for its call
    elsewhere, the call's processes take its place. `only`: of what is elsewhere, only the calls of
    these processes here.
    """
    said: list[Named] = []
    there: set[int | None] = set()  # processes here that wait for a call elsewhere
    for member, lines in answers:
        calls = {call: p for call, p in list(member.away.items()) if only is None or p.id in only}
        there.update(process.id for process in calls.values())
        told = set()
        for line in lines or ():
            if only is not None and line.get("call") not in calls:
                continue
            told.add(line.get("call"))
            name_here(member, line)
            if " in OS process " not in line["p"] + line["does"]:
                line["does"] += f" in OS process {member.pid}"
            said.append(line)
        does = f"begins or ends in OS process {member.pid}"
        if lines is None:
            does = f"OS process {member.pid} does not say where it is"
            if not calls and only is None:
                said.append({"p": "", "does": does})
        for call in calls.keys() - told:
            line = {"p": "", "call": call, "does": does}
            name_here(member, line)
            said.append(line)
    for number, text in far:
        if only is None or number in only:
            said.append({"p": "", "does": text})
            there.add(number)
    return [row for number, row in rows_named(rows) if number not in there] + said


def lines(rows: list[Named]) -> list[str]:
    """A line for each process."""
    return [": ".join(filter(None, (row["p"], row["does"]))) for row in rows]


def forget() -> None:
    """In the child of a fork: they run in the original."""
    _running.clear()
