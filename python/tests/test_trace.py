"""Tests the traces of a run (rule 14.6)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from parts import receive, send

from weft import threads
from weft._commands import graph as _graph
from weft._watching import observers as _observers
from weft._watching import picture as _picture
from weft._watching import trace as _trace
from weft.coroutines import Channel, process, run, select, yield_
from weft.errors import BadUse, WeftWarning
from weft.observe import tracing

HERE = Path(__file__).name
BOUND = 280.0  # s: no test waits longer than this

pytestmark = pytest.mark.usefixtures("nobody_observes")


def events_of(path: Path) -> list[dict[str, Any]]:
    events, cut_off = _trace.read(path)
    assert not cut_off
    return events


def test_a_trace_says_what_happened(b: Any, tmp_path: Path) -> None:
    """Rule 14.6: the trace of a small network has the expected events, in the order of their
    times."""
    c = b.weft.Channel("c")
    file = tmp_path / "t.jsonl"
    b.run(b.process(send)(c.writer(), 1, 2), b.process(receive)(c.reader()), trace=file)
    first = json.loads(file.read_text().partition("\n")[0])
    assert first["weft_trace"] == 1 and first["unit"] == "ns"
    events = [e for e in events_of(file) if e["p"].startswith("main/")]
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


def test_of_two_threads_the_later_event_may_be_written_first(tmp_path: Path) -> None:
    """Rule 14.6: a reader of the trace receives the events in the order of their times."""
    file = tmp_path / "t.jsonl"
    lost = threading.Event()
    named = _trace.Trace._named

    class Trace(_trace.Trace):
        def _named(self, process: Any) -> dict[str, Any]:
            """Makes the first thread lose the interpreter's lock between taking the time of an
            event and writing its line."""
            if process.name == "first":
                lost.set()
                assert begun.wait(BOUND)
            return named(self, process)

        def _put(self, fields: dict[str, Any]) -> None:
            super()._put(fields)
            if fields.get("p") == "main/second":
                begun.set()

    begun = threading.Event()

    @threads.process
    def first() -> None:
        pass

    @threads.process
    def second() -> None:
        pass

    trace = Trace(file)
    trace.start()
    try:
        one = threading.Thread(target=lambda: threads.run(first()))
        one.start()
        assert lost.wait(BOUND)
        threads.run(second())
        one.join()
    finally:
        trace.close()
    written = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    assert written[0]["p"] == "main/second"
    assert [e["p"] for e in events_of(file)][:2] == ["main/first", "main/second"]


def test_selects_withdrawals_and_failures(tmp_path: Path) -> None:
    """Rule 14.6: a trace has the guards of selects, withdrawals and failures."""
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
    """Rule 14.6: the summary and the picture of a trace have its processes and channels."""
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
    """Rule 14.6: the file is complete, however the program ends."""
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
    with pytest.raises(BadUse, match="not a line of a trace"):
        _trace.read(file)
    file.write_text('{"weft_trace":99}\n')
    with pytest.raises(BadUse, match="not a trace of this version"):
        _trace.read(file)
    file.write_text(whole + '{"t":1,"e":"start","id":1}\n')
    with pytest.raises(BadUse, match=r"t\.jsonl:2 is not a line of a trace"):
        _trace.read(file)
    with pytest.raises(BadUse, match="cannot read"):
        _trace.read(tmp_path / "none")
    with pytest.raises(BadUse, match="cannot write"), tracing(tmp_path / "no" / "where"):
        pass


def test_more_than_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "t.jsonl"
    with tracing(file):
        pass
    monkeypatch.setattr(_trace, "_most", lambda: 10)
    with pytest.raises(BadUse, match=r"more than this machine's memory holds .* --flight OUT"):
        _trace.read(file)


def test_lines_at_random(tmp_path: Path) -> None:
    """Whatever a file contains, the commands read it, or refuse it with a sentence."""
    file = tmp_path / "t.jsonl"
    c = Channel("c")

    @process
    async def writes(out: Any) -> None:
        for n in range(3):
            await out.write(n)

    @process
    async def reads(inp: Any) -> None:
        await select(inp)
        async for _ in inp:
            await yield_()

    run(writes(c.writer()), reads(c.reader()), trace=file)
    whole = file.read_text().splitlines()
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    values: list[Any] = [None, True, -1, 1 << 70, 0.5, "x", [], {}, [["input"]], "commit", "lost"]
    read_ones = 0
    for _ in range(400):
        lines = whole[:]
        for _ in range(rng.randrange(1, 4)):
            n = rng.randrange(1, len(lines))
            event = json.loads(lines[n])
            if not isinstance(event, dict):
                continue
            key = rng.choice([*event, "pid", "in", "c"])
            event[key] = rng.choice(values)
            if rng.random() < 0.3:
                del event[key]
            lines[n] = json.dumps(event if rng.random() < 0.9 else rng.choice(values))
        file.write_text("\n".join(lines) + "\n")
        try:
            events, _ = _trace.read(file)
        except BadUse as error:
            assert "is not a line of a trace" in str(error)
            continue
        read_ones += 1
        assert _trace.summarise(events).verdict
        json.dumps(_trace.chrome(events))
        assert _picture.svg(events) and _graph.drawn_as("dot", events)
    assert read_ones > 10


def test_a_full_disk_cuts_it_off_and_changes_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Rules 14.2 and 14.6: a full disk cuts off a trace that is larger than one block, and changes
    no outcome."""
    c = Channel("c")

    @process
    async def writes(out: Any) -> int:
        for n in range(1000):
            await out.write(n)
        return 7

    @process
    async def reads(inp: Any) -> int:
        return sum([n async for n in inp])

    with pytest.warns(WeftWarning, match=r"trace /dev/full is cut off: No space") as warned:
        assert run(writes(c.writer()), reads(c.reader()), trace="/dev/full") == [7, 499500]
    assert len(warned) == 1 and capfd.readouterr().err == ""


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
