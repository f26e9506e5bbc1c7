"""Channels between OS processes, as a look shows them (rule 14.10)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from weft._watching import far_ends as _far_ends


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
    """Rules 14.10, 14.11: each sample shows where such a thread waits, and does not mistake it for
    a thread that was woken and has not run yet.
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
