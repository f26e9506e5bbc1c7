"""Asyncio tasks at channels: foreign waiters (rules 6.6, 13.7, 13.8), cancelled at every point."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import Runner, on_uvloop, turns

from weft import threads
from weft.coroutines import (
    Alternative,
    BadUse,
    Barrier,
    Channel,
    Input,
    Output,
    Parallel,
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

# ---------------------------------------------------------------------------------------- every operation, in tasks alone


def test_tasks_talk_over_a_rendezvous(play: Runner) -> None:
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
            )  # the third finds room only once the reader has run, unless the buffer drops or grows
        return await reading

    assert play(main()) == (1 if overflow == "drop_oldest" else 0)


def test_each_gets_what_it_waited_for_in_order(play: Runner) -> None:
    """Rule 1.2: first come, first served, tasks too."""

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
    """Rule 5.3."""

    async def main() -> Any:
        a, b = Channel(), Channel()
        one = select(a.reader(), Output(b.writer(), 1))
        two = select(b.reader(), Output(a.writer(), 2))
        return await asyncio.gather(one, two)

    assert play(main()) in ([(0, 2), (1, None)], [(1, None), (0, 1)])


def test_a_value_computed_for_a_task(play: Runner) -> None:
    """Rules 5.8 and 6.6: it reserves the writer when it runs, and waits for the value."""

    async def main() -> Any:
        c, d = Channel(), Channel()
        r = c.reader()
        reading = asyncio.ensure_future(r.read())
        await turns(2)
        index, _ = await select(d.reader(), Output(c.writer(), make=lambda: "made"))
        return index, await reading

    # the task that selects keeps d's only reader: nobody can end it
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
    """Rule 1.6."""

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
    """Rules 3.1, 3.3, 4.2."""

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
    """Rule 2.4."""

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
        _, again = await asyncio.gather(moved.write("still mine"), r.read())  # withdrawn: 6.2
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
        assert await run_async(quiet) is None  # nothing was done to it (rule 11.1)
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


# ------------------------------------------------------------------------------------------- between tasks and processes


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
    """The run does not take the task's ends for nobody's (rule 10.3)."""

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


# ------------------------------------------------------------------------------------------------------ cancellation


@pytest.mark.parametrize("how", ["read", "select", "extended"])
def test_a_reader_cancelled_in_the_turn_of_its_wake_up_takes_nothing(
    play: Runner, how: str
) -> None:
    """Rule 6.6: the value stays with the writer, for the next in line."""

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
        await turns(1)  # the write has begun: `one` is told, and has not run
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        await writing
        return await two

    assert play(main()) == "v"


def test_a_writer_cancelled_in_the_turn_of_its_commit_completes(play: Runner) -> None:
    """Rule 6.3: the value was taken; the cancellation comes at the next point, once."""

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
        log.append(await r.read())  # commits at once; `task` has not run
        task.cancel()
        await task
        return log

    assert play(main()) == ["v", "written", "cancelled", "once"]


def test_a_cancellation_that_is_owed_comes_at_the_start_of_an_operation(play: Runner) -> None:
    """Rule 6.1: also of one that could commit at once."""

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


def test_a_timeout_that_came_too_late_leaves_nothing_behind(play: Runner) -> None:
    """The write has committed when the time is up: the block ends well, and no cancellation comes later."""
    if not hasattr(asyncio, "timeout"):
        pytest.skip("asyncio.timeout is of Python 3.11")

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
        limits[0]._on_timeout()  # in the very turn: nothing has run since the read
        return await task

    assert play(main()) == "well"


@pytest.mark.parametrize(
    "what", ["read", "write", "next", "extended", "sync", "select", "alternative"]
)
def test_a_cancelled_operation_is_let_go_of(play: Runner, what: str) -> None:
    """Rules 6.2, 6.4, 13.7: nothing keeps its end, so that the end is retired when it is dropped, nor its value."""

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
    """Rules 1.6 and 6.3."""

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
    """Two readers and two writers, some by select; what is done at each turn is given. Written, read, left over."""

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
    """Rule 6.4: what a writer believes to be written is read, once, and nothing else is."""
    written, read, left = exchange(steps)
    assert left == []
    assert sorted(written) == sorted(read)


def test_cancelled_at_every_turn() -> None:
    """Exhaustive: each of four tasks cancelled after each number of turns."""
    for victim in range(4):
        for turn in range(12):
            steps = [("take", 0), ("write", 1), ("turn", 1), ("take", 1), ("write", 0)]
            written, read, left = exchange(
                [*steps, *[("turn", 1)] * turn, ("cancel", victim), ("turn", 3)]
            )
            assert left == [] and sorted(written) == sorted(read), (victim, turn)


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_cancellations(play: Runner, seed: int) -> None:
    """Tasks and processes of a guest on both sides, cancelled at random; what was written was read, once."""
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
    """A loop that is closed while its task waits: once the task is dropped the line moves on."""
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
    """Rule 6.6: killed after the commit; the partner goes on, and what it makes is let go of."""

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
        hand = waits(r, w)  # driven by hand: a task whose coroutine is closed would complain
        hand.send(None)
        if "read" in how:
            made = asyncio.ensure_future(select(Output(w, make=lambda: "made")))
            await turns(3)
            hand.send(None)  # it takes, and waits for the value
            hand.close()
            got: Any = await made
        else:
            async with r.extended() as got:
                hand.close()
        await turns(2)
        again = await asyncio.gather(w.write("next"), r.read())
        return got, again[1], c.stats().transfers

    assert play(main()) == ((0, None) if "read" in how else "v", "next", 2)
