"""The features that Executor.map() of weft.processes adds to those of concurrent.futures: results
in the order in which calls end, exceptions as results, retries and time limits (rule 9.5), and a
progress bar. Also tests executors in workers."""

from __future__ import annotations

import concurrent.futures as cf
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import executor_targets as targets
import os_process_targets as others
import pytest
from children import child

from weft._hosts import progress_bar
from weft.processes import BadUse, Executor, ProcessDied


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(2) as e:
        yield e


# --- results --------------------------------------------------------------------------------------


def test_results_as_they_come(pool: Executor, tmp_path: Path) -> None:
    path = tmp_path / "late"
    os.mkfifo(path)
    other = tmp_path / "now"
    other.write_text("2", encoding="utf-8")
    results = pool.map(targets.opens, [path, other], ordered=False)
    assert next(results) == 2
    path.write_text("1", encoding="utf-8")
    assert list(results) == [1]
    assert sorted(pool.map(abs, range(500), ordered=False)) == list(range(500))
    assert list(pool.map(abs, [], ordered=False)) == []


@pytest.mark.parametrize("ordered", [True, False])
def test_exceptions_as_results(pool: Executor, ordered: bool) -> None:
    found = list(pool.map(others.inverse, [1, 0, 2], ordered=ordered, return_exceptions=True))
    assert sorted(map(str, found)) == ["0.5", "1.0", "division by zero"]
    if ordered:
        assert isinstance(found[1], ZeroDivisionError)
    results = pool.map(others.inverse, [0, 0], ordered=ordered)
    with pytest.raises(ZeroDivisionError):
        list(results)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_reader_that_leaves_cancels_what_waits(tmp_path: Path, ordered: bool) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with Executor(1) as e:
        first = e.submit(others.wait_for_file, str(path))
        results = e.map(targets.marks, [str(tmp_path)] * 9, range(9), ordered=ordered, timeout=0)
        with pytest.raises(cf.TimeoutError):
            next(results)
        path.write_text("go", encoding="utf-8")
        assert first.result() == "go"
    assert len(list(tmp_path.iterdir())) < 9


# --- rule 9.5: retries ----------------------------------------------------------------------------


def test_a_call_whose_process_died_is_run_again(pool: Executor, tmp_path: Path) -> None:
    """Rule 9.5: with retries, a call whose process died is run again."""
    folder = [str(tmp_path)] * 5
    assert list(pool.map(targets.dies_first, folder, range(5), retries=1)) == list(range(5))
    assert pool.submit(abs, -3).result() == 3


def test_a_call_that_always_kills_its_process_fails_alone(tmp_path: Path) -> None:
    """Rule 9.5: a call that kills its process each time fails, and the other calls do not."""
    with Executor(1) as e:
        given = [str(tmp_path)] * 3, range(3), (0, 9, 0)
        found = list(e.map(targets.dies_first, *given, retries=2, return_exceptions=True))
        assert [found[0], found[2]] == [0, 2]
        assert isinstance(found[1], ProcessDied)
        assert "of 'dies_first, call 1 of its map()' was ended by SIGKILL" in str(found[1])
        assert targets.marks(str(tmp_path), 1) == 3  # the call itself, and two retries
        assert e.submit(abs, -3).result() == 3


def test_without_retries_a_death_breaks_the_pool_as_ever() -> None:
    """Rule 9.5: without retries, the death of a process breaks the pool."""
    for options in ({}, {"time_limit": 100}):
        with Executor(1) as e:
            with pytest.raises(BrokenProcessPool, match="of 'an Executor' was ended by SIGKILL"):
                list(e.map(targets.dies, [1], **options))
            with pytest.raises(BrokenProcessPool):
                e.submit(abs, 1)


def test_exceptions_that_are_named_are_retried(pool: Executor, tmp_path: Path) -> None:
    """Rule 9.5: only exceptions of the named classes are retried."""
    folder = [str(tmp_path)] * 2
    error = [OSError("once"), PermissionError("once")]
    kinds: Any
    for kinds in (OSError, (KeyError, OSError)):
        for file in tmp_path.iterdir():
            file.unlink()
        got = pool.map(targets.raises_first, folder, range(2), error, retries=1, retry_on=kinds)
        assert list(got) == [0, 1]
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(OSError, match="once"):
        list(pool.map(targets.raises_first, folder, range(2), error, retries=3, retry_on=KeyError))
    assert targets.marks(str(tmp_path), 0) == 1


def test_a_process_killed_while_it_has_nothing_to_do_is_replaced_after_retries() -> None:
    with Executor(1) as e:
        (pid,) = e.map(others.its_pid, [1], retries=1)
        os.kill(pid, signal.SIGKILL)
        # A call that is sent before the death is noticed has already begun.
        assert list(e.map(abs, [-1, -2], retries=1)) == [1, 2]


def test_an_initializer_that_fails_the_second_time_breaks_the_pool(tmp_path: Path) -> None:
    with (
        Executor(1, initializer=targets.once_only, initargs=(str(tmp_path / "mark"),)) as e,
        pytest.raises(BrokenProcessPool),
    ):
        list(e.map(targets.dies, [1], retries=5))


# --- rule 9.5: time limits ------------------------------------------------------------------------


def with_limits(found: Callable[[float], list[Any]], wanted: Callable[[list[Any]], bool]) -> Any:
    """Calls `found` with one time limit after another, the shortest first, until `wanted` accepts
    the result. Returns the last result. A limit holds for all calls of a map(), and on a busy
    machine a call that computes nothing may take longer than a short limit.
    """
    for seconds in (0.3, 3.0, 30.0):
        results = found(seconds)
        if wanted(results):
            break
    return results


def test_a_time_limit_ends_its_call_alone(pool: Executor) -> None:
    """Rule 9.5: only the call that exceeds its time limit fails."""

    def found(seconds: float) -> list[Any]:
        options = {"time_limit": seconds, "return_exceptions": True}
        return list(pool.map(targets.stays, range(5), [(1, 3)] * 5, **options))

    results = with_limits(found, lambda results: results[::2] == [0, 2, 4])
    assert results[::2] == [0, 2, 4]
    for n in (1, 3):
        assert isinstance(results[n], TimeoutError)
        says = f"stays, call {n} of its map(), was not over within its time_limit"
        assert says in str(results[n])
    assert pool.submit(abs, -3).result() == 3


def test_a_time_limit_and_a_retry(pool: Executor, tmp_path: Path) -> None:
    def found(seconds: float) -> list[Any]:
        folder = tmp_path / str(seconds)
        folder.mkdir()
        options: Any = {"time_limit": seconds, "retries": 1, "retry_on": TimeoutError}
        given = [str(folder)] * 2, range(2)
        return list(pool.map(targets.stays_first, *given, return_exceptions=True, **options))

    assert with_limits(found, lambda results: results == [0, 1]) == [0, 1]


def test_a_time_limit_that_is_far_away_changes_nothing(pool: Executor) -> None:
    assert list(pool.map(others.power, range(300), time_limit=1e6)) == [i * i for i in range(300)]


@pytest.mark.parametrize("endless", [float("inf"), 1e300])
def test_an_endless_time_limit_leaves_the_next_one_in_force(endless: float) -> None:
    """Rule 9.5: after an endless limit, the next limit still ends its call."""
    with Executor(1) as e:
        assert list(e.map(abs, [-1], time_limit=endless)) == [1]
        options = {"time_limit": 0.3, "return_exceptions": True}
        (late,) = e.map(targets.stays, [0], [(0,)], **options)
        assert isinstance(late, TimeoutError)


def test_what_cannot_be_sent_fails_alone_though_it_is_watched(pool: Executor) -> None:
    given = [1, targets.RaisesWhenPickled(), 3]
    options: Any = {"time_limit": 100, "retries": 2, "return_exceptions": True}
    found = list(pool.map(abs, given, retry_on=Exception, **options))
    assert [found[0], found[2]] == [1, 3]
    assert "not this one" in str(found[1])


def test_shutdown_in_the_middle(tmp_path: Path) -> None:
    e = Executor(1)
    futures = e.map(targets.dies_first, [str(tmp_path)] * 6, range(6), retries=1)
    e.shutdown()
    assert list(futures) == list(range(6))
    with Executor(1) as e:
        results = e.map(targets.marks, [str(tmp_path)] * 999, range(999), retries=1)
        e.shutdown(wait=False, cancel_futures=True)
        e.shutdown()
        with pytest.raises(cf.CancelledError):
            list(results)


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"retries": -1}, ValueError, "retries"),
        ({"retries": "two"}, ValueError, "retries"),
        ({"retry_on": OSError}, ValueError, "retry_on needs retries"),
        ({"retries": 1, "retry_on": "OSError"}, TypeError, "classes of exceptions"),
        ({"time_limit": 0}, ValueError, "time_limit"),
        ({"progress": "no"}, ValueError, "progress"),
    ],
)
def test_bad_arguments(pool: Executor, options: Any, kind: Any, says: str) -> None:
    with pytest.raises(kind, match=says):
        pool.map(abs, [1], **options)


# --- the bar --------------------------------------------------------------------------------------


def bars() -> list[threading.Thread]:
    """Returns the threads that draw bars now."""
    return [t for t in threading.enumerate() if t.name == "weft: draws progress"]


def test_a_bar_is_drawn_on_stderr_if_asked(pool: Executor, capsys: pytest.CaptureFixture) -> None:
    assert len(list(pool.map(abs, range(10_000), progress="always"))) == 10_000
    out, err = capsys.readouterr()
    assert out == ""
    assert "abs" in err
    assert "10000/10000" in err
    assert len(list(pool.map(abs, range(10), progress=True))) == 10  # standard error is no terminal
    assert capsys.readouterr() == ("", "")
    assert bars() == []


def test_the_bar_ends_when_its_reader_leaves_or_its_inputs_fail(
    pool: Executor, capsys: pytest.CaptureFixture
) -> None:
    results = pool.map(others.inverse, [1, 0, 2], progress="always", ordered=False)
    with pytest.raises(ZeroDivisionError):
        list(results)
    assert bars() == []

    def inputs() -> Iterator[int]:
        yield 1
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        pool.map(abs, inputs(), progress="always")
    assert bars() == []
    pool.map(abs, [1, 2, 3], progress="always")  # no code reads the results
    for thread in bars():
        thread.join()


def test_without_rich_the_error_says_what_to_do(
    pool: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(BadUse, match=r"pip install 'weft-csp\[cli\]'"):
        pool.map(abs, [1], progress=True)


def test_a_stderr_that_is_gone_does_not_harm_the_calls(
    pool: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    assert list(pool.map(abs, range(50), progress="always")) == list(range(50))
    assert progress_bar.begun("x", False) is None


CTRL_C = """
import signal, sys
import executor_targets as targets
from weft.processes import Executor

if __name__ == "__main__":
    options = {"progress": "always", "retries": 3, "time_limit": 1000}
    with Executor(2) as e:
        results = e.map(targets.stays, range(4), [(1, 2, 3)] * 4, **options)
        assert next(results) == 0
        signal.raise_signal(signal.SIGINT)
"""


def test_ctrl_c_in_a_map_with_a_bar_ends_the_program(tmp_path: Path) -> None:
    path = tmp_path / "stopped.py"
    path.write_text(CTRL_C, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with child(str(path), env=env) as p:
        _, err = p.communicate()
    assert p.returncode in (1, -signal.SIGINT), err
    assert "KeyboardInterrupt" in err


# --- executors in workers -------------------------------------------------------------------------


def test_an_executor_in_a_worker(pool: Executor) -> None:
    assert list(pool.map(targets.within_a_worker, [3, 2])) == [[3, 2, 1], [2, 1]]
