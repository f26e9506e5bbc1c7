"""Tests OS processes of weft.processes that die: the reports of their deaths, reports after a
cancellation, and other reports about these OS processes (rules 4.5, 5.8, 6.1, 7.2, 7.11, 14.4,
14.6).

Every test here starts interpreters; each start takes some 0.2 s.
"""

from __future__ import annotations

import json
import pickle
import signal
from pathlib import Path
from typing import Any

import os_process_targets as targets
import pytest

import weft.threads as th
from weft import observe
from weft._hosts import host as _host
from weft.processes import (
    BadUse,
    Channel,
    Hosts,
    Output,
    Parallel,
    PeerDied,
    ProcessDied,
    run,
    select,
)


@pytest.mark.parametrize(
    ("how", "number", "status"),
    [("kill", signal.SIGKILL, None), ("segv", signal.SIGSEGV, None), ("exit", None, 3)],
)
def test_a_process_that_dies_says_how(how: str, number: int | None, status: int | None) -> None:
    with pytest.raises(ProcessDied) as caught:
        run(targets.die(how))
    assert (caught.value.signal, caught.value.status) == (number, status)
    assert "'die'" in str(caught.value) and str(caught.value.pid) in str(caught.value)
    # After a crash the exception contains the place of the crash, and so does a copy of the
    # exception.
    crashed = how == "segv"
    assert (
        ("Segmentation fault" in caught.value.stack) == crashed == ("in die" in str(caught.value))
    )
    assert bool(caught.value.stack) == crashed
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.stack, str(copied)) == (caught.value.stack, str(caught.value))


@pytest.mark.parametrize("how", ["kill", "segv"])
def test_the_system_was_out_of_memory(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process is reported as out of memory if the system's count of such kills has
    grown since the process began."""
    counters = tmp_path / "vmstat"
    counters.write_text("nr_free_pages 7\noom_kill 3\n", encoding="ascii")
    monkeypatch.setattr(_host, "_COUNTERS", counters)
    go = Channel("go")

    @th.process
    def system(out: Any) -> None:
        out.write(None)  # once this is read, the other process has begun
        counters.write_text("nr_free_pages 7\noom_kill 4\n", encoding="ascii")

    with pytest.raises(ProcessDied) as caught:
        Parallel(targets.die(how, go.reader()), system(go.writer()))
    assert caught.value.out_of_memory == (how == "kill") == ("out of memory" in str(caught.value))
    assert pickle.loads(pickle.dumps(caught.value)).out_of_memory == caught.value.out_of_memory
    with pytest.raises(ProcessDied) as caught:  # the count has not grown since this process began
        run(targets.die(how))
    assert not caught.value.out_of_memory


def test_sys_exit_is_an_exception_of_the_process() -> None:
    with pytest.raises(SystemExit) as caught:
        run(targets.die("sys.exit"))
    assert caught.value.code == 4


def test_a_reader_of_an_os_process_that_died_drains_and_is_told() -> None:  # rule 4.5
    c = Channel("c", capacity=10)

    @th.process
    def reads(inp: Any) -> list[int]:
        got = []
        try:
            while True:
                got.append(inp.read())
        except PeerDied:
            return got

    done: list[Any] = []

    @th.process
    def dies(out: Any) -> None:
        try:
            Parallel(targets.write_then_die(out, 5))
        except ProcessDied as error:
            done.append(error.signal)

    assert Parallel(dies(c.writer()), reads(c.reader()))[1] == [0, 1, 2, 3, 4]
    assert done == [signal.SIGKILL]


def test_a_reader_elsewhere_is_told_of_a_writer_elsewhere_that_died() -> None:
    c = Channel("c")

    @th.process
    def dies(out: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets.write_then_die(out, 3))

    assert Parallel(dies(c.writer()), targets.lost_writer(c.reader()))[1] == ([0, 1, 2], "False")


@pytest.mark.parametrize("again", [True, False], ids=["it_reads_on", "it_ends"])
def test_a_value_that_could_not_be_made_is_not_the_end_of_a_channel(again: bool) -> None:
    """Rule 5.8: a reader in another OS process meets PeerDied once. The channel still works, and
    the reader's end then retires and does not die."""
    c, ready = Channel("c"), Channel("ready")
    met: list[str] = []

    def fails() -> Any:
        raise ZeroDivisionError

    @th.process
    def writes(out: Any, inp: Any) -> None:
        inp.read()
        with pytest.raises(ZeroDivisionError):
            select(Output(out, make=fails))
        try:
            out.write("the next")
        except Exception as error:
            met.append(type(error).__name__)

    got = Parallel(
        writes(c.writer(), ready.reader()),
        targets.reads_past_a_death(ready.writer(), c.reader(), again),
    )[1]
    assert (got, met) == (("the next", []) if again else (None, ["Retired"]))


def test_a_failure_after_a_cancellation_is_told_too() -> None:  # rules 6.1, 7.2
    ready, never = Channel("ready"), Channel("never")
    kept = never.writer()

    @th.process
    def fails(inp: Any) -> None:
        inp.read()
        raise ValueError("first")

    with pytest.raises(Exception, match="2 processes failed") as caught:
        Parallel(
            fails(ready.reader()), targets.fails_when_cancelled(ready.writer(), never.reader())
        )
    assert sorted(str(e) for e in caught.value.exceptions) == ["first", "second"]  # type: ignore[attr-defined]
    kept.retire()


def test_virtual_time_is_for_one_os_process() -> None:  # rule 8.6
    @th.process
    def sleeps() -> float:
        th.sleep(1000)
        return th.now()

    process = sleeps()
    with Hosts(1) as hosts:
        run(targets.who.on(hosts)())
        with pytest.raises(BadUse, match=r"other OS processes.*Close the Hosts"):
            run(process, clock="virtual")
        with pytest.raises(BadUse, match="other OS processes"):  # the host's own parent
            run(targets.virtual_run.on(hosts)())
    assert round(run(process, clock="virtual")) == 1000


def test_a_process_itself_goes_nowhere() -> None:
    """Rule 7.11: the end of a process is known only in the OS process that started it."""
    c = Channel("c")

    @th.process
    def sends(out: Any, p: Any) -> str:
        out.write(1)  # once this is read, the reader has arrived in the other process
        with pytest.raises(
            BadUse, match=r"itself cannot go to another OS process.*p\.wait\(\)"
        ) as message:
            out.write(p)
        return str(message.value)

    @th.process
    def ends() -> None:
        pass

    p = ends()
    results = Parallel(targets.total(c.reader()), sends(c.writer(), p), p)[1]
    assert "ends" in results
    with pytest.raises(BadUse, match="itself cannot go"):
        run(targets.total(p))


def test_a_host_that_wants_more_memory_than_it_may_have_fails_that_call_alone() -> None:
    with Hosts(1, memory_limit=2 << 30) as hosts:
        with pytest.raises(MemoryError):
            run(targets.takes_memory.on(hosts)(4 << 30))
        assert run(targets.takes_memory.on(hosts)(1 << 20)) == 1 << 20


def test_a_measurement_and_a_trace_see_the_channels_of_a_process_elsewhere(tmp_path: Path) -> None:
    """Rules 14.4, 14.6: values that pass through a channel are counted at its home, and a process
    of another OS process appears in the figures under its own name."""
    a, b = Channel("a"), Channel("b")

    @th.process
    def writes(out: Any) -> None:
        for i in range(5):
            out.write(i)

    @th.process
    def reads(inp: Any) -> list[int]:
        return list(inp)

    trace = tmp_path / "trace"
    with observe.tracing(trace), observe.measuring() as measured:
        Parallel(writes(a.writer()), targets.double(a.reader(), b.writer()), reads(b.reader()))
    assert (measured[a].transfers, measured[b].transfers) == (5, 5)
    events = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()[1:]]
    elsewhere = [e for e in events if e.get("p") == "main/double"]
    assert elsewhere[0]["e"] == "start"
    assert (elsewhere[-1]["e"], elsewhere[-1]["how"]) == ("end", "returned")
    assert [e["c"] for e in events if e.get("p") == "main/reads" and e["e"] == "commit"] == [
        "b"
    ] * 5
