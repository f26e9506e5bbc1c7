"""Scenarios of rule 7.11: the end of a process, used as a guard, awaited, or watched."""

from __future__ import annotations

import pytest

from conformance.scenarios import outermost, scenario
from conformance.scenarios.parts import settle
from weft import (
    BadUse,
    Channel,
    Deadlock,
    Group,
    Input,
    NoResult,
    Parallel,
    Retired,
    after,
    current_process,
    now,
    process,
    run,
    select,
    sleep,
    watched,
)


@process
async def returns(value, seconds):
    await sleep(seconds)
    return value


@process
async def fails(message, seconds):
    await sleep(seconds)
    raise ValueError(message)


@process
async def reads(reader):
    await reader.read()


@process
async def holds(writer, seconds):
    await sleep(seconds)


@process
async def watches(other):
    end = await other.ended().wait()
    return end.result, now()


@scenario("7.11")
async def an_end_is_ready_once_the_process_has_ended_and_stays_so():
    c = Channel("c")
    reader, writer = c.reader(), c.writer()
    async with Group() as group:
        p = group.start(returns("done", 2))
        index, value = await select(p.ended(), reader, after(1))
        assert (index, value, now()) == (2, None, 1)
        index, end = await select(reader, p.ended(), after(9))
        assert (index, now()) == (1, 2)
        assert (end.how, end.result, end.error) == ("returned", "done", None)
        await sleep(5)
        assert await p.ended().wait() == end
        assert (await select(p.ended(), after(0)))[1] == end
    writer.retire()


@scenario("7.11")
async def it_says_how_the_process_ended_and_raises_nothing_of_it():
    c, d = Channel("c"), Channel("d")
    c_writer, d_writer = c.writer(), d.writer()
    async with Group() as group:
        retired = group.start(reads(c.reader()))
        poisoned = group.start(reads(d.reader()))
        cancelled = group.start(returns("never", 100))
        failed = group.start(watched(fails("mine", 3)))
        await settle()
        c_writer.retire()
        d_writer.poison()
        cancelled.cancel()
        hows = [
            (await retired.ended().wait()).how,
            (await poisoned.ended().wait()).how,
            (await cancelled.ended().wait()).how,
        ]
        end = await failed.ended().wait()
    assert hows == ["retired", "poisoned", "cancelled"]
    assert (end.how, end.result, str(end.error)) == ("failed", None, "mine")


@scenario("7.7", "7.11")
async def it_has_let_go_of_its_ends_by_then():
    c = Channel("c")
    reader = c.reader()
    async with Group() as group:
        p = group.start(holds(c.writer(), 1))
        await p.ended().wait()
        with pytest.raises(Retired):
            await select(Input(reader, ended="raise"), after(0))


@scenario("7.11")
async def any_number_may_watch():
    async with Group() as group:
        p = group.start(returns("seen", 2))
        assert await Parallel(watches(p), watches(p), watches(p)) == [("seen", 2)] * 3


@scenario("7.11", needs=("a path",))
async def to_watch_oneself_is_bad_use():
    @process
    async def alone():
        with pytest.raises(BadUse):
            await current_process().ended().wait()
        return "told"

    assert await Parallel(alone()) == ["told"]


@scenario("7.11")
async def the_end_of_one_that_is_never_started_is_never_ready():
    p = returns("never", 0)
    assert (await select(p.ended(), after(5)))[0] == 1
    assert now() == 5
    assert await Parallel(p) == ["never"]


@scenario("7.11")
async def a_watched_failure_is_its_watchers():
    async with Group() as group:
        tries = 0
        how = "failed"
        while how == "failed":
            tries += 1
            work = fails("again", 1) if tries < 3 else returns("at last", 1)
            end = await group.start(watched(work)).ended().wait()
            how = end.how
    assert (tries, end.result, now()) == (3, "at last", 3)


@scenario("7.2", "7.11")
async def one_that_nobody_watches_is_the_groups():
    with pytest.raises(ValueError, match="mine"):
        await Parallel(watched(fails("mine", 1)), returns("cancelled", 50))
    assert now() == 1


@scenario("7.11")
async def in_a_parallel_a_watched_failure_is_no_result():
    p = watched(fails("mine", 1))
    none, seen = await Parallel(p, watches(p))
    assert isinstance(none, NoResult) and none.how == "failed" and "mine" in none.reason
    assert seen == (None, 1)


@scenario("5.6", "7.11")
async def a_select_with_an_end_goes_on_without_its_sources():
    c = Channel("c")
    reader = c.reader()
    c.writer().retire()
    async with Group() as group:
        p = group.start(returns("done", 3))
        index, end = await select(reader, p.ended())
        assert (index, end.result, now()) == (1, "done", 3)


@process
async def waits_for(other, writer):
    await other.ended().wait()


@outermost("7.11", "10.2", needs=("a deadlock",))
def who_waits_for_an_end_waits_for_that_process():
    c = Channel("c")
    reader = reads(c.reader()).named("reader")
    waiter = waits_for(reader, c.writer()).named("waiter")
    with pytest.raises(Deadlock) as caught:
        run(reader, waiter, clock="virtual")
    assert sorted(path.rpartition("/")[2] for path in caught.value.knot) == ["reader", "waiter"]
    assert "the end of" in caught.value.report
