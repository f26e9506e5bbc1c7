"""Scenarios of rule 7.12: timeouts as scopes, and cancelling one process."""

from __future__ import annotations

import math

import pytest

from conformance.scenarios import scenario
from conformance.scenarios.parts import settle
from weft import (
    BadUse,
    Barrier,
    Cancelled,
    Channel,
    Group,
    Parallel,
    after,
    deadline,
    move_on_after,
    now,
    process,
    select,
    sleep,
    timeout,
)


@process
async def writes(writer, value, seconds):
    await sleep(seconds)
    await writer.write(value)


@process
async def sleeps(log, name, seconds):
    try:
        await sleep(seconds)
        log.append(name)
    except Cancelled:
        log.append(name + " cancelled")
        raise


@scenario("6.2", "7.12")
async def a_timeout_ends_what_the_block_waits_for():
    c = Channel("c")
    reader, writer = c.reader(), c.writer()
    barrier = Barrier(2)
    with pytest.raises(TimeoutError):
        async with timeout(1):
            await reader.read()
    with pytest.raises(TimeoutError):
        async with timeout(1):
            await writer.write("withdrawn")
    with pytest.raises(TimeoutError):
        async with timeout(1):
            await barrier.sync()
    with pytest.raises(TimeoutError):
        async with timeout(1):
            await select(reader, after(50))
    assert now() == 4
    assert (c.stats().waiting_readers, c.stats().waiting_writers) == (0, 0)


@scenario("7.12")
async def a_block_in_time_is_left_as_if_there_were_no_limit():
    async with timeout(10) as scope:
        await sleep(1)
        assert not scope.expired
    assert not scope.expired
    await sleep(0.5)
    assert now() == 1.5


@scenario("7.12")
async def to_move_on_raises_nothing():
    async with move_on_after(2) as scope:
        await sleep(50)
        pytest.fail("it went on")
    assert (scope.expired, now()) == (True, 2)
    async with move_on_after(2) as scope:
        await sleep(1)
    assert (scope.expired, now()) == (False, 3)


@scenario("7.12")
async def a_deadline_is_a_time_of_the_clock():
    await sleep(1)
    with pytest.raises(TimeoutError):
        async with deadline(3):
            await sleep(50)
    assert now() == 3
    with pytest.raises(TimeoutError):
        async with deadline(2):  # the deadline has passed already
            await sleep(50)
    assert now() == 3


@scenario("7.12")
async def nothing_or_less_acts_at_the_first_operation_and_none_never():
    with pytest.raises(TimeoutError):
        async with timeout(0):
            await sleep(1)
    with pytest.raises(TimeoutError):
        async with timeout(-1):
            await sleep(1)
    assert now() == 0
    async with timeout(None), timeout(math.inf):
        await sleep(1000)
    assert now() == pytest.approx(1000)


@scenario("7.12")
async def a_request_that_was_not_met_is_taken_back():
    async with timeout(0):
        pass
    await sleep(1)
    assert now() == 1


@scenario("7.12")
async def what_catches_it_goes_on_without_a_limit():
    async with timeout(1) as scope:
        try:
            await sleep(5)
        except Cancelled:
            assert scope.expired
        await sleep(5)
    assert (scope.expired, now()) == (False, 6)


@scenario("7.12")
async def an_exception_of_the_block_passes():
    with pytest.raises(ValueError, match="mine"):
        async with timeout(1):
            raise ValueError("mine")
    with pytest.raises(KeyError):
        async with timeout(1):
            try:
                await sleep(5)
            except Cancelled:
                raise KeyError("mine") from None
    await sleep(1)
    assert now() == 2


@scenario("7.12")
async def scopes_within_let_the_outer_ones_pass():
    with pytest.raises(TimeoutError):
        async with timeout(1) as outer:
            async with move_on_after(5) as inner:
                await sleep(50)
            pytest.fail("the inner one took it")
    assert (outer.expired, inner.expired, now()) == (True, False, 1)
    async with move_on_after(5) as outer:
        with pytest.raises(TimeoutError):
            async with timeout(1) as inner:
                await sleep(50)
        await sleep(1)
    assert (outer.expired, inner.expired, now()) == (False, True, 3)


@scenario("7.12")
async def of_two_that_ask_before_it_is_met_the_outermost_is_told():
    async with move_on_after(0) as outer:
        async with move_on_after(0) as inner:
            await sleep(1)
        pytest.fail("the inner one took it")
    assert (outer.expired, inner.expired, now()) == (True, False, 0)


@scenario("7.12")
async def it_may_be_set_anew():
    with pytest.raises(TimeoutError):
        async with timeout(1) as scope:
            scope.reschedule(3)
            await sleep(2)
            scope.reschedule(2)
            await sleep(50)
    assert now() == 4
    async with timeout(1) as scope:
        with pytest.raises(Cancelled):
            await sleep(5)
        with pytest.raises(BadUse):
            scope.reschedule(1)


@scenario("7.12")
async def it_is_entered_once():
    scope = timeout(1)
    async with scope:
        pass
    with pytest.raises(BadUse):
        async with scope:
            pytest.fail("entered again")


@scenario("7.2", "7.12")
async def what_the_block_started_and_waits_for_is_cancelled():
    log = []
    with pytest.raises(TimeoutError):
        async with timeout(2):
            await Parallel(sleeps(log, "a", 1), sleeps(log, "b", 50), sleeps(log, "c", 60))
    assert sorted(log) == ["a", "b cancelled", "c cancelled"]
    assert now() == 2


@scenario("6.3", "6.4", "7.12")
async def no_value_is_lost_by_one():
    """A reader repeatedly reaches its limit, sometimes at the moment when the writer arrives; no
    value is lost."""
    c = Channel("c")
    reader = c.reader()
    got = []
    async with Group() as group:
        group.start(writes(c.writer(), "a", 1))
        group.start(writes(c.writer(), "b", 2))
        while len(got) < 2:
            async with move_on_after(0.5):
                got.append(await reader.read())
    assert sorted(got) == ["a", "b"]


@scenario("6.1", "7.12")
async def one_process_is_cancelled_by_its_handle():
    log = []
    async with Group() as group:
        one = group.start(sleeps(log, "one", 5))
        group.start(sleeps(log, "other", 5))
        await settle()
        one.cancel()
    assert (log, now()) == (["one cancelled", "other"], 5)
