"""Faults: while a network is checked, hosts are simulated, and processes on them die, lose their
session, or are slow (rule 17.10).
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import weft
from weft import processes, threads
from weft.errors import PeerDied, ProcessDied, Retired

QUICK: dict[str, Any] = {"seconds": 10}


def worker(jobs: Any, done: Any) -> None:
    for job in jobs:
        done.write(job * job)


def _farm(careful: bool, jobs: int = 2, workers: int = 2) -> list[int]:
    """Runs a farm in which each worker has its own channel. If `careful`, a job whose write to a
    dead worker failed is given to another worker.
    """
    to = [threads.Channel(f"jobs{k}") for k in range(workers)]
    back = [threads.Channel(f"done{k}") for k in range(workers)]

    @threads.process
    def farmer(lines: list[tuple[Any, Any]]) -> list[int]:
        left, results, busy = list(range(jobs)), [], {}
        alive = dict(enumerate(lines))
        while left or busy:
            for k in list(alive):
                if left and k not in busy:
                    job = left.pop()
                    try:
                        alive[k][0].write(job)
                        busy[k] = job
                    except (PeerDied, Retired):
                        if careful:
                            left.append(job)
                        del alive[k]
            if not busy:
                if not alive:
                    raise RuntimeError("all workers have died")
                continue
            ks = list(busy)
            try:
                i, result = threads.select(*[alive[k][1] for k in ks])
                busy.pop(ks[i])
                results.append(result)
            except PeerDied as error:
                k = ks[error.guard]  # type: ignore[attr-defined]
                left.append(busy.pop(k))
                del alive[k]
        for line, _ in alive.values():
            line.retire()
        return sorted(results)

    @threads.process
    def tends(job: Any) -> None:
        """Awaits the end of a worker, which may die."""
        with contextlib.suppress(ProcessDied):
            threads.Parallel(job)

    away = processes.process(worker)
    result: list[int] = threads.run(
        farmer([(to[k].writer(), back[k].reader()) for k in range(workers)]),
        *[tends(away(to[k].reader(), back[k].writer())) for k in range(workers)],
    )[0]
    assert result == [job * job for job in range(jobs)], f"done {result}"
    return result


def careless() -> None:
    _farm(careful=False)


def careful() -> None:
    _farm(careful=True)


def test_hosts_are_simulated_and_values_are_copied() -> None:
    """Rule 17.10: no OS process is started, and a value that is sent is a copy."""
    seen: list[Any] = []

    def gets(source: Any, given: Any) -> Any:
        import os

        value = source.read()
        value.append("there")
        given.append("there")
        return (value, given, os.getpid())

    def network() -> None:
        import os

        c = threads.Channel("c")
        mine, given = ["here"], ["given"]

        @threads.process
        def puts(out: Any) -> None:
            out.write(mine)

        result = threads.run(puts(c.writer()), processes.process(gets)(c.reader(), given))[1]
        assert result == (["here", "there"], ["given", "there"], os.getpid())
        assert mine == ["here"] and given == ["given"]
        seen.append(result)

    report = weft.check(network, **QUICK)
    assert report.complete and not report.failed, report.text
    assert seen


def test_without_faults_nobody_dies() -> None:
    """Rule 17.10: without `faults` the careless farmer fails in no schedule."""
    report = weft.check(careless, **QUICK)
    assert not report.failed, report.text


def test_a_careless_farmer_loses_a_job_when_a_worker_dies() -> None:
    """Rule 17.10: the fault is found, made short, and replayed."""
    report = weft.check(careless, faults="kill:1", **QUICK)
    assert report.kind == "exception" and "done [" in report.what, report.text
    assert weft.check(careless, faults="kill:1", replay=report.token).kind == "exception"


def test_a_careful_farmer_loses_none() -> None:
    report = weft.check(careful, faults="kill:1", schedules=1000, **QUICK)
    assert not report.failed, report.text


def test_two_deaths_are_too_many_for_two_workers() -> None:
    report = weft.check(careful, faults="kill:2", **QUICK)
    assert "all workers have died" in report.text


def test_a_partition_is_seen_at_both_sides() -> None:
    """Rule 17.10: the check finds a schedule in which a lost session makes the careless farmer
    fail."""
    report = weft.check(careless, faults="partition", **QUICK)
    assert report.failed, report.text


def test_a_process_that_awaits_a_dead_process_gets_its_death() -> None:
    """Rule 17.10: the process that awaits a dead process meets ProcessDied, with a signal."""

    def network() -> None:
        c = threads.Channel("c")

        @threads.process
        def puts(out: Any) -> None:
            out.write(1)

        def gets(source: Any) -> Any:
            return source.read()

        threads.run(puts(c.writer()), processes.process(gets)(c.reader()))

    report = weft.check(network, faults="kill:1", **QUICK)
    assert report.kind == "exception" and "ProcessDied" in report.what and "SIGKILL" in report.text


def test_a_dead_process_reaches_nobody_any_more() -> None:
    """Rule 17.10: the `finally` of the process runs, and has no effect on other processes."""

    def gets(source: Any, reports: Any) -> Any:
        try:
            return source.read()
        finally:
            reports.write("goodbye")

    def network() -> None:
        c, reports = threads.Channel("c"), threads.Channel("said", capacity=2)
        heard: list[str] = []

        @threads.process
        def puts(out: Any) -> None:
            with contextlib.suppress(PeerDied):
                out.write(1)

        @threads.process
        def hears(source: Any) -> None:
            try:
                heard.extend(source)
            except PeerDied:
                heard.append("died")

        @threads.process
        def tends(p: Any) -> None:
            with contextlib.suppress(ProcessDied):
                threads.Parallel(p)

        threads.run(
            puts(c.writer()),
            hears(reports.reader()),
            tends(processes.process(gets)(c.reader(), reports.writer())),
        )
        assert heard in (["goodbye"], ["died"]), heard

    report = weft.check(network, faults="kill:1", **QUICK)
    assert not report.failed, report.text


def test_a_supervisor_starts_it_again() -> None:
    """Rule 17.10: the ends of the dead process stay open until it is started again (rule 7.13)."""

    def squares(source: Any, out: Any) -> None:
        for value in source:
            out.write(value * value)

    def network() -> None:
        jobs, done = threads.Channel("jobs"), threads.Channel("done")

        @threads.process
        def asks(out: Any, source: Any) -> int:
            out.write(3)
            which, value = threads.select(source, threads.after(60))
            return value if which == 0 else -1

        on = processes.Supervisor(restarts=2, backoff=0.1)
        result = threads.run(
            asks(jobs.writer(), done.reader()),
            processes.process(squares).on(on)(jobs.reader(), done.writer()),
        )[0]
        assert result in (9, -1), result

    report = weft.check(network, faults="kill:1", **QUICK)
    assert not report.failed, report.text


def test_hosts_made_in_the_function_are_simulated() -> None:
    def network() -> None:
        c = threads.Channel("c")

        def gets(source: Any) -> list[int]:
            return list(source)

        @threads.process
        def puts(out: Any) -> None:
            out.write(1)

        with processes.Hosts(2) as hosts:
            assert all(pid > 1_000_000 for pid in hosts.pids)
            result = threads.run(puts(c.writer()), processes.process(gets).on(hosts[0])(c.reader()))
        assert result[1] == [1]

    report = weft.check(network, **QUICK)
    assert report.complete and not report.failed, report.text


def test_a_slow_process_is_one_that_others_wait_for() -> None:
    """Rule 17.10: a slow process continues only when no other process can."""

    def network() -> None:
        c = threads.Channel("c")

        @threads.process
        def asks(source: Any) -> None:
            which, _ = threads.select(source, threads.after(1e-10))
            assert which == 0, "too late"

        def answers(out: Any) -> None:
            out.write(1)

        threads.run(asks(c.reader()), processes.process(answers)(c.writer()))

    assert not weft.check(network, **QUICK).failed
    report = weft.check(network, faults="slow", **QUICK)
    assert report.kind == "exception" and "too late" in report.what, report.text


def test_faults_need_hosts() -> None:
    def network() -> None:
        c = threads.Channel("c")

        @threads.process
        def puts(out: Any) -> None:
            out.write(1)

        @threads.process
        def gets(source: Any) -> None:
            source.read()

        threads.run(puts(c.writer()), gets(c.reader()))

    report = weft.check(network, faults="kill:1", **QUICK)
    assert report.kind == "refused" and "no process runs on a host" in report.what
    with pytest.raises(weft.BadUse):
        weft.check(network, faults="kill:many")


async def awaits_jobs(jobs: Any, done: Any) -> None:
    async for job in jobs:
        await done.write(job * job)


@pytest.mark.parametrize("fault", ["kill:1", "partition"])
def test_a_coroutine_on_a_host_dies_before_each_of_its_operations(fault: str) -> None:
    """Rule 17.10: the jobs that were done before the death show when the process died: before any
    operation, or after one or two jobs.
    """
    seen: set[int] = set()

    def network() -> None:
        ended: list[int] = []
        jobs, done = threads.Channel("jobs"), threads.Channel("done")

        @threads.process
        def asks(out: Any, source: Any) -> int:
            got = 0
            try:
                for job in range(2):
                    out.write(job)
                    assert source.read() == job * job
                    got += 1
            except (PeerDied, Retired):
                pass
            finally:
                ended.append(got)
            return got

        @threads.process
        def tends(worker: Any) -> None:
            with contextlib.suppress(ProcessDied):
                threads.Parallel(worker)

        away = processes.process(awaits_jobs)
        threads.run(asks(jobs.writer(), done.reader()), tends(away(jobs.reader(), done.writer())))
        seen.update(ended)

    report = weft.check(network, faults=fault, **QUICK)
    assert not report.failed and report.complete, report.text
    assert seen == {0, 1, 2}
