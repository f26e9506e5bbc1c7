"""Composition for threads and greenlets, whose operations block."""

from __future__ import annotations

from typing import Any

from weft._backends.shared import never_run, stop_at_run
from weft._extension import native as _native

__all__ = ["Parallel", "Sequence", "Spawn"]


def Parallel(*processes: Any) -> list[Any]:
    """Starts the processes in order, waits for all, and returns their results in order (rule 7.1).

    In ordinary code the call is an outermost run, as :func:`run` is.

    Raises:
        The first failure, after the other processes were cancelled; if several failed, an
        ExceptionGroup. Cancelled. Deadlock. BadUse.
    """
    stop_at_run(*processes)
    _native.must_block("Parallel")
    results: list[Any] = _native.parallel(*processes)
    return results


def Sequence(*processes: Any) -> list[Any]:
    """Runs the processes one after another, and returns their results in order (rule 7.3).

    Raises:
        The first failure; Cancelled; Deadlock; BadUse. The processes that the Sequence has not
        reached have then ended without having run, and their ends are retired.
    """
    stop_at_run(*processes)
    _native.must_block("Sequence")
    waiting = _native.in_turn(*processes)
    if not waiting:
        _native.parallel()  # an operation, even if it is empty: other processes run (rule 7.7)
    results: list[Any] = []
    try:
        while waiting:
            results.append(_native.parallel(waiting.pop(0))[0])
    finally:
        never_run(waiting)
        # frees the processes now, since a traceback would keep them alive
        waiting, processes = [], ()
    return results


def Spawn(*processes: Any) -> None:
    """Starts processes that may outlive their group. They belong to the outermost run (rule
    7.4).
    """
    _native.spawn(*processes)
