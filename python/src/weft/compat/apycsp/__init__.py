"""aPyCSP's names on Weft: processes are coroutines inside asyncio (python/docs/compat.md).

`Parallel` runs its processes on Weft's scheduler, as guests of the running loop; what `Spawn` and asyncio itself start
are asyncio's tasks, which use the channels too.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from weft import coroutines as _weft
from weft._extension import native as _native
from weft.compat._alternatives import (
    AnyAlternative,
    AnyChannel,
    ChannelEnd,
    Guard,
    PendingChanWriteGuard,
    PoisonException,
    Skip,
    Timer,
)
from weft.errors import BadUse, Deadlock

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup

__all__ = [
    "Alternative",
    "BufferedChannel",
    "Channel",
    "ChannelEnd",
    "ChannelReadEnd",
    "ChannelWriteEnd",
    "Deadlock",
    "Guard",
    "Parallel",
    "PendingChanWriteGuard",
    "PoisonException",
    "Sequence",
    "Skip",
    "Spawn",
    "Timer",
    "poison_channel",
    "process",
]


# --- channels ---------------------------------------------------------------------------------------------------------


class ChannelReadEnd(ChannelEnd, Guard):
    """The read end: `await ch.read()`; `async for` until the channel is poisoned; as it is, an input guard."""

    def __init__(self, chan: Channel) -> None:
        super().__init__(chan)
        self._native = chan._reader
        self._read = chan._reader.read

    async def __call__(self) -> Any:
        """The next value.

        Raises:
            PoisonException.
        """
        return await self._read()

    def __aiter__(self) -> ChannelReadEnd:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._read()
        except PoisonException:
            raise StopAsyncIteration from None

    async def poison(self) -> None:
        self._chan._poison()


class ChannelWriteEnd(ChannelEnd):
    """The write end: `await ch.write(value)`, which gives 0."""

    def __init__(self, chan: Channel) -> None:
        super().__init__(chan)
        self._write = chan._writer.write

    async def __call__(self, val: Any) -> int:
        """Done when a reader has the value.

        Raises:
            PoisonException.
        """
        await self._write(val)
        return 0

    def alt_pending_write(self, obj: Any) -> PendingChanWriteGuard:
        """A guard that writes `obj` if it is chosen."""
        return PendingChanWriteGuard(self._chan, obj)

    async def poison(self) -> None:
        self._chan._poison()


class _BufferedWriteEnd(ChannelWriteEnd):
    """The write end of a buffered channel: counts."""

    async def __call__(self, val: Any) -> int:
        await self._write(val)
        self._chan._sent += 1
        return 0


class Channel(AnyChannel):
    """A rendezvous between any number of readers and writers: `await ch.read()`, `await ch.write(value)`.

    Args:
        name: a label.
        loop: passed over.
    """

    def __init__(self, name: str = "", loop: Any = None) -> None:
        super().__init__(name)
        self.read = ChannelReadEnd(self)
        self.write = ChannelWriteEnd(self)

    async def poison(self) -> None:
        """Every operation on the channel, also one that waits, raises PoisonException; what a buffer holds is lost."""
        self._poison()

    async def close(self) -> None:
        """As poison."""
        self._poison()

    def __aiter__(self) -> ChannelReadEnd:
        return self.read


class BufferedChannel(Channel):
    """A channel whose writes never wait."""

    _limit = {"capacity": 16, "overflow": "unbounded"}  # noqa: RUF012

    def __init__(self, name: str = "", loop: Any = None) -> None:
        super().__init__(name)
        self.write = _BufferedWriteEnd(self)


async def poison_channel(ch: Any) -> None:
    """Poisons a channel, or that of an end."""
    await ch.poison()


class Alternative(AnyAlternative):
    """A choice: `g, value = await alt.select()`, or `async with alt as (g, value):`."""

    async def pri_select(self) -> tuple[Any, Any]:
        """Waits for a guard, the first ready one first; gives it and the value read, 0 for a write, None otherwise.

        Raises:
            PoisonException; BadUse: both ends of one channel.
        """
        return self._outcome(*await _weft.select(*self._natives, mode="priority"))

    select = pri_select

    async def __aenter__(self) -> tuple[Any, Any]:
        return await self.pri_select()

    async def __aexit__(self, *_: Any) -> None:
        return None


# --- processes --------------------------------------------------------------------------------------------------------


def process(verbose_poison: Any = False) -> Any:
    """@process, or @process(verbose_poison=True): poison ends the function quietly, with None.

    Raises:
        BadUse: it is on a function that is not `async def`.
    """

    def decorate(func: Callable[..., Any], verbose: bool = bool(verbose_poison)) -> Callable[..., Any]:
        if not inspect.iscoroutinefunction(func):
            raise BadUse(f"@process on {func!r}: it takes an `async def` (plain functions: weft.compat.pycsp_locks)")

        @functools.wraps(func)
        async def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return await func(*args, **kwargs)
            except PoisonException:
                if verbose:
                    print(f"Process poisoned: {run}({args=}, {kwargs=})")
                return None

        return run

    return decorate(verbose_poison, False) if callable(verbose_poison) else decorate


class _PoisonLeft(Exception):
    """A poison that left what is no @process. Weft ends such a process quietly; here it ends the Parallel."""

    def __init__(self, poison: Any) -> None:
        super().__init__(poison)
        self.poison = poison


async def _telling(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except PoisonException as poison:
        raise _PoisonLeft(poison) from None


def _same(coroutine: Any) -> Any:
    return coroutine


_process_code = process(_telling).__code__  # that of every @process
_native_process = _native.ProcessFunction(_same, "process", True)


def _native_of(proc: Any) -> Any:
    if not inspect.isawaitable(proc):
        raise BadUse(f"Parallel of {proc!r}: it takes coroutines and what else can be awaited")
    name = getattr(proc, "__name__", type(proc).__name__)
    if getattr(proc, "cr_code", None) is not _process_code:
        proc = _telling(proc)
    return _native_process(proc).named(name)


async def Parallel(*procs: Any) -> list[Any]:
    """Runs coroutines together, each as a process; gives their results in order.

    Raises:
        what failed in them, after the others were cancelled; PoisonException: one that is no @process was poisoned.
    """
    try:
        results: list[Any] = await _weft.Parallel([_native_of(p) for p in procs])
    except _PoisonLeft as left:
        raise left.poison from None
    except BaseExceptionGroup as several:
        if all(isinstance(e, _PoisonLeft) for e in several.exceptions):
            raise several.exceptions[0].poison from None
        raise
    return results


async def Sequence(*procs: Any) -> list[Any]:
    """Awaits one after another; gives their results in order."""
    return [await p for p in procs]


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


_spawned: set[asyncio.Task[Any]] = set()


def Spawn(proc: Any, track_ref: bool = True) -> asyncio.Task[Any]:
    """Starts a coroutine in the background, as a task of the running loop, and gives the task.

    Args:
        track_ref: keep the task from being collected while it runs.
    Raises:
        RuntimeError: no loop is running.
    """
    task = asyncio.get_running_loop().create_task(proc if inspect.iscoroutine(proc) else _awaited(proc))
    if track_ref:
        _spawned.add(task)
        task.add_done_callback(_spawned.discard)
    return task
