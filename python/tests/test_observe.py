"""Rule 14: the watchdog, measurements, and the rules for every observer. See also test_stuck,
test_trace, test_debug.
"""

from __future__ import annotations

import io
import json
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from parts import receive, send

from weft import _native
from weft._watching import measure as _measure
from weft._watching import observers as _observers
from weft.coroutines import Channel, Parallel, process, run, select, yield_
from weft.errors import BadUse, Deadlock
from weft.observe import measure, measuring, watchdog

HERE = Path(__file__).name
BOUND = 280.0  # s: no test waits longer than this

pytestmark = pytest.mark.usefixtures("nobody_observes")

# --- the watchdog (rule 14.1) ---------------------------------------------------------------------


def test_the_watchdog_names_a_hog_by_path_file_and_line() -> None:
    """Rule 14.1: the report has the path of the process, the file and the line."""
    hogs: list[Any] = []

    def spin() -> None:
        end = time.monotonic() + BOUND
        while not hogs and time.monotonic() < end:
            pass

    @process
    async def hog() -> None:
        await yield_()
        spin()

    @process
    async def other() -> None:
        await yield_()

    with watchdog(0.01, hogs.append):
        run(hog(), other())
    assert [h.path for h in hogs] == ["main/hog"]
    assert Path(hogs[0].file).name == HERE
    assert "while not hogs" in hogs[0].stack.splitlines()[-1] or "in spin" in hogs[0].stack
    assert "in hog" in hogs[0].stack and "pytest" not in hogs[0].stack
    assert hogs[0].seconds > 0.01
    assert "main/hog" in str(hogs[0]) and f"{HERE}:{hogs[0].line}" in str(hogs[0])


def test_one_report_for_each_incident() -> None:
    """Rule 14.1: a long step is reported once, until the process has let others run. The test has a
    clock of its own."""
    hogs: list[Any] = []
    dog = watchdog(1000.0, hogs.append)
    late = 10**13

    @process
    async def hog() -> None:
        now = _native._steady_ns
        dog.look(now())
        assert hogs == []  # the process is still within the limit
        dog.look(now() + late)
        dog.look(now() + 2 * late)
        assert len(hogs) == 1  # this is still the same incident
        await yield_()
        dog.look(now() + late)
        assert len(hogs) == 2  # the process has let others run in between

    _native._watch_steps(True)
    try:
        run(hog())
        dog.look(_native._steady_ns() + late)
    finally:
        _native._watch_steps(False)
    assert [h.path for h in hogs] == ["main/hog"] * 2


def test_a_process_that_parks_is_no_hog() -> None:
    """Rule 14.1: of a process that waits and a process that runs, only the second is reported."""
    hogs: list[Any] = []
    dog = watchdog(1.0, hogs.append)
    c = Channel("c")

    @process
    async def waits(r: Any) -> None:
        await r.read()

    @process
    async def looks(w: Any) -> None:
        await yield_()
        dog.look(
            _native._steady_ns() + 10**12
        )  # by then `waits` has waited long enough, and this process has run long enough
        await w.write(1)

    _native._watch_steps(True)
    try:
        run(waits(c.reader()), looks(c.writer()))
    finally:
        _native._watch_steps(False)
    assert [h.path for h in hogs] == ["main/looks"]


def test_without_a_callback_it_warns() -> None:
    """Rule 14.1: run(watchdog=) without a callback gives a warning."""
    warned = threading.Event()

    def shown(*_: Any, **__: Any) -> None:
        warned.set()

    @process
    async def hog() -> None:
        assert warned.wait(BOUND)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = shown
        run(hog(), watchdog=0.01)


def test_the_watchdogs_thread_hides_no_deadlock() -> None:
    """Rule 10.3: a deadlock is raised beside the watchdog, whose thread is a helper thread and uses
    no end."""
    c = Channel("c")
    keep = c.writer()  # a local variable holds the end: another thread might use it

    @process
    async def reads(r: Any) -> None:
        await r.read()

    with pytest.raises(Deadlock):
        run(reads(c.reader()), watchdog=100.0)
    assert not keep.closed


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "x"])
def test_a_limit_that_is_none(limit: Any) -> None:
    with pytest.raises(BadUse, match="limit"):
        watchdog(limit)


def test_a_watchdog_is_entered_once() -> None:
    with watchdog(100) as dog, pytest.raises(BadUse, match="once"):
        dog.__enter__()


# --- measurements (rule 14.4) ---------------------------------------------------------------------


@process
async def reads(r: Any) -> None:
    await r.read()


def test_measuring_says_who_waited_where(b: Any) -> None:
    """Rule 14.4: for each channel, the figures show which side waited and how often."""
    c, d = b.weft.Channel("c"), b.weft.Channel("buffered", capacity=3)
    with measuring() as m:
        b.run(
            b.process(send)(c.writer(), *range(10)),
            b.process(receive)(c.reader()),
        )
        b.run(b.process(send)(d.writer(), 1, 2, 3))
    row = m[c]
    assert (row.name, row.channels, row.transfers, row.dropped) == ("c", 1, 10, 0)
    assert row.parked_reads + row.parked_writes >= 10
    assert row.blocked_readers + row.blocked_writers > 0
    assert row.max_waiting_readers <= 1 and row.max_waiting_writers <= 1
    assert m["buffered"].max_buffered == 3
    assert json.loads(m.json())[0].keys() == vars(row).keys()
    out = io.StringIO()
    m.table(file=out)
    assert "buffered" in out.getvalue() and "10" in out.getvalue()
    with pytest.raises(KeyError):
        m["nobody"]


def test_the_longest_line() -> None:
    """Rule 14.4: the longest waiting queue counts three readers, one of them in a select."""
    c = Channel("c")

    @process
    async def selects(r: Any) -> Any:
        return await select(r)

    @process
    async def later(w: Any) -> None:
        await yield_()
        for i in range(3):
            await w.write(i)

    with measuring() as m:
        run(reads(c.reader()), reads(c.reader()), selects(c.reader()), later(c.writer()))
    assert (m[c].max_waiting_readers, m[c].parked_reads, m[c].transfers) == (3, 3, 3)
    assert m[c].parked_writes == 0 and m[c].blocked_writers == 0


def test_only_what_happens_in_the_block_counts() -> None:
    """Rule 14.4: operations before and after the block are not counted."""
    c = Channel("c")

    def once() -> None:
        @process
        async def writes(w: Any) -> None:
            await w.write(1)

        keep = c.reader(), c.writer()
        run(reads(c.reader()), writes(c.writer()))
        ends.append(keep)

    ends: list[Any] = []
    once()
    with measuring() as m:
        once()
    once()
    assert c.stats().transfers == 3
    assert m[c].transfers == 2 or m[c].transfers == 1
    m2 = measure(True)
    once()
    assert measure(False) is m2 and m2 is not None
    assert measure(False) is None


def test_many_channels_are_folded_into_their_names() -> None:
    """Rule 14.4: rows of channels that no longer exist are not kept."""

    @process
    async def writes(w: Any) -> None:
        await w.write(1)

    @process
    async def many() -> None:
        for _ in range(3000):
            c = Channel()
            await Parallel(reads(c.reader()), writes(c.writer()))

    with measuring() as m:
        run(many())
    (row,) = m.rows()
    assert (row.channels, row.transfers) == (3000, 3000)
    assert len(m._live) <= 1024 + 1


def test_two_threads_that_fold_at_once_count_a_channel_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rule 14.4: if two threads fold the rows of one channel, its figures count once."""

    @process
    async def writes(w: Any) -> None:
        await w.write(1)

    def once() -> None:
        c = Channel("c")
        run(reads(c.reader()), writes(c.writer()))

    others: list[threading.Thread] = []
    fold = _measure._Live.fold

    def beside(live: Any, rows: Any) -> None:
        if not others:
            others.append(threading.Thread(target=m._sweep))
            others[0].start()
            others[0].join()
        fold(live, rows)

    with measuring() as m:
        once()
        monkeypatch.setattr(_measure._Live, "fold", beside)
        m._sweep()
    assert len(others) == 1
    assert (m["c"].channels, m["c"].transfers) == (1, 1)


# --- any observer (rule 14.2) ---------------------------------------------------------------------


def test_one_that_begins_to_look_as_another_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 14.2: one thread begins to observe while another stops. The extension is the last to
    learn that there is no observer."""
    asked, tell = threading.Event(), _native._set_observer
    seen: list[str] = []

    def first(*_: Any) -> None:
        pass

    def second(what: str, *_: Any) -> None:
        seen.append(what)

    class Lock:
        """A lock that reports when the other thread waits for it."""

        def __init__(self) -> None:
            self.lock = threading.RLock()

        def __enter__(self) -> None:
            if threading.current_thread() is other:
                asked.set()
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    def slowly(observer: Any) -> None:
        if threading.current_thread() is not other:
            other.start()
            while other.is_alive() and not asked.is_set():
                pass
        tell(observer)

    other = threading.Thread(target=_observers.add, args=(second,))
    monkeypatch.setattr(_observers, "_lock", Lock())
    _observers.add(first)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(_native, "_set_observer", slowly)
            _observers.remove(first)
            other.join()

        @process
        async def nothing() -> None:
            pass

        run(nothing())
    finally:
        _observers.remove(second)
    assert seen == ["start", "end"]


def test_an_observer_that_raises_disturbs_nobody(b: Any) -> None:
    """Rule 14.2: the observer's exception does not reach the observed process, and changes no
    outcome."""
    c = b.weft.Channel("c")

    def bad(*_: Any) -> None:
        raise RuntimeError("observer")

    _observers.add(bad)
    try:
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "unraisablehook", lambda _: None)
            got = b.run(b.process(send)(c.writer(), 1), b.process(receive)(c.reader()))
    finally:
        _observers.remove(bad)
    assert got == [None, [1]]
