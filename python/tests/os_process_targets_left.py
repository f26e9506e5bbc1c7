"""Processes of the operating system that test_far_left.py starts: homes of channels, which are
stopped while another process leaves an operation there.
"""

from __future__ import annotations

import os
from typing import Any

import weft.threads as th
from weft.processes import Channel, Parallel, PeerDied, Retired, process, statistics


@th.process
def _reads(inp: Any) -> Any:
    try:
        return inp.read()
    except PeerDied:
        return "PeerDied"


@process
def reads_one(here: Any, signal: Any, reports: Any) -> None:
    """Gives away a writer of a channel at which this process is already reading. Writes the value
    that it has read."""
    c = Channel("c")

    @th.process
    def gives(out: Any) -> None:
        while not statistics(c).waiting_readers:
            th.yield_()
        here.write((os.getpid(), c.writer()))
        out.retire()

    reports.write(Parallel(_reads(c.reader()), gives(c.writer()))[0])


@th.process
def _writes(out: Any) -> str:
    try:
        out.write("x")
    except Retired:
        return "Retired"
    return "written"


@process
def writes_when_told(here: Any, signal: Any, reports: Any) -> None:
    """Gives away a reader of a channel, and writes to the channel once `signal` has a value.
    Reports how the write ended.
    """
    c = Channel("c")
    kept = c.writer()
    here.write((os.getpid(), c.reader()))
    signal.read()
    reports.write(Parallel(_writes(kept))[0])


@process
def writes_one(here: Any, signal: Any, reports: Any) -> None:
    """Gives away a reader of a channel at which this process is already writing. Reports how the
    write ended."""
    c = Channel("c")

    @th.process
    def gives(inp: Any) -> None:
        while not statistics(c).waiting_writers:
            th.yield_()
        here.write((os.getpid(), c.reader()))
        inp.retire()

    reports.write(Parallel(_writes(c.writer()), gives(c.reader()))[0])
