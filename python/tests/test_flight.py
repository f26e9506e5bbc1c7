"""The flight recorder, and the critical path (rules 14.14, 14.15)."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import child, weft
from flights import (
    MAGIC,
    block,
    end,
    head,
    pair,
    piece,
    place,
    process,
    read,
    varint,
    whole,
    write,
)
from parts import receive, send

from weft import threads
from weft._watching import flight as _flight
from weft._watching import flight_read as _flight_read
from weft._watching import perfetto as _perfetto
from weft._watching import trace as _trace
from weft.coroutines import Channel, Parallel, run
from weft.coroutines import process as process_
from weft.errors import BadUse
from weft.observe import flight, tracing

pytestmark = [
    pytest.mark.usefixtures("nobody_observes"),
    pytest.mark.skipif(sys.implementation.name != "cpython", reason="CPython's extension"),
]


@process_
async def sends(out: Any, *values: int) -> None:
    for v in values:
        await out.write(v)


@process_
async def receives(source: Any) -> list[int]:
    return [v async for v in source]


@threads.process
def thread_sends(out: Any, *values: int) -> None:
    for v in values:
        out.write(v)


@threads.process
def thread_receives(source: Any) -> list[int]:
    return list(source)


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """Writes bytes to a file, and reads the file."""

    def read_them(data: bytes, name: str = "made.flight") -> _flight_read.Recorded:
        file = tmp_path / name
        file.write_bytes(data)
        return _flight_read.Recorded([file])

    return read_them


def lines(file: Path) -> list[dict[str, Any]]:
    return list(_flight_read.Recorded([file]).lines())


def told(events: list[dict[str, Any]], e: str) -> list[tuple[Any, ...]]:
    return [(x["p"], x.get("op"), x.get("c")) for x in events if x["e"] == e and x["id"] > 0]


# --- the contents ---------------------------------------------------------------------------------


def test_it_has_the_outcomes_of_a_trace(b: Any, tmp_path: Path) -> None:
    """Rule 14.14."""
    c = b.weft.Channel("c")
    with flight(tmp_path / "f"), tracing(tmp_path / "t"):
        b.run(b.process(send)(c.writer(), *range(20)), b.process(receive)(c.reader()))
    traced, _ = _trace.read(tmp_path / "t")
    for e in ("start", "commit", "ended", "end"):
        assert sorted(told(lines(tmp_path / "f"), e), key=str) == sorted(told(traced, e), key=str)
    assert _flight_read.Recorded([tmp_path / "f"]).fault == ""


def test_it_is_the_same_alone_and_beside_an_observer(b: Any, tmp_path: Path) -> None:
    """Rule 14.14. What the recorder alone observes goes another way through the code."""

    def recorded(name: str, beside: bool) -> list[tuple[Any, ...]]:
        c, d = b.weft.Channel("c"), b.weft.Channel("d", capacity=2)
        with (
            flight(tmp_path / name),
            tracing(tmp_path / "t") if beside else contextlib.nullcontext(),
        ):
            b.run(
                b.process(send)(c.writer(), *range(20)),
                b.process(receive)(c.reader()),
                b.process(send)(d.writer(), *range(20)),
                b.process(receive)(d.reader()),
            )
        keys = ("p", "e", "op", "c", "why", "how")
        # The order in which processes run may differ; that of each process's events may not.
        return sorted(
            (
                (x["p"], i, *(x.get(k) for k in keys))
                for i, x in enumerate_each(lines(tmp_path / name))
            ),
            key=str,
        )

    def enumerate_each(events: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
        counts: dict[str, int] = {}
        for x in events:
            counts[x["p"]] = counts.get(x["p"], 0) + 1
            yield counts[x["p"]], x

    assert recorded("alone", False) == recorded("beside", True)


def test_a_select_says_which_guard_it_took(tmp_path: Path) -> None:
    from weft.coroutines import after, select

    a, b = Channel("a"), Channel("b")

    @process_
    async def chooses(one: Any, other: Any) -> None:
        assert (await select(one, other))[0] == 1
        assert (await select(one, after(0)))[0] == 1

    @process_
    async def writes(out: Any) -> None:
        await out.write(1)

    keep = a.writer()
    with flight(tmp_path / "f"):
        run(chooses(a.reader(), b.reader()), writes(b.writer()))
    keep.retire()
    took = [x for x in lines(tmp_path / "f") if x.get("op") == "select" and x["e"] == "commit"]
    assert [(x["guard"], x.get("kind"), x.get("c")) for x in took] == [
        (1, "input", "b"),
        (1, None, None),
    ]


def test_which_process_failed_and_which_was_cancelled(tmp_path: Path) -> None:
    @process_
    async def fails() -> None:
        raise ValueError("lost")

    @process_
    async def waits(r: Any) -> None:
        await r.read()

    c = Channel("c")
    with flight(tmp_path / "f"), pytest.raises(ValueError, match="lost"):
        run(fails(), waits(c.reader()))
    ends = {x["p"]: (x["how"], x.get("error")) for x in lines(tmp_path / "f") if x["e"] == "end"}
    assert ends == {"main/fails": ("failed", "ValueError: lost"), "main/waits": ("Cancelled", None)}


def test_the_ring_keeps_the_last(tmp_path: Path) -> None:
    """Rule 14.14: the ring has the requested size, and never grows."""
    c = Channel("c")
    n = 60_000
    with flight(tmp_path / "f", size=1 << 18):
        run(sends(c.writer(), *range(n)), receives(c.reader()))
    assert (tmp_path / "f").stat().st_size <= 1 << 18
    recorded = _flight_read.Recorded([tmp_path / "f"])
    summary = recorded.summary()
    assert summary.events > 10_000 and not summary.unfinished
    assert summary.events + recorded.heads[0][4] == 2 * n + 2 * 2 + 1  # starts, ends, the last read
    reads = [e for e in recorded.events() if e.tag == _flight_read.OVER and e.op == 0]
    commits = [e.number for e in reads if not e.outcome]
    assert commits == list(range(n - len(commits), n))  # numbered as if no event were missing


def test_an_event_is_few_bytes(tmp_path: Path) -> None:
    c = Channel("c")
    with flight(tmp_path / "f"):
        run(sends(c.writer(), *range(20_000)), receives(c.reader()))
    summary = _flight_read.Recorded([tmp_path / "f"]).summary()
    assert (tmp_path / "f").stat().st_size / summary.events <= 8


def test_what_waits_is_in_the_file(tmp_path: Path) -> None:
    """Rule 14.14: an operation that waits when the file is written is in the file as a wait."""
    seen: list[list[dict[str, Any]]] = []

    @process_
    async def looks(c: Any) -> None:
        from weft.coroutines import yield_

        await yield_()
        _flight.write(tmp_path / "f")
        seen.append(lines(tmp_path / "f"))
        c.poison()

    c = Channel("c")
    with flight(tmp_path / "g"):
        run(receives(c.reader()), looks(c))
    begun = [x for x in seen[0] if x["e"] == "begin" and x["p"] == "main/receives"]
    assert begun[-1]["c"] == "c" and begun[-1]["op"] == "read"
    assert "main/receives" in _flight_read.Recorded([tmp_path / "f"]).summary().unfinished


def test_many_processes_that_come_and_go(tmp_path: Path) -> None:
    with flight(tmp_path / "f", size=1 << 18):

        @process_
        async def child_(out: Any, i: int) -> None:
            await out.write(i)

        @process_
        async def starts() -> int:
            total = 0
            for i in range(600):
                c = Channel(f"c{i}")
                _, got = await Parallel(child_(c.writer(), i), receives(c.reader()))
                total += sum(got)
            return total

        assert run(starts()) == sum(range(600))
    summary = _flight_read.Recorded([tmp_path / "f"]).summary()
    assert len(summary.channels) == 600 and not summary.unfinished


# --- the time of writing --------------------------------------------------------------------------

LOST = """
from weft.coroutines import Channel, process, run
@process
async def gives(out, back):
    for i in range(100):
        await out.write(i)
    await back.read()
@process
async def takes(inp, back):
    for i in range(101):
        await inp.read()
c, d = Channel("c"), Channel("d")
run(gives(c.writer(), d.reader()), takes(c.reader(), d.writer()))
"""


def test_a_deadlock_writes_it(tmp_path: Path) -> None:
    """Rule 14.14's example."""
    done = subprocess.run(
        [sys.executable, "-c", LOST],
        cwd=tmp_path,
        env={**os.environ, "WEFT_FLIGHT": "1M"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert "Deadlock" in done.stderr and "the last events are in" in done.stderr
    (file,) = tmp_path.glob("weft-*.flight")
    summary = _flight_read.Recorded([file]).summary()
    assert summary.events >= 200
    output = weft("trace", str(file))
    assert output.returncode == 0 and "critical path" in output.stdout


SERVES = """
import sys, threading
from weft.threads import Channel, process, run
@process
def serves(inp):
    for v in inp:
        print("ready", flush=True)
        sys.stdin.readline()
c = Channel("c", capacity=1)
w = c.writer()
w.write(1)
run(serves(c.reader()))
"""


def test_a_signal_and_weft_dump(home: Path, tmp_path: Path) -> None:
    with child(
        "-c", SERVES, stdin=subprocess.PIPE, env={**os.environ, "WEFT_FLIGHT": f"1M:{tmp_path}"}
    ) as p:
        assert p.stdout is not None and p.stderr is not None
        assert p.stdout.readline().strip()
        done = weft("dump", str(p.pid), "-o", str(tmp_path / "asked"))
        assert done.returncode == 0, done.stderr
        assert told(lines(tmp_path / "asked"), "commit")[0][1:] == ("read", "c")
        p.send_signal(signal.SIGUSR2)
        output = p.stderr.readline()
        output = output if isinstance(output, str) else output.decode()
        assert f"weft-{p.pid}.flight" in output
        assert lines(tmp_path / f"weft-{p.pid}.flight")
        refused = weft("dump", str(p.pid), "-o", str(tmp_path / "no" / "where"))
        assert refused.returncode == 2 and "cannot write" in refused.stderr
    with child("-c", SERVES, stdin=subprocess.PIPE) as p:
        assert p.stdout is not None and p.stdout.readline().strip()
        refused = weft("dump", str(p.pid))
        assert refused.returncode == 2 and "WEFT_FLIGHT=16M" in refused.stderr


def test_weft_run_writes_it_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "from weft import *\n@process\nasync def p(): pass\nprint(run(p()))\n"
    )
    done = weft("run", str(tmp_path / "p.py"), "--flight", str(tmp_path / "f"))
    assert done.returncode == 0 and (tmp_path / "f").exists()
    refused = weft("run", str(tmp_path / "p.py"), "--flight", str(tmp_path / "no" / "f"))
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1


@pytest.mark.parametrize("size", ["", "16Q", "M", "1", "9999G", "-1M"])
def test_sizes_that_are_none(size: str) -> None:
    with pytest.raises(BadUse, match=r"write 16M|from 256K"):
        _flight.size_of(size)
    assert _flight.size_of("16m") == 16 << 20


# --- the critical path ----------------------------------------------------------------------------


def test_the_path_is_the_slow_stages(made: Any) -> None:
    """Rule 14.15: the times of this file are made up, so the path is known."""
    path = made(MAGIC + head() + block(pair(100)) + piece("Z")).critical()
    assert path.steps[0].path == "main/a"
    assert path.steps[0].busy / path.seconds == pytest.approx(0.9, abs=0.02)
    assert ("c", "main/a", "main/b", 100) in path.hands
    assert ("d", "main/b", "main/a", 99) in path.hands  # the last event is b's end


def test_the_path_of_a_pipeline(tmp_path: Path) -> None:
    """Rule 14.15's example: the path goes through the sleeping process, because no machine makes a
    sleep shorter. A busy machine makes the steps of other processes longer, so the network runs
    again until no step was too long.
    """

    @threads.process
    def stage(inp: Any, out: Any, seconds: float) -> None:
        for v in inp:
            time.sleep(seconds)
            out.write(v)

    for n in range(10):
        a, b = threads.Channel("a"), threads.Channel("b")
        with flight(tmp_path / f"{n}"):
            threads.run(
                thread_sends(a.writer(), *range(10)),
                stage(a.reader(), b.writer(), 0.02),
                thread_receives(b.reader()),
            )
        recorded = _flight_read.Recorded([tmp_path / f"{n}"])
        named = "`main/stage` is the bottleneck" in recorded.summary().verdict
        if named and recorded.critical().steps[0].path == "main/stage":
            break
    assert recorded.critical().steps[0].path == "main/stage"
    assert "`main/stage` is the bottleneck" in recorded.summary().verdict


# --- other formats --------------------------------------------------------------------------------


def test_perfettos_own_classes_read_it(tmp_path: Path) -> None:
    """Checks the tracks, how slices nest, and that flow ids come in pairs."""
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    c = Channel("c")
    with flight(tmp_path / "f"):
        run(sends(c.writer(), *range(50)), receives(c.reader()))
    trace = pb.Trace()
    trace.ParseFromString(b"".join(_perfetto.packets(_flight_read.Recorded([tmp_path / "f"]))))
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor
        for p in trace.packet
        if p.HasField("track_descriptor")
    }
    names = {t.name for t in tracks.values()}
    assert {"main/sends", "main/receives"} <= names
    assert all(t.parent_uuid in tracks for t in tracks.values() if t.name)
    interned: dict[int, str] = {}
    depth: dict[int, int] = {}
    begun: dict[int, int] = {}
    taken: dict[int, int] = {}
    slices = set()
    for p in sorted(trace.packet, key=lambda p: p.timestamp):  # Perfetto sorts them, stably
        interned.update((n.iid, n.name) for n in p.interned_data.event_names)
    for p in sorted(trace.packet, key=lambda p: p.timestamp):
        if not p.HasField("track_event"):
            continue
        e = p.track_event
        assert e.track_uuid in tracks
        depth[e.track_uuid] = depth.get(e.track_uuid, 0) + {1: 1, 2: -1, 3: 0}[e.type]
        assert depth[e.track_uuid] >= 0
        if e.type == 1:
            slices.add(interned[e.name_iid])
        begun.update((f, p.timestamp) for f in e.flow_ids)
        taken.update((f, p.timestamp) for f in e.terminating_flow_ids)
    assert set(depth.values()) == {0}
    assert {"write c", "read c", "main/sends"} <= slices
    assert len(begun) == 50 and begun.keys() == taken.keys()
    assert all(begun[f] <= taken[f] for f in begun)


def test_the_command_writes_every_format(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(whole())
    outs = {o: tmp_path / o for o in ("jsonl", "chrome", "perfetto", "picture")}
    done = weft(
        "trace",
        str(tmp_path / "f"),
        "--json",
        *(w for o, p in outs.items() for w in (f"--{o}", str(p))),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["events"] == 24 and report["critical"]["hand_overs"][0][0] == "c"
    events, cut_off = _trace.read(outs["jsonl"])
    assert not cut_off and _trace.summarise(events).channels[0].operations == 10
    assert json.loads(outs["chrome"].read_text())["traceEvents"]
    assert outs["picture"].read_text().startswith("<svg")
    assert outs["perfetto"].stat().st_size > 100
    old = weft("trace", str(outs["jsonl"]), "--perfetto", str(tmp_path / "x"))
    assert old.returncode == 2 and "weft run --flight" in old.stderr


def test_several_files_are_one_trace(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(
        MAGIC
        + head(11)
        + block(process(1, "main/a"), place(1, "c"), write(5, 0, 0), write(10, 0, 0))
    )
    (tmp_path / "b").write_bytes(
        MAGIC
        + head(12)
        + block(process(1, "main/b"), place(1, "c"), read(7, 0, 0), read(10, 0, 0))
        + piece("Z")
    )
    recorded = _flight_read.Recorded([tmp_path / "a", tmp_path / "b"])
    assert [(e.t, e.op) for e in recorded.events()] == [(0, 1), (2, 0), (10, 1), (12, 0)]
    assert [x["pid"] for x in recorded.lines() if x["e"] == "commit"] == [11, 12, 11, 12]
    assert "cut off" in recorded.fault  # a has no end


# --- bad input ------------------------------------------------------------------------------------


def test_a_file_that_is_cut_off_anywhere(made: Any) -> None:
    """Rule 14.14: a file can be read up to the place where it is cut off."""
    data = whole()
    full = list(made(data).events())
    before = len(MAGIC + head())
    last = 0
    for n in range(len(data)):
        if n < before:
            with pytest.raises(BadUse, match=r"cut off before|is empty"):
                made(data[:n])
            continue
        recorded = made(data[:n])
        events = list(recorded.events())
        assert events == full[: len(events)] and len(events) >= last
        assert "cut off" in recorded.fault
        last = len(events)
        recorded.summary()
        recorded.critical()
    assert last == len(full) == 24


def test_what_is_no_file_of_this_version(made: Any, tmp_path: Path) -> None:
    with pytest.raises(BadUse, match="of version 9 of the format, and this Weft reads version 1"):
        made(MAGIC[:-1] + b"\x09" + whole()[8:])
    with pytest.raises(BadUse, match="is no trace; make one by"):
        made(b"\x89PNG and more")
    with pytest.raises(BadUse, match="cannot read"):
        _flight_read.Recorded([tmp_path / "none"])
    for data in (b"", b"\x89PNG and more", MAGIC):
        (tmp_path / "f").write_bytes(data)
        done = weft("trace", str(tmp_path / "f"))
        assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_more_events_than_memory_holds(tmp_path: Path) -> None:
    """The events are never all in memory: a file with two million events is read in as much
    memory as one with few.
    """
    one = block(process(1, "main/a"), place(1, "c"), write(5, 0, 0) * 16_000)
    for name, blocks in (("few", 2), ("many", 150)):
        (tmp_path / name).write_bytes(MAGIC + head() + one * blocks + piece("Z"))
    program = """
import resource, sys
from weft._watching import flight_read
for path in sys.argv[1:]:
    recorded = flight_read.Recorded([path])
    print(recorded.summary().events, recorded.critical().seconds >= 0)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    with child("-c", program, str(tmp_path / "few"), str(tmp_path / "many")) as p:
        assert p.stdout is not None and p.stderr is not None
        figures = p.stdout.read().split()
        assert len(figures) == 6, p.stderr.read()
    assert figures[0] == "32000" and figures[3] == str(150 * 16_000)
    assert int(figures[5]) - int(figures[2]) < 30_000  # KB; the events would take 200,000


HUGE = varint((1 << 64) - 1)


@pytest.mark.parametrize(
    "records",
    [
        b"\x00\x00\x05\x00",  # a process that is not defined
        b"\x00\x00\x00\x09",  # a place that is not defined
        b"\x0e\x00\x00\x00",  # an operation that does not exist
        b"\x30\x00\x00\x00",  # an outcome that does not exist
        b"\xf0\x00",  # a tag that does not exist
        b"\x80\x00" + HUGE + b"x",  # a text that is longer than the file
        b"\x00" + b"\xff" * 12,  # a number of more than 64 bits
    ],
)
def test_a_damaged_block(made: Any, records: bytes) -> None:
    good = [process(1, "main/a"), place(1, "c"), write(5, 0, 0)]
    recorded = made(
        MAGIC + head() + block(*good, records, write(1, 0, 0)) + block(*good, start=50) + piece("Z")
    )
    assert [e.t for e in recorded.events()] == [0, 50]  # the next block is whole
    recorded._names()
    assert "is damaged" in recorded.fault


def test_huge_numbers(made: Any) -> None:
    one = process(1, "main/a") + place(1, "c") + b"\x40" + HUGE + b"\0\1" + HUGE
    data = MAGIC + head() + block(one, end(1, 0), start=(1 << 63) + 5) + piece("Z")
    recorded = made(data)
    assert recorded.summary().events == 2
    recorded.critical()
    assert b"".join(_perfetto.packets(recorded))
    with pytest.raises(BadUse, match="cut off before"):
        made(MAGIC + b"H\xff\xff\xff\xff" + b"x" * 50)


def test_bytes_at_random(made: Any) -> None:
    """Whatever bytes a file contains, it is read, or refused with a sentence."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    good = whole()
    read_ones = 0
    for _ in range(300):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            match rng.randrange(3):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randrange(1, 9)]
                case _:
                    data[at:at] = rng.randbytes(rng.randrange(1, 9))
            if len(data) < 20:
                break
        try:
            recorded = made(bytes(data))
        except BadUse:
            continue
        read_ones += 1
        for e in recorded.events():
            assert e.t >= 0 and 0 <= e.process < len(recorded.processes)
        recorded.summary()
        recorded.critical().text()
        for _ in recorded.lines():
            pass
        for _ in _perfetto.packets(recorded):
            pass
    assert read_ones > 30
