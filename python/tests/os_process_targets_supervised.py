"""Processes of the operating system that test_supervisor.py starts, and that die when their
arguments require it; see os_process_targets.py.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from weft.processes import Cancelled, process


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@process
def holds_each(inp: Any, out: Any, dies_at: dict[int, int], lives: Any) -> str:
    """Doubles values in the block of an extended read; dies within the block of a value as often as
    `dies_at` says.
    """
    life = lives.read()
    while True:
        with inp.extended() as value:
            if value is None:
                return "done"
            if life < dies_at.get(value, 0):
                killed()
            out.write(2 * value)


@process
async def holds_each_async(inp: Any, out: Any, dies_at: dict[int, int], lives: Any) -> str:
    life = await lives.read()
    while True:
        async with inp.extended() as value:
            if value is None:
                return "done"
            if life < dies_at.get(value, 0):
                killed()
            await out.write(2 * value)


@process
def reads_each(inp: Any, out: Any, dies_at: dict[int, int], lives: Any) -> str:
    """Passes values on like `each`, but by plain reads, so that the value that the process has read
    is lost when it dies.
    """
    life = lives.read()
    for value in inp:
        if life < dies_at.get(value, 0):
            killed()
        out.write(2 * value)
    return "done"


@process
def dies(out: Any) -> None:
    killed()


@process
def dies_when_cancelled(lives: Any, ready: Any, never: Any) -> None:
    lives.read()
    ready.write(None)
    try:
        never.read()
    except Cancelled:
        killed()


@process
def raises(out: Any) -> None:
    raise ValueError("a mistake")


@process
def leaves(out: Any) -> None:
    sys.exit(3)


@process
def parent_of_one_that_dies(out: Any) -> None:
    from weft.processes import Parallel

    Parallel(dies(out))


@process
def holds_arrays(inp: Any, out: Any, lives: Any) -> None:
    """Changes its copy of a value that it has read, then dies."""
    first = lives.read() == 0
    with inp.extended() as value:
        got = bytes(value)
        value[:] = b"x" * len(value)
        if first:
            killed()
        out.write(got)


@process
def extended(inp: Any, reports: Any, n: int) -> list[Any]:
    got = []
    for _ in range(n):
        with inp.extended() as value:
            reports.write(value)
            got.append(value)
    return got


@process
async def extended_async(inp: Any, reports: Any, n: int) -> list[Any]:
    got = []
    for _ in range(n):
        async with inp.extended() as value:
            await reports.write(value)
            got.append(value)
    return got


@process
def nested(inp: Any, reports: Any) -> list[Any]:
    """Makes one extended read within another, at the same channel."""
    with inp.extended() as a:
        with inp.extended() as b:
            reports.write((a, b))
        reports.write("inner")
    reports.write("outer")
    return [a, b]


@process
def entered_twice(inp: Any) -> list[str]:
    messages = []
    x = inp.extended()
    with x as value:
        try:
            x.__enter__()
        except Exception as error:
            messages.append(f"{type(error).__name__}: {error}")
    messages.append(str(value))
    return messages


@process
def dies_in_a_block(inp: Any) -> None:
    with inp.extended():
        killed()


def _arrives(home: int) -> None:
    if os.getpid() == home:
        raise LookupError("not here")


class OnlyElsewhere:
    """An object that can be unpickled in any OS process except the one that pickled it."""

    def __reduce__(self) -> Any:
        return _arrives, (os.getpid(),)


# --- for test_supervised_lives.py -----------------------------------------------------------------


@process
def dies_at_odd(jobs: Any, out: Any) -> None:
    for job in jobs:
        if job % 2:
            killed()
        out.write(job)


@process
async def dies_at_odd_async(jobs: Any, out: Any) -> None:
    async for job in jobs:
        if job % 2:
            killed()
        await out.write(job)


@process
def reads_and_dies(jobs: Any) -> None:
    jobs.read()
    killed()


def _dies_once(job: tuple[int, str]) -> int:
    number, mark = job
    if number % 2 and not Path(mark).exists():
        Path(mark).touch()
        killed()
    return number


@process
def dies_once_each(jobs: Any, out: Any) -> None:
    for job in jobs:
        out.write(_dies_once(job))


@process
async def dies_once_each_async(jobs: Any, out: Any) -> None:
    async for job in jobs:
        await out.write(_dies_once(job))


@process
def leaves_its_loop(jobs: Any, out: Any) -> None:
    for job in jobs:
        out.write(job)
        break
    out.write("then")
    for job in jobs:
        out.write(job)
        break
    out.write("left")
    for job in jobs:
        out.write(job)


@process
def says_its_pid(jobs: Any, out: Any) -> None:
    for job in jobs:
        out.write((job, os.getpid()))


@process
def says_it_begins(jobs: Any, out: Any) -> None:
    out.write(os.getpid())
    for _ in jobs:
        pass


@process
def takes_much_once(jobs: Any, out: Any) -> None:
    for number, mark in jobs:
        if number == 0 and not Path(mark).exists():
            Path(mark).touch()
            bytearray(1 << 33)
        out.write(number)


@process
def obeys(name: str, orders: Any, out: Any) -> str:
    out.write(name)
    if orders.read() == "die":
        killed()
    return name
