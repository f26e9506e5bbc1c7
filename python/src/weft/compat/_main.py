"""The main program as a process.

In pycsp the main program spawns, reads and writes as if it were a process. Here it becomes one at its first Spawn:
the block of an outermost group (rule 7.5), which `shutdown` or the end of the program leaves.

    ordinary code ──enter()──► block ──shutdown(), left_by(), end of the program──► ordinary code

Invariant: `_here.group` is the group whose block the calling thread is in, outside any process.
"""

from __future__ import annotations

import atexit
import contextvars
import threading
from typing import Any

from weft.errors import Cancelled

__all__ = ["current", "enter", "leave", "left_by"]

# The pycsp process that runs; None in ordinary code.
current: contextvars.ContextVar[Any] = contextvars.ContextVar("current", default=None)


class _Here(threading.local):
    group: Any = None


_here = _Here()


def enter(backend: Any) -> None:
    """Makes ordinary code the block of a group of `backend`; again: nothing."""
    if _here.group is None:
        group = backend.Group()
        group.__enter__()
        _here.group = group
        if threading.current_thread() is threading.main_thread():
            atexit.register(leave)


def leave(error: BaseException | None = None) -> None:
    """Waits for what was spawned; `error` is what ends the block, if it is no quiet end.

    Raises:
        what failed in a spawned process; Deadlock.
    """
    group, _here.group = _here.group, None
    if group is not None:
        atexit.unregister(leave)
        group.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)


def left_by(error: Cancelled) -> None:
    """A cancellation reached an operation. In the main program it stands for a failure or a deadlock: that is raised."""
    if current.get() is None:
        leave(error)
