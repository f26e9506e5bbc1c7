"""Closes the async generators that the coroutines of a run began, and that are never iterated to
their ends (rule 7.15). The extension calls these functions.
"""

from __future__ import annotations

from types import AsyncGeneratorType
from typing import Any
from weakref import WeakSet

from weft import _native

__all__ = ["close_at_once", "closing", "take"]

_Generator = AsyncGeneratorType[Any, Any]
_COROUTINE = 0  # the number of the coroutine backend in a ProcessFunction


async def _close(generator: _Generator, _held: list[Any]) -> None:
    await generator.aclose()


def _name(generator: _Generator) -> str:
    return str(getattr(generator, "__name__", "?"))


def closing(generator: _Generator, ends: list[Any]) -> Any:
    """Returns a process, not started, that closes the generator and holds the ends.

    Raises:
        RuntimeError: the program asked for the generator's next value, and dropped the request
            before it was awaited to its end.
    """
    if generator.ag_running:
        raise RuntimeError(
            f"async generator {_name(generator)} was collected while its next value was being "
            "asked for, so it cannot be closed: await what asend() or __anext__() gave"
        )
    function: Any = _native.ProcessFunction(_close, f"asyncgen {_name(generator)}", _COROUTINE)
    return function(generator, ends)


def close_at_once(generator: _Generator) -> None:
    """Closes the generator after its run has ended.

    Raises:
        RuntimeError: the generator's clean-up awaits something.
    """
    step = generator.aclose().__await__()
    try:
        next(step)
    except StopIteration:
        return
    raise RuntimeError(
        f"async generator {_name(generator)} was collected after its run had ended, and its "
        "clean-up awaits: close it within the run, by `async with contextlib.aclosing(...)`"
    )


def take(generators: WeakSet[_Generator]) -> list[_Generator]:
    """Empties the set, and returns the generators in it that are still open."""
    still = [g for g in list(generators) if g.ag_frame is not None and not g.ag_running]
    generators.clear()
    return still
