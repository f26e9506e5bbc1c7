"""Tests the differences between versions of CPython: how an awaitable returns its value (from
3.12), the interpreter lock (from 3.13t).
"""

from __future__ import annotations

import gc
import subprocess
import sys
import sysconfig
import textwrap
import weakref
from typing import Any

import pytest

from weft.coroutines import Channel, process, run

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class Thing:
    pass


def stopped(operation: Any) -> StopIteration:
    """Returns the exception by which an operation that need not wait returns its value to the
    interpreter."""
    try:
        operation.__await__().send(None)
    except StopIteration as stop:
        return stop
    raise AssertionError("it waits")


def in_a_process(body: Any) -> None:
    """Runs `await body(reader, writer)` in a process. The channel is a buffer."""

    @process
    async def worker(r: Any, w: Any) -> None:
        await body(r, w)

    c = Channel(capacity=8)
    run(worker(c.reader(), c.writer()))


@pytest.mark.parametrize("value", [1, None, (1, 2), (), ValueError("a value"), StopIteration(7)])
def test_a_value_is_given_back_as_it_is(value: Any) -> None:
    """Rule 1.2: the value may be a tuple or an exception, which a StopIteration made in the usual
    way would unpack or become."""

    async def body(r: Any, w: Any) -> None:
        await w.write(value)
        assert await r.read() is value

    in_a_process(body)


def test_a_value_is_let_go_when_its_receiver_lets_it_go() -> None:
    """Rule 12.2: no object that Weft keeps for the next communication holds the value of the last
    communication."""

    async def body(r: Any, w: Any) -> None:
        thing = Thing()
        gone = weakref.ref(thing)
        await w.write(thing)
        del thing
        await r.read()
        gc.collect()
        assert gone() is None

    in_a_process(body)


def test_what_is_seen_of_it_stays_and_the_next_begins_clean() -> None:
    async def body(r: Any, w: Any) -> None:
        for value in "abcd":
            await w.write(value)
        first, second = stopped(r.read()), stopped(r.read())
        assert first is not second
        assert (first.value, second.value) == ("a", "b")
        first.marked = True  # type: ignore[attr-defined]
        first.__cause__ = KeyError("hung on it")
        del first, second
        third = stopped(r.read())
        assert third.value == "c"
        assert not hasattr(third, "marked")
        assert third.__cause__ is None and not third.__suppress_context__
        third.args = ("changed",)
        del third
        assert stopped(r.read()).value == "d"

    in_a_process(body)


def test_it_is_raised_without_the_exception_that_is_handled() -> None:
    async def body(r: Any, w: Any) -> None:
        await w.write("a")
        try:
            raise KeyError("handled")
        except KeyError as handled:
            assert await r.read() == "a"
            assert sys.exc_info()[1] is handled
            await w.write("b")
            stop = stopped(r.read())
            assert stop.value == "b" and stop.__context__ is None

    in_a_process(body)


def test_one_in_a_cycle_is_collected() -> None:
    async def body(r: Any, w: Any) -> None:
        for value in "abc":
            await w.write(value)
        stop = stopped(r.read())
        stop.me = stop  # type: ignore[attr-defined]
        del stop
        gc.collect()
        assert [await r.read(), await r.read()] == ["b", "c"]

    in_a_process(body)


def test_an_end_of_what_was_kept_may_run_code_that_communicates() -> None:
    """Attributes of a StopIteration are dropped when it is put aside for reuse; their finalisers
    may raise another StopIteration.
    """
    seen = []

    async def body(r: Any, w: Any) -> None:
        class Late:
            def __del__(self) -> None:
                seen.append(stopped(r.read()).value)

        for value in "abc":
            await w.write(value)
        stop = stopped(r.read())
        stop.late = Late()  # type: ignore[attr-defined]
        del stop
        gc.collect()
        assert seen == ["b"]
        assert await r.read() == "c"

    in_a_process(body)


# --- free-threaded builds -------------------------------------------------------------------------


def python(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


NETWORK = """
    import sys
    import weft.coroutines, weft.threads

    @weft.threads.process
    def numbers(out, n):
        for i in range(n):
            out.write(i)

    @weft.coroutines.process
    async def total(source):
        return sum([value async for value in source])

    channels = [weft.coroutines.Channel() for _ in range(4)]
    print(weft.coroutines.run(
        *(numbers(c.writer(), 500) for c in channels), *(total(c.reader()) for c in channels))[4:])
    print(getattr(sys, "_is_gil_enabled", lambda: True)())
"""


def test_a_network_of_threads_and_coroutines_runs_and_leaves_the_lock_as_it_is() -> None:
    """The program runs under `-W error`: on builds without an interpreter lock, weft declares that
    it needs no lock (gate.hpp).
    """
    done = python(NETWORK, "-W", "error")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str([124750] * 4), str(not FREE_THREADED)]


@pytest.mark.skipif(not FREE_THREADED, reason="not a free-threaded build")
@pytest.mark.parametrize("lock", ["0", "1"])
def test_it_runs_with_the_lock_forced_on_or_off(lock: str) -> None:
    done = python(NETWORK, "-X", f"gil={lock}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str([124750] * 4), str(lock == "1")]


# The code below would hang if the gate were held while user code runs. The gate is left while that
# code runs, so two processes run at the same time. (With an interpreter lock they take turns, and
# the test passes as well.)

TWO_AT_ONCE = """
    import sys
    from weft.{backend} import Channel, Parallel, process, run
    import weft.threads, weft.coroutines

    arrived = [False, False]

    def meet(me):  # turns round until the other is there too: nothing in it waits
        arrived[me] = True
        while not arrived[1 - me]:
            pass
        return me

    {program}
"""


def two_at_once(backend: str, program: str) -> list[str]:
    text = textwrap.dedent(TWO_AT_ONCE).format(backend=backend, program=textwrap.dedent(program))
    done = python(text, "-W", "error", *(["-X", "gil=0"] if FREE_THREADED else []))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_bodies_of_threads_run_at_once() -> None:
    assert two_at_once("threads", "print(Parallel(process(meet)(0), process(meet)(1)))") == [
        "[0, 1]"
    ]


def test_the_steps_of_coroutines_on_two_schedulers_run_at_once() -> None:
    program = """
    @weft.coroutines.process
    async def walks(me):
        return meet(me)

    print(run(walks(0), walks.on(weft.threads)(1)))
    """
    assert two_at_once("coroutines", program) == ["[0, 1]"]


def test_what_selects_compute_and_iterables_give_runs_at_once() -> None:
    """The function of a computed output runs in one thread, an iterable of processes in another."""
    program = """
    from weft.threads import Output, select

    @process
    def computes(out):
        return select(Output(out, make=lambda: meet(0)))[0]

    @process
    def starts():
        @process
        def nothing(): return "nothing"
        def one():
            meet(1)
            yield nothing()
        return Parallel(one())

    @process
    def reads(r):
        return r.read()

    c = Channel()
    print(Parallel(computes(c.writer()), starts(), reads(c.reader())))
    """
    assert two_at_once("threads", program) == ["[0, ['nothing'], 0]"]


def test_a_finaliser_of_a_dropped_value_runs_beside_others() -> None:
    """Rule 12.1: the finaliser runs at a safe point, when no lock of Weft is held."""
    program = """
    class Late:
        def __del__(self):
            meet(0)

    @process
    def drops(w):
        for value in (Late(), 1, 2):  # a buffer of one keeps the newest
            w.write(value)
            del value
        return "dropped"

    @process
    def other(w):
        w.write(0)
        return meet(1)

    c, d = Channel(capacity=1, overflow="drop_oldest"), Channel(capacity=1)
    keep = c.reader(), d.reader()
    print(Parallel(drops(c.writer()), other(d.writer())))
    """
    assert two_at_once("threads", program) == ["['dropped', 1]"]


def test_arguments_that_others_change_meanwhile() -> None:
    """Rule 2.3: the ends in a list and a dictionary are found while another thread changes both."""
    program = """
    import threading
    c = Channel()
    ends, table = [], {}
    stop = False

    def churn():
        i = 0
        while not stop:
            i += 1
            ends.append(c.writer()); table[i] = (c.writer(), [c.reader()])
            if len(ends) > 20:
                ends.clear(); table.clear()

    @process
    def holds(a, b):
        return True

    others = [threading.Thread(target=churn) for _ in range(2)]
    for t in others: t.start()
    for _ in range(300):
        assert Parallel(holds(ends, table), holds([ends], (table,))) == [True, True]
    stop = True
    for t in others: t.join()
    print("held")
    """
    assert two_at_once("threads", program) == ["held"]


@pytest.mark.skipif(not FREE_THREADED, reason="not a free-threaded build")
def test_greenlets_without_the_lock() -> None:
    """One greenlet parks in the middle of a sort, whose lists are locked: these locks are removed
    from the greenlet's stack."""
    program = """
    def key(i, r):
        r.read()
        return -i

    @process
    def sorts(r):
        numbers = list(range(50))
        numbers.sort(key=lambda i: key(i, r))
        return numbers == list(range(49, -1, -1))

    @process
    def feeds(w):
        for i in range(50):
            w.write(i)

    channels = [Channel() for _ in range(8)]
    print(run(*(sorts(c.reader()) for c in channels), *(feeds(c.writer()) for c in channels))[:8])
    """
    assert two_at_once("greenlets", program) == [str([True] * 8)]
