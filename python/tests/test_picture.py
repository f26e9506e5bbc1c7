"""Tests the pictures of traces: the drawing of small traces made by hand, and of the README's
program.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from weft._watching import picture as _picture
from weft._watching import trace as _trace

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "{http://www.w3.org/2000/svg}"


def event(
    kind: str, who: int, op: str = "", c: str = "", waited: int = 0, /, **more: Any
) -> dict[str, Any]:
    made: dict[str, Any] = {"t": 0, "e": kind, "id": who, "p": f"main/p{who}"}
    if op:
        made |= {"op": op, "c": c}
    if kind not in ("start", "begin", "end"):
        made["waited"] = waited
    return made | more


def drawn(events: list[dict[str, Any]]) -> ElementTree.Element:
    return ElementTree.fromstring(_picture.svg(events))


def of(picture: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [e for e in picture.iter() if e.get("class") == kind]


def ends(line: ElementTree.Element) -> tuple[int, int, int, int]:
    x1, y1, x2, y2 = (int(line.get(name) or "") for name in ("x1", "y1", "x2", "y2"))
    return x1, y1, x2, y2


def names(picture: ElementTree.Element) -> list[str]:
    return [e.text or "" for e in picture.iter(NAMESPACE + "text") if e.get("class") is None]


def test_a_value_that_two_hand_over() -> None:
    picture = drawn(
        [
            event("start", 1),
            event("begin", 1, "write", "c"),
            event("start", 2),
            event("begin", 2, "read", "c"),
            event("commit", 2, "read", "c"),
            event("commit", 1, "write", "c", 2_000_000),
            event("end", 1),
            event("end", 2),
        ]
    )
    assert names(picture) == ["main/p1", "main/p2"]
    (arrow,) = of(picture, "value")
    x1, y1, x2, y2 = ends(arrow)
    # The writer and the reader met, so the arrow points straight down from the writer to the
    # reader.
    assert x1 == x2 and y1 < y2
    (wait,) = of(picture, "waits")
    assert ends(wait)[2] == x1  # the reader had waited until the two met
    assert wait[0].text == "write c: waited 0.002000 s"
    assert len(of(picture, "end")) == 2
    assert [e.text for e in of(picture, "small")] == ["c"]


def test_a_value_that_lay_in_a_buffer() -> None:
    picture = drawn(
        [
            event("begin", 1, "write", "c"),
            event("commit", 1, "write", "c"),
            event("begin", 2, "read", "c"),
            event("commit", 2, "read", "c"),
        ]
    )
    (arrow,) = of(picture, "value")
    x1, _, x2, _ = ends(arrow)
    assert x1 < x2 and not of(picture, "waits")


def test_values_belong_together_in_their_order() -> None:
    """Rules 1.2, 1.3: the arrows pair values in their order, including values that a select takes,
    even if arrows point upwards.
    """
    writes = [event(kind, 2, "select", "c", kind="output") for kind in ("begin", "commit")] * 2
    reads = [event(kind, 1, "read", "c") for kind in ("begin", "commit")] * 2
    picture = drawn([event("start", 1), *writes, *reads])
    arrows = [ends(a) for a in of(picture, "value")]
    assert len(arrows) == 2 and all(y1 > y2 for _, y1, _, y2 in arrows)
    assert arrows[0][0] < arrows[1][0] and arrows[0][2] < arrows[1][2]


def test_a_process_that_has_not_ended_waits_to_the_edge() -> None:
    picture = drawn(
        [event("start", 1), event("begin", 1, "read", "c"), event("start", 2), event("start", 3)]
    )
    (wait,) = of(picture, "waits")
    assert wait[0].text == "read c: has not ended"
    assert ends(wait)[2] == max(ends(line)[2] for line in of(picture, "runs"))
    assert not of(picture, "end")


def test_an_end_of_channel_and_a_withdrawal() -> None:
    picture = drawn(
        [
            event("begin", 1, "read", "c"),
            event("ended", 1, "read", "c", why="Retired"),
            event("begin", 2, "read", "c"),
            event("withdraw", 2, "read", "c"),
        ]
    )
    (cross,) = of(picture, "gone")
    assert cross[0].text == "read c: Retired"
    assert not of(picture, "value")


def test_a_name_is_text() -> None:
    picture = drawn([event("start", 1, p="main/<a&b>"), event("begin", 1, "read", '"<c>"')])
    assert names(picture) == ["main/<a&b>"]


def test_a_long_trace_is_cut_and_says_so() -> None:
    more, lanes = 7, 3
    many = [event("start", n) for n in range(_picture.MAX_PROCESSES + lanes)]
    many += [event("begin", 1, "read", "c")] * (_picture.MAX_EVENTS + more - len(many))
    picture = drawn(many)
    assert [e.text for e in of(picture, "small")] == [
        f"… and {more} more events, {lanes} more processes"
    ]
    assert len(names(picture)) == _picture.MAX_PROCESSES


def test_a_process_that_is_left_out_takes_part_all_the_same() -> None:
    """The second value is for the reader that is drawn; the first was for a reader that is not
    drawn."""
    hidden = _picture.MAX_PROCESSES
    events = [event("start", n) for n in range(hidden + 1)]
    for reader in (hidden, 1):
        events += [
            event("begin", 0, "write", "c"),
            event("commit", 0, "write", "c"),
            event("begin", reader, "read", "c"),
            event("commit", reader, "read", "c"),
        ]
    (arrow,) = of(drawn(events), "value")
    assert ends(arrow)[2] > ends(arrow)[0] > (hidden + 4) * 18  # the arrow of the second value


def test_nothing_at_all() -> None:
    assert names(drawn([])) == []


def hello() -> str:
    """Returns the first program of the README."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python run file=hello.py\n(.*?)```", page, re.DOTALL)
    if code is None:
        pytest.fail("README.md has no hello.py")
    return code[1]


def test_the_picture_in_the_readme_is_that_of_its_program(tmp_path: Path) -> None:
    """`./run picture` writes the picture anew."""
    (tmp_path / "hello.py").write_text(hello())
    out = tmp_path / "t.jsonl"
    command = [
        sys.executable,
        "-m",
        "weft.cli",
        "run",
        str(tmp_path / "hello.py"),
        "--on",
        "coroutines",
        "--trace",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True)
    now = _picture.svg(_trace.read(out)[0])
    times = re.compile(r"\d+\.\d{6} s")
    kept = (ROOT / "python/docs/hello.svg").read_text()
    assert times.sub("s", kept) == times.sub("s", now)
