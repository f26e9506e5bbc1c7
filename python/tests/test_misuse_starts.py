"""Rules 2.3, 6.5, 7.6 and 11.1 (Python): processes that were cancelled at their start have ended;
groups are left in order."""

from __future__ import annotations

import gc
import signal
import sysconfig
import threading
import warnings

import pytest
from parts import hows

from weft import coroutines, greenlets, threads
from weft.coroutines import BadUse, Cancelled, Channel, Retired
from weft.threads import Group

ran: list[str] = []


@coroutines.process
async def coroutine(r):
    ran.append("coroutine")


@threads.process
def thread(r):
    ran.append("thread")


@greenlets.process
def green(r):
    ran.append("greenlet")


KINDS = {
    "coroutine": coroutine,
    "greenlet": green,
    "thread": thread,
    "apart": coroutine.on("threads"),
}


@coroutines.process
async def fails():
    raise ValueError("boom")


def has_ended(late, writer):
    """Checks that `late` has ended without having run: it is done and has released its reader,
    cancelling it is safe, and starting it has no effect.
    """
    assert late.done
    assert hows([late.result]) == ["<cancelled>"]
    with pytest.raises(Retired):
        threads.select(threads.Output(writer, 1), threads.after(0))
    late.cancel()
    repr(late), late.path
    with pytest.raises(BadUse, match="started already"):
        threads.run(late)
    late.cancel()
    assert ran == []


@pytest.fixture(autouse=True)
def _nothing_ran():
    ran.clear()
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("compose", ["Parallel", "Sequence"])
@pytest.mark.parametrize("kind", KINDS)
def test_cancelled_at_its_start_in_ordinary_code(kind, compose):  # rules 2.3, 6.1, 6.5
    c = Channel()
    w = c.writer()
    late, later = KINDS[kind](c.reader()), KINDS[kind](c.reader())
    with pytest.raises(ValueError, match="boom"), Group() as g:
        g.start(fails())
        threads.yield_()
        with pytest.raises(Cancelled):
            getattr(threads, compose)(late, later)
    assert later.done
    has_ended(late, w)


@pytest.mark.parametrize("where", ["thread", "greenlet", "coroutine"])
@pytest.mark.parametrize("compose", ["Parallel", "Sequence"])
@pytest.mark.parametrize("kind", KINDS)
def test_cancelled_at_its_start_in_a_process(kind, compose, where):  # rules 2.3, 6.1, 6.5
    c = Channel()
    w = c.writer()
    late, later = KINDS[kind](c.reader()), KINDS[kind](c.reader())

    def blocks():
        coroutines.current_process().cancel()
        getattr(threads, compose)(late, later)

    @coroutines.process
    async def awaits():
        coroutines.current_process().cancel()
        await getattr(coroutines, compose)(late, later)

    with pytest.raises(Cancelled):  # rule 7.1
        coroutines.run(
            {
                "thread": threads.process(blocks),
                "greenlet": greenlets.process(blocks),
                "coroutine": awaits,
            }[where]()
        )
    assert later.done
    has_ended(late, w)


@pytest.mark.parametrize("kind", KINDS)
def test_a_parallel_that_nobody_awaits(kind):  # rules 2.3, 11.1
    c = Channel()
    w = c.writer()
    late = KINDS[kind](c.reader())

    @coroutines.process
    async def main():
        with pytest.warns(RuntimeWarning, match="never awaited"):
            coroutines.Parallel(late)

    coroutines.run(main())
    has_ended(late, w)


# ------------------------------------------------------------------------------------------ groups


@coroutines.process
async def turns(r):
    async for _ in r:
        pass


def test_groups_left_out_of_order():  # rules 7.5, 11.1: both stay open, the right exit closes them later
    c, d = Channel(), Channel()
    outer, inner = Group(), Group()
    outer.__enter__()
    first = outer.start(turns(c.reader()))
    inner.__enter__()
    second = inner.start(turns(d.reader()))
    with pytest.raises(BadUse, match="leave that one first"):
        outer.__exit__(None, None, None)
    w, v = c.writer(), d.writer()
    w.write(1)
    v.write(1)
    assert not first.done
    assert not second.done
    w.retire()
    v.retire()
    inner.__exit__(None, None, None)
    assert second.done
    outer.__exit__(None, None, None)
    assert first.done
    with pytest.raises(BadUse, match="not open"):
        outer.__exit__(None, None, None)


def test_a_group_left_on_another_thread():  # rule 11.1: and SIGINT has the program's handler again
    c = Channel()
    g = Group()
    g.__enter__()
    p = g.start(turns(c.reader()))
    w = c.writer()
    received = []

    def leave():
        try:
            g.__exit__(None, None, None)
        except BadUse as e:
            received.append(e)

    t = threading.Thread(target=leave)
    t.start()
    t.join()
    assert "the process, task or thread that entered it" in str(received[0])
    w.write(1)
    assert not p.done
    w.retire()
    g.__exit__(None, None, None)
    assert p.done


def held(c, started):
    with Group() as g:
        started.append(g.start(turns(c.reader())))
        yield


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_generators_that_hold_groups(order):  # rule 11.1: a warning names those left open
    started: list = []
    c = Channel()
    w = c.writer()
    generators = [held(c, started), held(c, started)]
    for g in generators:
        next(g)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for k in order:
            if k == order[0] == 0:
                with pytest.raises(BadUse, match="leave that one first"):
                    generators[k].close()
            else:
                generators[k].close()
        generators.clear()
        gc.collect()
    assert all(p.done for p in started)
    named = [str(x.message) for x in seen if "was collected while it was open" in str(x.message)]
    assert len(named) == (1 if order[0] == 0 else 0)
    assert not named or ("test_misuse_starts.py" in named[0] and "turns" in named[0])
    del w


def test_a_generator_that_another_thread_collects():  # rule 11.1
    started: list = []
    c = Channel()
    w = c.writer()
    box = [held(c, started)]
    next(box[0])
    with warnings.catch_warnings(record=True) as seen, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.unraisablehook", lambda _: None)
        warnings.simplefilter("always")
        t = threading.Thread(target=box.clear)
        t.start()
        t.join()
        with Group():  # the next group on this thread closes the group that was left
            pass
    assert started[0].done
    # Without a GIL the generator is dropped on the thread that made it, so its block is left
    # normally.
    found = any("was collected while it was open" in str(x.message) for x in seen)
    assert found != bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    del w


@pytest.mark.parametrize("how", ["coroutine", "greenlet", "thread"])
def test_a_process_ends_with_its_group_open(how):  # rules 7.6, 11.1
    started: list = []
    kept: list = []
    c = Channel()
    w = c.writer()

    def blocks():
        g = Group()
        g.__enter__()
        kept.append(g)
        started.append(g.start(turns(c.reader())))

    @coroutines.process
    async def awaits():
        g = coroutines.Group()
        await g.__aenter__()
        kept.append(g)
        started.append(g.start(turns(c.reader())))

    make = {
        "coroutine": awaits,
        "greenlet": greenlets.process(blocks),
        "thread": threads.process(blocks),
    }
    with pytest.warns(RuntimeWarning, match="never left by the process that entered it"):
        coroutines.run(make[how]())
    assert started[0].done
    late = turns(Channel().reader())
    with pytest.raises(BadUse):
        kept[0].start(late)
    late._never_run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
    del w


def test_a_group_left_by_another_process():  # rule 11.1
    c = Channel()
    w = c.writer()

    @coroutines.process
    async def leaves(g):
        with pytest.raises(BadUse, match=r"another process|already ending"):
            g.__aexit__(None, None, None)
        with pytest.raises(BadUse, match=r"another process|already ending"):
            g.__exit__(None, None, None)
        await w.write(1)
        w.retire()

    @coroutines.process
    async def main():
        async with coroutines.Group() as g:
            g.start(turns(c.reader()))
            g.start(leaves(g))

    coroutines.run(main())
