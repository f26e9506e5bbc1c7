"""Composition for coroutine processes and asyncio tasks, which await their operations."""

from __future__ import annotations

from typing import Any

from weft._backends.once import Once
from weft._backends.shared import never_run
from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["Parallel", "Sequence", "Spawn"]


def Parallel(*processes: Any) -> Any:
    """Starts the processes in order, waits for all, and returns their results in order (rule 7.1).
    The call is awaited.

    In an asyncio task the processes run inside the task's event loop (rule 13). Cancelling the task
    cancels the processes and waits for them.

    Raises:
        The first failure, after the other processes were cancelled; if several failed, an
        ExceptionGroup. Cancelled. BadUse.
    """
    where = _native.where()
    if where == 0:
        raise BadUse("Parallel in ordinary code: start the network by weft.coroutines.run(...)")
    if where == 4:
        from weft._backends import asyncio as _asyncio

        return Once("Parallel", _asyncio.parallel(*processes))
    return _native.parallel(*processes)


def Sequence(*processes: Any) -> Any:
    """Runs the processes one after another, and returns their results in order (rule 7.3). The call
    is awaited.

    Raises:
        The first failure; Cancelled; BadUse. The processes that the Sequence has not reached have
        then ended without having run, and their ends are retired.
    """
    return Once("Sequence", _sequence(*processes))


async def _sequence(*processes: Any) -> list[Any]:
    waiting = _native.in_turn(*processes)
    if not waiting:
        await Parallel()  # an operation, even if it is empty: other processes run (rule 7.7)
    results: list[Any] = []
    try:
        while waiting:
            results.append((await Parallel(waiting.pop(0)))[0])
    finally:
        never_run(waiting)
        # frees the processes now, since a traceback would keep them alive
        waiting, processes = [], ()
    return results


# Python prints this name if the coroutine is never awaited.
_sequence.__name__ = _sequence.__qualname__ = "Sequence"


def Spawn(*processes: Any) -> None:
    """Starts processes that may outlive their group. They belong to the outermost run (rule
    7.4).
    """
    _native.spawn(*processes)
