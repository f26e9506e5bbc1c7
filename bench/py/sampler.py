"""What every Python bench program shares, ours and peers: arguments in, samples out.

Output on stdout: one line ``ns V V …``, a figure a sample, and where memory is measured one line ``bytes V``.
A program that finds a wrong value calls :func:`fail`: a bench that computes nonsense has no time.
The harness puts this folder on ``PYTHONPATH``.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path
from typing import NoReturn


def fail(message: str) -> NoReturn:
    """End the program at once, from any thread, with status 1 and a message."""
    print(message, file=sys.stderr, flush=True)
    os._exit(1)


def numbers(usage: str) -> list[int]:
    """The arguments of the program, each a whole number of at least 1; as many as `usage` has words."""
    words = usage.split()
    try:
        values = [int(text) for text in sys.argv[1:]]
    except ValueError:
        fail(f"usage: {Path(sys.argv[0]).name} {usage}, all whole numbers")
    if len(values) != len(words) or min(values) < 1:
        fail(f"usage: {Path(sys.argv[0]).name} {usage}, all at least 1")
    return values


def resident() -> int:
    """The resident set of this process, in bytes, after a collection."""
    gc.collect()
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


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
