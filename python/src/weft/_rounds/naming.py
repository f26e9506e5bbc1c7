"""Calls of the parent that run in this host: what their processes are called there, and where they
are.

    running(process, call) ──name_for_parent(), named()──► {path here, the call, the path within it}
                                                              ──in the parent: name_here()──► its path there
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from weft._extension import native as _native
from weft._rounds.members import Member
from weft._watching import deadlocks as _deadlocks

__all__ = [
    "Named",
    "call_of",
    "forget",
    "name_for_parent",
    "name_here",
    "named",
    "running",
    "where_of",
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


def where_of(call: str) -> list[str]:
    """Where the processes of that call are, which runs here."""
    of = [process for name, process in list(_running.values()) if name == call]
    return [line for process in of for line in _native._where(process)]


def forget() -> None:
    """In the child of a fork: they run in the original."""
    _running.clear()
