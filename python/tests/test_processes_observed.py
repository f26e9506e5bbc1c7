"""Observers see processes in other OS processes as they see threads (rule 14.7): traces,
measurements, the watchdog.

Each test starts interpreters.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import random
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import os_process_targets as targets
import os_process_targets_observed as ao
import pytest
from test_cli import weft
from test_picture import hello
from test_processes import nobody_is_left, program  # noqa: F401

import weft.threads as th
from weft._distributed_deadlock import rounds as _rounds
from weft._hosts import host_recorders as _host_recorders
from weft._hosts import remote_observers as _remote_observers
from weft._watching import observers as _observers
from weft._watching import picture as _picture
from weft._watching import trace as _trace
from weft.observe import Hog, measure, measuring, tracing, watchdog
from weft.processes import Channel, Hosts, Parallel, ProcessDied, Supervisor, process, run

BOUND = 280.0  # s: no test waits longer than this
HERE = Path(ao.__file__).name

pytestmark = pytest.mark.usefixtures("nobody_observes")


@pytest.fixture(autouse=True)
def nobody_is_asked() -> Iterator[None]:
    yield
    assert not _observers.wanted and not _observers.known and not _observers._hidden
    assert {channel.name for channel in _observers._own.values()} <= {"jobs"}


@pytest.fixture(scope="module")
def two() -> Iterator[Hosts]:
    with Hosts(2) as hosts:
        yield hosts


@pytest.fixture(autouse=True)
def the_hosts_are_up(two: Hosts) -> None:
    """Fixes the order of the fixtures, so that nobody_is_left also counts the hosts that remain."""


def events_of(path: Path) -> list[dict[str, Any]]:
    events, cut_off = _trace.read(path)
    assert not cut_off
    return events


def operations(events: list[dict[str, Any]], **wanted: Any) -> Counter[tuple[str, str, str]]:
    """Returns how many operations have committed, by path, operation and channel."""
    return Counter(
        (e["p"], e["op"], e.get("c", ""))
        for e in events
        if e["e"] == "commit" and all(e.get(k) == v for k, v in wanted.items())
    )


def pipeline(hosts: Hosts, n: int, a: Channel[int], b: Channel[int]) -> tuple[int, int, int]:
    """Runs `numbers` in one host, `doubles` in the other, and `adds` in a thread of this OS
    process. Returns the pids of their OS processes."""
    first, second, (_, total) = Parallel(
        ao.numbers.on(hosts[0])(a.writer(), n),
        ao.doubles.on(hosts[1])(a.reader(), b.writer()),
        ao.adds.on("threads")(b.reader()),
    )
    assert total == n * (n - 1)
    return first, second, total


# --- traces ---------------------------------------------------------------------------------------


def test_a_trace_has_the_communications_of_two_hosts_and_a_thread(
    two: Hosts, tmp_path: Path
) -> None:
    """Rule 14.7: the trace contains the names of the channels and the paths of this network, and
    all its times are of one clock."""
    file = tmp_path / "t.jsonl"
    with tracing(file):
        first, second, _ = pipeline(two, 30, Channel("a"), Channel("b"))
    events = events_of(file)
    assert operations(events) == {
        ("main/numbers", "write", "a"): 30,
        ("main/doubles", "read", "a"): 30,
        ("main/doubles", "write", "b"): 30,
        ("main/adds", "read", "b"): 30,
        ("MainThread", "wait for", ""): 1,
    }
    assert {e["pid"] for e in events if e["p"] == "main/numbers" and "op" in e} == {first}
    assert {e["pid"] for e in events if e["p"] == "main/doubles" and "op" in e} == {second}
    assert not any("pid" in e for e in events if e["p"] == "main/adds")
    away = {e["p"]: e["in"] for e in events if e["e"] == "away"}
    assert away == {"main/numbers": first, "main/doubles": second}
    # On one clock, the i-th value was read no earlier than its write began.
    for channel in "ab":
        begun = [
            e["t"] for e in events if e["e"] == "begin" and e["op"] == "write" and e["c"] == channel
        ]
        read = [
            e["t"] for e in events if e["e"] == "commit" and e["op"] == "read" and e["c"] == channel
        ]
        assert len(begun) == len(read) == 30
        assert all(w <= r for w, r in zip(begun, read, strict=True))
    # Each process has its own number, and ends once in each OS process.
    tracks = {(e["id"], e.get("pid")) for e in events}
    assert len(tracks) == len({key for key, _ in tracks})
    ends = Counter(e["id"] for e in events if e["e"] == "end")
    assert set(ends.values()) == {1} and _trace.summarise(events).unfinished == []
    channels = {e["c"] for e in events if "c" in e}
    assert channels == {"a", "b"}  # Weft's own channels are not shown


def test_processes_of_one_name_and_their_children_have_the_paths_of_this_network(
    two: Hosts, tmp_path: Path
) -> None:
    """Rules 7.8, 14.7: the trace contains the path of the call in the caller, with its index, and
    below this path the processes that run in the host."""
    file = tmp_path / "t.jsonl"
    with tracing(file):
        results = Parallel(ao.within.on(two)(5, "c"), ao.within.on(two)(7, "d"))
    assert results == [10, 21]
    done = operations(events_of(file))
    for i, (n, name) in enumerate([(5, "c"), (7, "d")]):
        path = f"main/within[{i}]"
        assert done[f"{path}/numbers_in_a_coroutine", "write", name] == n
        assert done[f"{path}/adds_in_a_coroutine", "read", name] == n
        assert done[f"{path}/result", "read", f"{name} done"] == 1


def test_a_plain_process_and_the_hosts_of_a_host(tmp_path: Path) -> None:
    """Rule 14.7: the trace contains the OS processes that start during the trace, and the OS
    processes that these start."""
    file = tmp_path / "t.jsonl"
    assert run(ao.further(4, "deep"), trace=file) == 6
    events = events_of(file)
    done = operations(events)
    assert done["main/further/within/numbers_in_a_coroutine", "write", "deep"] == 4
    assert done["main/further/within/adds_in_a_coroutine", "read", "deep"] == 4
    pids = {e["pid"] for e in events if "pid" in e}
    assert len(pids) == 2 and os.getpid() not in pids
    assert _trace.summarise(events).unfinished == []


def test_a_process_elsewhere_may_observe_by_itself(two: Hosts, tmp_path: Path) -> None:
    """Rule 14.7: the operations of a process's own hosts are in the trace of that process, and also
    in the trace of its parent."""
    file, inner = tmp_path / "t.jsonl", tmp_path / "inner.jsonl"
    with tracing(file):
        assert run(ao.traces_within.on(two[0])(4, str(inner))) == 6
    done = operations(events_of(inner))
    assert done["main/traces_within/within/numbers_in_a_coroutine", "write", "inner"] == 4
    assert (
        operations(events_of(file)).items()
        >= {k: v for k, v in done.items() if "numbers_in_a" in k[0]}.items()
    )
    assert run(ao.within.on(two[0])(3, "later")) == 3


def ask(two: Hosts, n: int, between: Callable[[int], None]) -> None:
    """Runs a process in a host that answers n questions. `between` is called in this OS process
    before each question.
    """
    a, b = Channel("asked"), Channel("said")

    @th.process
    def asks(out: Any, inp: Any) -> None:
        for i in range(n):
            between(i)
            out.write(i)
            assert inp.read() == i

    Parallel(ao.one_by_one.on(two[0])(a.reader(), b.writer()), asks(a.writer(), b.reader()))


def test_switched_on_halfway_off_and_on_again(two: Hosts, tmp_path: Path) -> None:
    """Rule 14.7: each trace contains the events of a host while the trace is on, and no others."""
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    traces = [_trace.Trace(file) for file in files]
    at: dict[int, Callable[[], None]] = {
        2: traces[0].start,
        5: traces[0].close,
        7: traces[1].start,
        9: traces[1].close,
    }
    ask(two, 12, lambda i: at.get(i, int)())
    for file, n in zip(files, (3, 2), strict=True):
        events = events_of(file)
        begun = [e for e in events if e["e"] == "begin" and e.get("c") == "said" and "pid" in e]
        assert [(e["p"], e["op"]) for e in begun] == [("main/one_by_one", "write")] * n
        # The first read had begun before the trace, and the last write may not be over.
        done = operations(events)
        assert done["main/one_by_one", "read", "asked"] in (n - 1, n)
        assert done["main/one_by_one", "write", "said"] in (n - 1, n)
    assert not any(m.follows for m in _rounds.members())


def test_two_at_a_time_and_a_long_one(two: Hosts, tmp_path: Path) -> None:
    """Rule 14.7: several pieces of data arrive for each of two observers."""
    n = 3 * _host_recorders.BLOCK
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    with tracing(files[0]), measuring() as m, tracing(files[1]):
        pipeline(two, n, Channel("a"), Channel("b"))
    for file in files:
        done = operations(events_of(file))
        assert done["main/numbers", "write", "a"] == n == done["main/doubles", "write", "b"]
    assert (m["a"].transfers, m["b"].transfers) == (n, n)


def test_a_record_that_is_too_long_for_a_piece(two: Hosts, tmp_path: Path) -> None:
    """A long record is sent without its long parts, and the records around it are whole."""
    file = tmp_path / "t.jsonl"
    with tracing(file), pytest.raises(ValueError, match="xxxx"):
        run(targets.fail.on(two[0])(ValueError("x" * 400_000)))
    ends = [e for e in events_of(file) if e["e"] == "end" and "pid" in e]
    assert [(e["p"], e["how"], "error" in e) for e in ends] == [("main/fail", "failed", False)]


def test_of_a_host_that_is_killed_the_trace_has_what_it_had_sent(tmp_path: Path) -> None:
    """Rule 14.7: the trace names the OS process that was lost."""
    file = tmp_path / "t.jsonl"
    a, b = Channel("asked"), Channel("said")
    n = _host_recorders.BLOCK

    @th.process
    def asks(out: Any, inp: Any) -> None:
        for i in range(n):
            out.write(i)
            inp.read()
        out.write(n)

    with Hosts(1) as hosts, tracing(file):
        pid = hosts.pids[0]
        with pytest.raises(ProcessDied):
            Parallel(
                ao.answers_then_dies.on(hosts)(a.reader(), b.writer(), n),
                asks(a.writer(), b.reader()),
            )
        assert run(targets.who.on(hosts)()) != pid
    events = events_of(file)
    done = operations(events)
    assert 0 < done["main/answers_then_dies", "write", "said"] <= n
    summary = _trace.summarise(events)
    assert summary.lost == [pid] and summary.unfinished == []
    ends = [e for e in events if e["p"] == "main/answers_then_dies" and e["e"] == "end"]
    assert [(e.get("pid"), e["how"]) for e in ends] == [(pid, "lost"), (None, "failed")]
    assert "ProcessDied" in ends[1]["error"]


def test_an_idle_host_that_is_killed_is_told_too(tmp_path: Path) -> None:
    """Rule 14.7: the trace also names a lost OS process that was idle."""
    file = tmp_path / "t.jsonl"
    with Hosts(2) as hosts:
        pids = Parallel(targets.who.on(hosts[0])(), targets.who.on(hosts[1])())
        with tracing(file), measuring() as m:
            os.kill(pids[0], signal.SIGKILL)
            assert run(targets.who.on(hosts[1])()) == pids[1]
            # The end of the OS process has been noticed already.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, pids[0], os.WEXITED | os.WNOWAIT)
        assert _trace.summarise(events_of(file)).lost == m.lost == [pids[0]]
        out = io.StringIO()
        m.table(file=out)
        assert f"OS process {pids[0]} was lost" in out.getvalue()


def test_a_supervised_process_has_a_track_for_each_life(tmp_path: Path) -> None:
    """Rules 7.13, 14.7: the trace has a track for each life of the process."""
    file = tmp_path / "t.jsonl"
    a, b = Channel("asked"), Channel("said")

    @th.process
    def asks(out: Any) -> None:
        for v in (0, 1, 2, None):
            out.write(v)

    with tracing(file):
        results = Parallel(
            ao.dies_once.on(Supervisor(backoff=0))(a.reader(), b.writer(), tmp_path / "mark"),
            asks(a.writer()),
            ao.adds.on("threads")(b.reader()),
        )
    assert results[2][1] == 3
    events = events_of(file)
    mine = [e for e in events if e["p"] == "main/dies_once"]
    lives = list(dict.fromkeys(e["in"] for e in mine if e["e"] == "away"))
    assert len(lives) == 2
    tracks = {e["id"]: e["pid"] for e in mine if "pid" in e}
    assert set(tracks.values()) <= set(lives) and lives[1] in tracks.values()
    assert len(tracks) == len(set(tracks.values()))
    summary = _trace.summarise(events)
    assert summary.lost == [lives[0]] and summary.unfinished == []
    last = operations(events, pid=lives[1])
    assert last["main/dies_once", "extended read", "asked"] == 3  # the value 1 again, 2, and None
    assert last["main/dies_once", "write", "said"] == 2


def test_the_summary_the_picture_and_the_chrome_file_have_each_process_once(
    two: Hosts, tmp_path: Path
) -> None:
    """Rule 14.7: a process that only waits in this OS process has no line in the picture. In the
    Chrome file each OS process is a process."""
    file = tmp_path / "t.jsonl"
    with tracing(file):
        first, second, _ = pipeline(two, 3, Channel("a"), Channel("b"))
    events = events_of(file)
    names = {
        f"main/numbers in OS process {first}",
        f"main/doubles in OS process {second}",
        "main/adds",
    }
    assert {row.name for row in _trace.summarise(events).processes} >= names
    drawn = _picture.svg(events)
    for name in names:
        assert f">{name}</text>" in drawn
    assert ">main/numbers</text>" not in drawn
    for value in ("numbers", "doubles"), ("doubles", "adds"):
        assert any(
            f"main/{value[0]}" in title and f"to main/{value[1]}" in title
            for title in drawn.split("<title>")
        )
    chrome = json.loads(json.dumps(_trace.chrome(events)))["traceEvents"]
    slices = {e["pid"] for e in chrome if e["name"] == "write a" and e["ph"] == "X"}
    assert slices == {first}
    assert {e["args"]["name"] for e in chrome if e["name"] == "process_name"} == {
        f"OS process {first}",
        f"OS process {second}",
    }


# --- measurements ---------------------------------------------------------------------------------


def test_measuring_counts_each_communication_once(two: Hosts) -> None:
    """Rule 14.7: counts are right for channels with both ends in other OS processes, with one end
    in another OS process, and for channels that were made there."""
    a, b = Channel("a"), Channel("b")
    with measuring() as m:
        pipeline(two, 40, a, b)
        Parallel(ao.within.on(two[0])(11, "c"), ao.within.on(two[1])(13, "d"))
    assert {row.name: (row.transfers, row.channels) for row in m.rows()} == {
        "a": (40, 1),
        "b": (40, 1),
        "c": (11, 1),
        "d": (13, 1),
        "c done": (1, 1),
        "d done": (1, 1),
    }
    assert m["a"].parked_reads + m["a"].parked_writes >= 40
    assert m["a"].blocked_readers + m["a"].blocked_writers > 0
    assert m["a"].max_waiting_readers <= 1 and m.lost == []


def test_a_measurement_that_goes_on_is_read_with_what_hosts_have_done(two: Hosts) -> None:
    """Rules 14.4, 14.7: figures can be read in the middle of a run; a measurement may begin
    halfway, and counts nothing after it has ended."""
    seen: list[int] = []

    m = None

    def begin_then(i: int) -> None:
        nonlocal m
        if i == 3:
            m = measure(True)
        elif i in (5, 8):
            assert m is not None
            seen.append(m["said"].transfers)
            if i == 8:
                measure(False)

    ask(two, 10, begin_then)
    assert seen == [2, 5]
    assert m is not None and m["said"].transfers == 5 and m["said"].parked_reads > 0


def test_a_buffered_channel_between_two_hosts(two: Hosts) -> None:
    """Rule 14.7: the figures of the channel are those of both hosts together."""
    c = Channel("buffered", capacity=4)
    with measuring() as m:
        results = Parallel(ao.numbers.on(two[0])(c.writer(), 25), ao.adds.on(two[1])(c.reader()))
    assert results[1][1] == 300 and m[c].transfers == c.stats().transfers == 25


def test_of_a_host_that_was_killed_the_values_are_counted_and_its_waiting_may_be_missing() -> None:
    """Rule 14.7: of a killed host the values are counted, and the time of its last wait may be
    missing."""
    a, b = Channel("asked"), Channel("said")

    @th.process
    def asks(out: Any, inp: Any) -> None:
        for i in range(5):
            out.write(i)
            inp.read()
        out.write(5)

    with Hosts(1) as hosts, measuring() as m:
        pid = hosts.pids[0]
        with pytest.raises(ProcessDied):
            Parallel(
                ao.answers_then_dies.on(hosts)(a.reader(), b.writer(), 5),
                asks(a.writer(), b.reader()),
            )
    assert (m["asked"].transfers, m["said"].transfers, m.lost) == (6, 5, [pid])


# --- the watchdog ---------------------------------------------------------------------------------


def test_the_watchdog_names_a_hog_in_a_host(two: Hosts, tmp_path: Path) -> None:
    """Rules 14.1, 14.7: a step that is too long is reported with its path in this network, its OS
    process, function and line."""
    found: list[tuple[Hog, str]] = []
    elsewhere: list[str] = []

    def report(hog: Hog) -> None:
        if "in computes" in hog.stack:  # on a busy machine the process may not be in computes() yet
            found.append((hog, threading.current_thread().name))
        else:
            elsewhere.append(hog.stack)
        if found or len(elsewhere) > 30:  # with so many long steps, one would have been noticed
            (tmp_path / "told").touch()

    with watchdog(0.01, report):
        run(ao.hogs.on(two[0])(tmp_path / "told"))
    assert found, elsewhere
    hog, thread = found[0]
    assert (hog.path, hog.pid, thread) == ("main/hogs", two[0].pid, "weft watchdog")
    assert Path(hog.file).name == HERE
    assert Path(hog.file).read_text().splitlines()[hog.line - 1].strip() in (
        "while time.monotonic() < until:",
        "pass",
    )
    assert "in computes" in hog.stack and "in hogs" in hog.stack
    assert f"main/hogs in OS process {hog.pid}" in str(hog) and f"{HERE}:{hog.line}" in str(hog)


def test_in_a_process_of_its_own_and_off_afterwards(two: Hosts, tmp_path: Path) -> None:
    """Rule 14.7: the watchdog reports a long step in a separate OS process, and observes nothing
    afterwards.
    """
    message = tmp_path / "told"
    hogs: list[Hog] = []

    def report(hog: Hog) -> None:
        hogs.append(hog)
        message.touch()

    with watchdog(0.01, report):
        run(ao.hogs(message))
    assert any(hog.path == "main/hogs" and hog.pid not in (None, *two.pids) for hog in hogs)
    assert not any(m.follows for m in _rounds.members())


# --- guarantees of all observers ------------------------------------------------------------------


def test_what_an_observation_raises_reaches_nobody(
    two: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules 14.2, 14.7: the exception of an observer reaches no process of a host."""
    raised: list[BaseException] = []

    class Bad(_trace.Trace):
        def _add_records(self, source: Any, records: Any) -> None:
            raise RuntimeError("observer")

    monkeypatch.setattr("sys.excepthook", lambda kind, error, trace: raised.append(error))
    bad = Bad(os.devnull)
    bad.start()
    try:
        assert pipeline(two, 5, Channel("a"), Channel("b"))[2] == 20
    finally:
        bad.close()
    assert raised and {str(error) for error in raised} == {"observer"}


def test_a_host_that_does_not_answer_is_lost_and_holds_up_nobody_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rule 14.7: a stopped OS process is reported as lost."""
    monkeypatch.setattr(_remote_observers, "PATIENCE", 1.0)
    with Hosts(1) as hosts:
        pid = run(targets.who.on(hosts)())
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)  # no thread of the OS process runs
        try:
            with measuring() as m:
                pass
        finally:
            os.kill(pid, signal.SIGCONT)
        monkeypatch.undo()
        assert pid in m.lost  # on a busy machine other OS processes may be lost too
        with measuring() as again:
            assert run(ao.within.on(hosts)(4, "c")) == 6
        assert again["c"].transfers == 4 and again.lost == []


@process
def forks_and_tells() -> tuple[int, int]:
    """Returns how many observers the host has, and how many its fork has."""
    here = len(_observers._observers)
    pid = os.fork()
    if pid == 0:
        os._exit(len(_observers._observers) + len(_remote_observers._following))
    return here, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_host_observes_only_while_it_is_wanted_and_its_fork_never(
    two: Hosts, tmp_path: Path
) -> None:
    """Rules 14.2, 14.7: a host has an observer only during an observation, and its fork has
    none."""
    assert run(forks_and_tells.on(two[0])()) == (0, 0)
    with tracing(tmp_path / "t.jsonl"):
        assert run(forks_and_tells.on(two[0])()) == (1, 0)
    assert run(forks_and_tells.on(two[0])()) == (0, 0)


@pytest.mark.parametrize("start", ["forkserver", "fork"])
def test_however_a_host_was_started(start: str, tmp_path: Path) -> None:
    """Rule 14.7. A fork must precede all threads, so this is a separate program."""
    done = program(
        tmp_path,
        f"""
        from weft._watching import trace as _trace
        from weft.observe import measuring, tracing
        from weft.processes import Channel, Hosts, Parallel, process

        @process
        def numbers(out):
            for i in range(6):
                out.write(i)

        @process
        def adds(inp):
            return sum(inp)

        if __name__ == "__main__":
            c = Channel("c")
            with tracing("t.jsonl"), Hosts(2, start={start!r}) as hosts:
                with measuring() as m:
                    print(Parallel(numbers.on(hosts)(c.writer()), adds.on(hosts)(c.reader()))[1])
                print(m[c].transfers)
            events, _ = _trace.read("t.jsonl")
            print(sum(e["e"] == "commit" and "pid" in e for e in events))
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["15", "6", "12"]


def test_readmes_picture_with_os_processes(tmp_path: Path) -> None:
    """Rule 14.7: makes the README's picture with `--on processes`. The process main
    also runs in another OS process."""
    (tmp_path / "hello.py").write_text(hello(), encoding="utf-8")
    run_it = weft("run", "hello.py", "--on", "processes", "--trace", "t.jsonl", cwd=tmp_path)
    assert (run_it.returncode, run_it.stdout.split()) == (0, ["0", "1", "4", "9"]), run_it.stderr
    drawn = weft("trace", "t.jsonl", "--picture", "hello.svg", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    picture = (tmp_path / "hello.svg").read_text(encoding="utf-8")
    lanes = re.findall(r">(main[/\w]*) in OS process (\d+)</text>", picture)
    assert sorted(path for path, _ in lanes) == [
        "main/main",
        *(f"main/main/{name}" for name in ("numbers", "show", "squares")),
    ]
    assert len({pid for _, pid in lanes}) == 4
    arrows = Counter(
        re.findall(r"<title>([ab]): main/main/(\w+) in .* to main/main/(\w+)", picture)
    )
    assert arrows == {("a", "numbers", "squares"): 4, ("b", "squares", "show"): 4}


KILLS = int(os.environ.get("WEFT_KILLS", "30")) // 6


def test_hosts_that_are_killed_at_random_while_they_are_observed(tmp_path: Path) -> None:
    """Rules 14.2, 14.7: no program hangs, no count is wrong, and the trace can be read."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    for k in range(KILLS):
        file, a, b = tmp_path / f"{k}.jsonl", Channel("a"), Channel("b")
        victim, at = chance.randrange(2), chance.randrange(2 * _host_recorders.BLOCK)
        got: list[int] = []

        @th.process
        def kills(inp: Any, pid: int, at: int, got: list[int]) -> None:
            for v in inp:
                got.append(v)
                if len(got) == at:
                    os.kill(pid, signal.SIGKILL)

        with Hosts(2) as hosts, tracing(file), measuring() as m:
            pid = hosts.pids[victim]
            if at == 0:
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(Exception, match=r"died|killed|failed|SIGKILL"):
                Parallel(
                    ao.numbers.on(hosts[0])(a.writer(), 10**6),
                    ao.doubles.on(hosts[1])(a.reader(), b.writer()),
                    kills(b.reader(), pid, at, got),
                )
        assert (m["b"].transfers if got else 0, m.lost) == (len(got), [pid])
        events = events_of(file)
        summary = _trace.summarise(events)
        assert (summary.lost, summary.unfinished) == ([pid], [])
        for track in {e["id"] for e in events if e.get("pid") and e["id"] > 0}:
            mine = [e["e"] for e in events if e["id"] == track]
            assert mine[0] == "start" and mine[-1] == "end" and mine.count("end") == 1
            assert not {"commit", "ended", "withdraw"} & {
                then for now, then in itertools.pairwise(mine) if now != "begin"
            }
