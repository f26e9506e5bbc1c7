"""Ctrl-C and SIGTERM from outside, at moments that nobody chose (rules 6, 6.7, 7.6): a few rounds of each storm of interrupts.py."""

from __future__ import annotations

import random
import signal

import pytest
from interrupts import KINDS, at_the_end, storm

CTRL_C, TERM = signal.SIGINT, signal.SIGTERM


@pytest.mark.parametrize("signals", [(CTRL_C,), (CTRL_C, CTRL_C), (TERM,)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_storm(kind: str, signals: tuple[signal.Signals, ...]) -> None:
    """Rule 6.7: each signal comes out of the network as what its handler raises, and leaves nobody at a channel."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    assert storm(kind, 6, seed, signals) == []


def test_while_the_interpreter_shuts_down() -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    assert at_the_end(3, seed) == []
