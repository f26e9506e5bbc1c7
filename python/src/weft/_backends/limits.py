"""Timeouts as scopes (rule 7.12): `timeout`, `deadline`, `move_on_after`.

One class, Timeout, serves coroutines, tasks, threads and greenlets alike. Its limit asks the block
to end. In a process, a thread or ordinary code the limit is the extension's Limit, in an asyncio
task a TaskLimit, which is a timer of the event loop. Both classes have enter, leave, move and
expired.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["Timeout", "deadline", "move_on_after", "timeout"]

_COROUTINE, _TASK = 1, 4  # two of the values of _native.where()


def _time(name: str, when: float | None) -> float | None:
    if when is None:
        return None
    try:
        if math.isnan(when):
            raise BadUse(f"{name}(nan): nan is not a time")
    except OverflowError:  # `seconds` is an int too large for a float
        return math.inf if when > 0 else -math.inf
    return float(when)


class Timeout:
    """A time limit on the operations of a block. `timeout`, `deadline` and `move_on_after` return
    one. A Timeout can be entered once.

    It is entered by `async with` in a coroutine process and in an asyncio task, and by `with`
    elsewhere.
    """

    __slots__ = ("_again", "_limit", "_name", "_quiet", "_relative", "_when")

    def __init__(
        self, name: str, when: float | None, relative: bool, quiet: bool, again: bool
    ) -> None:
        self._when = _time(name, when)
        self._again = again
        self._name = name
        self._relative = relative
        self._quiet = quiet
        self._limit: Any = None

    @property
    def expired(self) -> bool:
        """Within the block: whether the time has been reached. After the block: whether this
        timeout ended the block.
        """
        return self._limit is not None and bool(self._limit.expired)

    def reschedule(self, seconds: float | None) -> None:
        """Moves the end of the time limit. If the time has been reached but has not ended an
        operation yet, the block goes on.

        Args:
            seconds: from now; ``None``: there is no limit.
        Raises:
            BadUse: the call is outside the block or in another process, or the timeout has already
                ended an operation of the block.
        """
        if self._limit is None:
            raise BadUse(f"reschedule of {self!r}: its block was not entered")
        self._limit.move(_time("reschedule", seconds))

    def __repr__(self) -> str:
        when = str(self._when) if self._when is None else f"{self._when:g}"
        return f"{self._name}({when}{', again=True' if self._again else ''})"

    def _enter(self, limit: Any) -> Timeout:
        if self._limit is not None:
            raise BadUse(f"{self!r} can be entered only once: make another")
        self._limit = limit
        try:
            limit.enter(self._when, self._relative, self._again)
        except BaseException:
            self._let_go()
            self._limit = None
            raise
        return self

    # __enter__() and __exit__() each catch the exceptions of signal handlers. A shared function
    # could not do that: a handler could raise between the end of that function and the end of the
    # method.
    def _let_go(self) -> None:
        """Leaves the limit after a signal handler has raised while the block was entered or
        left.
        """
        with contextlib.suppress(BadUse):
            self._limit.leave(None)

    def _leave(self, error: BaseException | None) -> bool:
        if self._limit is None:
            raise BadUse(f"leaving {self!r}, which was not entered")
        if not self._limit.leave(error):
            return False
        if self._quiet:
            return True
        raise TimeoutError(f"{self!r}: the time was over before the block had ended") from error

    def __enter__(self) -> Timeout:
        if _native.where() in (_COROUTINE, _TASK):
            raise BadUse(
                f"with {self!r}: in a coroutine process or an asyncio task use `async with`"
            )
        try:
            self._enter(_native.Limit())
        except BadUse:
            raise
        except BaseException:
            if self._limit is not None:
                self._let_go()
            raise
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        try:
            mine = self._leave(error)
        except BadUse:
            raise
        except BaseException:
            if self._limit is not None:
                self._let_go()
            raise
        return mine

    async def __aenter__(self) -> Timeout:
        where = _native.where()
        if where == _COROUTINE:
            return self._enter(_native.Limit())
        if where != _TASK:
            raise BadUse(
                f"async with {self!r} is for coroutine processes and asyncio tasks: elsewhere use `with`"
            )
        if self._again:
            raise BadUse(
                f"async with {self!r} in an asyncio task: a task is asked once, as asyncio does it; again=True is for "
                "processes, threads and ordinary code"
            )
        from weft._backends.asyncio import TaskLimit

        return self._enter(TaskLimit())

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        return self._leave(error)


def timeout(seconds: float | None, *, again: bool = False) -> Timeout:
    """Limits how long a block may wait: ``async with timeout(2.0):``, in threads and greenlets
    ``with timeout(2.0):``.

    When the time is reached, the operation of Weft in which the block waits, or its next operation,
    is withdrawn (rule 6), and the block ends with TimeoutError. An operation that had committed
    delivers its value. A computation is not interrupted.

    Args:
        seconds: by the run's clock, counted from the moment when the block is entered; 0 or less
            ends the block at its first operation, None never.
        again: whether each operation of the block is withdrawn from then on, as in trio, also if
            the block catches Cancelled. Otherwise one operation is. Not in an asyncio task.
    Raises:
        TimeoutError: at the block's end, if this timeout ended it.
        BadUse: `seconds` is nan; or the timeout is entered twice, or left out of order or in
            another process.
    """
    return Timeout("timeout", seconds, True, False, again)


def deadline(time: float | None, *, again: bool = False) -> Timeout:
    """Works as `timeout` does, but expires at `time`, in seconds of `now()`."""
    return Timeout("deadline", time, False, False, again)


def move_on_after(seconds: float | None, *, again: bool = False) -> Timeout:
    """Works as `timeout` does, but the block just ends: nothing is raised, and `.expired` says
    whether the time limit ended the block.
    """
    return Timeout("move_on_after", seconds, True, True, again)


for _f in (Timeout, timeout, deadline, move_on_after):
    _f.__module__ = "weft"
del _f
