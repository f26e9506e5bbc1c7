"""The names and behaviour of aPyCSP and uaPyCSP. Write `from weft.compat.apycsp import *` in place
of `from apycsp import *`."""

import asyncio

from ... import _core as core
from ... import _proc
from ... import coroutines as weft
from .._shared import (  # noqa: F401
    AnyAlternative,
    AnyChannel,
    ChannelEnd,
    ChannelPoisonException,
    End,
    Guard,
    PendingChanWriteGuard,
    PendingWrite,
    PoisonException,
    ReadEnd,
    Skip,
    Timer,
    poison_ends,
)


class ChannelReadEnd(ReadEnd):
    def __call__(self):
        return self.native

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self.native
        except PoisonException:
            raise StopAsyncIteration


async def _write(native, value):
    await native.write(value)
    return 0


class ChannelWriteEnd(End):
    """`cout(v)` writes when it is awaited, or when a Parallel runs it, and gives 0."""

    def __call__(self, value):
        return _write(self.native, value)


class Channel(AnyChannel):
    Native = weft.Channel
    Reads = ChannelReadEnd
    Writes = ChannelWriteEnd

    def __init__(self, name="", loop=None):
        super().__init__(name)

    async def poison(self):
        """Poisons the channel when the result is awaited, or run by a Parallel."""
        self.spoil()

    close = poison

    def __aiter__(self):
        return self.read


class BufferedChannel(Channel):
    capacity = 4
    overflow = "unbounded"


def poison_channel(ch):
    """Returns an awaitable that poisons a channel, or the channel of an end."""
    return ch.poison()


class Alternative(AnyAlternative):
    async def select(self):
        if core.cur() is None:  # a task of asyncio
            return self.outcome(*await weft.select(*self.natives(), mode="priority", ended="raise"))
        return self.outcome(*await self.native().select())

    pri_select = priSelect = select

    async def __aenter__(self):
        return await self.select()

    async def __aexit__(self, *_):
        return False


class Process(_proc.Process):
    """A process. It may also be awaited, and then runs within the process that awaits it."""

    def __getattr__(self, what):  # a missing result is None, not a NoResult
        return self.value if what == "result" else super().__getattr__(what)

    def __iter__(self):
        results = yield from weft.Parallel(self)
        return results[0]

    def __await__(self):
        results = yield from weft.Parallel(self).__await__()
        return results[0]


def process(function=True, verbose_poison=False):
    """Decorates a process function: `@process`, `@process()` or `@process(verbose_poison=True)`."""

    def decorate(fn):
        async def body(*args, **kw):
            try:
                return await fn(*args, **kw)
            except PoisonException:
                if verbose_poison:
                    print("poisoned:", _proc.name_of(fn))
                poison_ends(args)
                poison_ends(kw.values())
                raise

        def make(*args, **kw):
            return Process(body, args, kw).named(_proc.name_of(fn))

        return make

    return decorate if isinstance(function, bool) else decorate(function)


class _Left(Exception):
    """Stands for poison that has left an awaitable other than a @process. It ends the Parallel."""


@weft.process
async def _telling(awaitable):
    try:
        return await awaitable
    except PoisonException as e:
        raise _Left(e)


def _flat(things, out):
    for x in things:
        if isinstance(x, _proc.Process):
            out.append(x)
        elif isinstance(x, (list, tuple)):
            _flat(x, out)
        else:
            out.append(_telling(x))
    return out


async def Parallel(*processes):
    """Runs processes and other awaitables together. Raises PoisonException if an awaitable that is
    not a process was poisoned.
    """
    try:
        return await weft.Parallel(_flat(processes, []))
    except _Left as e:
        raise e.args[0]
    except weft.Failures as e:
        for x in e.exceptions:
            if not isinstance(x, _Left):
                raise
        raise e.exceptions[0].args[0]


async def Sequence(*processes):
    """Awaits processes and other awaitables one after another; returns their results."""
    results = []
    for p in processes:
        results.append(await p)
    return results


class Task:
    """The result of Spawn inside asyncio: a program can await the task, and read its outcome."""

    def __init__(self, task):
        self.task = task

    def done(self):
        return self.task.done()

    def cancel(self):
        return self.task.cancel()

    def cancelled(self):
        return self.done() and isinstance(self.task.data, asyncio.CancelledError)

    def exception(self):
        """Returns the error that the task has raised, or None. Raises a CancelledError."""
        if not self.done():
            raise RuntimeError("the task is not done")
        if self.cancelled():
            raise self.task.data
        return None if isinstance(self.task.data, StopIteration) else self.task.data

    def __iter__(self):
        return (yield from self.task)

    __await__ = __iter__


async def _as_coroutine(awaitable):
    return await awaitable


def Spawn(process, track_ref=True):
    """Starts a process in the background. Inside asyncio the process is a task of the
    loop, and Spawn returns the task.
    """
    if asyncio.core.cur_task is not None:
        return Task(asyncio.create_task(_as_coroutine(process)))
    weft.Spawn(*_flat((process,), []))


def run_CSP(*processes):
    """Runs processes from ordinary code. Returns the result of a single process, or the list of the
    results of several.
    """
    return weft.run(*_flat(processes, []))
