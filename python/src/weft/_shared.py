"""What both backends export alike: the native types, and errors for whoever has no extension module."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

try:
    from weft import _native
except ImportError as error:  # pragma: no cover - tested in a subprocess
    raise ImportError(
        "weft's extension module (weft._native) is missing or was built for another Python: "
        f"{error}.\nIt is built when weft is installed: install a C++20 compiler and the headers of Python "
        "(on Debian: apt install g++ python3-dev), then reinstall: pip install --force-reinstall weft"
    ) from error

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native._after_fork_in_child)

F = TypeVar("F", bound=Callable[..., Any])


class ChannelStats(NamedTuple):
    """Figures of one channel at one moment."""

    transfers: int  #: values passed so far
    dropped: int  #: values dropped by its buffer, by poison or by retirement
    readers: int  #: reader ends that are open
    writers: int  #: writer ends that are open
    waiting_readers: int  #: reads (and selects) that wait
    waiting_writers: int  #: writes (and selects) that wait


def stats(channel: Any) -> ChannelStats:
    """The figures of `channel` at this moment."""
    return channel.stats()


_native._set_stats(ChannelStats)


def make_process(function: Any) -> Any:
    """`function` as a process: called, it makes a :class:`Process` that has not been started."""
    if isinstance(function, _native.ProcessFunction):
        raise _bad_use(f"@process twice on {function!r}")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise _bad_use(
            f"@process on {function.__qualname__}, which is a generator: a process does not yield; give it a writer end"
        )
    if not callable(function):
        raise _bad_use(f"@process on {function!r}, which is no function")
    name = getattr(function, "__name__", type(function).__name__)
    made = _native.ProcessFunction(function, name, inspect.iscoroutinefunction(function))
    functools.update_wrapper(made, function)
    return made


def _bad_use(message: str) -> Exception:
    from weft.errors import BadUse

    return BadUse(message)


def check_clock(clock: str) -> bool:
    """True for the virtual clock."""
    if clock not in ("steady", "virtual"):
        raise _bad_use(f"run: clock must be 'steady' or 'virtual', not {clock!r}")
    return clock == "virtual"


def poison(*ends: Any, strength: int = 1) -> None:
    """Poison every end or channel given (rule 4)."""
    for end in ends:
        end.poison(strength)


def retire(*ends: Any) -> None:
    """Retire every end given (rule 3)."""
    for end in ends:
        end.retire()
