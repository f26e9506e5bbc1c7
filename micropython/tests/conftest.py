"""Leaves the tests on the tiers `tiers.SOAKED` to the soak."""

from __future__ import annotations

import pytest

from . import tiers


@pytest.hookimpl(tryfirst=True)  # must run before tools/pytest_room.py, which reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tiers.leave_to_the_soak(items)
