"""Timeouts as scopes (rule 7.12): `timeout`, `deadline`, `move_on_after`.

One class serves coroutines, tasks, threads and greenlets alike. The request to end comes from a
limit. In a process, a thread or ordinary code that is the runtime's; in a task of asyncio it is a
timer of its loop. Both have enter, leave, move and expired.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["Timeout", "deadline", "move_on_after", "timeout"]

_COROUTINE, _TASK = 1, 4  # what _native.where() says


def _time(name: str, when: float | None) -> float | None:
    if when is None:
        return None
    try:
        if math.isnan(when):
            raise BadUse(f"{name}(nan): nan is no time")
    except OverflowError:  # an int beyond the floats
        return math.inf if when > 0 else -math.inf
    return float(when)


class Timeout:
    """A time limit on the operations of a block: made by `timeout`, `deadline` or `move_on_after`,
    entered once.

    `async with` in a coroutine process and in an asyncio task, `with` elsewhere.
    """

    __slots__ = ("_limit", "_name", "_quiet", "_relative", "_when")

    def __init__(self, name: str, when: float | None, relative: bool, quiet: bool) -> None:
        self._when = _time(name, when)
        self._name = name
        self._relative = relative
        self._quiet = quiet
        self._limit: Any = None

    @property
    def expired(self) -> bool:
        """In the block: has its time come? After the block: was it ended by this timeout?"""
        return self._limit is not None and bool(self._limit.expired)

    def reschedule(self, seconds: float | None) -> None:
        """Sets another time: `seconds` from now; ``None``: never. If the time had come, but no
        operation has met the request yet, that is taken back.

        Raises:
            BadUse: outside the block, in another process, or the block has already met its request.
        """
        if self._limit is None:
            raise BadUse(f"reschedule of {self!r}: its block was not entered")
        self._limit.move(_time("reschedule", seconds))

    def __repr__(self) -> str:
        return (
            f"{self._name}({self._when})" if self._when is None else f"{self._name}({self._when:g})"
        )

    def _enter(self, limit: Any) -> Timeout:
        if self._limit is not None:
            raise BadUse(f"{self!r} is entered once: make another")
        self._limit = limit
        try:
            limit.enter(self._when, self._relative)
        except BaseException:
            self._let_go()
            self._limit = None
            raise
        return self

    # __enter__() and __exit__() each catch what a signal's handler raises: in a function that both
    # call, it could raise once more between that one's end and theirs.
    def _let_go(self) -> None:
        """A signal's handler has raised while the block was entered, or left: it is not open."""
        with contextlib.suppress(BadUse):
            self._limit.leave(None)

    def _leave(self, error: BaseException | None) -> bool:
        if self._limit is None:
            raise BadUse(f"leaving {self!r}, which was not entered")
        if not self._limit.leave(error):
            return False
        if self._quiet:
            return True
        raise TimeoutError(f"{self!r}: the time has come before the end of the block") from error

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
        from weft._backends.asyncio import TaskLimit

        return self._enter(TaskLimit())

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        return self._leave(error)


def timeout(seconds: float | None) -> Timeout:
    """A block that may wait at most so long: ``async with timeout(2.0):``, in threads and greenlets
    ``with timeout(2.0):``.

    When the time has come, the operation of Weft in which the block waits, or its next one, is
    withdrawn (rule 6), and the block ends with TimeoutError. What had committed is delivered. A
    computation is not interrupted.

    Args:
        seconds: by the run's clock, counted from when the block is entered; 0 or less ends the
            block at its first operation, None never.
    Raises:
        TimeoutError: at the block's end, if it was this timeout that ended it. BadUse: nan; entered
            twice; left out of order or in another process.
    """
    return Timeout("timeout", seconds, True, False)


def deadline(time: float | None) -> Timeout:
    """As `timeout`, but it expires at `time`, in seconds of `now()`."""
    return Timeout("deadline", time, False, False)


def move_on_after(seconds: float | None) -> Timeout:
    """As `timeout`, but the block just ends: nothing is raised, and `.expired` says whether it was
    cut short.
    """
    return Timeout("move_on_after", seconds, True, True)


for _f in (Timeout, timeout, deadline, move_on_after):
    _f.__module__ = "weft"
del _f
