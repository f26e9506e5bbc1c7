"""Rule 11.1 (Python): an operation that is awaited is its awaiter's: whoever else awaits, sends, throws or closes is refused."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import time
import types
import warnings

import pytest
from loops import Runner

from weft import threads
from weft.coroutines import (
    Alternative,
    BadUse,
    Barrier,
    Channel,
    Group,
    Output,
    Parallel,
    PeerDied,
    Sequence,
    Spawn,
    Timer,
    after,
    io,
    process,
    run,
    run_async,
    select,
    skip,
    sleep,
    yield_,
)


class Place:
    """An operation that waits, and what lets it go on: `make()` the one, `release()` the other; its outcome is `gives`."""

    def __init__(self) -> None:
        self.c: Channel = Channel("c")
        self.other: Channel = Channel("other")
        self.r, self.w = self.c.reader(), self.c.writer()
        self.barrier = Barrier(2)
        self.held = [self.other.reader(), self.other.writer()]

    @functools.cached_property
    def block(self):
        return self.r.extended()

    async def outcome(self, op):
        """Of an extended read: its block is left at once."""
        result = await op
        if "block" in vars(self):
            await self.block.__aexit__(None, None, None)
        return result


@process
async def gives(p, result):
    await p.r.read()
    return result


KINDS = {
    "read": (lambda p: p.r.read(), "write", 5),
    "call": (lambda p: p.r(), "write", 5),
    "anext": (lambda p: p.r.__anext__(), "write", 5),
    "write": (lambda p: p.w.write(5), "read", None),
    "select in": (lambda p: select(p.r, p.held[0]), "write", (0, 5)),
    "select out": (lambda p: select(Output(p.w, 5), p.held[0]), "read", (0, None)),
    "select made": (lambda p: select(Output(p.w, make=lambda: 5)), "read", (0, None)),
    "alternative": (lambda p: Alternative(p.r, p.held[0]).select(), "write", (0, 5)),
    "sync": (lambda p: p.barrier.sync(), "sync", None),
    "barrier": (lambda p: select(p.barrier, p.held[0]), "sync", (0, None)),
    "extended": (lambda p: p.block.__aenter__(), "write", 5),
    "parallel": (lambda p: Parallel(gives(p, 3)), "write", [3]),
    "sequence": (lambda p: Sequence(gives(p, 3)), "write", [3]),
    "sleep": (lambda p: sleep(0.001), "time", None),
    "tick": (lambda p: Timer(0.001).tick(), "time", 1),
}


async def release(p: Place, how: str) -> None:
    if how == "write":
        await p.w.write(5)
    elif how == "read":
        await p.r.read()
    elif how == "sync":
        await p.barrier.sync()


async def settled() -> None:
    for _ in range(5):
        await yield_()


def network(kind: str, attack):
    """One process awaits the operation, another attacks it and then lets it go on. What each came to."""
    make, how, expected = KINDS[kind]
    p = Place()
    came: dict[str, object] = {}

    async def main():
        op = make(p)

        @process
        async def owner():
            came["owner"] = await p.outcome(op)

        @process
        async def attacker():
            await settled()
            try:
                came["attacker"] = await attack(op)
            except BaseException as e:
                came["attacker"] = e
            await release(p, how)

        await Parallel(owner(), attacker())

    return main, came, expected


async def awaits(op):
    return await op


async def sends(op):
    return op.send(None)


async def throws(op):
    return op.throw(ValueError("mine"))


async def closes(op):
    return op.close()


ATTACKS = {"await": awaits, "send": sends, "throw": throws, "close": closes}
EVERY = [(k, a) for k in KINDS for a in ATTACKS]


def refused(came) -> bool:
    return isinstance(came, BadUse) and "already" in str(came)


@pytest.mark.parametrize(("kind", "attack"), EVERY)
def test_another_process(kind, attack):  # rule 11.1
    main, came, expected = network(kind, ATTACKS[attack])
    run(process(main)(), clock="virtual")
    assert refused(came["attacker"]), came
    assert came["owner"] == expected


@pytest.mark.parametrize(("kind", "attack"), [e for e in EVERY if KINDS[e[0]][1] != "time"])
def test_another_process_of_a_guest(play: Runner, kind, attack):  # rules 11.1, 13.1
    main, came, expected = network(kind, ATTACKS[attack])
    play(run_async(process(main)()))
    assert refused(came["attacker"]), came
    assert came["owner"] == expected


@pytest.mark.parametrize(("kind", "attack"), EVERY)
def test_another_task(play: Runner, kind, attack):  # rules 11.1, 13.7
    make, how, expected = KINDS[kind]

    async def main():
        p = Place()
        op = make(p)
        owner = asyncio.ensure_future(p.outcome(op))
        for _ in range(5):
            await asyncio.sleep(0)
        if owner.done():
            assert how == "time"
            return  # a busy machine: it was over first
        with pytest.raises(BadUse, match="already"):
            await ATTACKS[attack](op)
        await release(p, how)
        came = await owner
        assert came == expected or how == "time"  # late on a busy machine: several ticks

    play(main())


@pytest.mark.parametrize(
    ("kind", "attack"), [e for e in EVERY if e[1] != "await" and KINDS[e[0]][1] != "time"]
)
def test_a_thread(kind, attack):  # rule 11.1
    def from_thread(op):
        @threads.process
        def stranger():
            coroutine = ATTACKS[attack](op)
            try:
                coroutine.send(None)
            except StopIteration as e:
                return e.value

        async def attack_it(_):
            return (await Parallel(stranger()))[0]

        return attack_it(op)

    main, came, expected = network(kind, from_thread)
    run(process(main)())
    assert refused(came["attacker"]), came
    assert came["owner"] == expected


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "sequence"])
def test_it_is_over(kind):  # rule 11.1
    make, how, expected = KINDS[kind]
    p = Place()

    @process
    async def main():
        op = make(p)

        @process
        async def owner():
            assert await p.outcome(op) == expected
            with pytest.raises(BadUse, match="already"):
                await op
            with pytest.raises(ValueError, match="mine"):
                op.throw(ValueError("mine"))
            assert op.close() is None

        @process
        async def other():
            await settled()
            await release(p, how)

        await Parallel(owner(), other())

    run(main(), clock="virtual")


# ------------------------------------------------------------------------------------------------ by a coroutine that awaits it


@pytest.mark.parametrize("how", ["send", "throw", "close"])
def test_a_coroutine_that_another_drives(how):  # rule 11.1: loud, and nobody hangs
    c: Channel = Channel()
    r, w = c.reader(), c.writer()

    @process
    async def main():
        inner = awaits(r.read())

        @process
        async def owner():
            with pytest.raises(RuntimeError, match="already awaited"):
                await inner

        @process
        async def attacker():
            await settled()
            with pytest.raises(BadUse, match="is being awaited already"):
                inner.send(None) if how == "send" else (
                    inner.throw(ValueError) if how == "throw" else inner.close()
                )

        await Parallel(owner(), attacker())
        assert c.stats().waiting_readers == 0

    run(main())
    assert not w.closed


@pytest.mark.parametrize("how", ["send", "throw"])
def test_a_coroutine_that_another_task_drives(play: Runner, how):  # rules 11.1, 6.6
    async def main():
        c: Channel = Channel()
        r, w = c.reader(), c.writer()
        inner = awaits(r.read())
        owner = asyncio.ensure_future(inner)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(BadUse, match="is being awaited already"):
            inner.send(None) if how == "send" else inner.throw(ValueError)
        with pytest.raises(RuntimeError):
            await owner
        gc.collect()
        assert c.stats().waiting_readers == 0
        assert not w.closed

    play(main())


# ------------------------------------------------------------------------------------------------ by who drives it


@types.coroutine
def one_step(coroutine, then):
    """Drives it to where it waits, lets its process wait once, if it is told to, and then ends it."""
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
        del op  # an alternative stays in line while it lives
        for c in (p.c, p.other):
            if kind not in ("parallel", "sequence"):
                stats = c.stats()
                assert stats.waiting_readers == stats.waiting_writers == 0
        # The process does other things as before.
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
):  # rules 6.3, 11.1: the wake-up is on its way
    make, how, _ = KINDS[kind]
    p = Place()

    @process
    async def main():
        coroutine = awaits(make(p))
        coroutine.send(None)

        before = Channel()
        s, t = before.reader(), before.writer()

        # It commits while this process runs: by a thread, for which it waits without an operation.
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

    run(main())


@pytest.mark.parametrize("then", ["throw", "close"])
def test_its_driver_ends_it_with_the_value_yet_to_be_made(
    then,
):  # rules 5.8, 11.1: its reader is told
    c: Channel = Channel()
    r, w = c.reader(), c.writer()
    came = []

    def reads():
        try:
            came.append(threads_read())
        except PeerDied as e:
            came.append(e)

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
    assert isinstance(came[0], PeerDied)


HELD = {
    "write": lambda p: p.w.write(5),
    "select": lambda p: select(Output(p.w, 5), p.held[0]),
    "select made": lambda p: select(Output(p.w, make=lambda: 5), p.held[0]),
    "alternative": lambda p: Alternative(Output(p.w, 5), p.held[0]).select(),
    "alternative made": lambda p: Alternative(Output(p.w, make=lambda: 5), p.held[0]).select(),
}


@pytest.mark.parametrize("way", ["close", "throw", "collected"])
@pytest.mark.parametrize("kind", HELD)
def test_a_held_writer_is_left(
    kind, way
):  # rules 1.6, 6.3, 11.1: the process goes on once it is let go
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
        coroutine.send(None)  # the holder has it, and holds us
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
def test_one_that_a_thread_came_to_hold_is_left(kind):  # the same; it was in line first
    p = Place()
    holds, left = threading.Event(), threading.Event()

    @threads.process
    def holder():
        with p.r.extended() as x:
            holds.set()
            assert left.wait(60)
        return x

    @process
    async def main():
        coroutine = awaits(HELD[kind](p))
        coroutine.send(None)
        thread = holder()
        Spawn(thread)
        assert holds.wait(60)
        coroutine.close()
        del coroutine
        gc.collect()
        left.set()
        await sleep(0)
        return (await select(thread.ended()))[1].result

    assert run(main()) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_left_behind(kind):  # rule 11.1: its process ends, and another has it
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


def test_a_yield_that_is_left():  # rule 11.1: what was pushed is one wake-up
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
        op.send(None)  # and it ends

    run(main())


# ------------------------------------------------------------------------------------------------ other doors


def test_an_extended_read_is_entered_once(play: Runner):  # rules 1.6, 11.1
    c: Channel = Channel()
    r, w = c.reader(), c.writer()
    refusals = []

    @process
    async def enters(x, n):
        try:
            async with x as v:
                await sleep(0.001)
                assert v == 1
        except BadUse as e:
            refusals.append(e)

    @process
    async def writes():
        await w.write(1)

    @process
    async def main():
        x = r.extended()
        await Parallel(enters(x, 0), enters(x, 1), writes())

    run(main(), clock="virtual")
    assert len(refusals) == 1


def test_a_refused_select_does_not_free_the_alternative():  # rule 11.1
    c: Channel = Channel()
    r, w = c.reader(), c.writer()
    alternative = Alternative(r)

    @process
    async def selects(tries):
        for _ in range(tries):
            with pytest.raises(BadUse, match="another process waits"):
                await alternative.select()
        with pytest.raises(BadUse, match="waits"):
            alternative.close()
        with pytest.raises(BadUse, match="waits"):
            alternative.enable(0, False)

    @process
    async def first():
        assert await alternative.select() == (0, 3)

    @process
    async def main():
        Spawn(first())
        await settled()
        await Parallel(selects(3))
        await w.write(3)

    run(main())


def test_a_function_of_a_guard_drives_operations():  # rules 5.8, 11.1
    c: Channel = Channel()
    r, w = c.reader(), c.writer()
    seen = []

    @process
    async def selects():
        def make():
            for f in (lambda: op.send(None), lambda: op.close(), lambda: op.throw(ValueError)):
                with pytest.raises(BadUse):
                    f()
            with pytest.raises(BadUse):
                r.read().send(None)
            seen.append(1)
            return 9

        op = select(Output(w, make=make))
        assert await op == (0, None)

    @process
    async def reads():
        assert await r.read() == 9

    run(selects(), reads())
    assert seen == [1]


def test_two_tasks_and_a_closed_one(play: Runner):  # rules 6.6, 11.1
    async def main():
        c: Channel = Channel()
        r, w = c.reader(), c.writer()
        op = r.read()
        owner = asyncio.ensure_future(awaits(op))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        owner.cancel()
        with pytest.raises(asyncio.CancelledError):
            await owner
        assert c.stats().waiting_readers == 0
        with pytest.raises(BadUse, match="already"):
            await op
        assert not w.closed

    play(main())


def test_an_io_call_is_its_awaiter_s():  # rules 7.9, 11.1
    gate = threading.Event()

    @io
    def waits():
        gate.wait()
        return 4

    @process
    async def main():
        call = waits()

        @process
        async def owner():
            assert await call == 4

        @process
        async def attacker():
            await settled()
            for attack in (awaits, sends, throws, closes):
                with pytest.raises(BadUse, match="already"):
                    await attack(call)
            gate.set()

        await Parallel(owner(), attacker())
        with pytest.raises(BadUse, match="already"):
            await call

    run(main())


def test_an_io_call_outside_its_way():  # rules 7.9, 11.1
    made = []

    @process
    async def main():
        made.append(io(lambda: 3)())
        call = io(lambda: 3)()
        call.run()
        with pytest.raises(BadUse, match="already"):
            await call
        with pytest.raises(BadUse, match="already"):
            call.run()

    run(main())
    with pytest.raises(BadUse, match="call the function instead"):
        made[0].wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.clear()


def test_the_end_of_a_group_is_its_owner_s():  # rules 7.5, 11.1
    c: Channel = Channel()
    r, w = c.reader(), c.writer()

    @process
    async def reads():
        await r.read()

    @process
    async def main():
        g = Group()
        await g.__aenter__()
        g.start(reads())
        end = g.__aexit__(None, None, None)

        @process
        async def other():
            with pytest.raises(BadUse, match=r"already|the process that entered it"):
                await end
            with pytest.raises(BadUse):
                g.__aexit__(None, None, None)
            await w.write(1)

        Spawn(other())
        await end

    run(main())


@types.coroutine
def left_when_met(awaitable, how):
    """Begins it, lets whoever meets it do so, and leaves it without asking what became of it."""
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
            await yield_()  # so that it is offered by then
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
