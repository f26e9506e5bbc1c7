"""Channels between OS processes, as a look sees them (rule 14.10)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from weft._watching import far_ends as _far_ends
from weft._watching import look as _look
from weft._watching import supervision as _supervision
from weft._watching import visit as _visit


def _process(holds: list[Any]) -> dict[str, Any]:
    return {"holds": holds}


def _answer(*processes: dict[str, Any]) -> dict[str, Any]:
    keys = {key for one in processes for key, _ in one["holds"]}
    return {"processes": list(processes), "channels": {key: {"name": key[0]} for key in keys}}


def test_which_channels_lead_from_one_os_process_to_another() -> None:
    """`a` leads from 1 to 2. Each of the two has its own channel `b`. Only 1 has `c`."""
    one = _answer(_process([["a1", True], ["b1", True], ["b1", False], ["c1", True]]))
    two = _answer(_process([["a2", False], ["b2", True], ["b2", False]]))
    assert _far_ends.in_many({1: one, 2: two}) == {"a"}
    # A channel that has both sides in one OS process, and one side in another as well.
    both = _answer(_process([["a2", False], ["a2", True]]))
    assert _far_ends.in_many({1: one, 2: both}) == {"a"}


def _whole(path: str, holds: list[Any], rate: float, **more: Any) -> dict[str, Any]:
    """An answer with one process, at whose ends this OS process has counted `rate` values."""
    one = {"id": 1, "parent": 0, "path": path, "kind": "thread", "now": "runs", "for": 0.0}
    one |= {"before": True, "does": "running at a.py:1", "share": {"runs": 1.0}, "cpu": None}
    one |= {"rate": rate, "holds": holds, "waits": []}
    channel = {"rate": rate, "depth": 0, "capacity": 0, "dropped": 0, "reading": 0, "writing": 0}
    channels = {key: {"name": key[0], **channel} for key, _ in holds}
    answer = {"processes": [one], "channels": channels, "seconds": 1.0, "left_out": 0}
    return _look.who() | answer | {"calls": {}, "away": {}} | more


def test_operations_at_a_channel_that_another_os_process_has_made() -> None:
    """Rule 14.10: the values are counted where the channel was made."""
    one, two = _whole("main/a", [["a1", True]], 5.0), _whole("main/b", [["a2", False]], 0.0)
    rows = _visit.together(1, {1: one, 2: two}, [], {}).rows
    assert [row.rate for row in rows] == [5.0, 5.0]
    three = _whole("main/c", [["a2", False]], 0.0)
    rows = _visit.together(1, {1: one, 2: two, 3: three}, [], {}).rows
    assert [row.rate for row in rows] == [5.0, None, None]  # two processes share the reader's side


def test_the_life_of_a_supervised_process() -> None:
    """Rule 14.10."""
    for life, event, where in (
        (1, "began", "running at a.py:1"),
        (3, "began", "running at a.py:1 (life 3)"),
        (3, "died", "its supervisor starts it again (life 4)"),
        (1, "recycled", "its supervisor starts it again (life 2)"),
    ):
        answer = _whole("main/a", [], 0.0, lives={"main/a": (life, event)})
        (row,) = _visit.together(1, {1: answer}, [], {}).rows
        assert row.where == where


def test_the_lives_that_are_told() -> None:
    """Rule 14.10: those of the processes that are supervised now."""
    for event in ("began", "died", "began"):
        _supervision.tell(_supervision.Supervised(event, "main/x", "s", 2))
    assert _supervision.lives()["main/x"] == (2, "began")
    _supervision.tell(_supervision.Supervised("ended", "main/x", "s", 2))
    assert "main/x" not in _supervision.lives()


PROGRAM = """
from weft._watching.look import Look
from weft.processes import Channel, Hosts, Parallel, process

@process
def waits(inp):
    return inp.read()

@process
def writes(out):
    out.write(1)

@process
def looks(done):
    look, found = Look(), {}
    for _ in range(400):
        answer = look.over(0.005)
        for one in answer["processes"]:
            if one["path"].endswith(("waits", "writes")):
                found[one["path"][-5:]] = one["now"], [out for _, out in one["waits"]]
        if all(now != "runs" and now != "due" for now, _ in found.values()) and len(found) == 2:
            break
    done.write(found)

@process
def main(told, back, other):
    print(sorted(told.read().items()))
    back.write(2)
    print(other.read())

if __name__ == "__main__":
    c, d, told = Channel("c"), Channel("d"), Channel("told")
    with Hosts(1) as hosts:
        h = hosts[0]
        print(Parallel(
            waits.on(h)(c.reader()), writes.on(h)(d.writer()), looks.on(h)(told.writer()),
            main.on("threads")(told.reader(), c.writer(), d.reader()))[0])
"""


def test_a_thread_that_waits_for_a_channel_elsewhere_waits(tmp_path: Path) -> None:
    """Rules 14.10, 14.11: each sample sees where such a thread waits, and does not take it for one
    that was let go on and has not run yet.
    """
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[('rites', ('writes', [True])), ('waits', ('reads', [False]))]",
        "1",
        "2",
    ]
