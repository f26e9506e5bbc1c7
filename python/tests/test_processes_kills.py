"""Hosts that are killed at any moment: nothing hangs, nothing is left, and only what the rules allow is lost (rules 4.5, 6.4; WIRE.md 8).

WEFT_KILLS=n: so many kills; else a slice.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import away

import weft.threads as th
from weft.processes import Channel, ChannelEnd, Hosts, Parallel, PeerDied, ProcessDied

KILLS = int(os.environ.get("WEFT_KILLS", "30"))
VALUES = 60


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@th.process
def numbers(out: Any, when: int, pid: int) -> None:
    """Writes until the reader dies, and kills it before one of them."""
    try:
        for i in range(VALUES):
            if i == when:
                os.kill(pid, signal.SIGKILL)
            out.write(i)
    except PeerDied:
        pass


@th.process
def gather(inp: Any, got: list[int]) -> bool:
    """Reads all that comes. True: the writer died."""
    try:
        while True:
            got.append(inp.read())
    except PeerDied:
        return True
    except ChannelEnd:
        return False


def one(hosts: Hosts, pick: random.Random) -> None:
    place = hosts[pick.randrange(len(hosts))]
    a, b = Channel("a", capacity=pick.choice((0, 0, 4))), Channel("b", capacity=pick.choice((0, 4)))
    got: list[int] = []
    if place.pid is None:  # it gets a new one with its first call
        Parallel(away.total(_closed()).on(place))
    pid = place.pid
    assert pid is not None
    when = pick.randrange(VALUES)

    try:
        Parallel(
            numbers(a.writer(), when, pid),
            away.double(a.reader(), b.writer()).on(place),
            gather(b.reader(), got),
        )
        raise AssertionError("it was killed, and nobody said so")
    except ProcessDied as error:
        assert error.signal == signal.SIGKILL and error.pid == pid
    assert got == [2 * i for i in range(len(got))]  # in order, and nothing doubled
    assert (
        when - 1 - 8 <= len(got) <= VALUES
    )  # lost: what was in its hands, and in the buffers of four


def _closed() -> Any:
    c = Channel()
    reader = c.reader()
    c.writer().retire()
    return reader


def test_hosts_that_are_killed_at_any_moment() -> None:
    pick = random.Random(15)
    with Hosts(2, backoff=0.0) as hosts:
        one(hosts, pick)
        before, threads = None, None
        for i in range(KILLS):
            one(hosts, pick)
            if i == 5:
                before, threads = descriptors(), threading.active_count()
        assert before is None or descriptors() <= before + 4
        assert threads is None or threading.active_count() <= threads + 4
