"""A part of the million cancellations that race with commits (rules 6.2–6.4): nothing is lost or
doubled.

`CANCELLATIONS=1000000 pytest conformance/tests/test_scenarios_races.py` runs all of them, as
tests/soak does.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator

import pytest

from conformance.scenarios import BACKENDS, load

RACES = {backend: load("races", backend) for backend in BACKENDS}
TOTAL = int(os.environ.get("CANCELLATIONS", "3000"))
SEED = int(os.environ.get("SEED", "20261121"))
RACE = 2000  # cancellations in one race


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Makes the interpreter switch threads as often as possible, so that cancellations occur
    everywhere."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("capacity", [0, 2])
@pytest.mark.parametrize("backend", BACKENDS)
def test_cancellations_race_with_commits(backend: str, capacity: int) -> None:
    missing = TOTAL // (2 * len(BACKENDS))
    for seed in itertools.count(SEED):
        print(f"seed {seed}, capacity {capacity}, {backend}")
        written, seen, cancelled = RACES[backend].race(seed, capacity, min(RACE, missing))
        everything = sorted(itertools.chain(*seen))
        assert everything == [(w, v) for w in range(4) for v in range(written[w])], (
            "lost or doubled"
        )
        assert cancelled >= min(RACE, missing)
        missing -= cancelled
        if missing <= 0:
            return
