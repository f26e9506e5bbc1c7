"""Helpers of the tests of timeouts."""

from __future__ import annotations

from typing import Any

import pytest


class Within:
    """`async with` for a test of all backends."""

    def __init__(self, b: Any, scope: Any) -> None:
        self.b, self.scope = b, scope

    async def __aenter__(self) -> Any:
        return await self.b.enter(self.scope)

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> Any:
        return await self.b.leave(self.scope, error)


def alone(b: Any, body: Any, *args: Any) -> Any:
    """The result of `async def body(b, …)` as the only process, in virtual time."""
    return b.run(b.process(body)(*args), clock="virtual")


async def late(b: Any, within: float, operation: Any) -> float:
    """When an operation was ended by a timeout."""
    with pytest.raises(TimeoutError):
        async with Within(b, b.weft.timeout(within)):
            await b.op(operation())
            pytest.fail("it went on")
    return b.weft.now()
