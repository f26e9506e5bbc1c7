"""Ordinary code at ends of channels of another OS process: threads that are not processes, tasks of
asyncio, the main program.

Rule 6.6 and WIRE.md 15: ordinary code asks the home of its end as a process does, and waits. Each
test starts interpreters.
"""

from __future__ import annotations

import asyncio
from typing import Any

import os_process_targets_ordinary as targets
import pytest

import weft.coroutines as co
import weft.threads as th
from weft.processes import Channel, Output, Parallel, Poisoned


@th.process
def numbers(out: Any, n: int) -> None:
    for i in range(n):
        out.write(i)


@th.process
def gather(inp: Any) -> list[int]:
    return list(inp)


@pytest.mark.parametrize("capacity", [0, pytest.param(2, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "between",
    [
        targets.thread_iterates,
        targets.thread_chooses,
        targets.thread_holds,
        targets.task_iterates,
        targets.task_chooses,
        targets.task_holds,
    ],
    ids=lambda f: f.__name__,
)
def test_ordinary_code_there_passes_on(between: Any, capacity: int) -> None:  # rules 1, 3, 5, 6.6
    a, b = Channel("a", capacity=capacity), Channel("b", capacity=capacity)
    results = Parallel(numbers(a.writer(), 6), between(a.reader(), b.writer()), gather(b.reader()))
    assert results[1:] == ["done", [0, 2, 4, 6, 8, 10]]


def test_two_tasks_at_one_pair_of_far_ends() -> None:  # rule 2.3
    a, b = Channel("a"), Channel("b")
    results = Parallel(
        numbers(a.writer(), 30), targets.two_tasks(a.reader(), b.writer()), gather(b.reader())
    )
    assert results[1] == 30 and sorted(results[2]) == [2 * i for i in range(30)]


def test_a_task_whose_read_is_cancelled_has_taken_nothing() -> None:  # rules 6.2, 6.6
    a, ready, b = Channel("a"), Channel("ready"), Channel("b")

    @th.process
    def late(out: Any, ready: Any) -> None:
        assert ready.read() == "not yet"
        assert ready.read() == "now"
        out.write(7)

    results = Parallel(
        late(a.writer(), ready.reader()),
        targets.task_gives_up(a.reader(), ready.writer(), b.writer()),
        gather(b.reader()),
    )
    assert results[1:] == ["cancelled", [7]]


@pytest.mark.parametrize("how", ["thread", "task"])
def test_poison_to_and_from_ordinary_code_there(how: str) -> None:  # rule 4
    @th.process
    def poisons(out: Any) -> None:
        out.poison()

    @th.process
    def reads(inp: Any) -> str:
        try:
            return str(inp.read())
        except Poisoned as error:
            return type(error).__name__

    a, b = Channel("a"), Channel("b")
    assert Parallel(targets.meet_poison(a.reader(), how), poisons(a.writer()))[0] == "Poisoned"
    assert Parallel(targets.poisons(b.writer(), how), reads(b.reader()))[1] == "Poisoned"


def test_the_main_program_at_an_end_that_came_from_another() -> None:
    """The caller is ordinary code: the block of a group (rule 7.5). The home of the channel is
    another OS process."""
    c, signal = Channel("c"), Channel("told")
    reader, answer = c.reader(), signal.reader()
    with th.Group() as group:
        group.start(targets.offers_and_reads(c.writer(), signal.writer()))
        end = reader.read()
        for i in range(4):
            end.write(i)
        end.retire()
        assert answer.read() == [0, 1, 2, 3]


def test_tasks_here_at_an_end_that_came_from_another() -> None:
    """An asyncio program starts an OS process beside its tasks; the tasks use an end that arrives
    from that OS process."""
    c, signal = Channel("c"), Channel("told")
    reader, answer = c.reader(), signal.reader()

    async def main() -> Any:
        far_process = asyncio.ensure_future(
            co.run_async(targets.offers_and_reads(c.writer(), signal.writer()))
        )
        end = await reader.read()
        await end.write(5)
        assert (await co.select(Output(end, 6)))[0] == 0
        end.poison()
        got = await answer.read()
        await far_process
        return got

    assert asyncio.run(main()) == [5, 6, "poison"]
