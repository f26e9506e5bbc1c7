"""Composition where operations block: of threads and of greenlets."""

from __future__ import annotations

from typing import Any

from weft._backends.shared import never_run, stop_at_run
from weft._extension import native as _native

__all__ = ["Parallel", "Sequence", "Spawn"]


def Parallel(*processes: Any) -> list[Any]:
    """Starts the processes in order, waits for all, gives their results in order (rule 7.1).

    In ordinary code it is an outermost run, as :func:`run`.

    Raises:
        the first failure after the others were cancelled (several: an ExceptionGroup); Cancelled;
        Deadlock; BadUse.
    """
    stop_at_run(*processes)
    _native.must_block("Parallel")
    results: list[Any] = _native.parallel(*processes)
    return results


def Sequence(*processes: Any) -> list[Any]:
    """Runs the processes one after another, gives their results in order (rule 7.3).

    Raises:
        the first failure; Cancelled; Deadlock; BadUse. Those that it did not reach have then ended
        without having run, and their ends are retired.
    """
    stop_at_run(*processes)
    _native.must_block("Sequence")
    waiting = _native.in_turn(*processes)
    if not waiting:
        _native.parallel()  # an operation, which lets the others run in its turn (rule 7.7)
    results: list[Any] = []
    try:
        while waiting:
            results.append(_native.parallel(waiting.pop(0))[0])
    finally:
        never_run(waiting)
        waiting, processes = [], ()  # now, not when the traceback of a failure goes
    return results


def Spawn(*processes: Any) -> None:
    """Starts processes that may outlive their group; they belong to the outermost run (rule 7.4)."""
    _native.spawn(*processes)
