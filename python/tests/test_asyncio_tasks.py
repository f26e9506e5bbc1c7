"""Asyncio tasks at channels: foreign waiters (rules 6.6, 13.7). test_asyncio_cancelled.py cancels
such tasks at every point."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from loops import Runner, on_uvloop, turns

from weft import threads
from weft.coroutines import (
    Alternative,
    BadUse,
    Barrier,
    Channel,
    Input,
    Output,
    PeerDied,
    Poisoned,
    Retired,
    Timer,
    after,
    at,
    now,
    process,
    run,
    run_async,
    select,
    skip,
    sleep,
    yield_,
)

# ----------------------------------------------------------------- every operation, in tasks alone


def test_tasks_talk_over_a_rendezvous(play: Runner) -> None:
    """Rule 13.7: tasks use channels without being processes."""

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()

        async def produce() -> None:
            for i in range(5):
                await w.write(i)
            w.retire()

        task = asyncio.create_task(produce())
        got = [v async for v in r]
        await task
        return got

    assert play(main()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("overflow", ["block", "drop_oldest", "drop_newest", "unbounded"])
def test_tasks_and_a_buffer(play: Runner, overflow: str) -> None:
    async def main() -> Any:
        c = Channel(capacity=2, overflow=overflow)
        r, w = c.reader(), c.writer()
        reading = asyncio.ensure_future(r.read())
        await turns(3)
        for i in range(3):
            await w.write(
                i
                # the third write waits until the reader has run, unless the buffer drops values or
                # grows
            )
        return await reading

    assert play(main()) == (1 if overflow == "drop_oldest" else 0)


def test_each_gets_what_it_waited_for_in_order(play: Runner) -> None:
    """Rule 1.2: first come, first served holds for tasks too."""

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()
        got: list[tuple[int, int]] = []

        async def one(k: int) -> None:
            got.append((k, await r.read()))

        tasks = [asyncio.create_task(one(k)) for k in range(4)]
        await turns(2)
        for v in range(4):
            await w.write(v)
        await asyncio.gather(*tasks)
        return got

    assert play(main()) == [(k, k) for k in range(4)]


def test_select_in_a_task(play: Runner) -> None:
    async def main() -> Any:
        a, b = Channel(), Channel()
        ra, wb = a.reader(), b.writer()
        rb, wa = b.reader(), a.writer()
        out: list[Any] = [await select(ra, after(0.001)), await select(ra, skip())]
        task = asyncio.ensure_future(rb.read())
        out.append(await select(ra, Output(wb, "x")))
        out.append(await task)
        task = asyncio.ensure_future(wa.write("y"))
        out.append(await select(ra, Output(wb, "x")))
        await task
        waiting = asyncio.create_task(asyncio.wait_for(select(Input(ra), at(now() + 100)), 50))
        await turns(2)
        await wa.write("z")
        out.append(await waiting)
        return out

    assert play(main()) == [(1, None), (1, None), (1, None), "x", (0, "y"), (0, "z")]


def test_two_selects_of_tasks_meet(play: Runner) -> None:
    """Rule 5.3: two tasks that both select pass a value to each other."""

    async def main() -> Any:
        a, b = Channel(), Channel()
        one = select(a.reader(), Output(b.writer(), 1))
        two = select(b.reader(), Output(a.writer(), 2))
        return await asyncio.gather(one, two)

    assert play(main()) in ([(0, 2), (1, None)], [(1, None), (0, 1)])


def test_a_value_computed_for_a_task(play: Runner) -> None:
    """Rules 5.8 and 6.6: the task claims the writer when it runs, and waits for the value."""

    async def main() -> Any:
        c, d = Channel(), Channel()
        r = c.reader()
        reading = asyncio.ensure_future(r.read())
        await turns(2)
        index, _ = await select(d.reader(), Output(c.writer(), make=lambda: "made"))
        return index, await reading

    # The task that selects keeps d's only reader, so the channel cannot end.
    assert play(main()) == (1, "made")


def test_a_computed_value_that_fails(play: Runner) -> None:
    async def main() -> None:
        c = Channel()
        r, w = c.reader(), c.writer()
        reading = asyncio.ensure_future(r.read())
        await turns(2)
        with pytest.raises(ZeroDivisionError):
            await select(Output(w, make=lambda: 1 / 0))
        with pytest.raises(PeerDied):
            await reading

    play(main())


def test_extended_read_in_a_task(play: Runner) -> None:
    """Rule 1.6: the writer waits until the task has left the block of the extended read."""

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()
        writing = asyncio.ensure_future(w.write("held"))
        async with r.extended() as value:
            await turns(5)
            assert not writing.done()
        await writing
        reading = r.extended()
        later = asyncio.create_task(hold(reading))
        await turns(3)
        await w.write("late")
        return value, await later

    async def hold(block: Any) -> Any:
        async with block as value:
            return value

    assert play(main()) == ("held", "late")


def test_barrier_timer_and_yield_in_tasks(play: Runner) -> None:
    async def main() -> Any:
        b = Barrier(3)
        order: list[int] = []

        async def party(k: int) -> None:
            order.append(k)
            await b.sync()
            order.append(10 + k)

        await asyncio.gather(*(party(k) for k in range(3)))
        await asyncio.gather(select(b, after(50)), b.sync(), b.sync())
        t = Timer(0.001)
        assert await t.tick() >= 1
        await yield_()
        await sleep(0)
        start = now()
        await sleep(0.003)
        assert now() - start >= 0.003  # never early (rule 8.5)
        return order[:3], sorted(order[3:])

    assert play(main()) == ([0, 1, 2], [10, 11, 12])


@pytest.mark.parametrize("mode", ["fair", "priority", "random"])
def test_an_alternative_offers_its_value_at_each_select(play: Runner, mode: Any) -> None:
    """Rules 5.9, 13.7: an alternative of a task offers the value that is given at each select."""

    async def main() -> Any:
        c = Channel(capacity=3)
        r, alternative = c.reader(), Alternative(Output(c.writer(), ["v"]), mode=mode)
        for _ in range(3):
            await alternative.select()
        return [await r.read() for _ in range(3)]

    assert play(main()) == [["v"]] * 3


def test_an_alternative_in_a_task(play: Runner) -> None:
    async def main() -> Any:
        c, d = Channel(), Channel()
        wc, wd = c.writer(), d.writer()
        alternative = Alternative(c.reader(), d.reader())
        got = []
        for w, v in ((wc, 1), (wd, 2), (wc, 3)):
            waiting = asyncio.ensure_future(alternative.select())
            await turns(2)
            await w.write(v)
            got.append(await waiting)
        alternative.enable(0, False)
        writing = asyncio.ensure_future(wc.write(4))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(alternative.select(), 0.01)
        alternative.enable(0, True)
        got.append(await alternative.select())
        await writing
        alternative.close()
        return got

    assert play(main()) == [(0, 1), (1, 2), (0, 3), (0, 4)]


def test_the_ends_of_a_channel_reach_tasks(play: Runner) -> None:
    """Rules 3.1, 3.3, 4.2: retirement and poison are raised in tasks."""

    async def main() -> None:
        c = Channel()
        r, w = c.reader(), c.writer()
        reading = asyncio.ensure_future(r.read())
        await turns(2)
        w.retire()
        with pytest.raises(Retired):
            await reading
        c = Channel()
        r, w = c.reader(), c.writer()
        writing = asyncio.ensure_future(w.write("back"))
        await turns(2)
        r.retire()
        with pytest.raises(Retired) as retired:
            await writing
        assert retired.value.value == "back"
        c = Channel()
        r, w = c.reader(), c.writer()
        both = [asyncio.ensure_future(r.read()), asyncio.ensure_future(select(r, after(100)))]
        await turns(2)
        c.poison(7)
        for task in both:
            with pytest.raises(Poisoned) as poisoned:
                await task
            assert poisoned.value.strength == 7

    play(main())


def test_an_end_moves_from_task_to_task(play: Runner) -> None:
    """Rule 2.4: a task that receives an end can use it, and the sender cannot."""

    async def main() -> Any:
        carry, c = Channel(), Channel()
        w, r = c.writer(), c.reader()
        _, moved = await asyncio.gather(carry.writer().write(w), carry.reader().read())
        with pytest.raises(BadUse, match="sent away"):
            await w.write(1)
        _, value = await asyncio.gather(moved.write("here"), r.read())
        dead = Channel()
        sending = asyncio.ensure_future(dead.writer().write(moved))
        await turns(2)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        # rule 6.2: the read was withdrawn
        _, again = await asyncio.gather(moved.write("still mine"), r.read())
        return value, again

    assert play(main()) == ("here", "still mine")


def test_bad_use_in_a_task(play: Runner) -> None:
    async def main() -> None:
        c = Channel()
        r, quiet = c.reader(), nothing()
        with pytest.raises(BadUse, match="async for"):
            next(iter(r))
        with pytest.raises(BadUse, match="extended read would block"), r.extended():
            pass
        with pytest.raises(BadUse, match="would block the running asyncio loop"):
            run(quiet)
        with pytest.raises(BadUse, match="would block the running asyncio loop"):
            threads.Parallel(quiet)
        assert await run_async(quiet) is None  # the process was not changed (rule 11.1)
        operation = r.read()
        task = asyncio.create_task(asyncio.wait_for(operation, 0.001))
        with pytest.raises(asyncio.TimeoutError):
            await task
        with pytest.raises(BadUse, match="already"):
            await operation
        r.retire()
        with pytest.raises(BadUse, match="retired"):
            await r.read()
        with pytest.raises(BadUse, match="nobody enrolled"):
            await Barrier(0).sync()

    play(main())


@process
async def nothing() -> None:
    pass


def test_an_operation_outside_any_loop_says_so() -> None:
    async def main() -> Any:
        return Channel(), Channel().reader().read()

    _, operation = asyncio.run(main())
    with pytest.raises(BadUse, match="outside any coroutine process of Weft and any asyncio task"):
        operation.send(None)


# --------------------------------------------------------------------- between tasks and processes


@process
async def echo(source: Any, sink: Any) -> None:
    async for v in source:
        await sink.write(v)


def test_tasks_and_processes_of_a_guest(play: Runner) -> None:
    async def main() -> Any:
        c, d = Channel(), Channel()
        network = asyncio.create_task(run_async(echo(c.reader(), d.writer())))
        w, r = c.writer(), d.reader()
        got = []
        for i in range(20):
            await w.write(i)
            got.append(await r.read())
        w.retire()
        await network
        return got

    assert play(main()) == list(range(20))


def test_tasks_and_a_run_in_another_thread(play: Runner) -> None:
    """The run knows that the ends of the task are held outside the run (rule 10.3)."""

    async def main() -> Any:
        c, d = Channel(), Channel()
        w, r = c.writer(), d.reader()
        network = asyncio.get_running_loop().run_in_executor(
            None, run, echo(c.reader(), d.writer())
        )
        got = []
        for i in range(50):
            await w.write(i)
            got.append(await r.read())
        w.retire()
        await network
        return got

    assert play(main()) == list(range(50))


def test_tasks_and_thread_processes(play: Runner) -> None:
    @threads.process
    def double(source: Any, sink: Any) -> None:
        for v in source:
            sink.write(2 * v)

    async def main() -> Any:
        c, d = Channel(capacity=3), Channel(capacity=3)
        network = asyncio.create_task(run_async(double(c.reader(), d.writer())))
        w, r = c.writer(), d.reader()
        got = []
        for i in range(30):
            await w.write(i)
            got.append(await r.read())
        w.retire()
        await network
        return got

    assert play(main()) == [2 * i for i in range(30)]


def test_two_loops_in_two_threads() -> None:
    c, d = Channel(), Channel()
    w, r = c.writer(), d.reader()
    source, sink = c.reader(), d.writer()

    async def there() -> None:
        async for v in source:
            await sink.write(v + 1)
        sink.retire()

    async def here() -> Any:
        got = []
        for i in range(100):
            index, _ = await select(Output(w, i), after(100))
            assert index == 0
            got.append(await r.read())
        w.retire()
        return got

    thread = threading.Thread(target=lambda: on_uvloop(there()))
    thread.start()
    try:
        assert asyncio.run(here()) == list(range(1, 101))
    finally:
        thread.join()
