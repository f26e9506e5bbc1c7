"""Rules 7.5 and 15.2: in ordinary code the block of a Group is a process, and runs the group's
coroutines and greenlets while it waits.

The scenarios of every rule also run in such a block (conformance/tests/test_scenarios.py); the
tests here are about the block itself.
"""

from __future__ import annotations

import contextvars
import gc
import os
import random
import subprocess
import sys
import threading
import time
import weakref

import greenlet
import pytest
from parts import co_echo, gr_echo, th_echo

from weft import coroutines as co
from weft import greenlets as gr
from weft import threads as th
from weft.errors import BadUse, Retired

ECHOS = {"greenlet": gr_echo, "coroutine": co_echo, "thread": th_echo}
each_echo = pytest.mark.parametrize("echo", ECHOS.values(), ids=list(ECHOS))


# --- the operations -------------------------------------------------------------------------------


@each_echo
@pytest.mark.parametrize("capacity", [0, 3])
def test_the_block_reads_and_writes(echo, capacity):
    a, b = gr.Channel("a", capacity=capacity), gr.Channel("b", capacity=capacity)
    w, r = a.writer(), b.reader()
    with gr.Group() as g:
        p = g.start(echo(a.reader(), b.writer()))
        for value in range(50):
            w.write(value)
            assert r.read() == value
        w.retire()
        assert list(r) == []
    assert p.done


def test_a_chain_of_all_kinds():
    kinds = list(ECHOS.values()) * 4
    cs = [gr.Channel(f"c{k}") for k in range(len(kinds) + 1)]
    w, r = cs[0].writer(), cs[-1].reader()
    with gr.Group() as g:
        for k, echo in enumerate(kinds):
            g.start(echo(cs[k].reader(), cs[k + 1].writer()))
        for value in range(20):
            w.write(value)
            assert r.read() == value
        w.retire()


@each_echo
def test_the_block_chooses(echo):
    a, b = gr.Channel("a"), gr.Channel("b")
    w, r = a.writer(), b.reader()
    sent = got = 0
    with gr.Group() as g:
        g.start(echo(a.reader(), b.writer()))
        while got < 30:
            index, value = gr.select(gr.Input(r), gr.Output(w, sent))
            if index == 0:
                assert value == got
                got += 1
            else:
                sent += 1
        with gr.Alternative(r, gr.after(280)) as alternative:
            w.write("last") if sent == got else None
            assert alternative.select()[0] == 0
        w.retire()


@each_echo
def test_the_blocks_timers_let_the_others_run(echo):
    a, b = gr.Channel("a"), gr.Channel("b")
    w, r = a.writer(), b.reader()
    with gr.Group(clock="virtual") as g:
        g.start(echo(a.reader(), b.writer()))
        begun = gr.now()
        assert gr.select(r, gr.after(5)) == (1, None)
        w.write("x")
        gr.sleep(100)
        assert gr.now() == begun + 105
        assert r.read() == "x"
        w.retire()


def test_a_barrier_and_an_extended_read():
    barrier, c, log = gr.Barrier(3), gr.Channel("c"), []

    @gr.process
    def meets(out):
        barrier.sync()
        out.write("held")
        log.append("written")

    @co.process
    async def meets_too():
        await barrier.sync()

    r = c.reader()
    with gr.Group() as g:
        g.start(meets(c.writer()))
        g.start(meets_too())
        barrier.sync()
        with r.extended() as value:
            gr.yield_()
            assert (value, log) == ("held", [])
        gr.yield_()
        assert log == ["written"]


@pytest.mark.parametrize("style", [gr, co], ids=["greenlets", "coroutines"])
def test_a_yield_lets_all_that_are_ready_run(style):  # rule 7.7
    log = []

    @gr.process
    def notes(name):
        log.append(name)

    @co.process
    async def notes_too(name):
        log.append(name)

    note = notes if style is gr else notes_too
    with gr.Group() as g:
        for name in range(100):
            g.start(note(name))
        assert log == [], "ordinary code that does not wait lets nobody run"
        gr.yield_()
        assert log == list(range(100))


def test_ordinary_code_outside_a_block_yields_as_before():
    gr.yield_()
    with gr.Group():
        gr.yield_()
    gr.yield_()


def test_what_is_left_runs_at_the_end_of_the_block():
    log = []

    @gr.process
    def counts(n):
        for k in range(n):
            log.append(k)
            gr.yield_()

    with gr.Group() as g:
        p = g.start(counts(5))
    assert log == [0, 1, 2, 3, 4] and p.done


# --- composition within it ------------------------------------------------------------------------


@each_echo
def test_parallel_run_and_blocks_within_it_drive_the_same_scheduler(echo):
    a, b = gr.Channel("a"), gr.Channel("b")

    @gr.process
    def puts(out, n):
        for k in range(n):
            out.write(k)

    @gr.process
    def takes(into, n):
        return [into.read() for _ in range(n)]

    w, r = a.writer(), b.reader()
    w2, r2 = a.writer(), b.reader()
    w3, r3 = a.writer(), b.reader()
    with gr.Group() as g:
        g.start(echo(a.reader(), b.writer()))
        assert gr.Parallel(puts(w, 4), takes(r, 4)) == [None, [0, 1, 2, 3]]
        assert gr.run(puts(w2, 2), takes(r2, 2)) == [None, [0, 1]]
        with gr.Group() as inner:
            inner.start(puts(w3, 3))
            p = inner.start(takes(r3, 3))
        assert p.result == [0, 1, 2]


def test_a_block_within_a_block_takes_all_kinds():
    with gr.Group(), gr.Group() as inner:
        a, b = gr.Channel("a"), gr.Channel("b")
        w, r = a.writer(), b.reader()
        inner.start(co_echo(a.reader(), b.writer()))
        w.write(1)
        assert r.read() == 1
        w.retire()


@pytest.mark.parametrize("by", ["block", "greenlet", "thread"])
def test_spawned_processes_run_as_the_block_waits_and_it_waits_for_them(by):  # rule 7.4
    c, d, log = gr.Channel("c"), gr.Channel("d"), []

    @gr.process
    def spawned(into):
        log.extend(into)

    @gr.process
    def spawns(end):
        gr.Spawn(spawned(end))

    w, end = c.writer(), c.reader()
    kept = d.writer()
    with gr.Group() as g:
        if by == "block":
            gr.Spawn(spawned(end))
        else:
            g.start((spawns if by == "greenlet" else spawns.on(th))(end))
        for value in range(3):
            w.write(value)
        w.retire()
    assert log == [0, 1, 2] and not kept.closed


def test_a_thread_of_the_block_starts_greenlets_there():  # rule 15.2
    where = []

    @gr.process
    def notes():
        where.append(threading.get_ident())

    @th.process
    def starts(out):
        with th.Group() as g:
            g.start(notes())
            g.start(notes())
        out.write("ended")

    c = gr.Channel("c")
    r = c.reader()
    with gr.Group() as g:
        g.start(starts(c.writer()))
        assert r.read() == "ended"
    assert where == [threading.get_ident()] * 2


def test_a_plain_thread_meets_a_greenlet_of_the_block():
    a, b = gr.Channel("a"), gr.Channel("b")
    w, r = a.writer(), b.reader()
    foreign = threading.Thread(target=lambda: [w.write(k) for k in range(20)] and w.retire())
    with gr.Group() as g:
        g.start(gr_echo(a.reader(), b.writer()))
        foreign.start()
        assert list(r) == list(range(20))
    foreign.join()


def test_a_block_in_another_thread_has_a_scheduler_of_its_own():
    seen = []

    def whole():
        a, b = gr.Channel("a"), gr.Channel("b")
        w, r = a.writer(), b.reader()
        with gr.Group() as g:
            g.start(gr_echo(a.reader(), b.writer()))
            for value in range(10):
                w.write(value)
                seen.append(r.read())
            w.retire()

    others = [threading.Thread(target=whole) for _ in range(3)]
    for one in others:
        one.start()
    whole()
    for one in others:
        one.join()
    assert sorted(seen) == sorted([*range(10)] * 4)


def test_one_block_after_another():
    for _ in range(50):
        test_the_block_reads_and_writes(gr_echo, 0)


# --- the code around the block --------------------------------------------------------------------


def test_the_blocks_context_variables_are_its_own():
    var = contextvars.ContextVar("var", default="unset")
    seen = []

    @gr.process
    def changes(into):
        seen.append(var.get())
        var.set("a greenlet's")
        into.read()

    @co.process
    async def changes_too(into):
        seen.append(var.get())
        var.set("a coroutine's")
        await into.read()

    c = gr.Channel("c")
    w = c.writer()
    var.set("main's")
    with gr.Group() as g:
        g.start(changes(c.reader()))
        g.start(changes_too(c.reader()))
        w.write(1)
        assert var.get() == "main's"
        w.write(2)
        assert var.get() == "main's"
    assert seen == ["main's"] * 2


def test_the_block_may_wait_in_greenlets_of_the_programs_own():
    """Each time, a different greenlet is the hub: greenlets that parked under an earlier hub return
    to the present one.
    """
    a, b = gr.Channel("a"), gr.Channel("b")
    w, r = a.writer(), b.reader()

    def turn(value):
        w.write(value)
        return r.read()

    with gr.Group() as g:
        p = g.start(gr_echo(a.reader(), b.writer()))
        assert greenlet.greenlet(turn).switch(1) == 1
        assert turn(2) == 2
        assert greenlet.greenlet(turn).switch(3) == 3
        greenlet.greenlet(w.retire).switch()
        assert not p.done
        assert greenlet.greenlet(lambda: list(r)).switch() == [], "it ends under another hub"
        assert p.done


def test_an_operation_of_the_block_within_one_of_its_own_is_bad_use():
    """The inner operation is in a finaliser that runs while the block waits in the outer one."""
    c, d, reports = gr.Channel("c"), gr.Channel("d"), []

    class Reads:
        def __init__(self, end):
            self.end = end

        def __del__(self):
            try:
                self.end.read()
            except (BadUse, Retired) as error:
                reports.append(type(error).__name__)

    @gr.process
    def drops(out):
        one = Reads(d.reader())
        del one
        out.write("dropped")

    r, kept = c.reader(), d.writer()
    with gr.Group(clock="virtual") as g:
        g.start(drops(c.writer()))
        with pytest.raises(Retired):
            while True:
                if gr.select(r, gr.after(10))[0] == 1:
                    kept.retire()
    assert reports == ["Retired"], "in the greenlet it is the greenlet's operation"


def test_a_block_leaves_nothing_behind():
    class Thing:
        pass

    kept = []

    def whole():
        a, b = gr.Channel("a"), gr.Channel("b")
        w, r = a.writer(), b.reader()
        thing = Thing()
        kept.append(weakref.ref(thing))
        with gr.Group() as g:
            g.start(gr_echo(a.reader(), b.writer()))
            w.write(thing)
            assert r.read() is thing
            w.retire()

    for _ in range(3):
        whole()
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3


@pytest.mark.parametrize("clock", ["Steady", ""])
def test_a_clock_that_is_none(clock):  # rule 11.1
    with pytest.raises(BadUse, match="'steady' or 'virtual'"):
        gr.Group(clock=clock)
    with pytest.raises(TypeError):
        gr.Group("virtual")


def test_the_clock_belongs_to_the_outermost_run():
    with gr.Group() as _, pytest.raises(BadUse, match="outermost run"), gr.Group(clock="virtual"):
        pass
    with gr.Group(clock="virtual"), gr.Group(clock="virtual"), gr.Group():
        begun = gr.now()
        gr.sleep(3600)
        assert gr.now() == begun + 3600

    @co.process
    async def enters():
        with pytest.raises(BadUse, match="outermost run"):
            async with co.Group(clock="virtual"):
                pass

    co.run(enters())


def test_time_stands_still_while_ordinary_code_runs():  # rule 8.6
    with gr.Group(clock="virtual") as g:
        begun = gr.now()

        @gr.process
        def sleeps():
            gr.sleep(10)

        g.start(sleeps())
        gr.yield_()
        time.sleep(0)  # this is no operation, so no process runs
        assert gr.now() == begun


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_child_of_a_fork_in_a_block_is_ordinary_code_and_runs_nothing_of_it():  # rule 11.2
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            """
import faulthandler, os, signal, sys
faulthandler.dump_traceback_later(270, exit=True)
from weft.greenlets import *
from weft.errors import *

@process
def says(into):
    print("runs in", "parent" if os.getpid() == parent else "child", flush=True)
    into.read()

@process
def gives():
    return 42

parent = os.getpid()
c = Channel("c")
w = c.writer()
with Group() as g:
    g.start(says(c.reader()))
    if (pid := os.fork()) == 0:
        signal.alarm(260)
        yield_()
        sleep(0.001)
        try:
            w.write(1)
        except BadUse as error:
            assert "fork" in str(error)
        with Group() as mine:
            p = mine.start(gives())
        os._exit(p.result)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
    w.write(1)
""",
        ],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert (done.stdout, done.stderr) == ("42\nruns in parent\n", "")


# --- at random ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_random_network_around_the_block_loses_nothing(seed):
    """The block feeds and drains chains of processes of all backends, with and without buffers, by
    reads, writes and selects."""
    print("seed", seed)
    dice = random.Random(seed)
    chains = []
    with gr.Group() as g:
        for _ in range(dice.randrange(1, 5)):
            length = dice.randrange(1, 5)
            cs = [gr.Channel(capacity=dice.choice([0, 0, 1, 4])) for _ in range(length + 1)]
            for k in range(length):
                g.start(dice.choice(list(ECHOS.values()))(cs[k].reader(), cs[k + 1].writer()))
            chains.append((cs[0].writer(), cs[-1].reader()))
        sent, got = [0] * len(chains), [0] * len(chains)
        for _ in range(200):
            k = dice.randrange(len(chains))
            w, r = chains[k]
            act = dice.randrange(4)
            if act == 0 and sent[k] > got[k]:
                assert r.read() == got[k]
                got[k] += 1
            elif act == 1 and sent[k] == got[k]:
                w.write(sent[k])
                sent[k] += 1
            elif act == 2:
                gr.yield_()
            else:
                guards = [guard for w, r in chains for guard in (r, w)]
                for j in range(len(chains)):
                    guards[2 * j + 1] = gr.Output(chains[j][0], sent[j])
                index, value = gr.select(*guards)
                j = index // 2
                if index % 2:
                    sent[j] += 1
                else:
                    assert value == got[j]
                    got[j] += 1
        for k, (w, r) in enumerate(chains):
            w.retire()
            assert list(r) == list(range(got[k], sent[k]))
