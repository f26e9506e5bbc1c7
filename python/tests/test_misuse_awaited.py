"""Rule 11.1 (Python): an awaited operation belongs to its awaiter. Any other code that awaits it,
sends, throws or closes is refused.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings

import pytest
from awaited_kinds import (
    ATTACKS,
    EVERY,
    KINDS,
    Place,
    awaits,
    closes,
    sends,
    settled,
    throws,
)
from loops import Runner

from weft import threads
from weft.coroutines import (
    Alternative,
    BadUse,
    Channel,
    Group,
    Output,
    Parallel,
    Spawn,
    io,
    process,
    run,
    run_async,
    select,
    sleep,
)


async def release(p: Place, how: str) -> None:
    if how == "write":
        await p.w.write(5)
    elif how == "read":
        await p.r.read()
    elif how == "sync":
        await p.barrier.sync()


def network(kind: str, attack):
    """Makes a network in which one process awaits an operation, and another process attacks that
    operation and then lets the operation continue. Returns the outcomes of both.
    """
    make, how, expected = KINDS[kind]
    p = Place()
    received: dict[str, object] = {}

    async def main():
        op = make(p)

        @process
        async def owner():
            received["owner"] = await p.outcome(op)

        @process
        async def attacker():
            await settled()
            try:
                received["attacker"] = await attack(op)
            except BaseException as e:
                received["attacker"] = e
            await release(p, how)

        await Parallel(owner(), attacker())

    return main, received, expected


def refused(received) -> bool:
    return isinstance(received, BadUse) and "already" in str(received)


@pytest.mark.parametrize(("kind", "attack"), EVERY)
def test_another_process(kind, attack):  # rule 11.1
    main, received, expected = network(kind, ATTACKS[attack])
    run(process(main)(), clock="virtual")
    assert refused(received["attacker"]), received
    assert received["owner"] == expected


@pytest.mark.parametrize(("kind", "attack"), [e for e in EVERY if KINDS[e[0]][1] != "time"])
def test_another_process_of_a_guest(play: Runner, kind, attack):  # rules 11.1, 13.1
    main, received, expected = network(kind, ATTACKS[attack])
    play(run_async(process(main)()))
    assert refused(received["attacker"]), received
    assert received["owner"] == expected


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
            return  # on a busy machine, the operation may already be over
        with pytest.raises(BadUse, match="already"):
            await ATTACKS[attack](op)
        await release(p, how)
        received = await owner
        # on a busy machine the timer may be late, with several ticks
        assert received == expected or how == "time"

    play(main())


@pytest.mark.parametrize(
    ("kind", "attack"), [e for e in EVERY if e[1] != "await" and KINDS[e[0]][1] != "time"]
)
def test_a_thread(kind, attack):  # rule 11.1
    def from_thread(op):
        @threads.process
        def in_a_thread():
            coroutine = ATTACKS[attack](op)
            try:
                coroutine.send(None)
            except StopIteration as e:
                return e.value

        async def attack_it(_):
            return (await Parallel(in_a_thread()))[0]

        return attack_it(op)

    main, received, expected = network(kind, from_thread)
    run(process(main)())
    assert refused(received["attacker"]), received
    assert received["owner"] == expected


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


# ------------------------------------------------------------------- by a coroutine that awaits it


@pytest.mark.parametrize("how", ["send", "throw", "close"])
def test_a_coroutine_that_another_drives(how):  # rule 11.1: an error, and no process hangs
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
            with pytest.raises(BadUse, match="is already being awaited"):
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
        with pytest.raises(BadUse, match="is already being awaited"):
            inner.send(None) if how == "send" else inner.throw(ValueError)
        with pytest.raises(RuntimeError):
            await owner
        gc.collect()
        assert c.stats().waiting_readers == 0
        assert not w.closed

    play(main())


# --------------------------------------------------------------------------- other ways to misuse


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
