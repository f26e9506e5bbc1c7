"""Rule 14: watchdog, partial deadlock, measurements, traces. The debug mode is in test_debug.py."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import receive, send

from weft import _deadlocks, _native, _observers, _trace
from weft.coroutines import Channel, Parallel, process, run, select, sleep, yield_
from weft.errors import BadUse, Deadlock, WeftWarning
from weft.observe import deadlocks, measure, measuring, tracing, watchdog, watching_deadlocks

HERE = Path(__file__).name
BOUND = 60.0  # s: no test waits longer for what it waits for


@pytest.fixture(autouse=True)
def _nobody_observes() -> Any:
    yield
    assert _observers._observers == []


# --- the watchdog (rule 14.1) -------------------------------------------------------------------------


def test_the_watchdog_names_a_hog_by_path_file_and_line() -> None:
    """Rule 14.1."""
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
    """Rule 14.1: by a clock of the test's own."""
    hogs: list[Any] = []
    dog = watchdog(1.0, hogs.append)
    dog.limit = 1.0
    late = 10**10

    @process
    async def hog() -> None:
        now = _native._steady_ns
        dog.look(now())
        assert hogs == []  # within the limit
        dog.look(now() + late)
        dog.look(now() + 2 * late)
        assert len(hogs) == 1  # the same incident
        await yield_()
        dog.look(now() + late)
        assert len(hogs) == 2  # it has been back

    _native._watch_steps(True)
    try:
        run(hog())
        dog.look(_native._steady_ns() + late)
    finally:
        _native._watch_steps(False)
    assert [h.path for h in hogs] == ["main/hog"] * 2


def test_a_process_that_parks_is_no_hog() -> None:
    """Rule 14.1."""
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
        )  # waits has waited so long; this process, too, has run so long
        await w.write(1)

    _native._watch_steps(True)
    try:
        run(waits(c.reader()), looks(c.writer()))
    finally:
        _native._watch_steps(False)
    assert [h.path for h in hogs] == ["main/looks"]


def test_without_a_callback_it_warns() -> None:
    """Rule 14.1: run(watchdog=)."""
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
    """Rule 10.3: it is Weft's own, and uses no end."""
    c = Channel("c")
    keep = c.writer()  # held by a local variable: another thread might be the one that uses it

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


# --- partial deadlock (rules 10.5, 14.3) ----------------------------------------------------------------


async def read_then_write(b: Any, r: Any, w: Any) -> None:
    await b.op(w.write(await b.op(r.read())))


def test_two_that_wait_for_each_other_while_a_third_goes_on(b: Any) -> None:
    """Rule 10.5."""
    c, d = b.weft.Channel("c"), b.weft.Channel("d")
    gate = b.weft.Channel("gate")
    found: list[Any] = []

    async def looker(b: Any, done: Any) -> None:
        while not found:  # of threads: until both wait
            report = b.weft.deadlocks()
            if len(report.processes) == 2:
                found.append(report)
            await b.op(b.weft.yield_())
        c.poison()
        await b.op(done.write(1))

    ring = b.process(read_then_write)
    b.run(
        ring(c.reader(), d.writer()).named("one"),
        ring(d.reader(), c.writer()).named("two"),
        b.process(looker)(gate.writer()),
        b.process(receive)(gate.reader()),
    )
    report = found[0]
    assert bool(report)
    assert [p.path for p in report.processes] == ["main/one", "main/two"]
    assert [p.operation for p in report.processes] == ["read", "read"]
    assert [p.places for p in report.processes] == [("'c'",), ("'d'",)]
    assert [p.waits_for for p in report.processes] == [("main/two",), ("main/one",)]
    assert all(p.at.startswith(HERE) for p in report.processes)
    assert "main/one: read 'c' at" in str(report)


def test_from_another_thread() -> None:
    """Rule 14.3."""
    c, d = Channel("c"), Channel("d")
    asked, told = threading.Event(), threading.Event()
    found: list[Any] = []

    def other() -> None:
        assert asked.wait(BOUND)
        found.append(deadlocks())
        told.set()

    @process
    async def ring(r: Any, w: Any) -> None:
        await w.write(await r.read())

    @process
    async def asks() -> None:
        await yield_()
        asked.set()
        assert told.wait(BOUND)
        c.poison()

    thread = threading.Thread(target=other)
    thread.start()
    run(ring(c.reader(), d.writer()), ring(d.reader(), c.writer()), asks())
    thread.join()
    assert [p.path for p in found[0].processes] == ["main/ring[0]", "main/ring[1]"]


def test_outside_any_run_nobody_is_stuck() -> None:
    assert not deadlocks() and str(deadlocks()) == "no process is stuck"


def look_while(*others: Any, finish: Any) -> Any:
    """What deadlocks() says in a process that runs when all others wait."""
    found: list[Any] = []

    @process
    async def looker() -> None:
        for _ in range(10):
            await yield_()
        found.append(deadlocks())
        finish()

    run(*others, looker())
    return found[0]


@process
async def reads(r: Any, *kept: Any) -> None:
    await r.read()


@process
async def holds(gate: Any, *kept: Any) -> None:
    await gate.read()


def test_an_end_that_a_process_can_still_use_accuses_nobody() -> None:
    """Rule 14.3: the holder waits for a gate of which somebody unknown holds the writer."""
    c, gate = Channel("c"), Channel("gate")
    key = gate.writer()
    assert not look_while(
        reads(c.reader()), holds(gate.reader(), c.writer()), finish=lambda: key.retire()
    )


def test_the_holder_is_stuck_too() -> None:
    """Rule 14.3: as before, but the gate's writer is with the one that waits."""
    c, gate = Channel("c"), Channel("gate")
    report = look_while(
        reads(c.reader(), gate.writer()),
        holds(gate.reader(), c.writer()),
        finish=lambda: c.poison(),
    )
    assert [p.path for p in report.processes] == ["main/holds", "main/reads"]


def test_a_local_variable_may_be_used_by_anybody() -> None:
    """Rule 14.3: an end that no process holds."""
    c = Channel("c")
    mine = c.writer()
    assert not look_while(reads(c.reader()), finish=lambda: mine.retire())


def test_a_side_that_has_no_end_yet_may_get_one() -> None:
    """Rule 14.3."""
    c = Channel("c")
    assert not look_while(reads(c.reader()), finish=lambda: c.poison())


def test_a_timer_a_sleep_and_a_cancellation_will_wake() -> None:
    """Rule 14.3."""
    c = Channel("c")

    @process
    async def with_timer(r: Any, w: Any) -> None:
        from weft.coroutines import after

        await select(r, after(1000))

    @process
    async def sleeps(w: Any) -> None:
        await sleep(1000)

    waits = with_timer(c.reader(), c.writer())
    sleeping = sleeps(c.writer())

    def finish() -> None:
        waits.cancel()
        sleeping.cancel()

    assert not look_while(waits, sleeping, finish=finish)


def test_a_holder_of_the_same_side_may_poison() -> None:
    """Rule 14.3."""
    c = Channel("c")

    @process
    async def self_reader(r: Any, w: Any) -> None:
        await r.read()

    found: list[Any] = []

    @process
    async def looker(r: Any) -> None:
        await yield_()
        found.append(deadlocks())
        r.poison()

    run(self_reader(c.reader(), c.writer()), looker(c.reader()))
    assert not found[0]


def test_parents_of_the_stuck_do_not_hold_anybody_else() -> None:
    """Rule 14.3: who waits for children that are stuck is stuck, and the ends it holds are of no use."""
    c, d = Channel("c"), Channel("d")

    @process
    async def parent(w: Any, inner_r: Any, inner_w: Any) -> None:
        await Parallel(reads(inner_r, inner_w))

    report = look_while(
        parent(c.writer(), d.reader(), d.writer()),
        reads(c.reader()).named("outer"),
        finish=lambda: (d.poison(), c.poison()),
    )
    assert [p.path for p in report.processes] == ["main/outer", "main/parent/reads"]


def test_run_with_partial_raise_and_warn() -> None:
    """Rule 14.3: when the scheduler falls idle, though a sleeper goes on."""

    def network() -> list[Any]:
        c, d = Channel("c"), Channel("d")

        @process
        async def ring(r: Any, w: Any) -> None:
            await w.write(await r.read())

        @process
        async def sleeper() -> None:
            await sleep(0.01)
            c.poison()

        return [ring(c.reader(), d.writer()), ring(d.reader(), c.writer()), sleeper()]

    with pytest.raises(Deadlock, match="partial") as caught:
        run(network(), partial="raise")
    assert caught.value.knot == ["main/ring[0]", "main/ring[1]"]
    assert [p.operation for p in caught.value.processes] == ["read", "read"]
    with pytest.warns(WeftWarning, match=r"ring\[0\]: read 'c'") as warned:
        run(network(), partial="warn")
    assert len(warned) == 1


def test_an_action_that_is_none() -> None:
    with pytest.raises(BadUse, match="warn"), watching_deadlocks("shout"):  # type: ignore[arg-type]
        pass


@st.composite
def worlds(draw: Any) -> Any:
    n = draw(st.integers(1, 6))
    ids = range(1, n + 1)
    some = st.lists(st.sampled_from(list(ids)), max_size=2, unique=True).map(tuple)
    places = {
        k: _deadlocks.Place(
            f"c{k}", draw(st.booleans()), draw(some), draw(some), draw(st.integers(0, 1)), 0
        )
        for k in range(draw(st.integers(1, 4)))
    }
    waiters = {}
    for i in ids:
        state = draw(st.sampled_from(["able", "places", "places", "places", "children"]))
        at = draw(
            st.lists(
                st.tuples(st.sampled_from(sorted(places)), st.booleans()), min_size=1, max_size=2
            )
        )
        parent = draw(st.integers(0, i - 1))
        waiters[i] = _deadlocks.Waiter(
            i, f"p{i}", "read", "?", parent, state, at if state == "places" else []
        )
    return waiters, places


@given(worlds())
def test_nobody_is_accused_who_could_be_woken(world: Any) -> None:
    """Rule 14.3, against the definition: the stuck are the union of all sets of which nobody outside can wake a
    member. (The fixed point is the complement of that, found from the other side.)"""
    waiters, places = world
    able = _deadlocks.may_go_on(waiters, places)

    def may_be_woken(w: Any, others: set[int]) -> bool:
        if w.state == "able":
            return True
        if w.state == "children":
            return all(c.id in others for c in waiters.values() if c.parent == w.id)
        for key, writing in w.places:
            p = places[key]
            if not p.is_channel and others:
                return True
            if p.is_channel and (
                p.unknown_readers
                or not (p.readers if writing else p.writers)
                or others & {*p.readers, *p.writers}
            ):
                return True
        return False

    stuck: set[int] = set()
    for bits in range(1 << len(waiters)):
        candidate = {i for i in waiters if bits >> (i - 1) & 1}
        if not any(may_be_woken(waiters[i], set(waiters) - candidate) for i in candidate):
            stuck |= candidate
    assert able == set(waiters) - stuck


# --- measurements (rule 14.4) ------------------------------------------------------------------------------


def test_measuring_says_who_waited_where(b: Any) -> None:
    """Rule 14.4."""
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
    """Rule 14.4: three readers wait, one of them in a select."""
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
    """Rule 14.4."""
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
    """Rule 14.4: those that nobody refers to any more are not kept."""

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


# --- traces (rule 14.6) -----------------------------------------------------------------------------------


def events_of(path: Path) -> list[dict[str, Any]]:
    events, cut_off = _trace.read(path)
    assert not cut_off
    return events


def test_a_trace_says_what_happened(b: Any, tmp_path: Path) -> None:
    """Rule 14.6."""
    c = b.weft.Channel("c")
    file = tmp_path / "t.jsonl"
    b.run(b.process(send)(c.writer(), 1, 2), b.process(receive)(c.reader()), trace=file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["weft_trace"] == 1 and lines[0]["unit"] == "ns"
    events = [e for e in lines[1:] if e["p"].startswith("main/")]
    assert all(x["t"] <= y["t"] for x, y in pairwise(events))
    sender = [(e["e"], e.get("op"), e.get("c")) for e in events if e["p"] == "main/send"]
    assert sender == [
        ("start", None, None),
        ("begin", "write", "c"),
        ("commit", "write", "c"),
        ("begin", "write", "c"),
        ("commit", "write", "c"),
        ("end", None, None),
    ]
    receiver = [(e["e"], e.get("why"), e.get("how")) for e in events if e["p"] == "main/receive"]
    assert receiver == [
        ("start", None, None),
        *[("begin", None, None), ("commit", None, None)] * 2,
        ("begin", None, None),
        ("ended", "Retired", None),
        ("end", None, "returned"),
    ]


def test_selects_withdrawals_and_failures(tmp_path: Path) -> None:
    """Rule 14.6."""
    c, d = Channel("c"), Channel("d")
    file = tmp_path / "t.jsonl"

    @process
    async def chooses(r: Any, s: Any, keep: Any) -> None:
        await select(r, s)
        await s.read()

    @process
    async def fails(w: Any) -> None:
        await w.write("x")
        await yield_()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(chooses(c.reader(), d.reader(), d.writer()), fails(c.writer()), trace=file)
    events = events_of(file)
    picked = [e for e in events if e["p"] == "main/chooses" and "op" in e]
    assert picked[0]["guards"] == [["input", "c"], ["input", "d"]]
    assert (picked[1]["e"], picked[1]["guard"], picked[1]["c"]) == ("commit", 0, "c")
    assert (picked[3]["e"], picked[3]["why"], picked[3]["c"]) == ("withdraw", "Cancelled", "d")
    ends = {e["p"]: e for e in events if e["e"] == "end"}
    assert ends["main/chooses"]["how"] == "Cancelled"
    assert (ends["main/fails"]["how"], ends["main/fails"]["error"]) == ("failed", "ValueError: no")


def test_a_summary_and_a_picture(tmp_path: Path) -> None:
    """Rule 14.6."""
    c = Channel("c")
    file = tmp_path / "t.jsonl"

    @process
    async def writes(w: Any) -> None:
        for i in range(5):
            await w.write(i)

    @process
    async def reads_all(r: Any) -> None:
        async for _ in r:
            pass

    with tracing(file):
        run(writes(c.writer()), reads_all(c.reader()))
    events = events_of(file)
    summary = _trace.summarise(events)
    (channel,) = summary.channels
    assert (channel.name, channel.operations, channel.ended) == ("c", 10, 1)
    assert channel.waited == pytest.approx(channel.waited_reading + channel.waited_writing)
    assert {p.name: p.operations for p in summary.processes} == {
        "main/writes": 5,
        "main/reads_all": 5,
    }
    assert summary.unfinished == [] and summary.events == len(events)
    picture = _trace.chrome(events)
    names = [e["name"] for e in picture["traceEvents"]]
    assert names.count("write c") == 5 and "main/writes" in names
    assert all(e["dur"] >= 0 for e in picture["traceEvents"] if e["ph"] == "X")
    json.dumps(picture)


@pytest.mark.parametrize(
    "ending", ["raise SystemExit(3)", "os.kill(os.getpid(), signal.SIGINT)", "1 / 0"]
)
def test_the_file_is_whole_however_the_program_ends(ending: str, tmp_path: Path) -> None:
    """Rule 14.6."""
    file = tmp_path / "t.jsonl"
    program = f"""
import os, signal
from weft.coroutines import *
@process
async def a(w):
    for i in range(50): await w.write(i)
    {ending}
    await w.write(50)
@process
async def b(r):
    async for _ in r: pass
c = Channel("c")
_observed = tracing({str(file)!r})
_observed.__enter__()        # never left
run(a(c.writer()), b(c.reader()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert done.returncode != 0
    summary = _trace.summarise(events_of(file))
    assert summary.channels[0].operations >= 100 and summary.unfinished == []


def test_a_cut_off_line_is_no_error_and_anything_else_is(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    with tracing(file):
        pass
    whole = file.read_text()
    file.write_text(whole + '{"t":1,"e":"sta')
    assert _trace.read(file) == ([], True)
    file.write_text("hello\n")
    with pytest.raises(BadUse, match="no line of a trace"):
        _trace.read(file)
    file.write_text('{"weft_trace":99}\n')
    with pytest.raises(BadUse, match="no trace of this version"):
        _trace.read(file)
    with pytest.raises(BadUse, match="cannot read"):
        _trace.read(tmp_path / "none")
    with pytest.raises(BadUse, match="cannot write"), tracing(tmp_path / "no" / "where"):
        pass


def test_an_observer_that_raises_disturbs_nobody(
    b: Any, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_the_child_of_a_fork_observes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    with tracing(file):
        run(reads_nothing())
        pid = os.fork()
        if pid == 0:
            os._exit(len(_observers._observers))
        assert os.waitpid(pid, 0)[1] == 0
        assert len(_observers._observers) == 1
    assert [e["e"] for e in events_of(file)] == ["start", "end"]


@process
async def reads_nothing() -> None:
    pass
