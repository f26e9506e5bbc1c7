"""Rule 7.12: timeouts as scopes, in processes of every backend.

test_asyncio_limits.py tests timeouts in asyncio; test_limits_around.py tests timeouts around runs
and groups.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from limit_parts import Within, alone, late
from parts import receive

from weft.errors import BadUse, Cancelled

# -------------------------------------------------------- which operations a timeout ends, and when


def test_every_operation_that_waits_is_ended(b):  # rule 7.12
    c, d, barrier = b.weft.Channel("c"), b.weft.Channel("d"), b.weft.Barrier(2)
    timer = b.weft.Timer(1e6)

    async def body(b, r, w, keep_w, keep_r):
        pending = b.weft.Output(w, "mine")
        return [
            await late(b, 1, r.read),
            await late(b, 1, lambda: w.write("mine")),
            await late(b, 1, lambda: b.weft.sleep(100)),
            await late(b, 1, lambda: b.weft.select(r, pending, b.weft.after(50))),
            await late(b, 1, barrier.sync),
            await late(b, 1, timer.tick),
            await late(b, 1, lambda: b.enter(r.extended())),
            await late(b, 1, lambda: b.weft.Parallel(b.process(take)(r))),
        ]

    async def take(b, r):
        await b.op(r.read())

    assert alone(b, body, c.reader(), d.writer(), c.writer(), d.reader()) == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
    ]
    assert (c.stats().waiting_readers, d.stats().waiting_writers) == (0, 0)  # rule 6.2
    assert barrier.parties == 2


def test_a_withdrawn_write_gave_nothing_away(b):  # rule 7.12
    c = b.weft.Channel()

    async def offers(b, w):
        with pytest.raises(TimeoutError) as caught:
            async with Within(b, b.weft.timeout(1)):
                await b.op(w.write("first"))
        assert isinstance(caught.value.__cause__, Cancelled)
        assert caught.value.__cause__.value == "first"  # rule 6.2
        await b.op(w.write("second"))

    async def takes(b, r):
        await b.op(b.weft.sleep(2))
        return await b.op(r.read())

    got = b.run(b.process(offers)(c.writer()), b.process(takes)(c.reader()), clock="virtual")
    assert got == [None, "second"]


def test_a_block_in_time_is_left_as_if_there_were_no_timeout(b):  # rule 7.12
    async def body(b):
        async with Within(b, b.weft.timeout(10)) as scope:
            await b.op(b.weft.sleep(1))
            assert not scope.expired
        assert not scope.expired
        await b.op(b.weft.sleep(0.5))
        return b.weft.now()

    assert alone(b, body) == 1.5  # no timer remains to which virtual time would jump


def test_an_exception_of_the_block_passes(b):  # rule 7.12
    async def body(b):
        with pytest.raises(ValueError, match="mine"):
            async with Within(b, b.weft.timeout(1)):
                raise ValueError("mine")
        # An exception that takes the place of the Cancelled also leaves the block.
        with pytest.raises(KeyError):
            async with Within(b, b.weft.timeout(1)):
                try:
                    await b.op(b.weft.sleep(5))
                finally:
                    raise KeyError("mine")
        await b.op(b.weft.sleep(1))
        return b.weft.now()

    assert alone(b, body) == 2


def test_edge_triggered(b):  # rule 7.12: one expiry asks once
    async def body(b):
        async with Within(b, b.weft.timeout(1)) as scope:
            with contextlib.suppress(Cancelled):
                await b.op(b.weft.sleep(5))
            assert scope.expired
            await b.op(b.weft.sleep(5))
        assert not scope.expired  # the Cancelled of this limit did not leave the block
        return b.weft.now()

    assert alone(b, body) == 6


def test_a_cleaning_up_may_wait(b):  # rule 7.12
    c = b.weft.Channel()

    async def body(b, w):
        with pytest.raises(TimeoutError):
            async with Within(b, b.weft.timeout(1)):
                try:
                    await b.op(b.weft.sleep(5))
                finally:
                    await b.op(w.write("cleaned"))

    assert b.run(b.process(body)(c.writer()), b.process(receive)(c.reader()), clock="virtual")[
        1
    ] == ["cleaned"]


# ---------------------------------------------------------------------------- scopes within scopes


def test_the_inner_one_expires_first(b):  # rule 7.12
    async def body(b):
        when = []
        with pytest.raises(TimeoutError):
            async with Within(b, b.weft.timeout(3)) as outer:
                when.append(await late(b, 1, lambda: b.weft.sleep(9)))
                assert not outer.expired
                await b.op(b.weft.sleep(9))
        return [*when, b.weft.now()]

    assert alone(b, body) == [1, 3]


@pytest.mark.parametrize("inner", [5, 1])  # with 1, the inner limit expires at the same moment
def test_of_an_outer_one_that_expired_the_inner_lets_cancelled_pass(b, inner):  # rule 7.12
    async def body(b):
        scopes = []
        with pytest.raises(TimeoutError) as caught:
            async with Within(b, b.weft.timeout(1)) as outer:
                scopes.append(outer)
                with pytest.raises(Cancelled) as passed:
                    async with Within(b, b.weft.timeout(inner)) as scope:
                        scopes.append(scope)
                        await b.op(b.weft.sleep(9))
                raise passed.value
        assert "timeout(1)" in str(caught.value)
        await b.op(b.weft.sleep(1))  # no request remains, so this sleep returns
        return [s.expired for s in scopes], b.weft.now()

    assert alone(b, body) == ([True, False], 2)


def test_four_deep(b):  # rule 7.12
    async def body(b):
        ended = []
        for which in range(4):
            spans = [9, 9, 9, 9]
            spans[which] = 1
            scopes = [b.weft.move_on_after(s) for s in spans]
            async with (
                Within(b, scopes[0]),
                Within(b, scopes[1]),
                Within(b, scopes[2]),
                Within(b, scopes[3]),
            ):
                await b.op(b.weft.sleep(100))
            ended.append([s.expired for s in scopes].index(True))
            assert sum(s.expired for s in scopes) == 1
        return ended, b.weft.now()

    assert alone(b, body) == ([0, 1, 2, 3], 4)


# -------------------------------------------------------------------------- cancelled from outside


def test_a_cancellation_from_outside_passes(b):  # rule 7.12
    seen: list[Any] = []
    victim: list[Any] = []

    async def body(b):
        scope = b.weft.timeout(1)
        try:
            async with Within(b, scope):
                await b.op(b.weft.sleep(9))
        except BaseException as error:
            seen.append((type(error), scope.expired, b.weft.now()))
            raise

    async def cancels(b):
        await b.op(b.weft.sleep(0.5))
        victim[0].cancel()

    victim.append(b.process(body)())
    b.run(b.process(cancels)(), victim[0], clock="virtual")
    assert seen == [(Cancelled, False, 0.5)]


def test_both_requests_before_it_is_met_are_one_from_outside(b):  # rule 7.12
    seen = []

    async def body(b):
        async with Within(b, b.weft.timeout(0)) as scope:
            me = b.weft.current_process()
            me.cancel()
            try:
                await b.op(b.weft.sleep(1))
            except Cancelled as error:
                seen.append(error._by)
                await b.op(b.weft.sleep(1))  # both requests raised a single Cancelled
                raise
        seen.append(scope)

    # The only process of the run has ended quietly, and the run raises that end (rules 6.5, 7.1).
    with pytest.raises(Cancelled):
        alone(b, body)
    assert seen == [None]


def test_the_failure_of_a_group_around_it_passes(b):  # rule 7.12
    async def fails(b):
        await b.op(b.weft.sleep(1))
        raise ValueError("mine")

    async def body(b):
        group = b.weft.Group()
        with pytest.raises(ValueError, match="mine"):
            async with Within(b, group):
                group.start(b.process(fails)())
                async with Within(b, b.weft.timeout(5)) as scope:
                    await b.op(b.weft.sleep(9))
        return scope.expired, b.weft.now()

    assert alone(b, body) == (False, 1)


def test_what_a_group_within_it_started_is_cancelled_and_waited_for(b):  # rule 7.12
    log = []

    async def child(b, n):
        try:
            await b.op(b.weft.sleep(100))
        finally:
            await b.op(b.weft.sleep(n))
            log.append(n)

    async def body(b):
        with pytest.raises(TimeoutError):
            async with Within(b, b.weft.timeout(1)):
                group = b.weft.Group()
                async with Within(b, group):
                    group.start(b.process(child)(1))
                    group.start(b.process(child)(2))
        with pytest.raises(TimeoutError):
            async with Within(b, b.weft.timeout(1)):
                await b.op(b.weft.Parallel(b.process(child)(3)))
        return b.weft.now()

    assert alone(b, body) == 3 + 4
    assert log == [1, 2, 3]


# ----------------------------------------------------------------- commits and requests taken back


def test_a_value_that_committed_is_delivered_and_the_request_is_taken_back(b):  # rule 7.12
    c = b.weft.Channel()

    async def writes(b, w):
        async with Within(b, b.weft.timeout(1)) as scope:
            await b.op(w.write("value"))  # commits at 0.5, and is held until 2 (rule 1.6)
            assert scope.expired
            assert b.weft.now() == 2
        assert not scope.expired
        await b.op(b.weft.sleep(1))

    async def reads(b, r):
        await b.op(b.weft.sleep(0.5))
        extended = r.extended()
        value = await b.enter(extended)
        await b.op(b.weft.sleep(1.5))
        await b.leave(extended)
        return value

    got = b.run(b.process(writes)(c.writer()), b.process(reads)(c.reader()), clock="virtual")
    assert got == [None, "value"]


def test_the_request_comes_at_the_next_operation_after_the_commit(b):  # rule 7.12
    c = b.weft.Channel()

    async def writes(b, w):
        with pytest.raises(TimeoutError):
            async with Within(b, b.weft.timeout(1)):
                await b.op(w.write("value"))
                await b.op(b.weft.sleep(1))
        return b.weft.now()

    async def reads(b, r):
        async with Within(b, r.extended()):
            await b.op(b.weft.sleep(2))

    assert (
        b.run(b.process(writes)(c.writer()), b.process(reads)(c.reader()), clock="virtual")[0] == 2
    )


@pytest.mark.parametrize("seconds", [0, 0.0, -1, -1e9, float("-inf")])
def test_no_time_at_all_acts_at_the_first_operation(b, seconds):  # rule 7.12
    c = b.weft.Channel(capacity=1)

    async def body(b, r, w):
        scope = b.weft.timeout(seconds)
        async with Within(b, scope):
            assert scope.expired
        assert not scope.expired  # no operation ran in this block, so the request is withdrawn
        await b.op(w.write("one"))
        with pytest.raises(TimeoutError):
            async with Within(b, b.weft.timeout(seconds)):
                await b.op(r.read())  # this read could commit immediately (rule 6.1)
        return await b.op(r.read())

    assert alone(b, body, c.reader(), c.writer()) == "one"


@pytest.mark.parametrize("seconds", [None, float("inf"), 1e300])
def test_no_limit_never_expires(b, seconds):  # rule 7.12
    async def body(b):
        async with Within(b, b.weft.timeout(seconds)) as scope:
            await b.op(b.weft.sleep(4096))
        return scope.expired, b.weft.now()

    assert alone(b, body) == (False, 4096)


def test_without_a_limit_a_deadlock_is_one(b):  # rule 7.12
    c = b.weft.Channel()

    async def body(b, r, w):
        async with Within(b, b.weft.timeout(None)):
            await b.op(r.read())

    with pytest.raises(b.weft.Deadlock):
        b.run(b.process(body)(c.reader(), c.writer()))


# ------------------------------------------------------------- deadline, move_on_after, reschedule


def test_deadline(b):  # rule 7.12
    async def body(b):
        await b.op(b.weft.sleep(2))
        with pytest.raises(TimeoutError):
            async with Within(b, b.weft.deadline(3)):
                await b.op(b.weft.sleep(9))
        with pytest.raises(TimeoutError):
            async with Within(b, b.weft.deadline(1)):  # the deadline has passed already
                await b.op(b.weft.sleep(9))
        async with Within(b, b.weft.deadline(None)):
            await b.op(b.weft.sleep(1))
        return b.weft.now()

    assert alone(b, body) == 4


def test_move_on_after(b):  # rule 7.12
    async def body(b):
        async with Within(b, b.weft.move_on_after(1)) as scope:
            await b.op(b.weft.sleep(9))
            pytest.fail("it went on")
        assert scope.expired
        async with Within(b, b.weft.move_on_after(1)) as scope:
            await b.op(b.weft.sleep(0.5))
        assert not scope.expired
        return b.weft.now()

    assert alone(b, body) == 1.5


def test_reschedule(b):  # rule 7.12
    async def body(b):
        when = []
        for at in (2, 0.25, 0):
            began = b.weft.now()
            async with Within(b, b.weft.move_on_after(1)) as scope:
                await b.op(b.weft.sleep(0.5))
                scope.reschedule(at)
                await b.op(b.weft.sleep(9))
            assert scope.expired
            when.append(b.weft.now() - began)
        async with Within(b, b.weft.timeout(1)) as scope:
            scope.reschedule(None)
            await b.op(b.weft.sleep(5))
        async with Within(b, b.weft.timeout(0)) as scope:
            scope.reschedule(7)  # the request that was not met is withdrawn
            assert not scope.expired
            await b.op(b.weft.sleep(5))
        async with Within(b, b.weft.timeout(1)) as scope:
            with contextlib.suppress(Cancelled):
                await b.op(b.weft.sleep(5))
            with pytest.raises(BadUse, match="reschedule"):
                scope.reschedule(1)
        with pytest.raises(BadUse, match="reschedule"):
            scope.reschedule(1)
        with pytest.raises(BadUse, match="reschedule"):
            b.weft.timeout(1).reschedule(1)
        return [round(t, 6) for t in when]

    assert alone(b, body) == [2.5, 0.75, 0.5]
