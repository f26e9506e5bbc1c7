"""Finds out whether a function is a coroutine function or a generator function. The answers are
those of `inspect`, but `inspect` is imported only for unusual functions: importing `inspect` would
cost every program and every new OS process some milliseconds.
"""

from __future__ import annotations

import types
from typing import Any

__all__ = ["is_coroutine", "yields"]

# Bits of a code object's co_flags, which have names in inspect.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


def _flags(function: Any) -> int | None:
    """Returns co_flags of a plain function's code. Returns None for any other object, and for a
    function that inspect.markcoroutinefunction has marked.
    """
    if type(function) is not types.FunctionType or hasattr(function, "_is_coroutine_mark"):
        return None
    return function.__code__.co_flags


def is_coroutine(function: Any) -> bool:
    """Returns whether a call of the function returns a coroutine."""
    flags = _flags(function)
    if flags is not None:
        return bool(flags & _COROUTINE)
    import inspect

    return inspect.iscoroutinefunction(function)


def yields(function: Any) -> bool:
    """Returns whether a call of the function returns a generator or an async generator."""
    flags = _flags(function)
    if flags is not None:
        return bool(flags & (_GENERATOR | _ASYNC_GENERATOR))
    import inspect

    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
