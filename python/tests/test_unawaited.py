"""Tests that a network that fails in a task that is not awaited is reported at once (rule 13.8)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from weft.coroutines import Channel, Group, Parallel, process, run_async


@process
async def fails() -> None:
    raise ZeroDivisionError


@process
async def retires() -> None:
    c = Channel()
    reader = c.reader()
    c.writer().retire()
    await reader.read()


async def of_parallel() -> None:
    await Parallel(fails())


async def of_group() -> None:
    async with Group() as group:
        group.start(fails())


async def handles() -> str:
    try:
        await run_async(fails())
    except ZeroDivisionError:
        return "handled"
    return "not reached"


def told(begin: Any) -> list[dict[str, Any]]:
    """Returns the reports to the handler of exceptions until the task of `begin` has ended and the
    loop has run one more turn. asyncio alone would call the handler later, when the task is
    collected.
    """
    seen: list[dict[str, Any]] = []
    kept: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: seen.append(what))
        task = begin(kept)
        while not task.done():
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)

        seen_at_once.extend(seen)

    seen_at_once: list[dict[str, Any]] = []
    asyncio.run(main())
    return seen_at_once


@pytest.mark.parametrize(
    "network", [lambda: run_async(fails()), of_parallel, of_group], ids=["run", "Parallel", "Group"]
)
def test_it_is_told_at_once(network: Any) -> None:
    """Rule 13.8: the failure is reported at once, however the network was begun."""

    def begin(kept: list[Any]) -> Any:
        kept.append(asyncio.create_task(network(), name="clerk"))
        return kept[0]

    (what,) = told(begin)
    assert "nobody awaits its task 'clerk'" in what["message"]
    assert isinstance(what["exception"], ZeroDivisionError)


def test_a_set_that_keeps_the_task_awaits_nothing() -> None:
    tasks = set()

    def begin(kept: list[Any]) -> Any:
        task = asyncio.create_task(run_async(fails()))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        kept.append(task)
        return task

    assert len(told(begin)) == 1


@pytest.mark.parametrize("network", [handles, lambda: run_async(retires())], ids=["it", "quiet"])
def test_what_is_handled_or_quiet_is_not_told(network: Any) -> None:
    def begin(kept: list[Any]) -> Any:
        kept.append(asyncio.create_task(network()))
        return kept[0]

    assert told(begin) == []


def test_what_somebody_awaits_is_not_told() -> None:
    async def awaits(task: Any) -> None:
        with pytest.raises(ZeroDivisionError):
            await task

    def begin(kept: list[Any]) -> Any:
        kept.append(asyncio.create_task(run_async(fails())))
        kept.append(asyncio.create_task(awaits(kept[0])))
        return kept[1]

    assert told(begin) == []


def test_gather_awaits() -> None:
    def begin(kept: list[Any]) -> Any:
        kept.append(asyncio.gather(run_async(fails()), return_exceptions=True))
        return kept[0]

    assert told(begin) == []
