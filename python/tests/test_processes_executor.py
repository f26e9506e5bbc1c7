"""Tests weft.processes.Executor beside concurrent.futures.ProcessPoolExecutor: the behaviour that
both share, and the features of Weft's Executor alone.
"""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import os_process_targets as targets
import pytest
from children import child
from test_processes import children, program

from weft._hosts.pickling import RemoteTraceback
from weft.processes import BadUse, Executor, Retired

POOLS = [Executor, cf.ProcessPoolExecutor]


def ours() -> set[int]:
    """Returns the pids of the OS processes that Weft has started. multiprocessing keeps other OS
    processes.
    """
    mine = set()
    for pid in children():
        with contextlib.suppress(OSError):
            if b"weft._hosts.child" in Path(f"/proc/{pid}/cmdline").read_bytes():
                mine.add(pid)
    return mine


@pytest.fixture(scope="module", autouse=True)
def nobody_is_left() -> Iterator[None]:
    before = ours()
    yield
    gc.collect()
    assert ours() <= before


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(2) as e:
        yield e


# --- the shared behaviour: the same tests for both ------------------------------------------------


@pytest.fixture(scope="module", params=POOLS, ids=lambda p: p.__module__)
def either(request: pytest.FixtureRequest) -> Iterator[cf.Executor]:
    import multiprocessing

    with request.param(2, mp_context=multiprocessing.get_context("spawn")) as e:
        yield e


def test_submit_gives_a_future(either: cf.Executor) -> None:
    assert either.submit(targets.power, 2, b=10).result() == 1024
    assert isinstance(either.submit(targets.power, 2), cf.Future)
    assert either._max_workers == 2  # type: ignore[attr-defined]  # dask reads this field


def test_map_keeps_the_order(either: cf.Executor) -> None:
    assert list(either.map(targets.power, range(500), range(500))) == [
        targets.power(i, i) for i in range(500)
    ]
    assert list(either.map(targets.power, range(50), chunksize=7)) == [i * i for i in range(50)]
    assert list(either.map(targets.power, [])) == []
    with pytest.raises(ValueError, match="chunksize"):
        either.map(targets.power, [1], chunksize=0)


def test_what_the_inputs_of_a_map_raise_comes_at_once(either: cf.Executor, tmp_path: Path) -> None:
    """The calls before the input that raises are still made."""
    marks = [tmp_path / str(n) for n in range(5)]

    def inputs() -> Iterator[Path]:
        yield from marks
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        either.map(Path.touch, inputs())
    list(either.map(targets.power, range(100)))  # the calls are served in order
    until = time.monotonic() + 280
    while not all(mark.exists() for mark in marks) and time.monotonic() < until:
        pass
    assert all(mark.exists() for mark in marks)


def test_map_raises_what_a_call_raised_in_its_place(either: cf.Executor) -> None:
    results = either.map(targets.inverse, [1, 2, 0, 4])
    assert [next(results), next(results)] == [1, 0.5]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_an_exception_has_the_traceback_of_there(either: cf.Executor) -> None:
    error = either.submit(targets.inverse, 0).exception()
    assert isinstance(error, ZeroDivisionError)
    assert "in inverse" in str(error.__cause__)


def test_map_gives_up_after_its_timeout(either: cf.Executor, tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        os.mkfifo(path)
    busy = [either.submit(targets.wait_for_file, str(path)) for path in paths]
    results = either.map(targets.power, range(20), timeout=0)
    with pytest.raises(cf.TimeoutError):
        next(results)
    for path in paths:
        path.write_text("go", encoding="utf-8")
    assert [b.result() for b in busy] == ["go", "go"]


def test_done_callbacks_and_wait(either: cf.Executor) -> None:
    seen: queue.SimpleQueue[int] = queue.SimpleQueue()
    futures = [either.submit(targets.power, i) for i in range(20)]
    for f in futures:
        f.add_done_callback(lambda f: seen.put(f.result()))
    done, pending = cf.wait(futures)
    assert len(done) == 20 and not pending
    assert sorted(f.result() for f in cf.as_completed(futures)) == sorted(i * i for i in range(20))
    # A thread that waits for the result continues before the callbacks are called.
    assert sorted(seen.get() for _ in futures) == sorted(i * i for i in range(20))


def test_what_cannot_be_sent_fails_its_call_alone(either: cf.Executor) -> None:
    futures = [
        either.submit(targets.power, 3),
        either.submit(targets.power, targets.Unsendable()),
        either.submit(targets.unsendable),
        either.submit(targets.power, 4),
    ]
    assert [f.exception() is None for f in futures] == [True, False, False, True]
    assert futures[3].result() == 16


@pytest.mark.parametrize("kind", POOLS)
def test_so_does_the_first_call_of_all(kind: Any) -> None:
    with kind(1) as e:
        futures = [e.submit(targets.power, targets.Unsendable()), e.submit(targets.power, 4)]
        assert futures[0].exception() is not None
        assert not isinstance(futures[0].exception(), BrokenProcessPool)
        assert futures[1].result() == 16


def test_a_call_that_exits_fails_with_that(either: cf.Executor) -> None:
    assert isinstance(either.submit(targets.exits).exception(), SystemExit)
    assert either.submit(targets.power, 5).result() == 25


@pytest.mark.parametrize("kind", POOLS)
def test_bad_arguments(kind: Any) -> None:
    with pytest.raises(ValueError, match="max_workers"):
        kind(0)
    with pytest.raises(TypeError, match="initializer"):
        kind(1, initializer=5)


def test_a_function_that_is_none(either: cf.Executor) -> None:
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        either.submit(None, 3).result()  # type: ignore[arg-type]


def test_a_process_that_dies_breaks_the_pool_as_there() -> None:
    for kind in POOLS:
        with kind(1) as e:
            assert isinstance(e.submit(targets.exits_at_once).exception(), BrokenProcessPool)
            with pytest.raises(BrokenProcessPool):
                e.submit(targets.power, 1)


def test_an_initializer_that_fails_breaks_the_pool_as_there() -> None:
    for kind in POOLS:
        with kind(1, initializer=targets.fails_at_once) as e:
            with pytest.raises(BrokenProcessPool):
                e.submit(targets.power, 1).result()
            with pytest.raises(BrokenProcessPool):
                e.submit(targets.power, 1)


def test_after_shutdown_nothing_more_as_there() -> None:
    for kind in POOLS:
        e = kind(1)
        future = e.submit(targets.power, 3)
        e.shutdown()
        e.shutdown()
        assert future.result() == 9
        with pytest.raises(RuntimeError, match="after shutdown"):
            e.submit(targets.power, 1)


def test_what_waits_can_be_cancelled(tmp_path: Path) -> None:
    """With ProcessPoolExecutor, shutdown() does not cancel the futures, and a second shutdown()
    withdraws the first request.
    """
    path = tmp_path / "go"
    os.mkfifo(path)
    e = Executor(1)
    first = e.submit(targets.wait_for_file, str(path))
    with path.open("w", encoding="utf-8") as file:  # the call has begun
        others = [e.submit(targets.power, i) for i in range(10)]
        assert others[9].cancel()
        with pytest.raises(cf.CancelledError):
            others[9].result()
        e.shutdown(wait=False, cancel_futures=True)
        file.write("go")
    e.shutdown()
    assert first.result() == "go"
    assert all(f.cancelled() for f in others)


# --- Weft's alone ---------------------------------------------------------------------------------


def test_the_initializer_and_both_processes(tmp_path: Path) -> None:
    with Executor(2, initializer=targets.remember, initargs=("x",), preload=["colorsys"]) as e:
        assert e.submit(targets.memory_and_module).result() == ("x", True, "1")
        paths = [str(tmp_path / "a"), str(tmp_path / "b")]
        for path in paths:
            os.mkfifo(path)
        # Each of the two calls waits for the other, so they run in two OS processes.
        one = e.submit(targets.meet, *paths)
        two = e.submit(targets.meet, *reversed(paths))
        assert len({one.result(), two.result(), os.getpid()}) == 3


def test_a_process_that_dies_while_it_has_nothing_to_do_breaks_the_pool_at_once() -> None:
    with Executor(1) as e:
        pid = e.submit(os.getpid).result()
        os.kill(pid, signal.SIGKILL)
        e._state.feeders[0].join()
        with pytest.raises(BrokenProcessPool):
            e.submit(os.getpid)


def test_after_so_many_calls_a_fresh_process() -> None:
    with Executor(1, max_tasks_per_child=3) as e:
        pids = list(e.map(targets.its_pid, range(7)))
    assert len(set(pids)) == 3 and pids == sorted(pids, key=pids.index)


def test_short_calls_go_many_at_a_time_and_none_is_lost(pool: Executor) -> None:
    assert list(pool.map(targets.power, range(5000))) == [i * i for i in range(5000)]


def test_a_result_does_not_wait_for_a_slow_call_behind_it(pool: Executor, tmp_path: Path) -> None:
    list(pool.map(targets.power, range(2000)))  # after these calls the executor sends batches
    path = tmp_path / "go"
    os.mkfifo(path)
    futures = [pool.submit(targets.power, i) for i in range(100)]
    slow = pool.submit(targets.wait_for_file, str(path))
    rest = [pool.submit(targets.power, i) for i in range(100)]
    assert [f.result() for f in futures[:50]] == [i * i for i in range(50)]
    path.write_text("go", encoding="utf-8")
    assert slow.result() == "go"
    assert [f.result() for f in rest] == [i * i for i in range(100)]


def test_large_arrays(pool: Executor) -> None:
    numpy = pytest.importorskip("numpy")
    a = numpy.arange(200_000.0)
    assert (pool.submit(targets.doubled, a).result() == 2 * a).all()


def test_lambdas_and_bound_methods(pool: Executor) -> None:
    pytest.importorskip("cloudpickle")
    k = 5
    assert list(pool.map(lambda v: v + k, range(3))) == [5, 6, 7]
    assert pool.submit("a b".split).result() == ["a", "b"]


def test_many_threads_submit(pool: Executor) -> None:
    got: list[int] = []

    def submit() -> None:
        got.extend(f.result() for f in [pool.submit(targets.power, i) for i in range(100)])

    threads = [threading.Thread(target=submit) for _ in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(got) == sorted([i * i for i in range(100)] * 5)


class Reduced:
    """An argument of an initializer. It calls `begins` when it is pickled, which happens when an OS
    process is started, on the thread that submits."""

    def __init__(self, begins: Any) -> None:
        self.begins = begins

    def __reduce__(self) -> Any:
        self.begins()
        return int, (3,)


def test_two_threads_that_submit_first_do_not_wait_for_each_other() -> None:  # rule 12.1
    both = threading.Barrier(2)
    got: list[int] = []
    with Executor(
        2, initializer=targets.remember, initargs=(Reduced(lambda: both.wait(280)),)
    ) as e:
        threads = [
            threading.Thread(target=lambda n=n: got.append(e.submit(targets.power, n).result()))
            for n in (3, 4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert sorted(got) == [9, 16]


def test_an_initializers_argument_may_use_the_executor() -> None:  # rule 12.1
    inner: list[cf.Future[int]] = []

    def begins() -> None:
        if not inner:
            inner.append(e.submit(targets.power, 5))

    with Executor(1, initializer=targets.remember, initargs=(Reduced(begins),)) as e:
        assert e.submit(targets.power, 3).result() == 9
    assert inner[0].result() == 25


def test_shutdown_waits_for_a_process_that_is_being_started() -> None:
    begun, go = threading.Event(), threading.Event()
    got: list[cf.Future[int]] = []

    def begins() -> None:
        begun.set()
        go.wait()

    e = Executor(1, initializer=targets.remember, initargs=(Reduced(begins),))
    submits = threading.Thread(target=lambda: got.append(e.submit(targets.power, 3)))
    submits.start()
    begun.wait()
    e.shutdown(wait=False)
    go.set()
    e.shutdown()
    submits.join()
    assert got[0].result() == 9


def test_a_process_that_cannot_be_started_is_told_to_who_submits_and_the_call_is_gone() -> None:
    def begins() -> None:
        if not messages:
            messages.append("no")
            raise KeyError("not now")

    messages: list[str] = []
    with Executor(1, initializer=targets.remember, initargs=(Reduced(begins),)) as e:
        with pytest.raises(BadUse, match="not now"):
            e.submit(targets.power, 3)
        assert not e._state.waiting
        assert e.submit(targets.power, 4).result() == 16


def test_an_executor_that_is_collected_takes_no_more_calls() -> None:
    e = Executor(1)
    state = e._state
    del e
    gc.collect()
    assert state.ended


def test_shutdown_in_a_callback_waits_for_the_others_and_not_for_itself(tmp_path: Path) -> None:
    """Each callback runs on the thread of a feeder, and both callbacks wait for all existing OS
    processes. In concurrent.futures a shutdown in a callback is a RuntimeError.
    """
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    for path in paths:
        os.mkfifo(path)
    both = threading.Barrier(2)
    reports: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ends(_: Any) -> None:
        both.wait(280)
        try:
            reports.put(e.shutdown())
        except BaseException as error:
            reports.put(error)

    e = Executor(2)
    for mine, other in (paths, paths[::-1]):
        e.submit(targets.meet, mine, other).add_done_callback(ends)
    assert [reports.get(), reports.get()] == [None, None]
    e.shutdown()
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        e.submit(os.getpid)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, Retired, MemoryError])
def test_what_a_callback_raises_reaches_no_other_call(
    pool: Executor, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type))

    def fails(_: Any) -> None:
        raise error

    called = pool.submit(targets.power, 3)
    called.add_done_callback(fails)
    assert called.result() == 9
    assert list(pool.map(targets.power, range(50))) == [i * i for i in range(50)]
    # Other exceptions are only logged.
    assert reported == ([] if issubclass(error, Exception) else [error])


def test_a_future_that_the_program_tells_itself_harms_nobody(pool: Executor) -> None:
    odd = [pool.submit(targets.power, n) for n in range(30)]
    for future in odd[::2]:
        with contextlib.suppress(cf.InvalidStateError):
            future.set_result("mine")
    assert [f.result() for f in odd[1::2]] == [n * n for n in range(1, 30, 2)]
    assert list(pool.map(targets.power, range(50))) == [i * i for i in range(50)]


def test_two_that_wait_for_one_process_are_both_told_that_it_does_not_start() -> None:
    """The second submit waits for the process that the first submit starts."""
    begun, go = threading.Event(), threading.Event()
    log: list[str] = []

    def begins() -> None:
        begun.set()
        go.wait()
        raise KeyError("not now")

    e = Executor(1, initializer=targets.remember, initargs=(Reduced(begins),))

    def submits() -> None:
        with pytest.raises(BadUse, match="not now"):
            e.submit(targets.power, 3)
        log.append("first")

    first = threading.Thread(target=submits)
    first.start()
    begun.wait()
    second = e.submit(targets.power, 4)
    go.set()
    first.join()
    with pytest.raises(BadUse, match="not now"):
        second.result()
    assert log == ["first"]
    e.shutdown()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python runs handlers elsewhere")
def test_a_handler_may_use_it_wherever_it_interrupts() -> None:  # rule 12.1
    """This test runs handled.py at some of the places where a handler can interrupt; the soak runs
    it at all places."""
    with child(str(Path(__file__).with_name("handled.py")), "31") as running:
        out, err = running.communicate()
    assert running.returncode == 0, f"{out[-2000:]}\n{err[-4000:]}"
    assert out.splitlines()[-1].endswith(" passed, 0 failed"), out[-2000:]


def test_a_module_in_place_of_a_list_of_them() -> None:
    with pytest.raises(TypeError, match=r"preload must be a list of modules, as \['json'\]"):
        Executor(1, preload="json")


@pytest.mark.parametrize("block", [True, False])
def test_ctrl_c_does_not_wait_for_calls(tmp_path: Path, block: bool) -> None:  # rule 6.7
    main = tmp_path / "main.py"
    main.write_text(
        "import signal, sys, time\n"
        "from weft.processes import Executor\n"
        "def waits(n):\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(3600)\n"  # only Ctrl-C ends this call
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        + (
            "    with Executor(1) as pool:\n        list(pool.map(waits, range(3)))\n"
            if block
            else "    list(Executor(1).map(waits, range(3)))\n"
        )
    )
    process = subprocess.Popen(
        [sys.executable, main], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    answer, errors = process.communicate()
    assert (process.returncode, answer) == (-signal.SIGINT, "")
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_the_cause_is_a_remote_traceback(pool: Executor) -> None:
    error = pool.submit(targets.inverse, 0).exception()
    assert error is not None and isinstance(error.__cause__, RemoteTraceback)


def test_one_that_is_dropped_and_a_program_that_ends_without_shutdown(tmp_path: Path) -> None:
    e = Executor(1)
    future, feeders = e.submit(targets.power, 3), e._state.feeders
    del e
    gc.collect()
    assert future.result() == 9
    for f in feeders:
        f.join()
    result = program(
        tmp_path,
        """
        from weft.processes import BadUse, Executor, Retired

        def square(n):
            return n * n

        if __name__ == "__main__":
            e = Executor(2)
            e.submit(square, 5).add_done_callback(lambda f: print(f.result()))
        """,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "25\n", "")
