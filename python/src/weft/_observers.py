"""The observers of a run. The extension module calls one function here, which calls all of them.

Invariants
- Without observers the extension module has no function to call, and operations cost nothing more.
- Observers are called in the order in which they were added, with (what, process, operation,
  target, detail); python/native/observe.hpp says what these are. `process` is None for a thread
  that is not a process.
- A child of a fork observes nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from weft._extension import native as _native

_HERE = __file__.rpartition(os.sep)[0]

Observer = Callable[[str, Any, "str | None", Any, Any], None]

_observers: list[Observer] = []
_in_child: list[Callable[[], None]] = []


def _call(what: str, process: Any, operation: str | None, target: Any, detail: Any) -> None:
    for observer in tuple(_observers):
        observer(what, process, operation, target, detail)


def _install() -> None:
    if not _observers:
        _native._set_observer(None)
    elif len(_observers) == 1:
        _native._set_observer(_observers[0])
    else:
        _native._set_observer(_call)


def add(observer: Observer) -> None:
    """Calls `observer` from now on."""
    _observers.append(observer)
    _install()


def remove(observer: Observer) -> None:
    """Does not call `observer` any more. No effect if it was not added."""
    if observer in _observers:
        _observers.remove(observer)
        _install()


def in_child_of_fork(forget: Callable[[], None]) -> None:
    """`forget` is called in the child of a fork."""
    _in_child.append(forget)


def _after_fork() -> None:
    _observers.clear()
    _install()
    for forget in _in_child:
        forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def key_of(process: Any) -> int:
    """A number for each process, and one (below 0) for each thread that is not a process."""
    return process.id if process is not None else -threading.get_ident()


def channel_of(end: Any) -> Any:
    """The channel of a reader or writer; None for anything else."""
    return getattr(end, "channel", None)


def is_reader(end: Any) -> bool:
    return type(end) is _native.Reader


def is_ours(frame: FrameType) -> bool:
    """Does it run code of this package itself? (Not of the plug-and-play processes and their like.)"""
    return frame.f_code.co_filename.rpartition(os.sep)[0] == _HERE
