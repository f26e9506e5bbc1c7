"""Compares the searches of `weft::check` in C++ with one another and with the model, on random
networks, as checking.py does for Python.

    python -m conformance.checking_cpp PROGRAM SEEDS [--size N] [--most N] [--for SECONDS]

PROGRAM is cpp/tests/twin/checked.cpp, compiled with WEFT_CHECKED=1. A network with more schedules
than the N of --most has no set of all outcomes, and is counted separately.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from . import networks
from .checking import GROUPS, Compared, Searched, compare_all, modelled, outcome_of
from .driver import to_lines

#: The searches beside `all` and `reduced`, and how many schedules each of them runs.
WAYS: tuple[tuple[str, int], ...] = (("walk", 60), ("priorities", 30), ("few", 100))


class CheckedTwin:
    """The program that runs networks under a check in C++."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> CheckedTwin:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def searched(self, net: dict[str, Any], way: str, times: str, most: int) -> Searched:
        """Returns all outcomes that a search finds.

        Raises:
            RuntimeError: the program has ended.
        """
        to, answers = self._process.stdin, self._process.stdout
        assert to and answers
        to.write(f"search {way} {times} {most}\n{to_lines(net)}.\n")
        to.flush()
        found = Searched(set(), 0, False, set())
        history: list[dict[str, Any]] = []
        for line in answers:
            if line.startswith("done "):
                _, runs, how = line.split()
                found.runs, found.complete = int(runs), how == "complete"
                if how == "different":
                    found.kinds.add("not the same")
                return found
            if line == "outcome\n":
                found.outcomes.add(outcome_of(history))
                history = []
            else:
                history.append(json.loads(line))
        raise RuntimeError(f"{self._process.args} ended: status {self._process.wait()}")


def compare(
    twin: CheckedTwin, seed: int, features: frozenset[str], *, size: int, times: str, most: int
) -> Compared:
    """Compares the searches of one random network with one another and, if times pass only when no
    process can run, with the model."""
    net = networks.generate(seed, size, features)
    result = Compared(seed)
    every = twin.searched(net, "all", times, most)
    if every.complete or every.kinds:
        result.all = every
        result.reduced = twin.searched(net, "reduced", times, 2 * most)
    result.ways = [(way, twin.searched(net, way, times, runs)) for way, runs in WAYS]
    if times == "quiet":
        try:
            result.model = modelled(net, 300_000 if result.all else 30_000)
        except RuntimeError:
            result.model = None
    return result


def main() -> int:
    p = argparse.ArgumentParser(description="The searches of weft::check, and the model.")
    p.add_argument("program", help="cpp/tests/twin/checked.cpp, compiled")
    p.add_argument("seeds", help="such as 0-2000")
    p.add_argument("--size", type=int, default=3)
    p.add_argument("--most", type=int, default=20_000)
    p.add_argument("--for", type=float, dest="ends", help="end after this many seconds")
    a = p.parse_args()
    with CheckedTwin(a.program) as twin:
        return compare_all(
            a.seeds,
            a.ends,
            lambda seed: GROUPS[seed % len(GROUPS)],
            lambda seed, group: compare(
                twin, seed, group[1], size=a.size, times=group[0], most=a.most
            ),
            ways=True,
        )


if __name__ == "__main__":
    sys.exit(main())
