"""The world of a checked function: which parts are virtual, seeded or refused, and that everything
is restored (rules 17.3, 17.9). These tests need no engine: `world.run()` surrounds each run.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import multiprocessing
import os
import queue
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
import types
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from weft import BadUse
from weft._checking import patches as _patches
from weft._checking.patches import Refused, World


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def world(clock: list[float]) -> Iterator[World]:
    with World(lambda: clock[0], seed=7) as world:
        yield world


# --- time -----------------------------------------------------------------------------------------


def test_clocks_are_those_of_the_run(world: World, clock: list[float]) -> None:
    """Rule 17.3: all clocks advance with the time of the run."""
    with world.run():
        before = time.time(), time.monotonic(), time.perf_counter(), time.monotonic_ns()
        clock[0] = 2.5
        after = time.time(), time.monotonic(), time.perf_counter(), time.monotonic_ns()
    assert [b - a for a, b in zip(before, after, strict=True)] == [2.5, 2.5, 2.5, 2_500_000_000]
    assert before[0] == _patches.EPOCH and before[1] == 0
    assert isinstance(after[3], int) and isinstance(after[1], float)


def test_sleeping_takes_no_time_but_that_of_the_run(world: World) -> None:
    """Rule 17.3: time.sleep() advances the time of the run and takes no real time."""
    began = _patches.real.clock()
    with world.run():
        time.sleep(3600)
        assert time.monotonic() == 3600
        with pytest.raises(ValueError, match="non-negative"):
            time.sleep(-1)
    with world.run():
        assert time.monotonic() == 0
    assert _patches.real.clock() - began < 3600


def test_a_process_that_may_stop_sleeps_in_its_run(clock: list[float]) -> None:
    slept: list[float] = []
    with World(lambda: clock[0], sleep=lambda s: slept.append(s) or True) as world, world.run():  # type: ignore[func-returns-value]
        time.sleep(3)
        assert time.monotonic() == 0
    assert slept == [3]


def test_outside_of_a_run_the_clocks_are_real(world: World) -> None:
    assert time.time() > _patches.EPOCH * 1.5
    assert time.perf_counter() <= _patches.real.clock()


def test_on_another_thread_the_clocks_are_real(world: World) -> None:
    values: list[float] = []
    with world.run():
        thread = threading.Thread(target=lambda: values.append(time.time()))
        world._active = False
        thread.start()
        world._active = True
        thread.join()
    assert values[0] > _patches.EPOCH * 1.5


def test_a_name_that_was_imported_before_is_replaced_too(tmp_path: Path) -> None:
    """Rule 17.3: a name that `from time import monotonic` has put into a module of the program is
    also replaced."""
    module = types.ModuleType("checked_program")
    module.__file__ = str(tmp_path / "checked_program.py")
    exec("from time import monotonic, sleep as nap\nfrom os import urandom", module.__dict__)
    real = module.monotonic
    sys.modules["checked_program"] = module
    try:
        with World(lambda: 5.0) as world, world.run():
            assert module.monotonic() == 5.0
            module.nap(2)
            assert module.monotonic() == 7.0
            assert module.urandom(4) == os.urandom(0) + _first_bytes(world, 4)
        assert module.monotonic is real
    finally:
        del sys.modules["checked_program"]


def _first_bytes(world: World, size: int) -> bytes:
    return random.Random(world._seed).randbytes(size)


# --- random ---------------------------------------------------------------------------------------


def _drawn() -> list[Any]:
    return [
        random.random(), random.Random().random(), random.SystemRandom().random(), os.urandom(8),
        secrets.token_hex(8), uuid.uuid4(), uuid.uuid1(),
    ]  # fmt: skip


def test_random_numbers_are_the_same_in_every_run(world: World) -> None:
    """Rule 17.3: random, Random(), SystemRandom, urandom, secrets and uuid give the same numbers in
    each run."""
    with world.run():
        first = _drawn()
    with world.run():
        second = _drawn()
    assert first == second
    with World(lambda: 0.0, seed=8) as other, other.run():
        third = _drawn()
    assert all(a != b for a, b in zip(first[:-1], third[:-1], strict=True))


def test_random_numbers_outside_are_as_they_were() -> None:
    random.seed(3)
    expected = [random.random() for _ in range(4)]
    random.seed(3)
    got = [random.random()]
    with World(lambda: 0.0) as world, world.run():
        random.random()
    got += [random.random() for _ in range(3)]
    assert got == expected
    assert os.urandom(16) != os.urandom(16)


def test_numpy_is_seeded(world: World) -> None:
    numpy = pytest.importorskip("numpy")
    drawn = []
    for _ in range(2):
        with world.run():
            drawn.append((numpy.random.rand(), numpy.random.default_rng().random()))
    assert drawn[0] == drawn[1]


# --- calls that are refused -----------------------------------------------------------------------


def _own_loop() -> None:
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.run_forever()


def _condition() -> None:
    condition = threading.Condition()
    with condition:
        condition.wait(1)


def _lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


@pytest.mark.parametrize(
    ("does", "says"),
    [
        (lambda: threading.Thread(target=print).start(), "starts a thread.*make it a process"),
        (lambda: threading.Timer(1, print).start(), "starts a thread"),
        (lambda: multiprocessing.Process(target=print).start(), "multiprocessing.*weft.processes"),
        (_own_loop, "event loop.*without the loop"),
        (os.fork, "os.fork.*--stub"),
        (lambda: os.forkpty(), "os.forkpty"),
        (lambda: os._exit(3), "os._exit"),
        (lambda: os.system("true"), "os.system"),
        (lambda: os.execv("/bin/true", ["true"]), "os.exec"),
        (_lock, "a lock.*use a channel"),
        (_condition, "a lock.*use a channel"),
        (lambda: threading.Event().wait(), "a lock"),
        (lambda: queue.Queue().get(), "a lock"),  # type: ignore[var-annotated]
        (lambda: queue.SimpleQueue().get(timeout=0), None),
    ],
)  # fmt: skip
def test_what_would_stop_or_leave_the_program_is_refused(
    world: World, does: Callable[[], Any], says: str | None
) -> None:
    """Rule 17.9: a call that no check can control is refused where it happens, with advice on what
    to do instead."""
    with world.run():
        if says is None:
            with pytest.raises(queue.Empty):
                does()
            assert world.refused == []
            return
        with pytest.raises(Refused, match=says) as error:
            does()
    assert "test_checking_world.py:" in str(error.value) and "\n" not in str(error.value)
    assert world.refused == [error.value]


def test_what_is_refused_is_noted_even_if_it_is_caught(world: World) -> None:
    """Rule 17.9: a refused call is recorded even if the program catches the exception."""
    with world.run(), contextlib.suppress(Exception):
        os.fork()
    assert len(world.refused) == 1


def test_a_lock_that_is_free_is_no_problem(world: World) -> None:
    with world.run():
        lock, again = threading.Lock(), threading.RLock()
        with lock, again, again:
            assert lock.locked() and not lock.acquire(blocking=False)
        assert not lock.locked()
        full: queue.Queue[int] = queue.Queue()
        full.put(1)
        assert full.get() == 1
        condition = threading.Condition()
        with condition:
            condition.notify_all()
        event = threading.Event()
        event.set()
        assert event.wait()
        with pytest.raises(RuntimeError, match="un-acquired"):
            again.release()
    assert world.refused == []


def test_such_a_lock_is_a_real_one_after_the_check() -> None:
    with World(lambda: 0.0) as world, world.run():
        lock, again = threading.Lock(), threading.RLock()
    order: list[str] = []
    lock.acquire()
    thread = threading.Thread(
        target=lambda: (lock.acquire(), order.append("second"), lock.release())
    )
    thread.start()
    order.append("first")
    lock.release()
    thread.join()
    assert order == ["first", "second"]
    with again:
        taken: list[bool] = []
        other = threading.Thread(target=lambda: taken.append(again.acquire(blocking=False)))
        other.start()
        other.join()
    assert taken == [False]


def test_everything_is_put_back() -> None:
    """Rule 17.12: a check leaves no function or module replaced."""
    holders: list[tuple[Any, str]] = [
        (time, "time"), (time, "sleep"), (time, "monotonic_ns"), (os, "urandom"), (os, "fork"), (os, "_exit"),
        (random, "_urandom"), (random.Random, "seed"), (threading, "Lock"), (threading, "RLock"),
        (threading, "_allocate_lock"), (threading.Thread, "start"), (asyncio, "run"),
        (asyncio.BaseEventLoop, "run_forever"),
    ]  # fmt: skip
    before = [holder.__dict__[name] for holder, name in holders]
    with (
        pytest.raises(ZeroDivisionError),
        World(lambda: 0.0, stub=("os.getpid",)) as world,
        world.run(),
    ):
        assert os.getpid() is None
        _ = 1 // 0
    assert [holder.__dict__[name] for holder, name in holders] == before
    assert os.getpid() > 0
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


# --- reports --------------------------------------------------------------------------------------


def test_what_writes_outside_is_told_once_with_its_line(world: World, tmp_path: Path) -> None:
    for n in range(3):
        with world.run():
            (tmp_path / "x").write_text(str(n))
            (tmp_path / "x").read_text()
            os.remove(tmp_path / "x")  # noqa: PTH107
            subprocess.run([sys.executable, "-c", ""], check=True)
    log = list(world.notes)
    assert [text.split(" ", 1)[1].split(",")[0] for text in log] == [
        "writes to a file",
        "removes a file",
        "starts a program",
    ]
    assert all("test_checking_world.py:" in text and "--stub" in text for text in log)


def test_reading_is_not_told(world: World) -> None:
    with world.run():
        Path(__file__).read_text()
        io.StringIO("x").read()
    assert not world.notes


def test_outside_of_a_run_nothing_is_told(world: World, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    assert not world.notes


def test_what_a_function_reaches_is_listed() -> None:
    inner, default = object(), object()

    def function(a: object = default) -> object:
        return inner, _drawn

    found = dict(_patches.outside_names(functools.partial(function, 3)))
    assert found["inner"] is inner and found["a default"] is default
    assert found["argument 0"] == 3 and found["_drawn"] is _drawn


# --- functions that never return ------------------------------------------------------------------


def test_a_function_that_never_comes_back_is_stopped() -> None:
    """Rule 17.9: a function that computes forever, or that waits for something outside Weft, is
    stopped."""
    with (
        pytest.raises(
            _patches.NeverBack, match=r"test_checking_world\.py:\d+: .*computes without end"
        ),
        _patches.alarm(0.05, lambda: 0),
    ):
        while True:
            pass
    read, write = os.pipe()
    with pytest.raises(_patches.NeverBack), _patches.alarm(0.05, lambda: 0):
        os.read(read, 1)
    os.close(read)
    os.close(write)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_function_that_goes_on_is_not_stopped() -> None:
    count = iter(range(1_000_000))
    end = _patches.real.clock() + 0.3
    with _patches.alarm(0.05, lambda: next(count)):
        while _patches.real.clock() < end:
            pass
    assert next(count) >= 2


def test_a_program_with_an_alarm_of_its_own_keeps_it() -> None:
    def own(*_: object) -> None: ...

    before = signal.signal(signal.SIGALRM, own)
    try:
        with _patches.alarm(0.01, lambda: 0):
            assert signal.getsignal(signal.SIGALRM) is own
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_stub_is_named_by_module_and_function() -> None:
    before = threading.Lock, time.monotonic, random.getstate()
    with pytest.raises(BadUse, match="no function"), World(lambda: 0.0, stub=("os.nothing",)):
        pass
    assert (threading.Lock, time.monotonic, random.getstate()) == before
