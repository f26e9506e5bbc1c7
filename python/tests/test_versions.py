"""What differs between versions of CPython: how an awaitable gives its value back (3.12 on), the interpreter lock (3.13t on)."""

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
    """What the interpreter sees of an operation that need not wait."""
    try:
        operation.__await__().send(None)
    except StopIteration as stop:
        return stop
    raise AssertionError("it waits")


def in_a_process(body: Any) -> None:
    """Runs `await body(reader, writer)`, at a buffer."""

    @process
    async def worker(r: Any, w: Any) -> None:
        await body(r, w)

    c = Channel(capacity=8)
    run(worker(c.reader(), c.writer()))


@pytest.mark.parametrize("value", [1, None, (1, 2), (), ValueError("a value"), StopIteration(7)])
def test_a_value_is_given_back_as_it_is(value: Any) -> None:
    """Rule 1.2: also a tuple and an exception, which a StopIteration made the usual way would unpack or become."""

    async def body(r: Any, w: Any) -> None:
        await w.write(value)
        assert await r.read() is value

    in_a_process(body)


def test_a_value_is_let_go_when_its_receiver_lets_it_go() -> None:
    """Rule 12.2: nothing that is kept for the next communication holds the last one's value."""

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
    """What hangs on a StopIteration is let go while it is put by: its finaliser may raise others."""
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
        timeout=60,
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


@pytest.mark.skipif(not FREE_THREADED, reason="not a free-threaded build")
def test_importing_weft_turns_the_lock_on_and_says_so() -> None:
    """What the extension relies on (native.hpp, invariant 1). No `-X gil=1` here: CPython itself warns, by the module's name."""
    done = python(NETWORK, "-W", "always")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str([124750] * 4), "True"]
    assert "GIL" in done.stderr and "weft._native" in done.stderr


@pytest.mark.skipif(not FREE_THREADED, reason="not a free-threaded build")
def test_a_lock_that_was_forced_off_is_refused() -> None:
    done = python(NETWORK, "-X", "gil=0")
    assert done.returncode != 0
    assert "ImportError" in done.stderr and "PYTHON_GIL" in done.stderr


@pytest.mark.skipif(not FREE_THREADED, reason="not a free-threaded build")
def test_greenlets_are_refused() -> None:
    done = python("import weft.greenlets", "-W", "ignore")
    assert done.returncode != 0
    assert "ImportError" in done.stderr and "use weft.coroutines or weft.threads" in done.stderr


def test_with_the_lock_a_network_of_threads_and_coroutines_runs() -> None:
    done = python(NETWORK, "-W", "ignore")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str([124750] * 4), "True"]
