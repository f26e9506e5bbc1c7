"""Tests that threads that only carry bytes spin before they sleep (WIRE-NETWORKS.md 17.25)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest

from weft._extension import native as _native
from weft._net import loop as _net_loop


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_what_is_there_already(pipe):  # wire 17.25
    os.write(pipe[1], b"x")
    for ms in (-1, 0, 1, 100_000):
        assert _native._wait_for(pipe[0], ms) is True


def test_what_never_comes(pipe):  # wire 17.25
    """A thread that repeatedly waits without success spins less and less, and sleeps for the rest
    of each wait."""
    for ms in (0, 1, 2) * 10:
        assert _native._wait_for(pipe[0], ms) is False


@pytest.mark.parametrize("looks", [0, 3000], ids=["sleeps", "looks"])
def test_what_comes_meanwhile(pipe, looks):  # wire 17.25
    """The byte arrives from a thread that takes the GIL while this thread waits. The byte also
    arrives if earlier answers were so quick that this thread spins for the next answer.
    """
    here = os.pipe()

    def answer() -> None:
        while os.read(here[0], 1) == b"?":
            os.write(pipe[1], b"!")

    answers = threading.Thread(target=answer)
    answers.start()
    try:
        for _ in range(looks + 1):
            os.write(here[1], b"?")
            assert _native._wait_for(pipe[0], -1) is True
            assert os.read(pipe[0], 1) == b"!"
    finally:
        os.write(here[1], b".")
        answers.join()
        for end in here:
            os.close(end)


def test_the_loop_waits_so(monkeypatch):  # wire 17.25
    """The loop never waits for a timer with a time of 0, since it would then never sleep."""
    waits = []
    wait = _native._wait_for

    def waited(fd: int, ms: int) -> bool:
        waits.append((fd, ms))
        return wait(fd, ms)

    monkeypatch.setattr(_native, "_wait_for", waited)
    loop = _net_loop.use()
    try:
        for seconds in (0, 1e-9, 0.0001, 0.002):
            _net_loop.call(loop, asyncio.sleep(seconds))
        own = loop._selector.fileno()  # type: ignore[attr-defined]
    finally:
        _net_loop.done(loop)
    assert {fd for fd, _ in waits} == {own}
    assert {ms > 0 for _, ms in waits if ms != -1} == {True}
