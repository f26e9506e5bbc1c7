"""Tests the debug mode, `weft run --verbose` and the reports of partial deadlocks for other OS
processes (rule 14.7).

Each test starts interpreters.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import os_process_targets as targets
import os_process_targets_stuck_within as there
import pytest
from test_cli import weft
from test_processes import nobody_is_left, program  # noqa: F401

import weft.threads as th
from weft import Deadlock, WeftWarning
from weft._distributed_deadlock import rounds as _rounds
from weft._watching import debug as _debug
from weft._watching import observers as _observers
from weft.observe import Changed, Debug, deadlocks, debug, watching_deadlocks
from weft.processes import Channel, Hosts, Parallel, run

BOUND = 280.0  # s: no test waits longer than this
HERE = Path(there.__file__)
WITH_THERE = os.pathsep.join(filter(None, (str(HERE.parent), os.environ.get("PYTHONPATH"))))

pytestmark = pytest.mark.usefixtures("nobody_observes")


@pytest.fixture(autouse=True)
def nobody_is_asked() -> Iterator[None]:
    yield
    assert not _observers.wanted and not _observers.known and not _observers._hidden


@pytest.fixture(scope="module")
def two() -> Iterator[Hosts]:
    with Hosts(2) as hosts:
        yield hosts


@pytest.fixture(autouse=True)
def the_hosts_are_up(two: Hosts) -> None:
    """Fixes the order of the fixtures, so that nobody_is_left also counts the hosts that remain."""


def stop(pid: int) -> None:
    """Stops a child. When this returns, no thread of the child runs."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


def line_of(text: str) -> int:
    """Returns the number of the line with this comment in the module of the processes."""
    lines = HERE.read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"  # {text}"))


# --- partial deadlocks ----------------------------------------------------------------------------


@th.process
def tells_once_they_are_stuck(out: Any, found: list[Any]) -> None:
    until = time.monotonic() + BOUND
    # On a busy machine a host may be silent for longer than deadlocks() waits.
    while (not (there_is := deadlocks()) or there_is.silent) and time.monotonic() < until:
        pass
    found.append(there_is)
    out.write(None)


def stuck_in(knotted: Any) -> Any:
    """Returns the result of deadlocks() while the process `knotted` contains a knot."""
    asked, found = Channel("asked"), []
    with pytest.raises(there.Enough):
        Parallel(knotted(asked.reader()), tells_once_they_are_stuck(asked.writer(), found))
    return found[0]


def test_deadlocks_names_who_is_stuck_in_a_host(two: Hosts) -> None:
    """Rules 10.5, 14.7: the stuck processes are named by their paths in this network, with their OS
    process. No other processes are named."""
    found = stuck_in(there.knotted.on(two[0]))
    me, other = "main/knotted/first", "main/knotted/second"
    pid = two[0].pid
    rows = [(p.path, p.operation, p.places, p.waits_for, p.pid) for p in found.processes]
    assert rows == [
        (me, "read", ("'c'",), (other,), pid),
        (other, "read", ("'d'",), (me,), pid),
    ]
    assert all(re.match(rf".*{HERE.name}:\d+$", p.at) for p in found.processes)
    assert f"{me}: read 'c' at " in str(found)
    assert f" in OS process {pid}; held by {other}" in str(found)
    assert found.silent == [] and not deadlocks()


def test_and_in_a_host_of_a_host(two: Hosts) -> None:
    """Rule 14.7: the stuck processes of a host of a host are named by their paths in this
    network."""
    found = stuck_in(there.knotted_further.on(two[0]))
    above = "main/knotted_further/knotted"
    assert [(p.path, p.waits_for) for p in found.processes] == [
        (f"{above}/first", (f"{above}/second",)),
        (f"{above}/second", (f"{above}/first",)),
    ]
    assert {p.pid for p in found.processes}.isdisjoint({None, *two.pids})


def test_those_of_two_os_processes_and_of_this_one(two: Hosts) -> None:
    """Rule 14.7: each knot is reported once."""
    asked = [Channel("asked 0"), Channel("asked 1")]
    c, d = Channel("c"), Channel("d")
    found: list[Any] = []

    @th.process
    def waits(inp: Any, out: Any) -> None:
        out.write(inp.read())

    @th.process
    def looks(outs: Any) -> None:
        until = time.monotonic() + BOUND
        while len((now := deadlocks()).processes) < 6 and time.monotonic() < until:
            pass
        found.append(now)
        raise there.Enough

    with pytest.raises(there.Enough):
        Parallel(
            *(there.knotted.on(two[i])(asked[i].reader()) for i in range(2)),
            waits(c.reader(), d.writer()).named("x"),
            waits(d.reader(), c.writer()).named("y"),
            looks([a.writer() for a in asked]),
        )
    rows = [(p.path, p.pid) for p in found[0].processes]
    assert rows == [
        *(
            (f"main/knotted[{i}]/{name}", two[i].pid)
            for i in (0, 1)
            for name in ("first", "second")
        ),
        ("main/x", None),
        ("main/y", None),
    ]


def test_an_os_process_that_does_not_answer_is_named(two: Hosts) -> None:
    """Rule 14.7: a stopped OS process is named as silent, and no process waits forever for its
    answer."""
    with Hosts(1) as hosts:
        pid = run(targets.who.on(hosts)())
        stop(pid)
        try:
            found = deadlocks()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert pid in found.silent and not found  # on a busy machine others may be silent too
        assert f"OS process {pid} does not answer" in str(found)


def test_watching_warns_here_of_who_is_stuck_there(two: Hosts) -> None:
    """Rules 10.5, 14.7: the knot is reported once."""
    asked = Channel("asked")
    log: list[str] = []

    @th.process
    def waits_until_it_is_told(out: Any) -> None:
        until = time.monotonic() + BOUND
        while not log and time.monotonic() < until:
            _rounds.where([], 1.0)  # the hosts have answered since
        out.write(None)

    def show(message: Any, *_: Any, **__: Any) -> None:
        log.append(str(message))

    with warnings.catch_warnings(), pytest.raises(there.Enough), watching_deadlocks():
        warnings.simplefilter("always", WeftWarning)
        warnings.showwarning = show
        Parallel(there.knotted.on(two[1])(asked.reader()), waits_until_it_is_told(asked.writer()))
    lines = "\n".join(log)
    assert lines.count("main/knotted/first: read 'c' at ") == 1
    assert lines.count(f"in OS process {two[1].pid}; held by main/knotted/first") == 1


def test_watching_may_end_the_network_there(two: Hosts) -> None:
    """Rules 10.5, 14.7: the Deadlock is raised in the process that called the stuck processes."""
    asked = Channel("asked")

    @th.process
    def never(out: Any, go_on: Any) -> None:
        go_on.read()

    go_on = Channel("go on")
    kept = go_on.writer()
    with watching_deadlocks("raise"), pytest.raises(Deadlock, match="main/knotted/first"):
        Parallel(there.knotted.on(two[0])(asked.reader()), never(asked.writer(), go_on.reader()))
    kept.retire()


# --- the debug mode -------------------------------------------------------------------------------


@pytest.fixture
def changes() -> Iterator[list[Changed]]:
    found: list[Changed] = []
    debug(True, found.append)
    yield found
    debug(False)


def test_an_object_that_was_changed_in_another_os_process(
    two: Hosts, changes: list[Changed]
) -> None:
    """Rules 9.2, 14.5, 14.7: the report contains the sender's path in this network, its OS process,
    and the line in that OS process."""
    run(there.changes_what_it_sent.on(two[0])())
    (one,) = changes
    assert (one.sender, one.kind, one.channel, one.pid) == (
        "main/changes_what_it_sent",
        "list",
        "c",
        two[0].pid,
    )
    assert (Path(one.file).name, one.line) == (HERE.name, line_of("the line of the write"))
    assert f"main/changes_what_it_sent in OS process {one.pid} wrote a list" in str(one)


def test_what_cannot_be_watched_there_and_off_again(two: Hosts) -> None:
    """Rule 14.7: the types that a host cannot watch are reported, and the mode can be turned
    off."""
    found: list[Changed] = []
    debug(True, found.append)
    run(there.sends_what_cannot_be_watched.on(two[1])())
    over = debug(False)
    assert isinstance(over, Debug) and over.unwatched == {"generator"}
    run(there.changes_what_it_sent.on(two[1])())
    assert found == [] and not any(m.follows for m in _rounds.members())


def test_without_a_callback_it_warns_at_the_line_there(two: Hosts) -> None:
    """Rule 14.7: the warning names the line in the source of the other OS process."""
    debug(True)
    try:
        with pytest.warns(WeftWarning, match="in OS process") as caught:
            run(there.changes_what_it_sent.on(two[0])())
    finally:
        debug(False)
    assert [(Path(w.filename).name, w.lineno) for w in caught] == [
        (HERE.name, line_of("the line of the write"))
    ]


def test_by_the_environment_each_does_it_itself_and_tells_once(tmp_path: Path) -> None:
    """Rule 14.7: with WEFT_DEBUG=1 each OS process watches by itself and reports each change
    once."""
    done = program(
        tmp_path,
        """
        from weft.processes import run
        from os_process_targets_stuck_within import changes_what_it_sent

        if __name__ == "__main__":
            run(changes_what_it_sent())
        """,
        env={**os.environ, "WEFT_DEBUG": "1", "PYTHONPATH": WITH_THERE},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("wrote a list to channel c") == 1


def test_what_goes_by_copy_is_not_kept_as_under_way(two: Hosts, changes: list[Changed]) -> None:
    """Rule 14.5: no process of this program will report the arrival of a value that was copied to
    another OS process, nor of a value that was in the buffer before.
    """
    mode = _debug._present
    assert mode is not None
    there_and_back, c = Channel("there"), Channel("c", capacity=4)
    out = c.writer()
    for i in range(3):
        out.write([i])
    assert len(mode._under_way) == 3

    @th.process
    def writes(out: Any) -> None:
        for i in range(200):
            out.write([i])

    results = Parallel(
        there.reads_all.on(two[0])(c.reader()),
        writes(out),
        there.writes_lists.on(two[1])(there_and_back.writer(), 200),
        there.reads_all.on("threads")(there_and_back.reader()),
    )
    assert results == [203, None, [0], 200]
    assert not mode._under_way and not changes


# --- processes that were left ---------------------------------------------------------------------


def left_there(pid: int) -> str:
    where = f"{HERE}:{line_of('the line of the read')}"
    return f"process main/reads_once in OS process {pid} was left by Retired: channel c, at {where}"


def test_the_debug_mode_names_who_was_left_there(
    two: Hosts, changes: list[Changed], caplog: pytest.LogCaptureFixture
) -> None:
    """Rules 3.5, 14.5, 14.7: a process that was left is reported once, with its own line, and not
    again in the program that called it."""
    c = Channel("c")
    out, inp = c.writer(), c.reader()
    out.retire()
    with caplog.at_level(logging.WARNING, "weft"):
        Parallel(there.reads_once.on(two[0])(inp))
        debug(False)
    assert [r.getMessage() for r in caplog.records if "was left" in r.getMessage()] == [
        left_there(two[0].pid or 0)
    ]


def test_weft_run_verbose_names_who_was_left_there(tmp_path: Path) -> None:
    """Rules 3.5, 14.7: `weft run --verbose` prints who left in another OS process, with its
    line."""
    (tmp_path / "program.py").write_text(
        "from weft import Channel, Parallel\n"
        "from os_process_targets_stuck_within import reads_once\n"
        'if __name__ == "__main__":\n'
        "    c = Channel('c')\n"
        "    out, inp = c.writer(), c.reader()\n"
        "    out.retire()\n"
        "    Parallel(reads_once(inp))\n",
        encoding="utf-8",
    )
    done = weft(
        *("run", "--verbose", "--on", "processes", "program.py"),
        cwd=tmp_path,
        PYTHONPATH=WITH_THERE,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "was left" in line]
    pid = re.findall(r"OS process (\d+)", lines[0])[0]
    assert lines == [f"weft: {left_there(int(pid))}"]
