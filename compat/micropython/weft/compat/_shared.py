"""The parts that the names of aPyCSP and of PyCSP-locksharing share. In both libraries a channel
has two fixed ends, `read` and `write`, and poison ends it.
"""

from .. import _alt
from ..errors import Poisoned

ChannelPoisonException = PoisonException = Poisoned


class Guard:
    """A guard of an Alternative. `guard()` returns the corresponding guard of Weft."""


class Skip(Guard):
    def guard(self):
        return _alt.skip()


class Timer(Guard):
    def __init__(self, seconds):
        self.seconds = seconds

    def guard(self):
        return _alt.after(self.seconds)


class PendingWrite(Guard):
    def __init__(self, end, value):
        self.end, self.value = end, value

    def guard(self):
        return _alt.Output(self.end.bare, self.value, ended="raise")


def poison_ends(args):
    """Poisons the ends among the arguments of a process that ended by poison."""
    for x in args:
        if isinstance(x, (list, tuple)):
            poison_ends(x)
        elif isinstance(x, End):
            x.chan.native.poison()


class End:
    def __init__(self, chan, native):
        self.chan = chan
        self.native = native  # Weft's end
        self.bare = getattr(native, "_end", native)  # the core's end, if weft.threads wraps it

    def alt_pending_write(self, value):
        return PendingWrite(self, value)


class ReadEnd(End, Guard):
    def guard(self):
        return _alt.Input(self.bare, ended="raise")


class AnyAlternative:
    """A choice: select() returns the guard that was chosen, the first one that is ready
    (priority), and its value."""

    def __init__(self, *guards):
        self.guards = guards
        self.alt = None

    def native(self):
        """The Alternative of Weft, made at the first call."""
        if self.alt is None:
            self.alt = _alt.Alternative(*[g.guard() for g in self.guards])
            self.alt.mode = "priority"
        return self.alt
