"""asyncio in a checked function: if a task is alone on its loop, the networks that it awaits are
checked. All other uses of asyncio are refused (rule 17.13).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.coroutines import Channel, Group, process, run, run_async

QUICK: dict[str, Any] = {"seconds": 10}


@process
async def gives(out: Any, *values: Any) -> None:
    for value in values:
        await out.write(value)


@process
async def takes(source: Any) -> Any:
    await asyncio.sleep(1)
    return await source.read()


async def network(value: int = 1) -> Any:
    c = Channel("c")
    return (await run_async(takes(c.reader()), gives(c.writer(), value)))[0]


def test_networks_of_a_task_are_checked_one_after_the_other() -> None:
    """Rule 17.13: a task that awaits two networks and a sleep is checked completely."""

    async def main() -> Any:
        loop_time = asyncio.sleep(3600, "slept")
        return await network(1), await loop_time, await network(2)

    def function() -> None:
        assert asyncio.run(main()) == (1, "slept", 2)

    report = weft.check(function, **QUICK)
    assert not report.failed and report.complete, report.text
    function_alone = asyncio.run(network(3))  # asyncio is the same after the check
    assert function_alone == 3


def test_a_deadlock_of_such_a_network_is_found() -> None:
    @process
    async def locks(first: Any, second: Any) -> None:
        await first[0].write(None)
        await second[0].write(None)
        await second[1].read()
        await first[1].read()

    async def main() -> None:
        a, b = Channel("a", capacity=1), Channel("b", capacity=1)
        ends = [((x.writer(), x.reader()), (y.writer(), y.reader())) for x, y in ((a, b), (b, a))]
        await run_async(*[locks(*pair) for pair in ends])

    report = weft.check(lambda: asyncio.run(main()), **QUICK)
    assert (report.kind, report.deviations) == ("deadlock", 1)
    assert weft.check(lambda: asyncio.run(main()), replay=report.token, **QUICK).failed


def test_a_network_with_asyncio_as_its_host_is_checked() -> None:
    def function() -> Any:
        c = Channel("c")
        return run(takes(c.reader()), gives(c.writer(), 1), host="asyncio")

    assert weft.check(function, **QUICK).complete


def test_what_leaves_the_task_is_found() -> None:
    async def main() -> None:
        assert await network(1) == 2

    report = weft.check(lambda: asyncio.run(main()), **QUICK)
    assert report.kind == "exception" and "AssertionError" in report.what


async def _gathers() -> None:
    await asyncio.gather(network(), network())


async def _makes_a_task() -> None:
    await asyncio.create_task(network())


async def _waits_for_a_queue() -> None:
    await asyncio.Queue[int]().get()


async def _has_a_time_limit() -> None:
    async with asyncio.timeout(1):
        await network()


async def _opens_a_group() -> None:
    async with Group() as group:
        group.start(gives(Channel("c").writer()))


async def _reads() -> None:
    c = Channel("c")
    _kept = c.writer()
    await c.reader().read()


async def _waits_for_a_future() -> None:
    await asyncio.Future[int]()


async def _is_a_process_that_uses_the_loop() -> None:
    @process
    async def uses() -> None:
        await asyncio.Queue[int]().get()

    await run_async(uses())


async def _runs_a_loop_in_a_loop() -> None:
    asyncio.run(network())


@pytest.mark.parametrize(
    "main",
    [
        _gathers,
        _makes_a_task,
        _waits_for_a_queue,
        _has_a_time_limit,
        _opens_a_group,
        _reads,
        _waits_for_a_future,
        _is_a_process_that_uses_the_loop,
        _runs_a_loop_in_a_loop,
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_more_of_asyncio_is_refused_with_its_line(main: Callable[[], Any]) -> None:
    """Rules 17.9, 17.13: the report names the line that uses another part of asyncio."""
    report = weft.check(lambda: asyncio.run(main()), **QUICK)
    assert report.kind == "refused", report.text
    assert "test_checking_asyncio.py:" in report.what and "asyncio" in report.text


@pytest.mark.filterwarnings("ignore")
def test_a_runner_is_refused() -> None:
    def function() -> None:
        with asyncio.Runner() as runner:
            runner.run(network())

    assert weft.check(function, **QUICK).kind == "refused"
