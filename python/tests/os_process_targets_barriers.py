"""Processes of the operating system that test_processes_barriers.py starts: each has a barrier that
another process made.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft.processes import (
    BadUse,
    Barrier,
    Output,
    Parallel,
    PeerDied,
    after,
    move_on_after,
    process,
    select,
    skip,
)

# --- phases, in every kind of process -------------------------------------------------------------


@process
def phases(barrier: Barrier, out: Any, me: int, n: int) -> None:
    """Writes (me, phase) before it arrives at each phase."""
    for i in range(n):
        out.write((me, i))
        barrier.sync()


@process
async def phases_in_coroutines(barrier: Barrier, out: Any, me: int, n: int) -> None:
    for i in range(n):
        await out.write((me, i))
        await barrier.sync()


@process
def phases_in_greenlets(barrier: Barrier, out: Any, me: int, n: int) -> None:
    @gr.process
    def inner() -> None:
        for i in range(n):
            out.write((me, i))
            barrier.sync()

    gr.run(inner())


@process
def phases_in_tasks(barrier: Barrier, out: Any, me: int, n: int) -> None:
    async def main() -> None:
        for i in range(n):
            await out.write((me, i))
            await barrier.sync()

    asyncio.run(main())


@process
def phases_of_two(barrier: Barrier, out: Any, me: int, n: int) -> None:
    """Runs two parties in one OS process."""

    @th.process
    def one(who: int) -> None:
        for i in range(n):
            out.write((who, i))
            barrier.sync()

    Parallel(one(me), one(me + 1))


# --- parties that come and go ---------------------------------------------------------------------


@process
def counts(barrier: Barrier) -> tuple[int, int, int]:
    before = barrier.parties
    barrier.enrol()
    between = barrier.parties
    barrier.resign()
    return before, between, barrier.parties


@process
async def counts_in_coroutines(barrier: Barrier) -> tuple[int, int, int]:
    before = barrier.parties
    barrier.enrol()
    between = barrier.parties
    barrier.resign()
    return before, between, barrier.parties


@process
def keeps_its_own(out: Any, heard: Any) -> int:
    """Makes a barrier, writes it with the pid of this OS process, and remains until a value on
    `heard` ends the process."""
    barrier = Barrier(1)
    out.write((os.getpid(), barrier))
    heard.read()
    return int(barrier.parties)


@process
def resigns_on_its_way_out(barrier: Barrier, out: Any, heard: Any) -> None:
    """Resigns when it is cancelled, and checks that it is no longer a party."""
    out.write("here")
    try:
        heard.read()
    finally:
        barrier.resign()


@process
async def resigns_on_its_way_out_in_coroutines(barrier: Barrier, out: Any, heard: Any) -> None:
    await out.write("here")
    try:
        await heard.read()
    finally:
        barrier.resign()


@process
def misuses(barrier: Barrier) -> list[str]:
    messages = []
    for wrong in (barrier.sync, barrier.resign, lambda: select(barrier, after(280))):
        try:
            wrong()
        except BadUse as error:
            messages.append(str(error))
    return messages


@process
def gives_up(barrier: Barrier, out: Any) -> None:
    with move_on_after(0.02):
        barrier.sync()
    out.write("gave up")
    barrier.sync()


@process
def resigns(barrier: Barrier, heard: Any) -> None:
    heard.read()
    barrier.resign()


# --- as a guard -----------------------------------------------------------------------------------


@process
def chooses(a: Any, barrier: Barrier, out: Any) -> list[tuple[int, Any]]:
    got = [select(a, barrier, after(280))]
    out.write("next")
    got.append(select(a, barrier, after(280)))
    return got


@process
async def chooses_in_coroutines(a: Any, barrier: Barrier, out: Any) -> list[tuple[int, Any]]:
    got = [await co.select(a, barrier, after(280))]
    await out.write("next")
    got.append(await co.select(a, barrier, after(280)))
    return got


@process
def looks(barrier: Barrier, heard: Any) -> list[int]:
    """Returns whether the barrier is ready: first while no party waits at it, then while one party
    waits.
    """
    first = select(barrier, skip(), mode="priority")[0]
    heard.read()
    return [
        first,
        select(barrier, after(280))[0],
        select(barrier, after(0), mode="priority")[0],
        select(barrier, after(0.01))[0],
    ]


@process
def chooses_among_homes(mine: Any, barrier: Barrier) -> list[str]:
    """Chooses over the barrier, a channel of this process, a channel of a third process, and a
    guard that is off. Returns the outcomes.
    """
    from weft.processes import Channel

    here: Any = Channel("here")
    reader, writer = here.reader(), here.writer()
    own = Barrier(1)
    messages = []
    for guards in ((barrier, reader), (barrier, Output(mine, 1), reader), (own, Output(mine, 1))):
        try:
            select(*guards)
        except BadUse as error:
            messages.append(str(error))
    writer.retire()
    return messages


# --- barriers in values ---------------------------------------------------------------------------


@process
def gets_it(ends: Any) -> int:
    """Receives the barrier within a value."""
    barrier = ends.read()
    barrier.sync()
    return int(barrier.parties)


@process
def hands_it_on(ends: Any, out: Any) -> None:
    barrier = ends.read()
    out.write({"here": barrier})
    barrier.sync()


@process
def gets_it_third(ends: Any) -> int:
    barrier = ends.read()["here"]
    barrier.sync()
    return int(barrier.parties)


@process
def brings_it_back(barrier: Barrier, out: Any) -> None:
    out.write(barrier)


@process
def starts_one(barrier: Barrier, out: Any) -> None:
    """Starts an OS process and passes the barrier on to it."""
    Parallel(phases(barrier, out, 7, 3))


# --- deaths ---------------------------------------------------------------------------------------


@process
def dies(barrier: Barrier, heard: Any) -> None:
    heard.read()
    os.kill(os.getpid(), signal.SIGKILL)


@process
def waits(barrier: Barrier, out: Any) -> list[str]:
    """Waits until the barrier's home has died, and then syncs once more."""
    messages = []
    out.write("waits")
    for again in (barrier.sync, barrier.sync, barrier.enrol, lambda: select(barrier, after(280))):
        try:
            again()
        except PeerDied as error:
            messages.append(str(error))
    return messages


@process
def step_by_step(barrier: Barrier, out: Any, go: Any) -> None:
    barrier.sync()
    out.write(os.getpid())
    go.read()
    barrier.sync()


@process
def leaves(barrier: Barrier) -> None:
    """Ends normally, with the barrier in a global variable."""
    globals()["kept"] = barrier


@process
def makes_one(out: Any) -> str:
    """Makes a barrier for two, sends it, and waits at it."""
    b = Barrier(2)
    out.write(b)
    try:
        b.sync()
    except PeerDied as error:
        return str(error)
    return "met"
