"""Bugs in the manner of Go's packages sync, context, errgroup and time, each with its fix: a check
finds the bug within a few schedules, and finds nothing once it is fixed (rules 17.5 to 17.8).
test_checking_go.py has the bugs of channels alone.

A goroutine is a process, a mutex is a buffer of one place, a semaphore is a buffer of several, a
context is a channel that retires, and a condition variable is a process. An end that is kept
outside the processes keeps its channel from retiring; without that end, Retired ends the process
that would wait forever in a Go program.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

import weft
from weft.coroutines import (
    Barrier,
    Channel,
    Group,
    Input,
    Output,
    Parallel,
    Retired,
    after,
    process,
    run,
    select,
    skip,
    sleep,
)

Network = Callable[[bool], Any]
BUGS: dict[str, tuple[Network, str]] = {}  # name → the network, and the kind of its failure


def bug(kind: str) -> Callable[[Network], Network]:
    def add(network: Network) -> Network:
        BUGS[network.__name__] = (network, kind)
        return network

    return add


def both(c: Any) -> tuple[Any, Any]:
    """Returns the two ends that a user of a mutex or a semaphore needs."""
    return c.writer(), c.reader()


@process
async def puts(out: Any, *values: Any) -> None:
    for value in values:
        await out.write(value)


@process
async def collects(source: Any) -> list[Any]:
    return [value async for value in source]


@process
async def takes(source: Any, n: int) -> None:
    for _ in range(n):
        await source.read()


# --- sync.WaitGroup: Done is missing on one path --------------------------------------------------


@process
async def job(n: int, done: Any, mended: bool) -> None:
    if n == 1 and not mended:
        return
    await done.write(n)


@bug("deadlock")
def done_missing(mended: bool) -> None:
    done = Channel("done")
    _kept = done.writer()
    run(takes(done.reader(), 3), *[job(n, done.writer(), mended) for n in range(3)])


# --- sync.Mutex: the unlock is missing on the path of an error ------------------------------------


@process
async def updates(mutex: Any, stops: Any, out: Any, mended: bool) -> None:
    await mutex[0].write(None)
    guard, _ = await select(Output(out, 1), stops)
    if guard == 0 or mended:
        await mutex[1].read()


@process
async def takes_or_stops(mutex: Any, source: Any, stops: Any) -> None:
    await select(source, Output(stops, None))
    await mutex[0].write(None)
    await mutex[1].read()


@bug("deadlock")
def unlock_missing(mended: bool) -> None:
    mutex, stops, out = Channel("mutex", capacity=1), Channel("stops"), Channel("out")
    run(
        updates(both(mutex), stops.reader(), out.writer(), mended),
        takes_or_stops(both(mutex), out.reader(), stops.writer()),
    )


# --- sync.Mutex, sync.Once: taken again by a function that is called under it ---------------------


@process
async def takes_again(mutex: Any, times: int) -> None:
    for _ in range(times):
        await mutex[0].write(None)
    for _ in range(times):
        await mutex[1].read()


@bug("deadlock")
def taken_again(mended: bool) -> None:
    mutex = Channel("mutex", capacity=1)
    run(*[takes_again(both(mutex), 1 if mended else 2) for _ in range(2)])


# --- a semaphore: each of two takes two slots, one after the other --------------------------------


@bug("deadlock")
def slots_one_by_one(mended: bool) -> None:
    slots = Channel("slots", capacity=2)
    run(*[takes_again(both(slots), 1 if mended else 2) for _ in range(2)])


# --- sync.RWMutex: two readers want to write, and neither gives its read lock back ----------------


@process
async def upgrades(slots: Any, gate: Any, mended: bool) -> None:
    await slots[0].write(None)
    if mended:
        await slots[1].read()
        await gate[0].write(None)
        await slots[0].write(None)
    await slots[0].write(None)
    for _ in range(2):
        await slots[1].read()
    if mended:
        await gate[1].read()


@bug("deadlock")
def lock_upgraded_by_two(mended: bool) -> None:
    slots, gate = Channel("slots", capacity=2), Channel("gate", capacity=1)
    run(*[upgrades(both(slots), both(gate), mended) for _ in range(2)])


# --- sync.Cond: Signal wakes one waiter, and two wait ---------------------------------------------


@process
async def condition(waits: Any, signals: Any, every: bool) -> None:
    waiting: list[Any] = []
    while True:
        guard, value = await select(waits, Input(signals, ended="raise"))
        if guard == 0:
            waiting.append(value)
            continue
        for _ in range(len(waiting) if every else min(1, len(waiting))):
            await waiting.pop(0).write(None)


@process
async def waits_for_signal(waits: Any, ready: Any, woken: Any, signalled: Any) -> None:
    await waits.write(woken)
    await ready.write(None)
    await signalled.read()


@process
async def signals_when_ready(ready: Any, signals: Any) -> None:
    for _ in range(2):
        await ready.read()
    await signals.write(None)


@bug("deadlock")
def one_waiter_woken(mended: bool) -> None:
    waits, signals, ready = Channel("waits"), Channel("signals"), Channel("ready")
    woken = [Channel("woken 0"), Channel("woken 1")]
    _kept = [c.writer() for c in woken]
    run(
        condition(waits.reader(), signals.reader(), mended),
        *[waits_for_signal(waits.writer(), ready.writer(), *both(c)) for c in woken],
        signals_when_ready(ready.reader(), signals.writer()),
    )


# --- sync/atomic: a value is got, and then set ----------------------------------------------------


@process
async def counter(gets: Any, sets: Any, adds: Any) -> None:
    n = 0
    while True:
        guard, value = await select(Output(gets, n), sets, adds)
        n = (n, value, n + 1)[guard]


@process
async def increments(gets: Any, sets: Any, adds: Any, mended: bool) -> None:
    if mended:
        await adds.write(1)
    else:
        await sets.write(await gets.read() + 1)


@process
async def reads_at_the_end(gets: Any, processes: Any) -> Any:
    await Parallel(processes)
    return await gets.read()


@bug("exception")
def update_lost(mended: bool) -> None:
    gets, sets, adds = Channel("gets"), Channel("sets"), Channel("adds")
    processes = [increments(gets.reader(), sets.writer(), adds.writer(), mended) for _ in range(2)]
    got = run(
        reads_at_the_end(gets.reader(), processes),
        counter(gets.writer(), sets.reader(), adds.reader()),
    )
    assert got[0] == 2


# --- errgroup: the first error ends the wait, and a member does not watch the context --------------


@process
async def member(n: int, out: Any, errors: Any, context: Any, done: Any, mended: bool) -> None:
    if n == 0:
        await errors.write("failed")
    elif not mended:
        await out.write(n)
    else:
        with suppress(Retired):
            await select(Output(out, n), Input(context, ended="raise"))
    await done.write(n)


@process
async def waits_for_members(out: Any, errors: Any, cancel: Any, done: Any, n: int) -> None:
    for _ in range(n):
        if (await select(out, errors))[0] == 1:
            break
    cancel.retire()
    for _ in range(n):
        await done.read()


@bug("deadlock")
def member_without_context(mended: bool) -> None:
    out, errors, context = Channel("out"), Channel("errors"), Channel("context")
    done = Channel("done", capacity=3)
    _kept = out.reader(), errors.reader()
    members = [
        member(n, out.writer(), errors.writer(), context.reader(), done.writer(), mended)
        for n in range(3)
    ]
    run(
        waits_for_members(out.reader(), errors.reader(), context.writer(), done.reader(), 3),
        *members,
    )


# --- context: a handler gives its result, but the context has ended --------------------------------


@process
async def handles(context: Any, work: Any, out: Any, mended: bool) -> None:
    async for value in work:
        if not mended:
            await out.write(value)
            continue
        try:
            await select(Output(out, value), Input(context, ended="raise"))
        except Retired:
            return


@process
async def cancels_after_one(cancel: Any, work: Any, out: Any) -> None:
    await work.write(1)
    await out.read()
    await work.write(2)
    work.retire()
    cancel.retire()


@bug("deadlock")
def handler_without_context(mended: bool) -> None:
    context, work, out = Channel("context"), Channel("work"), Channel("out")
    _kept = out.reader()
    run(
        handles(context.reader(), work.reader(), out.writer(), mended),
        cancels_after_one(context.writer(), work.writer(), out.reader()),
    )


# --- time.Timer: stopped after its tick was taken, and drained once more --------------------------


@process
async def timer(ticks: Any, stop: Any, stopped: Any) -> None:
    guard, _ = await select(stop, after(1))
    if guard == 1:
        await ticks.write("tick")
        await stop.read()
    await stopped.write(guard == 0)


@process
async def uses_a_timer(ticks: Any, stop: Any, stopped: Any, work: Any, mended: bool) -> None:
    guard, _ = await select(ticks, work)
    await stop.write(None)
    if not await stopped.read() and (guard == 1 or not mended):
        await ticks.read()


@process
async def works(work: Any) -> None:
    await sleep(1)
    await work.write(None)


@bug("deadlock")
def timer_drained_twice(mended: bool) -> None:
    ticks, stop, stopped = Channel("ticks", capacity=1), Channel("stop"), Channel("stopped")
    work = Channel("work")
    _kept = ticks.writer()
    run(
        timer(ticks.writer(), stop.reader(), stopped.writer()),
        uses_a_timer(ticks.reader(), stop.writer(), stopped.reader(), work.reader(), mended),
        works(work.writer()),
    )


# --- a nil channel: a source that has ended is switched off, or the merge ends with it ------------


@process
async def merges(sources: list[Any], out: Any, mended: bool) -> None:
    on = [True] * len(sources)
    while any(on):
        guards = [
            Input(source, ended="raise").when(is_on)
            for source, is_on in zip(sources, on, strict=True)
        ]
        try:
            _, value = await select(*guards)
        except Retired as end:
            if not mended:
                return
            on[end.guard] = False
            continue
        await out.write(value)


@bug("exception")
def ended_source_not_switched_off(mended: bool) -> None:
    a, b, out = Channel("a"), Channel("b"), Channel("out")
    got = run(
        collects(out.reader()),
        merges([a.reader(), b.reader()], out.writer(), mended),
        puts(a.writer(), 1),
        puts(b.writer(), 2, 3),
    )[0]
    assert sorted(got) == [1, 2, 3]


# --- a channel that another process closes, although values are still to be sent ------------------


@process
async def sends_two(out: Any, stop: Any) -> None:
    await out.write(1)
    await stop.write(None)
    await out.write(2)


@process
async def closes(out: Any, stop: Any, mended: bool) -> None:
    await stop.read()
    if not mended:
        out.retire()


@bug("exception")
def sent_after_close(mended: bool) -> None:
    c, stop = Channel("c"), Channel("stop")
    shared = c.writer()
    network = [sends_two(shared, stop.writer()), closes(shared, stop.reader(), mended)]
    del shared
    run(collects(c.reader()), *network)


# --- a pool of workers: all jobs are given before the first result is taken -----------------------


@process
async def squares(jobs: Any, results: Any) -> None:
    async for job in jobs:
        await results.write(job * job)


@process
async def hands_out(jobs: Any, results: Any, mended: bool) -> None:
    if not mended:
        for n in range(4):
            await jobs.write(n)
    async with Group() as givers:
        if mended:
            givers.start(puts(jobs, *range(4)))
        for _ in range(4):
            await results.read()


@bug("deadlock")
def jobs_before_results(mended: bool) -> None:
    jobs, results = Channel("jobs"), Channel("results")
    run(
        hands_out(jobs.writer(), results.reader(), mended),
        *[squares(jobs.reader(), results.writer()) for _ in range(2)],
    )


# --- a select with a default drops an answer when the buffer is full ------------------------------


@process
async def answers(requests: Any, replies: Any, mended: bool) -> None:
    async for request in requests:
        if mended:
            await replies.write(request)
        else:
            await select(Output(replies, request), skip())


@bug("deadlock")
def answer_dropped(mended: bool) -> None:
    requests, replies = Channel("requests"), Channel("replies", capacity=1)
    _kept = replies.writer()
    run(
        answers(requests.reader(), replies.writer(), mended),
        puts(requests.writer(), 1, 2, 3),
        takes(replies.reader(), 3),
    )


# --- publish and subscribe: a subscriber leaves while a message is on its way to it ---------------


@process
async def hub(subscribes: Any, leaves: Any, messages: Any, mended: bool) -> None:
    subscriber = await subscribes.read()
    while True:
        guard, message = await select(leaves, Input(messages, ended="raise"))
        if guard == 0:
            subscriber = None
        elif subscriber is not None and mended:
            if (await select(Output(subscriber, message), leaves))[0] == 1:
                subscriber = None
        elif subscriber is not None:
            await subscriber.write(message)


@process
async def subscribes_for_one(subscribes: Any, leaves: Any, out: Any, source: Any) -> None:
    await subscribes.write(out)
    await source.read()
    await leaves.write(None)


@bug("deadlock")
def leaves_while_published(mended: bool) -> None:
    subscribes, leaves, messages = Channel("subscribes"), Channel("leaves"), Channel("messages")
    mine = Channel("mine")
    _kept = mine.reader()
    run(
        hub(subscribes.reader(), leaves.reader(), messages.reader(), mended),
        subscribes_for_one(subscribes.writer(), leaves.writer(), *both(mine)),
        puts(messages.writer(), 1, 2),
    )


# --- a barrier: one party leaves early ------------------------------------------------------------


@process
async def phases(barrier: Any, n: int) -> None:
    for _ in range(n):
        await barrier.sync()


@bug("deadlock")
def party_missing(mended: bool) -> None:
    barrier = Barrier(3)
    run(*[phases(barrier, n) for n in (2, 2, 2 if mended else 1)])


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found_and_what_mends_it_is_proven(name: str) -> None:
    """Rules 17.5 to 17.8."""
    network, kind = BUGS[name]
    report = weft.check(partial(network, False), seconds=60)
    assert report.kind == kind, report.text
    assert report.schedules <= 50 and report.deviations <= 2, report.text
    mended = weft.check(partial(network, True), seconds=60)
    assert not mended.failed and mended.complete, mended.text


def test_a_select_whose_guards_are_all_off_is_bad_use() -> None:
    """Rule 5.7. In Go such a select, of nil channels alone, waits forever."""

    @process
    async def waits_for_nothing(source: Any) -> None:
        await select(Input(source).when(False))

    def network() -> None:
        c = Channel("c")
        run(waits_for_nothing(c.reader()), puts(c.writer(), 1))

    report = weft.check(network, seconds=60)
    assert report.kind == "exception" and "BadUse" in report.text


def test_an_end_that_is_closed_twice_is_no_failure() -> None:
    """Rules 3.1, 4.1. In Go the second close would panic."""

    @process
    async def closes_twice(out: Any) -> None:
        out.retire()
        out.retire()

    def network() -> None:
        c = Channel("c")
        run(closes_twice(c.writer()), collects(c.reader()))

    assert weft.check(network, seconds=60).complete
