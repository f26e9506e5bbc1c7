"""Producer/consumer × {one, many} × {one, many} × {plain, choosing} at both ends × {no delay,
staggered}, on every backend.

Rules 1.1, 3.1, 5.1, 5.3: every value arrives exactly once, and each consumer reads the values of
one producer in their order.
"""

from __future__ import annotations

import itertools

import pytest

from conformance.scenarios import BACKENDS, load

GRID = {backend: load("grid", backend) for backend in BACKENDS}
VALUES = 40
MANY = 3
STAGGERED = (0.0, 2.0, 1.0, 0.0, 3.0, 1.0, 5.0)  # seconds of virtual time
KINDS = {False: "plain", True: "choosing"}
CASES = list(
    itertools.product(
        BACKENDS, (1, MANY), (1, MANY), (False, True), (False, True), (None, STAGGERED)
    )
)


def name(case: tuple[str, int, int, bool, bool, tuple[float, ...] | None]) -> str:
    backend, producers, consumers, out, into, delays = case
    return f"{backend}-{producers}{KINDS[out]}-{consumers}{KINDS[into]}-{'staggered' if delays else 'no_delay'}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_producers_and_consumers(
    case: tuple[str, int, int, bool, bool, tuple[float, ...] | None],
) -> None:
    backend, producers, consumers, out, into, delays = case
    seen = GRID[backend].network(producers, consumers, out, into, VALUES, delays)
    everything = sorted(itertools.chain(*seen))
    assert everything == [(p, v) for p in range(producers) for v in range(VALUES)], (
        "lost or doubled"
    )
    for consumer in seen:
        for producer in range(producers):
            values = [v for p, v in consumer if p == producer]
            assert values == sorted(values), "a producer's values overtook each other"
