"""`process * n` and `Channel() * n` make several equal processes or channels, as in PyCSP."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["ChannelArray", "shape_of"]


class ChannelArray(list[Any]):
    """The list of channels that `Channel(…) * n` makes, with methods for the ends of all of
    them.
    """

    _shape = 0, "block", 0  # capacity, overflow and immunity of the channels

    def readers(self) -> list[Any]:
        """Returns a list with a new reader end of each channel. `+array` does the same."""
        return [c.reader() for c in self]

    def writers(self) -> list[Any]:
        """Returns a list with a new writer end of each channel. `-array` does the same."""
        return [c.writer() for c in self]

    __pos__ = readers
    __neg__ = writers

    def poison(self, strength: int = 1) -> None:
        """Poisons each channel (rule 4). `strength` is from 1 to 255."""
        for c in self:
            c.poison(strength)


def _room(what: str, n: int) -> list[Any]:
    """Returns a list with room for n items. The list is made before the items, so that no item is
    made if there is no memory for the list.

    Raises:
        MemoryError: there is no memory for the list.
        BadUse: n is less than 0.
    """
    if n < 0:
        raise BadUse(f"{what} * {n}: the number must be an int from 0 on")
    return [None] * n


def channels(name: str, n: int, capacity: int, overflow: str, immunity: int) -> ChannelArray:
    """Returns `n` channels named `name[0]`, `name[1]`, …"""
    made = _room(f"Channel {name!r}", n)
    for i in range(n):
        made[i] = _native.Channel(
            f"{name}[{i}]", capacity=capacity, overflow=overflow, immunity=immunity
        )
    array = ChannelArray(made)
    array._shape = capacity, overflow, immunity
    return array


def shape_of(channel: Any) -> tuple[int, str, int]:
    """Returns the capacity, the overflow and the immunity of a channel."""
    return (channel * 0)._shape  # type: ignore[no-any-return]


def clones(process: Any, function: Any, body: Any, n: int) -> list[Any]:
    """Returns `process` and n - 1 more processes of the same function with the same arguments. All
    of them share the ends among these arguments.

    Args:
        body: what the process will run. For a coroutine process this is a coroutine that has not
            begun, whose frame holds the arguments; for a thread process it is (function, arguments,
            keywords).
    Raises:
        BadUse: n is less than 0, or the arguments cannot be determined.
    """
    made = _room(f"process {process.name}", n)
    if isinstance(body, tuple):
        _, arguments, keywords = body
        keywords = keywords or {}
    else:
        import inspect

        arguments, keywords = _arguments(
            process.name, inspect.unwrap(function, stop=_own_code(body)), body
        )
    made[:1] = [process] if n else []
    for i in range(1, n):
        made[i] = function(*arguments, **keywords).named(process.name)
    return made


def _own_code(coroutine: Any) -> Any:
    return lambda f: getattr(f, "__code__", None) is coroutine.cr_code


def _arguments(name: str, function: Any, coroutine: Any) -> tuple[list[Any], dict[str, Any]]:
    """Returns the positional and the keyword arguments with which a coroutine function was called.
    The arguments are read from the coroutine's frame: before the coroutine begins, the variables of
    the frame are the parameters.

    Raises:
        BadUse: `function` is not the plain async function that made the coroutine.
    """
    import inspect

    code: types.CodeType = coroutine.cr_code
    if getattr(function, "__code__", None) != code:
        raise BadUse(
            f"process {name} * n: it is not a plain async function, so its arguments are not known: "
            "write [f(…) for _ in range(n)]"
        )
    bound = code.co_varnames
    frame = coroutine.cr_frame.f_locals
    at, keyword_only = code.co_argcount, code.co_kwonlyargcount
    arguments = [frame[v] for v in bound[:at]]
    keywords = {v: frame[v] for v in bound[at : at + keyword_only]}
    rest: Iterator[str] = iter(bound[at + keyword_only :])
    if code.co_flags & inspect.CO_VARARGS:
        more: Iterable[Any] = frame[next(rest)]
        arguments.extend(more)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords.update(frame[next(rest)])
    return arguments, keywords


_native._set_arrays(clones, channels)
