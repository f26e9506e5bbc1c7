"""The names and behaviour of PyCSP-locksharing and uPyCSP. Write `from weft.compat.pycsp_locks
import *` in place of `from pycsp import *`."""

from ... import _proc
from ... import threads as weft
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
        return self.native.read()

    def poison(self):
        self.chan.poison()

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.native.read()
        except PoisonException:
            raise StopIteration


class ChannelWriteEnd(End):
    def __call__(self, value):
        self.native.write(value)

    def poison(self):
        self.chan.poison()


class Channel:
    capacity = 0
    overflow = "block"

    def __init__(self, name=""):
        self.native = weft.Channel(name or None, capacity=self.capacity, overflow=self.overflow)
        self.name = self.native.name
        self.read = ChannelReadEnd(self, self.native.reader())
        self.write = ChannelWriteEnd(self, self.native.writer())

    def poison(self):
        self.native.poison()

    def __iter__(self):
        return self.read


class BufferedChannel(Channel):
    capacity = 4
    overflow = "unbounded"


def poison_channel(ch):
    ch.poison()


class Alternative(AnyAlternative):
    def select(self):
        i, v = weft._do(self.native().select)
        return self.guards[i], v

    pri_select = priSelect = select

    def __enter__(self):
        return self.select()

    def __exit__(self, *_):
        return False


def process(function=True, verbose_poison=False):
    """Decorates a process function: `@process`, `@process()` or `@process(verbose_poison=True)`."""

    def decorate(fn):
        def body(*args, **kw):
            try:
                return fn(*args, **kw)
            except PoisonException:
                if verbose_poison:
                    print("poisoned:", _proc.name_of(fn))
                poison_ends(args)
                poison_ends(kw.values())
                raise

        def make(*args, **kw):
            return weft.process(body)(*args, **kw).named(_proc.name_of(fn))

        return make

    return decorate if isinstance(function, bool) else decorate(function)


def Parallel(*processes, check_poison=False):
    """Runs processes at once, and returns their results. With `check_poison`, raises
    PoisonException if a process was poisoned.
    """
    ps = _proc.flatten(processes, [])
    results = weft.Parallel(ps)
    if check_poison:
        for p in ps:
            if isinstance(p.error, PoisonException):
                raise p.error
    return results


Sequence = weft.Sequence
Spawn = weft.Spawn
CSP = Parallel
