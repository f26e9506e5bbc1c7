"""Scenarios of sections 3 (retire) and 4 (poison)."""

from __future__ import annotations

import pytest

from conformance.scenarios import scenario
from conformance.scenarios.parts import drain, get, put, settle
from weft import (
    BadUse,
    Channel,
    Group,
    NoResult,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    poison,
    process,
    retire,
)


@process
async def caught(log, reader):
    """Reads once and logs the exception of the read."""
    try:
        log.append(await reader.read())
    except (Retired, Poisoned, PeerDied) as error:
        log.append(type(error).__name__)


@process
async def caught_writing(log, writer, value):
    try:
        await writer.write(value)
        log.append("written")
    except (Retired, Poisoned, PeerDied) as error:
        log.append((type(error).__name__, error.value))


# --- 3 --------------------------------------------------------------------------------------------


@scenario("3.1")
async def readers_drain_the_buffer_and_the_blocked_writers():
    c = Channel("c", capacity=2)
    reader = c.reader()
    async with Group() as group:
        group.start(put(c.writer(), 1, 2, 3))
        await settle()
        assert [await reader.read() for _ in range(3)] == [1, 2, 3]
        with pytest.raises(Retired):
            await reader.read()
        with pytest.raises(Retired):
            await reader.read()


@scenario("3.1")
async def a_waiting_reader_is_told():
    c = Channel("orders")
    writer, log = c.writer(), []
    async with Group() as group:
        group.start(caught(log, c.reader()))
        await settle()
        retire(writer)
    assert log == ["Retired"]


@scenario("3.2")
async def a_write_that_waits_when_its_end_is_closed_still_delivers():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    async with Group() as group:
        group.start(put(writer, "last"))
        await settle()
        writer.retire()
        assert await reader.read() == "last"
        await settle()
        with pytest.raises(Retired):
            await reader.read()


@scenario("3.2")
async def a_read_that_waits_when_its_end_is_closed_may_still_receive():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    waiting = get(reader)
    async with Group() as group:
        group.start(waiting)
        await settle()
        reader.retire()
        await writer.write("last")
        await settle()
        with pytest.raises(Retired):
            await writer.write("nobody is there")
    assert waiting.result == ["last"]


@scenario("3.3")
async def without_readers_a_write_raises_with_its_value():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    log = []
    async with Group() as group:
        group.start(caught_writing(log, c.writer(), "first"))
        await settle()
        reader.retire()
    assert log == [("Retired", "first")]
    with pytest.raises(Retired) as error:
        await writer.write("second")
    assert error.value.value == "second"
    assert error.value.channel is c


@scenario("3.3")
async def without_readers_what_is_buffered_is_dropped_and_counted():
    c = Channel("c", capacity=3)
    writer, reader = c.writer(), c.reader()
    for value in (1, 2):
        await writer.write(value)
    reader.retire()
    assert c.stats().dropped == 2


@scenario("3.4")
async def iteration_ends_on_retired():
    c = Channel("c")
    assert (await Parallel(put(c.writer(), 1, 2), drain(c.reader())))[1] == [1, 2]


@scenario("3.4")
async def iteration_does_not_end_quietly_on_poison():
    c = Channel("c")
    reader = c.reader()
    c.poison()
    with pytest.raises(Poisoned):
        async for _ in reader:
            pass


@scenario("3.5")
async def an_uncaught_retired_is_a_quiet_end():
    c = Channel("c")
    left, *others = await Parallel(get(c.reader(), 2), put(c.writer(), 1), returns("goes on"))
    assert isinstance(left, NoResult) and left.how == "retired"
    assert others == [None, "goes on"]


@process
async def returns(value):
    await settle()
    return value


# --- 4 --------------------------------------------------------------------------------------------


@scenario("4.1")
async def poison_is_monotone():
    c = Channel("c")
    reader = c.reader()
    for strength, then in ((2, 2), (1, 2), (2, 2), (5, 5)):
        reader.poison(strength)
        with pytest.raises(Poisoned) as error:
            await reader.read()
        assert error.value.strength == then


@scenario("4.1")
async def any_end_or_the_channel_may_be_poisoned():
    for how in range(4):
        c = Channel("c")
        reader, writer = c.reader(), c.writer()
        if how == 0:
            reader.poison()
        elif how == 1:
            writer.poison()
        elif how == 2:
            c.poison()
        else:
            poison(reader)
        with pytest.raises(Poisoned) as error:
            await writer.write(1)
        assert error.value.strength == 1


@scenario("4.1", "11.2")
async def a_strength_below_one_is_bad_use():
    c = Channel("c", capacity=1)
    writer, reader = c.writer(), c.reader()
    with pytest.raises(BadUse):
        c.poison(0)
    await writer.write("still well")
    assert await reader.read() == "still well"


@scenario("4.2")
async def at_the_poisoning_waiting_parties_are_told_and_writers_get_their_values():
    c, d = Channel("c"), Channel("d")
    reader, writer = c.reader(), d.writer()
    log = []
    async with Group() as group:
        group.start(caught_writing(log, c.writer(), "mine"))
        await settle()
        c.poison()
        await settle()
        group.start(caught(log, d.reader()))
        await settle()
        d.poison()
    assert log == [("Poisoned", "mine"), "Poisoned"]
    with pytest.raises(Poisoned):
        await reader.read()
    with pytest.raises(Poisoned):
        await writer.write("later")


@scenario("4.2")
async def at_the_poisoning_buffered_values_are_dropped_and_counted():
    c = Channel("c", capacity=3)
    writer, reader = c.writer(), c.reader()
    for value in (1, 2):
        await writer.write(value)
    c.poison()
    assert c.stats().dropped == 2
    with pytest.raises(Poisoned):
        await reader.read()


@scenario("4.2")
async def poison_outranks_retirement():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    writer.retire()
    with pytest.raises(Retired):
        await reader.read()
    reader.poison()
    with pytest.raises(Poisoned):
        await reader.read()


@scenario("4.2")
async def poison_outranks_death():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    writer.die()
    reader.poison()
    with pytest.raises(Poisoned):
        await reader.read()


@scenario("4.3")
async def poison_spreads_through_a_process_that_does_not_catch_it():
    a, b, far = Channel("a"), Channel("b"), Channel("far")
    start, end, other = a.writer(), b.reader(), far.writer()
    async with Group() as group:
        group.start(pass_on(a.reader(), b.writer()))
        group.start(get(far.reader()))
        await settle()
        start.poison(3)
        await settle()
        with pytest.raises(Poisoned) as error:
            await end.read()
        assert error.value.strength == 3
        await other.write("not connected, not poisoned")


@process
async def pass_on(before, after):
    async for value in before:
        await after.write(value)


@scenario("3.5", "4.3")
async def poison_of_its_own_spreads_and_is_a_failure():
    a, b = Channel("a"), Channel("b")
    from_a, from_b = a.reader(), b.reader()
    with pytest.raises(Poisoned, match="mine"):
        await Parallel(raises(Poisoned("mine"), a.writer()))
    with pytest.raises(Poisoned):
        await from_a.read()
    with pytest.raises(Poisoned):  # asking a poisoned channel for an end raises Poisoned (2.5)
        await Parallel(asks(a, b.writer()))
    with pytest.raises(Poisoned):
        await from_b.read()


@scenario("3.5", "4.6")
async def a_retirement_of_its_own_is_a_failure_and_no_poison():
    a = Channel("a")
    reader = a.reader()
    with pytest.raises(Retired, match="mine"):
        await Parallel(raises(Retired("mine"), a.writer()))
    with pytest.raises(Retired):
        await reader.read()


@process
async def raises(error, writer):
    raise error


@process
async def asks(channel, writer):
    channel.reader()


@scenario("4.3")
async def who_catches_poison_stops_its_spread():
    a, b = Channel("a"), Channel("b")
    start, end = a.writer(), b.reader()
    async with Group() as group:
        group.start(immune_reader(a.reader(), b.writer()))
        await settle()
        start.poison()
        assert await end.read() == "caught"
        await settle()
        with pytest.raises(Retired):
            await end.read()


@process
async def immune_reader(before, after):
    try:
        await before.read()
    except Poisoned:
        await after.write("caught")


@scenario("4.4")
async def an_immune_channel_ignores_weak_poison():
    c = Channel("c", capacity=1, immunity=3)
    writer, reader = c.writer(), c.reader()
    writer.poison(2)
    await writer.write("alive")
    assert await reader.read() == "alive"
    writer.poison(3)
    with pytest.raises(Poisoned):
        await reader.read()


@scenario("4.5")
async def after_a_death_readers_drain_and_then_hear_of_it():
    c = Channel("c", capacity=2)
    writer, reader = c.writer(), c.reader()
    await writer.write("left behind")
    writer.die()
    assert await reader.read() == "left behind"
    with pytest.raises(PeerDied):
        await reader.read()


@scenario("4.5")
async def death_counts_only_when_the_last_end_of_its_side_is_gone():
    c = Channel("c")
    dying, living, reader = c.writer(), c.writer(), c.reader()
    dying.die()
    async with Group() as group:
        group.start(put(living, 1))
        assert await reader.read() == 1
        await settle()
        with pytest.raises(PeerDied):
            await reader.read()


@scenario("4.5")
async def writers_hear_of_the_death_at_once_with_their_value():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    reader.die()
    with pytest.raises(PeerDied) as error:
        await writer.write("mine")
    assert error.value.value == "mine"


@scenario("4.5")
async def iteration_does_not_swallow_a_death_and_uncaught_it_is_a_failure():
    c = Channel("c")
    writer = c.writer()
    writer.die()
    with pytest.raises(PeerDied):
        await Parallel(drain(c.reader()))


@scenario("4.6")
async def a_failed_process_retires_its_ends():
    c = Channel("c")
    reader = c.reader()
    with pytest.raises(ZeroDivisionError):
        await Parallel(fail_holding(c.writer()))
    with pytest.raises(Retired):
        await reader.read()


@process
async def fail_holding(_writer):
    raise ZeroDivisionError
