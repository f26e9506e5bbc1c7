"""Scenarios of section 6 (cancellation). The races are in test_scenarios_races.py."""

from __future__ import annotations

import pytest

from conformance.scenarios import scenario
from conformance.scenarios.parts import get, put, settle
from weft import (
    Barrier,
    Cancelled,
    Channel,
    Group,
    Output,
    Parallel,
    Retired,
    process,
    select,
    sleep,
    yield_,
)


@process
async def noting(log, reader):
    """Logs one `Cancelled` for each request, and then continues."""
    try:
        log.append(await reader.read())
    except Cancelled:
        log.append("Cancelled")
    log.append(await reader.read())


@scenario("6.1")
async def a_cancellation_ends_a_parked_operation_and_one_request_raises_once():
    c = Channel("c")
    writer, log = c.writer(), []
    waiting = noting(log, c.reader())
    async with Group() as group:
        group.start(waiting)
        await settle()
        waiting.cancel()
        await settle()
        assert log == ["Cancelled"]
        await writer.write("after it")
    assert log == ["Cancelled", "after it"]


@scenario("6.1", needs=("a cancellation at once",))
async def a_cancellation_acts_at_the_start_of_an_operation_that_could_commit_at_once():
    c, gate = Channel("c", capacity=1), Channel("gate")
    writer, reader, log = c.writer(), c.reader(), []
    await writer.write("ready")
    late = cancelled_between(gate.reader(), reader, log)
    async with Group() as group:
        group.start(late)
        await Parallel(put(gate.writer(), late))
    assert log == ["Cancelled", "ready"]


@process
async def cancelled_between(gate, reader, log):
    me = await gate.read()
    me.cancel()
    try:
        log.append(await reader.read())
    except Cancelled:
        log.append("Cancelled")
    log.append(await reader.read())


@scenario("6.2", needs=("Cancelled.value",))
async def a_withdrawn_write_keeps_its_value_and_its_place_is_given_up():
    c = Channel("c")
    reader, log = c.reader(), []
    first, second = keep(c.writer(), "first", log), put(c.writer(), "second")
    async with Group() as group:
        group.start(first)
        await settle()
        group.start(second)
        await settle()
        first.cancel()
        await settle()
        assert log == ["first"]
        assert c.stats().waiting_writers == 1
        assert await reader.read() == "second"


@process
async def keep(writer, value, log):
    try:
        await writer.write(value)
    except Cancelled as withdrawn:
        log.append(withdrawn.value)


@scenario("6.2")
async def a_withdrawn_read_takes_nothing():
    c = Channel("c")
    writer = c.writer()
    first, second = get(c.reader()), get(c.reader())
    async with Group() as group:
        group.start(first)
        await settle()
        group.start(second)
        await settle()
        first.cancel()
        await settle()
        await writer.write("for the second")
    assert first.result.how == "cancelled" and second.result == ["for the second"]


@scenario("6.2", "5.10")
async def a_withdrawn_select_leaves_no_trace():
    c, d = Channel("c"), Channel("d")
    cw, dr = c.writer(), d.reader()
    choosing = one_select(c.reader(), d.writer())
    async with Group() as group:
        group.start(choosing)
        await settle()
        choosing.cancel()
        await settle()
        assert choosing.done
        assert (c.stats().waiting_readers, d.stats().waiting_writers) == (0, 0)
    assert not cw.closed and not dr.closed


@process
async def one_select(reader, writer):
    await select(reader, Output(writer, "never"))


@scenario("6.3")
async def after_the_commit_the_operation_completes_and_the_cancellation_comes_at_the_next_point():
    c = Channel("c")
    writer, log = c.writer(), []
    waiting = noting(log, c.reader())
    async with Group() as group:
        group.start(waiting)
        await settle()
        await give_and_cancel(writer, waiting)
        await settle()
        assert waiting.done
        with pytest.raises(Retired):
            await writer.write("nobody reads it")
    assert log == ["given"]


async def give_and_cancel(writer, waiting):
    await writer.write("given")
    waiting.cancel()


@scenario("6.4")
async def nothing_is_lost_or_doubled_by_a_cancellation_at_any_of_the_first_points():
    for point in range(12):
        c, begun = Channel("c"), Barrier(3)
        sender = persistent(begun, c.writer(), 8)
        received = collect(begun, c.reader())
        async with Group() as group:
            group.start(sender)
            group.start(received)
            await begun.sync()  # so that both reach the place where they ignore the request (6.5)
            for _ in range(point):
                await yield_()
            sender.cancel()
            received.cancel()
        assert received.result == list(range(8)), point


@process
async def persistent(begun, writer, number):
    await begun.sync()
    for value in range(number):
        while True:
            try:
                await writer.write(value)
                break
            except Cancelled as withdrawn:
                assert not hasattr(withdrawn, "value") or withdrawn.value == value


@process
async def collect(begun, reader):
    await begun.sync()
    values = []
    while True:
        try:
            async for value in reader:
                values.append(value)
            return values
        except Cancelled:
            continue


@scenario("6.5")
async def an_uncaught_cancelled_ends_its_process_and_is_no_failure():
    c = Channel("c")
    waiting, other = get(c.reader()), get_after_a_while()
    _writer = c.writer()
    async with Group() as group:
        group.start(waiting)
        group.start(other)
        await settle()
        waiting.cancel()
    assert waiting.done and waiting.result.how == "cancelled"
    assert other.result == "not disturbed"


@process
async def get_after_a_while():
    await sleep(10)
    return "not disturbed"


@scenario("6.1", "8.3")
async def a_cancelled_sync_and_a_cancelled_sleep_are_withdrawn():
    barrier = Barrier(2)
    waiting, asleep = sync(barrier), get_after_a_while()
    async with Group() as group:
        group.start(waiting)
        group.start(asleep)
        await settle()
        waiting.cancel()
        asleep.cancel()
        await settle()
        assert waiting.done and asleep.done and asleep.result.how == "cancelled"
        one, two = sync(barrier), sync(barrier)
        group.start(one)
        await settle()
        assert not one.done, "the phase needs another arrival"
        group.start(two)
    assert one.result == two.result == "synced"


@process
async def sync(barrier):
    await barrier.sync()
    return "synced"


@scenario("6.4", "2.4", needs=("Cancelled.value",))
async def an_end_in_a_withdrawn_write_stays_with_its_sender():
    c, carrier = Channel("c"), Channel("carrier")
    writer, _reader, log = c.writer(), c.reader(), []
    _into = carrier.reader()
    sending = keep_end(carrier.writer(), writer, log)
    async with Group() as group:
        group.start(sending)
        await settle()
        sending.cancel()
    assert log == [(writer, False)]


@process
async def keep_end(out, end, log):
    try:
        await out.write(end)
    except Cancelled as withdrawn:
        log.append((withdrawn.value, end.closed))
