"""Helpers for tests of timeouts."""

from __future__ import annotations

from typing import Any

import pytest


class Within:
    """An `async with` for a test that runs on all backends."""

    def __init__(self, b: Any, scope: Any) -> None:
        self.b, self.scope = b, scope

    async def __aenter__(self) -> Any:
        return await self.b.enter(self.scope)

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> Any:
        return await self.b.leave(self.scope, error)


def alone(b: Any, body: Any, *args: Any) -> Any:
    """Runs `async def body(b, …)` as the only process, in virtual time, and returns its result."""
    return b.run(b.process(body)(*args), clock="virtual")


async def late(b: Any, within: float, operation: Any) -> float:
    """Returns the time at which a timeout ended an operation."""
    with pytest.raises(TimeoutError):
        async with Within(b, b.weft.timeout(within)):
            await b.op(operation())
            pytest.fail("it went on")
    return b.weft.now()
