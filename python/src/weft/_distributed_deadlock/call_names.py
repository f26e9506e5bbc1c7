"""Calls of the parent that run in this host: the names of their processes for the parent, and where
these processes are.

    running(process, call)
        │ name_for_parent(), named()
        ▼
    {path in this host, the call, the path within the call}
        │ name_here(), in the parent
        ▼
    path in the parent
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

# id() of a process → the call that it runs, and the process.
_running: dict[int, tuple[str, Any]] = {}


@contextlib.contextmanager
def running(process: Any, call: str) -> Iterator[None]:
    """While the block runs, `process` counts as the process that runs `call` of the parent."""
    _running[id(process)] = call, process
    try:
        yield
    finally:
        del _running[id(process)]


def call_of(process: Any) -> tuple[str, str] | None:
    """Returns the parent's call within which a process runs, and the process's path within that
    call, or None if the process runs within no call.
    """
    if not _running or process is None:
        return None
    around = _native._ancestors(process)
    for call, first in list(_running.values()):
        if first.id in around:
            return call, process.path[len(first.path) :]
    return None


#: The name of a process in messages to the parent: the keys "p", "call" and "within".
Named = dict[str, Any]


def name_for_parent(path: str, call: tuple[str, str] | None) -> Named:
    """Names a process by its path in this host and, if it is part of a call of the parent, by the
    call and the path within the call.
    """
    return {"p": path} if call is None else {"p": path, "call": call[0], "within": call[1]}


def name_here(member: Member, named: Named) -> None:
    """Changes a name that a host gave into a name in this OS process: the path of the caller takes
    the place of the call.
    """
    call, within = named.pop("call", None), named.pop("within", "")
    if (caller := member.away.get(call)) is not None:
        named["p"] = caller.path + within
        if (up := call_of(caller)) is not None:
            named["call"], named["within"] = up[0], up[1] + within


def named(waiters: _deadlocks.Waiters, number: int) -> Named:
    """Returns the name of process `number` of `waiters` for the parent."""
    firsts = {first.id: (call, first.path) for call, first in list(_running.values())}
    path, at = waiters[number].path, number
    while at in waiters:
        if (found := firsts.get(at)) is not None:
            return name_for_parent(path, (found[0], path[len(found[1]) :]))
        at = waiters[at].parent
    return name_for_parent(path, None)


Row = tuple[int, str, str]  #: a process of this OS process: its number, its path, what it does


def rows_of(call: str) -> list[Row]:
    """Returns a row for each process of `call`, which runs in this host."""
    of = [process for name, process in list(_running.values()) if name == call]
    return [row for process in of for row in _native._where(process)]


def rows_named(rows: list[Row]) -> list[tuple[int, Named]]:
    """Returns the numbers of these processes, and their names for the parent. The key "does" says
    what each process does.
    """
    # Process → its call, and the path of the call in this host.
    calls: dict[int, tuple[str, str]] = {}
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
    """Returns each process once, of three kinds: the processes in `rows`, those that hosts have
    named, and those of calls on other machines (`far`, see remote_calls.lines()). If a process of
    `rows` waits for a call that runs elsewhere, the call's processes take its place.

    Args:
        answers: by host, the names; None: the host does not answer.
        only: if it is given, only calls of these processes are taken from hosts and other machines.
    """
    kept: list[Named] = []
    callers: set[int | None] = set()  # processes of `rows` that wait for a call elsewhere
    for member, lines in answers:
        calls = {call: p for call, p in list(member.away.items()) if only is None or p.id in only}
        callers.update(process.id for process in calls.values())
        lines_seen = set()
        for line in lines or ():
            if only is not None and line.get("call") not in calls:
                continue
            lines_seen.add(line.get("call"))
            name_here(member, line)
            if " in OS process " not in line["p"] + line["does"]:
                line["does"] += f" in OS process {member.pid}"
            kept.append(line)
        does = f"begins or ends in OS process {member.pid}"
        if lines is None:
            does = f"OS process {member.pid} does not say where it is"
            if not calls and only is None:
                kept.append({"p": "", "does": does})
        for call in calls.keys() - lines_seen:
            line = {"p": "", "call": call, "does": does}
            name_here(member, line)
            kept.append(line)
    for number, text in far:
        if only is None or number in only:
            kept.append({"p": "", "does": text})
            callers.add(number)
    return [row for number, row in rows_named(rows) if number not in callers] + kept


def lines(rows: list[Named]) -> list[str]:
    """Returns a line of text for each process."""
    return [": ".join(filter(None, (row["p"], row["does"]))) for row in rows]


def forget() -> None:
    """Clears the table in the child of a fork: the calls run in the original."""
    _running.clear()
