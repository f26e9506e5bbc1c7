"""Rule 7.12: timeouts around the operations of more than one process: runs, groups, generators,
and ordinary code. Also tests bad use of timeouts."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from limit_parts import Within, alone
from parts import send

from weft import coroutines as co
from weft import threads as th
from weft.errors import BadUse, Cancelled

# ---------------------------------------------------------------------------------------- bad use


def test_bad_use(b):  # rule 7.12
    async def body(b):
        scope, inner = b.weft.timeout(1), b.weft.timeout(2)
        await b.enter(scope)
        with pytest.raises(BadUse, match="once"):
            await b.enter(scope)
        await b.enter(inner)
        with pytest.raises(BadUse, match="within it"):
            await b.leave(scope)
        await b.leave(inner)
        await b.leave(scope)
        with pytest.raises(BadUse, match="left already"):
            await b.leave(scope)
        with pytest.raises(BadUse, match="not entered"):
            await b.leave(b.weft.timeout(1))
        with pytest.raises(BadUse, match="nan"):
            b.weft.timeout(float("nan"))
        for wrong in ("1", object(), [1]):
            with pytest.raises((TypeError, ValueError)):
                async with Within(b, b.weft.timeout(wrong)):
                    pytest.fail("entered")
        await b.op(b.weft.sleep(9))  # no limit is left, so this sleep returns
        return b.weft.now()

    assert alone(b, body) == 9


def test_left_in_another_process(b):  # rule 7.12
    async def body(b):
        scope = b.weft.timeout(1)
        await b.enter(scope)

        async def other(b):
            for act in (lambda: b.leave(scope), lambda: b.op(scope.reschedule(5))):
                with pytest.raises(BadUse, match="another process"):
                    await act()

        await b.op(b.weft.Parallel(b.process(other)()))
        # the limit that belongs to this process still works
        with pytest.raises(Cancelled) as caught:
            await b.op(b.weft.sleep(9))
        with pytest.raises(TimeoutError):
            await b.leave(scope, caught.value)

    alone(b, body)


def test_with_and_async_with():  # rule 7.12
    @co.process
    async def coroutine():
        with pytest.raises(BadUse, match="async with"), co.timeout(1):
            pytest.fail("entered")

    @th.process
    def thread():
        with pytest.raises(BadUse, match="use `with`"):
            th.timeout(1).__aenter__().send(None)

    co.run(coroutine(), thread())


def test_left_open_at_the_end_of_its_process(b):  # rule 7.12
    kept = []

    async def body(b):
        kept.append(b.weft.timeout(1))
        await b.enter(kept[0])

    async def after(b):
        await b.op(b.weft.sleep(5))

    b.run(b.process(body)(), b.process(after)(), clock="virtual")
    with pytest.raises(BadUse, match="process has ended"):
        kept[0].__exit__(None, None, None)


def test_dropped_while_open(b):  # rule 7.12
    async def body(b):
        await b.enter(b.weft.timeout(1))
        scope = b.weft.timeout(2)
        await b.enter(scope)
        await b.leave(scope)
        await b.op(b.weft.sleep(9))
        return b.weft.now()

    assert alone(b, body) == 9


# ----------------------------------------------------------------------------- more than processes


def test_an_io_call_is_waited_for_no_longer():  # rule 7.12
    gate, done = threading.Event(), threading.Event()

    @co.io
    def call():
        gate.wait(280)
        done.set()

    @co.process
    async def body():
        with pytest.raises(TimeoutError):
            async with co.timeout(0.01):
                await call()
        assert not done.is_set()  # the function continues (rule 7.9)
        gate.set()

    co.run(body())
    assert done.wait(280)


def test_ordinary_code_outside_any_run():  # rule 7.12
    c = th.Channel()
    r, w = c.reader(), c.writer()
    with pytest.raises(TimeoutError), th.timeout(0.01):
        r.read()
    assert c.stats().waiting_readers == 0
    with pytest.raises(TimeoutError), th.timeout(0.01) as scope:
        w.write(1)
    assert scope.expired
    with th.move_on_after(0):
        th.sleep(0)
    with th.timeout(60) as scope:
        th.sleep(0.001)
    assert not scope.expired


@pytest.mark.parametrize("seconds", [0.02, 0])
def test_around_a_whole_run(b, seconds):  # rule 7.12
    log = []

    async def waits(b):
        try:
            await b.op(b.weft.sleep(100))
        finally:
            log.append("ended")

    with pytest.raises(TimeoutError), th.timeout(seconds) as scope:
        b.run(b.process(waits)(), b.process(waits)())
    assert scope.expired
    assert log == (["ended"] * 2 if seconds else [])
    assert b.run(b.process(send)(b.weft.Channel(capacity=1).writer(), 1)) is None


def test_around_a_run_that_spawns():  # rule 7.12
    ended = []

    @co.process
    async def spawned():
        try:
            await co.sleep(100)
        finally:
            ended.append("spawned")

    @co.process
    async def first():
        co.Spawn(spawned())

    with pytest.raises(TimeoutError), th.timeout(0.02):
        co.run(first())
    assert ended == ["spawned"]


def test_around_and_within_a_group_of_ordinary_code():  # rule 7.12
    @co.process
    async def waits():
        await co.sleep(100)

    with pytest.raises(TimeoutError), th.timeout(0.02), th.Group() as group:
        group.start(waits())
    with th.Group(clock="virtual") as group:
        with pytest.raises(TimeoutError), th.timeout(50):
            th.sleep(90)
        assert th.now() == 50
    with pytest.raises(TimeoutError), th.timeout(60), th.Group(clock="virtual"):
        th.sleep(100)  # the time of the limit advances by the group's clock


def test_a_group_and_a_timeout_left_in_the_wrong_order():  # rule 7.12
    scope, group = th.timeout(60), th.Group()
    scope.__enter__()
    group.__enter__()
    with pytest.raises(BadUse, match="within it"):
        scope.__exit__(None, None, None)
    inner = th.timeout(60)
    inner.__enter__()
    group.__exit__(None, None, None)
    with pytest.raises(BadUse, match="process has ended"):
        inner.__exit__(None, None, None)
    scope.__exit__(None, None, None)


def test_a_run_does_not_end_early_by_a_timeout_of_before():  # rule 7.12
    with th.timeout(60) as scope:
        th.run(_nothing())
        with th.move_on_after(0.01):
            th.sleep(30)
        assert not scope.expired


@th.process
def _nothing():
    pass


def test_generators_that_keep_a_timeout_open():  # rule 7.12
    def generator():
        with th.timeout(60):
            yield 1
            yield 2

    def in_a_thread(kept):
        kept.append(generator())
        next(kept[0])

    kept: list[Any] = []
    thread = threading.Thread(target=in_a_thread, args=(kept,))
    thread.start()
    thread.join()
    with pytest.raises(
        BadUse,
        match="process",
        # the limit belongs to another process, which ends only when its thread has completely ended
    ):
        kept[0].close()
    here = generator()
    next(here)
    here.close()


def test_many_at_once():  # rule 7.12
    """Threads leave blocks whose timeouts expire at that moment, while other threads meet them at a
    channel."""
    c = th.Channel()
    late = []

    @th.process
    def reads(r, n):
        for k in range(50):
            try:
                with th.timeout(0.0002 * (k % 5)), th.timeout(0.0003 * (n % 4)):
                    r.read()
            except TimeoutError:
                late.append(n)

    @th.process
    def writes(w):
        while True:
            w.write(time.monotonic())

    th.run([reads(c.reader(), n) for n in range(8)], writes(c.writer()))
    assert len(late) >= 50 * 2  # with n % 4 == 0 every read is late
    assert c.stats().waiting_readers == 0


def test_a_timeout_may_make_it_go_on(b):  # rules 7.12, 14.3
    c = b.weft.Channel("c")

    async def waits(b, r, w):
        async with Within(b, b.weft.move_on_after(5)):
            await b.op(r.read())

    async def looks(b):
        await b.op(b.weft.sleep(1))
        return b.weft.deadlocks().processes

    looked = b.run(b.process(waits)(c.reader(), c.writer()), b.process(looks)(), clock="virtual")
    assert looked[1] == []
