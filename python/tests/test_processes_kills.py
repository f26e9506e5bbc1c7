"""Hosts are killed at any moment: no program hangs, no resource is left behind, and no values are
lost except those that the rules allow (rules 4.5, 6.4; WIRE.md 8).

Hosts are killed between two writes of a pipeline, while they start, in a choice of inputs and of
outputs, while they have large values, in the block of an extended read, while they make a value
that a reader has already committed to take, while they have ends of channels, under a supervisor,
and in an Executor. WEFT_KILLS=n makes n kills; without it, there are only a few.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import os_process_targets as targets
import os_process_targets_kills as targets_kills
import pytest

import weft.threads as th
from weft.processes import (
    Channel,
    ChannelEnd,
    Executor,
    Hosts,
    Parallel,
    PeerDied,
    ProcessDied,
    Supervisor,
)

KILLS = int(os.environ.get("WEFT_KILLS", "10"))
VALUES = 60
LARGE = 300_000  # bytes: such a value is in a segment
SLACK = 6  # the allowed difference between two counts: one host more or less holds some descriptors
# The largest number of segments of the links of two hosts, and of the hosts that the two replace.
SEGMENTS_OF_LINKS = 12


def descriptors() -> tuple[int, int]:
    """Returns the descriptors of segments of shared memory, and all others."""
    names = []
    for fd in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # this was the descriptor of the listing itself
            names.append(str(fd.readlink()))
    segments = sum("memfd:" in name for name in names)
    return segments, len(names) - segments


def segments() -> int:
    """Returns how many segments of shared memory are mapped in this OS process."""
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
    """Writes until the reader dies; kills the reader before one of the writes."""
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
    """Reads all values into `got`. Returns true if the writer died."""
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
        targets.double(a.reader(), b.writer()).on(place),
        gather(b.reader(), got),
    )
    assert got == [2 * i for i in range(len(got))]  # the values are in order, and none is doubled
    # Values that the process had read but not written may be lost, and so may those in the two
    # buffers of four places.
    assert when - 1 - 8 <= len(got) <= VALUES


def inputs(place: Any, pid: int, pick: random.Random) -> None:
    a, b, c = Channel("a"), Channel("b", capacity=pick.choice((0, 3))), Channel("c")
    got: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid, int, 2),
        numbers(b.writer(), -1, pid, lambda i: i + 1, 2),
        targets_kills.merge(a.reader(), b.reader(), c.writer()).on(place),
        gather(c.reader(), got),
    )
    for parity in (0, 1):  # the values of each input are in order, none doubled
        mine = [v for v in got if v % 2 == parity]
        assert mine == [parity + 2 * i for i in range(len(mine))]


def _offers_to_two_readers(
    worker: Any, capacity: Any, place: Any, pid: int, pick: random.Random
) -> None:
    """The worker gives each value to one of two readers: no value is lost or doubled, and each
    reader reads its values in order."""
    a, b, c = Channel("a"), Channel("b"), Channel("c", capacity=capacity(pick))
    first: list[int] = []
    second: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid),
        worker(a.reader(), b.writer(), c.writer()).on(place),
        gather(b.reader(), first),
        gather(c.reader(), second),
    )
    assert first == sorted(first) and second == sorted(second)
    assert sorted(first + second) == list(range(len(first) + len(second)))


def outputs(place: Any, pid: int, pick: random.Random) -> None:
    _offers_to_two_readers(targets_kills.offer, lambda _: 0, place, pid, pick)


def large(place: Any, pid: int, pick: random.Random) -> None:
    a, b = Channel("a", capacity=pick.choice((0, 2))), Channel("b")
    got: list[bytearray] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid, lambda i: bytearray([i]) * LARGE, 6),
        targets_kills.spoil(a.reader(), b.writer()).on(place),
        gather(b.reader(), got),
    )
    for i, value in enumerate(got):
        assert len(value) == LARGE and value[0] == 6 * i ^ 0xFF and value[-1] == 6 * i


def holding(place: Any, pid: int, pick: random.Random) -> None:
    """WIRE.md 4.6: a process that dies in the block of an extended read has ended the block."""
    a, b = Channel("a", capacity=pick.choice((0, 3))), Channel("b", capacity=pick.choice((0, 3)))
    got: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid),
        targets_kills.hold(a.reader(), b.writer()).on(place),
        gather(b.reader(), got),
    )
    assert got == [2 * i for i in range(len(got))]
    assert when - 1 - 6 <= len(got) <= VALUES


def making(place: Any, pid: int, pick: random.Random) -> None:
    """WIRE.md 4.8: a process is killed between the commit of a value and its making, while a reader
    waits for the value."""
    _offers_to_two_readers(targets_kills.make, lambda pick: pick.choice((0, 2)), place, pid, pick)


@th.process
def asks(server: Any, when: int, pid: int, got: list[int]) -> None:
    """Sends each value together with the end for its answer; kills the answering process before one
    of the values."""
    try:
        for i in range(VALUES):
            if i == when:
                os.kill(pid, signal.SIGKILL)
            reply = Channel("reply")
            reader = reply.reader()
            server.write((i, reply.writer()))
            got.append(reader.read())
    except PeerDied:
        pass


def answering(place: Any, pid: int, pick: random.Random) -> None:
    """WIRE.md 7.4: an end that was sent to a program that dies has died with it."""
    a = Channel("a", capacity=pick.choice((0, 1)))
    got: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(pid, asks(a.writer(), when, pid, got), targets_kills.answer(a.reader()).on(place))
    assert when - 1 <= len(got) <= when + 1
    assert got == [i**2 for i in range(len(got))]


@th.process
def sends_lines(out: Any, when: int, pid: int) -> None:
    """Sends reader ends. The process that receives an end gets one value through it. An end that no
    process receives dies.
    """
    with th.Group() as lines:
        try:
            for i in range(VALUES):
                if i == when:
                    os.kill(pid, signal.SIGKILL)
                line = Channel("line", capacity=1)
                lines.start(puts(line.writer(), i))
                out.write(line.reader())
        except PeerDied:
            pass


@th.process
def puts(out: Any, value: int) -> None:
    with contextlib.suppress(ChannelEnd):
        out.write(value)


@th.process
def reads_lines(inp: Any, got: list[int]) -> None:
    """Reads ends from `inp`, and one value from each of them. An end that was sent by a program
    that has since died may be dead.
    """
    try:
        while True:
            end = inp.read()
            with contextlib.suppress(PeerDied):
                got.append(end.read())
    except ChannelEnd:
        pass


def handing_on(place: Any, pid: int, pick: random.Random) -> None:
    """Ends are sent back through the process that is killed."""
    a, b = Channel("a", capacity=pick.choice((0, 2))), Channel("b", capacity=pick.choice((0, 2)))
    got: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        sends_lines(a.writer(), when, pid),
        targets_kills.hand_on(a.reader(), b.writer()).on(place),
        reads_lines(b.reader(), got),
    )
    assert got == sorted(set(got)) and len(got) <= VALUES
    assert got[: when - 6] == list(range(len(got[: when - 6])))


def opening(place: Any, pid: int, pick: random.Random) -> None:
    """Tests the channels of the killed process itself: values that would be read through their ends
    are lost with their home.
    """
    a, b = Channel("a"), Channel("b", capacity=pick.choice((0, 1)))
    got: list[int] = []
    when = pick.randrange(VALUES - 6)
    dies(
        pid,
        numbers(a.writer(), when, pid),
        targets_kills.open_lines(a.reader(), b.writer()).on(place),
        reads_lines(b.reader(), got),
    )
    assert got == list(range(len(got))) and when - 3 <= len(got) <= when + 1


@th.process
def jobs(out: Any, when: int, pid: int) -> None:
    """Writes all values; kills the worker before one of the values. The supervisor starts the
    worker again, so no write fails.
    """
    for i in range(VALUES):
        if i == when:
            os.kill(pid, signal.SIGKILL)
        out.write(i)


def supervised(place: Any, pid: int, pick: random.Random) -> None:
    """Rule 7.13: no job is lost, and at most one job is done twice."""
    a, b = Channel("a", capacity=pick.choice((0, 3))), Channel("b", capacity=pick.choice((0, 3)))
    got: list[int] = []
    Parallel(
        jobs(a.writer(), pick.randrange(VALUES - 6), pid),
        targets_kills.hold.on(Supervisor(place, restarts=2, backoff=0.0))(a.reader(), b.writer()),
        gather(b.reader(), got),
    )
    assert sorted(set(got)) == [2 * i for i in range(VALUES)] and got == sorted(got)
    assert len(got) <= VALUES + 1


KINDS = (
    pipeline,
    inputs,
    outputs,
    large,
    holding,
    making,
    answering,
    handing_on,
    opening,
    supervised,
)


def one(hosts: Hosts, pick: random.Random) -> None:
    place = hosts[pick.randrange(len(hosts))]
    if place.pid is None:  # the first call of a place starts its OS process
        Parallel(targets.total(closed()).on(place))
    pid = place.pid
    assert pid is not None
    pick.choice(KINDS)(place, pid, pick)


def starting(pick: random.Random) -> None:
    """The process is killed some time after it has begun. At that time it may not have received its
    call, may be running it, or may be done."""
    c = Channel("c")
    got: list[int] = []
    with Hosts(1) as hosts:
        pid = hosts[0].pid
        assert pid is not None
        killer = threading.Timer(pick.random() * 0.4, os.kill, (pid, signal.SIGKILL))
        killer.start()
        try:
            Parallel(targets.source.on(hosts[0])(c.writer(), VALUES), gather(c.reader(), got))
            assert len(got) == VALUES
        except ProcessDied as error:
            assert error.signal == signal.SIGKILL and error.pid == pid
        killer.cancel()
        killer.join()
    assert got == list(range(len(got)))


def executing(pick: random.Random, path: str) -> None:
    """Kills one of the pool's processes while calls wait, run and are done. Each result is right,
    or is the error that the pool is broken.
    """
    with Executor(2) as pool:
        pids = [pool.submit(os.getpid).result()]
        calls = [pool.submit(targets_kills.square, i) for i in range(200)]
        stuck = pool.submit(targets.wait_for_file, path) if pick.random() < 0.5 else None
        killer = threading.Timer(pick.random() * 0.1, os.kill, (pids[0], signal.SIGKILL))
        killer.start()
        for i, call in enumerate(calls):
            with contextlib.suppress(BrokenProcessPool):
                assert call.result() == i**2
        if stuck is not None:  # nothing writes to the file, so only the kill ends this process
            assert isinstance(stuck.exception(), BrokenProcessPool)
        killer.join()
        with contextlib.suppress(BrokenProcessPool):  # the pool notices now or at the end
            pool.submit(targets_kills.square, 3).result()


def closed() -> Any:
    c = Channel()
    reader = c.reader()
    c.writer().retire()
    return reader


class Counts:
    """Counts the resources that a kill could leave behind. After some rounds these counts must not
    grow."""

    def __init__(self) -> None:
        self.first = self._now()

    def _now(self) -> tuple[int, ...]:
        # For a thread that logs and that the module threading did not start, that module makes an
        # object that outlives the thread.
        threads = [t for t in threading.enumerate() if not isinstance(t, threading._DummyThread)]
        return descriptors()[1], zombies(), len(threads)

    def check(self) -> None:
        now = self._now()
        assert all(n <= before + SLACK for n, before in zip(now, self.first, strict=True)), (
            self.first,
            now,
        )
        # The share of a killed program is never given back, but a maker keeps at most 16 segments,
        # and a receiver at most 16 segments of others (wire 9.2).
        assert max(descriptors()[0], segments()) <= 2 * 16 + SEGMENTS_OF_LINKS


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


def test_executors_of_which_a_process_is_killed(tmp_path: Path) -> None:
    pick = random.Random(17)
    path = tmp_path / "never"
    os.mkfifo(path)
    counts = None
    for i in range(max(4, KILLS // 5)):
        executing(pick, str(path))
        if i == 2:
            counts = Counts()
    assert counts is not None
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
