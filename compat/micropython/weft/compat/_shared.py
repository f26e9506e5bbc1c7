"""The parts that weft.compat.apycsp and weft.compat.pycsp_locks share. In both libraries a channel
has two fixed ends, `read` and `write`, and poison ends the channel.
"""

from .. import _alt
from ..errors import Poisoned

ChannelPoisonException = PoisonException = Poisoned


class Guard:
    """A guard of an Alternative. The method `guard()` returns the corresponding guard of Weft."""


class Skip(Guard):
    def guard(self):
        return _alt.skip()


class Timer(Guard):
    def __init__(self, seconds):
        self.seconds = seconds

    def guard(self):
        return _alt.after(self.seconds)


class PendingChanWriteGuard(Guard):
    def __init__(self, end, value):
        self.end, self.value = end, value

    def guard(self):
        return _alt.Output(self.end.bare, self.value, ended="raise")

    def __repr__(self):
        return "<PendingChanWriteGuard for %s>" % self.end._chan.name


PendingWrite = PendingChanWriteGuard


def poison_ends(args):
    """Poisons the ends among the arguments of a process that ended by poison."""
    for x in args:
        if isinstance(x, (list, tuple)):
            poison_ends(x)
        elif isinstance(x, End):
            x._chan.spoil()


class End:
    def __init__(self, chan, native):
        self._chan = chan
        self.native = native  # Weft's end
        self.bare = getattr(native, "_end", native)  # the core's end, if weft.threads wraps it

    def channel(self):
        """Returns the channel of this end."""
        return self._chan

    def poison(self):
        return self._chan.poison()

    def alt_pending_write(self, value):
        return PendingChanWriteGuard(self, value)

    def __repr__(self):
        return "<%s wrapping %r>" % (type(self).__name__, self._chan)


ChannelEnd = End


class ReadEnd(End, Guard):
    def guard(self):
        return _alt.Input(self.bare, ended="raise")


class AnyChannel:
    """The base class of the channels of both libraries. A derived class gives the class of Weft's
    channel (Native) and the classes of the ends (Reads, Writes).
    """

    capacity = 0
    overflow = "block"
    poisoned = False

    def __init__(self, name=""):
        self.native = self.Native(name or None, capacity=self.capacity, overflow=self.overflow)
        self.name = name
        # Benchmark programs use the private names.
        self.read = self._read = self.Reads(self, self.native.reader())
        self.write = self._write = self.Writes(self, self.native.writer())

    def spoil(self):
        self.poisoned = True
        self.native.poison()

    def queue_len(self):
        """Returns the number of operations that wait plus the number of values in the buffer."""
        s = self.native.stats()
        return s.waiting_readers + s.waiting_writers + s.buffered

    @property
    def queue(self):
        """Returns the operations that wait, as an "r" or a "w" for each."""
        s = self.native.stats()
        return list("r" * s.waiting_readers + "w" * s.waiting_writers)

    def verify(self):
        """Returns True if the channel does not have both readers and writers waiting, and if no
        operation waits at a poisoned channel. Otherwise raises AssertionError.
        """
        s = self.native.stats()
        assert not (s.waiting_readers and s.waiting_writers)
        assert not (self.poisoned and (s.waiting_readers or s.waiting_writers))
        return True

    def __repr__(self):
        return "<%s %s ql=%d p=%s>" % (
            type(self).__name__,
            self.name,
            self.queue_len(),
            self.poisoned,
        )


class AnyAlternative:
    """A choice: select() chooses the first guard that is ready (priority), and returns the guard
    and a value: the value that was read, 0 for a write, and None for another guard.
    """

    def __init__(self, *guards):
        self.guards = guards
        self.alt = None

    def natives(self):
        return [g.guard() for g in self.guards]

    def native(self):
        """Returns the Alternative of Weft, which the first call makes."""
        if self.alt is None:
            self.alt = _alt.Alternative(*self.natives())
            self.alt.mode = "priority"
        return self.alt

    def outcome(self, i, v):
        g = self.guards[i]
        return g, 0 if isinstance(g, PendingChanWriteGuard) else v
