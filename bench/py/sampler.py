"""The parts that all Python bench programs share, Weft's and the peers': arguments in, samples out.

Output on stdout: one line ``ns V V …``, a figure for each sample, and where memory is measured one
line ``bytes V``. A program that finds a wrong value calls :func:`fail`: the time of a wrong
computation means nothing. The harness puts this folder on ``PYTHONPATH``.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path
from typing import NoReturn


def fail(message: str) -> NoReturn:
    """Ends the program immediately, from any thread, with status 1 and a message."""
    print(message, file=sys.stderr, flush=True)
    os._exit(1)


def numbers(usage: str, words: int = 0) -> list[int]:
    """Returns the program's arguments after `words` others, each a whole number of at least 1; as
    many as `usage` names.
    """
    names = usage.split()[words:]
    try:
        values = [int(text) for text in sys.argv[1 + words :]]
    except ValueError:
        fail(f"usage: {Path(sys.argv[0]).name} {usage}, all whole numbers")
    if len(values) != len(names) or min(values) < 1:
        fail(f"usage: {Path(sys.argv[0]).name} {usage}, all at least 1")
    return values


def resident() -> int:
    """Returns the resident set of this process, in bytes, after a collection."""
    gc.collect()
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


def in_use() -> int:
    """Returns resident() and the private memory of the other OS processes of this session, in
    bytes.

    The harness gives each program a session of its own, so the other processes are the program's
    hosts.
    """
    me, mine, total = os.getpid(), os.getsid(0), resident()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) == me or os.getsid(int(folder.name)) != mine:
                continue
            lines = (folder / "smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue  # the process has ended meanwhile
        total += 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return total


class Sampler:
    """Times stretches of operations; ``begin()`` and ``end(operations)`` enclose one stretch."""

    def __init__(self) -> None:
        self._ns: list[float] = []
        self._start = 0

    def begin(self) -> None:
        self._start = time.perf_counter_ns()

    def end(self, operations: int) -> None:
        self._ns.append((time.perf_counter_ns() - self._start) / operations)

    def print(self) -> None:
        print("ns", *(f"{value:.1f}" for value in self._ns), flush=True)
