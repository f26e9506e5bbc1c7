"""Asyncio tasks at channels, cancelled at every point (rules 6.2, 6.3, 6.6)."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import Runner, new_in_3_11, turns

from weft.coroutines import (
    Alternative,
    Barrier,
    Channel,
    Output,
    Parallel,
    Retired,
    after,
    process,
    select,
    skip,
    sleep,
)


@pytest.mark.parametrize("how", ["read", "select", "extended"])
def test_a_reader_cancelled_in_the_turn_of_its_wake_up_takes_nothing(
    play: Runner, how: str
) -> None:
    """Rule 6.6: the value remains with the writer, and is passed to the next reader in the waiting
    queue."""

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()

        async def first() -> Any:
            if how == "read":
                return await r.read()
            if how == "select":
                return await select(r, after(100))
            async with r.extended() as v:
                return v

        one = asyncio.create_task(first())
        await turns(2)
        two = asyncio.ensure_future(r.read())
        await turns(2)
        writing = asyncio.ensure_future(w.write("v"))
        await turns(1)  # the write has begun: `one` is woken, but has not run
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        await writing
        return await two

    assert play(main()) == "v"


def test_a_writer_cancelled_in_the_turn_of_its_commit_completes(play: Runner) -> None:
    """Rule 6.3: the value has been taken. The cancellation is raised once, at the next
    operation."""

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()
        log: list[str] = []

        async def write() -> None:
            await w.write("v")
            log.append("written")
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                log.append("cancelled")
            await asyncio.sleep(0.001)
            log.append("once")

        task = asyncio.create_task(write())
        await turns(2)
        log.append(await r.read())  # commits immediately; `task` has not run yet
        task.cancel()
        await task
        return log

    assert play(main()) == ["v", "written", "cancelled", "once"]


def test_write_many_goes_on_after_a_write_that_had_committed(play: Runner) -> None:
    """Rule 6.3: the cancellation is raised at the next write. In an earlier version write_many()
    returned as if all values had been written.
    """

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()
        task = asyncio.ensure_future(w.write_many([1, 2, 3]))
        await turns(2)
        got = await r.read()  # commits immediately; `task` has not run yet
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return got, c.stats().transfers

    assert play(main()) == (1, 1)


@pytest.mark.parametrize("after_turns", range(6))
def test_read_many_gives_its_block_or_takes_nothing(play: Runner, after_turns: int) -> None:
    """Rules 5.8, 6.3: while the value has still to be made, the reader is cancelled at every
    point."""

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()
        received: list[Any] = []

        async def reads() -> None:
            received.append(await r.read_many(5))
            await asyncio.sleep(100)

        task = asyncio.create_task(reads())
        await turns(2)
        writing = asyncio.ensure_future(select(Output(w, make=lambda: "v")))
        await turns(after_turns)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if not received:
            received.append([await r.read()])
        await writing
        return received

    assert play(main()) == [["v"]]


def test_a_cancellation_that_is_owed_comes_at_the_start_of_an_operation(play: Runner) -> None:
    """Rule 6.1: an owed cancellation is raised even if the operation could commit immediately."""

    async def main() -> Any:
        c, d = Channel(), Channel(capacity=5)
        r, w, w2 = c.reader(), c.writer(), d.writer()

        async def write() -> None:
            await w.write("v")
            await w2.write("too much")

        task = asyncio.create_task(write())
        await turns(2)
        await r.read()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return d.stats().transfers, await select(d.reader(), skip())

    assert play(main()) == (0, (1, None))


def test_cancelled_tasks_leave_no_loop_behind() -> None:
    loops: list[weakref.ref[Any]] = []

    async def main() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        a, b, barrier = Channel(), Channel(), Barrier(2)
        keep = a.writer(), b.reader()
        waiting = [a.reader().read(), b.writer().write(1), barrier.sync()]
        tasks = [asyncio.ensure_future(operation) for operation in waiting]
        await turns(2)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(o) for o in outcomes] == [asyncio.CancelledError] * 3
        del keep

    for _ in range(5):
        asyncio.run(main())
    gc.collect()
    assert [loop() for loop in loops] == [None] * 5


@new_in_3_11
def test_a_timeout_that_came_too_late_leaves_nothing_behind(play: Runner) -> None:
    """The write has committed when the limit expires, so the block ends without an exception, and
    no cancellation is raised later."""

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()

        async def write() -> str:
            async with asyncio.timeout(None) as limit:
                limits.append(limit)
                await w.write("v")
            for _ in range(5):
                await asyncio.sleep(0)
            return "well"

        limits: list[Any] = []
        task = asyncio.create_task(write())
        await turns(2)
        await r.read()
        # The limit expires in the same turn: no code has run since the read.
        limits[0]._on_timeout()
        return await task

    assert play(main()) == "well"


@pytest.mark.parametrize(
    "what", ["read", "write", "next", "extended", "sync", "select", "alternative"]
)
def test_a_cancelled_operation_is_let_go_of(play: Runner, what: str) -> None:
    """Rules 6.2, 6.4, 13.7: nothing keeps the task's end or its value, so the end is retired when
    it is dropped."""

    class Thing:
        pass

    values: list[Any] = []

    async def main() -> Any:
        c = Channel()
        r, w, barrier = c.reader(), c.writer(), Barrier(2)

        async def waits(r: Any, w: Any) -> None:
            thing = Thing()
            values.append(weakref.ref(thing))
            if what == "read":
                await r.read()
            elif what == "write":
                await w.write(thing)
            elif what == "next":
                await anext(aiter(r))
            elif what == "extended":
                async with r.extended():
                    pass
            elif what == "sync":
                await barrier.sync()
            elif what == "select":
                await select(Output(w, thing), after(1000))
            else:
                await Alternative(r, barrier).select()

        for _ in range(3):
            task = asyncio.create_task(waits(r, w))
            await turns(3)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            del task
        del r, w
        gc.collect()
        await sleep(0)  # a finaliser's retirement waits for an operation (12.2)
        return c.stats()

    stats = play(main())
    assert (stats.readers, stats.writers, stats.waiting_readers, stats.waiting_writers) == (0,) * 4
    assert [v() for v in values] == [None] * 3


def test_a_held_writer_is_not_cancelled(play: Runner) -> None:
    """Rules 1.6 and 6.3: the cancellation is raised only after the reader has left its block."""

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()
        log = []

        async def write() -> None:
            await w.write("v")
            log.append("went on")
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        task = asyncio.create_task(write())
        async with r.extended():
            task.cancel()
            await turns(5)
            log.append("block")
        with pytest.raises(asyncio.CancelledError):
            await task
        return log

    assert play(main()) == ["block", "went on"]


def exchange(steps: list[tuple[str, int]]) -> tuple[list[int], list[int], list[int]]:
    """Runs two readers and two writers, some of which select; `steps` describes what happens at
    each turn. Returns the values written, read, and left over."""

    async def main() -> tuple[list[int], list[int], list[int]]:
        c = Channel()
        r, w = c.reader(), c.writer()
        written: list[int] = []
        read: list[int] = []

        async def write(k: int) -> None:
            for i in range(3):
                v = 10 * k + i
                try:
                    if k % 2:
                        await w.write(v)
                    else:
                        await select(Output(w, v), after(1000))
                except asyncio.CancelledError:
                    return
                written.append(v)

        async def take(k: int) -> None:
            while True:
                if k % 2:
                    v = await r.read()
                else:
                    _, v = await select(r, after(1000))
                read.append(v)

        tasks: dict[str, asyncio.Task[None]] = {}
        for what, k in steps:
            if what == "turn":
                await turns(k)
            elif what == "cancel":
                name = sorted(tasks)[k % len(tasks)] if tasks else None
                if name:
                    tasks[name].cancel()
            elif f"{what}{k}" not in tasks:
                body = write if what == "write" else take
                tasks[f"{what}{k}"] = asyncio.create_task(body(k))
        await turns(3)
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        left = [v for v in [await select(r, skip())] if v[0] == 0]
        return written, read, [v for _, v in left]

    return asyncio.run(main())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("turn"), st.integers(1, 3)),
            st.tuples(st.just("cancel"), st.integers(0, 7)),
            st.tuples(st.sampled_from(["write", "take"]), st.integers(0, 3)),
        ),
        max_size=25,
    )
)
def test_nothing_is_lost_or_doubled(steps: list[tuple[str, int]]) -> None:
    """Rule 6.4: each value whose write has committed is read once, and nothing else is read."""
    written, read, left = exchange(steps)
    assert left == []
    assert sorted(written) == sorted(read)


def test_cancelled_at_every_turn() -> None:
    """Cancels each of the four tasks after each number of turns, exhaustively."""
    for victim in range(4):
        for turn in range(12):
            steps = [("take", 0), ("write", 1), ("turn", 1), ("take", 1), ("write", 0)]
            written, read, left = exchange(
                [*steps, *[("turn", 1)] * turn, ("cancel", victim), ("turn", 3)]
            )
            assert left == [] and sorted(written) == sorted(read), (victim, turn)


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_cancellations(play: Runner, seed: int) -> None:
    """Tasks and processes of a guest on both sides are cancelled at random; each value that was
    written must be read once."""
    dice = random.Random(seed)
    written: list[int] = []
    read: list[int] = []

    @process
    async def relay(source: Any, sink: Any) -> None:
        async for v in source:
            await sink.write(v)

    async def main() -> None:
        c, d = Channel(), Channel(capacity=dice.choice([0, 0, 2]))
        w, r = c.writer(), d.reader()
        network = asyncio.ensure_future(
            Parallel(relay(c.reader(), d.writer()), relay(c.reader(), d.writer()))
        )
        numbers = iter(range(10**6))

        async def write() -> None:
            while True:
                v = next(numbers)
                if dice.random() < 0.5:
                    await w.write(v)
                else:
                    await select(Output(w, v), after(1000))
                written.append(v)

        async def take() -> None:
            while True:
                if dice.random() < 0.5:
                    v = await r.read()
                else:
                    _, v = await select(after(1000), r)
                read.append(v)

        tasks = [asyncio.create_task(f()) for f in (write, take) * 3]
        for _ in range(80):
            await turns(dice.randrange(4))
            k = dice.randrange(6)
            tasks[k].cancel()
            await asyncio.gather(tasks[k], return_exceptions=True)
            tasks[k] = asyncio.create_task((write, take)[k % 2]())
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks[::2], return_exceptions=True)
        w.retire()
        await network
        for task in tasks[1::2]:
            with pytest.raises(Retired):
                await task

    play(main())
    assert sorted(read) == sorted(written), f"seed {seed}"


def test_a_task_of_a_closed_loop_gives_up_its_place() -> None:
    """A loop is closed while its task waits. Once the task has been dropped, the next party in the
    waiting queue is served."""
    c = Channel()
    r, w = c.reader(), c.writer()

    async def wait() -> None:
        await r.read()

    loop = asyncio.new_event_loop()
    coroutine = wait()
    task = loop.create_task(coroutine)
    loop.run_until_complete(turns(2))
    loop.close()
    assert c.stats().waiting_readers == 1
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine.close()
    assert c.stats().waiting_readers == 0

    async def main() -> Any:
        return (await asyncio.gather(w.write(1), r.read()))[1]

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize("how", ["write", "select", "read", "read by select"])
def test_a_task_dropped_while_a_partner_holds_it(play: Runner, how: str) -> None:
    """Rule 6.6: the task is killed after the commit. The partner continues, and the value that it
    makes is dropped."""

    async def waits(r: Any, w: Any) -> None:
        if how == "write":
            await w.write("v")
        elif how == "select":
            await select(Output(w, "v"), after(100))
        elif how == "read":
            await r.read()
        else:
            await select(r, after(100))

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()
        hand = waits(r, w)  # driven by hand, because a closed coroutine would make a task complain
        hand.send(None)
        if "read" in how:
            made = asyncio.ensure_future(select(Output(w, make=lambda: "made")))
            await turns(3)
            hand.send(None)  # the operation takes the value, and waits for the value to be made
            hand.close()
            got: Any = await made
        else:
            async with r.extended() as got:
                hand.close()
        await turns(2)
        again = await asyncio.gather(w.write("next"), r.read())
        return got, again[1], c.stats().transfers

    assert play(main()) == ((0, None) if "read" in how else "v", "next", 2)
