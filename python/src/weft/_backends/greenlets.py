"""Greenlet processes: the functions of weft.greenlets that other backends do not share."""

from __future__ import annotations

from typing import Any

from weft._backends.shared import process_of
from weft._extension import native as _native

__all__ = ["process"]

# Raises an ImportError that says what to install, if the package greenlet is missing.
_native.need_greenlets()


def process(function: Any) -> Any:
    """Makes a process function of a function: a call of it returns a Process, not started, that
    holds the ends in its arguments.

    A `def` runs as a greenlet on the scheduler of its network, an `async def` as a coroutine
    process there.

    Raises:
        BadUse: `function` is not a function, or is a generator function, or is a process function
            already.
    """
    return process_of(function, "greenlets")
