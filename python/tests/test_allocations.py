"""Tests that a network that runs allocates nothing for its operations except the values."""

from __future__ import annotations

import gc
import itertools

import pytest

from weft import coroutines as co
from weft._native import _allocations

NUMBER = 1000


@pytest.mark.parametrize("capacity", [0, 4])
def test_a_communication_between_coroutines_allocates_nothing(capacity):
    counted = []

    @co.process
    async def sends(w):
        for _ in itertools.repeat(None, 2 * NUMBER):
            await w.write(None)

    @co.process
    async def receives(r):
        for _ in itertools.repeat(None, NUMBER):
            await r.read()
        turns = itertools.repeat(None, NUMBER)
        _allocations(True)
        try:
            for _ in turns:
                await r.read()
        finally:
            counted.append(_allocations(False))

    c = co.Channel("c", capacity=capacity)
    gc.disable()
    try:
        co.run(sends(c.writer()), receives(c.reader()))
    finally:
        gc.enable()
    assert counted == [0]


def test_the_count_counts():
    gc.disable()
    _allocations(True)
    kept = [object() for _ in itertools.repeat(None, NUMBER)]
    counted = _allocations(False)
    gc.enable()
    assert counted >= len(kept)
