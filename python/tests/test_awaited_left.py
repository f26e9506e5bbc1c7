"""Rules 5.7, 6.2, 11.1 (Python): the driver of an awaited operation may end it at any moment, but a
committed operation stays committed."""

from __future__ import annotations

import gc
import threading
import time
import types

import pytest
from awaited_kinds import (
    KINDS,
    Place,
    awaits,
    settled,
)

from weft import threads
from weft.coroutines import (
    Alternative,
    Channel,
    Output,
    Parallel,
    PeerDied,
    Spawn,
    after,
    process,
    run,
    select,
    skip,
    sleep,
    yield_,
)

# ------------------------------------------------------------------------------ left by its driver


@types.coroutine
def one_step(coroutine, then):
    """Drives the coroutine to the point where it waits, lets its process wait once if `then`
    requires that, and then ends the coroutine."""
    waited = coroutine.send(None)
    if then.startswith("parked"):
        yield waited
    try:
        if then.endswith("throw"):
            coroutine.throw(ValueError("mine"))
        else:
            coroutine.close()
    except ValueError:
        return "thrown"
    return "closed"


@pytest.mark.parametrize("then", ["throw", "close"])
@pytest.mark.parametrize("kind", KINDS)
def test_its_driver_may_end_it(kind, then):  # rules 6.2, 11.1
    make, _how, _ = KINDS[kind]
    p = Place()

    @process
    async def main():
        op = make(p)
        assert await one_step(awaits(op), then) == ("thrown" if then == "throw" else "closed")
        del op  # an alternative remains enrolled as long as it exists
        for c in (p.c, p.other):
            if kind not in ("parallel", "sequence"):
                stats = c.stats()
                assert stats.waiting_readers == stats.waiting_writers == 0
        # The process can still perform other operations.
        d: Channel = Channel()

        @process
        async def partner():
            await d.writer().write(1)

        Spawn(partner())
        assert await d.reader().read() == 1
        await sleep(1)

    run(main(), clock="virtual")
    assert p.c.stats().waiting_readers == p.c.stats().waiting_writers == 0


@pytest.mark.parametrize("then", ["throw", "close"])
@pytest.mark.parametrize(
    "kind",
    [
        k
        for k in KINDS
        if KINDS[k][1] in ("write", "read", "sync") and k not in ("select made", "extended")
    ],
)
def test_its_driver_may_end_it_after_the_commit(
    kind, then
):  # rules 6.3, 11.1: the wake-up has been sent
    make, how, _ = KINDS[kind]
    p = Place()

    @process
    async def main():
        coroutine = awaits(make(p))
        coroutine.send(None)

        before = Channel()
        s, t = before.reader(), before.writer()

        # The operation commits while this process runs: a thread commits it, and this process waits
        # for the commit without an operation of Weft.
        def commit():
            partners = {"write": Output(p.w, 5), "read": p.r, "sync": p.barrier}
            threads.select(partners[how], skip(), mode="priority")

        thread = threading.Thread(target=commit)
        thread.start()
        thread.join()
        if then == "throw":
            with pytest.raises(ValueError, match="mine"):
                coroutine.throw(ValueError("mine"))
        else:
            coroutine.close()

        @process
        async def writer():
            await t.write(11)

        Spawn(writer())
        assert await s.read() == 11
        assert await select(s, after(1)) == (1, None)
        await yield_()

    run(main(), clock="virtual")


@pytest.mark.parametrize("then", ["throw", "close"])
def test_its_driver_ends_it_with_the_value_yet_to_be_made(then):
    """Rules 5.8, 11.1: the reader, which waits for that value, meets PeerDied."""
    c: Channel = Channel()
    r, w = c.reader(), c.writer()
    received = []

    def reads():
        try:
            received.append(threads_read())
        except PeerDied as e:
            received.append(e)

    threads_read = r.read

    @process
    async def main():
        coroutine = awaits(select(Output(w, make=lambda: 5)))
        coroutine.send(None)
        thread = threading.Thread(target=reads)
        thread.start()
        while c.stats().waiting_writers:
            time.sleep(0)
        if then == "throw":
            with pytest.raises(ValueError, match="mine"):
                coroutine.throw(ValueError("mine"))
        else:
            coroutine.close()
        thread.join()
        await sleep(0)

    run(main())
    assert isinstance(received[0], PeerDied)


HELD = {
    "write": lambda p: p.w.write(5),
    "select": lambda p: select(Output(p.w, 5), p.held[0]),
    "select made": lambda p: select(Output(p.w, make=lambda: 5), p.held[0]),
    "alternative": lambda p: Alternative(Output(p.w, 5), p.held[0]).select(),
    "alternative made": lambda p: Alternative(Output(p.w, make=lambda: 5), p.held[0]).select(),
}


@pytest.mark.parametrize("way", ["close", "throw", "collected"])
@pytest.mark.parametrize("kind", HELD)
def test_a_held_writer_is_left(kind, way):
    """Rules 1.6, 6.3, 11.1: the writer's process continues once the extended reader releases it."""
    p = Place()
    order = []

    @process
    async def holder(go):
        async with p.r.extended() as x:
            order.append(x)
            await go.read()
            order.append("let go")

    @process
    async def lets_go(go):
        await settled()
        await go.write(0)

    @process
    async def main():
        d: Channel = Channel()
        coroutine = awaits(HELD[kind](p))
        Spawn(holder(d.reader()), lets_go(d.writer()))
        await settled()
        coroutine.send(None)  # the holder has met the operation, and now holds this process
        if way == "close":
            coroutine.close()
        elif way == "throw":
            with pytest.raises(KeyError):
                coroutine.throw(KeyError)
        del coroutine
        gc.collect()
        order.append("left")
        await sleep(0)
        order.append("goes on")

    run(main())
    assert order == ["left", 5, "let go", "goes on"]


@pytest.mark.parametrize("kind", ["write", "select", "alternative"])
# This operation was the first in the waiting queue.
def test_one_that_a_thread_came_to_hold_is_left(kind):
    p = Place()
    holds, left = threading.Event(), threading.Event()

    @threads.process
    def holder():
        with p.r.extended() as x:
            holds.set()
            assert left.wait(280)
        return x

    @process
    async def main():
        coroutine = awaits(HELD[kind](p))
        coroutine.send(None)
        thread = holder()
        Spawn(thread)
        assert holds.wait(280)
        coroutine.close()
        del coroutine
        gc.collect()
        left.set()
        await sleep(0)
        return (await select(thread.ended()))[1].result

    assert run(main()) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_left_behind(kind):
    """Rule 11.1: the operation's process ends, but another process has the operation."""
    make, _how, _ = KINDS[kind]
    p = Place()
    kept = []

    @process
    async def leaves():
        coroutine = awaits(make(p))
        coroutine.send(None)
        kept.append(coroutine)

    @process
    async def main():
        await Parallel(leaves())
        await settled()
        kept[0].close()
        await sleep(1)

    run(main(), clock="virtual")
    for c in (p.c, p.other):
        assert c.stats().waiting_readers == c.stats().waiting_writers == 0
    kept.clear()


def test_a_yield_that_is_left():
    """Rule 11.1: two yields that are left owe the process a single wake-up."""
    c: Channel = Channel()
    r, w = c.reader(), c.writer()

    @process
    async def main():
        yield_().send(None)
        op = yield_()
        op.send(None)
        op.close()

        @process
        async def partner():
            await w.write(1)

        Spawn(partner())
        assert await r.read() == 1
        op = yield_()
        op.send(None)  # lets the operation end

    run(main())


@types.coroutine
def left_when_met(awaitable, how):
    """Begins the operation, lets a partner meet it, and leaves the operation without taking its
    outcome."""
    steps = awaitable.__await__()
    steps.send(None)
    yield
    if how == "closed":
        steps.close()
    elif how == "thrown into":
        with pytest.raises(KeyError):
            steps.throw(KeyError())


LEAVING = ["closed", "thrown into", "dropped"]


@pytest.mark.parametrize("how", LEAVING)
def test_an_alternative_that_was_left_after_its_output_was_taken_offers_it_again(
    how,
):  # rules 5.7, 11.1
    @process
    async def offers(w, other):
        alternative = Alternative(Output(w, "offer"), other)
        await left_when_met(alternative.select(), how)
        await alternative.select()
        await left_when_met(alternative.select(), how)
        await alternative.select()

    @process
    async def takes(r):
        taken = []
        for _ in range(4):
            await yield_()  # gives the other process time to offer the operation
            taken.append(await r.read())
        return taken

    c, other = Channel("c"), Channel("other")
    keeps = other.writer()
    assert run(offers(c.writer(), other.reader()), takes(c.reader()))[1] == ["offer"] * 4
    del keeps


@pytest.mark.parametrize("how", LEAVING)
def test_a_value_that_an_alternative_took_and_nobody_asked_for_is_let_go(how):  # rules 5.7, 11.1
    class Counted:
        alive = 0

        def __init__(self):
            Counted.alive += 1

        def __del__(self):
            Counted.alive -= 1

    @process
    async def takes(r, other):
        alternative = Alternative(r, other)
        await left_when_met(alternative.select(), how)
        await yield_()
        gc.collect()
        seen.append(Counted.alive)
        assert (await alternative.select())[1] == "second"

    @process
    async def writes(w):
        await w.write(Counted())
        for _ in range(5):
            await yield_()
        await w.write("second")

    seen = []

    c, other = Channel("c"), Channel("other")
    keeps = other.writer()
    run(takes(c.reader(), other.reader()), writes(c.writer()))
    assert seen == [0]
    del keeps


@pytest.mark.parametrize("standing", [False, True])
@pytest.mark.parametrize("how", LEAVING)
def test_an_end_that_a_left_select_gave_stays_given(how, standing):  # rules 2.4, 11.1
    @process
    async def gives_end(w, mine):
        op = Alternative(Output(w, mine)).select() if standing else select(Output(w, mine))
        await left_when_met(op, how)

    @process
    async def uses(r):
        end = await r.read()
        for _ in range(3):
            await yield_()
        await end.write(7)

    c, d = Channel("c"), Channel("d")
    reader = d.reader()

    @process
    async def reads(r):
        return await r.read()

    assert run(gives_end(c.writer(), d.writer()), uses(c.reader()), reads(reader))[2] == 7
