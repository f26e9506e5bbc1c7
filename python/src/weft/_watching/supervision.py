"""The events of supervisors, for `weft.observe.supervision`: each listener is called with each
event.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from weft.errors import BadUse

__all__ = ["Supervised", "supervision", "tell"]

_lock = threading.RLock()  # a signal handler may begin to listen meanwhile
_listeners: tuple[Callable[[Supervised], object], ...] = ()


class Supervised(NamedTuple):
    """An event in the life of a supervised process.

    The values of `event` are: "began": a life of the process has begun. "died": its OS process has
    died. "stopped": by the supervisor's strategy it was killed because another process died.
    "recycled": it has ended in order to begin anew. "ended": it returned, failed or was cancelled.
    "given up": its supervisor does not start it again.
    """

    event: Literal["began", "died", "stopped", "recycled", "ended", "given up"]
    process: str  #: the path of the process
    supervisor: str  #: the name of its supervisor
    life: int  #: 1 for its first life
    pause: float = 0.0  #: seconds until its next life
    error: BaseException | None = None  #: the ProcessDied, or the exception that ended it
    lost: tuple[tuple[str, Any], ...] = ()  #: the values in hand by plain reads: (channel, value)

    def __str__(self) -> str:
        return f"{self.process}: {self.event} (life {self.life})"


@contextlib.contextmanager
def supervision(tell: Callable[[Supervised], object]) -> Iterator[None]:
    """Within the block, calls `tell` with each event of every supervisor of this program. The
    supervising process calls `tell`, so the next life begins only after the call. An exception of
    `tell` is logged.

    Raises:
        BadUse: `tell` cannot be called.
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


def tell(event: Supervised) -> None:
    for listener in _listeners:
        try:
            listener(event)
        except Exception:
            import logging

            logging.getLogger("weft").exception("a listener to supervision has failed")
