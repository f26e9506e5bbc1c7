"""A slice of the million cancellations racing with commits (rules 6.2–6.4): nothing is lost or doubled.

`CANCELLATIONS=1000000 pytest conformance/tests/test_scenarios_races.py` runs them all (tests/soak does).
"""

from __future__ import annotations

import itertools
import os

import pytest

from conformance.scenarios import BACKENDS, load

RACES = {backend: load("races", backend) for backend in BACKENDS}
TOTAL = int(os.environ.get("CANCELLATIONS", "8000"))
SEED = int(os.environ.get("SEED", "20261121"))
VALUES = 500  # of each of four writers, a race
LEAST = 50  # cancellations that a race must really have


@pytest.mark.parametrize("capacity", [0, 2])
@pytest.mark.parametrize("backend", BACKENDS)
def test_cancellations_race_with_commits(backend: str, capacity: int) -> None:
    wanted = TOTAL // (2 * len(BACKENDS))
    happened = 0
    for seed in itertools.count(SEED):
        print(f"seed {seed}, capacity {capacity}, {backend}")
        seen, cancelled = RACES[backend].race(seed, capacity, VALUES, wanted - happened)
        everything = sorted(itertools.chain(*seen))
        assert everything == [(w, v) for w in range(4) for v in range(VALUES)], "lost or doubled"
        happened += cancelled
        if happened >= wanted:
            return
        assert cancelled >= LEAST, "hardly a race: the cancellations come too late"
