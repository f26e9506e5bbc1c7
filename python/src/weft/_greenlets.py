"""Greenlet processes: what weft.greenlets makes itself."""

from __future__ import annotations

from typing import Any

from weft._extension import native as _native
from weft._shared import process_of

__all__ = ["process"]

_native.need_greenlets()  # an ImportError that says what to install, if the package greenlet is missing


def process(function: Any) -> Any:
    """Make a function a process: called, it returns a Process that holds the ends in its arguments,
    not started.

    A `def` runs as a greenlet on the scheduler of its network, an `async def` as a coroutine
    process there.

    Raises:
        BadUse: it is no function, a generator, or a process already.
    """
    return process_of(function, "greenlets")
