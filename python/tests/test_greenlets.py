"""Greenlet processes: the features that only greenlets have (their own stacks, one scheduler), and
networks of all kinds (section 15). The other files test what greenlets share with the other
backends.
"""

from __future__ import annotations

import contextvars
import gc
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref

import greenlet
import pytest
from parts import gr_echo, hows

from weft import coroutines as co
from weft import greenlets as gr
from weft import threads as th
from weft.errors import BadUse, Cancelled, Deadlock, Retired


@gr.process
def put(out, *values):
    for v in values:
        out.write(v)


@gr.process
def drain(source):
    return list(source)


@co.process
async def co_put(out, *values):
    for v in values:
        await out.write(v)


@co.process
async def co_drain(source):
    return [v async for v in source]


def python(text):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=280
    )


# --- a stack each ---------------------------------------------------------------------------------


def test_an_operation_waits_below_any_code():  # rule 15.4
    """Operations wait in a key function, a generator, a property: places where no coroutine
    could await."""

    @gr.process
    def sorts(source):
        return sorted("abc", key=lambda _: source.read())

    @gr.process
    def maps(source):
        def each():
            for v in source:
                yield v * 2

        return sum(map(abs, each()))

    c, d = gr.Channel("c"), gr.Channel("d")
    got = gr.Parallel(
        sorts(c.reader()), put(c.writer(), 3, 1, 2), maps(d.reader()), put(d.writer(), 1, -2)
    )
    assert got == [["b", "c", "a"], None, 6, None]


def test_each_has_its_own_depth_of_recursion():
    def deep(n, operate):
        return operate() if n == 0 else 1 + deep(n - 1, operate)

    @gr.process
    def dives(r, n):
        return deep(n, r.read)

    @gr.process
    def sinks(r):
        with pytest.raises(RecursionError):
            deep(10**6, r.read)
        return deep(10, r.read)

    c = gr.Channel("c")
    limit = sys.getrecursionlimit()
    got = gr.Parallel(
        *(dives(c.reader(), limit // 2) for _ in range(5)),
        sinks(c.reader()),
        put(c.writer(), *[0] * 6),
    )
    assert got == [limit // 2] * 5 + [10, None]


def test_deep_c_stacks_are_kept_apart():
    """Every level of the recursion is a call from C, so large parts of the C stacks overlap."""

    def deep(n, read):
        if n == 0:
            return read()
        return max([n], key=lambda k: deep(k - 1, read)) and n

    @gr.process
    def dives(r, n):
        return deep(n, r.read)

    c = gr.Channel("c")
    got = gr.Parallel([dives(c.reader(), n) for n in (1, 60, 20, 80, 5)], put(c.writer(), *[1] * 5))
    assert got == [1, 60, 20, 80, 5, None]


def test_each_handles_its_own_exception():
    @gr.process
    def handles(r, n):
        try:
            raise KeyError(n)
        except KeyError as before:
            assert r.read() == "go"
            assert sys.exc_info()[1] is before
            try:
                raise ValueError from None
            except ValueError as error:
                assert error.__context__ is before
        assert sys.exc_info() == (None, None, None)
        r.read()
        return n

    c = gr.Channel("c")
    got = gr.Parallel([handles(c.reader(), n) for n in range(3)], put(c.writer(), *["go"] * 6))
    assert got == [0, 1, 2, None]


def test_a_failure_has_the_traceback_of_its_stack():
    def inner():
        raise ZeroDivisionError

    @gr.process
    def fails(r):
        r.read()
        inner()

    c = gr.Channel("c")
    with pytest.raises(ZeroDivisionError) as caught:
        gr.Parallel(fails(c.reader()), put(c.writer(), 1))
    assert [t.name for t in caught.traceback][-2:] == ["fails", "inner"]


def test_variables_of_the_context_are_each_ones_own():
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=-1)

    @gr.process
    def sets(n):
        before = variable.get()
        variable.set(n)
        gr.yield_()
        return before, variable.get()

    @gr.process
    def outer():
        variable.set(7)
        return gr.Parallel(sets(n) for n in range(3))

    assert gr.run(outer()) == [(7, 0), (7, 1), (7, 2)]
    assert variable.get() == -1


def test_a_parked_greenlet_keeps_what_it_has_and_lets_go_of_it():
    class Thing:
        pass

    things = [Thing(), Thing()]
    seen = [weakref.ref(t) for t in things]

    @gr.process
    def keeps(r, thing):
        r.read()
        return thing is not None

    @gr.process
    def collects(w):
        gr.yield_()
        gc.collect()
        assert all(ref() for ref in seen)
        w.write(1)
        w.write(1)

    c = gr.Channel("c")
    network = [*(keeps(c.reader(), things.pop()) for _ in range(2)), collects(c.writer())]
    assert gr.Parallel(network) == [True, True, None]
    del network
    gc.collect()
    assert not any(ref() for ref in seen)


# --- starting and ending --------------------------------------------------------------------------


def test_many_start_one_another():
    """If greenlets were started from within one another, each new greenlet would be deeper on the
    stack, and the stack would overflow."""

    @gr.process
    def starts(n):
        return 1 + gr.Parallel(starts(n - 1))[0] if n else 0

    assert gr.run(starts(3000)) == 3000


def test_a_thousand_meet():
    c = gr.Channel("c")
    got = gr.Parallel(
        [put(c.writer(), n) for n in range(1000)], [drain(c.reader()) for _ in range(10)]
    )
    assert sorted(v for each in got[1000:] for v in each) == list(range(1000))


def test_one_that_never_ran():
    with pytest.warns(RuntimeWarning, match="process put was made and never started"):
        put(gr.Channel("c").writer(), 1)
        gc.collect()


def test_one_cancelled_before_it_ran():  # rule 6.5
    log = []

    @gr.process
    def logs(r):
        log.append("begins")
        r.read()
        log.append("goes on")

    @gr.process
    def cancels(c):
        with gr.Group() as group:
            group.start(logs(c.reader())).cancel()

    c = gr.Channel("c")
    kept = c.writer()
    gr.run(cancels(c))
    assert log in ([], ["begins"])
    assert not kept.closed


def test_a_process_may_make_greenlets_of_its_own():
    """The process parks and continues in whichever greenlet its code runs."""

    @gr.process
    def delegates(source):
        main = greenlet.getcurrent()

        def reads():
            first = source.read()
            main.switch(first)
            return source.read()

        helper = greenlet.greenlet(reads)
        first = helper.switch()
        second = source.read()
        return first, second, helper.switch()

    c = gr.Channel("c")
    assert gr.Parallel(delegates(c.reader()), put(c.writer(), 1, 2, 3))[0] == (1, 2, 3)


def test_an_exception_thrown_into_a_greenlet_withdraws_its_operation():  # rule 6.2
    inside = []

    @gr.process
    def waits(r):
        inside.append(greenlet.getcurrent())
        try:
            r.read()
        except LookupError:
            return "thrown"

    @gr.process
    def throws(c):
        # This is called in a greenlet beside the process, so that control returns to the process.
        gr.yield_()
        assert c.stats().waiting_readers == 1
        inside[0].parent = greenlet.getcurrent()
        inside[0].throw(LookupError)
        return c.stats().waiting_readers

    c = gr.Channel("c")
    kept = c.writer()
    assert gr.Parallel(waits(c.reader()), throws(c)) == ["thrown", 0]
    assert not kept.closed


def test_a_finaliser_does_not_wait_in_a_greenlet():  # rule 11.1
    messages = []

    class Reads:
        def __init__(self, r):
            self.r = r

        def __del__(self):
            try:
                self.r.read()
            except BadUse as error:
                messages.append(str(error))

    @gr.process
    def drops(w, thing):
        w.write(thing)  # dropped by the buffer, and freed at a safe point
        del thing
        w.write(1)
        gr.yield_()
        w.write(2)

    c = gr.Channel("c", capacity=1, overflow="drop_oldest")
    d = gr.Channel("d")
    kept, r = d.writer(), c.reader()
    gr.run(drops(c.writer(), Reads(d.reader())))
    gc.collect()
    assert len(messages) == 1
    assert "finaliser" in messages[0]
    assert (r.closed, kept.closed) == (False, False)


def test_the_report_names_the_line_where_each_is_parked():  # rule 10.2
    def helper(r):
        return r.read()  # here

    @gr.process
    def waits(r):
        helper(r)

    c = gr.Channel("tea")
    kept = c.writer()
    with pytest.raises(Deadlock) as caught:
        gr.run(waits(c.reader()), waits(c.reader()))
    line = helper.__code__.co_firstlineno + 1
    assert [(p.path, p.at.rpartition(":")[2]) for p in caught.value.processes] == [
        ("main/waits[0]", str(line)),
        ("main/waits[1]", str(line)),
    ]
    assert not kept.closed


def test_without_the_package_greenlet():
    done = python(
        """
        import sys
        sys.modules["greenlet"] = None
        import weft.coroutines, weft.threads
        for attempt in (lambda: __import__("weft.greenlets"), lambda: weft.threads.process(print).on("greenlets")):
            try:
                attempt()
            except ImportError as e:
                print(e)
        """
    )
    assert done.stdout.count("install it: pip install 'weft-csp[greenlets]'") == 2, done


def test_the_interpreter_ends_while_greenlets_are_parked():
    done = python(
        """
        import sys
        from weft.greenlets import Channel, process, run
        c = Channel("c")
        kept = c.writer()
        @process
        def waits(r):
            try:
                r.read()
            finally:
                print("cleaned up")
        @process
        def leaves():
            sys.exit(3)
        run(waits(c.reader()), leaves())
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "cleaned up\n", "")


# --- all kinds in one network ---------------------------------------------------------------------


def test_on_says_where_a_process_runs():  # rule 15.1
    here = threading.get_ident()

    @gr.process
    def which(x):
        return x, threading.get_ident() == here

    @co.process
    async def co_which(x):
        return x, threading.get_ident() == here

    got = gr.run(
        which(1), which.on(th)(2), which.on("greenlets")(3), co_which(4), co_which.on(th)(5)
    )
    assert got == [(1, True), (2, False), (3, True), (4, True), (5, False)]
    assert which.on(th).__name__ == "which"
    p = which.on(th).on(gr)(6).named("six")
    assert (gr.run(p), p.name) == ((6, True), "six")


def test_on_keeps_the_object_of_a_method():
    class Scale:
        def __init__(self, by):
            self.by = by

        @gr.process
        def times(self, x):
            """Multiplies."""
            return self.by * x

    s = Scale(3)
    assert gr.run(s.times(2), s.times.on("threads")(3), Scale.times.on(th)(s, 4)) == [6, 9, 12]
    assert s.times.__doc__ == "Multiplies."


@pytest.mark.parametrize(
    ("function", "backend", "message"),
    [
        (put, co, "write an `async def`"),
        (put, "mars", "no such backend"),
        (put, sys, "no such backend"),
        (put, 3, "no such backend"),
        (co_put, gr, "or write it as a `def`"),
        (co_put.on(th), "greenlets", "or write it as a `def`"),
    ],
)
def test_where_it_cannot_run(function, backend, message):  # rule 15.3
    with pytest.raises(BadUse, match=message):
        function.on(backend)


def test_a_coroutine_on_a_thread_of_its_own_composes_there():  # rule 15.3
    @co.process
    async def identifies():
        await co.yield_()
        return threading.get_ident()

    @co.process
    async def composes(c):
        own = threading.get_ident()
        together = await co.Parallel(identifies(), identifies(), co_put(c.writer(), 1))
        async with co.Group() as group:
            p = group.start(identifies())
        await co.sleep(0.001)
        return {own, *together[:2], p.result} == {own}

    c = gr.Channel("c")
    assert gr.run(composes.on("threads")(c), drain(c.reader())) == [True, [1]]


def test_a_coroutine_on_a_thread_of_its_own_fails_and_is_cancelled():  # rules 7.2, 6.1
    log = []

    @co.process
    async def waits(r):
        try:
            await r.read()
        except Cancelled:
            log.append("cancelled")
            raise

    @co.process
    async def fails():
        raise ZeroDivisionError

    for failing in (fails, fails.on("threads")):
        c = co.Channel("c")
        kept = c.writer()
        with pytest.raises(ZeroDivisionError):
            gr.run(waits.on("threads")(c.reader()), failing())
        assert not kept.closed
    assert log == ["cancelled"] * 2


def test_a_deadlock_across_all_kinds():  # rule 10.2
    a, b, c, d = (gr.Channel(n) for n in "abcd")

    @gr.process
    def passes(source, sink):
        sink.write(source.read())

    @co.process
    async def co_passes(source, sink):
        await sink.write(await source.read())

    with pytest.raises(Deadlock) as caught:
        gr.run(
            passes(a.reader(), b.writer()),
            passes.on(th)(b.reader(), c.writer()),
            co_passes(c.reader(), d.writer()),
            co_passes.on(th)(d.reader(), a.writer()),
        )
    assert sorted(caught.value.knot) == [
        "main/co_passes[0]",
        "main/co_passes[1]",
        "main/passes[0]",
        "main/passes[1]",
    ]
    assert all("test_greenlets.py:" in p.at for p in caught.value.processes)


def test_poison_passes_through_all_kinds():  # rule 4.3
    a, b, c = (gr.Channel(n) for n in "abc")

    @gr.process
    def poisons(sink, source):
        sink.write(1)
        assert source.read() == 1
        sink.poison(3)
        with pytest.raises(gr.Poisoned) as caught:
            source.read()
        return caught.value.strength

    got = gr.run(
        poisons(a.writer(), c.reader()),
        gr_echo.on(th)(a.reader(), b.writer()),
        gr_echo(b.reader(), c.writer()),
    )
    assert hows(got) == [3, "<poisoned>", "<poisoned>"]


def test_a_thread_runs_a_network_of_greenlets():
    @gr.process
    def inner():
        return threading.get_ident()

    @th.process
    def outer():
        c = th.Channel("c")
        here = threading.get_ident()
        got = th.Parallel(inner(), put(c.writer(), 1), drain(c.reader()))
        return got == [here, None, [1]]

    assert gr.run(outer(), outer()) == [True, True]


def test_a_coroutine_starts_greenlets_and_they_coroutines():
    @gr.process
    def makes(c):
        return gr.Parallel(co_put(c.writer(), 1, 2), drain(c.reader()))[1]

    @co.process
    async def begins():
        c = co.Channel("c")
        with pytest.raises(BadUse, match=r"await that of weft\.coroutines"):
            gr.Parallel(makes(c))
        return (await co.Parallel(makes(c)))[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert gr.run(begins()) == [1, 2]


def test_spawned_greenlets_are_waited_for():  # rule 7.4
    log = []

    @gr.process
    def late(r):
        log.append(r.read())

    @gr.process
    def spawns(c):
        gr.Spawn(late(c.reader()))

    c = gr.Channel("c")
    gr.run(spawns(c), put(c.writer(), "later"))
    assert log == ["later"]


def test_retired_ends_a_greenlet_quietly():  # rule 3.5
    @gr.process
    def reads(r):
        while True:
            r.read()

    @gr.process
    def sees(r):
        with pytest.raises(Retired):
            r.read()
        return "retired"

    c = gr.Channel("c")
    results = gr.Parallel(reads(c.reader()), put(c.writer(), 1))
    assert hows(results) == ["<retired>", None]
    d = gr.Channel("d")
    assert gr.Parallel(sees(d.reader()), put(d.writer())) == ["retired", None]
