"""Greenlet processes: what weft.greenlets adds to the other backends."""

from __future__ import annotations

from typing import Any

from weft._backends.shared import process_of
from weft._extension import native as _native

__all__ = ["process"]

_native.need_greenlets()  # an ImportError that says what to install, if the package greenlet is missing


def process(function: Any) -> Any:
    """Makes a function a process: when called, it returns a Process, not started, that holds the
    ends in its arguments.

    A `def` runs as a greenlet on the scheduler of its network, an `async def` as a coroutine
    process there.

    Raises:
        BadUse: it is not a function, or it is a generator, or a process already.
    """
    return process_of(function, "greenlets")
