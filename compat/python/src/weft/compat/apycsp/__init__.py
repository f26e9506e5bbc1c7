"""aPyCSP's names on Weft: processes are coroutines inside asyncio (compat/docs/pycsp.md).

`Parallel` runs its processes on Weft's scheduler, as guests of the running loop; `Spawn` and
asyncio itself start tasks of asyncio, which use the channels too.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

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


# --- channels -------------------------------------------------------------------------------------


class Iterated:
    """An end for `async for`, which awaits calls of the end and yields their values until the end
    is poisoned.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        __call__: Any

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self()
        except PoisonException:
            raise StopAsyncIteration from None


class ChannelReadEnd(ChannelEnd, Guard, Iterated):
    """The read end: `await ch.read()`; `async for` until the channel is poisoned. The end itself is
    an input guard.

    `__call__` is a slot of the instance, which holds the native operation.

    Raises:
        PoisonException.
    """

    __slots__ = ("__call__",)

    if TYPE_CHECKING:
        __call__: Any

    def __init__(self, chan: Channel) -> None:
        super().__init__(chan)
        self._native = chan._reader
        self.__call__ = chan._reader.read

    async def poison(self) -> None:
        self._chan._poison()


async def write(chan: Channel, val: Any) -> int:
    """Writes `val` by Weft's write. Returns 0, as aPyCSP does."""
    writer: Any = chan._writer
    await writer.write(val)
    chan._sent += 1
    return 0


class _Write(Coroutine[Any, Any, int]):
    """A write that will be awaited, or become a task. A deadlock report follows the awaited
    coroutines inwards. This object is not a native coroutine of Python, so the report names the
    line that awaits it."""

    __slots__ = ("_written",)
    __name__ = "write"

    def __init__(self, written: Coroutine[Any, Any, int]) -> None:
        self._written = written

    def __await__(self) -> Any:
        return self._written.__await__()

    def send(self, value: Any) -> Any:
        return self._written.send(value)

    def throw(self, *error: Any) -> Any:
        return self._written.throw(*error)

    def close(self) -> None:
        self._written.close()


class ChannelWriteEnd(ChannelEnd):
    """The write end: `await ch.write(value)` returns 0 once a reader, or a buffer, has the value.

    Raises:
        PoisonException.
    """

    def __call__(self, val: Any) -> Coroutine[Any, Any, int]:
        return _Write(write(self._chan, val))

    write = __call__

    def alt_pending_write(self, obj: Any) -> PendingChanWriteGuard:
        """Returns a guard that writes `obj` if it is chosen."""
        return PendingChanWriteGuard(self._chan, obj)

    async def poison(self) -> None:
        self._chan._poison()


class Channel(AnyChannel):
    """A rendezvous between any number of readers and writers: `await ch.read()`, `await
    ch.write(value)`.

    Args:
        name: a label.
        loop: ignored.
    """

    def __init__(self, name: str = "", loop: Any = None) -> None:
        super().__init__(name)
        self.read = self._read = ChannelReadEnd(self)  # benchmark programs use the private names
        self.write = self._write = ChannelWriteEnd(self)

    async def poison(self) -> None:
        """Poisons the channel: every operation on it, even one that already waits, raises
        PoisonException, and values in a buffer are lost."""
        self._poison()

    async def close(self) -> None:
        """Poisons the channel, as poison() does."""
        self._poison()

    def __aiter__(self) -> ChannelReadEnd:
        return self.read


class BufferedChannel(Channel):
    """A channel whose writes never wait."""

    _limit = {"capacity": 16, "overflow": "unbounded"}  # noqa: RUF012


async def poison_channel(ch: Any) -> None:
    """Poisons a channel, or the channel of an end."""
    await ch.poison()


class Alternative(AnyAlternative):
    """A choice: `g, value = await alt.select()`, or `async with alt as (g, value):`."""

    async def pri_select(self) -> tuple[Any, Any]:
        """Waits for a guard; if several are ready, takes the first. Returns the guard, and the
        value read, 0 for a write, None otherwise.

        Raises:
            PoisonException; BadUse: the guards are both ends of one channel.
        """
        return self._outcome(*await _weft.select(*self._natives, mode="priority", ended="raise"))

    select = pri_select

    async def __aenter__(self) -> tuple[Any, Any]:
        return await self.pri_select()

    async def __aexit__(self, *_: Any) -> None:
        return None


# --- processes ------------------------------------------------------------------------------------


class _Process(Coroutine[Any, Any, Any]):
    """The result of calling a @process function: a coroutine that poison ends quietly, with None. A
    program awaits it or makes it a task, or `begin` turns it into a process of Weft.

    States:   fresh ──begin(), or the first send──► running; fresh ──close()──► closed
    """

    __slots__ = ("_args", "_func", "_kwargs", "_running", "_verbose")

    def __init__(self, func: Any, verbose: bool, args: Any, kwargs: Any) -> None:
        self._func = func
        self._verbose = verbose
        self._args = args
        self._kwargs = kwargs
        self._running: Any = None

    @property
    def __name__(self) -> str:
        return str(self._func.__name__)

    async def _run_quietly(self) -> Any:
        try:
            return await self._func(*self._args, **self._kwargs)
        except PoisonException:
            if self._verbose:
                print(f"Process poisoned: {self._func}(args={self._args}, kwargs={self._kwargs})")
            return None

    def begin(self) -> Any:
        if self._running is not None:
            raise RuntimeError(f"cannot reuse already awaited coroutine {self.__name__}")
        self._running = _begun(self).named(self.__name__)
        return self._running

    def _coroutine(self) -> Any:
        if self._running is None:
            self._running = self._run_quietly()
        return self._running

    def __await__(self) -> Any:
        return self._coroutine().__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine().send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine().throw(*error)

    def close(self) -> None:
        self._coroutine().close()


_begun = _weft.process(_Process._run_quietly)

# This makes asyncio.create_task(ch.read()) work: an operation has the methods of a coroutine.
Coroutine.register(_native.Operation)


def process(verbose_poison: Any = False) -> Any:
    """@process, or @process(verbose_poison=True): poison ends the function quietly, with None.

    Raises:
        BadUse: the decorated function is not `async def`.
    """

    def decorate(
        func: Callable[..., Any], verbose: bool = bool(verbose_poison)
    ) -> Callable[..., Any]:
        if not inspect.iscoroutinefunction(func):
            raise BadUse(
                f"@process on {func!r}: it takes an `async def` (plain functions: weft.compat.pycsp_locks)"
            )

        @functools.wraps(func)
        def make(*args: Any, **kwargs: Any) -> _Process:
            return _Process(func, verbose, args, kwargs)

        return make

    return decorate(verbose_poison, False) if callable(verbose_poison) else decorate


class _PoisonLeft(Exception):
    """Stands for poison that has left an awaitable other than a @process. Weft would end the
    process around such an awaitable quietly; in aPyCSP the poison ends the Parallel.
    """

    def __init__(self, poison: Any) -> None:
        super().__init__(poison)
        self.poison = poison


@_weft.process
async def _mark_poison(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except PoisonException as poison:
        raise _PoisonLeft(poison) from None


def _native_of(proc: Any) -> Any:
    if not inspect.isawaitable(proc):
        raise BadUse(f"Parallel takes coroutines and other awaitables, not {proc!r}")
    if isinstance(proc, _Process):
        return proc.begin()
    return _mark_poison(proc).named(getattr(proc, "__name__", type(proc).__name__))


async def Parallel(*procs: Any) -> list[Any]:
    """Runs coroutines together, each as a process; returns their results in order.

    Raises:
        the failure of one, after the others were cancelled; PoisonException: a coroutine that is
        not a @process was poisoned.
    """
    try:
        results: list[Any] = await _weft.Parallel([_native_of(p) for p in procs])
    except _PoisonLeft as left:
        raise left.poison from None
    except BaseExceptionGroup as several:
        if all(isinstance(e, _PoisonLeft) for e in several.exceptions):
            raise next(e.poison for e in several.exceptions if isinstance(e, _PoisonLeft)) from None
        raise
    return results


async def Sequence(*procs: Any) -> list[Any]:
    """Awaits coroutines one after another; returns their results in order."""
    return [await p for p in procs]


async def _as_coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


_spawned: set[asyncio.Task[Any]] = set()


def Spawn(proc: Any, track_ref: bool = True) -> asyncio.Task[Any]:
    """Starts a coroutine in the background, as a task of the running loop, and returns the task.

    Args:
        track_ref: keep the task from being collected while it runs.
    Raises:
        RuntimeError: no loop is running.
    """
    task = asyncio.get_running_loop().create_task(
        proc if asyncio.iscoroutine(proc) else _as_coroutine(proc)
    )
    if track_ref:
        _spawned.add(task)
        task.add_done_callback(_spawned.discard)
    return task
