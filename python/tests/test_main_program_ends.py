"""Rule 7.5: how the block of a Group in ordinary code ends: by failures, cancellation, deadlock,
the end of a channel, Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from parts import co_echo, gr_echo

from weft import coroutines as co
from weft import greenlets as gr
from weft import observe
from weft import threads as th
from weft.errors import Cancelled, Deadlock, Poisoned, Retired

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup


@gr.process
def gr_waits(into, log):
    try:
        into.read()
    except Cancelled:
        log.append("cleaned up")
        raise


@co.process
async def co_waits(into, log):
    try:
        await into.read()
    except Cancelled:
        log.append("cleaned up")
        raise


@gr.process
def gr_fails(error):
    raise error


@co.process
async def co_fails(error):
    raise error


WAITS = {"greenlet": gr_waits, "coroutine": co_waits}
FAILS = {"greenlet": gr_fails, "coroutine": co_fails}
each_wait = pytest.mark.parametrize("waits", WAITS.values(), ids=list(WAITS))
each_failure = pytest.mark.parametrize("fails", FAILS.values(), ids=list(FAILS))


@each_failure
def test_a_failure_cancels_the_block_and_is_raised_at_its_end(fails):  # rules 7.2, 7.5
    c = gr.Channel("c")
    r, kept = c.reader(), c.writer()
    with pytest.raises(LookupError, match="lost"), gr.Group() as g:
        g.start(fails(LookupError("lost")))
        with pytest.raises(Cancelled):
            r.read()
        g.start(gr_waits(c.reader(), []))  # the process is cancelled from the start
        raise Cancelled  # an operation would have raised Cancelled too
    assert not kept.closed


@pytest.mark.parametrize("how", ["retired", "poisoned", "cancelled"])
def test_what_comes_to_the_block_of_a_failure_is_no_other_failure(how):  # rules 3.5, 4.3, 7.5
    c = gr.Channel("c")
    r, other = c.reader(), gr.Channel("d")
    kept = other.writer()

    @gr.process
    def fails(out):
        if how == "poisoned":
            out.poison()
        elif how == "retired":
            out.retire()
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"), gr.Group() as g:
        g.start(fails(c.writer()))
        (other.reader() if how == "cancelled" else r).read()
    assert not kept.closed


def test_a_failure_of_the_blocks_own_is_another():
    c = gr.Channel("c")
    r = c.reader()
    with pytest.raises(BaseExceptionGroup) as caught, gr.Group() as g:
        g.start(gr_fails(LookupError("lost")))
        try:
            r.read()
        finally:
            raise KeyError("of the block")
    assert [type(e) for e in caught.value.exceptions] == [KeyError, LookupError]


def test_an_end_that_leaves_a_block_alone_is_raised():
    c = gr.Channel("c")
    r = c.reader()
    with pytest.raises(Retired), gr.Group() as g:
        g.start(gr_echo(gr.Channel().reader(), c.writer())).cancel()
        r.read()


@each_failure
def test_two_failures_are_a_group(fails):
    with pytest.raises(BaseExceptionGroup) as caught, gr.Group() as g:
        g.start(fails(LookupError(1)))
        g.start(fails(KeyError(2)))
    assert [type(e) for e in caught.value.exceptions] == [LookupError, KeyError]


@each_wait
@pytest.mark.parametrize("started", [False, True])
def test_leaving_by_an_exception_cancels_them_first(waits, started):
    c, log = gr.Channel("c"), []
    kept = c.writer()
    with pytest.raises(KeyError), gr.Group() as g:
        p = g.start(waits(c.reader(), log))
        if started:
            gr.yield_()
        raise KeyError
    assert p.done and log in (["cleaned up"], [] if not started else None)
    assert c.stats().readers == 0 and not kept.closed


@each_wait
def test_the_block_cancels_its_group(waits):
    c, log = gr.Channel("c"), []
    kept = c.writer()
    with gr.Group() as g:
        g.start(waits(c.reader(), log))
        gr.yield_()
        g.cancel()
    assert log == ["cleaned up"] and not kept.closed


@each_wait
def test_the_block_and_its_processes_wait_for_each_other(waits):  # rules 10.1, 10.2
    c, d, log = gr.Channel("c"), gr.Channel("d"), []
    r, _w, _kept = c.reader(), d.writer(), c.writer()
    with pytest.raises(Deadlock) as caught, gr.Group() as g:
        g.start(waits(d.reader(), log))
        try:
            r.read()
        finally:
            log.append("block")
    assert sorted(p.path for p in caught.value.processes) == [
        "main",
        f"main/{waits.__name__}",
    ]
    assert sorted(log) == ["block", "cleaned up"]


def test_at_its_end_the_block_is_not_among_the_blocked():
    c, log = gr.Channel("c"), []
    kept = c.writer()
    with pytest.raises(Deadlock) as caught, gr.Group() as g:
        g.start(gr_waits(c.reader(), log))
    assert [p.path for p in caught.value.processes] == ["main/gr_waits"]
    assert log == ["cleaned up"] and not kept.closed


def test_poison_reaches_the_block_and_goes_from_it():  # rule 4.3
    a, b = gr.Channel("a"), gr.Channel("b")
    w, r = a.writer(), b.reader()
    with gr.Group() as g:
        g.start(gr_echo(a.reader(), b.writer()))
        g.start(co_echo(a.reader(), b.writer()))
        w.write(1)
        assert r.read() == 1
        w.poison(7)
        with pytest.raises(Poisoned) as caught:
            r.read()
        assert caught.value.strength == 7


@pytest.mark.parametrize("style", [gr, th], ids=["of the block's thread", "of another"])
def test_the_first_ctrl_c_cancels_the_block_and_its_greenlets(style):  # rule 6.7
    """Ctrl-C arrives while a process of the block's own thread runs, and while that thread
    sleeps."""
    c, log = gr.Channel("c"), []
    r, kept = c.reader(), c.writer()

    @style.process
    def interrupts():
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), gr.Group() as g:
        g.start(gr_waits(c.reader(), log))
        gr.yield_()
        g.start(interrupts())
        r.read()
    assert log == ["cleaned up"] and not kept.closed


def test_a_partial_deadlock_of_the_greenlets_is_reported_on_demand():  # rules 10.5, 14.3
    c, d = gr.Channel("c"), gr.Channel("d")
    ends = [(c.reader(), d.writer()), (d.reader(), c.writer())]

    @gr.process
    def knotted(into, out):
        into.read()

    with gr.Group() as g:
        for one in ends:
            g.start(knotted(*one))
        del ends, one
        gr.yield_()
        assert sorted(p.path for p in observe.deadlocks().processes) == [
            "main/knotted[0]",
            "main/knotted[1]",
        ]
        g.cancel()
