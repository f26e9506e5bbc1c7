"""Operations at far ends that are left before the home has answered (rules 6.2, 11.1; wire 4.3,
4.8): whatever the home answers, these operations delay no other process, and their ends retire.

In the meantime the home is stopped, so the request and its withdrawal reach it together.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import os_process_targets_left as targets_left
import pytest
from test_processes import nobody_is_left  # noqa: F401 – a fixture

import weft.coroutines as co
from weft.coroutines import Channel, Output, after, process, run, select


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)  # all threads of the process have stopped


def with_home(
    home: Any, does: Callable[[int, Any, Any], Awaitable[Any]], asyncio_task: bool = False
) -> Any:
    """Runs `does(pid, end, told)` beside a process that is the home of `end`; returns the home's
    result."""
    here, over, reports = Channel("here", capacity=1), Channel("over"), Channel("said", capacity=1)

    async def both() -> Any:
        ends, signals, answer = here.reader(), over.writer(), reports.reader()
        async with co.Group() as group:
            group.start(home(here.writer(), over.reader(), reports.writer()))
            pid, end = await ends.read()
            await does(pid, end, signals)
            del end
            return await answer.read()

    return asyncio.run(both()) if asyncio_task else run(process(both)())


def leave(op: Any) -> None:
    """Drives the coroutine to the point where it waits, and closes it there."""
    coroutine = awaits(op)
    coroutine.send(None)
    coroutine.close()


async def awaits(op: Any) -> Any:
    return await op


@pytest.mark.parametrize("spans", [False, True])
def test_the_value_that_nobody_makes_any_more(spans: bool) -> None:
    """Rule 5.8: the home's COMMIT arrives after the choice has been decided for another of its
    guards."""
    made: list[int] = []
    idle = Channel("idle")
    more = [idle.reader()] if spans else []
    kept = idle.writer()

    async def does(pid: int, out: Any, signals: Any) -> None:
        stop(pid)
        guard = Output(out, make=lambda: made.append(1))
        leave(select(guard, *more, after(0.001)))
        await co.yield_()  # this returns after the timer has fired, when the choice has ended
        os.kill(pid, signal.SIGCONT)

    assert with_home(targets_left.reads_one, does) == "PeerDied"
    assert made == []
    kept.retire()


@pytest.mark.parametrize("spans", [False, True])
def test_the_ends_of_a_choice_go_with_it(spans: bool) -> None:
    """Rule 2.2: the ends are released even if the choice ended only after its owner."""
    idle = Channel("idle")
    more = [idle.reader()] if spans else []
    kept = idle.writer()

    async def does(pid: int, inp: Any, signals: Any) -> None:
        stop(pid)
        leave(select(inp, *more, after(0.001)))
        await co.yield_()
        inp.retire()
        os.kill(pid, signal.SIGCONT)
        await signals.write(None)

    assert with_home(targets_left.writes_when_told, does) == "Retired"
    kept.retire()


class Loose:
    """Awaits an operation, which a test may drop at any time."""

    def __init__(self, op: Any) -> None:
        self.op: Any = op
        self.begun = False

    def __await__(self) -> Loose:
        return self

    def __iter__(self) -> Loose:
        return self

    def __next__(self) -> Any:
        if self.op is None:
            raise StopIteration
        self.begun = True
        return next(self.op)


HOW: dict[str, Callable[[Any], Any]] = {
    "read": lambda inp: inp.read(),
    "extended read": lambda inp: inp.extended().__aenter__(),
    "select": lambda inp: select(inp, after(280)),
}


@pytest.mark.parametrize("how", HOW)
def test_an_operation_that_is_collected_while_its_home_is_asked(how: str) -> None:
    """No other code holds the end, so the end is closed once the home has answered; the process
    continues.
    """

    here, over, reports = Channel("here", capacity=1), Channel("over"), Channel("said", capacity=1)

    @process
    async def waits(loose: Loose) -> str:
        await loose
        return "went on"

    @process
    async def main() -> Any:
        ends, signals, answer = here.reader(), over.writer(), reports.reader()
        async with co.Group() as group:
            group.start(
                targets_left.writes_when_told(here.writer(), over.reader(), reports.writer())
            )
            got = list(await ends.read())
            pid = got[0]
            stop(pid)
            loose = Loose(HOW[how](got.pop()))
            waiter = group.start(waits(loose))
            while not loose.begun:
                await co.yield_()
            loose.op = None
            os.kill(pid, signal.SIGCONT)
            ended = await waiter.ended()
            await signals.write(None)
            return ended.result, await answer.read()

    assert run(main()) == ("went on", "Retired")


@pytest.mark.parametrize("in_task", [False, True], ids=["a process", "a task"])
def test_an_extended_read_that_had_happened_when_it_was_left(in_task: bool) -> None:
    """Rule 1.6: the block of the extended read has ended, and the writer continues."""

    async def does(pid: int, inp: Any, signals: Any) -> None:
        stop(pid)
        leave(inp.extended().__aenter__())
        os.kill(pid, signal.SIGCONT)

    assert with_home(targets_left.writes_one, does, in_task) == "written"
