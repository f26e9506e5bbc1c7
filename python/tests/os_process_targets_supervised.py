"""Processes of the operating system that test_supervisor.py starts, and that die when they are told
to; see os_process_targets.py.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from weft.processes import Cancelled, process


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@process
def holds_each(inp: Any, out: Any, dies_at: dict[int, int], lives: Any) -> str:
    """Doubles values in the block of an extended read; dies at a value as often as `dies_at` says,
    within the block.
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
    """Does the same by plain reads: what it has read is lost when it dies."""
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
    """Changes its copy of the value that it was given, then dies."""
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
    """Makes one extended read within another, of one channel."""
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
    """An object that can be unpickled in any OS process but the one that pickled it."""

    def __reduce__(self) -> Any:
        return _arrives, (os.getpid(),)
