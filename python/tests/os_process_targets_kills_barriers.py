"""Processes of the operating system that test_processes_kills_barriers.py starts and kills, at
barriers; see os_process_targets.py.
"""

from __future__ import annotations

from typing import Any

import weft.coroutines as co
from weft.processes import Barrier, ChannelEnd, PeerDied, process, select

# --- the process that is killed: it reports each phase before it arrives, and after all have met
# ---


@process
def meets(barrier: Any, inp: Any, out: Any) -> None:
    for i in inp:
        out.write(i)
        barrier.sync()
        out.write(i)


@process
async def two_meet(barrier: Any, inp: Any, out: Any) -> None:
    """Runs two parties on one scheduler, of which one enrols for a single phase at a time."""

    @co.process
    async def joins() -> None:
        await barrier.sync()
        barrier.resign()

    async for i in inp:
        barrier.enrol()
        await out.write(i)
        await co.Parallel(joins(), stays(barrier))
        await out.write(i)


@co.process
async def stays(barrier: Any) -> None:
    await barrier.sync()


@process
def meets_or_reads(barrier: Any, inp: Any, out: Any) -> None:
    """Reads or syncs, by choice. Passes each value on before it arrives at the barrier, and again
    when all parties have met.
    """
    for i in inp:
        out.write(i)
        while True:
            at, value = select(barrier, inp)
            if at == 0:
                break
            out.write(value)
            i = value
        out.write(i)


@process
def owns(first: Any, second: Any, inp: Any, out: Any) -> None:
    """Owns the barrier, and gives it to two other processes."""
    barrier = Barrier(3)
    first.write(barrier)
    second.write(barrier)
    for i in inp:
        out.write(i)
        barrier.sync()
        out.write(i)


# --- the process that remains ---------------------------------------------------------------------


def attend_to(barrier: Any, out: Any) -> str:
    """Writes how many phases have ended, until it learns of a death."""
    n = 0
    while True:
        try:
            barrier.sync()
        except PeerDied as error:
            return str(error)
        n += 1
        out.write(n)


@process
def attends(barrier: Any, out: Any) -> str:
    return attend_to(barrier, out)


@process
async def attends_async(barrier: Any, out: Any) -> str:
    n = 0
    while True:
        try:
            await barrier.sync()
        except PeerDied as error:
            return str(error)
        n += 1
        await out.write(n)


@process
def attends_by_choice(barrier: Any, out: Any) -> str:
    n = 0
    while True:
        try:
            select(barrier)
        except PeerDied as error:
            return str(error)
        n += 1
        out.write(n)


@process
def gets_it_and_attends(ends: Any, out: Any) -> str:
    try:
        barrier = ends.read()
    except ChannelEnd:
        return "it was never made"
    return attend_to(barrier, out)
