"""A check beside other threads, networks, tokens and hosts of its program (rule 17.9)."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

import weft
from weft import BadUse, Channel, Outside, process, run


@process
async def waits(inp: Any) -> None:
    await inp.read()


@process
async def writes(out: Any) -> None:
    await out.write(1)


def stands() -> None:
    """Deadlocks: processes hold both ends of the channel, but none writes. (If no process held an
    end, a thread outside might use it, so there would be no deadlock.)
    """
    c, d = Channel("c"), Channel("d")
    mine = c.writer(), d.writer()
    run(waits(c.reader()), waits(d.reader()))
    del mine


@contextlib.contextmanager
def a_thread() -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


@contextlib.contextmanager
def a_network_on_another_thread() -> Iterator[None]:
    """Runs a network on another thread, which performs operations all the time. The check must
    neither disturb that network nor decide anything in it.
    """
    over, begun, count = threading.Event(), threading.Event(), []

    @process
    async def numbers(out: Any) -> None:
        n = 0
        while not over.is_set():
            await out.write(n)
            n += 1
            if n == 100:
                begun.set()

    @process
    async def counts(inp: Any) -> None:
        expected = 0
        async for n in inp:
            assert n == expected
            expected += 1
        count.append(expected)

    c = Channel("beside")
    thread = threading.Thread(target=lambda: run(numbers(c.writer()), counts(c.reader())))
    thread.start()
    assert begun.wait(60)
    yield
    over.set()
    thread.join()
    assert count and count[0] >= 100


@contextlib.contextmanager
def a_handler_of_signals() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    yield
    signal.signal(signal.SIGUSR2, before)


@contextlib.contextmanager
def a_host() -> Iterator[None]:
    from weft.processes import Hosts

    with Hosts(1):
        yield


BESIDE: list[Callable[[], AbstractContextManager[Any]]] = [
    a_thread,
    a_network_on_another_thread,
    a_handler_of_signals,
    a_host,
    Outside,
    lambda: Outside(due=True),
]


@pytest.mark.parametrize(
    "beside", BESIDE, ids=lambda b: getattr(b, "__name__", "") if b is not BESIDE[-1] else "due"
)
def test_nothing_outside_keeps_a_checked_network_from_its_deadlock(
    beside: Callable[[], AbstractContextManager[Any]],
) -> None:
    with beside():
        report = weft.check(stands)
    assert report.kind == "deadlock"


def test_a_token_of_outside_is_bad_use_in_a_check() -> None:
    def opens() -> None:
        with Outside():
            stands()

    report = weft.check(opens)
    assert report.kind == "exception" and "in a check nothing is outside" in report.what


def test_two_threads_check_one_after_the_other() -> None:
    goes = threading.Event()
    log: list[str] = []

    def checks() -> None:
        goes.wait()
        try:
            weft.check(stands)
        except BadUse as error:
            log.append(str(error))

    thread = threading.Thread(target=checks)
    thread.start()

    def checked() -> None:
        if not log:
            goes.set()
            thread.join()
        c = Channel("c")
        run(waits(c.reader()), writes(c.writer()))

    report = weft.check(checked)
    assert report.kind == "", report.text
    assert len(log) == 1 and "another thread of this program checks" in log[0]
    assert weft.check(stands).kind == "deadlock"  # a check may begin now
