"""Bugs in the manner of Go programs, each with its fix: a check finds the bug, shortens its
schedule, and finds nothing in the fixed program (rules 17.5 to 17.8). The bugs of GoBench are in
checking_kernels.py; these are others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import weft
from weft.coroutines import (
    Channel,
    Group,
    Input,
    Output,
    Retired,
    after,
    process,
    run,
    select,
    skip,
    sleep,
)

Network = Callable[[bool], Any]
BUGS: dict[str, tuple[Network, str, dict[str, Any]]] = {}  # name → network, kind, options


def bug(kind: str, **options: Any) -> Callable[[Network], Network]:
    def add(network: Network) -> Network:
        BUGS[network.__name__] = (network, kind, options)
        return network

    return add


@process
async def collects(source: Any) -> list[Any]:
    return [value async for value in source]


@process
async def puts(out: Any, *values: Any) -> None:
    for value in values:
        await out.write(value)


# --- each of two workers closes their channel -----------------------------------------------------


@process
async def fills(n: int, out: Any, done: Any, mended: bool) -> None:
    for i in range(2):
        await out.write(10 * n + i)
    if mended:
        await done.write(n)
    else:
        out.poison()


@process
async def closes(done: Any, out: Any) -> None:
    for _ in range(2):
        await done.read()
    out.retire()


@bug("exception")
def closed_twice(mended: bool) -> None:
    out, done = Channel("out"), Channel("done")
    workers = [fills(n, out.writer(), done.writer(), mended) for n in (1, 2)]
    closer = [closes(done.reader(), out.writer())] if mended else []
    got = run(collects(out.reader()), *workers, *closer)[0]
    assert sorted(got) == [10, 11, 20, 21]


# --- a condition is signalled only if a process waits for it --------------------------------------


@process
async def waits(asks: Any, signal: Any) -> None:
    await asks.write("is it so?")
    await signal.read()


@process
async def signals(asks: Any, signal: Any, mended: bool) -> None:
    await asks.read()
    if mended:
        await signal.write(None)
    else:
        await select(Output(signal, None), skip())


@bug("deadlock")
def signal_missed(mended: bool) -> None:
    asks, signal = Channel("asks"), Channel("signal")
    _kept = signal.writer()
    run(waits(asks.writer(), signal.reader()), signals(asks.reader(), signal.writer(), mended))


# --- two locks, in two orders ---------------------------------------------------------------------


@process
async def moves(first: Any, second: Any) -> None:
    await first[0].write(None)
    await second[0].write(None)
    await second[1].read()
    await first[1].read()


@bug("deadlock")
def lock_order(mended: bool) -> None:
    a, b = Channel("a", capacity=1), Channel("b", capacity=1)
    pairs = [(a, b), (a, b) if mended else (b, a)]
    run(*[moves(*[(lock.writer(), lock.reader()) for lock in pair]) for pair in pairs])


# --- a select with a default gives a result, but perhaps no process waits for it yet
# ---------------


@process
async def works(out: Any, mended: bool) -> None:
    await sleep(1)
    if mended:
        await out.write(42)
    else:
        await select(Output(out, 42), skip())


@process
async def asks_for(result: Any, log: Any) -> Any:
    await log.write("asked")
    return await result.read()


@bug("exception", time="any")
def result_by_default(mended: bool) -> None:
    result, log = Channel("result"), Channel("log")
    got = run(
        asks_for(result.reader(), log.writer()),
        works(result.writer(), mended),
        collects(log.reader()),
    )
    assert got[0] == 42


# --- a group of workers is counted by the workers themselves --------------------------------------


@process
async def counts(adds: Any, done: Any, wait: Any) -> None:
    n = 0
    while True:
        guards = [Input(adds, ended="raise"), done, *([Output(wait, None)] if n == 0 else [])]
        guard, _ = await select(*guards)
        n += (1, -1, 0)[guard]
        if guard == 2:
            return


@process
async def job(adds: Any, done: Any, mended: bool) -> None:
    if not mended:
        await adds.write(1)
    await done.write(1)


@process
async def waits_for_jobs(adds: Any, done: Any, wait: Any, mended: bool) -> None:
    async with Group() as jobs:
        for _ in range(2):
            if mended:
                await adds.write(1)
            jobs.start(job(adds, done, mended))
        await wait.read()


@bug("left behind", strict=True)
def counted_too_late(mended: bool) -> None:
    adds, done, wait = Channel("adds"), Channel("done"), Channel("wait")
    run(
        counts(adds.reader(), done.reader(), wait.writer()),
        waits_for_jobs(adds.writer(), done.writer(), wait.reader(), mended),
    )


# --- a cancellation that the producer does not check for ------------------------------------------


@process
async def produces(out: Any, cancelled: Any, mended: bool) -> None:
    for i in range(3):
        guard, _ = await select(Output(out, i), cancelled) if mended else (0, await out.write(i))
        if guard == 1:
            return
    await cancelled.read()


@process
async def consumes(source: Any, cancel: Any) -> None:
    await source.read()
    await cancel.write(None)


@bug("deadlock")
def cancellation_not_taken(mended: bool) -> None:
    values, cancel = Channel("values"), Channel("cancel")
    _kept = values.reader()
    run(
        produces(values.writer(), cancel.reader(), mended),
        consumes(values.reader(), cancel.writer()),
    )


# --- the first answer is taken, and the others are left -------------------------------------------


@process
async def takes_the_first(out: Any, answers: Any, mended: bool) -> None:
    async with Group() as asked:
        for n in range(3):
            asked.start(puts(out, n))
        await answers.read()
        for _ in range(2 if mended else 0):
            await answers.read()


@bug("deadlock")
def first_answer(mended: bool) -> None:
    answers = Channel("answers")
    run(takes_the_first(answers.writer(), answers.reader(), mended))


# --- an answer after the time limit ---------------------------------------------------------------


@process
async def serves(requests: Any, replies: Any) -> None:
    value = await requests.read()
    await sleep(1)
    await replies.write(value)


@process
async def calls(requests: Any, replies: Any, mended: bool) -> None:
    await requests.write(1)
    guard, _ = await select(replies, after(1))
    if guard == 1 and mended:
        await replies.read()


@bug("deadlock")
def late_answer(mended: bool) -> None:
    requests, replies = Channel("requests"), Channel("replies")
    _kept = replies.reader()
    run(
        serves(requests.reader(), replies.writer()),
        calls(requests.writer(), replies.reader(), mended),
    )


# --- one stop for two workers ---------------------------------------------------------------------


@process
async def works_until(jobs: Any, stop: Any) -> None:
    while (await select(jobs, stop))[0] == 0:
        pass


@process
async def stops(jobs: Any, stop: Any, times: int) -> None:
    await jobs.write("job")
    for _ in range(times):
        await stop.write(None)


@bug("deadlock")
def one_stop(mended: bool) -> None:
    jobs, stop = Channel("jobs"), Channel("stop")
    _kept = jobs.writer(), stop.writer()
    workers = [works_until(jobs.reader(), stop.reader()) for _ in range(2)]
    run(*workers, stops(jobs.writer(), stop.writer(), 2 if mended else 1))


# --- a lock for readers, taken twice by one of them -----------------------------------------------


@process
async def guards_a_book(read: Any, unread: Any, write: Any, unwrite: Any) -> None:
    readers, writes, waiting = 0, False, None
    while True:
        free = not writes and waiting is None
        guard, value = await select(
            Input(read, ended="raise").when(free),
            unread,
            Input(write).when(waiting is None),
            unwrite,
        )
        readers += (1, -1, 0, 0)[guard]
        if guard == 2:
            waiting = value
        if guard == 3:
            writes = False
        if waiting is not None and readers == 0 and not writes:
            writes = True
            await waiting.write(None)
            waiting = None


@process
async def reads_a_book(lock: Any, unlock: Any, times: int) -> None:
    for end in (lock, unlock):
        for _ in range(times):
            await end.write(None)


@process
async def writes_a_book(lock: Any, unlock: Any) -> None:
    may = Channel("may")
    await lock.write(may.writer())
    await may.reader().read()
    await unlock.write(None)


@bug("deadlock")
def read_lock_taken_twice(mended: bool) -> None:
    ends = [Channel(name) for name in ("read", "unread", "write", "unwrite")]
    outs = [c.writer() for c in ends]
    run(
        guards_a_book(*[c.reader() for c in ends]),
        reads_a_book(*outs[:2], 1 if mended else 2),
        writes_a_book(*outs[2:]),
    )


# --- answers in the order of their arrival, taken for the order of their numbers ------------------


@process
async def takes_three(source: Any) -> list[Any]:
    return [await source.read() for _ in range(3)]


@bug("exception")
def by_arrival(mended: bool) -> None:
    c = Channel("c")
    got = run(takes_three(c.reader()), *[puts(c.writer(), n) for n in range(3)])[0]
    assert (sorted(got) if mended else got) == [0, 1, 2]


# --- a queue whose reader stops while values are in it --------------------------------------------


@process
async def drains(queue: Any, stop: Any, mended: bool) -> None:
    while (await select(queue, stop))[0] == 0:
        pass
    if mended:
        async for _ in queue:
            pass


@bug("lost values")
def stopped_early(mended: bool) -> None:
    queue, stop = Channel("queue", capacity=3), Channel("stop")
    run(
        puts(queue.writer(), 1, 2, 3),
        drains(queue.reader(), stop.reader(), mended),
        puts(stop.writer(), None),
    )


# --- two processes find something missing, and both make it ---------------------------------------


@process
async def makes_once(shelf: set[str], lock: Any, log: Any, mended: bool) -> None:
    if mended:
        await lock[0].write(None)
    if "book" not in shelf:
        await log.write("made")
        shelf.add("book")
    if mended:
        await lock[1].read()


@bug("exception")
def made_twice(mended: bool) -> None:
    shelf: set[str] = set()
    log, lock = Channel("log"), Channel("lock", capacity=1)
    makers = [
        makes_once(shelf, (lock.writer(), lock.reader()), log.writer(), mended) for _ in range(2)
    ]
    assert run(collects(log.reader()), *makers)[0] == ["made"]


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found_and_short_and_what_mends_it_is_not_blamed(name: str) -> None:
    """Rules 17.5 to 17.8: the bug is found with at most two deviations, and the fixed program does
    not fail."""
    network, kind, options = BUGS[name]
    report = weft.check(partial(network, False), seconds=30, **options)
    assert report.kind == kind, report.text
    assert report.schedules <= 200 and report.deviations <= 2, report.text
    mended = weft.check(partial(network, True), seconds=30, schedules=300, **options)
    assert not mended.failed, mended.text


def test_lost_values_say_what_to_do() -> None:
    """Rule 17.5. The report advises what to do about lost values. A channel that is poisoned has
    none."""
    report = weft.check(partial(stopped_early, False), seconds=30)
    assert "poison the channel" in report.text


def test_a_retired_channel_ends_who_writes_to_it() -> None:
    """Some bugs above keep an end of a channel. Without that end, Retired ends the process that
    would wait forever in a Go program.
    """

    @process
    async def takes_one(source: Any) -> None:
        await source.read()

    @process
    async def puts_two(out: Any) -> str:
        await out.write(1)
        try:
            await out.write(2)
        except Retired:
            return "nobody reads"
        return "read"

    c = Channel("c")
    assert run(takes_one(c.reader()), puts_two(c.writer()))[1] == "nobody reads"
