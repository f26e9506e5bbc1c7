"""Rules 7.12, 13.4, 13.7: timeouts as scopes inside an asyncio loop, in processes of a guest and in
tasks."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from loops import new_in_3_11, receive, send, turns

from weft.coroutines import (
    Channel,
    Group,
    Parallel,
    after,
    current_process,
    deadline,
    move_on_after,
    now,
    process,
    run,
    run_async,
    select,
    sleep,
    timeout,
)
from weft.errors import BadUse, Cancelled
from weft.threads import timeout as timeout_of_threads

SHORT, LONG = 0.005, 60.0


# ---------------------------------------------------------------------------- processes of a guest


def test_in_a_guest_what_awaits_something_of_the_loop_is_ended(play):  # rule 7.12
    @process
    async def p():
        with pytest.raises(TimeoutError):
            async with timeout(SHORT) as scope:
                await asyncio.sleep(LONG)
        assert scope.expired
        with pytest.raises(TimeoutError):
            async with timeout(SHORT):
                await sleep(LONG)
        async with timeout(LONG):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "done"

    async def main():
        return await run_async(p())

    assert play(main()) == "done"


@new_in_3_11
def test_in_a_guest_with_timeouts_of_asyncio(play):  # rule 7.12
    @process
    async def p():
        log = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(LONG):
                async with timeout(SHORT):
                    await asyncio.sleep(LONG)
        with pytest.raises(TimeoutError):
            async with timeout(LONG) as scope:
                async with asyncio.timeout(SHORT):
                    await sleep(LONG)
        assert not scope.expired
        try:
            async with asyncio.timeout(SHORT):
                async with timeout(LONG) as scope:
                    try:
                        await sleep(LONG)
                    except BaseException as error:
                        log.append(type(error))
                        raise
        except TimeoutError:
            assert not scope.expired
            log.append("outer")
        return log

    async def main():
        return await run_async(p())

    assert play(main()) == [asyncio.CancelledError, "outer"]


def test_a_guest_in_virtual_time():  # rule 7.12
    @process
    async def p():
        async with move_on_after(100) as scope:
            await sleep(1000)
        assert scope.expired
        async with timeout(100):
            await sleep(50)
        return now()

    async def main():
        return await run_async(p(), clock="virtual")

    assert asyncio.run(main()) == 150


def test_a_process_that_asyncio_cancels_within_it(play):  # rule 7.12
    seen = []

    @process
    async def p():
        asyncio.get_running_loop().call_later(SHORT, asyncio.current_task().cancel)
        try:
            async with timeout(LONG):
                await sleep(LONG)
        except BaseException as error:
            seen.append(type(error))
            raise

    async def main():
        with pytest.raises(asyncio.CancelledError):  # rule 7.1
            await run_async(p())

    play(main())
    assert seen == [asyncio.CancelledError]


# ---------------------------------------------------------------------------------------- tasks


def test_in_a_task(play):  # rule 7.12
    c = Channel()

    @process
    async def long():
        await sleep(LONG)

    async def main():
        r, w = c.reader(), c.writer()
        for waits in (
            r.read,
            lambda: sleep(LONG),
            lambda: select(r, after(LONG)),
            lambda: asyncio.sleep(LONG),
            lambda: Parallel(long()),
        ):
            with pytest.raises(TimeoutError) as caught:
                async with timeout(SHORT) as scope:
                    await waits()
            assert isinstance(caught.value.__cause__, asyncio.CancelledError)
            assert scope.expired
        with pytest.raises(TimeoutError):
            async with timeout(SHORT):
                await w.write("nobody")
        assert (c.stats().waiting_readers, c.stats().waiting_writers) == (0, 0)
        task = asyncio.ensure_future(r.read())
        await turns(2)
        async with timeout(LONG):
            await w.write("value")
        assert await task == "value"

    play(main())


def test_a_task_that_is_in_time(play):  # rule 7.12
    async def main():
        async with timeout(LONG) as scope:
            await sleep(0)
        assert not scope.expired
        async with timeout(None):
            await asyncio.sleep(SHORT)
        async with move_on_after(SHORT) as scope:
            await asyncio.sleep(LONG)
        assert scope.expired
        # on a busy machine the end of the block may take longer than SHORT
        async with deadline(now() + 20 * SHORT):
            pass
        with pytest.raises(TimeoutError):
            async with deadline(now() - 1):
                await asyncio.sleep(LONG)
        await asyncio.sleep(21 * SHORT)  # no request remains
        await turns(3)

    play(main())


def test_no_time_at_all_in_a_task(play):  # rule 7.12
    async def main():
        for seconds in (0, -1, float("-inf")):
            async with timeout(seconds) as scope:
                pass
            assert not scope.expired
            await turns(2)
            with pytest.raises(TimeoutError):
                async with timeout(seconds):
                    await asyncio.sleep(LONG)

    play(main())


def test_of_nested_ones_in_a_task_the_outer_one_wins(play):  # rule 7.12
    async def main():
        inner_saw = []
        with pytest.raises(TimeoutError, match=r"0\.005"):
            async with timeout(SHORT) as outer:
                try:
                    async with timeout(LONG) as inner:
                        await sleep(LONG)
                except BaseException as error:
                    inner_saw.append(type(error))
                    raise
        assert inner_saw == [asyncio.CancelledError]
        assert (outer.expired, inner.expired) == (True, False)
        with pytest.raises(TimeoutError):
            async with timeout(LONG) as outer, timeout(SHORT) as inner:
                await sleep(LONG)
        assert (outer.expired, inner.expired) == (False, True)
        if sys.version_info >= (3, 11):
            assert asyncio.current_task().cancelling() == 0
        await turns(3)

    play(main())


@new_in_3_11
def test_both_have_expired_in_a_task(play):  # rule 7.12
    async def main():
        with pytest.raises(TimeoutError):
            async with timeout(0) as outer:
                with pytest.raises(asyncio.CancelledError) as passed:
                    async with timeout(0) as inner:
                        await asyncio.sleep(LONG)
                raise passed.value
        assert (outer.expired, inner.expired) == (True, False)
        assert asyncio.current_task().cancelling() == 0

    play(main())


def test_a_task_that_is_cancelled_within_it(play):  # rule 7.12
    async def waits(scope):
        async with scope:
            await sleep(LONG)

    async def main():
        scope = timeout(LONG)
        task = asyncio.ensure_future(waits(scope))
        await turns(3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not scope.expired

    play(main())


def test_a_cancellation_beside_an_expiry_in_a_task(play):  # rule 7.12
    async def waits(scope):
        async with scope:
            await asyncio.sleep(LONG)

    async def main():
        for first in (False, True):
            scope = timeout(None)
            task = asyncio.ensure_future(waits(scope))
            await turns(2)
            limit: Any = scope._limit
            if first:
                task.cancel()
            limit._ask()  # this is the call that the limit's timer makes
            if not first:
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not scope.expired

    play(main())


def test_a_value_that_committed_is_delivered_to_a_task(play):  # rule 7.12
    """The writer arrives, and the limit expires before the task runs; the task still gets the value
    (rules 6.3, 6.6)."""
    c = Channel()

    async def main():
        r, w = c.reader(), c.writer()

        async def writes(scope):
            async with scope:
                await w.write("value")
                assert scope.expired
            assert not scope.expired
            await turns(3)  # the request was withdrawn, so it is not owed to the task either
            await c2.write("after")

        both = Channel(capacity=1)
        c2 = both.writer()
        scope = timeout(None)
        task = asyncio.ensure_future(writes(scope))
        await turns(3)
        assert c.stats().waiting_writers == 1
        assert await r.read() == "value"  # the write has committed, but its task has not run
        scope._limit._ask()
        await task
        assert await both.reader().read() == "after"

    play(main())


def test_reschedule_and_bad_use_in_a_task(play):  # rule 7.12
    async def main():
        async with move_on_after(SHORT) as scope:
            scope.reschedule(LONG)
            await sleep(2 * SHORT)
            assert not scope.expired
            scope.reschedule(None)
            scope.reschedule(SHORT)
            await sleep(LONG)
        assert scope.expired
        with pytest.raises(BadUse, match="reschedule"):
            scope.reschedule(1)
        outer, inner = timeout(LONG), timeout(LONG)
        await outer.__aenter__()
        await inner.__aenter__()
        with pytest.raises(BadUse, match="within it"):
            await outer.__aexit__(None, None, None)

        async def other():
            with pytest.raises(BadUse, match="another task"):
                await inner.__aexit__(None, None, None)

        await asyncio.ensure_future(other())
        await inner.__aexit__(None, None, None)
        await outer.__aexit__(None, None, None)
        with pytest.raises(BadUse, match="async with"), timeout_of_threads(1):
            pytest.fail("entered")
        with pytest.raises(BadUse, match="once"):
            async with inner:
                pytest.fail("entered")

    play(main())


def test_around_a_group_in_a_task(play):  # rule 7.12
    ended = []

    @process
    async def long():
        try:
            await sleep(LONG)
        except Cancelled:
            ended.append(current_process().name)
            raise

    async def main():
        with pytest.raises(TimeoutError):
            async with timeout(SHORT), Group() as group:
                group.start(long())
                await asyncio.sleep(LONG)
        with pytest.raises(TimeoutError):
            async with timeout(SHORT), Group() as group:
                group.start(long())
        c = Channel()
        async with timeout(LONG):
            assert (await Parallel(receive(c.reader()), send(c.writer(), 1)))[0] == [1]

    play(main())
    assert ended == ["long", "long"]


def test_a_run_of_its_own_loop():  # rule 7.12
    @process
    async def p():
        async with timeout(LONG):
            await asyncio.sleep(0)
        async with move_on_after(SHORT):
            await asyncio.sleep(LONG)
        return "done"

    assert run(p(), host="asyncio") == "done"
