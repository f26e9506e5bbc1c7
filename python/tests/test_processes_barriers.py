"""Barriers whose parties are in several OS processes (rules 8.1 to 8.4, 8.7; WIRE.md 4.9 to
4.11)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import os_process_targets_barriers as targets_barriers
import pytest

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft.processes import (
    BadUse,
    Barrier,
    Channel,
    Hosts,
    Parallel,
    PeerDied,
    ProcessDied,
    Supervisor,
    run,
    select,
)

N = 20


@th.process
def gather(inp: Any, got: list[Any], n: int) -> None:
    for _ in range(n):
        got.append(inp.read())


@pytest.mark.parametrize(
    "kind", ["phases", "phases_in_coroutines", "phases_in_greenlets", "phases_in_tasks"]
)
def test_parties_of_three_processes_meet(kind: str) -> None:
    """Rule 8.1: no party begins a phase before all have ended the previous one."""
    c = Channel("said", capacity=8)
    b = Barrier(3)
    got: list[tuple[int, int]] = []
    function = getattr(targets_barriers, kind)

    @th.process
    def mine() -> None:
        out = c.writer()
        for i in range(N):
            out.write((0, i))
            b.sync()

    with Hosts(2) as hosts:
        Parallel(
            gather(c.reader(), got, 3 * N),
            function.on(hosts)(b, c.writer(), 1, N),
            function.on(hosts)(b, c.writer(), 2, N),
            mine(),
        )
    for i in range(N):
        assert {phase for _, phase in got[3 * i : 3 * i + 3]} == {i}, got


def test_two_parties_in_one_process() -> None:
    c = Channel("said", capacity=8)
    b = Barrier(3)
    got: list[tuple[int, int]] = []
    Parallel(
        gather(c.reader(), got, 3 * N),
        targets_barriers.phases_of_two(b, c.writer(), 1, N),
        targets_barriers.phases(b, c.writer(), 3, N),
    )
    for i in range(N):
        assert {phase for _, phase in got[3 * i : 3 * i + 3]} == {i}, got


@pytest.mark.parametrize("kind", ["counts", "counts_in_coroutines"])
def test_parties_are_enrolled_from_elsewhere(kind: str) -> None:  # rule 8.2
    b = Barrier(2)
    assert run(getattr(targets_barriers, kind)(b)) == (2, 3, 2)
    assert b.parties == 2


def test_with_nobody_enrolled_it_is_bad_use(
    capfd: pytest.CaptureFixture[str],
) -> None:  # rule 8.2
    results = run(targets_barriers.misuses(Barrier(0)))
    assert len(results) == 3
    assert all("enrol" in text for text in results), results


def test_an_arrival_that_was_given_up_is_missing() -> None:  # rule 8.3
    b, c = Barrier(2), Channel("said")

    @th.process
    def mine() -> None:
        assert c.reader().read() == "gave up"
        b.sync()

    Parallel(targets_barriers.gives_up(b, c.writer()), mine())


def test_a_resignation_from_elsewhere_completes_the_phase() -> None:  # rule 8.2
    b, c = Barrier(2), Channel("go", capacity=1)
    c.writer().write(None)

    @th.process
    def mine() -> None:
        b.sync()

    Parallel(mine(), targets_barriers.resigns(b, c.reader()))
    assert b.parties == 1


@pytest.mark.parametrize("kind", ["chooses", "chooses_in_coroutines"])
def test_a_choice_of_a_channel_and_a_barrier(kind: str) -> None:
    """Rule 8.4: all guards of the choice have one home, which decides the choice."""
    a, b, c = Channel("a"), Barrier(2), Channel("said")

    @th.process
    def mine() -> None:
        a.writer().write(5)
        c.reader().read()
        b.sync()

    got = Parallel(getattr(targets_barriers, kind)(a.reader(), b, c.writer()), mine())
    assert got[0] == [(0, 5), (1, None)]


def test_a_select_that_polls() -> None:  # rules 5.7, 8.4
    b, c = Barrier(2), Channel("go")

    @th.process
    def mine() -> None:
        c.writer().write(None)
        b.sync()

    got = Parallel(targets_barriers.looks(b, c.reader()), mine())
    assert got[0] == [1, 0, 1, 1]


def test_what_its_home_cannot_decide_alone_is_bad_use() -> None:  # wire 4.10
    c = Channel("mine", capacity=8)
    results = run(targets_barriers.chooses_among_homes(c.writer(), Barrier(1)))
    assert len(results) == 3, results
    assert all("barrier" in text and "process of its own" in text for text in results), results


def test_a_barrier_goes_in_a_value() -> None:
    """The sender of a barrier also keeps the barrier."""
    b, c = Barrier(2), Channel("ends")

    @th.process
    def mine() -> None:
        c.writer().write(b)
        b.sync()

    assert Parallel(targets_barriers.gets_it(c.reader()), mine())[0] == 2


def test_a_barrier_goes_on_to_a_third() -> None:  # wire 7.4
    b, c, d = Barrier(3), Channel("ends"), Channel("on")

    @th.process
    def mine() -> None:
        c.writer().write(b)
        b.sync()

    got = Parallel(
        targets_barriers.hands_it_on(c.reader(), d.writer()),
        targets_barriers.gets_it_third(d.reader()),
        mine(),
    )
    assert got[1] == 3


def test_it_is_the_same_one_that_comes_back() -> None:
    b, c = Barrier(1), Channel("back", capacity=1)
    reader = c.reader()
    run(targets_barriers.brings_it_back(b, c.writer()))
    assert reader.read() is b
    b.sync()


def test_a_process_there_starts_another_with_it() -> None:
    c, b = Channel("said", capacity=8), Barrier(2)
    got: list[Any] = []

    @th.process
    def mine() -> None:
        for _ in range(3):
            b.sync()

    Parallel(targets_barriers.starts_one(b, c.writer()), gather(c.reader(), got, 3), mine())
    assert got == [(7, 0), (7, 1), (7, 2)]


# --- a home that does not answer (rule 8.7) -------------------------------------------------------


@contextlib.contextmanager
def a_home_that_stands_still(parties: list[int]) -> Iterator[Any]:
    """Yields a barrier of an OS process that is stopped during the block. Afterwards appends to
    `parties` how many parties the barrier had in the end.
    """
    c, go = Channel("its own"), Channel("go", capacity=1)
    with th.Group() as group:
        home = group.start(targets_barriers.keeps_its_own(c.writer(), go.reader()))
        pid, barrier = c.reader().read()
        out = go.writer()
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)  # all its threads have stopped
        try:
            yield barrier
        finally:
            os.kill(pid, signal.SIGCONT)
        out.write(None)
    parties.append(home.result)


def enrols_late(barrier: Any, log: list[str]) -> None:
    try:
        barrier.enrol()
    except TimeoutError as error:
        log.append(str(error))


@th.process
def in_coroutines(barrier: Any, log: list[str]) -> None:
    @co.process
    async def one() -> None:
        enrols_late(barrier, log)

    @co.process
    async def beside() -> None:
        log.append("beside")

    co.Parallel(one(), beside())


@th.process
def in_greenlets(barrier: Any, log: list[str]) -> None:
    @gr.process
    def one() -> None:
        enrols_late(barrier, log)

    @gr.process
    def beside() -> None:
        log.append("beside")

    gr.Parallel(one(), beside())


@th.process
def in_a_task(barrier: Any, log: list[str]) -> None:
    async def main() -> None:
        beside = asyncio.create_task(asyncio.sleep(0))
        enrols_late(barrier, log)
        await beside
        log.append("beside")

    asyncio.run(main())


def test_a_scheduler_does_not_wait_for_ever() -> None:
    """Other processes need the caller's thread. The home, once it continues, serves the request."""
    parties: list[int] = []
    all_told: list[list[str]] = [[], [], []]
    kinds = (in_coroutines, in_greenlets, in_a_task)
    with a_home_that_stands_still(parties) as barrier:
        th.Parallel(
            *(kind(barrier, message) for kind, message in zip(kinds, all_told, strict=True))
        )
    assert parties == [1 + len(kinds)]
    for first, second in all_told:
        assert first.startswith("enrol on barrier ") and "os_process_targets_barriers.py" in first
        assert "has not answered" in first and "stopped" in first
        assert second == "beside"


def test_a_signal_is_served_while_a_thread_waits_for_a_home() -> None:
    """Ordinary code of the main thread waits. A signal's handler runs on that thread, and may
    raise."""
    inside = False

    def ring(*_: Any) -> None:
        nonlocal inside
        if inside:
            inside = False
            raise InterruptedError("it rang")

    parties: list[int] = []
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with a_home_that_stands_still(parties) as barrier:
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            with pytest.raises(InterruptedError, match="it rang"):
                inside = True
                barrier.enrol()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert parties == [2]


@pytest.mark.parametrize("kind", ["resigns_on_its_way_out", "resigns_on_its_way_out_in_coroutines"])
def test_a_cancelled_process_can_resign(kind: str) -> None:
    """Rule 6.1: the process has already met its request to cancel. The request would not end a
    resignation anyway, since a resignation is not an operation.
    """
    b, c, never = Barrier(2), Channel("said"), Channel("never")
    keep = never.writer()

    @th.process
    def mine() -> None:
        with th.Group() as workers:
            p = workers.start(getattr(targets_barriers, kind)(b, c.writer(), never.reader()))
            c.reader().read()
            p.cancel()
        b.sync()

    run(mine())
    assert b.parties == 1
    keep.retire()


# --- deaths (rule 8.7) ----------------------------------------------------------------------------


def test_the_death_of_one_is_told_to_all() -> None:
    b, c, go = Barrier(3), Channel("said"), Channel("go", capacity=1)
    log: list[Any] = []

    @th.process
    def mine() -> None:
        c.reader().read()
        go.writer().write(None)
        try:
            b.sync()
        except PeerDied as error:
            log.append(error)

    @th.process
    def dying(place: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets_barriers.dies.on(place)(b, go.reader()))

    with Hosts(2) as hosts:
        got = Parallel(targets_barriers.waits.on(hosts[0])(b, c.writer()), dying(hosts[1]), mine())
    assert len(got[0]) == 4
    assert all("barrier" in text and "died" in text for text in got[0]), got
    assert len(log) == 1
    assert "barrier" in str(log[0])


class Kills:
    """An argument that, while it is being packed, kills the process to which it should be sent."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def __reduce__(self) -> Any:
        os.kill(self.pid, signal.SIGKILL)
        return int, ()


def test_an_os_process_that_is_killed_before_it_has_the_barrier_counts_too() -> None:
    """A process that is killed before it has received the barrier counts as a party, because no
    other process could notice the difference.
    """
    b, c = Barrier(2), Channel("said")

    @th.process
    def mine() -> None:
        with pytest.raises(PeerDied, match="barrier"):
            b.sync()

    @th.process
    def dying(place: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets_barriers.phases.on(place)(b, c.writer(), Kills(place.pid), 1))

    with Hosts(1) as hosts:
        Parallel(dying(hosts[0]), mine())


def test_so_does_one_that_was_to_get_the_barrier_of_a_third() -> None:
    """Rule 8.7: the process that made the barrier and the process that was killed did not know of
    each other."""
    made, c = Channel("made"), Channel("said")

    @th.process
    def between(inp: Any, place: Any) -> None:
        b = inp.read()
        assert b.parties == 2
        with pytest.raises(ProcessDied):
            Parallel(targets_barriers.phases.on(place)(b, c.writer(), Kills(place.pid), 1))
        for use in (b.sync, b.enrol, lambda: b.parties):  # no other party arrives at this barrier
            with pytest.raises(PeerDied, match="barrier"):
                use()
        with pytest.raises(BadUse, match="has died"):
            Parallel(targets_barriers.phases.on(place)(b, Channel("d").writer(), 0, 1))

    with Hosts(2) as hosts:
        text, _ = Parallel(
            targets_barriers.makes_one.on(hosts[0])(made.writer()), between(made.reader(), hosts[1])
        )
    assert "barrier" in text and "died" in text


def test_a_choice_in_the_program_of_its_home_hears_of_it() -> None:
    b, go = Barrier(2), Channel("go", capacity=1)
    a = Channel("a")
    keep = a.writer()

    @co.process
    async def mine() -> int | None:
        await go.writer().write(None)
        try:
            await co.select(a.reader(), b)
        except PeerDied as error:
            return error.guard
        return None

    @th.process
    def dying() -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets_barriers.dies(b, go.reader()))

    assert Parallel(mine(), dying())[0] == 1
    with pytest.raises(PeerDied):
        select(b)
    keep.retire()


def test_an_os_process_that_ends_in_good_order_takes_nothing_with_it() -> None:
    b = Barrier(1)
    run(targets_barriers.leaves(b))
    with Hosts(1) as hosts:
        Parallel(targets_barriers.leaves.on(hosts)(b))
    b.sync()
    assert b.parties == 1


def test_one_that_is_supervised_dies_for_nobody_before_it_is_given_up() -> None:
    """Rule 7.13: another process is started in place of the dead one, with the barrier."""
    b, c, go = Barrier(2), Channel("said"), Channel("go")
    pids: list[int] = []

    @th.process
    def mine() -> None:
        reports, out = c.reader(), go.writer()
        b.sync()
        pids.append(reports.read())
        os.kill(pids[0], signal.SIGKILL)
        b.sync()  # a sync with the process that replaces the killed one
        pids.append(reports.read())
        out.write(None)
        b.sync()

    with Hosts(1) as hosts:
        worker = targets_barriers.step_by_step.on(Supervisor(hosts[0], restarts=2, backoff=0.0))
        Parallel(worker(b, c.writer(), go.reader()), mine())
    assert len(set(pids)) == 2


def test_one_that_is_given_up_has_died() -> None:
    b, c, go = Barrier(2), Channel("said"), Channel("go")

    @th.process
    def mine() -> None:
        b.sync()
        os.kill(c.reader().read(), signal.SIGKILL)
        with pytest.raises(PeerDied, match="barrier"):
            b.sync()

    @th.process
    def supervised(place: Any) -> None:
        worker = targets_barriers.step_by_step.on(Supervisor(place, restarts=0))
        with pytest.raises(ProcessDied):
            Parallel(worker(b, c.writer(), go.reader()))

    keep = go.writer()
    with Hosts(1) as hosts:
        Parallel(supervised(hosts[0]), mine())
    keep.retire()
