"""Passes the events of supervisors to `weft.observe.supervision`, which calls each listener with
each event.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from weft.errors import BadUse

__all__ = ["Supervised", "supervision", "tell"]

_lock = threading.RLock()  # the lock is re-entrant: a signal handler can add a listener
_listeners: tuple[Callable[[Supervised], object], ...] = ()
_last: dict[str, Supervised] = {}  # the last event of each process that is supervised now


class Supervised(NamedTuple):
    """An event in the life of a supervised process.

    The values of `event` are: "began": a life of the process has begun. "died": its OS process has
    died. "stopped": the supervisor's strategy has killed it because another process died.
    "recycled": it has ended in order to begin anew. "ended": it returned, failed or was cancelled.
    "given up": its supervisor does not start it again.
    """

    event: Literal["began", "died", "stopped", "recycled", "ended", "given up"]
    process: str  #: the path of the process
    supervisor: str  #: the name of its supervisor
    life: int  #: 1 for its first life
    pause: float = 0.0  #: seconds until its next life
    error: BaseException | None = None  #: the ProcessDied, or the exception that ended it
    #: the values that plain reads had given to the process: (channel, value)
    lost: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.process}: {self.event} (life {self.life})"


@contextlib.contextmanager
def supervision(tell: Callable[[Supervised], object]) -> Iterator[None]:
    """Within the block, calls `tell` with each event of every supervisor of this program. The
    supervising process calls `tell`, so the next life begins only after the call. An exception of
    `tell` is logged.

    Raises:
        BadUse: `tell` is not callable.
    """
    if not callable(tell):
        raise BadUse(f"supervision: give it a function of one event, not {tell!r}")
    global _listeners
    listener = lambda event: tell(event)  # noqa: E731  # the same function may listen twice
    with _lock:
        _listeners = (*_listeners, listener)
    try:
        yield
    finally:
        with _lock:
            _listeners = tuple(one for one in _listeners if one is not listener)


def lives() -> dict[str, tuple[int, str]]:
    """Returns for each process that is supervised now its life, and the last event in it."""
    with _lock:
        return {path: (event.life, event.event) for path, event in _last.items()}


def tell(event: Supervised) -> None:
    with _lock:
        if event.event in ("ended", "given up"):
            _last.pop(event.process, None)
        else:
            _last[event.process] = event._replace(error=None, lost=())
    for listener in _listeners:
        try:
            listener(event)
        except Exception:
            import logging

            logging.getLogger("weft").exception("a listener to supervision has failed")
