"""Scenarios of sections 9 (sharing), 10 (deadlock), 11 (bad use) and 12 (locks)."""

from __future__ import annotations

import gc

import pytest

from conformance.scenarios import outermost, scenario
from conformance.scenarios.parts import get, put, settle
from weft import (
    BadUse,
    Barrier,
    Cancelled,
    Channel,
    Deadlock,
    Group,
    Output,
    Parallel,
    Retired,
    process,
    run,
    select,
    sleep,
)

# --- 9 --------------------------------------------------------------------------------------------


@scenario("9.1")
async def a_sent_object_passes_by_reference():
    c, thing = Channel("c"), ["the very same"]
    _, [received] = await Parallel(put(c.writer(), thing), get(c.reader()))
    assert received is thing


# --- 10 -------------------------------------------------------------------------------------------


@process
async def read_then_write(reader, *writers):
    value = await reader.read()
    for writer in writers:
        await writer.write(value)


@outermost("10.1", "10.2", needs=("a deadlock",))
def two_that_wait_for_each_other_are_the_knot():
    with pytest.raises(Deadlock) as caught:
        run(embrace(), clock="virtual")
    knot = sorted(path.rpartition("/")[2] for path in caught.value.knot)
    assert knot == ["read_then_write[0]", "read_then_write[1]"]
    for part in (
        "read_then_write[0]",
        "read_then_write[1]",
        "'a'",
        "'b'",
        "read",
        __file__.rpartition("/")[2],
    ):
        assert part in caught.value.report, (part, caught.value.report)


@process
async def embrace():
    a, b = Channel("a"), Channel("b")
    await Parallel(read_then_write(a.reader(), b.writer()), read_then_write(b.reader(), a.writer()))


@outermost("10.2", needs=("a deadlock",))
def a_bystander_that_waits_for_the_knot_is_not_in_it():
    with pytest.raises(Deadlock) as caught:
        run(embrace_and_bystander(), clock="virtual")
    knot = sorted(path.rpartition("/")[2] for path in caught.value.knot)
    assert knot == ["read_then_write[0]", "read_then_write[1]"]
    assert "bystander" in caught.value.report


@process
async def embrace_and_bystander():
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    await Parallel(
        bystander(c.reader()),
        read_then_write(a.reader(), b.writer()),
        read_then_write(b.reader(), a.writer(), c.writer()),
    )


@process
async def bystander(reader):
    await reader.read()


@outermost("10.2", needs=("a deadlock",))
def a_ring_of_writers_is_one_knot():
    with pytest.raises(Deadlock) as caught:
        run(ring_of_writers(4), clock="virtual")
    knot = sorted(path.rpartition("/")[2] for path in caught.value.knot)
    assert knot == [f"write_then_read[{i}]" for i in range(4)]


@process
async def ring_of_writers(number):
    links = [Channel(f"link {i}") for i in range(number)]
    await Parallel(
        write_then_read(links[i].reader(), links[(i + 1) % number].writer()) for i in range(number)
    )


@process
async def write_then_read(reader, writer):
    await writer.write("after you")
    await reader.read()


@outermost("10.2", "8.1", needs=("a deadlock",))
def a_barrier_that_lacks_a_party_is_named():
    with pytest.raises(Deadlock) as caught:
        run(one_party_of_two(), clock="virtual")
    assert "sync" in caught.value.report
    assert any("one_party_of_two" in path for path in caught.value.knot)


@process
async def one_party_of_two():
    await Barrier(2).sync()


@outermost("10.1", needs=("a deadlock",))
def before_a_deadlock_is_raised_all_processes_are_cancelled_and_clean_up():
    log = []
    with pytest.raises(Deadlock):
        run(stuck(log), clock="virtual")
    assert log == ["cleaned up", "cleaned up"]


@process
async def stuck(log):
    a = Channel("a")
    kept = a.writer()
    await Parallel(cleans_up(a.reader(), log), cleans_up(a.reader(), log))
    assert kept


@process
async def cleans_up(reader, log):
    try:
        await reader.read()
    except Cancelled:
        log.append("cleaned up")
        raise


@outermost("10.2", needs=("a deadlock",))
def a_select_is_reported_with_all_its_channels():
    with pytest.raises(Deadlock) as caught:
        run(stuck_in_a_select(), clock="virtual")
    assert "'apples'" in caught.value.report and "'pears'" in caught.value.report


@process
async def stuck_in_a_select():
    apples, pears = Channel("apples"), Channel("pears")
    kept = apples.writer(), pears.reader()
    await select(apples.reader(), Output(pears.writer(), 1))
    assert kept


@outermost("10.3")
def a_timer_that_is_armed_is_outside():
    assert run(waits_for_time(), clock="virtual") == ["in time"]


@process
async def waits_for_time():
    c = Channel("c")
    _, value = await Parallel(late(c.writer()), get(c.reader()))
    return value


@process
async def late(writer):
    await sleep(1000)
    await writer.write("in time")


@outermost("10.1", "7.6", needs=("a deadlock",))
def a_run_can_be_started_after_a_deadlock():
    with pytest.raises(Deadlock):
        run(one_party_of_two(), clock="virtual")
    assert run(waits_for_time(), clock="virtual") == ["in time"]


# --- 11 -------------------------------------------------------------------------------------------


@scenario("11.1", needs=("a path",))
async def bad_use_names_process_operation_and_channel_and_changes_nothing():
    c = Channel("orders", capacity=1)
    writer, reader = c.writer(), c.reader()
    await writer.write("still here")
    with pytest.raises(BadUse) as caught:
        await select(reader, Output(writer, 1))
    for part in ("bad_use_names_process", "select", "orders"):
        assert part in str(caught.value)
    assert await reader.read() == "still here"


@scenario("11.2")
async def reading_a_writer_writing_a_reader_and_a_guard_that_is_none():
    c = Channel("c")
    reader, writer = c.reader(), c.writer()
    with pytest.raises((BadUse, AttributeError)):
        await writer.read()
    with pytest.raises((BadUse, AttributeError)):
        await reader.write(1)
    for guard in (writer, 5, None, c):
        with pytest.raises(BadUse):
            await select(reader, guard)
    with pytest.raises(BadUse):
        await select(Output(reader, 1))
    with pytest.raises(BadUse):
        await select(reader, mode="first")


@scenario("11.2")
async def what_is_no_process_cannot_be_started():
    for thing in (5, None, returns_one):
        with pytest.raises(BadUse):
            await Parallel(thing)


def returns_one():
    return 1


# --- 12 -------------------------------------------------------------------------------------------


@scenario("12.1", "5.8")
async def the_function_of_a_guard_may_use_channels():
    c, d = Channel("c"), Channel("d")
    writer, reader = c.writer(), get(c.reader())
    made = []

    def make():
        made.append((c.stats().waiting_readers, d.writer(), d.reader()))
        d.poison()
        return "made"

    async with Group() as group:
        group.start(reader)
        await settle()
        await select(Output(writer, make=make))
    assert reader.result == ["made"] and len(made) == 1


class Noisy:
    """A value whose finaliser uses the channel that dropped the value."""

    def __init__(self, channel, log):
        self.channel, self.log = channel, log

    def __del__(self):
        self.log.append(self.channel.stats().dropped)


@scenario("12.2", "1.4")
async def a_dropped_value_is_released_outside_the_lock():
    c, log = Channel("c", capacity=1, overflow="drop_oldest"), []
    writer, _reader = c.writer(), c.reader()
    for _ in range(3):
        await writer.write(Noisy(c, log))
    await settle()
    assert log == [1, 2]
    c.poison()
    await settle()
    assert log == [1, 2, 3]


class Retiring:
    """A value whose finaliser retires an end."""

    def __init__(self, end):
        self.end = end


@scenario("12.2", "2.2")
async def an_end_in_a_dropped_value_is_retired():
    c, d = Channel("c", capacity=1), Channel("d")
    writer, reader, waiting = c.writer(), c.reader(), d.reader()
    await writer.write(Retiring(d.writer()))
    reader.retire()
    gc.collect()
    with pytest.raises(Retired):
        await waiting.read()
