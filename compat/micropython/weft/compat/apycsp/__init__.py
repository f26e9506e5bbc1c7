"""The names and behaviour of aPyCSP and uaPyCSP. Write `from weft.compat.apycsp import *` in place
of `from apycsp import *`."""

from ... import _proc
from ... import coroutines as weft
from ..._core import DONE
from .._shared import (  # noqa: F401
    AnyAlternative,
    ChannelPoisonException,
    End,
    Guard,
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

    def poison(self):
        return self.chan.poison()

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self.native
        except PoisonException:
            raise StopAsyncIteration


class ChannelWriteEnd(End):
    """`cout(v)` writes when it is awaited, or when a Parallel runs it; an end has at most one
    pending value."""

    value = None

    def __call__(self, value):
        self.value = value
        return self

    def __iter__(self):
        value, self.value = self.value, None
        return iter(self.native.write(value))

    def __await__(self):
        value, self.value = self.value, None
        return self.native.write(value).__await__()

    def poison(self):
        return self.chan.poison()


class Channel:
    capacity = 0
    overflow = "block"

    def __init__(self, name="", loop=None):
        self.native = weft.Channel(name or None, capacity=self.capacity, overflow=self.overflow)
        self.name = self.native.name
        self.read = ChannelReadEnd(self, self.native.reader())
        self.write = ChannelWriteEnd(self, self.native.writer())

    def poison(self):
        """Poisons the channel at once. The result may be awaited."""
        self.native.poison()
        return DONE

    def __aiter__(self):
        return self.read


class BufferedChannel(Channel):
    capacity = 4
    overflow = "unbounded"


def poison_channel(ch):
    """Poisons the channel of the end at once. The result may be awaited."""
    return ch.poison()


class Alternative(AnyAlternative):
    async def select(self):
        i, v = await self.native().select()
        return self.guards[i], v

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
    results = []
    for p in processes:
        results += await Parallel(p)
    return results


def Spawn(process):
    weft.Spawn(*_flat((process,), []))


def run_CSP(*processes):
    """Runs processes in ordinary code; returns the result of a single process, or the list of
    results.
    """
    return weft.run(*_flat(processes, []))
