"""What kind of function is it? As `inspect` says it, which is imported for odd ones only: every
program and every new OS process would pay some milliseconds for it.
"""

from __future__ import annotations

import types
from typing import Any

__all__ = ["is_coroutine", "yields"]

# of a code object's co_flags; inspect has them by name
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


def _flags(function: Any) -> int | None:
    """The flags of a plain function's code; None: it is something else, or marked as a coroutine
    function (inspect.markcoroutinefunction).
    """
    if type(function) is not types.FunctionType or hasattr(function, "_is_coroutine_mark"):
        return None
    return function.__code__.co_flags


def is_coroutine(function: Any) -> bool:
    """Is it an `async def`, or as good as one?"""
    flags = _flags(function)
    if flags is not None:
        return bool(flags & _COROUTINE)
    import inspect

    return inspect.iscoroutinefunction(function)


def yields(function: Any) -> bool:
    """Does a call give a generator, also one of an `async def`?"""
    flags = _flags(function)
    if flags is not None:
        return bool(flags & (_GENERATOR | _ASYNC_GENERATOR))
    import inspect

    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
