"""The network of a run as a drawing: `weft graph`."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

from children import weft
from flights import MAGIC, whole
from looked_at import PIPE, running, weft_until
from refusals import weft_here

from weft._commands import graph as _graph

NAMESPACE = "{http://www.w3.org/2000/svg}"


def passes(channel: str, writer: str, reader: str) -> list[dict[str, Any]]:
    """Returns the events of a writer and a reader, each with one operation at a channel."""
    ids = {name: n for n, name in enumerate((writer, reader), 1)}
    return [
        {"t": 0, "e": "commit", "id": ids[p], "p": f"main/{p}", "op": op, "c": channel, "waited": 0}
        for p, op in ((writer, "write"), (reader, "read"))
    ]


def test_a_channel_of_two_is_an_edge() -> None:
    drawn = _graph.network(passes("c", "src", "dst"))
    assert drawn.nodes == ["main/dst", "main/src"] and drawn.channels == []
    assert drawn.edges == [("main/src", "main/dst", "c", 1)]


def test_a_farm_is_folded() -> None:
    events = [e for i in range(3) for e in passes("jobs", "src", f"worker[{i}]")]
    events += [e for i in range(3) for e in passes("done", f"worker[{i}]", "dst")]
    drawn = _graph.network(events)
    assert drawn.nodes == ["main/dst", "main/src", "main/worker[0..2]"]
    assert ("main/src", "main/worker[0..2]", "jobs", 3) in drawn.edges


def test_several_writers_meet_at_a_node() -> None:
    drawn = _graph.network(passes("c", "a", "dst") + passes("c", "b", "dst"))
    assert drawn.channels == ["c"]
    assert [e[:2] for e in drawn.edges] == [("main/a", "c"), ("main/b", "c"), ("c", "main/dst")]


def test_the_same_network_gives_the_same_text() -> None:
    events = passes("c", "a", "b") + passes("d", "b", "a")
    for kind in _graph.FORMATS:
        assert _graph.drawn_as(kind, events) == _graph.drawn_as(kind, events[::-1])


def test_names_that_the_formats_use_themselves() -> None:
    events = passes('a"|<&#\\', "x", "y")
    assert r'label="a\"|<&#\\ (1)"' in _graph.drawn_as("dot", events)
    assert "a#quot;#124;#lt;#amp;#35;" in _graph.drawn_as("mermaid", events)
    assert ElementTree.fromstring(_graph.drawn_as("svg", events)) is not None


def test_columns_follow_the_values_and_a_cycle_is_drawn() -> None:
    events = passes("c", "a", "b") + passes("d", "b", "c") + passes("back", "c", "a")
    picture = ElementTree.fromstring(_graph.drawn_as("svg", events))
    boxes = [int(e.get("x") or 0) for e in picture.iter(NAMESPACE + "rect")]
    assert boxes == sorted(boxes) and len(set(boxes)) == 3
    assert len([e for e in picture.iter(NAMESPACE + "path") if e.get("class") == "value"]) == 3


def test_a_large_network_says_what_is_left_out() -> None:
    events = [e for i in range(300) for e in passes(f"c{i}", f"a{i}", f"b{i}")]
    assert "200 more processes" in _graph.drawn_as("svg", events)


PROGRAM = """
    from weft import Channel, process, run

    @process
    async def src(out):
        for n in range(5):
            await out.write(n)

    @process
    async def dst(numbers):
        async for n in numbers:
            print("got", n)

    c = Channel("numbers")
    run(src(c.writer()), dst(c.reader()))
"""


def test_the_command(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    done = weft("graph", "--on", "threads", str(program))
    assert done.returncode == 0, done.stderr
    assert '"main/src" -> "main/dst" [label="numbers (5)"];' in done.stdout
    assert "got" not in done.stdout and done.stderr.count("got") == 5
    out = tmp_path / "out.svg"
    assert weft("graph", "-o", str(out), str(program)).returncode == 0
    assert ElementTree.parse(out).getroot().tag == NAMESPACE + "svg"


def test_a_program_that_runs(home: Path, tmp_path: Path) -> None:
    """Rule 14.10: `weft graph PID` draws what a look has shown."""
    edge = re.compile(r'"main/source" -> "main/enrich" \[label="orders \(\d+/s\)"\];')
    with running(tmp_path, PIPE) as p:
        shown = weft_until(edge.search, "graph", str(p.pid))
        assert edge.search(shown), shown
        out = tmp_path / "out.svg"
        assert weft_here("graph", "-o", str(out), str(p.pid)) == (0, "", "")
    titles = [e.text or "" for e in ElementTree.parse(out).iter(NAMESPACE + "title")]
    assert any(re.fullmatch(r"priced: \d+ values/s", title) for title in titles), titles


def test_a_look_knows_the_rate_of_a_channel_not_of_each_end() -> None:
    pipes = [
        SimpleNamespace(name="jobs", rate=30.2, writers=["main/src"], readers=["main/w[0]", "x"]),
        SimpleNamespace(name="one", rate=5.0, writers=["main/src"], readers=["x"]),
    ]
    rows = [SimpleNamespace(path=path) for path in ("main/src", "main/w[0]", "x", "idle")]
    look: Any = SimpleNamespace(pipes=pipes, rows=rows, left_out=3)
    drawn = _graph.looked(look)
    assert drawn.edges == [
        ("main/src", "jobs", "", 30),
        ("jobs", "main/w[0]", "", None),
        ("jobs", "x", "", None),
        ("main/src", "x", "one", 5),
    ]
    assert drawn.left_out == 3
    for kind, text in (
        ("dot", '"channel jobs" -> "x";'),
        ("mermaid", "  c0 --> p2\n"),
        ("svg", "<title>jobs to x</title>"),
    ):
        assert text in _graph.as_text(kind, drawn), kind


def test_a_recorders_file(tmp_path: Path) -> None:
    """A file that is cut off is drawn up to the cut; a file of another version is refused."""
    file = tmp_path / "out.flight"
    file.write_bytes(whole())
    status, shown, err = weft_here("graph", str(file))
    assert status == 0 and err == ""
    assert '"main/a" -> "main/b" [label="c (5)"];' in shown
    file.write_bytes(whole()[:-30])
    status, cut, err = weft_here("graph", str(file))
    assert status == 0 and "digraph" in cut and f"{file} is cut off" in err
    for data, message in (
        (MAGIC[:-1] + b"\x09" + whole()[8:], "is of version 9 of the format"),
        (MAGIC[:4], "is cut off before its first event"),
    ):
        file.write_bytes(data)
        status, shown, err = weft_here("graph", str(file))
        assert (status, shown) == (2, "") and message in err and err.count("\n") == 1
    lines = tmp_path / "out.jsonl"
    head = '{"weft_trace":1,"version":"0","clock":"steady","unit":"ns"}\n'
    lines.write_text(head + '{"t":1,"e":"start","id":1,"p":"main/a"}\n{"t":2,"e":"sta')
    status, shown, err = weft_here("graph", str(lines))
    assert status == 0 and '"main/a"' in shown and "the last line of" in err
    lines.write_text('{"weft_trace":99}\n')
    status, shown, err = weft_here("graph", str(lines))
    assert status == 2 and "is not a trace of this version" in err


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    for arguments, message in (
        (["graph", "--format", "png", "x.py"], "--format png: it must be one of svg, dot, mermaid"),
        (["graph", str(tmp_path / "no.py")], "does not exist"),
    ):
        done = weft(*arguments)
        assert done.returncode == 2 and message in done.stderr and done.stdout == ""
