"""Processes as greenlets on one scheduler: operations block the greenlet alone. The same names as weft.threads.

Needs the package greenlet: pip install greenlet.
"""

from __future__ import annotations

from typing import Any

from weft._blocking import Parallel as Parallel
from weft._blocking import Sequence as Sequence
from weft._blocking import Spawn as Spawn
from weft._exports import *  # noqa: F403
from weft._exports import names
from weft._extension import native as _native
from weft._shared import process_of

_native.need_greenlets()

__all__ = [*names]


def process(function: Any) -> Any:
    """Make a function a process: called, it returns a Process that holds the ends in its arguments, not started.

    A `def` runs as a greenlet on the scheduler of its network, an `async def` as a coroutine process there.

    Raises:
        BadUse: it is no function, a generator, or a process already.
    """
    return process_of(function, "greenlets")
