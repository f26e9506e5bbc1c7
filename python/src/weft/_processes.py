"""OS processes: what weft.processes makes itself."""

from __future__ import annotations

import functools
from typing import Any

from weft import _host
from weft._shared import process_of

__all__ = ["process"]


def process(function: Any) -> Any:
    """Make a function a process: called, it returns a Process that holds the ends in its arguments, not started.

    It runs in an interpreter of its own, in a process of the operating system; an `async def` as a coroutine process
    there. The ends among its arguments go with it, the other arguments, its result and what it raises by pickle.

    Raises:
        BadUse: it is no function, a generator, or a process already.
    """
    process_of(function, "threads")  # whatever is no function for a process is refused

    @functools.wraps(function)
    def away(*args: Any, **keywords: Any) -> Any:
        return _host.run_away(function, args, keywords)

    away._weft_body = function  # type: ignore[attr-defined]  # what the other OS process looks for by its name
    return process_of(away, "threads")
