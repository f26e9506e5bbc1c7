"""Rules 14 and 16.1: observers of a component's process, on a thread and on the pool, see the same
as for any other process: the beginning of each operation, whether the process parks, and the
outcome.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import os_process_targets_native as targets_native
import pytest
from components import basics, collect, needs_compiler, parties, source, tasks
from parts import hows

import weft.threads as th
from weft import PeerDied, _native
from weft import coroutines as co
from weft._watching import observers as _observers
from weft._watching import quiet_ends as _quiet_ends
from weft._watching import trace as _trace
from weft.native import ComponentError
from weft.observe import debug, measuring, tracing, watchdog
from weft.processes import Hosts

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup

pytestmark = [needs_compiler, pytest.mark.usefixtures("nobody_observes")]

HERE = Path(__file__).parent
BOUND = 280.0  # s: no test waits longer than this
BOTH = pytest.mark.parametrize("on", ["thread", "pool"])


def line_of(file: str, text: str) -> int:
    """Returns the number of the only line with `text` in a source of these tests."""
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    (line,) = (number for number, line in enumerate(lines, 1) if text in line)
    return line


class Seen:
    """Collects the events of one process, and records when it parks."""

    def __init__(self, name: str, parks: str | None = None) -> None:
        """`parks`: the operation in which the process must park; None: any operation."""
        self.path = f"main/{name}"
        self.parks = parks
        self.events: list[tuple[str, str | None, Any, Any]] = []
        self.parked = threading.Event()

    def __call__(self, what: str, process: Any, op: str | None, target: Any, detail: Any) -> None:
        if process is None or process.path != self.path:
            return
        self.events.append((what, op, target, detail))
        if what == "park" and self.parks in (None, op):
            self.parked.set()

    def shape(self) -> list[tuple[str, str | None]]:
        """Returns the events, without those that depend on which process ran first."""
        return [(what, op) for what, op, _, _ in self.events if what != "park"]

    def check(self) -> None:
        """Checks that an operation begins, parks at most once and has one outcome, at one place."""
        at: tuple[str | None, str | None] = ("none", None)
        place = None
        for what, op, target, _ in self.events:
            if what in ("start", "end", "left"):
                assert at[0] == "none" and op is None
            elif what == "begin":
                assert at[0] == "none"
                at, place = ("begun", op), target
            elif what == "park":
                assert at == ("begun", op)
                at = ("parked", op)
            else:
                assert at[0] in ("begun", "parked") and at[1] == op
                assert isinstance(target, tuple) or target is place
                at = ("none", None)
        assert at[0] == "none"


@contextlib.contextmanager
def observing(observer: Callable[..., None]) -> Generator[None, None, None]:
    _observers.add(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def traced(file: Path, *network: Any) -> dict[str, list[dict[str, Any]]]:
    """Runs the processes; returns the events of the trace by the names of processes."""
    with tracing(file):
        th.run(*network)
    by: dict[str, list[dict[str, Any]]] = {}
    for event in _trace.read(file)[0]:
        by.setdefault(event["p"].removeprefix("main/"), []).append(event)
    return by


def brief(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(e["e"], e.get("op"), e.get("c")) for e in events]


@th.process
def writes_when(w: Any, moment: threading.Event, value: Any) -> None:
    """Writes `value` once a process has parked (`moment`)."""
    assert moment.wait(BOUND)
    w.write(value)


@th.process
def cancels_when(process: Any, moment: threading.Event) -> None:
    assert moment.wait(BOUND)
    process.cancel()


# --- traces (rule 14.6) ---------------------------------------------------------------------------


@BOTH
def test_a_trace_has_what_a_component_did(on: str, tmp_path: Path) -> None:  # rules 14.6, 16.1
    a, c = th.Channel("a"), th.Channel("c")
    by = traced(tmp_path / "t", source(-a, [1, 2]), tasks().ints(+a, -c, on=on), collect(+c))
    once = [("begin", "read", "a"), ("commit", "read", "a")]
    once += [("begin", "write", "c"), ("commit", "write", "c")]
    assert brief(by["ints"]) == [
        ("start", None, None),
        *once * 2,
        ("begin", "read", "a"),
        ("ended", "read", "a"),
        ("end", None, None),
    ]
    assert by["ints"][-2]["why"] == "Retired" and by["ints"][-1]["how"] == "returned"
    reading = {k: v for k, v in by["ints"][2].items() if k not in ("t", "id")}
    assert reading.keys() == {"e", "p", "op", "c", "waited"}


def test_a_function_is_seen_as_a_coroutine_is(tmp_path: Path) -> None:  # rules 14.6, 16.1
    seen = []
    for made in (basics().ints, tasks().ints):
        a, c = th.Channel("a"), th.Channel("c")
        by = traced(tmp_path / "t", source(-a, range(5)), made(+a, -c), collect(+c))
        seen.append(brief(by["ints"]))
    assert seen[0] == seen[1] and len(seen[0]) == 24


@BOTH
def test_it_is_seen_as_a_python_process_is(on: str, tmp_path: Path) -> None:  # rules 14.6, 16.1
    @th.process
    def ints(inp: Any, out: Any) -> None:
        for x in inp:
            out.write(x)

    seen = []
    for made in (ints, functools.partial(tasks().ints, on=on)):
        a, c = th.Channel("a"), th.Channel("c")
        by = traced(tmp_path / "t", source(-a, range(5)), made(+a, -c), collect(+c))
        seen.append([(e["e"], e.get("c"), e.get("why"), e.get("how")) for e in by["ints"]])
    assert seen[0] == seen[1]


@BOTH
def test_waiting_is_measured_from_where_it_parks(on: str, tmp_path: Path) -> None:  # rule 14.6
    a, c = th.Channel("a"), th.Channel("c", capacity=4)
    ints = Seen("ints")
    with observing(ints):
        by = traced(
            tmp_path / "t",
            tasks().ints(+a, -c, on=on),
            writes_when(-a, ints.parked, 7),
            collect(+c),
        )
    read = next(e for e in by["ints"] if e["e"] == "commit")
    assert read["op"] == "read" and read["waited"] > 0
    ints.check()


@BOTH
def test_a_choice_has_its_guards_and_which_was_chosen(on: str, tmp_path: Path) -> None:  # rule 14.6
    a, b, log = th.Channel("a"), th.Channel("b"), th.Channel("log")
    by = traced(
        tmp_path / "t", source(-b, [5]), tasks().either(+a, +b, -log, 1, on=on), collect(+log)
    )
    begin, commit = (e for e in by["either"] if e.get("op") == "select")
    assert begin["guards"] == [["input", "a"], ["input", "b"]]
    assert (commit["guard"], commit["kind"], commit["c"]) == (1, "input", "b")


@BOTH
def test_outputs_and_guards_that_are_off(on: str, tmp_path: Path) -> None:  # rule 14.6
    a, c = th.Channel("a"), th.Channel("c")
    by = traced(tmp_path / "t", source(-a, [1]), tasks().place(+a, -c, on=on), collect(+c))
    selects = [e for e in by["place"] if e.get("op") == "select"]
    assert [e.get("guards") for e in selects if e["e"] == "begin"] == [
        [["input", "a"]],
        [["output", "c"]],
        [["input", "a"]],
    ]
    chosen = [(e["e"], e.get("guard"), e.get("c"), e.get("why")) for e in selects[1::2]]
    assert chosen == [
        ("commit", 0, "a", None),
        ("commit", 1, "c", None),
        ("ended", 0, "a", "Retired"),
    ]


@BOTH
def test_timers_skips_and_sleep(on: str, tmp_path: Path) -> None:  # rules 5.7, 14.6
    a, log = th.Channel("a"), th.Channel("log")
    keep = a.writer()
    with tracing(tmp_path / "t"):
        co.run(tasks().patient(+a, -log, 10, on=on), collect(+log), clock="virtual")
    del keep
    events = [e for e in _trace.read(tmp_path / "t")[0] if e["p"] == "main/patient"]
    begins = [(e["op"], e["guards"]) for e in events if e["e"] == "begin" and "guards" in e]
    assert begins == [
        ("select", [["input", "a"], ["at", None]]),
        ("sleep", [["at", None]]),
        ("select", [["input", "a"], ["skip", None]]),
        ("select", [["skip", None], ["skip", None]]),  # a time of 0 is a skip
    ]
    chosen = [(e["kind"], e["guard"]) for e in events if e["e"] == "commit" and e["op"] == "select"]
    assert chosen == [("at", 1), ("skip", 1), ("skip", 0)]


@BOTH
def test_a_barrier_alone_and_in_a_choice(on: str, tmp_path: Path) -> None:  # rules 8.1, 14.6
    log = th.Channel("log", overflow="unbounded")
    barrier = th.Barrier(1)
    by = traced(tmp_path / "t", tasks().phases(barrier, -log, 2, on=on), collect(+log))
    at = [e for e in by["phases"] if e.get("op") in ("sync", "select")]
    assert [(e["e"], e["op"], e.get("guards"), e.get("kind")) for e in at] == [
        ("begin", "sync", None, None),
        ("commit", "sync", None, None),
        ("begin", "select", [["barrier", None]], None),
        ("commit", "select", None, "barrier"),
    ]


def test_a_barrier_of_a_function() -> None:  # rules 8.1, 14.6
    log = th.Channel("log", overflow="unbounded")
    phases = Seen("phases")
    barrier = th.Barrier(1)
    with observing(phases):
        th.run(parties().phases(barrier, -log, 2), collect(+log))
    phases.check()
    synced = [(what, target) for what, op, target, _ in phases.events if op == "sync"]
    assert synced == [("begin", barrier), ("commit", barrier)] * 2


def test_an_extended_read(tmp_path: Path) -> None:  # rules 1.6, 14.6
    a, d = th.Channel("a"), th.Channel("d", overflow="unbounded")
    by = traced(tmp_path / "t", source(-a, [1]), parties().extends(+a, -d), collect(+d))
    assert brief(by["extends"])[1:7] == [
        ("begin", "extended read", "a"),
        ("commit", "extended read", "a"),
        ("begin", "write", "d"),
        ("commit", "write", "d"),
        ("begin", "extended read", "a"),
        ("ended", "extended read", "a"),
    ]


@pytest.mark.parametrize("capacity", [0, 2])
def test_a_computed_output(capacity: int, tmp_path: Path) -> None:  # rules 5.8, 14.6
    a, d = th.Channel("a"), th.Channel("d", capacity=capacity)
    keep = a.writer()

    @th.process
    def takes(r: Any, w: Any) -> None:
        r.read()
        w.poison()

    by = traced(tmp_path / "t", parties().serves(+a, -d, 0), takes(+d, keep))
    selects = [e for e in by["serves"] if e.get("op") == "select"]
    assert selects[0]["guards"] == [["input", "a"], ["output", "d"]]
    assert (selects[1]["e"], selects[1]["kind"], selects[1]["c"]) == ("commit", "output", "d")
    # Poison has ended the select, or the reader had closed its end first.
    assert selects[-1]["e"] == "ended" and selects[-1]["why"] in ("Poisoned", "Retired")


def test_a_computed_output_whose_function_throws(tmp_path: Path) -> None:  # rules 5.8, 14.6
    a, d = th.Channel("a"), th.Channel("d")
    keep = a.writer()
    with tracing(tmp_path / "t"), pytest.raises(ExceptionGroup) as failed:
        th.run(parties().serves(+a, -d, 1), collect(+d))
    del keep
    assert {type(e) for e in failed.value.exceptions} == {ComponentError, PeerDied}
    events = [e for e in _trace.read(tmp_path / "t")[0] if e["p"] == "main/serves"]
    assert (events[2]["e"], events[2]["op"], events[2]["why"]) == (
        "ended",
        "select",
        "RuntimeError",
    )
    assert (events[-1]["e"], events[-1]["how"]) == ("end", "failed")


@pytest.mark.parametrize("capacity", [0, 8])
def test_blocks_are_seen_as_single_operations(capacity: int, tmp_path: Path) -> None:
    """Rules 14.6, 16.9: a trace shows a read_many as several reads."""
    a, d = th.Channel("a", capacity=capacity), th.Channel("d", overflow="unbounded")
    by = traced(tmp_path / "t", basics().count_to(-a, 20), basics().blocks(+a, -d), collect(+d))
    assert brief(by["count_to"])[1:-1] == [("begin", "write", "a"), ("commit", "write", "a")] * 20
    reads = [x for x in brief(by["blocks"]) if x[1] == "read"]
    assert reads[:-2] == [("begin", "read", "a"), ("commit", "read", "a")] * 20
    assert reads[-2:] == [("begin", "read", "a"), ("ended", "read", "a")]


# --- how it ends (rules 3.5, 4.3, 6.1) ------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("kind", ["read", "write", "select", "sleep", "sync"])
def test_a_cancellation_is_a_withdrawal(on: str, kind: str, tmp_path: Path) -> None:
    """Rules 6.1, 14.6. The withdrawal is traced, and the process still meets the request to
    cancel."""
    a, b, log = th.Channel("a"), th.Channel("b"), th.Channel("log")
    unread = th.Channel("unread", overflow="unbounded")
    keep = [a.writer(), b.writer(), log.reader(), unread.reader()]
    full = th.Channel("full", capacity=1)
    full.writer().write(1)
    f = tasks()
    made = {
        "read": lambda: f.ints(+a, -log, on=on),
        "write": lambda: f.ints(+full, -log, on=on),
        "select": lambda: f.either(+a, +b, -log, 3, on=on),
        "sleep": lambda: f.patient(+a, -unread, 0, on=on),
        "sync": lambda: f.phases(th.Barrier(2), -unread, 3, on=on),
    }[kind]()
    seen = Seen(made.name, kind)
    with observing(seen), tracing(tmp_path / "t"):
        th.run(made, cancels_when(made, seen.parked))
    assert made.done and hows([made.result]) == ["<cancelled>"]
    seen.check()
    events = [e for e in _trace.read(tmp_path / "t")[0] if e["p"] == seen.path]
    assert (events[-2]["e"], events[-2]["op"], events[-2]["why"]) == (
        "withdraw",
        kind,
        "Cancelled",
    )
    assert events[-2]["waited"] > 0
    assert events[-1]["how"] == "Cancelled"
    del keep


@BOTH
@pytest.mark.parametrize(("end", "why"), [("poison", "Poisoned"), ("retire", "Retired")])
def test_a_process_that_left_is_named_with_its_line(
    on: str, end: str, why: str, tmp_path: Path
) -> None:
    """Rules 3.5, 4.3, 14.6: the trace names the line of the operation in the component's source."""
    a, c = th.Channel("a"), th.Channel("c")
    w = a.writer()
    seen = Seen("sums")

    @th.process
    def ends(w: Any) -> None:
        assert seen.parked.wait(BOUND)
        getattr(w, end)()

    messages: list[str] = []
    with observing(seen), observing(_quiet_ends.Naming(messages.append).event):
        by = traced(tmp_path / "t", tasks().sums(+a, -c, on=on), ends(w), collect(+c))
    line = line_of("component_tasks.cpp", "sum += co_await in.read()")
    left = by["sums"][-1]
    assert (left["how"], left["c"]) == (why, "a")
    assert left["at"].endswith(f"component_tasks.cpp:{line}")
    assert messages[0].startswith(f"process main/sums was left by {why}: channel a, at ")
    assert messages[0].endswith(f"component_tasks.cpp:{line}")


@BOTH
def test_a_guard_that_falls_silent_is_named_with_its_line(on: str) -> None:  # rules 5.6, 14.6
    a, b, log = th.Channel("a"), th.Channel("b"), th.Channel("log")
    seen = Seen("either")

    @th.process
    def retires_then_writes(gone: Any, w: Any) -> None:
        assert seen.parked.wait(BOUND)
        gone.retire()
        w.write(1)

    messages: list[str] = []
    with observing(seen), observing(_quiet_ends.Naming(messages.append).event):
        th.run(tasks().either(+a, +b, -log, 1, on=on), retires_then_writes(-a, -b), collect(+log))
    # A select does not record its line (python/docs/native.md, Limits), so the report names the
    # line of the declaration.
    line = line_of("component_tasks.cpp", 'component.process<&either>("either")')
    (silent,) = (text for text in messages if "guard 0" in text)
    assert silent.startswith("process main/either: guard 0 (input a) of its select fell silent")
    assert silent.endswith(f"component_tasks.cpp:{line}")


# --- measuring (rule 14.4) ------------------------------------------------------------------------


@BOTH
def test_measuring_counts_both_sides(on: str) -> None:  # rules 14.4, 16.1
    a, c = th.Channel("a", capacity=2), th.Channel("c")
    ints = Seen("ints")
    with observing(ints), measuring() as m:
        th.run(tasks().ints(+a, -c, on=on), writes_when(-a, ints.parked, 1), collect(+c))
    # The reader parked at an empty channel twice. The second time it met the end of the channel, or
    # did not wait.
    assert m[a].transfers == 1 and m[c].transfers == 1
    assert m[a].parked_reads >= 1 and m[a].blocked_readers > 0 and m[a].max_waiting_readers == 1
    assert m[a].parked_writes == 0
    parked = [op for what, op, *_ in ints.events if what == "park"]
    assert m[a].parked_reads == parked.count("read")
    assert m[c].parked_writes == parked.count("write")


def test_between_two_components_nobody_else_looks() -> None:  # rules 14.4, 16.1
    a, c = th.Channel("a"), th.Channel("c", overflow="unbounded")
    counts, ints = Seen("count_to"), Seen("ints")
    with observing(counts), observing(ints), measuring() as m:
        th.run(basics().count_to(-a, 200), basics().ints(+a, -c))
    assert m[a].transfers == 200
    assert counts.shape().count(("commit", "write")) == 200
    assert ints.shape().count(("commit", "read")) == 200
    counts.check()
    ints.check()
    assert all(detail is None for what, _, _, detail in counts.events if what == "begin")


# --- an observer that begins, and one that stops (rule 14.2) --------------------------------------


@BOTH
def test_an_observer_that_begins_sees_whole_operations(on: str) -> None:  # rule 14.2
    a, c = th.Channel("a"), th.Channel("c", overflow="unbounded")
    first, later = Seen("ints"), Seen("ints")

    @th.process
    def looks(w: Any) -> None:
        assert first.parked.wait(BOUND)
        # There is no observer now, and the operation in which the process waits has begun.
        _observers.remove(first)
        _observers.add(later)
        for i in range(3):
            w.write(i)

    _observers.add(first)
    try:
        got = th.run(tasks().ints(+a, -c, on=on), looks(-a), collect(+c))[2]
    finally:
        _observers.remove(later)
    assert got == [0, 1, 2]
    outcomes = [x for x in later.shape() if x[0] in ("commit", "raise")]
    assert outcomes[:2] in ([("commit", "read"), ("commit", "write")], [("commit", "write")] * 2)


@BOTH
def test_an_observer_that_raises_disturbs_nobody(
    on: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # rule 14.2
    raised: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", raised.append)
    a, b, log = th.Channel("a"), th.Channel("b"), th.Channel("log")

    def bad(*_: Any) -> None:
        raise RuntimeError("observer")

    with observing(bad), warnings.catch_warnings():
        got = th.run(
            source(-a, range(9)), tasks().either(+a, +b, -log, 9, on=on), collect(+log), keeps(-b)
        )
    assert got[2] == [f"a {i}" for i in range(9)]
    assert len(raised) > 18


@th.process
def keeps(_: Any) -> None:
    pass


@pytest.mark.parametrize("observer", ["none", "trace", "measure", "debug", "all"])
@pytest.mark.parametrize("seed", range(4))
def test_observing_changes_no_outcome(observer: str, seed: int, tmp_path: Path) -> None:
    """Rule 14.2: a chain of processes of every backend, with poison at its end, has the same
    outcome with and without an observer."""
    n = 12
    ends = [th.Channel(f"c{i}", capacity=(seed + i) % 3) for i in range(n + 1)]
    kinds = [
        lambda r, w: basics().ints(r, w),
        lambda r, w: tasks().ints(r, w),
        lambda r, w: tasks().ints(r, w, on="thread"),
        lambda r, w: basics().place(r, w),
        lambda r, w: tasks().place(r, w),
        lambda r, w: co_passes(r, w),
    ]
    chain = [kinds[(seed + 5 * i) % len(kinds)](+ends[i], -ends[i + 1]) for i in range(n)]
    with contextlib.ExitStack() as stack:
        if observer in ("trace", "all"):
            stack.enter_context(tracing(tmp_path / "t"))
        if observer in ("measure", "all"):
            stack.enter_context(measuring())
        if observer in ("debug", "all"):
            debug(True)
            stack.callback(debug, False)
        got = th.run(source(-ends[0], range(40)), *chain, collect(+ends[n]))
    assert got[-1] == list(range(40))
    if observer in ("trace", "all"):
        summary = _trace.summarise(_trace.read(tmp_path / "t")[0])
        # Each stage writes the values that it reads. The last channel's reader and the first
        # channel's writer are Python processes.
        counts = {row.name: row.operations for row in summary.channels}
        assert counts == {f"c{i}": 80 for i in range(n + 1)}
        assert summary.unfinished == []


@co.process
async def co_passes(r: Any, w: Any) -> None:
    async for x in r:
        await w.write(x)


def test_texts_and_arrays_are_the_components_while_they_are_seen() -> None:  # rules 14.2, 16.6
    a, c = th.Channel("a"), th.Channel("c")
    seen = Seen("texts")
    with observing(seen):
        got = th.run(source(-a, ["x" * 100] * 3), tasks().texts(+a, -c, "at "), collect(+c))
    assert got[2] == ["at " + "x" * 100] * 3
    seen.check()
    d = th.Channel("d")
    seen = Seen("makes_arrays")
    with observing(seen):
        got = th.run(basics().makes_arrays(-d, 2, 3), collect(+d))
    assert [list(x) for x in got[1]] == [[0, 1, 2], [1, 2, 3]]
    assert seen.shape().count(("commit", "write")) == 2


# --- channels with ends in other OS processes (rule 16.7) -----------------------------------------


def test_operations_at_far_channels_are_seen_once(tmp_path: Path) -> None:  # rules 14.6, 16.7
    from weft.processes import Channel

    a, c = Channel("a"), Channel("c")
    ints = Seen("ints")
    with Hosts(1) as host, observing(ints):
        got = th.run(
            targets_native.gives.on(host)(-a, [1, 2, 3]), basics().ints(+a, -c), collect(+c)
        )
    assert got[2] == [1, 2, 3]
    ints.check()
    assert ints.shape()[1:-1] == [
        *[("begin", "read"), ("commit", "read"), ("begin", "write"), ("commit", "write")] * 3,
        ("begin", "read"),
        ("raise", "read"),
    ]


def test_a_choice_at_far_channels_is_seen_once() -> None:  # rules 14.6, 16.7
    from weft.processes import Channel

    a, c = Channel("a"), Channel("c")
    place = Seen("place")
    with Hosts(1) as host, observing(place):
        got = th.run(
            targets_native.gives.on(host)(-a, [1, 2]),
            tasks().place(+a, -c, on="thread"),
            collect(+c),
        )
    assert got[2] == [1, 2]
    place.check()
    assert place.shape().count(("commit", "select")) == 4


# --- the watchdog (rule 14.1) ---------------------------------------------------------------------

FAR = 10**18  # ns: a time later than any other


def test_the_watchdog_names_who_keeps_a_thread_of_the_pool(tmp_path: Path) -> None:  # rule 14.1
    c = th.Channel("c")
    file = tmp_path / "go on"
    hogs: list[Any] = []

    @th.process
    def looks(r: Any, w: Any) -> None:
        r.read()
        while not hogs:  # until then the process is spinning, or has not begun to spin yet
            w.look(FAR)
        w.look(FAR)
        file.touch()
        r.read()

    with watchdog(BOUND, hogs.append) as w:
        th.run(tasks().spins(-c, str(file)), looks(+c, w))
    assert {h.path for h in hogs} == {"main/spins"}
    assert Path(hogs[-1].file).name == "component_tasks.cpp"
    assert hogs[-1].line == line_of("component_tasks.cpp", "co_await out.write(1);")
    assert hogs[-1].seconds > BOUND
    assert "main/spins has kept its thread of the pool" in str(hogs[-1])
    assert "on='thread'" in str(hogs[-1])


def test_each_step_is_reported_once(tmp_path: Path) -> None:  # rule 14.1
    c = th.Channel("c")
    file = tmp_path / "go on"
    hogs: list[Any] = []

    @th.process
    def looks(r: Any, w: Any) -> None:
        r.read()
        while not hogs:
            w.look(FAR)
        for _ in range(5):
            w.look(FAR)
        file.touch()
        r.read()

    with watchdog(BOUND, hogs.append) as w:
        th.run(tasks().spins(-c, str(file)), looks(+c, w))
    # There may be two reports: the step in which the process wrote, and the step in which it
    # computes.
    assert 1 <= len(hogs) <= 2


def test_a_component_on_a_thread_of_its_own_is_no_hog() -> None:  # rule 14.1
    a = th.Channel("a")
    hogs: list[Any] = []

    @th.process
    def looks(w: Any, dog: Any) -> None:
        for _ in range(50):
            dog.look(FAR)
        w.write(1)

    with watchdog(BOUND, hogs.append) as dog:
        th.run(basics().spins(), basics().stops(+a), looks(-a, dog))
    assert hogs == []


def test_a_process_that_waits_on_the_pool_is_no_hog() -> None:  # rule 14.1
    a, c = th.Channel("a"), th.Channel("c")
    hogs: list[Any] = []
    seen = Seen("ints", "write")

    @th.process
    def looks(w: Any, r: Any, dog: Any) -> None:
        w.write(1)
        assert seen.parked.wait(BOUND)
        # The process has been reported, and is about to leave its thread.
        while _native._running_steps():
            pass
        dog.look(FAR)
        r.read()

    with watchdog(BOUND, hogs.append) as dog, observing(seen):
        th.run(tasks().ints(+a, -c), looks(-a, +c, dog))
    assert hogs == []
    seen.check()
