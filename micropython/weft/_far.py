"""Far channels of a board: channels whose home is the PC at the other end of a link (weft.link).

Invariants
- The PC decides every operation at these channels; the board sends an OFFER for each.
- The core does no operation at a far channel by itself: `ok` is always False.
"""

from . import _chan
from . import _core as core
from . import _frames as f
from ._chan import NOTHING
from .errors import BadUse, PeerDied, Poisoned, Retired


class Op:
    """An operation that was offered to the PC. `at` contains (channel, whether the guard writes)
    for each guard."""

    def __init__(self, link, p, at, values, plain):
        self.link, self.p, self.at, self.values, self.plain = link, p, at, values, plain
        self.n = 0
        self.pieces = b""
        self.leaving = False  # whether a WITHDRAW for this operation was sent
        self.won, self.v, self.e = -1, None, None

    def __repr__(self):
        return "write over the link" if self.plain else "select over the link"

    def give_up(self, p):
        self.link._withdraw(self)
        return False

    def writes(self):
        for _, w in self.at:
            if w:
                return True
        return False


class Far(_chan.Channel):
    """A channel of the PC. It has the methods of a Channel, but they defer to the PC."""

    how = None  # how the channel has ended: 1 retired, 2 poisoned, 3 died, as in a frame ENDED
    strength = 0
    why = ""

    def __init__(self, link, number, writes, name):
        self.link_, self.number, self.writes = link, number, writes
        super().__init__(name)

    def _look(self):
        self.k.ok = False

    def reader(self):
        return self._another(False)

    def writer(self):
        return self._another(True)

    __pos__, __neg__ = reader, writer

    def _another(self, writes):
        if writes != self.writes:
            raise BadUse("channel %r: the PC has handed out its other side" % self.name)
        if self.how:
            raise self.error(not writes)
        if writes:
            self.nw = (self.nw or 0) + 1
            return core.Wr(self.k)
        self.nr = (self.nr or 0) + 1
        return core.Rd(self.k)

    def ended(self, out):
        return self.how is not None

    def first(self, out):
        return None

    def note(self, out):
        pass

    def get(self, p, to, ext=None):
        if ext:
            raise BadUse(
                "an extended read of channel %r is not supported, because the channel leads to "
                "the PC: use read()" % self.name
            )
        return NOTHING

    def put(self, v, p):
        try:
            self.packed = self.link_._pack(v)
        except BadUse as e:
            raise BadUse("write on channel %r: %s" % (self.name, e))
        return False

    def link(self, out, x):
        if isinstance(x, _chan.Node):
            raise BadUse(
                "channel %r leads to the PC: select there by `await link.select(…)`, with ends of the link alone"
                % self.name
            )
        op = Op(self.link_, x, ((self, out),), (self.packed if out else None,), True)
        if out:
            x.at = op
            op.v = x.v
        self.link_._offer(op)

    def unlink(self, out, x):
        self.link_._withdraw_of(x)
        return False

    def spoil(self, strength=1):
        if not isinstance(strength, int) or not 1 <= strength <= 255:
            raise BadUse(
                "the strength of poison over a link is between 1 and 255, not %r" % (strength,)
            )
        if self.how is None:
            self.link_._send(f.POISON, 0, self.number, val=strength)
            self.has_ended(2, strength)

    poison = spoil

    def _left(self, out, died):
        if out:
            self.nw = self.nw - 1 or None  # never 0: the PC decides whether the channel has ended
        else:
            self.nr = self.nr - 1 or None
        if not self.nr and not self.nw:
            self.link_._send(f.RETIRE, 0, self.number, val=1 if died else 0)
            if self in self.link_._channels:
                self.link_._channels.remove(self)

    def has_ended(self, how, strength=0, why=""):
        if self.how is None:
            self.how, self.strength, self.why = how, strength, why
            self.pz = strength if how == 2 else 0

    def error(self, writers, value=None, guard=None):
        if self.how == 2:
            e = Poisoned("channel %r was poisoned" % self.name)
            e.strength = self.strength
        elif self.how == 3:
            e = PeerDied("the PC's end of channel %r has died%s" % (self.name, self.why))
            e.in_doubt = False
        else:
            e = Retired(
                "the %s of channel %r are gone"
                % ("readers" if self.writes else "writers", self.name)
            )
        e.channel, e.value, e.guard = self, value, guard
        return e
