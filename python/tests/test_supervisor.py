"""Tests workers that are started again when they die (rule 7.13), and extended reads from another
OS process (rule 1.6, wire 4.6, 4.7).

Every test here starts interpreters; each start takes some 0.2 s.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
from collections.abc import Callable
from typing import Any

import os_process_targets_supervised as targets
import pytest

import weft.threads as th
from weft.processes import (
    BadUse,
    Channel,
    ChannelEnd,
    Group,
    Hosts,
    Parallel,
    PeerDied,
    ProcessDied,
    Retired,
    Supervisor,
    run,
)


@th.process
def writes(out: Any, values: list[Any]) -> list[str]:
    for value in values:
        out.write(value)
    return ["all"]


@th.process
def gathers(inp: Any) -> tuple[list[Any], str]:
    got = []
    try:
        while True:
            got.append(inp.read())
    except ChannelEnd as error:
        return got, type(error).__name__


@th.process
def numbers(out: Any) -> None:
    """Writes 0, 1, 2, …: each life of a worker reads one number."""
    with contextlib.suppress(PeerDied):
        for life in itertools.count():
            out.write(life)


ALWAYS = [(targets.holds_each, 0, "hosts"), (targets.holds_each_async, 3, "alone")]
ALL = itertools.product((targets.holds_each, targets.holds_each_async), (0, 3), ("alone", "hosts"))


@pytest.mark.parametrize(
    ("worker", "capacity", "where"),
    [
        *ALWAYS,
        *(pytest.param(*each, marks=pytest.mark.soak) for each in ALL if each not in ALWAYS),
    ],
)
def test_no_job_is_lost(worker: Any, capacity: int, where: str, caplog: Any) -> None:
    """Rule 7.13: the worker dies in the blocks of 3 and 4, twice in the block of 4. Both values are
    returned to the channel, in order, before values that were written later."""
    jobs, done, lives = Channel("jobs", capacity=capacity), Channel("done"), Channel("lives")
    with Hosts(1, backoff=0) as hosts:
        place = Supervisor(hosts if where == "hosts" else None, restarts=3, backoff=0)
        with caplog.at_level(logging.WARNING, "weft"):
            result = Parallel(
                writes(jobs.writer(), [*range(8), None]),
                worker.on(place)(jobs.reader(), done.writer(), {3: 1, 4: 3}, lives.reader()),
                gathers(done.reader()),
                numbers(lives.writer()),
            )
    assert result[:3] == [["all"], "done", ([2 * i for i in range(8)], "Retired")]
    message = [r.getMessage() for r in caplog.records if "started again" in r.getMessage()]
    assert (
        len(message) == 3
        and "SIGKILL" in message[0]
        and "(1 of 3)" in message[0]
        and "(3 of 3)" in message[2]
    )


def test_a_plain_read_has_taken_its_value() -> None:
    jobs, done, lives = Channel("jobs"), Channel("done"), Channel("lives")
    result = Parallel(
        writes(jobs.writer(), list(range(6))),
        targets.reads_each.on(Supervisor(backoff=0))(
            jobs.reader(), done.writer(), {3: 1}, lives.reader()
        ),
        gathers(done.reader()),
        numbers(lives.writer()),
    )
    assert result[:3] == [["all"], "done", ([0, 2, 4, 8, 10], "Retired")]


def test_what_was_in_hand_is_reported() -> None:
    """The value that the worker holds is added to the list and is not returned to the channel, even
    after the last death."""
    jobs, done, lives = Channel("jobs"), Channel("done"), Channel("lives")
    log: list[Any] = []

    def report(error: ProcessDied, values: list[Any]) -> None:
        log.append((error.signal, values))

    @th.process
    def supervised(*ends: Any) -> None:
        place = Supervisor(restarts=1, backoff=0, report=report)
        with pytest.raises(ProcessDied):
            Parallel(targets.holds_each.on(place)(*ends[:2], {1: 9, 3: 9}, ends[2]))

    result = Parallel(
        writes(jobs.writer(), [0, 1, 2, 3]),
        supervised(jobs.reader(), done.writer(), lives.reader()),
        gathers(done.reader()),
        numbers(lives.writer()),
    )
    assert log == [(signal.SIGKILL, [1]), (signal.SIGKILL, [3])]
    assert result[0] == ["all"] and result[2] == ([0, 4], "PeerDied")


def test_a_value_that_cannot_be_unpickled_is_reported_as_its_error() -> None:
    """Rule 7.13: the death is reported although the value cannot be unpickled."""
    jobs = Channel("jobs")
    log: list[Any] = []

    def report(error: ProcessDied, values: list[Any]) -> None:
        log.append((error.signal, values))

    @th.process
    def supervised(inp: Any) -> None:
        place = Supervisor(restarts=0, report=report)
        with pytest.raises(ProcessDied):
            Parallel(targets.dies_in_a_block.on(place)(inp))

    Parallel(writes(jobs.writer(), [targets.OnlyElsewhere()]), supervised(jobs.reader()))
    ((number, (value,)),) = log
    assert number == signal.SIGKILL
    assert isinstance(value, LookupError) and "not here" in str(value)


def test_peers_learn_of_it_when_the_supervisor_gives_up() -> None:
    """The ends die when the supervisor abandons the process, and not before, and do not retire
    (rules 4.5, 7.13)."""
    c = Channel("c")
    place = Supervisor(restarts=2, backoff=0)

    @th.process
    def supervised(out: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets.dies.on(place)(out))

    assert Parallel(supervised(c.writer()), gathers(c.reader()))[1] == ([], "PeerDied")


def test_one_that_was_started_again_and_ended_well_retires_its_ends() -> None:
    """The earlier deaths of the worker do not count as deaths of its ends."""
    jobs, done, lives = Channel("jobs"), Channel("done"), Channel("lives")
    result = Parallel(
        writes(jobs.writer(), [0, 1, None]),
        targets.holds_each.on(Supervisor(backoff=0))(
            jobs.reader(), done.writer(), {1: 1}, lives.reader()
        ),
        gathers(done.reader()),
        numbers(lives.writer()),
    )
    assert result[2] == ([0, 2], "Retired")
    with pytest.raises(Retired):
        jobs.writer()


@pytest.mark.parametrize(
    ("worker", "error"),
    [(targets.raises, ValueError), (targets.leaves, SystemExit)],
    ids=["raises", "leaves"],
)
def test_what_raises_is_not_started_again(worker: Any, error: type[BaseException]) -> None:
    c = Channel("c")
    with pytest.raises(error):
        run(worker.on(Supervisor(backoff=0))(c.writer()))


def test_the_death_of_another_is_a_failure_of_the_worker() -> None:
    c = Channel("c")
    with pytest.raises(ProcessDied, match="'dies'") as caught:
        run(targets.parent_of_one_that_dies.on(Supervisor(backoff=0))(c.writer()))
    assert "in another OS process" in str(caught.value.__cause__)


def test_a_supervisor_is_cancelled_while_it_waits() -> None:
    """A cancellation that arrives between two attempts ends a back-off of an hour."""
    c = Channel("c")
    signals = Channel("told")

    def report(error: ProcessDied, values: list[Any]) -> None:
        told_writer.write(None)

    told_writer = signals.writer()

    @th.process
    def ends_it(inp: Any) -> None:
        inp.read()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Parallel(
            targets.dies.on(Supervisor(backoff=3600, report=report))(c.writer()),
            ends_it(signals.reader()),
        )


def test_one_that_dies_of_its_cancellation_is_not_started_again() -> None:
    """A process that dies of its cancellation is not started again, because the request was met
    (rules 6.1, 6.5)."""
    lives, ready, never = Channel("lives"), Channel("ready"), Channel("never")
    kept, inp = never.writer(), ready.reader()
    lived: list[int] = []

    @th.process
    def counts(out: Any) -> None:
        with contextlib.suppress(Retired):
            for life in itertools.count():
                out.write(life)
                lived.append(life)

    worker = targets.dies_when_cancelled.on(Supervisor(backoff=0))
    with Group() as group:
        group.start(counts(lives.writer()))
        supervised = group.start(worker(lives.reader(), ready.writer(), never.reader()))
        inp.read()
        supervised.cancel()
        assert supervised.ended().wait().how == "cancelled"
    assert lived == [0]
    kept.retire()


def test_what_the_report_raises_ends_it() -> None:
    c = Channel("c")

    def report(error: ProcessDied, values: list[Any]) -> None:
        raise LookupError(values)

    with pytest.raises(LookupError):
        run(targets.dies.on(Supervisor(report=report))(c.writer()))


def test_what_comes_back_is_what_was_written() -> None:
    """Before it died, the worker changed its own copy of the value, in shared memory. The value is
    returned to the channel unchanged."""
    jobs, done, lives = Channel("jobs"), Channel("done"), Channel("lives")
    value = bytearray(os.urandom(200_000))
    result = Parallel(
        writes(jobs.writer(), [value]),
        targets.holds_arrays.on(Supervisor(backoff=0))(
            jobs.reader(), done.writer(), lives.reader()
        ),
        gathers(done.reader()),
        numbers(lives.writer()),
    )
    assert result[2] == ([bytes(value)], "Retired")


def test_several_share_a_line_of_jobs() -> None:
    """Another worker may do the job that a dead worker held."""
    jobs, done, lives = Channel("jobs"), Channel("done"), Channel("lives")
    place = Supervisor(backoff=0)

    @th.process
    def jobs_of_all(out: Any) -> None:
        for value in [*range(20), None, None]:
            out.write(value)

    result = Parallel(
        jobs_of_all(jobs.writer()),
        *[
            targets.holds_each.on(place)(
                jobs.reader(), done.writer(), {5: 2, 11: 3}, lives.reader()
            )
            for _ in range(2)
        ],
        gathers(done.reader()),
        numbers(lives.writer()),
    )
    assert sorted(result[3][0]) == [2 * i for i in range(20)]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Supervisor(restarts=-1), "restarts"),
        (lambda: Supervisor(restarts="3"), "restarts"),
        (lambda: Supervisor(backoff=-0.5), "backoff"),
        (lambda: Supervisor(backoff=float("nan")), "backoff"),
        (lambda: Supervisor("processes"), "give it Hosts"),
        (lambda: Supervisor(report=3), "report must be a function"),
        (lambda: Supervisor(forks()), "cannot start a host again.*use start='forkserver'"),
        (lambda: Supervisor(forks()[0]), "cannot start a host again.*use start='forkserver'"),
    ],
)
def test_bad_arguments(wrong: Callable[[], Any], says: str) -> None:
    with pytest.raises(BadUse, match=says):
        wrong()


def forks() -> Hosts:
    """Like the hosts of Hosts(start="fork"), these hosts start only while the program has no
    threads."""
    hosts = Hosts.__new__(Hosts)
    hosts._way = "fork"
    hosts._places = [None]  # type: ignore[list-item]
    return hosts


# --- extended reads from another OS process -------------------------------------------------------


@pytest.mark.parametrize(
    "worker", [targets.extended, targets.extended_async], ids=lambda w: w.__name__
)
@pytest.mark.parametrize("capacity", [0, 1], ids=["rendezvous", "buffer"])
def test_the_writer_goes_on_when_the_block_ends(worker: Any, capacity: int) -> None:  # rule 1.6
    """In a buffer of one place the slot remains occupied, so the second write waits too."""
    c, reports = Channel("c", capacity=capacity), Channel("said")
    order: list[Any] = []

    @th.process
    def writer(out: Any) -> None:
        for i in range(3):
            out.write(i)
            order.append(f"wrote {i}")

    @th.process
    def hears(inp: Any) -> None:
        for _ in range(3):
            with inp.extended() as value:  # the worker continues once this is noted
                order.append(f"in the block of {value}")

    result = Parallel(
        writer(c.writer()), worker(c.reader(), reports.writer(), 3), hears(reports.reader())
    )
    assert result[1] == [0, 1, 2]
    for i in range(3 - capacity):
        assert order.index(f"in the block of {i}") < order.index(f"wrote {i + capacity}")


def test_blocks_within_blocks() -> None:
    c, reports = Channel("c"), Channel("said")
    order: list[Any] = []

    @th.process
    def one(out: Any, value: Any) -> None:
        out.write(value)
        order.append(value)

    @th.process
    def hears(inp: Any) -> None:
        order.extend(inp)

    w = c.writer
    with Group() as g:
        p = g.start(targets.nested(c.reader(), reports.writer()))
        g.start(hears(reports.reader()))
        g.start(one(w(), 1))
        g.start(one(w(), 2))
    assert sorted(p.result) == [1, 2] and order.index("outer") > order.index("inner") >= 1


def test_an_extended_read_is_entered_once() -> None:
    c = Channel("c")
    results = Parallel(writes(c.writer(), [7]), targets.entered_twice(c.reader()))[1]
    assert "this extended read was already entered" in results[0] and results[1] == "7"


def test_an_os_process_that_dies_in_a_block_has_taken_the_value() -> None:
    """Without a supervisor the value of a reader that dies in the block is taken, and the writer
    continues (wire 4.6).
    """
    c = Channel("c")

    @th.process
    def dies(inp: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets.dies_in_a_block(inp))

    @th.process
    def writer(out: Any) -> str:
        out.write(1)
        with pytest.raises(PeerDied):
            out.write(2)
        return "written"

    assert Parallel(writer(c.writer()), dies(c.reader()))[0] == "written"
