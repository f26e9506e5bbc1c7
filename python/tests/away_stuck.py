"""Processes of the operating system that test_processes_deadlock.py starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import weft.threads as th
from weft.processes import Executor, Parallel, process, select, sleep


@process
def pass_on(inp: Any, out: Any) -> None:
    """Reads before it writes."""
    out.write(inp.read())


@process
async def pass_on_async(inp: Any, out: Any) -> None:
    await out.write(await inp.read())


@th.process
def pass_on_here(inp: Any, out: Any) -> None:
    out.write(inp.read())


@process
def meets(barrier: Any, out: Any) -> None:
    """Syncs before it writes."""
    barrier.sync()
    out.write(1)


@process
async def meets_async(barrier: Any, out: Any) -> None:
    await barrier.sync()
    await out.write(1)


@process
def choose(a: Any, b: Any, out: Any) -> None:
    _, value = select(a, b)
    out.write(value)


@process
def asleep(inp: Any, out: Any) -> Any:
    """Nothing runs anywhere while it sleeps."""
    sleep(0.4)
    out.write("slept")
    return inp.read()


@process
def computes(path: str, out: Any) -> None:
    """Waits for something that Weft knows nothing of."""
    with Path(path).open("rb", buffering=0) as fifo:
        out.write(os.read(fifo.fileno(), 10))


@process
def with_another(inp: Any, out: Any, between: Any) -> None:
    """A host that has a host."""
    Parallel(pass_on(inp, between[0]), pass_on_here(between[1], out))


@process
def two_more(inp: Any, left: Any, right: Any, out: Any) -> None:
    Parallel(pass_on(inp, left), pass_on_here(right, out))


@process
def with_an_executor(inp: Any, out: Any) -> None:
    with Executor(1) as pool:
        assert pool.submit(abs, -1).result() == 1
        out.write(inp.read())


def within() -> None:
    """Two that wait for each other, in a call of an Executor."""
    a, b = th.Channel("a"), th.Channel("b")
    Parallel(pass_on_here(a.reader(), b.writer()), pass_on_here(b.reader(), a.writer()))


def reads(inp: Any) -> Any:
    return inp.read()


def syncs(barrier: Any) -> str:
    """A call of an Executor."""
    barrier.sync()
    return "met"
