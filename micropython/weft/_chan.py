"""Channels and their ends: all cases but the one the core does itself (rules 1 to 4).

Invariants
- A line (`k.r` … `k.rt`, `k.w` … `k.wt`, linked by `nx`) holds Procs and Nodes, first come first. A Node is what has
  more to say than a Proc: a guard of a choice (`alt`), an extended read (`ext`).
- `k.ok` is False whenever a plain operation must look at more than the head of a line (`_look`).
- While a reader waits the buffer is empty. A slot is taken by a value (`buf`), by an extended read (`held`) or by a
  value that is yet to be made (`owed`).
- What has committed is out of its line. A Proc that has committed and is still held waits with `at` HELD.
- An end in a channel or on its way is nobody's: `h` is 0, its sender's is closed.
"""

import sys
from collections import deque

from . import _core as core
from .errors import BadUse, Cancelled, PeerDied, Poisoned, Retired

REQ = "cancelled"  # `at` of a process that was asked to end and waits nowhere
HELD = "held"  # `at` of one whose operation has committed
FLIGHT = "in flight"  # `at` of one in whose way is a Cancelled that it may have met already
LATE = "late"  # `at` of a reader that has its value and was asked to end
NOTHING = object()
LATER = object()
ENDS = (core.Rd, core.Wr)
OVERFLOWS = ("block", "drop_oldest", "drop_newest", "unbounded")


def outsider():
    """What does the operations of tasks of asyncio, if one of them calls."""
    aio = sys.modules.get("asyncio.core")
    if aio is not None and getattr(aio, "cur_task", None) is not None:
        from . import _aio

        return _aio
    return None


class Node:
    """A place in a line: `alt` is told what comes of it (_alt.Alt, or Ext)."""

    def __init__(self, alt, i, c, out):
        self.alt, self.i, self.c, self.out = alt, i, c, out
        self.nx = self.v = self.make = self.end = None
        self.on = True
        self.loud = self.gone = self.queued = False


class Stats:
    def __init__(self, c):
        self.dropped, self.readers, self.writers = c.dropped, c.nr, c.nw
        self.buffered = len(c.buf)
        self.waiting_readers, self.waiting_writers = _count(c.k.r), _count(c.k.w)


def _count(x):
    n = 0
    while x is not None:
        n += not isinstance(x, Node) or (x.alt.live and not x.gone)
        x = x.nx
    return n


class Channel:
    count = 0
    # What most channels never need is of the class: an instance pays for each field that it has.
    imm = held = owed = dropped = mark = size = 0
    dr = dw = False  # one of a side died

    def __init__(self, name=None, *, capacity=0, overflow="block", immunity=0):
        if not isinstance(capacity, int) or capacity < 0:
            raise BadUse("capacity is 0 or more, not %r" % (capacity,))
        if overflow not in OVERFLOWS:
            raise BadUse("overflow is one of %s, not %r" % (", ".join(OVERFLOWS), overflow))
        if overflow != "block" and not capacity and overflow != "unbounded":
            raise BadUse("overflow %r needs a capacity of 1 or more" % (overflow,))
        Channel.count += 1
        self.name = name or "channel %d" % Channel.count
        self.cap, self.over = capacity, OVERFLOWS.index(overflow)
        if immunity:
            self.imm = immunity
        self.pz = self.nodes = self.nr = self.nw = 0
        self.hr = self.hw = False  # a side had an end
        self.buf = ()
        if capacity or self.over:
            self.size = capacity or 4
            self.buf = deque((), self.size)
        self.k = core.Chan(self)
        self._look()

    def __repr__(self):
        return "<channel %r>" % self.name

    def _look(self):
        self.k.ok = not (
            self.cap
            or self.over
            or self.pz
            or self.nodes
            or (self.hr and not self.nr)
            or (self.hw and not self.nw)
        )

    def reader(self):
        if self.pz or (self.hw and not self.nw) or (self.hr and not self.nr):
            raise self.error(self.hw and not self.nw)
        self.nr += 1
        self.hr = True
        return core.Rd(self.k)

    def writer(self):
        if self.pz or (self.hw and not self.nw) or (self.hr and not self.nr):
            raise self.error(not (self.hr and not self.nr))
        self.nw += 1
        self.hw = True
        return core.Wr(self.k)

    __pos__ = reader
    __neg__ = writer

    def stats(self):
        return Stats(self)

    def poison(self, strength=1):
        if not isinstance(strength, int) or strength < 1:
            raise BadUse("the strength of poison is 1 or more, not %r" % (strength,))
        if strength <= self.pz or strength < self.imm:
            return
        was, self.pz = self.pz, strength
        self.k.ok = False
        self._drop()
        if not was:
            self._tell(False)
            self._tell(True)

    def error(self, writers, value=None, guard=None):
        """What an operation here raises; `writers`: because of that side."""
        if self.pz:
            e = Poisoned("channel %r was poisoned" % self.name)
            e.strength = self.pz
        else:
            dead = self.dw if writers else self.dr
            side = "writers" if writers else "readers"
            e = (PeerDied if dead else Retired)("the %s of channel %r are gone" % (side, self.name))
        e.channel, e.value, e.guard = self, value, guard
        return e

    def ended(self, out):
        """For an operation on side `out` (True: writing) with nothing to take: has the channel ended?"""
        if self.pz:
            return True
        if out:
            return self.hr and not self.nr
        return self.hw and not self.nw and not self.owed

    # lines

    def link(self, out, x):
        k = self.k
        x.nx = None
        if isinstance(x, Node):
            self.nodes += 1
            k.ok = False
        if out:
            if k.w is None:
                k.w = x
            else:
                (k.wt if k.w.nx else k.w).nx = x
            k.wt = x
        else:
            if k.r is None:
                k.r = x
            else:
                (k.rt if k.r.nx else k.r).nx = x
            k.rt = x

    def unlink(self, out, x):
        k = self.k
        before, y = None, k.w if out else k.r
        while y is not x:
            if y is None:
                return False
            before, y = y, y.nx
        if before is not None:
            before.nx = x.nx
        elif out:
            k.w = x.nx
        else:
            k.r = x.nx
        if x.nx is None:
            if out:
                k.wt = before
            else:
                k.rt = before
        x.nx = None
        if isinstance(x, Node):
            self.nodes -= 1
            if not self.nodes:
                self._look()
        return True

    def first(self, out):
        """The first in a line who can commit; an alternative that does not wait is passed over."""
        x = self.k.w if out else self.k.r
        while x is not None and isinstance(x, Node) and not (x.alt.live and x.on and not x.gone):
            x = x.nx
        return x

    def note(self, out):
        """Something happened for the line `out`: standing alternatives look at it when they select."""
        x = self.k.w if out else self.k.r
        while x is not None:
            if isinstance(x, Node):
                x.alt.note(x)
            x = x.nx

    def full(self):
        return self.over != 3 and len(self.buf) + self.held + self.owed >= self.cap

    # moving values

    def get(self, p, to, ext=None):
        """A value for a reader who is there: the value, NOTHING, or LATER: `to(v, e)` will be called."""
        if self.buf:
            v = self.buf.popleft()
            if ext:
                ext.slot = True
                self.held += 1
            else:
                self.refill()
            return keep(p, v)
        y = self.first(True)
        if y is None or (ext and (self.cap or self.over)):
            return NOTHING
        if isinstance(y, Node):
            alt = y.alt
            if y.make:
                alt.to = to or _Given(p).given
                alt.holder = ext
                alt.commit(y)
                return LATER
            v = moved(y.v)
            alt.commit(y, ext)
        else:
            self.unlink(True, y)
            v = y.v
            if ext:
                ext.writer = y
                y.at = HELD
            else:
                y.at = None
                core.push(y)
        return keep(p, v)

    def refill(self):
        """A slot is free: the first waiting writer's value enters it (1.5)."""
        while not self.full():
            y = self.first(True)
            if y is None:
                break
            if isinstance(y, Node):
                if y.make:
                    self.owed += 1
                    y.alt.to = self.pay
                else:
                    self.enter(moved(y.v))
                y.alt.commit(y)
            else:
                self.unlink(True, y)
                y.at = None
                self.enter(y.v)
                core.push(y)
        self.note(True)

    def enter(self, v):
        if len(self.buf) >= self.size:
            n = self.size * 2
            more = deque((), n)
            while self.buf:
                more.append(self.buf.popleft())
            self.buf, self.size = more, n
        self.buf.append(v)
        self.note(False)

    def serve(self):
        """A slot is free for an extended read that waits for one."""
        while self.buf:
            x = self.first(False)
            if x is None:
                return
            self.hand(x, self.buf.popleft(), None)
            self.refill()
        if self.ended(False) and self.first(True) is None:
            self._tell(False)

    def pay(self, v, e):
        """The value for which a slot was kept is made, or (e) will never be."""
        self.owed -= 1
        if self.pz or (self.hr and not self.nr and self.first(False) is None):
            if e is None:
                self.dropped += 1
                self.lose(moved(v))
        else:
            if e is None:
                self.put(v, None)
            self.refill()
            self.serve()
        if self.hw and not self.nw and not self.buf and not self.owed:
            self._tell(False)

    def direct(self):
        """The reader who waits and to whom a value goes straight, past the buffer (1.5); an extended read needs a slot."""
        x = None if self.buf else self.first(False)
        if x is not None and isinstance(x, Node) and x.alt.ext and self.full():
            return None if self.cap or self.over else x
        return x

    def put(self, v, p):
        """A writer's value: True if it committed, HELD if it did and an extended read holds `p`, False if it must wait."""
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
        """Gives v to who waits in the readers' line."""
        if isinstance(x, Node):
            alt = x.alt
            if alt.ext:
                if self.cap or self.over:
                    alt.slot = True
                    self.held += 1
                elif p is not None:
                    alt.writer = p
            alt.v = keep(alt.p, v)
            alt.commit(x)
            return HELD if alt.ext and alt.writer else True
        self.unlink(False, x)
        x.v = keep(x, v)
        core.push(x)
        return True

    def claim(self):
        """For an output guard whose value is yet to be made: takes a reader or a slot; gives what to call with it, and the
        extended read that holds who calls it, or None."""
        x = None if self.buf else self.first(False)
        if x is None or self.cap or self.over:
            self.owed += 1
            return self.pay, None
        if isinstance(x, Node):
            alt = x.alt
            alt.withdraw()
            alt.won = x.i
            alt.pending = True
            return alt.given, alt if alt.ext else None
        self.unlink(False, x)
        return _Given(x).given, None

    # ends of the channel

    def lose(self, v):
        """A value that nobody gets: an end in it is retired (2.4)."""
        if isinstance(v, ENDS):
            v.retire()

    def _drop(self):
        while self.buf:
            self.dropped += 1
            self.lose(self.buf.popleft())

    def _tell(self, out):
        """The channel has ended for a line: all in it are told. One who is may take others out of it."""
        line, x = [], self.k.w if out else self.k.r
        while x is not None:
            line.append(x)
            x = x.nx
        for x in line:
            if isinstance(x, Node):
                x.alt.told(x)
            elif self.unlink(out, x):
                x.at = None
                fail(x, self.error(not out, x.v if out else None))

    def _left(self, out, died):
        """An end of side `out` is closed."""
        if out:
            self.nw -= 1
            self.dw = self.dw or died
            last = not self.nw
        else:
            self.nr -= 1
            self.dr = self.dr or died
            last = not self.nr
        if not last or self.pz:
            return
        self._look()
        if not out:
            self._drop()
            self._tell(True)
        elif not self.buf and not self.owed and self.first(True) is None:
            self._tell(False)
        else:
            self.note(False)


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


def fail(p, e):
    """The operation at which p waits raises e (an end that an operation met, rule 3.5)."""
    e.met = True
    if p.x.asked:
        p.at = REQ
    p.throw(e)
    core.push(p)


def moved(v):
    """The end that travels: its sender's is closed."""
    if isinstance(v, ENDS):
        new = type(v)(v.c)
        v.x = ("it was sent away", v.c.x)
        v.c = core.CLOSED
        return new
    return v


def keep(p, v):
    """An end is received: who receives it holds it (2.3)."""
    if isinstance(v, ENDS) and p is not None:
        v.h += 1
        p.x.ends.append(v)
    return v


def closed(end, what):
    return BadUse("%s: this end of channel %r is closed: %s" % (what, end.x[1].name, end.x[0]))


def where(p):
    return p.x.path if p is not None and p.x is not None else "ordinary code"


def begin(p, what):
    """Every operation that is not the core's begins so."""
    if p is None:
        raise BadUse("%s in ordinary code: start the network by run(...)" % what)
    if p.at is not None:
        if p.at is FLIGHT:
            p.at = None
            return
        if p.at is not REQ:
            raise BadUse("%s: %s: the write before it was not awaited" % (p.x.path, what))
        raise cancelled(p)


def cancelled(p):
    """The request to end is met: what to raise."""
    p.at = None
    p.x.asked = False
    e = Cancelled("%s was cancelled" % p.x.path)
    e.by, p.x.by = p.x.by, None
    return e


def resume(p):
    """An operation that had parked is over."""
    p.at = REQ if p.x.asked else None


def read(rd, p):
    """The core's hook: `(v,)`, or None when parked."""
    if p is not None and p.at is LATE:
        p.at = REQ
        return (p.v,)
    if p is None:
        if outsider():
            return outsider().read(rd)
        begin(p, "read")
    begin(p, "read")
    if rd.x:
        raise closed(rd, "%s: read" % p.x.path)
    c = rd.c.x
    if not c.pz:
        v = c.get(p, None)
        if v is LATER:
            p.at = rd
            return None
        if v is not NOTHING:
            return (v,)
    if c.ended(False):
        e = c.error(True)
        e.met = True
        raise e
    p.at = rd
    c.link(False, p)
    c.note(True)
    return None


def write(wr, v, p):
    """The core's hook: DONE or ONCE."""
    if p is None:
        if outsider():
            return outsider().write(wr, v)
        begin(p, "write")
    try:
        begin(p, "write")
    except Cancelled as e:
        e.value = v
        raise
    if wr.x:
        raise closed(wr, "%s: write" % p.x.path)
    c = wr.c.x
    if c.ended(True) and (c.pz or c.first(False) is None):
        e = c.error(False, v)
        e.met = True
        raise e
    done = c.put(v, p)
    if done is True:
        return core.DONE
    if done is HELD:
        p.at = HELD
        return core.ONCE
    if isinstance(v, ENDS):
        from ._alt import send

        return send(wr, v)
    p.at = wr
    p.v = v
    c.link(True, p)
    c.note(False)
    return core.ONCE


class Ext:
    """An extended read (1.6): holds the writer, or the slot, until its block ends."""

    ext = True
    live = True

    def __init__(self, rd):
        self.rd = rd
        self.writer = None
        self.slot = self.pending = False

    def note(self, node):
        pass

    def withdraw(self):
        self.c.unlink(False, self.node)

    def commit(self, node, ext=None):
        self.withdraw()
        core.push(self.p)

    def told(self, node):
        self.withdraw()
        self.p.at = None
        fail(self.p, self.c.error(True))

    def given(self, v, e):
        if e is None:
            self.v = keep(self.p, moved(v))
            core.push(self.p)
        else:
            self.p.at = None
            fail(self.p, e)

    async def __aenter__(self):
        p = self.p = core.cur()
        begin(p, "extended read")
        rd = self.rd
        if rd.x:
            raise closed(rd, "%s: extended read" % p.x.path)
        c = self.c = rd.c.x
        self.name = c.name
        v = NOTHING if c.pz else c.get(p, self.given, self)
        if v is NOTHING:
            if c.ended(False):
                e = c.error(True)
                e.met = True
                raise e
            self.node = Node(self, 0, c, False)
            c.link(False, self.node)
            c.note(True)
        elif v is not LATER:
            return v
        p.at = self
        await core.ONCE
        resume(p)
        return self.v

    async def __aexit__(self, *_):
        w, c = self.writer, self.c
        if w is not None:
            self.writer = None
            if w.at is HELD:
                w.at = REQ if w.x.asked else None
            core.push(w)
        if self.slot:
            self.slot = False
            c.held -= 1
            if not c.pz:
                c.refill()
                c.serve()


class _Iter:
    """`async for`: ends on Retired, and only on it (3.4)."""

    def __init__(self, rd):
        self.rd = rd

    def __anext__(self):
        return self

    def __iter__(self):
        return self

    __await__ = __iter__

    def __next__(self):
        try:
            return next(self.rd)
        except Retired as e:
            self.over(e)

    def throw(self, e, value=None, traceback=None):
        self.over(value or e)

    def over(self, e):
        if isinstance(e, Retired):
            raise StopAsyncIteration
        raise e


class _End:
    """What both kinds of ends have besides their operations."""

    def retire(self):
        shut(self, False, "it was retired")

    def die(self):
        shut(self, True, "its holder died")

    def poison(self, strength=1):
        if self.x:
            raise closed(self, "poison")
        self.c.x.poison(strength)


def shut(end, died, how):
    if not end.x:
        c = end.c.x
        end.x = (how, c)
        end.c = core.CLOSED
        c._left(isinstance(end, core.Wr), died)


class _Reader:
    retire = _End.retire
    die = _End.die
    poison = _End.poison

    def __aiter__(self):
        return _Iter(self)

    def extended(self):
        return Ext(self)


class _Writer:
    retire = _End.retire
    die = _End.die
    poison = _End.poison


def install(ended, failed):
    core.hooks(read, write, ended, failed)
    core.methods(_Reader, _Writer)


def retire(*ends):
    for end in ends:
        end.retire()


def poison(*ends, strength=1):
    for end in ends:
        end.poison(strength)
