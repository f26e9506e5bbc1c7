"""The programs that the tests of `weft check` check: right programs, wrong programs, and programs
that cannot be checked.

Each function builds and runs a network. test_checking*.py contain the findings that are expected
for each function.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from typing import Any

from weft import threads
from weft.coroutines import (
    Channel,
    Parallel,
    Poisoned,
    Retired,
    after,
    process,
    run,
    select,
    skip,
    sleep,
    yield_,
)


@process
async def writes(out, *values):
    for value in values:
        await out.write(value)


@process
async def reads(source, n=None):
    if n is None:
        return [value async for value in source]
    return [await source.read() for _ in range(n)]


def good() -> Any:
    c = Channel("c")
    return run(writes(c.writer(), 1, 2, 3), reads(c.reader()))[1]


# --- deadlocks ------------------------------------------------------------------------------------


def deadlock() -> None:
    """Runs a network that deadlocks in every order."""
    c, d = Channel("c"), Channel("d")

    @process
    async def both(first, second):
        await first.read()
        await second.write(1)

    run(both(c.reader(), d.writer()), both(d.reader(), c.writer()))


@process
async def takes_both(first, second, go=None):
    if go is not None:
        await go.read()
    for take, put in ((first, second),):
        await take[0].write(0)
        await put[0].write(0)
        await take[1].write(0)
        await put[1].write(0)


@process
async def key(take, put):
    async for _ in take:
        await put.read()


@process
async def hop(source, out):
    await out.write(await source.read())


def _ends(channel, side):
    return tuple(getattr(c, side)() for c in channel)


def hidden(mended: bool = False) -> None:
    """Runs two processes that take two keys in opposite orders; in a plain run the second process
    begins late."""
    a, b = [(Channel(n), Channel(f"{n}.free")) for n in "AB"]
    h = [Channel(f"h{n}") for n in range(4)]
    first = (_ends(a, "writer"), _ends(b, "writer"))
    second = (
        (_ends(a, "writer"), _ends(b, "writer"))
        if mended
        else (_ends(b, "writer"), _ends(a, "writer"))
    )
    run(
        takes_both(*first),
        takes_both(*second, h[3].reader()),
        key(*_ends(a, "reader")),
        key(*_ends(b, "reader")),
        writes(h[0].writer(), 1),
        *[hop(h[n].reader(), h[n + 1].writer()) for n in range(3)],
    )


def hidden_mended() -> None:
    hidden(mended=True)


# --- results that depend on the order -------------------------------------------------------------


def who_is_first() -> Any:
    c = Channel("c")
    return run(writes(c.writer(), "a"), writes(c.writer(), "b"), reads(c.reader()))[2]


def who_is_first_asserted() -> None:
    assert who_is_first() == ["a", "b"], "a comes first"


@process
async def merges(a, b, out):
    while True:
        _, value = await select(a, b)
        await out.write(value)


def merged() -> Any:
    a, b, out = Channel("a"), Channel("b"), Channel("out")
    return run(
        writes(a.writer(), 1),
        writes(b.writer(), 2),
        merges(a.reader(), b.reader(), out.writer()),
        reads(out.reader()),
    )[-1]


# --- other properties -----------------------------------------------------------------------------


def loses_a_value() -> None:
    """Runs a reader that in every order ends before the second value is read."""
    c = Channel("c", capacity=4)
    run(writes(c.writer(), 1, 2), reads(c.reader(), 1))


def loses_by_poison() -> None:
    """Poisons a channel that still holds values, which counts as no loss."""
    c = Channel("c", capacity=4)

    @process
    async def poisons(out):
        await out.write(1)
        out.poison()

    @process
    async def waits(source):
        try:
            await sleep(1)
            await source.read()
        except Poisoned:
            pass

    run(poisons(c.writer()), waits(c.reader()))


def never_ends() -> None:
    c, d = Channel("c"), Channel("d")

    @process
    async def forwards(source, out, first=None):
        if first is not None:
            await out.write(first)
        async for value in source:
            await out.write(value)

    run(forwards(c.reader(), d.writer(), 1), forwards(d.reader(), c.writer()))


def left_in_some_order() -> Any:
    """If the first writer writes first, no process reads the second writer's value, and Retired
    ends that writer."""
    c = Channel("c")
    return run(writes(c.writer(), 1), writes(c.writer(), 2), reads(c.reader(), 1))[2] and None


def shares_a_list() -> None:
    seen: list[int] = []

    @process
    async def appends(n):
        await yield_()
        seen.append(n)

    run(appends(1), appends(2))


def shares_what_nobody_changes() -> None:
    names = ["a", "b"]

    @process
    async def looks(n):
        await yield_()
        assert names[n]

    run(looks(0), looks(1))


def changes_what_it_has_sent() -> None:
    @process
    async def lines(out):
        line = []
        for word in "ab":
            line[:] = [word]
            await out.write(line)

    c = Channel("c", capacity=2)
    run(lines(c.writer()), reads(c.reader()))


def early() -> Any:
    """Fails only if a time passes although a process could continue."""
    c = Channel("c")

    @process
    async def answers(out):
        await yield_()
        await out.write(1)

    @process
    async def asks(source):
        which, _ = await select(source, after(1))
        return which

    which = run(answers(c.writer()), asks(c.reader()))[1]
    assert which == 0, "the answer was late"


def fails_at_one_grain() -> None:
    """Runs three philosophers, who deadlock only if a coroutine can be stopped between its two
    writes, neither of which waits."""
    forks = [Channel(f"fork{k}", capacity=1) for k in range(3)]

    @process
    async def philosopher(first, second):
        await first[0].write(1)
        await second[0].write(1)
        await second[1].read()
        await first[1].read()

    run(
        *[
            philosopher(*[(f.writer(), f.reader()) for f in (forks[k], forks[(k + 1) % 3])])
            for k in range(3)
        ]
    )


def with_threads() -> Any:
    c = threads.Channel("c")

    @threads.process
    def puts(out, value):
        out.write(value)

    @threads.process
    def gets(source):
        return list(source)

    return threads.run(puts(c.writer(), "a"), puts(c.writer(), "b"), gets(c.reader()))[2]


def prints() -> None:
    print("hello from", good())
    raise ValueError("after printing")


# --- what cannot be checked -----------------------------------------------------------------------


def no_network() -> int:
    return 3


def computes_for_ever() -> None:
    good()
    while True:
        pass


def starts_a_thread() -> None:
    threading.Thread(target=print).start()
    good()


def forks() -> None:
    good()
    os.fork()


def runs_a_loop() -> None:
    async def nothing():
        await asyncio.Event().wait()

    asyncio.run(nothing())


def exits() -> None:
    good()
    sys.exit(7)


def waits_for_a_lock() -> None:
    lock = threading.Lock()
    c = Channel("c")

    @process
    async def holds(out):
        with lock:
            await out.write(1)

    @process
    async def wants(source):
        with lock:
            await source.read()

    run(holds(c.writer()), wants(c.reader()))


_outside = Channel("outside")


def uses_a_channel_of_its_module() -> None:
    run(writes(_outside.writer(), 1), reads(_outside.reader(), 1))


_calls = [0]


def not_the_same_twice() -> None:
    """The state of the module decides how many values there are."""
    _calls[0] += 1
    c = Channel("c")
    run(writes(c.writer(), *range(_calls[0] % 3 + 1)), writes(c.writer(), 9), reads(c.reader()))


def save(text: str) -> None:
    with open(os.environ["CHECKED_FILE"], "a") as file:  # noqa: PTH123
        file.write(text)


def saves() -> None:
    good()
    save("y")


def uses_the_clock() -> None:
    """Uses clocks and random numbers, which give the same results in each run."""
    import random

    c = Channel("c")
    n = int(time.time()) % 7 + int(random.random() * 5) + os.urandom(1)[0] % 4
    run(writes(c.writer(), *range(n % 3)), writes(c.writer(), 5), reads(c.reader()))


_runs = [0]


def says_when_it_runs() -> None:
    """Writes a byte to a descriptor in its 50th run. The function has very many schedules."""
    _runs[0] += 1
    if _runs[0] == 50:
        os.write(int(os.environ["CHECKED_FD"]), b"x")
    hidden(mended=True)


@process
async def main_process():
    c = Channel("c")
    return (await Parallel(writes(c.writer(), 1), reads(c.reader())))[1]


async def main_coroutine():
    c = Channel("c")
    return (await Parallel(writes(c.writer(), 1), reads(c.reader())))[1]


def needs_arguments(n) -> None:
    good()


class TestMethods:
    def test_method(self) -> None:
        assert who_is_first() == ["a", "b"]


def test_with_a_fixture(tmp_path) -> None:
    assert tmp_path.exists()
    assert who_is_first() == ["a", "b"]


def quiet() -> None:
    """Leaves a process waiting, quietly, in every order."""
    c = Channel("c")

    @process
    async def stops(source):
        try:
            await source.read()
        except Retired:
            return

    run(stops(c.reader()), writes(c.writer()))


# --- starvation, blocks, checks within a run ------------------------------------------------------


@process
async def prefers(first, second, out):
    while True:
        await out.write((await select(first, second, mode="priority"))[1])


def starves_a_guard() -> None:
    """Runs a select whose first guard always has a partner, so the second guard is not chosen until
    the end.
    """
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    run(
        *(writes(a.writer(), *range(400)) for _ in range(2)),
        writes(b.writer(), 1),
        prefers(a.reader(), b.reader(), c.writer()),
        reads(c.reader()),
    )


@process
async def pours(out, times):
    for n in range(times):
        await out.write(n)


def starves_a_process() -> None:
    """Runs a process whose writes never wait, since their buffer drops values."""
    c, d = Channel("c", capacity=1, overflow="drop_oldest"), Channel("d")
    reader = c.reader()
    run(pours(c.writer(), 900), quiet_writer(d.writer()))
    reader.retire()


@process
async def polls(source, times):
    for _ in range(times):
        await select(source, skip(), mode="priority")


def polls_and_starves_nobody() -> None:
    """Runs a process that polls: it lets the others run first, again and again."""
    c = Channel("c")
    run(polls(c.reader(), 1500), quiet_writer(c.writer()))


@process
async def quiet_writer(out):
    await yield_()


def fair_enough() -> None:
    """Runs the network of starves_a_guard() without priorities."""
    a, b, c = Channel("a"), Channel("b"), Channel("c")

    @process
    async def takes(first, second, out):
        while True:
            await out.write((await select(first, second))[1])

    run(
        *(writes(a.writer(), *range(400)) for _ in range(2)),
        writes(b.writer(), 1),
        takes(a.reader(), b.reader(), c.writer()),
        reads(c.reader()),
    )


def works_in_a_block() -> Any:
    """Performs operations in ordinary code while a group runs."""
    c = threads.Channel("c")
    with threads.Group() as group:
        group.start(thread_writes(c.writer(), 1, 2))
        reader = c.reader()
        return [reader.read(), reader.read()]


@threads.process
def thread_writes(out, *values):
    for value in values:
        out.write(value)


def dines_in_a_block() -> None:
    """Runs a block in which ordinary code and a process take two forks in opposite orders."""
    left, right = threads.Channel("left", capacity=1), threads.Channel("right", capacity=1)
    with threads.Group() as group:
        group.start(dines((left.writer(), left.reader()), (right.writer(), right.reader())))
        _dines((right.writer(), right.reader()), (left.writer(), left.reader()))


def _dines(first, second):
    for fork in (first, second):
        fork[0].write(None)
    for fork in (second, first):
        fork[1].read()


@threads.process
def dines(first, second):
    _dines(first, second)


def only_starts_in_a_block() -> None:
    c = threads.Channel("c")
    with threads.Group() as group:
        group.start(thread_writes(c.writer(), 1))
        group.start(thread_reads(c.reader()))


@threads.process
def thread_reads(source):
    return list(source)


def loses_in_two() -> None:
    c, d = Channel("c", capacity=2), Channel("d", capacity=2)

    @process
    async def gone(*ends):
        pass

    run(writes(c.writer(), 1, 2), writes(d.writer(), 3), gone(c.reader(), d.reader()))


def sells_a_seat(careful: bool) -> int:
    """Two counters sell the last seat. Careless counters ask how many seats are left, and write the
    remaining number.
    """
    ask, put = Channel("ask"), Channel("put")

    @process
    async def ledger(seats, ask, put):
        while True:
            guard, value = await select(ask, put)
            if guard == 1:
                seats = value
                continue
            await value.write(seats)
            seats -= careful and seats > 0

    @process
    async def counter(ask, put):
        reply = Channel("reply")
        mine = reply.reader()
        await ask.write(reply.writer())
        left = await mine.read()
        if left > 0 and not careful:
            await put.write(left - 1)
        return left > 0

    counters = [counter(ask.writer(), put.writer()) for _ in range(2)]
    *sold, _ = run(*counters, ledger(1, ask.reader(), put.reader()))
    assert sum(sold) == 1, f"{sum(sold)} tickets for one seat"
    return sum(sold)
