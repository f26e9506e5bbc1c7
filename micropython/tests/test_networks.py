"""Plays some random networks on every tier against conformance/model.py, by networks.py; tests/soak
plays thousands."""

from __future__ import annotations

import itertools

import pytest

from conformance.driver import conform

from . import networks, tiers

PER_TIER = 80  # the number of networks; each tier has seeds of its own
BUNDLE = 40
CASES = [
    (tier, k * PER_TIER + n)
    for k, tier in enumerate(tiers.TIERS)
    for n in range(0, PER_TIER, BUNDLE)
]


@pytest.mark.parametrize(
    ("tier", "first"),
    [
        # The conformance room plays networks on the pure code on CPython too.
        pytest.param(t, n, id=f"{t}-{n}", marks=pytest.mark.soak if t in tiers.PYTHONS else ())
        for t, n in CASES
    ],
)
def test_random_networks_conform(tier: str, first: int) -> None:
    driver = networks.MicroPythonDriver(tier)
    messages: list[str] = []
    try:
        passed, failed, _ = conform(driver, range(first, first + BUNDLE), say=messages.append)
    finally:
        driver.close()
    assert (passed, failed) == (BUNDLE, 0), "\n".join(messages)


def test_each_tier_has_seeds_of_its_own() -> None:
    firsts = [first for _, first in CASES]
    assert len(set(firsts)) == len(firsts)
    assert all(b - a == BUNDLE for a, b in itertools.pairwise(firsts))
