"""Fixtures for the tests of the old names; networks.py has the implementations of pycsp."""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import Any

import pytest
from networks import implementations, load


@pytest.fixture(autouse=True)
def _nothing_left() -> Generator[None, None, None]:
    """A warning about something never awaited or started belongs to the test that made it."""
    yield
    gc.collect()


@pytest.fixture(params=implementations())
def p(request: pytest.FixtureRequest) -> Generator[Any, None, None]:
    """An implementation of pycsp's names: weft.compat.pycsp's modules."""
    module = load(request.param)
    yield module
    module.shutdown()
