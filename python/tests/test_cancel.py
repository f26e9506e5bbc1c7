"""Rule 6: cancellation."""

from __future__ import annotations

import random

import pytest
from parts import hows, receive, send

from weft.errors import Cancelled


async def cancels(b, victim, after=1):
    await b.op(b.weft.sleep(after))
    victim[0].cancel()


def _cancelled_in(b, operation, **ends):
    """Runs a process that is cancelled in `operation`. Returns the Cancelled that the process met,
    and the time."""
    victim = []

    async def waits(b, *_):
        try:
            await b.op(operation())
        except Cancelled as c:
            return c, b.weft.now()
        return "not cancelled"

    p = b.process(waits)(*ends.values())
    victim.append(p)
    return b.run(p, b.process(cancels)(victim), clock="virtual")[0]


def test_cancelled_while_parked(b):  # rules 6.1, 6.2
    c = b.weft.Channel()
    r, w = +c, -c
    keep = c.writer()
    barrier = b.weft.Barrier(2)
    for operation in (
        r.read,
        barrier.sync,
        lambda: b.weft.sleep(100),
        lambda: b.weft.select(r, b.weft.after(50)),
    ):
        error, when = _cancelled_in(b, operation)
        assert isinstance(error, Cancelled)
        assert when == 1.0
    other = b.weft.Channel()
    w, keep2 = other.writer(), other.reader()
    error, _ = _cancelled_in(b, lambda: w.write("mine"))
    assert error.value == "mine"  # a withdrawn write's value stays with the writer
    assert (other.stats().waiting_writers, c.stats().waiting_readers) == (0, 0)
    assert not keep.closed and not keep2.closed


def test_at_the_start_of_an_operation_that_could_commit(b):  # rule 6.1
    c = b.weft.Channel(capacity=1)

    async def waits(b, r, w):
        await b.op(w.write("here"))
        b.weft.current_process().cancel()
        try:
            await b.op(r.read())
        except Cancelled:
            return await b.op(r.read())  # one request raises one Cancelled

    assert b.run(b.process(waits)(+c, -c)) == "here"


def test_before_the_start(b):  # rules 6.1, 7.1
    p = b.process(send)(b.weft.Channel().writer(), 1)
    p.cancel()
    with pytest.raises(Cancelled):
        b.run(p)
    assert hows([p.result]) == ["<cancelled>"]


def test_an_uncaught_cancelled_is_no_failure(b):  # rule 6.5
    c = b.weft.Channel()
    keep = c.writer()
    victim = []
    p = b.process(receive)(+c)
    victim.append(p)
    results = b.run(p, b.process(cancels)(victim), clock="virtual")
    assert hows(results) == ["<cancelled>", None]
    assert p.done and p.result is results[0]
    assert not keep.closed


def test_a_held_writer_is_not_cancelled(b):  # rules 1.6, 6.3
    c, victim = b.weft.Channel(), []

    async def writer(b, w):
        await b.op(w.write("x"))
        done = b.weft.now()
        try:
            await b.op(w.write("y"))
        except Cancelled:
            return done, "then cancelled"

    async def reader(b, r):
        block = r.extended()
        await b.enter(block)
        await b.op(b.weft.sleep(5))
        await b.leave(block)
        await b.op(b.weft.sleep(5))

    p = b.process(writer)(-c)
    victim.append(p)
    assert b.run(p, b.process(reader)(+c), b.process(cancels)(victim, 2), clock="virtual")[0] == (
        5.0,
        "then cancelled",
    )


def test_cancelling_a_parallel_cancels_its_processes_and_waits(b):  # rules 6.1, 7.6
    log, victim = [], []

    async def child(b, k):
        try:
            await b.op(b.weft.sleep(100))
        except Cancelled:
            log.append(k)
            raise

    async def parent(b):
        try:
            await b.op(b.weft.Parallel(b.process(child)(k) for k in range(3)))
        except Cancelled:
            log.append("parent")

    p = b.process(parent)()
    victim.append(p)
    b.run(p, b.process(cancels)(victim), clock="virtual")
    assert sorted(log[:3]) == [0, 1, 2]
    assert log[3:] == ["parent"]


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_doubled(b, seed):  # rule 6.4
    """Readers are cancelled at random moments. Nevertheless each value that was written arrives
    once, in order."""
    dice = random.Random(seed)
    c, taken = b.weft.Channel(), []
    alive = []

    async def reader(b, r):
        while True:
            taken.append(await b.op(r.read()))
            await b.op(b.weft.yield_())

    async def writer(b, w, n):
        for v in range(n):
            await b.op(w.write(v))

    async def outer(b, r, w):
        g = b.weft.Group()
        await b.enter(g)
        done = g.start(b.process(writer)(w, 200))
        while not done.done:
            p = g.start(b.process(reader)(c.reader()))
            alive.append(p)
            for _ in range(dice.randrange(6)):
                await b.op(b.weft.sleep(0.0001))
            p.cancel()
        await b.leave(g)

    b.run(b.process(outer)(+c, -c), clock="virtual")
    assert taken == list(range(200))
    print("seed", seed, "readers", len(alive))
