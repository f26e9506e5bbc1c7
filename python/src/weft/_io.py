"""`@io`, and the threads on which its calls run (rule 7.9).

Invariant: a thread of the pool either runs a call or is idle; one that has been idle for IDLE seconds ends. There are at
most LIMIT; calls beyond that wait their turn, first come, first served.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["IDLE", "LIMIT", "io", "workers"]

LIMIT = 64  #: threads
IDLE = 5.0  #: seconds

_change = threading.Condition()
_waiting: deque[Any] = deque()
_threads = 0
_idle = 0


def workers() -> int:
    """How many threads the pool has at this moment."""
    return _threads


def _submit(call: Any) -> None:
    global _threads
    with _change:
        _waiting.append(call)
        if _idle >= len(_waiting):
            _change.notify()
            return
        if _threads >= LIMIT:
            return
        _threads += 1
    try:
        threading.Thread(target=_work, name="weft io", daemon=True).start()
    except RuntimeError:
        with _change:
            _threads -= 1
            if _threads:
                return  # another will come to it
            _waiting.remove(call)
        raise


def _next() -> Any:
    """The next call; None: this thread has been idle for long enough."""
    global _threads, _idle
    with _change:
        while not _waiting:
            _idle += 1
            woken = _change.wait(IDLE)
            _idle -= 1
            if not woken and not _waiting:
                _threads -= 1
                return None
        return _waiting.popleft()


def _work() -> None:
    _native._worker(True)
    try:
        while (call := _next()) is not None:
            call.run()
            del call  # its result is not ours to keep
    finally:
        _native._worker(False)


def _forget() -> None:
    global _change, _threads, _idle
    _change = threading.Condition()
    _waiting.clear()
    _threads = _idle = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
_native._set_pool(_submit)


def io(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that blocks one that any process may call: meanwhile it alone waits (rule 7.9).

    In a coroutine process the call is awaited, in a greenlet process it is called; both run it on a thread of a pool.
    A thread process and ordinary code simply call it. In an asyncio task the call is awaited, on a thread of asyncio's.

    Raises:
        BadUse: it is no plain function.
        The call raises what the function raises; Cancelled: then the process waits no longer, but the function goes on.
    """
    if isinstance(function, _native.ProcessFunction):
        raise BadUse(
            f"@io on {function!r}: a process is started; @io is for functions that it calls"
        )
    if isinstance(function, type) or not callable(function):
        raise BadUse(f"@io on {function!r}: decorate a function")
    if inspect.iscoroutinefunction(function):
        raise BadUse(f"@io on {function!r}: an `async def` does not block; await it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadUse(f"@io on {function!r}: a generator gives its values one by one; return a list")

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        where = _native.where()
        if where == 1:
            return _native.Call(function, args, keywords)
        if where == 3:
            return _native.Call(function, args, keywords).wait()
        if where == 4:
            import asyncio

            return asyncio.to_thread(function, *args, **keywords)
        return function(*args, **keywords)

    return call
