"""Rule 8.5: a deadline at or beyond the end of the clock is never reached, however it was
specified."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from weft import coroutines as co
from weft.coroutines import BadUse, Deadlock

FAR = [math.inf, 1e308, 9.3e9, 10**400]


async def sleeps(b, seconds, ends):
    await b.op(b.weft.sleep(seconds))


async def selects(b, seconds, ends):
    await b.op(b.weft.select(b.weft.after(seconds)))


async def has_a_date(b, seconds, ends):
    await b.op(b.weft.select(b.weft.at(seconds)))


async def ticks(b, seconds, ends):
    await b.op(b.weft.Timer(seconds).tick())


async def selects_a_timer(b, seconds, ends):
    await b.op(b.weft.select(b.weft.Timer(seconds)))


async def reads_or_sleeps(b, seconds, ends):
    await b.op(b.weft.select(ends[0], b.weft.after(seconds)))


async def stands(b, seconds, ends):
    alternative = b.weft.Alternative(ends[0], b.weft.after(seconds))
    await b.op(alternative.select())


async def reads_within(b, seconds, ends):
    scope = b.weft.timeout(seconds)
    await b.op(scope.__enter__() if b.blocking else scope.__aenter__())
    try:
        await b.op(ends[0].read())
    finally:
        await b.op(
            scope.__exit__(None, None, None) if b.blocking else scope.__aexit__(None, None, None)
        )


WAYS = [
    sleeps,
    selects,
    has_a_date,
    ticks,
    selects_a_timer,
    reads_or_sleeps,
    stands,
    reads_within,
]


@pytest.mark.parametrize("clock", ["steady", "virtual"])
@pytest.mark.parametrize("way", WAYS)
def test_it_never_comes_and_is_nothing_outside(b, way, clock):  # rules 8.5, 8.6, 10.1
    for seconds in FAR:
        c = b.weft.Channel()
        with pytest.raises(Deadlock):
            b.run(b.process(way)(seconds, [c.reader(), c.writer()]), clock=clock)


@pytest.mark.parametrize("clock", ["steady", "virtual"])
@pytest.mark.parametrize("way", WAYS)
def test_nor_in_a_guest(way, clock):  # rules 8.5, 13.6
    class B:
        weft: Any = co
        blocking = False

        @staticmethod
        def op(operation: Any) -> Any:
            return operation

    c = co.Channel()

    async def main():
        with pytest.raises(Deadlock):
            await co.run_async(co.process(way)(B, math.inf, [c.reader(), c.writer()]), clock=clock)

    asyncio.run(main())


def test_the_others_come_as_ever(b):  # rules 8.5, 8.6
    async def body(b):
        first = await b.op(b.weft.select(b.weft.after(math.inf), b.weft.after(3600)))
        late = b.weft.Timer(math.inf)
        second = await b.op(b.weft.select(late, b.weft.Timer(1e308), b.weft.at(7200)))
        return first, second, b.weft.now()

    assert b.run(b.process(body)(), clock="virtual") == ((1, None), (2, None), 7200)


def test_it_ends_by_a_cancellation(b):  # rules 8.5, 7.12
    async def body(b):
        scope = b.weft.move_on_after(0.001)
        await b.op(scope.__enter__() if b.blocking else scope.__aenter__())
        try:
            await b.op(b.weft.sleep(math.inf))
        except b.weft.Cancelled as e:
            leave = scope.__exit__ if b.blocking else scope.__aexit__
            assert await b.op(leave(type(e), e, e.__traceback__))
        return scope.expired

    assert b.run(b.process(body)())


def test_a_process_that_sleeps_for_ever_is_stuck():  # rules 8.5, 10.5
    async def sleeper():
        await co.sleep(math.inf)

    async def looker():
        await co.yield_()
        found = co.deadlocks()
        raise LookupError(str(found))

    with pytest.raises(LookupError, match=r"(?s)1 process is stuck.*sleeper: sleep at "):
        co.run(co.process(sleeper)(), co.process(looker)())


def test_in_a_task(play):  # rules 8.5, 13.7
    async def main():
        c = co.Channel()
        r, w = c.reader(), c.writer()
        waiting = [
            asyncio.ensure_future(x)
            for seconds in FAR
            for x in (
                wait(co.sleep(seconds)),
                wait(co.select(r, co.after(seconds))),
                wait(co.select(co.at(seconds))),
                wait(co.Timer(seconds).tick()),
                within(seconds, r),
            )
        ]
        done, _ = await asyncio.wait(waiting, timeout=0.01)
        assert not done
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        assert all(task.cancelled() for task in waiting)
        assert not w.closed

    async def wait(operation):
        await operation

    async def within(seconds, r):
        async with co.timeout(seconds):
            await r.read()

    play(main())


@pytest.mark.parametrize("what", ["sleep", "after", "at", "Timer", "timeout", "deadline"])
def test_what_is_no_number_is_bad_use(b, what):  # rules 8.5, 11.1
    with pytest.raises(BadUse, match=rf"{what}.*nan"):
        getattr(b.weft, what)(math.nan)


def test_reschedule_to_no_number_is_bad_use(b):  # rules 8.5, 11.1
    async def body(b):
        scope = b.weft.timeout(None)
        await b.op(scope.__enter__() if b.blocking else scope.__aenter__())
        with pytest.raises(BadUse, match="nan"):
            scope.reschedule(math.nan)
        scope.reschedule(math.inf)
        leave = scope.__exit__ if b.blocking else scope.__aexit__
        await b.op(leave(None, None, None))

    b.run(b.process(body)())
