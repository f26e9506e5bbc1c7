"""Processes that test_processes_names.py starts in other OS processes."""

from __future__ import annotations

import contextvars
import os
from typing import Any

from weft.processes import (
    Alternative,
    Cancelled,
    Channel,
    Group,
    Input,
    Parallel,
    Sequence,
    Spawn,
    Timer,
    after,
    at,
    current_process,
    deadline,
    io,
    move_on_after,
    now,
    process,
    select,
    sleep,
    timeout,
    yield_,
)

variable = contextvars.ContextVar("variable", default="outside")


@process
def says_variable() -> str:
    was = variable.get()
    variable.set("there")
    return was


@process
def one(out: Any, v: int) -> None:
    out.write(v)


@process
def waits(ready: Any, inp: Any, reports: Any) -> None:
    ready.write(os.getpid())
    try:
        inp.read()
    except Cancelled:
        reports.touch()
        raise


@process
def by_every_name() -> dict[str, Any]:
    """Runs a function under each of its names in another OS process, and returns the results."""
    got: dict[str, Any] = {}

    def pair(n: int) -> tuple[Any, list[Any]]:
        c: Channel[int] = Channel("c")
        return c.reader(), [one.on("threads")(c.writer(), i) for i in range(n)]

    r, writers = pair(2)
    Spawn(writers)
    got["Spawn"] = sorted(r)
    r, writers = pair(2)
    with Group() as group:
        for w in writers:
            group.start(w)
        got["Group"] = sorted(r)
    buffered: Channel[int] = Channel("buffered", capacity=3)
    r = buffered.reader()
    Sequence([one.on("threads")(buffered.writer(), i) for i in range(3)])
    got["Sequence"] = list(r)
    got["io"] = io(os.getpid)() == os.getpid()
    timer = Timer(0.001)
    got["Timer"] = timer.tick() >= 1
    before = now()
    sleep(0.001)
    yield_()
    got["sleep"] = now() - before >= 0.001
    never: Channel[int] = Channel("never")
    keep = never.writer()
    inp = never.reader()
    got["after"] = select(inp, after(0.001))[0]
    got["at"] = select(inp, at(now()))[0]
    got["Alternative"] = Alternative(Input(inp), after(0.001)).select()[0]
    with move_on_after(0.001) as limit:
        inp.read()
    got["move_on_after"] = limit.expired
    for name, limit in ("timeout", timeout(0.001)), ("deadline", deadline(now())):
        try:
            with limit:
                inp.read()
        except TimeoutError:
            got[name] = limit.expired
    me = current_process()
    got["current_process"] = me is not None and me.path
    keep.retire()
    channels = Channel("several") * 2
    read = [reads.on("threads")(r) for r in channels.readers()]
    written = [one.on("threads")(w, i) for i, w in enumerate(channels.writers())]
    got["arrays"] = Parallel(read, written)[:2]
    c: Channel[int] = Channel("c")
    inp = c.reader()
    with Group() as group:
        p = one.on("threads")(c.writer(), 5)
        group.start(p)
        got["read"] = inp.read()
        got["ended"] = p.ended().wait().how
    return got


@process
def reads(inp: Any) -> list[int]:
    return list(inp)


@process
def returns(v: int) -> int:
    return v
