"""Hosts that are killed at any moment: nothing hangs, nothing is left, and only what the rules allow is lost (rules 4.5, 6.4; WIRE.md 8).

They are killed between two writes of a pipeline, while they start, in a choice of inputs and of outputs, and with large values in hand.
WEFT_KILLS=n: so many kills; else a slice.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import away
import away_kills
import pytest

import weft.threads as th
from weft.processes import Channel, ChannelEnd, Hosts, Parallel, PeerDied, ProcessDied

KILLS = int(os.environ.get("WEFT_KILLS", "30"))
VALUES = 60
LARGE = 300_000  # bytes: it lies in a segment
SLACK = 6  # of what is counted: a host more or less has some
SEGMENTS_OF_LINKS = 12  # of two hosts, and of those that they take the place of


def descriptors() -> tuple[int, int]:
    """Those of segments of shared memory, and all others."""
    names = []
    for fd in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # it was of the listing itself
            names.append(str(fd.readlink()))
    segments = sum("memfd:" in name for name in names)
    return segments, len(names) - segments


def segments() -> int:
    """Of shared memory, mapped here."""
    return Path("/proc/self/maps").read_text(encoding="utf-8").count("memfd:")


def zombies() -> int:
    n = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        n += fields[0] == "Z" and int(fields[1]) == os.getpid()
    return n


@th.process
def numbers(
    out: Any, when: int, pid: int, value: Callable[[int], Any] = int, step: int = 1
) -> None:
    """Writes until the reader dies, and kills it before one of them."""
    try:
        for i in range(0, VALUES, step):
            if i >= when >= 0:
                os.kill(pid, signal.SIGKILL)
                when = -1
            out.write(value(i))
    except PeerDied:
        pass


@th.process
def gather(inp: Any, got: list[Any]) -> bool:
    """Reads all that comes. True: the writer died."""
    try:
        while True:
            got.append(inp.read())
    except PeerDied:
        return True
    except ChannelEnd:
        return False


def dies(pid: int, *network: Any) -> None:
    try:
        Parallel(*network)
        raise AssertionError("it was killed, and nobody said so")
    except ProcessDied as error:
        assert error.signal == signal.SIGKILL and error.pid == pid


def pipeline(place: Any, pid: int, pick: random.Random) -> None:
    a, b = Channel("a", capacity=pick.choice((0, 0, 4))), Channel("b", capacity=pick.choice((0, 4)))
    got: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid),
        away.double(a.reader(), b.writer()).on(place),
        gather(b.reader(), got),
    )
    assert got == [2 * i for i in range(len(got))]  # in order, and nothing doubled
    # Lost: what was in its hands, and in the buffers of four.
    assert when - 1 - 8 <= len(got) <= VALUES


def inputs(place: Any, pid: int, pick: random.Random) -> None:
    a, b, c = Channel("a"), Channel("b", capacity=pick.choice((0, 3))), Channel("c")
    got: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid, int, 2),
        numbers(b.writer(), -1, pid, lambda i: i + 1, 2),
        away_kills.merge(a.reader(), b.reader(), c.writer()).on(place),
        gather(c.reader(), got),
    )
    for parity in (0, 1):  # each input's in order, and nothing doubled
        mine = [v for v in got if v % 2 == parity]
        assert mine == [parity + 2 * i for i in range(len(mine))]


def outputs(place: Any, pid: int, pick: random.Random) -> None:
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    first: list[int] = []
    second: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid),
        away_kills.offer(a.reader(), b.writer(), c.writer()).on(place),
        gather(b.reader(), first),
        gather(c.reader(), second),
    )
    assert first == sorted(first) and second == sorted(second)
    assert sorted(first + second) == list(range(len(first) + len(second)))


def large(place: Any, pid: int, pick: random.Random) -> None:
    a, b = Channel("a", capacity=pick.choice((0, 2))), Channel("b")
    got: list[bytearray] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid, lambda i: bytearray([i]) * LARGE, 6),
        away_kills.spoil(a.reader(), b.writer()).on(place),
        gather(b.reader(), got),
    )
    for i, value in enumerate(got):
        assert len(value) == LARGE and value[0] == 6 * i ^ 0xFF and value[-1] == 6 * i


KINDS = (pipeline, inputs, outputs, large)


def one(hosts: Hosts, pick: random.Random) -> None:
    place = hosts[pick.randrange(len(hosts))]
    if place.pid is None:  # it gets a new one with its first call
        Parallel(away.total(_closed()).on(place))
    pid = place.pid
    assert pid is not None
    pick.choice(KINDS)(place, pid, pick)


def starting(pick: random.Random) -> None:
    """Killed some time after it has begun: it may not have heard of its call, or be in it, or be done."""
    c = Channel("c")
    got: list[int] = []
    with Hosts(1) as hosts:
        pid = hosts[0].pid
        assert pid is not None
        killer = threading.Timer(pick.random() * 0.4, os.kill, (pid, signal.SIGKILL))
        killer.start()
        try:
            Parallel(away.source.on(hosts[0])(c.writer(), VALUES), gather(c.reader(), got))
            assert len(got) == VALUES
        except ProcessDied as error:
            assert error.signal == signal.SIGKILL and error.pid == pid
        killer.cancel()
        killer.join()
    assert got == list(range(len(got)))


def _closed() -> Any:
    c = Channel()
    reader = c.reader()
    c.writer().retire()
    return reader


class Counts:
    """Of what a kill could leave behind: after some rounds there is no more of it."""

    def __init__(self) -> None:
        self.first = self._now()

    def _now(self) -> tuple[int, ...]:
        return descriptors()[1], zombies(), threading.active_count()

    def check(self) -> None:
        now = self._now()
        assert all(n <= before + SLACK for n, before in zip(now, self.first, strict=True)), (
            self.first,
            now,
        )
        # The share of a killed program is never given back, but a maker keeps no more than 16 segments (wire 9.2).
        assert max(descriptors()[0], segments()) <= 16 + SEGMENTS_OF_LINKS


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_each_kind_once(kind: Any) -> None:
    with Hosts(1) as hosts:
        pid = hosts[0].pid
        assert pid is not None
        kind(hosts[0], pid, random.Random(4))


def test_hosts_that_are_killed_at_any_moment() -> None:
    pick = random.Random(15)
    with Hosts(2, backoff=0.0) as hosts:
        counts = None
        for i in range(KILLS):
            one(hosts, pick)
            if i == 8:
                counts = Counts()
        if counts is not None:
            counts.check()


def test_hosts_that_are_killed_while_they_start() -> None:
    pick = random.Random(16)
    counts = None
    for i in range(max(4, KILLS // 5)):
        starting(pick)
        if i == 2:
            counts = Counts()
    assert counts is not None
    counts.check()
