"""Scenarios of sections 1 (channels) and 2 (ends)."""

from __future__ import annotations

import gc

import pytest

from conformance.scenarios import scenario
from conformance.scenarios.parts import drain, get, put, settle
from weft import BadUse, Cancelled, Channel, Group, Parallel, Poisoned, Retired, process


@process
async def put_and_note(writer, log, *values):
    for value in values:
        await writer.write(value)
        log.append(value)


@process
async def get_and_note(reader, name, log):
    log.append((name, await reader.read()))


# --- 1 --------------------------------------------------------------------------------------------


@scenario("1.1")
async def a_write_completes_when_its_value_is_taken():
    c = Channel("c")
    reader, log = c.reader(), []
    async with Group() as group:
        group.start(put_and_note(c.writer(), log, "x"))
        await settle()
        assert log == []
        assert await reader.read() == "x"
    assert log == ["x"]


@scenario("1.1")
async def many_writers_and_many_readers():
    c = Channel("c")
    writers = [put(c.writer(), *range(i * 10, i * 10 + 10)) for i in range(3)]
    *_, a, b = await Parallel(writers, drain(c.reader()), drain(c.reader()))
    assert sorted(a + b) == list(range(30))


@scenario("1.2")
async def waiting_readers_are_served_first_come_first_served():
    c = Channel("c")
    writer, log = c.writer(), []
    async with Group() as group:
        for name in "ABC":
            group.start(get_and_note(c.reader(), name, log))
            await settle()
        for value in (1, 2, 3):
            await writer.write(value)
    assert sorted(log) == [("A", 1), ("B", 2), ("C", 3)]


async def put_one(channel, value):
    writer = channel.writer()
    await writer.write(value)


@scenario("1.2")
async def waiting_writers_are_served_first_come_first_served():
    c = Channel("c")
    reader = c.reader()
    async with Group() as group:
        for value in (1, 2, 3):
            group.start(put(c.writer(), value))
            await settle()
        assert [await reader.read() for _ in range(3)] == [1, 2, 3]


@scenario("1.3")
async def a_buffer_takes_its_capacity_and_keeps_the_order():
    c = Channel("c", capacity=2)
    reader, log = c.reader(), []
    async with Group() as group:
        group.start(put_and_note(c.writer(), log, 1, 2, 3))
        await settle()
        assert log == [1, 2]
        assert [await reader.read() for _ in range(3)] == [1, 2, 3]


@scenario("1.3", "11.2")
async def a_capacity_below_zero_is_bad_use():
    with pytest.raises(BadUse):
        Channel("c", capacity=-1)


@scenario("1.4")
async def drop_oldest():
    c = Channel("c", capacity=2, overflow="drop_oldest")
    writer, reader = c.writer(), c.reader()
    for value in (1, 2, 3):
        await writer.write(value)
    assert [await reader.read(), await reader.read()] == [2, 3]
    assert c.stats().dropped == 1


@scenario("1.4")
async def drop_newest():
    c = Channel("c", capacity=2, overflow="drop_newest")
    writer, reader = c.writer(), c.reader()
    for value in (1, 2, 3):
        await writer.write(value)
    assert [await reader.read(), await reader.read()] == [1, 2]
    assert c.stats().dropped == 1


@scenario("1.4")
async def unbounded():
    c = Channel("c", capacity=1, overflow="unbounded")
    writer, reader = c.writer(), c.reader()
    for value in range(100):
        await writer.write(value)
    assert [await reader.read() for _ in range(100)] == list(range(100))
    assert c.stats().dropped == 0


@scenario("1.4", "11.2")
async def an_unknown_overflow_is_bad_use():
    with pytest.raises(BadUse):
        Channel("c", capacity=1, overflow="explode")


@scenario("1.5")
async def a_waiting_writers_value_enters_the_buffer_as_one_leaves():
    c = Channel("c", capacity=1)
    first, second, reader, log = c.writer(), c.writer(), c.reader(), []
    async with Group() as group:
        group.start(put_and_note(first, log, 1))
        await settle()
        group.start(put_and_note(second, log, 2))
        await settle()
        assert log == [1]
        assert await reader.read() == 1
        await settle()
        assert log == [1, 2], "the writer of 2 completes though nobody has read 2"
        assert await reader.read() == 2


@scenario("1.6")
async def an_extended_read_holds_the_writer():
    c = Channel("c")
    reader, log = c.reader(), []
    async with Group() as group:
        group.start(put_and_note(c.writer(), log, "x"))
        async with reader.extended() as value:
            await settle()
            assert value == "x" and log == []
        await settle()
        assert log == ["x"]


@scenario("1.6")
async def an_extended_read_lets_the_writer_go_however_it_ends():
    c = Channel("c")
    reader, log = c.reader(), []
    async with Group() as group:
        group.start(put_and_note(c.writer(), log, "x"))
        with pytest.raises(ValueError):
            async with reader.extended():
                raise ValueError
    assert log == ["x"]


@scenario("1.6")
async def an_extended_read_keeps_the_slot_of_a_buffer():
    c = Channel("c", capacity=1)
    reader, log = c.reader(), []
    async with Group() as group:
        group.start(put_and_note(c.writer(), log, 1, 2))
        await settle()
        async with reader.extended() as value:
            await settle()
            assert value == 1 and log == [1], "the slot is still occupied"
        assert await reader.read() == 2


@scenario("1.6")
async def poison_in_an_extended_read_takes_nothing_back():
    c = Channel("c")
    reader, log = c.reader(), []
    async with Group() as group:
        group.start(put_and_note(c.writer(), log, "x"))
        async with reader.extended() as value:
            c.poison()
            assert value == "x"
        await settle()
        assert log == ["x"], "the writer completes with success"


@scenario("1.6", "6.3")
async def a_held_writer_cannot_be_cancelled():
    c = Channel("c")
    reader, log = c.reader(), []
    writer = put_and_note(c.writer(), log, "x", "y")
    async with Group() as group:
        group.start(writer)
        async with reader.extended() as value:
            writer.cancel()
            await settle()
            assert value == "x" and not writer.done
        await settle()
        assert log == ["x"], "the write of x completes, the cancellation comes at the write of y"
        assert writer.done


@scenario("1.7")
async def a_channel_has_the_name_it_is_given_or_the_place_of_its_birth():
    assert Channel("orders").name == "orders"
    assert __file__.rpartition("/")[2] in Channel().name


# --- 2 --------------------------------------------------------------------------------------------


@scenario("2.1")
async def ends_are_made_by_signs_and_are_callable():
    c = Channel("c", capacity=1)
    reader, writer = +c, -c
    await writer(5)
    assert await reader() == 5
    assert (c.stats().readers, c.stats().writers) == (1, 1)


@scenario("2.2", "11.2")
async def an_operation_on_a_retired_end_says_so():
    c = Channel("orders")
    reader, writer = c.reader(), c.writer()
    writer.retire()
    assert writer.closed and not reader.closed
    with pytest.raises(BadUse, match="orders"):
        await writer.write(1)


@scenario("2.2", "12.2")
async def an_end_that_is_dropped_is_retired():
    c = Channel("c")
    reader, writer = c.reader(), c.writer()
    del writer
    gc.collect()
    with pytest.raises(Retired):
        await reader.read()


@scenario("2.3")
async def a_process_lets_go_of_its_ends_when_it_finishes():
    c = Channel("c")
    writer = c.writer()
    await Parallel(put(writer, 1), drain(c.reader()))
    assert writer.closed


@scenario("2.3")
async def ends_in_containers_are_held_too():
    c, d, e = Channel("c"), Channel("d"), Channel("e")
    ends = c.writer(), d.writer(), e.writer()
    readers = c.reader(), d.reader(), e.reader()
    await Parallel(idle([ends[0]], {"key": (ends[1], {ends[2]})}))
    assert [end.closed for end in ends] == [True, True, True]
    assert not any(end.closed for end in readers)


@process
async def idle(*_things, **_more):
    pass


@scenario("2.3")
async def an_end_of_several_processes_is_let_go_by_the_last():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    async with Group() as group:
        group.start(put(writer, 1))
        group.start(put(writer, 2))
        first = await reader.read()
        await settle()
        assert not writer.closed
        assert {first, await reader.read()} == {1, 2}
        await settle()
        assert writer.closed


@scenario("2.3", "7.6")
async def a_failing_process_lets_go_too():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    with pytest.raises(ZeroDivisionError):
        await Parallel(fail(writer))
    assert writer.closed
    with pytest.raises(Retired):
        await reader.read()


@process
async def fail(*_ends):
    raise ZeroDivisionError


@scenario("2.4")
async def a_sent_end_moves():
    c, carrier = Channel("c"), Channel("carrier")
    writer, reader = c.writer(), c.reader()
    out, into = carrier.writer(), carrier.reader()
    async with Group() as group:
        receiver = use_received(into)
        group.start(receiver)
        await out.write(writer)
        assert writer.closed
        assert await reader.read() == "through the sent end"
        with pytest.raises(BadUse):
            await writer.write("mine no more")
        await settle()
        with pytest.raises(Retired):
            await reader.read()


@process
async def use_received(reader):
    writer = await reader.read()
    await writer.write("through the sent end")


@scenario("2.4")
async def an_end_whose_write_does_not_commit_stays():
    c, carrier = Channel("c"), Channel("carrier")
    writer = c.writer()
    _reader, out, _into = c.reader(), carrier.writer(), carrier.reader()
    carrier.poison()
    with pytest.raises(Poisoned) as caught:
        await out.write(writer)
    assert caught.value.value is writer
    assert not writer.closed


@scenario("2.4")
async def an_end_dropped_undelivered_is_retired():
    c, carrier = Channel("c"), Channel("carrier", capacity=1)
    reader, out, into = c.reader(), carrier.writer(), carrier.reader()
    await out.write(c.writer())
    into.retire()
    gc.collect()
    with pytest.raises(Retired):
        await reader.read()


@scenario("2.5")
async def a_side_is_ended_when_all_its_ends_are_gone():
    c = Channel("c")
    first, second, reader = c.writer(), c.writer(), c.reader()
    first.retire()
    async with Group() as group:
        group.start(put(second, 1))
        assert await reader.read() == 1
    with pytest.raises(Retired):
        await reader.read()
    with pytest.raises(Retired):
        c.reader()


@scenario("2.5")
async def a_side_that_never_had_an_end_is_not_ended():
    c = Channel("c")
    reader = get(c.reader())
    async with Group() as group:
        group.start(reader)
        await settle()
        assert not reader.done
        await put_one(c, 1)
    assert reader.result == [1]


@scenario("2.6")
async def an_end_keeps_its_channel():
    writer, reader = make_pair()
    gc.collect()
    async with Group() as group:
        group.start(put(writer, 1))
        assert await reader.read() == 1
    assert reader.channel.name == "kept"


def make_pair():
    c = Channel("kept")
    return c.writer(), c.reader()


@scenario("2.3", "6.5")
async def a_cancelled_process_lets_go_too():
    c = Channel("c")
    writer, reader = c.writer(), c.reader()
    waiting = put(writer, "never taken")
    async with Group() as group:
        group.start(waiting)
        await settle()
        waiting.cancel()
    assert writer.closed
    with pytest.raises(Retired):
        await reader.read()
    assert issubclass(Cancelled, BaseException) and not issubclass(Cancelled, Exception)
