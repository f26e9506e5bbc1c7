"""Tests that threads that only carry bytes run as soon as they are woken (WIRE-NETWORKS.md
17.24)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import platform
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft._extension import native as _native
from weft._net import loop as _net_loop

SHORT = 100_000  # the length of a short slice, in ns
TASKS = Path("/proc/self/task")


def slice_of(thread: int) -> int:
    """Returns the time slice of a thread in ns, as the kernel reports it."""
    found = re.search(r"^se\.slice\s*:\s*(\d+)", (TASKS / f"{thread}/sched").read_text(), re.M)
    assert found is not None
    return int(found[1])


def own() -> int:
    return slice_of(threading.get_native_id())


def short() -> Iterator[str]:
    """Yields the names of the threads of this program that run with the short slice."""
    for thread in TASKS.iterdir():
        with contextlib.suppress(OSError):  # the thread has ended
            if slice_of(int(thread.name)) == SHORT:
                yield thread.name


def shows_slices() -> bool:
    version = [int(n) for n in re.findall(r"\d+", platform.release())[:2]]
    try:
        return version >= [6, 12] and own() > 0
    except (OSError, AssertionError):
        return False


pytestmark = pytest.mark.skipif(not shows_slices(), reason="Linux 6.12, which shows slices")


def in_a_thread(what) -> int:
    with concurrent.futures.ThreadPoolExecutor(1) as fresh:
        return fresh.submit(what).result()


@pytest.fixture
def loop():
    """The loop of all networks of this program."""
    used = _net_loop.use()
    yield used
    _net_loop.done(used)


async def called(what) -> int:
    return what()


def test_the_loop(loop):  # wire 17.24
    assert own() > SHORT
    assert _net_loop.call(loop, called(own)) == SHORT


def test_threads_that_the_loop_starts(loop):  # wire 17.24
    assert _net_loop.call(loop, called(lambda: in_a_thread(own))) == own()
    assert _net_loop.call(loop, asyncio.to_thread(own)) == own()


def test_a_link_to_who_carries_its_bytes():  # wire 17.24
    ours, theirs = socket.socketpair()
    before = set(short())
    link = _native._Link(ours.detach(), "woken", False, False, 0, 0, 0, 1)
    try:
        for _ in range(1_000_000):
            if not set(short()) <= before:
                break
            os.sched_yield()  # the link's thread may have only just begun
        else:
            pytest.fail("no thread has the short slice")
    finally:
        link.close("the test is over")
        theirs.close()


def test_a_thread_with_a_raised_priority_keeps_it():  # wire 17.24
    def raised() -> int:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -1)
        _native._be_prompt()
        return own()

    try:
        assert in_a_thread(raised) == own()
    except PermissionError:
        pytest.skip("who is not root raises no priority")


def test_a_lowered_priority_stays():  # wire 17.24
    def lowered() -> int:
        me = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, me, 5)
        _native._be_prompt()
        assert own() == SHORT
        return os.getpriority(os.PRIO_PROCESS, me)

    assert in_a_thread(lowered) == 5
