"""Watches single calls of an Executor: how often a call is run again, and how long it may take
(rule 9.5). Such a call is sent alone, so that the death of its OS process concerns only this call.

    Clock.begin(seconds) ─► Limit ──in time: Limit.end()──► True
                              └──too late──► kills the OS process; Limit.end() ──► False
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from weft import _helper_threads

__all__ = ["Clock", "Limit", "Watch", "checked"]


class Watch:
    """The conditions that were set for one call.

    Attributes:
        number: the place of the call among those of its map(), from 0.
        seconds: how many seconds the call may take; None: any number.
        retries: how often the call may still be run again. None: the death of its OS process breaks
            the pool, as it does for a call without a Watch.
        retry_on: the classes of exceptions after which the call is run again.
    """

    __slots__ = ("number", "retries", "retry_on", "seconds")

    def __init__(
        self,
        number: int,
        seconds: float | None,
        retries: int | None,
        retry_on: tuple[type[BaseException], ...],
    ) -> None:
        self.number, self.seconds = number, seconds
        self.retries, self.retry_on = retries, retry_on

    def once_more(self) -> bool:
        """Returns whether the call may be run again. If it may, counts one retry."""
        if not self.retries:
            return False
        self.retries -= 1
        return True

    def after(self, error: BaseException | None) -> bool:
        """Returns whether the call is run again after it has raised this exception. If it is,
        counts one retry.
        """
        return error is not None and isinstance(error, self.retry_on) and self.once_more()


def checked(
    retries: int | None, retry_on: Any, seconds: float | None
) -> Callable[[int], Watch | None]:
    """Checks the arguments of a map(). Returns a function that returns the Watch of the call with a
    given number; None if the calls have neither retries nor a time limit.

    Raises:
        ValueError, TypeError: an argument makes no sense.
    """
    kinds = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"map: retry_on must be classes of exceptions, not {retry_on!r}")
    if retries is not None and (not isinstance(retries, int) or retries < 0):
        raise ValueError(f"map: retries must be a number of times, 0 or more, not {retries!r}")
    if kinds and not retries:
        raise ValueError("map: retry_on needs retries=, the number of times")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"map: time_limit must be more than 0 seconds, not {seconds!r}")
    if retries is None and seconds is None:
        return lambda number: None
    return lambda number: Watch(number, seconds, retries, kinds)


class Limit:
    """The time limit of one call. end() and the clock's thread each try to be first, which decides
    whether the call was in time.
    """

    __slots__ = ("_first", "_kill", "_orders", "late", "until")

    def __init__(self, until: float, kill: Callable[[], None], orders: Any) -> None:
        self.until, self._kill, self._orders = until, kill, orders
        self._first = [None]
        self.late = False

    def _is_first(self) -> bool:
        try:
            self._first.pop()
        except IndexError:
            return False
        return True

    def over(self) -> None:
        """Called by the clock's thread when the time has elapsed. Kills the OS process if the call
        has not ended.
        """
        if self._is_first():
            self.late = True
            self._kill()

    def end(self) -> bool:
        """Called when the call has ended. Returns whether the call ended in time."""
        if in_time := self._is_first():
            self._orders.put(None)
        return in_time


class Clock:
    """Watches the time of a feeder's calls, one call at a time, on a thread that is started for the
    first call.
    """

    def __init__(self) -> None:
        # A Limit marks the beginning of a call, and None the end of this call. A None while no call
        # is under way ends the thread.
        self._orders: queue.SimpleQueue[Limit | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def begin(self, seconds: float, kill: Callable[[], None]) -> Limit:
        """Returns a Limit. Calls kill() after `seconds` seconds, unless the Limit is ended
        first."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="weft: limits a call")
            self._thread.start()
        limit = Limit(time.monotonic() + seconds, kill, self._orders)
        self._orders.put(limit)
        return limit

    def end(self) -> None:
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join()

    def _watch(self) -> None:
        _helper_threads.add_until_end()
        while (limit := self._orders.get()) is not None:
            try:
                left = limit.until - time.monotonic()
                # A limit can be infinite, but Python accepts no longer wait than TIMEOUT_MAX.
                self._orders.get(timeout=min(max(0.0, left), threading.TIMEOUT_MAX))
            except queue.Empty:
                limit.over()
                if not limit.late:  # end() was first, and has put None into the queue, or soon will
                    self._orders.get()
