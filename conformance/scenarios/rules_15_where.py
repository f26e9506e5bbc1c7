"""Scenarios of section 15 (where processes run) and of rule 7.9 (io calls)."""

from __future__ import annotations

import threading

from conformance.scenarios import scenario
from conformance.scenarios.parts import drain, put
from weft import (
    BadUse,
    Cancelled,
    Channel,
    Group,
    Output,
    Parallel,
    current_process,
    io,
    process,
    select,
    yield_,
)

BACKENDS = ("coroutines", "greenlets", "threads")


def everywhere(function):
    """Returns the process function, and a version of it for each backend that accepts it: a `def`
    runs on all backends, an `async def` on two.
    """
    made = [function]
    for backend in BACKENDS:
        try:
            made.append(function.on(backend))
        except BadUse:
            continue
    return made


# --- 7.9 ------------------------------------------------------------------------------------------


@io
def in_a_library(value):
    if value is None:
        raise LookupError("nothing")
    return value, threading.current_thread()


@scenario("7.9", "10.3")
async def an_io_call_gives_its_result_or_its_exception():
    value, _ = await in_a_library(3)
    assert value == 3
    try:
        await in_a_library(None)
    except LookupError as error:
        assert str(error) == "nothing"
    else:
        raise AssertionError("not passed on")


@scenario("7.9", "8.6")
async def the_clock_stands_still_during_an_io_call():
    began, gate = await sleeps_at(), threading.Event()

    @io
    def waits():
        gate.wait()

    @process
    async def opens():
        await yield_()
        gate.set()

    @process
    async def calls():
        await waits()

    await Parallel(calls(), opens())
    assert await sleeps_at() == began


async def sleeps_at():
    from weft import now

    return now()


@scenario("7.9", "6.2")
async def a_cancelled_io_call_is_waited_for_no_longer():
    gate, ended = threading.Event(), threading.Event()

    @io
    def waits():
        gate.wait()
        ended.set()

    @process
    async def calls(started):
        await started.write(1)
        try:
            await waits()
        except Cancelled:
            return ended.is_set()

    if await where() == "threads":
        return  # a thread calls the function directly
    c = Channel("started")
    async with Group() as group:
        p, started = group.start(calls(c.writer())), c.reader()
        await started.read()
        await yield_()
        p.cancel()
    gate.set()
    assert p.result is False, "the process went on before the call had ended"
    ended.wait()  # the call continues after its caller was cancelled


async def where():
    from weft._extension import native

    return {1: "coroutines", 2: "threads", 3: "greenlets", 4: "tasks"}[native.where()]


# --- 15 -------------------------------------------------------------------------------------------


@scenario("15.1", "1.1", "3.4")
async def the_network_does_not_change_with_where_its_processes_run():
    for out in everywhere(put):
        for into in everywhere(drain):
            c = Channel("c")
            _, got = await Parallel(out(c.writer(), 1, 2, 3), into(c.reader()))
            assert got == [1, 2, 3]


@scenario("15.1", "5.3")
async def choices_meet_wherever_they_are_made():
    @process
    async def exchanges(reader, writer):
        counts = [0, 0]
        for _ in range(10):
            index, _ = await select(reader, Output(writer, 1))
            counts[index] += 1
        return counts

    for one in everywhere(exchanges):
        for two in everywhere(exchanges):
            c, d = Channel("c"), Channel("d")
            first, second = await Parallel(one(c.reader(), d.writer()), two(d.reader(), c.writer()))
            assert first == second[::-1] and sum(first) == 10


@scenario("15.2")
async def one_scheduler_runs_its_processes_one_at_a_time():
    inside = []

    @process
    async def steps():
        for _ in range(20):
            inside.append(threading.get_ident())
            await yield_()

    if await where() == "threads":
        return
    await Parallel(steps() for _ in range(3))
    assert set(inside) == {threading.get_ident()}


@scenario("15.3")
async def on_threads_each_has_its_own():
    @process
    async def which():
        return threading.get_ident(), current_process().path

    made = which.on("threads")
    [(first, path), (second, _)] = await Parallel(made(), made())
    assert len({first, second, threading.get_ident()}) == 3
    assert path.endswith("which[0]")


@scenario("15.3", "11.1")
async def what_cannot_run_there_is_bad_use():
    for backend in (put, "fibres", None):
        try:
            put.on(backend)
        except BadUse as error:
            assert "no such backend" in str(error)
        else:
            raise AssertionError("not refused")
    refused = "greenlets" if await where() in ("coroutines", "tasks") else "coroutines"
    try:
        put.on(refused)
    except BadUse as error:
        assert "put" in str(error)
    else:
        raise AssertionError("not refused")


@scenario("15.4")
async def what_waits_stops_itself_alone():
    log = []

    @process
    async def waits(reader):
        log.append(await reader.read())

    @process
    async def works(writer):
        for k in range(3):
            log.append(k)
            await yield_()
        await writer.write("came")

    c = Channel("c")
    await Parallel(waits(c.reader()), works(c.writer()))
    assert log == [0, 1, 2, "came"]
