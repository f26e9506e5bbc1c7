"""Processes that test_processes_results.py runs in other OS processes; they have a separate module,
so that an OS process imports nothing else.
"""

from __future__ import annotations

import threading
from typing import Any

import weft.threads as th
from weft.processes import Cancelled, Channel, Parallel, PeerDied, Poisoned, Retired, process, sleep


class Mine(Retired):
    pass


class Unsendable(Retired):
    def __reduce__(self) -> Any:
        raise TypeError("not me")


def ended(poisoned: bool) -> tuple[Any, Any]:
    """Returns a channel that has ended for its readers, and a reader of it."""
    c = Channel("there")
    r = c.reader()
    if poisoned:
        c.poison(3)
    else:
        c.writer().retire()
    return c, r


def meets(kind: type[Any]) -> Any:
    """Returns the exception that an operation has raised, as `kind`."""
    try:
        ended(kind is Poisoned)[1].read()
    except (Retired, Poisoned) as met:
        if kind in (Retired, Poisoned):
            return met
        again = kind("met as mine")
        again.met = met.met
        return again


def writes_what_cannot_go(died: bool) -> None:
    c = Channel("there")
    w, r = c.writer(), c.reader()
    if died:
        r.die()
    else:
        th.current_process().cancel()  # type: ignore[union-attr]
    w.write(threading.Lock())


# The ways in which a process may end: the body, and the expected exception or quiet end.
WAYS: dict[str, tuple[Any, type[BaseException] | str]] = {
    "Retired, made": (lambda: Retired("mine"), Retired),
    "Poisoned, made": (lambda: Poisoned("mine", None, None, None, 7), Poisoned),
    "Retired, a class of its own": (lambda: Mine("mine"), Mine),
    "Retired, that cannot be sent": (lambda: Unsendable("mine"), Retired),
    "a new end, retired": (lambda: ended(False)[0].reader(), Retired),
    "a new end, poisoned": (lambda: ended(True)[0].writer(), Poisoned),
    "PeerDied, with what cannot be sent": (lambda: writes_what_cannot_go(True), PeerDied),
    "Retired, met": (lambda: ended(False)[1].read(), "retired"),
    "Poisoned, met": (lambda: ended(True)[1].read(), "poisoned"),
    "Retired, met before": (lambda: meets(Retired), "retired"),
    "Poisoned, met before": (lambda: meets(Poisoned), "poisoned"),
    "a class of its own, met": (lambda: meets(Mine), "retired"),
    "one that cannot be sent, met": (lambda: meets(Unsendable), "retired"),
    "Cancelled": (lambda: Cancelled(), "cancelled"),
    "Cancelled, with what cannot be sent": (lambda: writes_what_cannot_go(False), "cancelled"),
}


def leaves(way: str) -> None:
    found = WAYS[way][0]()
    if isinstance(found, BaseException):
        raise found


@process
def left(way: str, *ends: Any) -> None:
    leaves(way)


@th.process
def left_here(way: str, *ends: Any) -> None:
    leaves(way)


@process
def reads_once_too_often(inp: Any) -> None:
    inp.read()
    inp.read()


@process
async def reads_once_too_often_async(inp: Any) -> None:
    await inp.read()
    await inp.read()


@process
def a_network_of_its_own() -> list[Any]:
    _, r = ended(False)
    return Parallel(reads_here(r), returns_here())


@th.process
def reads_here(inp: Any) -> None:
    inp.read()


@th.process
def returns_here() -> str:
    return "returned"


@process
def waits(ready: Any) -> None:
    ready.retire()
    sleep(3600)
