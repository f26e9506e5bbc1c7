"""Scenarios of rule 7.7: a process whose operations never wait lets other processes run.

A process repeats one operation until another process, which begins after it, has run. On one
scheduler the other process must run after a thousand operations or so, in a loop of asyncio after a
few turns.
"""

from __future__ import annotations

import inspect

import pytest

from conformance.scenarios import scenario
from conformance.scenarios.parts import settle
from weft import (
    Alternative,
    Barrier,
    Channel,
    Group,
    Output,
    Parallel,
    Poisoned,
    Retired,
    Sequence,
    after,
    move_on_after,
    now,
    process,
    select,
    skip,
    sleep,
)

# The operating system switches between threads at any time. A scenario has the same text for
# threads and for greenlets, so it cannot find out on which of the two it runs.
ONE_SCHEDULER = inspect.iscoroutinefunction(settle)
ENOUGH = 20_000 if ONE_SCHEDULER else 1 << 60
ENDLESS = 1 << 60 if ONE_SCHEDULER else 5000

DROPPING = ("drop_oldest", "drop_newest", "unbounded")


@process
async def notes(seen):
    seen.append(True)


@process
async def writes(seen, writer):
    done = 0
    while not seen and done < ENOUGH:
        await writer.write(done)
        done += 1
    return done


@scenario("7.7", "1.4")
async def writes_that_never_wait():
    for overflow in DROPPING:
        c, seen = Channel("c", capacity=2, overflow=overflow), []
        reader = c.reader()
        done, _ = await Parallel(writes(seen, c.writer()), notes(seen))
        assert done < ENOUGH
        reader.retire()


@process
async def reads_all(seen, reader):
    done = 0
    async for value in reader:
        assert value == done  # this also holds for the read after which the other processes ran
        done += 1
        if seen:
            break
    return done


@scenario("7.7", "1.3")
async def reads_of_a_full_buffer():
    c, seen = Channel("c", overflow="unbounded", capacity=8), []
    reader, writer = c.reader(), c.writer()
    many = 3000
    for n in range(many):
        await writer.write(n)
    if ONE_SCHEDULER:
        assert (await Parallel(reads_all(seen, reader), notes(seen)))[0] < ENOUGH


@process
async def polls(seen, *guards):
    done = 0
    while not seen and done < ENOUGH:
        await select(*guards)
        done += 1
    return done


@process
async def polls_standing(seen, reader):
    alternative, done = Alternative(reader, skip()), 0
    while not seen and done < ENOUGH:
        await alternative.select()
        done += 1
    return done


@scenario("5.7", "7.7")
async def selects_that_never_wait():
    for how in range(4):
        c, full = Channel("c"), Channel("full", capacity=1, overflow="drop_newest")
        reader, hold, writer, at_full = c.reader(), c.writer(), full.writer(), full.reader()
        guards = (
            (reader, skip()),
            (reader, after(0)),
            (Output(writer, 1), reader),
            (Output(writer, lambda: 1), reader),
        )[how]
        seen = []
        done, _ = await Parallel(polls(seen, *guards), notes(seen))
        assert done < ENOUGH
        hold.retire()
        at_full.retire()
    c, seen = Channel("c"), []
    reader, hold = c.reader(), c.writer()
    done, _ = await Parallel(polls_standing(seen, reader), notes(seen))
    assert done < ENOUGH
    hold.retire()


@process
async def syncs(seen, barrier):
    done = 0
    while not seen and done < ENOUGH:
        await barrier.sync()
        done += 1
    return done


@scenario("7.7", "8.1")
async def a_barrier_of_one():
    seen = []
    done, _ = await Parallel(syncs(seen, Barrier(1)), notes(seen))
    assert done < ENOUGH


@process
async def limits(seen, reader):
    done = 0
    while not seen and done < ENOUGH:
        async with move_on_after(0):
            await reader.read()
        done += 1
    return done


@process
async def limits_a_select(seen, reader):
    done = 0
    while not seen and done < ENOUGH:
        async with move_on_after(0):
            await select(reader)
        done += 1
    return done


@scenario("7.7", "7.12", needs=("a cancellation at once",))
async def limits_that_have_expired():
    for tries in (limits, limits_a_select):
        c, seen = Channel("c"), []
        reader, writer = c.reader(), c.writer()
        done, _ = await Parallel(tries(seen, reader), notes(seen))
        assert done < ENOUGH
        writer.retire()


@process
async def meets_its_end(seen, end, write):
    done = 0
    while not seen and done < ENOUGH:
        if write:
            with pytest.raises(Retired) as met:
                await end.write(done)
            # This also holds for the write after which the other processes ran.
            assert met.value.value == done
        else:
            with pytest.raises(Poisoned):
                await end.read()
        done += 1
    return done


@scenario("3.3", "4.2", "7.7")
async def an_end_that_is_met_again_and_again():
    c, d, seen = Channel("c"), Channel("d"), []
    writer, gone = c.writer(), c.reader()
    gone.retire()
    done, _ = await Parallel(meets_its_end(seen, writer, True), notes(seen))
    assert done < ENOUGH
    reader, seen = d.reader(), []
    d.poison()
    done, _ = await Parallel(meets_its_end(seen, reader, False), notes(seen))
    assert done < ENOUGH


@process
async def composes(seen, how):
    done = 0
    while not seen and done < ENOUGH:
        if how == "parallel":
            assert await Parallel() == []
        elif how == "sequence":
            assert await Sequence() == []
        else:
            async with Group():
                pass
        done += 1
    return done


@scenario("7.1", "7.5", "7.7")
async def groups_without_a_process():
    for how in ("parallel", "sequence", "group"):
        seen = []
        done, _ = await Parallel(composes(seen, how), notes(seen))
        assert done < ENOUGH


@process
async def waits_for_its_end(seen, one):
    done = 0
    while not seen and done < ENOUGH:
        await select(one.ended())
        done += 1
    return done


@scenario("7.7", "7.11")
async def the_end_of_a_process_that_has_ended():
    one, seen = notes([]), []
    await Parallel(one)
    done, _ = await Parallel(waits_for_its_end(seen, one), notes(seen))
    assert done < ENOUGH


@process
async def talks_to_itself(seen, writer, reader):
    done = 0
    while not seen and done < ENOUGH:
        await writer.write(done)
        async with reader.extended() as value:
            assert value == done
        done += 1
    return done


@scenario("1.6", "7.7")
async def a_buffer_of_its_own():
    c, seen = Channel("c", capacity=1), []
    done, _ = await Parallel(talks_to_itself(seen, c.writer(), c.reader()), notes(seen))
    assert done < ENOUGH


@process
async def writes_on(writer, log, most):
    n = 0
    while n < most:
        await writer.write(n)
        log.append(n)
        n += 1


@scenario("6.3", "7.7")
async def a_cancellation_while_the_others_run_comes_at_the_next_operation():
    c, log = Channel("c", overflow="unbounded", capacity=8), []
    reader = c.reader()
    async with Group() as group:
        endless = group.start(writes_on(c.writer(), log, ENDLESS))
        group.start(cancels(endless))
    assert [value async for value in reader] == log  # no value is lost or doubled


@process
async def cancels(other):
    other.cancel()


@process
async def sleeps_once(log):
    await sleep(1)
    log.append(now())


@scenario("7.7", "8.6")
async def virtual_time_stands_still_while_it_has_more_to_do():
    c, log = Channel("c", overflow="unbounded", capacity=8), []
    reader, began = c.reader(), now()
    await Parallel(writes_on(c.writer(), [], 3000), sleeps_once(log))
    assert log == [began + 1]
    reader.retire()
