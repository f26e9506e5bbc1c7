"""Processes that test_processes_told.py starts in other OS processes: the test checks the
reports about them."""

from __future__ import annotations

from typing import Any

import weft.coroutines as co
from weft._hosts import remote_observers as _remote_observers
from weft._watching import debug as _debug
from weft.processes import Channel, Hosts, Parallel, process


class Enough(Exception):
    """The exception that ends the processes beside a knot."""


@co.process
async def first(inp: Any, out: Any) -> None:
    await out.write(await inp.read())


@co.process
async def second(inp: Any, out: Any) -> None:
    await out.write(await inp.read())


@process
def until_told(asked: Any) -> None:
    asked.read()
    raise Enough


def a_knot(asked: Any) -> None:
    """Runs two processes that wait for each other, and one that waits for a value from
    elsewhere."""
    c, d = Channel("c"), Channel("d")
    Parallel(
        first(c.reader(), d.writer()),
        second(d.reader(), c.writer()),
        until_told.on("threads")(asked),
    )


@process
def knotted(asked: Any) -> None:
    a_knot(asked)


@process
def knotted_further(asked: Any) -> None:
    with Hosts(1) as hosts:
        Parallel(knotted.on(hosts)(asked))


@process
def changes_what_it_sent() -> None:
    c = Channel("c", capacity=2)
    out, inp = c.writer(), c.reader()
    value = [0]
    out.write(value)  # the line of the write
    value.append(1)
    out.write(None)
    inp.read()
    inp.read()


@process
def sends_what_cannot_be_watched() -> None:
    c = Channel("c", capacity=1)
    out, inp = c.writer(), c.reader()
    out.write(n for n in ())
    inp.read()


@process
def reads_once(inp: Any) -> None:
    inp.read()  # the line of the read


@process
def writes_lists(out: Any, n: int) -> list[int]:
    """Returns how many of its values the debug mode considers to be still under way at the end."""
    for i in range(n):
        out.write([i])
    return [
        len(one._under_way)
        for one in _remote_observers._following.values()
        if isinstance(one, _debug.Debug)
    ]


@process
def reads_all(inp: Any) -> int:
    return sum(1 for _ in inp)
