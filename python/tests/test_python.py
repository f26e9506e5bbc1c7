"""Tests the features that only Python has: warnings, memory, signals, the end of the interpreter,
forks, contexts, types.
"""

from __future__ import annotations

import contextvars
import gc
import inspect
import os
import signal
import subprocess
import sys
import sysconfig
import textwrap
import warnings
import weakref
from pathlib import Path

import pytest
from children import child
from parts import catch, receive, send

from weft import coroutines
from weft.errors import BadUse

SOURCES = str(Path(coroutines.__file__).parents[1])


def python(
    program: str, *, signal_at: str | None = None, timeout: float = 280
) -> subprocess.CompletedProcess[str]:
    """Runs a program; once it has printed the line `signal_at`, sends it SIGINT."""
    environment = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONUNBUFFERED": "1"}
    start = ("-W", "ignore:The global interpreter lock", "-c", textwrap.dedent(program))
    with child(*start, seconds=timeout, env=environment) as p:
        out = ""
        if signal_at is not None:
            assert p.stdout is not None
            for line in p.stdout:
                out += line
                if line.strip() == signal_at:
                    p.send_signal(signal.SIGINT)
                    break
        rest, err = p.communicate()
    return subprocess.CompletedProcess([], p.returncode, out + rest, err)


# --- never awaited --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda r, w: r.read(), "read on channel 'tea' was never awaited"),
        (lambda r, w: w.write(1), "write on channel 'tea' was never awaited"),
        (lambda r, w: coroutines.select(r), "select was never awaited"),
        (lambda r, w: coroutines.sleep(1), "sleep was never awaited"),
        (lambda r, w: coroutines.Barrier(1).sync(), "sync was never awaited"),
        (lambda r, w: coroutines.yield_(), "yield_ was never awaited"),
        (lambda r, w: coroutines.Timer(1).tick(), "tick was never awaited"),
        (lambda r, w: coroutines.Parallel(), "Parallel of 0 processes was never awaited"),
    ],
)
def test_never_awaited_warns_by_name(make, named):
    c = coroutines.Channel("tea")

    @coroutines.process
    async def forgets(r, w):
        with pytest.warns(RuntimeWarning, match=named):
            make(r, w)

    coroutines.run(forgets(+c, -c))
    assert c.stats().transfers == 0


def test_an_operation_is_awaited_once():
    c = coroutines.Channel(capacity=2)

    @coroutines.process
    async def twice(w):
        o = w.write(1)
        await o
        with pytest.raises(BadUse, match="was awaited already"):
            await o

    coroutines.run(twice(-c))


def test_one_operation_at_a_time():
    c = coroutines.Channel()

    @coroutines.process
    async def juggles(r):
        first = r.read().__await__()
        assert first.send(None) is None
        with pytest.raises(BadUse, match="one thing at a time"):
            await coroutines.sleep(1)
        first.close()
        return await coroutines.select(r, coroutines.after(0))

    keep = c.writer()
    assert coroutines.run(juggles(+c)) == (1, None)
    assert not keep.closed


# --- memory ---------------------------------------------------------------------------------------


class Thing:
    pass


def test_values_are_let_go(b):
    c, d = b.weft.Channel(), b.weft.Channel(capacity=4)
    things = [Thing() for _ in range(6)]
    refs = [weakref.ref(t) for t in things]

    async def failing(b, w):
        await catch(b, lambda: w.write(things[5]))

    async def leaver(b, r):
        await b.op(b.weft.sleep(1))

    b.run(b.process(send)(-c, *things[:2]), b.process(receive)(+c))
    b.run(b.process(send)(-d, *things[2:5]), b.process(leaver)(+d), clock="virtual")
    e = b.weft.Channel()
    b.run(b.process(failing)(-e), b.process(leaver)(+e), clock="virtual")
    things.clear()
    gc.collect()
    assert [r() for r in refs] == [None] * 6


def test_a_buffer_that_holds_its_own_end_is_collected():
    c = coroutines.Channel(capacity=2)
    thing = Thing()
    thing.end = c.reader()
    ref = weakref.ref(thing)

    @coroutines.process
    async def fills(w, values):
        await w.write(values.pop())

    keep = c.writer()
    values = [thing]
    coroutines.run(fills(c.writer(), values))
    del thing, keep, c
    coroutines.Channel().reader()  # an operation: the queued retirement of `keep` is carried out
    gc.collect()
    assert ref() is None


def test_memory_reaches_a_plateau(b):  # none of the paths below leaks an object
    def everything():
        c, d = b.weft.Channel(), b.weft.Channel(capacity=1)
        barrier = b.weft.Barrier(2)

        async def one(b, r, w):
            await b.op(w.write([1]))
            await b.op(barrier.sync())
            a = b.weft.Alternative(r, b.weft.after(0))
            await b.op(a.select())
            await b.op(b.weft.select(r, b.weft.Output(w, [2]), b.weft.after(0)))
            await b.op(b.weft.sleep(0.0001))
            w.poison()

        async def other(b, r, w):
            await b.op(r.read())
            await b.op(barrier.sync())
            try:
                async for _ in b.each(r):
                    pass
            finally:
                b.weft.current_process()

        b.run(b.process(one)(+d, -c), b.process(other)(+c, -d))
        with pytest.raises(ValueError, match="again"):
            b.run(b.process(_raises)())

    counts = []
    for k in range(60):
        everything()
        if k % 20 == 19:
            gc.collect()
            counts.append(len(gc.get_objects()))
    assert counts[2] - counts[1] < 60, (
        counts
    )  # a leak would be at least one object a round, twenty rounds


async def _raises(b):
    raise ValueError("again")


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="coroutines are left to themselves"
)
def test_the_collector_is_told_of_a_process_and_nothing_else():
    """The collector tracks neither a channel without a buffer, nor its ends, nor a coroutine before
    it is started: none of these can close a cycle."""

    @coroutines.process
    async def idle(r, w):
        pass

    gc.collect()
    before = len(gc.get_objects())
    made = [idle(+coroutines.Channel(), -coroutines.Channel()) for _ in range(100)]
    # Before 3.11 this includes the frame of the coroutine.
    each = 2 if sys.version_info < (3, 11) else 1
    assert 0 <= len(gc.get_objects()) - before - 100 * each < 10
    coroutines.run(*made)


def test_a_process_in_a_cycle_is_collected(b):  # rule 2.3
    c = b.weft.Channel()
    r = c.reader()

    async def one(b, w, others):
        await b.op(w.write(len(others)))

    thing = Thing()
    ref = weakref.ref(thing)
    thing.others = [thing]
    thing.others.append(b.process(one)(c.writer(), thing.others))
    # Without an interpreter lock the collector tracks the coroutine as well, which may be the first
    # to warn. Then the recorded warning holds the coroutine, and the coroutine holds the process,
    # which warns when it is freed.
    with warnings.catch_warnings(record=True) as message:
        warnings.simplefilter("always")
        del thing
        gc.collect()
        messages = [str(w.message) for w in message]
        message.clear()
        gc.collect()
        messages += [str(w.message) for w in message]
        message.clear()
    assert any(
        s.startswith("process one was made and never started") or "never awaited" in s
        for s in messages
    )
    assert len(messages) <= 2
    assert ref() is None
    assert b.run(b.process(receive)(r)) == []


def test_a_process_that_runs_keeps_what_its_arguments_refer_to(b):
    c = b.weft.Channel()
    thing = Thing()
    thing.value = "kept"

    async def one(b, things, w):
        gc.collect()
        await b.op(w.write(things[0].value))
        gc.collect()
        await b.op(w.write(things[0].value))

    made = [b.process(one)([thing], -c), b.process(receive)(+c)]
    del thing
    gc.collect()
    assert b.run(*made)[1] == ["kept", "kept"]


def test_a_finaliser_may_use_channels(b):  # rules 12.1, 12.2
    done = []

    class Writes:
        def __init__(self, w):
            self.w = w

        def __del__(self):
            self.w.retire()
            done.append("finalised")

    c, d = b.weft.Channel(capacity=1, overflow="drop_oldest"), b.weft.Channel()

    async def drops(b, w):
        await b.op(w.write(Writes(d.writer())))
        await b.op(w.write(None))
        await b.op(w.write(None))

    b.run(b.process(drops)(-c), b.process(receive)(+d))
    gc.collect()
    assert done == ["finalised"]


# --- signals, shutdown, fork ----------------------------------------------------------------------

NETWORK = """
    import sys
    from weft.{backend} import Channel, Parallel, process, run, Cancelled, yield_
    c = Channel("tea")
    @process
    {a}def waits(r):
        try:
            {aw}r.read()
        except Cancelled:
            print("cleaned up")
            raise
    @process
    {a}def tells(r):
        while c.stats().waiting_readers == 0:
            {aw}yield_()
        print("ready")
        {aw}r.read()
    w = c.writer()
    {start}
"""


def network(backend: str, start: str) -> str:
    words = ("async ", "await ") if backend == "coroutines" else ("", "")
    return NETWORK.format(backend=backend, a=words[0], aw=words[1], start=start)


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])
def test_ctrl_c_cancels_and_says_where(backend):
    start = "import threading; t = threading.Thread(target=threading.Event().wait, daemon=True); t.start()\n"
    start += "    try:\n        run(waits(+c), tells(+c))\n    except KeyboardInterrupt:\n        print('interrupted')"
    done = python(network(backend, start), signal_at="ready")
    assert done.stdout.splitlines() == ["ready", "cleaned up", "interrupted"]
    assert "interrupted; the processes were:" in done.stderr
    assert "main/waits: read 'tea' at <string>:" in done.stderr
    assert "main/tells" in done.stderr
    assert done.returncode == 0


def test_ctrl_c_while_a_coroutine_computes():
    done = python(
        """
        from weft.coroutines import Channel, process, run, sleep
        c = Channel("tea")
        @process
        async def computes(r):
            print("ready")
            while True:
                for _ in range(10_000):
                    pass
                await sleep(0)
        try:
            run(computes(c.reader()))
        except KeyboardInterrupt:
            print("interrupted")
        """,
        signal_at="ready",
    )
    assert done.stdout.splitlines() == ["ready", "interrupted"]
    assert "main/computes" in done.stderr


def test_ctrl_c_in_a_plain_thread_that_waits():
    done = python(
        """
        import threading
        from weft.threads import Channel
        c = Channel()
        r, w = c.reader(), c.writer()
        # A thread that might write: without it the read would be bad use at once (rule 11.2).
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        try:
            print("ready")
            r.read()
        except KeyboardInterrupt:
            print("interrupted", c.stats().waiting_readers)
        """,
        signal_at="ready",
    )
    assert done.stdout.splitlines() == ["ready", "interrupted 0"]


def test_a_handler_of_the_program_stays():
    done = python(
        """
        import signal
        from weft.coroutines import Channel, process, run
        c = Channel()
        keep = c.writer()
        signal.signal(signal.SIGINT, lambda *_: keep.retire() or print("handled"))
        @process
        async def waits(r):
            print("ready")
            async for v in r: pass
            return "ended"
        import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()
        print(run(waits(c.reader())))
        """,
        signal_at="ready",
    )
    assert done.stdout.splitlines() == ["ready", "handled", "ended"]


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])
def test_the_interpreter_ends_in_the_middle_of_a_network(backend):
    start = "import threading; t = threading.Thread(target=lambda: run(waits(+c), tells(+c)), daemon=True); t.start()\n"
    start += "    import time\n    while c.stats().waiting_readers < 2: time.sleep(0.001)\n    print('leaving')"
    done = python(network(backend, start))
    assert done.stdout.splitlines() == ["ready", "leaving"]
    assert (done.returncode, done.stderr) == (0, "")


def test_system_exit_in_a_process_ends_the_program(b):
    async def leaves(b):
        sys.exit(3)

    with pytest.raises(SystemExit) as caught:
        b.run(b.process(leaves)())
    assert caught.value.code == 3


def test_a_channel_of_before_a_fork_is_refused_in_the_child():  # rule 11.2
    done = python(
        """
        import os
        from weft.coroutines import Channel, BadUse, process, run
        c = Channel("old"); r, w = +c, -c
        pid = os.fork()
        if pid == 0:
            for use in (lambda: r.read(), lambda: w.write(1), lambda: c.reader()):
                try:
                    use()
                except BadUse as e:
                    assert "made before a fork" in str(e), e
                else:
                    os._exit(1)
            new = Channel()
            @process
            async def p(w): await w.write(1)
            @process
            async def q(r): return await r.read()
            os._exit(0 if run(p(-new), q(+new)) == [None, 1] else 2)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_without_the_extension():
    done = python(
        """
        import sys
        sys.modules["weft._native"] = None
        try:
            import weft.coroutines
        except ImportError as e:
            print(e)
        """
    )
    assert "install a C++20 compiler and the headers of Python" in done.stdout


# --- contexts, functions, types -------------------------------------------------------------------

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="default")


def test_each_process_has_its_copy_of_the_context(b):
    async def sets(b, name):
        before = variable.get()
        variable.set(name)
        for _ in range(3):
            await b.op(b.weft.yield_())
            assert variable.get() == name
        return before

    async def parent(b):
        variable.set("parent's")
        return await b.op(b.weft.Parallel(b.process(sets)(k) for k in "xyz")), variable.get()

    assert b.run(b.process(parent)()) == (["parent's"] * 3, "parent's")
    assert variable.get() == "default"
    assert b.run(b.process(sets)("x")) == "default"
    assert variable.get() == "default"


def test_process_keeps_the_function_visible():
    @coroutines.process
    async def documented(a: int, *, b: str = "x") -> float:
        """What it does."""
        return 1.0

    assert (documented.__name__, documented.__doc__) == ("documented", "What it does.")
    assert str(inspect.signature(documented)) == "(a: 'int', *, b: 'str' = 'x') -> 'float'"
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        documented()
    p = documented(1, b="y")
    assert repr(p) == "<Process documented, not started>"
    assert coroutines.run(p) == 1.0
    assert repr(p) == "<Process documented, ended>"


def test_a_method_as_process(b):
    class Counter:
        def __init__(self):
            self.n = 0

        async def go(self, b):
            self.n += 1
            return self.n

    counter = Counter()
    assert b.run(b.process(lambda b: counter.go(b))()) == 1

    class Native:
        @coroutines.process
        async def go(self, k):
            return k + 1

    assert coroutines.run(Native().go(1)) == 2
