"""Hosts are killed at barriers, at any moment: all remaining parties learn of it, in the same phase
(rules 8.1, 8.7; WIRE.md 4.9 to 4.11).

The killed process has a party in a thread, or two parties of one scheduler that enrol and resign,
or a party whose barrier is a guard of a choice, or is the home of the barrier. The process is
killed before a party arrives, while one waits, when all meet, or at a random moment. Two parties
remain: one in this program, and one in a host that survives. WEFT_KILLS=n makes n / 5 such kills;
without it, there are only a few.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable
from typing import Any

import os_process_targets as targets
import os_process_targets_kills_barriers as targets_kills_barriers
import pytest
from test_processes_kills import KILLS, Counts, closed

import weft.coroutines as co
import weft.threads as th
from weft.processes import (
    Barrier,
    Channel,
    ChannelEnd,
    Hosts,
    Parallel,
    PeerDied,
    ProcessDied,
)

PHASES = 12
Kill = Callable[[str, int], None]  # called before each step of a party

# --- the process that kills, and its moment -------------------------------------------------------


def killer(pid: int, pick: random.Random) -> Kill:
    """Returns a function that kills once: at a step of one of the remaining parties, or shortly
    after that step."""
    who = pick.choice(("feeds", "arrives", "has met", "hears"))
    when = pick.randrange(PHASES - 3)
    late = pick.choice((0.0, 0.0, pick.random() * 0.002))
    done = False

    def asked(step: str, i: int) -> None:
        nonlocal done
        if done or step != who or i < when:
            return
        done = True
        if late:
            threading.Timer(late, os.kill, (pid, signal.SIGKILL)).start()
        else:
            os.kill(pid, signal.SIGKILL)

    return asked


# --- the processes here ---------------------------------------------------------------------------


@th.process
def feeds(out: Any, kill: Kill) -> None:
    """Writes a value for each phase, until there is no reader."""
    with contextlib.suppress(ChannelEnd):
        i = 0
        while True:
            kill("feeds", i)
            out.write(i)
            i += 1


@th.process
def hears(inp: Any, values: list[int], kill: Kill) -> None:
    with contextlib.suppress(ChannelEnd):
        for i in inp:
            values.append(i)
            kill("hears", i)


def is_told(barrier: Any) -> None:
    """Checks that the barrier has died for good."""
    for again in (barrier.sync, barrier.sync):
        with pytest.raises(PeerDied, match="barrier"):
            again()


def take_part(barrier: Any, phases: list[int], kill: Kill) -> None:
    try:
        while True:
            kill("arrives", len(phases))
            barrier.sync()
            phases.append(len(phases) + 1)
            kill("has met", len(phases))
    except PeerDied as error:
        assert "barrier" in str(error)
    is_told(barrier)


@th.process
def takes_part(barrier: Any, phases: list[int], kill: Kill) -> None:
    take_part(barrier, phases, kill)


@co.process
async def takes_part_async(barrier: Any, phases: list[int], kill: Kill) -> None:
    try:
        while True:
            kill("arrives", len(phases))
            await barrier.sync()
            phases.append(len(phases) + 1)
            kill("has met", len(phases))
    except PeerDied as error:
        assert "barrier" in str(error)
    with pytest.raises(PeerDied, match="barrier"):
        await barrier.sync()


@th.process
def takes_part_in_its(ends: Any, phases: list[int], kill: Kill) -> None:
    """Takes part in a barrier of the process that is killed. Returns the barrier, if the process
    had sent it."""
    with contextlib.suppress(ChannelEnd):
        take_part(ends.read(), phases, kill)


@th.process
def dies(pid: int, *network: Any) -> None:
    """Runs the processes as a separate network, so that their deaths end no other process."""
    with pytest.raises(ProcessDied) as raised:
        Parallel(*network)
    assert raised.value.signal == signal.SIGKILL and raised.value.pid == pid


# --- one kill -------------------------------------------------------------------------------------


def victim(worker: Any, place: Any, pid: int, other: Any, pick: random.Random) -> None:
    """Rule 8.1: all remaining parties have seen the end of the same phases.

    Wire 4.11: the killed party had arrived for the last of these phases, or had been notified of
    its end.
    """
    kill = killer(pid, pick)
    b = Barrier(3)
    a, c, d = Channel("a"), Channel("c"), Channel("d", capacity=pick.choice((0, 2)))
    values: list[int] = []
    here: list[int] = []
    values_there: list[int] = []
    attends = pick.choice(
        (
            targets_kills_barriers.attends,
            targets_kills_barriers.attends_async,
            targets_kills_barriers.attends_by_choice,
        )
    )
    mine = pick.choice((takes_part, takes_part_async))
    got = Parallel(
        dies(pid, worker.on(place)(b, a.reader(), c.writer())),
        attends.on(other)(b, d.writer()),
        feeds(a.writer(), kill),
        hears(c.reader(), values, kill),
        hears(d.reader(), values_there, kill),
        mine(b, here, kill),
    )
    assert "barrier" in got[1]
    assert here == values_there == list(range(1, len(here) + 1))
    if worker is not targets_kills_barriers.meets_or_reads:
        # Each phase is reported twice; when the second report arrives, the phase has ended.
        assert values == [i // 2 for i in range(len(values))]
        assert len(here) - 1 <= len(values) // 2 <= len(here)
    else:
        assert values == sorted(values)


def home(place: Any, pid: int, other: Any, pick: random.Random) -> None:
    """Rule 8.7: the barrier's home is lost. The home may have notified one of two parties that a
    phase has ended, but not the other.
    """
    kill = killer(pid, pick)
    a, c, d = Channel("a"), Channel("c"), Channel("d")
    first, second = Channel("first", capacity=1), Channel("second", capacity=1)
    values: list[int] = []
    here: list[int] = []
    values_there: list[int] = []
    got = Parallel(
        dies(
            pid,
            targets_kills_barriers.owns.on(place)(
                first.writer(), second.writer(), a.reader(), c.writer()
            ),
        ),
        targets_kills_barriers.gets_it_and_attends.on(other)(second.reader(), d.writer()),
        feeds(a.writer(), kill),
        hears(c.reader(), values, kill),
        hears(d.reader(), values_there, kill),
        takes_part_in_its(first.reader(), here, kill),
    )
    assert "barrier" in got[1] or not values_there
    assert here == list(range(1, len(here) + 1)) and values_there == list(
        range(1, len(values_there) + 1)
    )
    assert abs(len(here) - len(values_there)) <= 1
    assert values == [i // 2 for i in range(len(values))]
    assert len(values) // 2 - 1 <= min(len(here), len(values_there))


KINDS = ("meets", "two_meet", "meets_or_reads", "home")


def one(hosts: Hosts, kind: str, pick: random.Random) -> None:
    place, other = pick.sample([hosts[0], hosts[1]], 2)
    for each in (place, other):
        if each.pid is None:  # the first call of a place starts its OS process
            Parallel(targets.total(closed()).on(each))
    pid = place.pid
    assert pid is not None
    if kind == "home":
        home(place, pid, other, pick)
    else:
        victim(getattr(targets_kills_barriers, kind), place, pid, other, pick)


@pytest.mark.parametrize("kind", KINDS)
def test_hosts_that_are_killed_at_barriers(kind: str) -> None:
    pick = random.Random(f"{kind} 21")
    with Hosts(2, backoff=0.0) as hosts:
        counts = None
        for i in range(max(3, KILLS // 20)):
            one(hosts, kind, pick)
            if i == 8:
                counts = Counts()
        if counts is not None:
            counts.check()
