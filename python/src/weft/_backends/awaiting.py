"""Composition where operations are awaited: of coroutines, on Weft's scheduler and in asyncio
tasks.
"""

from __future__ import annotations

from typing import Any

from weft._backends.once import Once
from weft._backends.shared import never_run
from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["Parallel", "Sequence", "Spawn"]


def Parallel(*processes: Any) -> Any:
    """Awaited: starts the processes in order, waits for all, gives their results in order (rule
    7.1).

    In an asyncio task they run inside its loop (rule 13): cancelling the task cancels them and
    waits for them.

    Raises:
        the first failure after the others were cancelled (several: an ExceptionGroup); Cancelled;
        BadUse.
    """
    where = _native.where()
    if where == 0:
        raise BadUse("Parallel in ordinary code: start the network by weft.coroutines.run(...)")
    if where == 4:
        from weft._backends import asyncio as _asyncio

        return Once("Parallel", _asyncio.parallel(*processes))
    return _native.parallel(*processes)


def Sequence(*processes: Any) -> Any:
    """Awaited: runs the processes one after another, gives their results in order (rule 7.3).

    Raises:
        the first failure; Cancelled; BadUse. Those that it did not reach have then ended without
        having run, and their ends are retired.
    """
    return Once("Sequence", _sequence(*processes))


async def _sequence(*processes: Any) -> list[Any]:
    waiting = _native.in_turn(*processes)
    if not waiting:
        await Parallel()  # an operation, which lets the others run in its turn (rule 7.7)
    results: list[Any] = []
    try:
        while waiting:
            results.append((await Parallel(waiting.pop(0)))[0])
    finally:
        never_run(waiting)
        waiting, processes = [], ()  # now, not when the traceback of a failure goes
    return results


_sequence.__name__ = _sequence.__qualname__ = (
    "Sequence"  # what is said of one that was never awaited
)


def Spawn(*processes: Any) -> None:
    """Starts processes that may outlive their group; they belong to the outermost run (rule 7.4)."""
    _native.spawn(*processes)
