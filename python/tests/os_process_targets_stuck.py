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
    """Sleeps; no process runs anywhere during that time."""
    sleep(0.4)
    out.write("slept")
    return inp.read()


@process
def computes(path: str, out: Any) -> None:
    """Waits for an event that is unknown to Weft."""
    with Path(path).open("rb", buffering=0) as fifo:
        out.write(os.read(fifo.fileno(), 10))


@process
def two_more(inp: Any, left: Any, right: Any, out: Any) -> None:
    Parallel(pass_on(inp, left), pass_on_here(right, out))


@process
def with_an_executor(inp: Any, out: Any) -> None:
    with Executor(1) as pool:
        assert pool.submit(abs, -1).result() == 1
        out.write(inp.read())


def within() -> None:
    """Makes two processes wait for each other, in a call of an Executor."""
    a, b = th.Channel("a"), th.Channel("b")
    Parallel(pass_on_here(a.reader(), b.writer()), pass_on_here(b.reader(), a.writer()))


def reads(inp: Any) -> Any:
    return inp.read()


def within_a_call() -> None:
    """Runs in a call of an Executor, and has another Executor with a call that waits forever."""
    with Executor(1) as pool:
        call = pool.submit(within)
        c = th.Channel("never")
        try:
            th.run(pass_on_here(c.reader(), c.writer()))
        finally:
            call.result()


CALLS = {"by itself": within, "by its own call": within_a_call}


@process
def with_a_call(how: str, inp: Any, out: Any, message: str) -> None:
    """Runs in a host whose Executor has a call that waits forever. Records the outcome."""
    with Executor(2) as pool:
        calls = [pool.submit(CALLS[how]), pool.submit(abs, -1)]
        assert calls[1].result() == 1
        try:
            out.write(inp.read())
        finally:
            failure = f"{type(calls[0].exception()).__name__}: {calls[0].exception()}"
            Path(message).write_text(failure, encoding="utf-8")


@process
def with_a_call_that_reads(inp: Any, out: Any, at: Any, held: Any) -> None:
    """Ends while its call reads: the end of this process also ends the call."""
    with Executor(1) as pool:
        pool.submit(reads, at)
        out.write(inp.read())
        held.retire()


@process
def with_a_call_for_a_file(path: str, out: Any) -> None:
    """Submits a call that no process waits for. The call's callback writes."""
    with Executor(1) as pool:
        c = th.Channel("c", capacity=1)
        w = c.writer()
        pool.submit(read_file, path).add_done_callback(lambda f: w.write(f.result()))
        out.write(c.reader().read())


@process
def with_calls_that_come(path: str, out: Any) -> None:
    """Submits one call. Each call's callback submits the next call."""
    with Executor(1) as pool:
        left = [3]

        def again(f: Any) -> None:
            left[0] -= 1
            if left[0]:
                pool.submit(abs, left[0]).add_done_callback(again)
            else:
                w.write(read_file(path))

        c = th.Channel("c", capacity=1)
        w = c.writer()
        pool.submit(abs, -1).add_done_callback(again)
        out.write(c.reader().read())


def read_file(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def writes(out: Any) -> int:
    out.write(7)
    return 7


def syncs(barrier: Any) -> str:
    """Syncs, in a call of an Executor."""
    barrier.sync()
    return "met"


@process
def will_obey_late(path: str, go_on: str) -> None:
    """From the next call on, a cancellation that arrives in this OS process is reported at the FIFO
    `path`, and is carried out only once a byte was written to the FIFO `go_on`.
    """
    from weft._hosts import child

    class Late:
        def __init__(self, process: Any) -> None:
            self.process = process

        def cancel(self) -> None:
            Path(path).write_bytes(b"here")
            Path(go_on).read_bytes()
            self.process.cancel()

    obey = child._obey
    child._obey = lambda orders, process: obey(orders, Late(process))


@process
def greets_and_reads(out: Any, inp: Any) -> None:
    out.write("here")
    inp.read()
