"""Scenarios of rule 7.18: timeouts that ask again, at each operation of their block."""

from __future__ import annotations

import pytest

from conformance.scenarios import scenario
from weft import (
    BadUse,
    Cancelled,
    Channel,
    Parallel,
    deadline,
    move_on_after,
    now,
    process,
    select,
    skip,
    sleep,
    timeout,
    yield_,
)

AGAIN = ("again",)


@process
async def logs(log, name):
    log.append(name)


@scenario("7.18", needs=AGAIN)
async def each_operation_of_the_block_is_withdrawn():
    c = Channel("c")
    reader, writer = c.reader(), c.writer()
    async with move_on_after(1, again=True) as scope:
        for _ in range(3):
            with pytest.raises(Cancelled):
                await sleep(5)
        with pytest.raises(Cancelled):
            await reader.read()
        with pytest.raises(Cancelled):
            await writer.write("withdrawn")
        with pytest.raises(Cancelled):
            await select(reader, skip())
        assert scope.expired
        await sleep(5)
        pytest.fail("it went on")
    assert (scope.expired, now()) == (True, 1)
    assert (c.stats().waiting_readers, c.stats().waiting_writers) == (0, 0)
    await sleep(1)
    await yield_()
    assert now() == 2


@scenario("7.18", needs=AGAIN)
async def one_that_swallows_it_leaves_its_block_in_time():
    async with timeout(1, again=True) as scope:
        try:
            while True:
                await sleep(5)
        except Cancelled:
            pass
    assert (scope.expired, now()) == (False, 1)
    await sleep(1)
    with pytest.raises(TimeoutError, match=r"deadline\(1, again=True\): the time was over"):
        async with deadline(1, again=True):
            await sleep(1)
    assert now() == 2


@scenario("7.18", needs=AGAIN)
async def what_repeats_a_request_of_an_outer_scope_is_the_outer_ones():
    async with move_on_after(0) as outer:
        async with move_on_after(0, again=True) as inner:
            try:
                await sleep(1)
            except Cancelled:
                await sleep(1)  # this Cancelled leaves both blocks
        pytest.fail("the inner one took it")
    assert (outer.expired, inner.expired, now()) == (True, False, 0)
    # a request by an outer limit, made later, is met from then on
    async with move_on_after(2) as outer:
        async with move_on_after(1, again=True) as inner:
            while now() < 2:
                with pytest.raises(Cancelled):
                    await sleep(5)
                outer.reschedule(0)
                with pytest.raises(Cancelled):
                    await sleep(5)
                break
            await sleep(5)
        pytest.fail("the inner one took it")
    assert (outer.expired, inner.expired, now()) == (True, False, 1)


@scenario("7.18", needs=AGAIN)
async def a_scope_within_lets_it_pass():
    async with move_on_after(1, again=True) as outer:
        with pytest.raises(Cancelled):
            await sleep(5)
        async with move_on_after(9) as inner:
            await sleep(1)
        pytest.fail("the inner one took it")
    assert (outer.expired, inner.expired, now()) == (True, False, 1)


@scenario("7.18", needs=AGAIN)
async def nothing_is_started_in_it_afterwards():
    log = []
    async with move_on_after(0, again=True) as scope:
        with pytest.raises(Cancelled):
            await sleep(5)
        await Parallel(logs(log, "a"), logs(log, "b"))
        pytest.fail("it went on")
    assert (scope.expired, log) == (True, [])
    await Parallel(logs(log, "c"))
    assert log == ["c"]


@scenario("7.18", needs=AGAIN)
async def it_may_be_set_anew_until_it_is_met():
    async with timeout(1, again=True) as scope:
        scope.reschedule(3)
        await sleep(2)
        with pytest.raises(Cancelled):
            await sleep(5)
        with pytest.raises(BadUse):
            scope.reschedule(1)
    assert now() == 3
