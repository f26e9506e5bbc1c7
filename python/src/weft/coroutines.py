"""Processes as coroutines on one scheduler: operations are awaited. The same names as weft.threads."""

from __future__ import annotations

from typing import Any

from weft._exports import *  # noqa: F403
from weft._exports import BadUse, names
from weft._extension import native as _native
from weft._shared import give_up
from weft._shared import process as process

__all__ = [*names]


def Parallel(*processes: Any) -> Any:
    """Awaited: starts the processes in order, waits for all, gives their results in order (rule 7.1).

    In an asyncio task they run inside its loop (rule 13): cancelling the task cancels them and waits for them.

    Raises:
        the first failure after the others were cancelled (several: an ExceptionGroup); Cancelled; BadUse.
    """
    where = _native.where()
    if where == 0:
        raise BadUse("Parallel in ordinary code: start the network by weft.coroutines.run(...)")
    if where == 4:
        from weft import _asyncio

        return _asyncio.parallel(*processes)
    return _native.parallel(*processes)


async def Sequence(*processes: Any) -> list[Any]:
    """Awaited: runs the processes one after another, gives their results in order (rule 7.3)."""
    waiting = list(_native.flatten(*processes))
    results: list[Any] = []
    try:
        while waiting:
            results.append((await Parallel(waiting.pop(0)))[0])
    finally:
        give_up(waiting)
        waiting, processes = [], ()  # now, not when the traceback of a failure goes
    return results


def Spawn(*processes: Any) -> None:
    """Starts processes that may outlive their group; they belong to the outermost run (rule 7.4)."""
    _native.spawn(*processes)
