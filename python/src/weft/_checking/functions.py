"""The function that is checked: its name, how it is called, and whether it can be run again and again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from weft._checking import patches as _patches
from weft._extension import native as _native


def run_plainly(function: Callable[[], Any]) -> Any:
    """Calls the function once, unchecked."""
    return called(function)()


def called(function: Callable[[], Any]) -> Callable[[], Any]:
    """Returns the function, wrapped so that a process that it returns is run."""
    import weft
    from weft.coroutines import process

    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if inspect.iscoroutinefunction(inner):
        made = process(inner)
        arguments: Any = function if isinstance(function, functools.partial) else None

        def run_it() -> Any:
            args, named = (
                (arguments.args, arguments.keywords) if arguments is not None else ((), {})
            )
            return weft.coroutines.run(made(*args, **named))

        return run_it

    def call() -> Any:
        value = function()
        if isinstance(value, _native.Process):
            return weft.coroutines.run(value)
        return value

    return call


def channels_outside(function: Callable[..., Any]) -> str:
    """Returns a sentence about a channel that the function uses but that was made outside it; "" if
    there is none.
    """
    for name, value in _patches.outside_names(function):
        if isinstance(value, (_native.Channel, _native.Reader, _native.Writer)):
            return (
                f"{name} is a channel, or an end of one, that was made outside of the function, so its state would go from "
                "one schedule into the next: make it in the function"
            )
    return ""


def name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(
        getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or "function"
    )
