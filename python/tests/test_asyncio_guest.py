"""Networks as guests of an asyncio loop (rule 13): how they are composed, and how they end."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from guests import fails
from loops import Runner, receive, send, wait

from weft import threads
from weft.coroutines import (
    BadUse,
    Channel,
    Group,
    Parallel,
    Sequence,
    Spawn,
    current_process,
    process,
    run,
    run_async,
    sleep,
)

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup


# ------------------------------------------------------------------------------------- composition


def test_parallel_in_a_task(play: Runner) -> None:
    """Rule 13.1: the task that awaits the network receives the results."""

    async def main() -> Any:
        c = Channel()
        return await Parallel(send(c.writer(), 1, 2, 3), receive(c.reader()))

    assert play(main()) == [None, [1, 2, 3]]


def test_run_async_and_sequence(play: Runner) -> None:
    @process
    async def give(v: int) -> int:
        await asyncio.sleep(0)
        return v

    async def main() -> Any:
        one = await run_async(give(1))
        two = await run_async(give(1), give(2))
        three = await run_async([give(3)])
        none = await Parallel()
        return one, two, three, none, await Sequence(give(4), give(5))

    assert play(main()) == (1, [1, 2], [3], [], [4, 5])


def test_a_group_as_a_block(play: Runner) -> None:
    async def main() -> Any:
        c = Channel()
        async with Group() as g:
            p = g.start(send(c.writer(), 1, 2))
            q = g.start(receive(c.reader()))
            await asyncio.sleep(0)
        return p.done, q.result

    assert play(main()) == (True, [1, 2])


def test_a_block_that_is_left_by_an_exception_cancels_its_processes(play: Runner) -> None:
    """Rule 7.5: the exception cancels the block's process, and the task's own end stays open."""

    async def main() -> Any:
        c = Channel()
        keep = c.writer()
        with pytest.raises(ZeroDivisionError):
            async with Group() as g:
                p = g.start(wait(c.reader()))
                await asyncio.sleep(0)
                raise ZeroDivisionError
        return p.done, keep.closed

    assert play(main()) == (True, False)


def cancelling() -> int:
    task: Any = asyncio.current_task()
    return int(task.cancelling()) if hasattr(task, "cancelling") else 0


@pytest.mark.parametrize("waits_at", ["a channel", "a future", "nothing"])
def test_a_failure_cancels_the_block(play: Runner, waits_at: str) -> None:
    """Rules 7.5, 13.4: the failure is raised where the block is left, and the task has no
    cancellation request left."""

    async def main() -> list[str]:
        c = Channel()
        r, _keep = c.reader(), c.writer()
        log = []
        with pytest.raises(KeyError):
            async with Group() as g:
                other = g.start(wait(c.reader()))
                g.start(fails(KeyError("k")))
                try:
                    if waits_at == "a channel":
                        await r()
                    elif waits_at == "a future":
                        await asyncio.get_running_loop().create_future()
                    else:
                        while True:
                            await asyncio.sleep(0)
                except asyncio.CancelledError:
                    log.append("cancelled")
                    raise
        assert other.done and not r.closed
        assert cancelling() == 0
        await asyncio.sleep(0)  # a remaining request would raise here
        return log

    assert play(main()) == ["cancelled"]


def test_a_block_that_goes_on_when_it_is_cancelled(play: Runner) -> None:
    """Rules 7.5, 13.4: the task is asked to end once, and continues. The failure is raised
    nevertheless."""

    async def main() -> int:
        turns = 0
        with pytest.raises(ExceptionGroup) as several:
            async with Group() as g:
                g.start(fails(KeyError("k")))
                try:
                    await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    while turns < 5:
                        turns += 1
                        await asyncio.sleep(0)
                raise ValueError
        assert [type(e) for e in several.value.exceptions] == [ValueError, KeyError]
        assert cancelling() == 0
        await asyncio.sleep(0)
        return turns

    assert play(main()) == 5


def test_a_block_is_cancelled_by_a_thread_and_by_what_was_spawned(play: Runner) -> None:
    """Rules 7.4, 7.5, 13.4: the loop learns of a thread's failure while another thread still
    waits."""

    @threads.process
    def breaks(r: Any) -> None:
        r()
        raise KeyError("thread")

    @threads.process
    def waits(r: Any) -> None:
        r()

    @process
    async def spawns() -> None:
        Spawn(fails(ValueError("spawned")))

    async def main() -> None:
        c, d = Channel(), Channel()
        keep = d.writer()
        w = c.writer()
        with pytest.raises(KeyError):
            async with Group() as g:
                g.start(waits(d.reader()))
                g.start(breaks(c.reader()))
                await w(1)
                await asyncio.get_running_loop().create_future()
        with pytest.raises(ValueError):
            async with Group() as g:
                g.start(spawns())
                await asyncio.get_running_loop().create_future()
        assert cancelling() == 0 and not keep.closed

    play(main())


@pytest.mark.skipif(not hasattr(asyncio.Task, "cancelling"), reason="3.10 does not count requests")
def test_a_request_of_another_stays_when_a_failure_cancels_the_block(play: Runner) -> None:
    """Rule 13.4: only the request that the failure has made is withdrawn."""

    async def main() -> tuple[str, int]:
        async def block() -> tuple[str, int]:
            raised = ""
            task: Any = asyncio.current_task()
            try:
                async with Group() as g:
                    g.start(fails(KeyError("k")))
                    task.cancel()
                    await asyncio.get_running_loop().create_future()
            except KeyError:
                raised = "KeyError"
            except asyncio.CancelledError:
                raised = "CancelledError"
            return raised, task.cancelling()

        return await asyncio.ensure_future(block())

    raised, left = play(main())
    assert left == 1
    assert raised in (
        "KeyError",
        "CancelledError",
    )  # the failure, unless the request ended the process before it could fail


def test_failures(play: Runner) -> None:
    """Rule 7.2: one failure is raised as it is, and several failures as a group."""

    async def main() -> None:
        c = Channel()
        keep = c.writer()
        blocked = wait(c.reader())
        with pytest.raises(KeyError):
            await Parallel(blocked, fails(KeyError("k")))
        assert blocked.done and not keep.closed
        with pytest.raises(ExceptionGroup) as several:
            await Parallel(fails(KeyError()), fails(ValueError()))
        assert [type(e) for e in several.value.exceptions] == [KeyError, ValueError]

    play(main())


def test_spawn_and_nested_parallel_and_threads(play: Runner) -> None:
    @threads.process
    def square(r: Any, w: Any) -> None:
        for v in r:
            w.write(v * v)

    @process
    async def outer(log: list[Any]) -> Any:
        c, d, e = Channel(), Channel(), Channel()
        Spawn(note(e.reader(), log))
        _, _, got = await Parallel(
            send(c.writer(), 1, 2, 3), square(c.reader(), d.writer()), receive(d.reader())
        )
        await e.writer().write("spawned")
        return got

    @process
    async def note(r: Any, log: list[Any]) -> None:
        log.append(await r.read())
        await asyncio.sleep(0.001)
        log.append("ended")

    async def main() -> Any:
        log: list[Any] = []
        return await run_async(outer(log)), log

    assert play(main()) == ([1, 4, 9], ["spawned", "ended"])


def test_many_networks_on_one_loop(play: Runner) -> None:
    @process
    async def double(r: Any, w: Any) -> None:
        async for v in r:
            await sleep(0.0001)
            await w.write(2 * v)

    async def one(k: int) -> Any:
        c, d = Channel(), Channel()
        *_, got = await Parallel(
            send(c.writer(), *range(k)), double(c.reader(), d.writer()), receive(d.reader())
        )
        return got

    async def main() -> Any:
        return await asyncio.gather(*(one(k) for k in range(20)))

    assert play(main()) == [[2 * v for v in range(k)] for k in range(20)]


def test_run_with_asyncio_as_host() -> None:
    @process
    async def in_asyncio() -> Any:
        await asyncio.sleep(0)
        process = current_process()
        return process.path if process else None

    assert run(in_asyncio(), host="asyncio") == "main/in_asyncio"
    with pytest.raises(BadUse, match="host must be"):
        run(host="trio", first=None)
    with pytest.raises(BadUse, match="run_async is awaited in an asyncio task"):
        run_async(None).send(None)
