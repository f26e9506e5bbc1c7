"""Rules 6.1, 6.7, 7.5, 11.1: groups of ordinary code that generators hold are closed in any order,
while signal handlers raise.

A block is asked to end only by a failure in its group, or by an exception that a signal's handler
raised while the block waited, and only once. So whatever happened before, the next block raises
`Cancelled` only if a process of a group that is still open has failed.
"""

from __future__ import annotations

import gc
import signal
import threading

import pytest
from children import child

from weft import coroutines, greenlets, threads
from weft.coroutines import Cancelled, Channel
from weft.threads import Group

pytestmark = pytest.mark.filterwarnings("ignore:a Group, entered")


class Bell(Exception):
    pass


def ring(*_):
    raise Bell


@pytest.fixture(autouse=True)
def bell():
    before = signal.signal(signal.SIGUSR1, ring)
    yield
    signal.signal(signal.SIGUSR1, before)


@coroutines.process
async def fails():
    raise ValueError("boom")


@coroutines.process
async def fails_when_cancelled(r):
    try:
        await r.read()
    finally:
        raise ValueError("boom")


@coroutines.process
async def turns(r):
    async for _ in r:
        pass


@coroutines.process
async def says(w):
    await w.write(1)


@threads.process
def rings(r, heard):
    """Sends the signal once the main thread waits."""
    r.read()
    signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
    heard.wait()  # before this point no run stands still


def bell_while_it_waits(group):
    c, heard = Channel(), threading.Event()
    group.start(rings(c.reader(), heard))
    group.start(says(c.writer()))
    return heard


def nobody_asks():
    b = Channel(capacity=1)
    w, r = b.writer(), b.reader()
    w.write(1)
    threads.yield_()
    assert r.read() == 1


# ----------------------------------------------------------------------------- requests to a block


def test_a_block_within_one_that_has_met_its_request():  # rules 6.1, 7.5
    with pytest.raises(ValueError, match="boom"), Group() as outer:
        outer.start(fails())
        threads.yield_()
        with pytest.raises(Cancelled):
            threads.sleep(0)
        with pytest.raises(ValueError, match="boom"), Group() as inner:
            inner.start(fails())
            threads.yield_()
        nobody_asks()


def test_a_block_in_a_process_that_has_met_its_cancellation():  # rules 6.1, 7.5
    went_on = []

    @greenlets.process
    def late(r):
        with pytest.raises(Cancelled):
            r.read()
        with pytest.raises(ValueError, match="boom"), Group() as inner:
            inner.start(fails())
            threads.yield_()
        nobody_asks()
        went_on.append(1)

    c = Channel()
    w = c.writer()
    with pytest.raises(ValueError, match="boom"):
        greenlets.run(late(c.reader()), fails())
    assert went_on == [1]
    del w


def test_two_blocks_that_ask_at_once():
    """Rules 6.1, 7.5: the block that ends withdraws only its own request."""
    with pytest.raises(ValueError, match="boom"), Group() as outer:
        outer.start(fails())
        with pytest.raises(ValueError, match="boom"), Group() as inner:
            inner.start(fails())
            threads.yield_()
        with pytest.raises(Cancelled):
            threads.sleep(0)
        nobody_asks()


def holds(make, started):
    with Group() as g:
        started.append(g.start(make()))
        yield


def test_a_group_that_nobody_can_leave_asks_nobody():  # rules 7.5, 11.1
    started: list = []
    c = Channel()
    w = c.writer()
    lost = holds(lambda: fails_when_cancelled(c.reader()), started)
    held = holds(lambda: turns(c.reader()), started)
    next(lost)
    next(held)
    threads.yield_()
    with pytest.MonkeyPatch.context() as patch:
        log: list = []
        patch.setattr("sys.unraisablehook", lambda u: log.append(u.exc_value))
        with pytest.raises(coroutines.BadUse, match="leave that one first"):
            lost.close()
        del lost
        gc.collect()
        threads.yield_()  # the generator's process fails at this point
        with Group():
            nobody_asks()
        w.retire()
        held.close()
    assert all(p.done for p in started)
    assert ["boom" in repr(e) for e in log] == [
        True
    ]  # the error is printed, because no code remains in which it could be raised


# ------------------------------------------------------------------------- exceptions of a handler


def test_it_is_raised_where_the_block_waits():  # rule 6.7
    with Group() as g:
        heard = bell_while_it_waits(g)
        with pytest.raises(Bell):
            threads.sleep(1000)
        heard.set()
        nobody_asks()


@pytest.mark.parametrize("how", ["Group", "Parallel", "run"])
def test_it_is_raised_by_what_the_block_waits_for(how):
    """Rule 6.7: only the network for which the block waits is cancelled."""
    c = Channel()
    w = c.writer()
    with Group() as g:
        stays = g.start(turns(c.reader()))
        heard = bell_while_it_waits(g)
        d = Channel()
        v = d.writer()
        ends = turns(d.reader())
        with pytest.raises(Bell):
            if how == "Group":
                with Group() as inner:
                    inner.start(ends)
            else:
                getattr(threads, how)(ends)
        heard.set()
        assert ends.done
        assert not stays.done
        nobody_asks()
        w.write(1)
        w.retire()
    assert stays.done
    del v


def test_a_generator_is_closed_as_the_bell_rings():  # rules 6.7, 11.1
    started: list = []
    c = Channel()
    w = c.writer()

    @coroutines.process
    async def stays(r):
        while True:
            try:
                await r.read()
            except Cancelled:
                await coroutines.sleep(0.001)  # lets the process reach the wait for its group
                raise

    a = holds(lambda: turns(c.reader()), started)
    next(a)
    d = Channel()

    def rung():
        with Group() as g:
            started.append(g.start(stays(c.reader())))
            started.append(g.start(slow_bell(d.reader())))
            yield

    @threads.process
    def slow_bell(r):
        with pytest.raises(Cancelled):
            r.read()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    b = rung()
    next(b)
    threads.yield_()
    e = d.writer()
    with pytest.raises(Bell):
        b.close()
    assert [p.done for p in started] == [False, True, True]
    with Group():
        nobody_asks()
    a.close()
    assert started[0].done
    with Group():
        nobody_asks()
    del w, e


# ----------------------------------------------------------------------------- any order, anywhere

HEAD = """
import gc, random, signal, sys, threading, warnings
import weft.threads as T
from weft.coroutines import BadUse, Cancelled, Channel, Group, process, sleep

warnings.simplefilter("ignore")  # groups that are collected are named
sys.unraisablehook = lambda _: None  # what is raised in a finaliser

class Bell(Exception):
    pass

@process
async def turns(r):
    async for _ in r:
        pass

@process
async def lingers(r):
    try:
        async for _ in r:
            pass
    finally:
        await sleep(0.0001)

def holds(make, started, within=()):
    with Group() as g:
        started.append(g.start(make))
        yield from within
        yield

def plays(order, nested, collect, do, started, generators, channel):
    # `do` each step. Two generators hold a group each; nested: one is driven in the other's block.
    b = holds(turns(channel.reader()), started)
    a = holds(lingers(channel.reader()), started, b if nested else ())
    generators += [a, b]
    do(lambda: next(a))
    if not nested:
        do(lambda: next(b))
    for i in order:
        do(generators[i].close)
        if collect:
            generators[i] = None
            a = b = None
            do(gc.collect)

def quietly(step):
    try:
        step()
    except BaseException:
        pass

def next_block():
    # Is it left alone?
    try:
        with Group():
            c = Channel(capacity=1)
            w, r = c.writer(), c.reader()
            w.write(1)
            T.yield_()
            assert r.read() == 1
    except Cancelled:
        return False
    return True

def look(started, generators, writer, what):
    failed = any("failed" in repr(p) for p in started)  # then a group that is open yet may ask its thread
    assert next_block() or failed, (what, started)
    for _ in range(3):
        for g in reversed(generators):
            quietly(lambda: g is not None and g.close())
    generators.clear()
    writer.retire()
    g = None
    gc.collect()
    assert next_block(), what
    assert all(p.done or "not started" in repr(p) for p in started), (what, started)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, what

KINDS = [(order, nested, collect) for order in ((0, 1), (1, 0)) for nested in (False, True) for collect in (False, True)]
"""

STEPS = """
# What a handler raises comes between two bytecodes: it is raised between any two of them, in turn.
def at(n):
    count = [0]
    def trace(frame, event, _):
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_filename == "<string>":
            count[0] += 1
            if count[0] == n:
                raise Bell
        return trace
    return trace, count

def through(kind):
    n = 0
    while True:
        n += 1
        started, generators, channel = [], [], Channel()
        writer = channel.writer()
        trace, count = at(n)
        def do(step):
            sys.settrace(trace)
            try:
                step()
            except BaseException:
                pass
            finally:
                sys.settrace(None)
        plays(*kind, do, started, generators, channel)
        do = None
        look(started, generators, writer, (kind, n))
        if count[0] < n:
            return n

def everything():
    try:
        assert all(through(kind) > 30 for kind in KINDS)
        print("left")
    except BaseException as e:
        import traceback
        traceback.print_exc()

if sys.argv[1] == "main":
    everything()
else:
    t = threading.Thread(target=everything)
    t.start()
    t.join()
"""

ALARMS = """
dice = random.Random(int(sys.argv[1]))

def ring(*_):
    raise Bell

signal.signal(signal.SIGALRM, ring)

def do(step):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, dice.choice([1e-6, 1e-5, 3e-5, 1e-4, 3e-4]))
            step()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException:
        pass

for n in range(300):
    started, generators, channel = [], [], Channel()
    writer = channel.writer()
    kind = dice.choice(KINDS)
    plays(*kind, do, started, generators, channel)
    look(started, generators, writer, (kind, n))
print("left")
"""


def ends_well(program: str, argument: str) -> None:
    with child("-c", HEAD + program, argument) as running:
        out, err = running.communicate()
    assert (running.returncode, out, err) == (0, "left\n", ""), argument


@pytest.mark.parametrize("where", [pytest.param("main", marks=pytest.mark.soak), "another thread"])
def test_an_exception_at_every_step(where: str) -> None:  # rules 7.5, 11.1
    ends_well(STEPS, where)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 4))]
)
def test_alarms_at_any_moment(seed: int) -> None:  # rules 6.7, 7.5, 11.1
    ends_well(ALARMS, str(seed))
