"""Fixtures for the tests of the old names; the implementations of pycsp are in networks.py."""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import Any

import pytest
from networks import implementations, load


@pytest.fixture(autouse=True)
def _nothing_left() -> Generator[None, None, None]:
    """Collects garbage after each test, so that a warning about an object that was never awaited or
    started belongs to the test that made it.
    """
    yield
    gc.collect()


@pytest.fixture(params=implementations())
def p(request: pytest.FixtureRequest) -> Generator[Any, None, None]:
    """Yields an implementation of pycsp's names: one of weft.compat.pycsp's modules."""
    module = load(request.param)
    yield module
    module.shutdown()
