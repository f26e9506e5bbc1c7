"""Helpers for tests of networks that are guests of asyncio."""

from __future__ import annotations

from weft.coroutines import (
    process,
    yield_,
)


@process
async def fails(error: Exception) -> None:
    await yield_()
    raise error
