"""Reports at once a network that fails in an asyncio task that no code awaits (rule 13.8). asyncio
reports such a failure only when the task is collected, which may never happen.

Invariant: a failure is reported only after it has left its task, since code of the task may handle
it.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from weft.errors import ChannelEnd

__all__ = ["network_failed"]

# `task.add_done_callback(tasks.discard)` only keeps a task alive, and does not await it
_CONTAINERS = (set, list, dict)


def _awaited(task: Any) -> bool:
    """Returns whether any code awaits the task; in doubt, True."""
    try:
        callbacks = [callback for callback, _ in task._callbacks or ()]
    except (AttributeError, TypeError, ValueError):
        return True
    return any(
        c is not _done and not isinstance(getattr(c, "__self__", None), _CONTAINERS)
        for c in callbacks
    )


def network_failed(error: Exception) -> None:
    """Records that this failure of a network is raised in the current task, which has waited for
    that network.
    """
    task = asyncio.current_task()
    if isinstance(error, ChannelEnd) or not isinstance(task, asyncio.Task) or _awaited(task):
        return
    if task not in _last:
        task.add_done_callback(_done)
    _last[task] = id(error)


# Task → the id() of the last failure that was raised in it. A reference to the failure would keep
# frames alive.
_last: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _done(task: Any) -> None:
    error = None if task.cancelled() else task.exception()
    if error is None or id(error) != _last[task]:
        return
    task.get_loop().call_exception_handler(
        {
            "message": f"a network has failed, and nobody awaits its task {task.get_name()!r}: "
            "await the task, or handle what the network raises within it",
            "exception": error,
            "task": task,
        }
    )
