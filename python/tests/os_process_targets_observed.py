"""Processes that test_processes_observed.py starts in other OS processes."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import weft.coroutines as co
from weft import observe
from weft.processes import Channel, Hosts, Parallel, process

BOUND = 280.0  # in s: no process here waits longer than this


@process
def numbers(out: Any, n: int) -> int:
    for i in range(n):
        out.write(i)
    return os.getpid()


@process
def doubles(inp: Any, out: Any) -> int:
    for v in inp:
        out.write(2 * v)
    return os.getpid()


@process
def adds(inp: Any) -> tuple[int, int]:
    total = 0
    for v in inp:
        total += v
    return os.getpid(), total


@co.process
async def numbers_in_a_coroutine(out: Any, n: int) -> None:
    for i in range(n):
        await out.write(i)


@co.process
async def adds_in_a_coroutine(inp: Any, done: Any) -> None:
    await done.write(sum([v async for v in inp]))


@process
def within(n: int, name: str) -> int:
    """Runs a network of its own, in one OS process."""
    c, done = Channel(name), Channel(f"{name} done")
    r = done.reader()

    @process
    def result(inp: Any) -> int:
        return int(inp.read())

    return int(
        Parallel(
            numbers_in_a_coroutine(c.writer(), n),
            adds_in_a_coroutine(c.reader(), done.writer()),
            result.on("threads")(r),
        )[2]
    )


@process
def further(n: int, name: str) -> int:
    """Runs the network of within() in a host that this process starts."""
    with Hosts(1) as hosts:
        return int(Parallel(within.on(hosts)(n, name))[0])


@process
def one_by_one(asked: Any, reports: Any) -> None:
    """Answers each question with the question itself."""
    for v in asked:
        reports.write(v)


@process
def answers_then_dies(asked: Any, reports: Any, n: int) -> None:
    for _ in range(n):
        reports.write(asked.read())
    asked.read()
    os.kill(os.getpid(), signal.SIGKILL)


@process
def dies_once(asked: Any, reports: Any, mark: Any) -> None:
    while True:
        with asked.extended() as v:
            if v is None:
                return
            if v == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            reports.write(v)


def computes(seconds: float) -> None:
    """Computes, and calls no function written in Python, so that a report of where the process runs
    names a line of this function.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@process
async def hogs(signals: Any) -> None:
    """Occupies its scheduler again and again, until the test has noticed this process. A step that
    is too long is reported once, and the report may be made before the process is in computes().
    """
    end = time.monotonic() + BOUND
    seconds = 0.05
    while not signals.exists() and time.monotonic() < end:
        computes(seconds)
        seconds = min(2 * seconds, 2.0)
        await co.yield_()


@process
def traces_within(n: int, path: str) -> int:
    """Traces this OS process, and a host that it starts."""
    with observe.tracing(path), Hosts(1) as hosts:
        return int(Parallel(within.on(hosts)(n, "inner"))[0])
