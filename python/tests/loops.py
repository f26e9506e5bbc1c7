"""Event loops for tests: each test that takes `play` runs on asyncio, in asyncio's debug mode, and
on uvloop if it is installed.

uvloop has no wheel for every Python; without uvloop a test that needs a second loop runs on another
loop of asyncio.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from weft.coroutines import process

new_in_3_11 = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="asyncio.timeout and TaskGroup are of Python 3.11"
)

Runner = Callable[[Awaitable[Any]], Any]


UVLOOP = importlib.util.find_spec("uvloop") is not None


def on_uvloop(main: Any) -> Any:
    if UVLOOP:
        import uvloop

        loop = uvloop.new_event_loop()
    else:
        loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def in_debug_mode(main: Any) -> Any:
    return asyncio.run(main, debug=True)


RUNNERS: dict[str, Runner] = {
    "asyncio": asyncio.run,  # type: ignore[dict-item]
    "debug": in_debug_mode,
}
if UVLOOP:
    RUNNERS["uvloop"] = on_uvloop


async def turns(n: int) -> None:
    """Lets the event loop run `n` turns."""
    for _ in range(n):
        await asyncio.sleep(0)


@process
async def send(w: Any, *values: Any) -> None:
    for v in values:
        await w.write(v)


@process
async def receive(r: Any) -> list[Any]:
    return [v async for v in r]


@process
async def wait(r: Any) -> Any:
    return await r.read()
