"""Rules 7.5, 7.6, 7.12, 11.1, 12.1: finalisers, and other code that the interpreter calls, where a
process or a run begins or ends.

No code would close the groups, timeouts and runs that such code opens. So opening them is bad use,
and the run continues as if nothing had happened.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import signal
import subprocess
import sys
import sysconfig
from functools import partial

import pytest

from weft import _native, coroutines, greenlets, threads
from weft.coroutines import BadUse, Channel, Group

pytestmark = [
    pytest.mark.filterwarnings("ignore:a Group, entered"),
    pytest.mark.filterwarnings("ignore:.*never started"),
    # Without a GIL the warning is given twice, because the collector also finds the coroutine.
    pytest.mark.filterwarnings("ignore:.*never awaited"),
]


class Dies:
    """Calls a function when it is collected."""

    def __init__(self, act):
        self.act = act

    def __del__(self):
        self.act()


def attempt(signals, act):
    try:
        act()
    except BaseException as e:
        signals.append(e)
    else:
        signals.append(None)


def made(kind, function):
    if kind == "coroutine":

        @coroutines.process
        async def process(*things):
            function()

        return process
    return {"greenlet": greenlets, "thread": threads}[kind].process(lambda *things: function())


@coroutines.process
async def fails():
    raise ValueError("boom")


# Without a GIL the arguments of a thread process are dropped on the thread that made the process,
# and that thread is not a process.
THREAD = pytest.param(
    "thread",
    marks=pytest.mark.skipif(
        bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        reason="its arguments go elsewhere",
    ),
)
KINDS = ["coroutine", "greenlet", THREAD]


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_in_a_finaliser_of_a_process_that_has_ended(kind):  # rules 7.6, 11.1
    """The process's arguments are dropped when it ends, after its own blocks have been closed. A
    group that their finaliser then opens is bad use, or counts as left open."""
    log: list = []
    kept: list = []

    def enters():
        g = Group()
        kept.append(g)
        if kind == "coroutine":
            g.__aenter__()
        else:
            g.__enter__()
        g.start(fails())

    def main():
        pass

    for _ in range(3):
        p = made(kind, main)(Dies(lambda: attempt(log, enters)))
        with contextlib.suppress(ValueError):
            coroutines.run([p, made(kind, main)()])
        del p
        gc.collect()
    # A coroutine drops its arguments in its last step, so its group counts as a group that the
    # process has left open.
    assert [type(e) for e in log] == [type(None) if kind == "coroutine" else BadUse] * 3, log
    for g in reversed(kept):
        with contextlib.suppress(BadUse):
            g.__exit__(None, None, None)
    with Group():
        threads.yield_()


@pytest.mark.parametrize("kind", ["greenlet", THREAD])
def test_a_timeout_in_a_finaliser_of_a_process_that_has_ended(kind):  # rules 7.12, 11.1
    log: list = []
    kept: list = []

    def enters():
        t = coroutines.timeout(1000)
        kept.append(t)
        t.__enter__()

    for _ in range(3):
        p = made(kind, lambda: None)(Dies(lambda: attempt(log, enters)))
        coroutines.run([p, made(kind, lambda: None)()])
        del p
        gc.collect()
    assert [type(e) for e in log] == [BadUse] * 3, log


class Called:
    """Acts when the Python function of the package with this name is called, between two steps of
    the extension."""

    def __init__(self, name, act):
        self.name, self.act, self.acted = name, act, False

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_code.co_name == self.name and not self.acted:
            self.acted = True
            self.act()


@pytest.mark.parametrize("what", ["Group", "run", "spawn", "operation"])
@pytest.mark.parametrize("how", ["run", "block"])
def test_what_runs_as_an_outermost_run_ends(how, what):  # rules 7.5, 11.1
    """Python code puts several failures into a group when all processes have ended but the run has
    not."""
    log: list = []
    entered = Group()
    b = Channel(capacity=1)
    w = b.writer()
    act = {
        "Group": entered.__enter__,
        "run": lambda: threads.run(fails()),
        "spawn": lambda: threads.Spawn(fails()),
        "operation": lambda: threads.select(threads.Output(w, 1), threads.after(0)),
    }[what]
    sys.setprofile(Called("_several", lambda: attempt(log, act)))
    with pytest.raises(Exception) as raised:
        try:
            if how == "run":
                coroutines.run(fails(), fails())
            else:
                with Group() as g:
                    g.start(fails())
                    g.start(fails())
        finally:
            sys.setprofile(None)
    assert len(raised.value.exceptions) == 2  # type: ignore[attr-defined]
    assert [type(e) for e in log] == [BadUse], log
    with pytest.raises(BadUse, match="not open"):
        entered.__exit__(None, None, None)
    with Group():
        threads.yield_()


def test_what_a_handler_does_as_a_run_begins():  # rule 11.1: before there are processes
    log: list = []
    entered = Group()

    @coroutines.process
    async def nothing():
        pass

    raised = ctypes.PyDLL(None)["raise"]
    raised.argtypes = [ctypes.c_int]
    before = signal.signal(signal.SIGUSR1, lambda *_: attempt(log, entered.__enter__))
    try:  # C code makes both calls, so the handler is called within the run
        calls = [partial(raised, signal.SIGUSR1), partial(_native.run, (nothing(),), False)]
        list(map(partial.__call__, calls))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [type(e) for e in log] == [BadUse], log
    with Group():
        threads.yield_()


def test_a_block_that_ends_while_processes_are_listed():
    """Rule 11.1: if the iterable that gives the processes ends the block, Spawn() is bad use."""
    block = Group()

    def ends():
        block.__exit__(None, None, None)
        yield fails()

    block.__enter__()
    with pytest.raises(BadUse, match="outside any run"):
        threads.Spawn(ends())
    with pytest.raises(BadUse, match="not open"):
        block.__exit__(None, None, None)


def test_a_block_that_begins_while_processes_are_listed():  # rule 7.4
    block = Group()

    def begins():
        block.__enter__()
        yield fails()

    threads.Spawn(begins())
    with pytest.raises(ValueError, match="boom"):
        block.__exit__(None, None, None)


SITES = [
    "a value in its channel's buffer",
    "what it returned",
    "what it returned, of a process that is watched",
]


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("what", ["group", "read", "select", "Parallel", "io", "yield_", "who"])
def test_what_goes_with_a_coroutine_that_has_ended_is_in_no_process(
    what, site
):  # rules 7.7, 11.1, 12.2
    """The process's code has returned. An operation that began now would have no process to
    continue, and its object may be about to be destroyed.
    """
    log: list = []
    c = Channel()
    kept = [c.writer()]
    r = c.reader()

    def sends(operation):
        kept.append(operation)
        operation.__await__().send(None)

    acts = {
        "group": lambda: kept.append(Group()) or kept[-1].__aenter__(),
        "read": lambda: sends(r.read()),
        "select": lambda: sends(coroutines.select(r, coroutines.after(0.001))),
        "Parallel": lambda: sends(coroutines.Parallel(fails())),
        "io": lambda: sends(coroutines.io(int)()),
        "yield_": lambda: sends(coroutines.yield_()),
        "who": lambda: kept.append(coroutines.current_process()),
    }

    @coroutines.process
    async def ends(*_):
        return None if site == SITES[0] else Dies(lambda: attempt(log, acts[what]))

    @coroutines.process
    async def starts():
        async with Group() as g:
            given = []
            if site == SITES[0]:
                b = Channel(capacity=1)
                w = b.writer()
                given = [b.reader()]
                await w.write(Dies(lambda: attempt(log, acts[what])))
            p = g.start(ends(*given))
            if site == SITES[2]:
                p.ended()
            del p, given
            await coroutines.yield_()
            await coroutines.sleep(0.001)

    for _ in range(3):
        coroutines.run(starts())
    if what == "who":
        assert kept[1:] == [None] * 3
    else:
        assert [type(e) for e in log] == [BadUse] * 3, log


@pytest.mark.parametrize("kind", ["threads.process", "coroutines.process", "apart"])
def test_a_finaliser_that_runs_a_network_while_the_interpreter_ends(kind):  # rule 11.2
    """A thread that the finaliser started would never get the interpreter's lock, and code that
    waits for that thread would never continue.
    """
    made = "coroutines.process(here).on('threads')" if kind == "apart" else f"{kind}(here)"
    here = "def here():" if kind == "threads.process" else "async def here():"
    program = f"""
import sys
from weft import coroutines, threads
{here}
    return "done"
class Dies:
    def __del__(self, run=threads.run, made={made}, out=sys.stdout):
        try:
            out.write(repr(run(made())))
        except Exception as error:
            out.write(f"{{type(error).__name__}} {{error}}")
        out.flush()
kept = Dies()  # until the interpreter clears its modules
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    if kind == "coroutines.process":
        assert ended.stdout == "'done'"
    else:
        assert ended.stdout.startswith("BadUse main: process here: the interpreter is ending ")
