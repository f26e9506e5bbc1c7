"""Tests the promises that must hold when things go wrong: interrupts at every operation, shutdown,
leaks, forks, finalisers.

Rules 2.3, 6, 7.6, 11.2, 12.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Backend
from parts import receive, send

from weft import coroutines
from weft._watching import observers as _observers
from weft.coroutines import (
    BadUse,
    Channel,
    Output,
    Parallel,
    after,
    process,
    run,
    select,
    sleep,
    yield_,
)

BOUND = 280


# --- an interrupt at every operation --------------------------------------------------------------


class Stop(KeyboardInterrupt):
    pass


def pipeline(b: Backend, tick: Callable[[], None]) -> tuple[list[Any], list[Any]]:
    """Makes a network with every kind of operation; `tick` is called before each operation. Returns
    the processes and channels of the network.
    """
    c, d, e = b.weft.Channel("c"), b.weft.Channel("d", capacity=1), b.weft.Channel("e")
    barrier = b.weft.Barrier(2)

    async def writes(b: Any, w: Any) -> None:
        for i in range(2):
            tick()
            await b.op(w.write(i))
        tick()
        await b.op(barrier.sync())

    async def copies(b: Any, r: Any, w: Any) -> None:
        while True:
            tick()
            _, value = await b.op(b.weft.select(r, b.weft.after(1000)))
            tick()
            await b.op(b.weft.select(b.weft.Output(w, value)))

    async def child(b: Any, r: Any) -> None:
        tick()
        await b.op(b.weft.yield_())
        tick()
        await b.op(barrier.sync())

    async def reads(b: Any, r: Any, keep: Any) -> None:
        # The tick precedes the making of the block, because a block that is never entered causes a
        # warning.
        tick()
        block = r.extended()
        await b.op(b.enter(block))
        tick()
        await b.op(b.leave(block))
        tick()
        await b.op(b.weft.Parallel(b.process(child)(keep)))
        async for _ in b.each(r):
            tick()

    made = [
        b.process(writes)(c.writer()),
        b.process(copies)(c.reader(), d.writer()),
        b.process(reads)(d.reader(), e.writer()),
    ]
    return made, [c, d, e]


def operations(b: Backend) -> int:
    count = 0

    def tick() -> None:
        nonlocal count
        count += 1

    made, _ = pipeline(b, tick)
    b.run(made)
    return count


def nobody_is_left(channels: list[Any]) -> None:
    gc.collect()
    for c in channels:
        s = c.stats()
        assert (s.readers, s.writers, s.waiting_readers, s.waiting_writers) == (0, 0, 0, 0), c


def test_an_exception_before_any_operation(b: Backend) -> None:
    """Rules 2.3, 4.6, 7.2: KeyboardInterrupt is raised at the k-th operation, for all k."""
    n = operations(b)
    assert n > 12
    for k in range(1, n + 1):
        count = 0

        def tick(k: int = k) -> None:
            nonlocal count
            count += 1
            if count == k:
                raise Stop

        made, channels = pipeline(b, tick)
        with pytest.raises(Stop):
            b.run(made)
        nobody_is_left(channels)
        assert all(p.done for p in made)
        del made


def test_ctrl_c_at_any_event() -> None:
    """Rules 6, 7.6: the signal arrives within the k-th event of the network (start, begin, park,
    commit, end), for all k."""
    b = Backend("coroutines")
    events = 0

    def signal_at(k: int) -> Callable[..., None]:
        def observer(*_: Any) -> None:
            nonlocal events
            events += 1
            if events == k:
                signal.raise_signal(signal.SIGINT)

        return observer

    def once(k: int) -> list[Any]:
        nonlocal events
        events = 0
        made, channels = pipeline(b, lambda: None)
        observer = signal_at(k)
        _observers.add(observer)
        try:
            b.run(made)
        finally:
            _observers.remove(observer)
        return channels

    once(0)
    total = events
    assert total > 30
    interrupted = 0
    for k in range(1, total + 1):
        try:
            channels = once(k)
        except KeyboardInterrupt:
            interrupted += 1
        else:
            nobody_is_left(channels)
    assert interrupted == total
    assert run(sum_of([1, 2])) == 3  # the next run works as usual


@process
async def sum_of(values: Any) -> int:
    await yield_()
    return sum(values)


def test_a_handler_that_raises_while_somebody_observes() -> None:
    """Rule 14.2: an exception that a signal's handler raises in an observer ends the run, and is
    not lost."""

    class Mine(BaseException):
        pass

    def handler(*_: Any) -> None:
        raise Mine

    def observer(what: str, *_: Any) -> None:
        if what == "park":
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, handler)
    _observers.add(observer)
    c = Channel()
    try:
        with pytest.raises(BaseException) as caught:
            run(forever(c.reader(), c.writer()))
    finally:
        _observers.remove(observer)
        signal.signal(signal.SIGTERM, before)
    assert caught.type is Mine or caught.type.__name__ == "Deadlock"


@process
async def forever(r: Any, w: Any) -> None:
    await r.read()


# --- shutdown -------------------------------------------------------------------------------------

SHUTDOWNS = {
    "sys.exit in a process": (
        "async def p(r, w): await yield_(); sys.exit(3)",
        "run(p(+c, -c), w(+c, -c))",
        3,
    ),
    "a thread process lives on": (
        "async def p(r, w): pass",
        "g = Group(); g.__enter__(); g.start(t(+c, -c)); sys.exit(4)",
        4,
    ),
    "os._exit": ("async def p(r, w): os._exit(5)", "run(p(+c, -c), w(+c, -c))", 5),
    "a plain thread waits": (
        "async def p(r, w): pass",
        "import threading; r, k = +c, -c; threading.Thread(target=r.read, daemon=True).start(); sys.exit(6)",
        6,
    ),
    "unfinished coroutines in a global": (
        "async def p(r, w): await r.read()",
        "keep = p(+c, -c); sys.exit(7)",
        7,
    ),
    "an atexit handler runs a network": (
        "async def p(r, w): pass",
        "import atexit; atexit.register(lambda: run(p(+c, -c))); sys.exit(8)",
        8,
    ),
}


@pytest.mark.parametrize("name", SHUTDOWNS)
def test_the_interpreter_ends_in_the_middle(name: str) -> None:
    """Whatever waits, the program ends without help, with its own status."""
    body, last, status = SHUTDOWNS[name]
    program = f"""
import os, sys
from weft.coroutines import *
c = Channel("c")
@process
{body}
@process
async def w(r, w): await r.read()
@process
def t(r, w): r.read()
{last}
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "Fatal" not in done.stderr


# --- leaks ----------------------------------------------------------------------------------------


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def networks() -> None:
    """Runs one network for every way in which a network ends."""
    weft = coroutines
    c, d = Channel(), Channel(capacity=2)

    @process
    async def all_kinds(r: Any, w: Any) -> None:
        await select(Output(w, [1]), after(0.0001))
        await select(r, after(0))
        async with weft.Group() as g:
            g.start(sum_of([1]))
        weft.Spawn(sum_of([2]))
        await Parallel(sum_of([i]) for i in range(3))

    run(all_kinds(c.reader(), d.writer()))
    e = Channel()
    run(writes_all(e.writer(), [{}, []]), reads_all(e.reader()))
    f = Channel()
    with pytest.raises(ValueError, match="x"):
        run(fails(f.writer()), reads_all(f.reader()))
    g = Channel()
    with pytest.raises(weft.Deadlock):
        run(forever(g.reader(), g.writer()))
    h = Channel()
    run(poisons(h.writer()), reads_all(h.reader()))


@process
async def writes_all(w: Any, values: Any) -> None:
    for v in values:
        await w.write(v)


@process
async def reads_all(r: Any) -> list[Any]:
    return [v async for v in r]


@process
async def fails(w: Any) -> None:
    await w.write([1])
    raise ValueError("x")


@process
async def poisons(w: Any) -> None:
    await w.write([1])
    w.poison()


def test_objects_and_memory_come_to_a_plateau() -> None:
    """Rule 7.6: repeated networks leave nothing behind."""

    def round_() -> tuple[int, int]:
        for _ in range(25):
            networks()
        gc.collect()
        total = getattr(sys, "gettotalrefcount", int)()
        return len(gc.get_objects()) + total, sys.getallocatedblocks()

    round_(), round_()
    counts = [round_() for _ in range(4)]
    before = rss()
    for _ in range(4):
        round_()
    after_ = rss()
    objects, blocks = zip(*counts, strict=True)
    assert max(objects) - min(objects) <= 50, objects
    assert max(blocks) - min(blocks) <= 500, blocks
    if "WEFT_SANITIZED" not in os.environ:  # AddressSanitizer keeps freed memory for a while
        assert after_ - before < 4 << 20


def test_what_was_sent_is_released(b: Backend) -> None:
    """Rule 12.2: after values are taken, dropped, poisoned or withdrawn, their reference counts are
    as they were before.
    """

    class Thing:
        pass

    def all_gone(make: Callable[[Any], None]) -> None:
        thing = Thing()
        alive = weakref.ref(thing)
        make(thing)
        del thing
        gc.collect()
        b.run(b.process(nothing)())  # the next operation runs the queued work
        assert alive() is None

    async def nothing(b: Any) -> None:
        pass

    def taken(thing: Any) -> None:
        c = b.weft.Channel()
        b.run(b.process(send)(c.writer(), thing), b.process(receive)(c.reader()))

    def left_in_a_buffer(thing: Any) -> None:
        c = b.weft.Channel(capacity=2)
        b.run(b.process(send)(c.writer(), thing))

    def dropped(thing: Any) -> None:
        c = b.weft.Channel(capacity=1, overflow="drop_oldest")
        r = c.reader()
        b.run(b.process(send)(c.writer(), thing, 1, 2))
        r.retire()

    def poisoned(thing: Any) -> None:
        c = b.weft.Channel(capacity=2)
        r = c.reader()
        b.run(b.process(send)(c.writer(), thing))
        r.poison()

    def withdrawn(thing: Any) -> None:
        c = b.weft.Channel()
        r = c.reader()

        async def first(b: Any) -> None:
            raise ValueError

        with pytest.raises(ValueError):
            b.run(b.process(send)(c.writer(), thing), b.process(first)())
        r.retire()

    for make in (taken, left_in_a_buffer, dropped, poisoned, withdrawn):
        all_gone(make)


# --- finalisers and forks -------------------------------------------------------------------------


def test_finalisers_that_retire_and_operate(b: Backend) -> None:
    """Rules 12.1, 12.2: finalisers of values retire an end and use channels. The values are dropped
    by a buffer, by poison, and when the last reader leaves, each time under a channel's lock."""
    log: list[Any] = []
    other = b.weft.Channel("other", capacity=100)
    keep = other.reader(), other.writer()

    class Bomb:
        def __init__(self) -> None:
            self.c = b.weft.Channel("bomb")
            self.r, self.w = self.c.reader(), self.c.writer()

        def __del__(self) -> None:
            self.w.retire()
            other.stats()
            log.append(self.c.stats().writers)

    async def drops(b: Any, w: Any) -> None:
        for _ in range(5):
            await b.op(w.write(Bomb()))

    c = b.weft.Channel(capacity=1, overflow="drop_oldest")
    r = c.reader()
    b.run(b.process(drops)(c.writer()))
    assert len(log) >= 3
    r.poison()
    d = b.weft.Channel(capacity=10)
    s = d.reader()
    b.run(b.process(drops)(d.writer()))
    s.retire()
    b.run(b.process(send)(keep[1], 1))
    gc.collect()
    assert log == [0] * 10


def test_a_fork_is_refused_by_name(b: Backend) -> None:
    """Rule 11.2: a channel that is used in the child of a fork is refused."""
    c = b.weft.Channel("before", capacity=1)
    r, w = c.reader(), c.writer()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        messages = []
        for use in (c.reader, c.writer, lambda: b.run(b.process(send)(w, 1))):
            try:
                use()
                messages.append("nothing")
            except BadUse as error:
                messages.append(
                    "fork" if "fork" in str(error) and "before" in str(error) else str(error)
                )
        d = b.weft.Channel(capacity=1)  # a new channel works
        d.reader()
        os.write(write, " ".join(messages).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert answer.read() == "fork fork fork"
    assert os.waitpid(pid, 0)[1] == 0
    assert not r.closed and not w.closed


def test_sleepers_are_interrupted() -> None:
    """Rule 6.1: Ctrl-C ends a run in which only a timer remains."""

    @process
    async def sleeps() -> None:
        signal.raise_signal(signal.SIGINT)
        await sleep(1000)

    with pytest.raises(KeyboardInterrupt):
        run(sleeps())
