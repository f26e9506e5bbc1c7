"""`for job in jobs` in a process that is supervised (rule 7.17). This module runs in the OS process
of that process: native/channels/extended.cpp calls over().

    __next__(): the block of the value before ends ──it is time to be recycled──► Recycled is raised
                    └──► an extended read begins; a plain read, if nothing is to be redelivered

Invariant: between two values the loop holds no value, so Recycled loses none.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from weft._extension import native as _native
from weft._hosts.attempt import Terms
from weft.errors import Cancelled, Retired

__all__ = ["Recycled", "began", "die_if_of_memory", "follow", "over"]

REDELIVERS = 2  # a bit of Terms.loops: the loops redeliver
LIMITED = 4  # another bit: a MemoryError ends this OS process

OF_MEMORY = 12  # the exit status of a process that has exceeded its memory_limit: ENOMEM

_terms = Terms()  # the terms of this OS process's only call; a host that stays warm has none
_process: int | None = None  # the number of the process that runs that call
_since = 0.0
_values = 0


class Recycled(Cancelled):
    """Raised to end this process, so that its supervisor starts it again, because the process has
    reached max_values, max_age or max_memory.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return Recycled, ()


def follow(terms: Terms) -> None:
    """Records that this OS process runs one call, on these terms."""
    global _terms, _since
    _terms, _since = terms, time.monotonic()


def began(number: int) -> None:
    """Records the number of the process that runs the call. Only this process can be recycled:
    Recycled in a process that it has started would end only that process.
    """
    global _process
    _process = number


def _memory() -> int:
    """Returns how many bytes of memory this OS process uses."""
    import resource

    try:
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123  # before each job
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _recycle() -> None:
    me = _native.current_process()
    if me is None or me.id != _process:
        return
    _, values, age, memory = _terms
    if (
        (values is not None and _values >= values)
        or (age is not None and time.monotonic() - _since >= age)
        or (memory is not None and _memory() >= memory)
    ):
        raise Recycled


class _Loop:
    def __init__(self, reader: Any, redelivers: bool) -> None:
        self._reader, self._redelivers = reader, redelivers
        self._block: Any = None

    def __iter__(self) -> _Loop:
        return self

    def __aiter__(self) -> _Loop:
        return self

    def _next(self) -> Any:
        """Ends the block of the previous value. Returns the next block, or None for a plain
        read.
        """
        global _values
        block, self._block = self._block, None
        if block is not None:
            block.__exit__(None, None, None)
        _recycle()
        return self._reader.extended() if self._redelivers else None

    def __next__(self) -> Any:
        global _values
        block = self._next()
        try:
            value = self._reader.read() if block is None else block.__enter__()
        except Retired:
            raise StopIteration from None
        self._block = block
        _values += 1
        return value

    async def __anext__(self) -> Any:
        global _values
        block = self._next()
        try:
            value = await (self._reader.read() if block is None else block.__aenter__())
        except Retired:
            raise StopAsyncIteration from None
        self._block = block
        _values += 1
        return value


def over(reader: Any, loops: int) -> Any:
    """Returns the iterator of `for job in reader`. When the loop is left, its last value counts as
    used.
    """
    return _Loop(reader, bool(loops & REDELIVERS))


def die_if_of_memory(limit: int | None, error: BaseException) -> None:
    """Ends this OS process if it has a memory_limit and the error says that the limit was exceeded.
    This death is like any other: the process has not let go of its ends, so the values that it
    holds in extended reads go back, and the supervisor knows which other value it had read last.
    """
    if limit is None or not issubclass(type(error), MemoryError):
        return
    import traceback

    try:
        print(f"weft: memory_limit={limit} is exceeded", file=sys.stderr)
        traceback.print_exception(error, limit=-3)
        sys.stderr.flush()
    finally:
        os._exit(OF_MEMORY)
