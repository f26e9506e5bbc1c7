"""Tests that a million communications allocate the number of bytes given in README.md, measured by
gc.mem_alloc() with collection off, on 64-bit ports.
"""

from __future__ import annotations

import pytest

from . import tiers

MILLION = 1_000_000
SCRIPT = tiers.KIT / "allocates.py"

# The bytes of each communication. A write that finds its reader waiting allocates nothing; a write
# that waits allocates 32 bytes. With two processes that run in turn half of the writes wait, so the
# mean is 16 bytes.
CASES = [
    ("pure", "yields", 0),
    ("pure", "awaited writes", 24),
    ("pure", "awaited reads", 96),
    ("pure", "awaits", 112),
    ("natmod", "yields", 0),
    ("natmod", "awaits", 0),
    ("native", "yields", 0),
    ("native", "awaits", 0),
]


@pytest.mark.parametrize(("tier", "kind", "most"), CASES, ids=[f"{t}-{k}" for t, k, _ in CASES])
def test_a_million_communications_allocate(tier: str, kind: str, most: int) -> None:
    heap = "256m" if most else "4m"
    spent = float(tiers.run(tier, SCRIPT, kind, str(MILLION), heap=heap))
    assert spent <= most, f"{spent} bytes a communication"
    if most >= 96:
        assert spent >= 64, "the measure measures nothing"
