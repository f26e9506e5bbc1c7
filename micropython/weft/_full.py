"""Channels that have a buffer, or a choice or an extended read in a waiting queue. Programs with
only plain channels (_chan) do not load this module.

Invariants
- This module is loaded before the first Node is made and before the first channel has a buffer.
  From then on every channel uses its functions as methods.
- While a reader waits, the buffer is empty. A slot of the buffer holds a value (`buf`), or is taken
  by an extended read (`held`) or by a value that has still to be made (`owed`).
"""

from . import _chan
from . import _core as core
from ._chan import ENDS, HELD, LATER, NOTHING, Channel, fail, keep, moved
from .errors import BadUse

OVERFLOWS = ("block", "drop_oldest", "drop_newest", "unbounded")


def furnish(c, capacity, overflow):
    """Gives a channel its buffer."""
    # With a larger capacity MicroPython miscalculates the size of the deque, and crashes.
    if not isinstance(capacity, int) or not 0 <= capacity < 1 << 29:
        raise BadUse("capacity is 0 to 2**29 - 1, not %r" % (capacity,))
    if overflow not in OVERFLOWS:
        raise BadUse("overflow is one of %s, not %r" % (", ".join(OVERFLOWS), overflow))
    if overflow != "block" and not capacity and overflow != "unbounded":
        raise BadUse("overflow %r needs a capacity of 1 or more" % (overflow,))
    c.cap, c.over = capacity, OVERFLOWS.index(overflow)
    if capacity or c.over:
        c.size = capacity or 4
        c.buf = core.Buf(c.k, c.size)


class Node:
    """A guard or an extended read in a waiting queue. Its `alt`, an _alt.Alt or an Ext, is notified
    when the Node commits or when the channel ends.
    """

    v = make = end = None
    on = True
    loud = False

    def __init__(self, alt, i, c, out):
        self.alt, self.i, self.c, self.out = alt, i, c, out
        self.nx = None
        self.gone = self.queued = False


class Stats:
    """The numbers of a channel at one moment: ends, waiting parties, buffered and dropped
    values."""

    def __init__(self, c):
        self.dropped, self.readers, self.writers = c.dropped, c.nr or 0, c.nw or 0
        self.buffered = len(c.buf)
        self.waiting_readers, self.waiting_writers = _count(c.k.r), _count(c.k.w)


def _count(x):
    n = 0
    while x is not None:
        n += x.__class__ is not Node or (x.alt.live and not x.gone)
        x = x.nx
    return n


class _Given:
    def __init__(self, p):
        self.p = p

    def given(self, v, e):
        p = self.p
        if e is None:
            p.v = keep(p, moved(v))
            core.push(p)
        else:
            p.at = None
            fail(p, e)


def first(self, out):
    """Returns the first party of a queue that can commit. Skips an Alternative that does not
    wait.
    """
    x = self.k.w if out else self.k.r
    while x is not None and x.__class__ is Node and not (x.alt.live and x.on and not x.gone):
        x = x.nx
    return x


def note(self, out):
    """Tells the Alternatives in a queue that the channel has changed for them: they check the
    channel at their next select."""
    x = self.k.w if out else self.k.r
    while x is not None:
        if x.__class__ is Node:
            x.alt.note(x)
        x = x.nx


def full(self):
    return self.over != 3 and len(self.buf) + self.held + self.owed >= self.cap


def get(self, p, to, ext=None):
    """Returns a value for the reader p, which reads now, or NOTHING if it must wait. LATER means
    that the value has still to be made: to(v, e) will be called with that value."""
    if self.buf:
        v = self.buf.popleft()
        if ext:
            ext.slot = True
            self.held += 1
            self._look()
        else:
            self.refill()
        return keep(p, v)
    y = self.first(True)
    if y is None or (ext and (self.cap or self.over)):
        return NOTHING
    if y.__class__ is Node:
        alt = y.alt
        if y.make:
            alt.to = to or _Given(p).given
            alt.holder = ext
            alt.commit(y)
            return LATER
        v = moved(y.v)
        alt.commit(y, ext)
    elif ext:
        self.unlink(True, y)
        v = y.v
        ext.writer = y
        y.at = HELD
    else:
        v = self.taken(y)
    return keep(p, v)


def refill(self):
    """Fills free slots with the values of waiting writers, in order (1.5)."""
    while not self.full():
        y = self.first(True)
        if y is None:
            break
        if y.__class__ is Node:
            if y.make:
                self.owed += 1
                self._look()
                y.alt.to = self.pay
            else:
                self.enter(moved(y.v))
            y.alt.commit(y)
        else:
            self.enter(self.taken(y))
    self.note(True)


def enter(self, v):
    if len(self.buf) >= self.size:
        n = self.size * 2
        more = core.Buf(self.k, n)
        while self.buf:
            more.append(self.buf.popleft())
        self.buf, self.size = more, n
        self._look()
    self.buf.append(v)
    self.note(False)


def serve(self):
    """Serves waiting readers after a slot has become free: an extended read can wait for a slot."""
    while self.buf:
        x = self.first(False)
        if x is None:
            return
        self.hand(x, self.buf.popleft(), None)
        self.refill()
    if self.ended(False) and self.first(True) is None:
        self._tell(False)


def pay(self, v, e):
    """Puts the value for which a slot was kept into the buffer, or frees the slot if making the
    value failed with `e`.
    """
    self.owed -= 1
    self._look()
    if self.pz or (self.nr == 0 and self.first(False) is None):
        if e is None:
            self.dropped += 1
            self.lose(moved(v))
    else:
        if e is None:
            self.put(v, None)
        self.refill()
        self.serve()
    if self.nw == 0 and not self.buf and not self.owed:
        self._tell(False)


def direct(self):
    """Returns the waiting reader that receives a written value directly, past the buffer (1.5).
    None if no reader waits, or if that reader is an extended read without a free slot.
    """
    x = None if self.buf else self.first(False)
    if x is not None and x.__class__ is Node and x.alt.ext and self.full():
        return None if self.cap or self.over else x
    return x


def put(self, v, p):
    """Accepts the value v of the writer p. Returns True if the write has committed, HELD if it has
    committed and an extended read holds p, or False if it must wait."""
    x = self.k.r
    # The usual select that waits takes the value without the tests below.
    if x.__class__ is Node and x.alt.quick and v.__class__ not in ENDS:
        x.alt.v = v
        x.alt.commit(x)
        return True
    x = self.direct()
    if x is not None:
        return self.hand(x, moved(v), p)
    if not self.cap and not self.over:
        return False
    if not self.full():
        self.enter(moved(v))
    elif self.over == 2 or (self.over == 1 and not self.buf):
        self.dropped += 1
        self.lose(moved(v))
    elif self.over == 1:
        self.dropped += 1
        old = self.buf.popleft()
        self.buf.append(moved(v))
        self.lose(old)
    else:
        return False
    return True


def hand(self, x, v, p):
    """Gives v to x, a waiting reader. Returns what `put` returns."""
    if x.__class__ is Node:
        alt = x.alt
        if alt.ext:
            if self.cap or self.over:
                alt.slot = True
                self.held += 1
                self._look()
            elif p is not None:
                alt.writer = p
        alt.v = keep(alt.p, v)
        alt.commit(x)
        return HELD if alt.ext and alt.writer else True
    return self.passed(x, v)


def claim(self):
    """Reserves a reader or a slot for an output guard whose value has still to be made. Returns the
    function to call with the value, and the extended read that will hold the writer, or None."""
    x = None if self.buf else self.first(False)
    if x is None or self.cap or self.over:
        self.owed += 1
        self._look()
        return self.pay, None
    if x.__class__ is Node:
        alt = x.alt
        alt.withdraw()
        alt.won = x.i
        return alt.given, alt if alt.ext else None
    self.unlink(False, x)
    return _Given(x).given, None


_chan.Node = Node
Channel.first = first
Channel.note = note
Channel.full = full
Channel.get = get
Channel.refill = refill
Channel.enter = enter
Channel.serve = serve
Channel.pay = pay
Channel.direct = direct
Channel.put = put
Channel.hand = hand
Channel.claim = claim
