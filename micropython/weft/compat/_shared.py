"""What aPyCSP's and PyCSP-locksharing's names share: a channel has two ends for good, `read` and `write`, and is ended by poison."""

from .. import _alt
from ..errors import Poisoned

ChannelPoisonException = PoisonException = Poisoned


class Guard:
    """What stands in an Alternative; `guard()` gives Weft's."""


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
    """The ends among the arguments of a process that poison left."""
    for x in args:
        if isinstance(x, (list, tuple)):
            poison_ends(x)
        elif isinstance(x, End):
            x.chan.native.poison()


class End:
    def __init__(self, chan, native):
        self.chan = chan
        self.native = native  # Weft's end
        self.bare = getattr(native, "_end", native)  # the core's

    def alt_pending_write(self, value):
        return PendingWrite(self, value)


class ReadEnd(End, Guard):
    def guard(self):
        return _alt.Input(self.bare, ended="raise")


class AnyAlternative:
    """select() gives the guard that was chosen and its value; the first ready one is (priority)."""

    def __init__(self, *guards):
        self.guards = guards
        self.alt = None

    def native(self):
        """Weft's, made once."""
        if self.alt is None:
            self.alt = _alt.Alternative(*[g.guard() for g in self.guards])
            self.alt.mode = "priority"
        return self.alt
