"""Channels and their ends (rules 1 to 4): the operations at a plain rendezvous that the core does
not do itself. Buffers, and choices at a channel, are in _full.

Invariants
- A channel has a queue of waiting readers (`k.r` … `k.rt`) and one of waiting writers (`k.w` …
  `k.wt`), linked by `nx`, in order of arrival. A queue holds Procs and Nodes. A Node stands for a
  guard of a choice or for an extended read (`alt`).
- `k.ok` is False whenever a plain operation must check more than the head of a queue (`_look`);
  `k.q` is None whenever a plain operation at a channel with a buffer must check more than that head
  and the buffer.
- An operation that has committed is out of its queue. A Proc that has committed and is still held
  waits with `at` HELD.
- No process holds an end while the end is in a channel as a value or on its way: its `h` is 0, and
  the sender's copy is closed.
"""

import sys
from builtins import isinstance  # looking up a builtin name costs a board 1,500 instructions

from . import _core as core
from .errors import BadUse, Cancelled, PeerDied, Poisoned, Retired

REQ = "cancelled"  # `at` of a cancelled process that does not wait
HELD = "held"  # `at` of a process whose operation has committed but not yet returned
FLIGHT = "in flight"  # `at` of a process to which a Cancelled was thrown, whether raised or not
LATE = "late"  # `at` of a reader that was cancelled after it had got its value
NOTHING = object()
LATER = object()
ENDS = (core.Rd, core.Wr)
Proc = core.Proc


ours = None  # in a plain run: the Task with which _foreign has replaced asyncio's


def outsider():
    """Returns the module _aio if a task of asyncio calls, else None. _aio does the operations of
    tasks.
    """
    aio = sys.modules.get("asyncio.core")
    if aio is not None and getattr(aio, "cur_task", None) not in (None, ours):
        from . import _aio

        return _aio
    return None


def bad(which, *what):
    """Returns a BadUse with the sentence `which` of _sentences, or with its name if there is no
    memory to load that module.
    """
    try:
        from . import _sentences

        return BadUse(getattr(_sentences, which) % what)
    except MemoryError:
        return BadUse(which, what)


class Channel:
    """A channel (rule 1).

    Args:
        name: the name in reports and messages; by default "channel N".
        capacity: the size of the buffer; 0 is a rendezvous.
        overflow: "block", "drop_oldest", "drop_newest" or "unbounded" (1.4).
        immunity: poison of a smaller strength has no effect (4.4).

    Raises:
        BadUse: an argument is out of range.
    """

    count = 0
    # Most channels never change these defaults of the class. A field of an instance costs memory.
    imm = held = owed = dropped = mark = size = pz = nodes = cap = over = 0
    dr = dw = False  # an end of the readers, or of the writers, has died
    nr = nw = None  # the number of reader and writer ends; None if there never was one
    buf = ()

    def __init__(self, name=None, *, capacity=0, overflow="block", immunity=0):
        Channel.count += 1
        self.name = name or "channel %d" % Channel.count
        if immunity:
            self.imm = immunity
        if capacity != 0 or overflow != "block":
            from ._full import furnish

            self.k = core.Chan(self)
            furnish(self, capacity, overflow)
        else:
            self.k = core.Chan(self)
        self._look()

    def __repr__(self):
        return "<channel %r>" % self.name

    def _look(self):
        # A select that the native core performs alone is in no queue, and the code here does not
        # see it. Code that reads or sets a field of `k` causes an Alternative to take the place of
        # that select. So any state that such an Alternative examines must be changed only after
        # such an access.
        k = self.k
        k.r  # noqa: B018
        out = self.nodes or self.pz or self.nr == 0 or self.nw == 0
        k.ok = not (out or self.cap or self.over)
        if self.cap:
            k.q = None if out or self.over or self.held or self.owed else self.buf

    def reader(self):
        """Returns a new reader end. Raises Retired, Poisoned or PeerDied if the channel has ended
        (2.5).
        """
        if self.pz or self.nw == 0 or self.nr == 0:
            raise self.error(self.nw == 0)
        self.nr = (self.nr or 0) + 1
        return core.Rd(self.k)

    def writer(self):
        """Returns a new writer end. Raises Retired, Poisoned or PeerDied if the channel has ended
        (2.5).
        """
        if self.pz or self.nw == 0 or self.nr == 0:
            raise self.error(self.nr != 0)
        self.nw = (self.nw or 0) + 1
        return core.Wr(self.k)

    __pos__ = reader
    __neg__ = writer

    def stats(self):
        from ._full import Stats

        return Stats(self)

    def spoil(self, strength=1):
        if not isinstance(strength, int) or strength < 1:
            raise bad("STRENGTH", strength)
        if strength <= self.pz or strength < self.imm:
            return
        self.k.r  # noqa: B018 (a select of the native core becomes an Alternative, see _look)
        was, self.pz = self.pz, strength
        self._look()
        self._drop()
        if not was:
            self._tell(False)
            self._tell(True)

    poison = spoil  # Weft itself calls `spoil`: in weft.threads `poison` acquires the lock first

    def error(self, writers, value=None, guard=None):
        """Returns the error of an operation at a channel that has ended, because no writer is left,
        or no reader if `writers` is false.
        """
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
        """Returns whether the channel has ended for a write (`out`), or for a read that finds no
        value.
        """
        if self.pz:
            return True
        if out:
            return self.nr == 0
        return self.nw == 0 and not self.owed

    # The methods of the queues. `out` is True for the writers' queue.

    def link(self, out, x):
        k = self.k
        x.nx = None
        if x.__class__ is not Proc:
            self.nodes += 1
            self._look()
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
        if x.__class__ is not Proc:
            self.nodes -= 1
            if not self.nodes:
                self._look()
        return True

    # The next four methods serve a plain rendezvous with only Procs in its queues. _full replaces
    # them when a channel first needs more.

    def first(self, out):
        return self.k.w if out else self.k.r

    def note(self, out):
        pass

    def get(self, p, to):
        """Returns a value for the reader p, which reads now, or NOTHING if it must wait."""
        y = self.k.w
        return NOTHING if y is None else keep(p, self.taken(y))

    def put(self, v, p):
        """Accepts the value v of a writer. Returns True if the write has committed, or False if it
        must wait."""
        x = self.k.r
        return x is not None and self.passed(x, moved(v))

    def taken(self, y):
        """Removes y, a Proc that waits to write, returns its value, and resumes y."""
        self.unlink(True, y)
        y.at = None
        core.push(y)
        return y.v

    def passed(self, x, v):
        self.unlink(False, x)
        x.v = keep(x, v)
        core.push(x)
        return True

    # The following methods end a channel.

    def lose(self, v):
        """Drops a value that no reader receives: if it is an end, the end is retired (2.4)."""
        if isinstance(v, ENDS):
            v.retire()

    def _drop(self):
        while self.buf:
            self.dropped += 1
            self.lose(self.buf.popleft())

    def _tell(self, out):
        """Notifies all parties in a queue that the channel has ended for them. A party that is
        notified can remove others from the queue.
        """
        line, x = [], self.k.w if out else self.k.r
        while x is not None:
            line.append(x)
            x = x.nx
        for x in line:
            if x.__class__ is not Proc:
                x.alt.told(x)
            elif self.unlink(out, x):
                x.at = None
                fail(x, self.error(not out, x.v if out else None))

    def _left(self, out, died):
        """Handles the closing of a writer end (`out`) or of a reader end."""
        self.k.r  # noqa: B018 (as in spoil)
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


def fail(p, e):
    """Makes the operation at which p waits raise e, marked as met (rule 3.5)."""
    e.met = True
    if p.x.asked:
        p.at = REQ
    p.throw(e)
    core.push(p)


def moved(v):
    """Returns the value to send for v. If v is an end this is a new end, and v, the sender's, is
    closed.
    """
    if isinstance(v, ENDS):
        new = type(v)(v.c)
        v.x = ("it was sent away", v.c.x)
        v.c = core.CLOSED
        return new
    return v


def keep(p, v):
    """Returns the value v, which p receives. If v is an end, p holds it from now on (2.3)."""
    if isinstance(v, ENDS) and p is not None:
        v.h += 1
        p.x.ends.append(v)
    return v


def closed(end, what):
    """Returns a BadUse whose text says how `end` was closed; `what` is the operation."""
    return bad("CLOSED", what, end.x[1].name, end.x[0])


def begin(p, what):
    """Checks whether p may begin an operation; every operation that the core does not do itself
    calls begin() first. Raises Cancelled if p was asked to end, or BadUse.
    """
    if p is None:
        raise bad("ORDINARY", what)
    if p.at is not None:
        if p.at is FLIGHT:
            p.at = None
            return
        if p.at is not REQ:
            raise bad("UNAWAITED", p.x.where, what)
        raise cancelled(p)


def cancelled(p):
    """Returns the Cancelled for process p to raise. From then on p's request to end counts as
    served.
    """
    p.at = None
    p.x.asked = False
    e = Cancelled("%s was cancelled" % p.x.where)
    e.by, p.x.by = p.x.by, None
    return e


def resume(p):
    """Ends an operation at which p was parked."""
    p.at = REQ if p.x.asked else None


at_once = core.at_once


def turn(p, e=None):
    """Resumes p, or raises e in it, after all ready processes have run. Before that, p is not
    put into the run queue, because it might not have awaited the operation yet."""

    def go(_):
        resume(p)
        if e is None:
            core.push(p)
        else:
            fail(p, e)

    p.at = HELD
    t = Proc(None)
    t.go = go
    core.push(t)
    return core.ONCE


def read(rd, p):
    """The core calls read() for a read that it does not do itself. Returns `(v,)`, or None if p now
    waits."""
    if p is None:
        if outsider():
            return outsider().read(rd)
        begin(p, "read")
    if p.at is not None:
        if p.at is LATE:
            p.at = REQ
            return (p.v,)
        begin(p, "read")
    if rd.x:
        raise closed(rd, "%s: read" % p.x.where)
    c = rd.c.x
    if not c.pz:
        v = c.get(p, None)
        if v is LATER:
            p.at = rd
            return None
        if v is not NOTHING:
            if not at_once(p):
                return (v,)
            p.at, p.v = rd, v  # as if p had waited and a writer had arrived
            core.push(p)
            return None
    if c.ended(False):
        e = c.error(True)
        e.met = True
        if at_once(p):
            turn(p, e)
            return None
        raise e
    p.at = rd
    c.link(False, p)
    c.note(True)
    return None


def write(wr, v, p):
    """The core calls write() for a write that it does not do itself. Returns DONE, ONCE, or another
    awaitable."""
    if p is None:
        if outsider():
            return outsider().write(wr, v)
        begin(p, "write")
    if p.at is not None:
        try:
            begin(p, "write")
        except Cancelled as e:
            e.value = v
            raise
    if wr.x:
        raise closed(wr, "%s: write" % p.x.where)
    c = wr.c.x
    if c.ended(True) and (c.pz or c.first(False) is None):
        e = c.error(False, v)
        e.met = True
        if at_once(p):
            return turn(p, e)
        raise e
    done = c.put(v, p)
    if done is True:
        return turn(p) if at_once(p) else core.DONE
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


class _End:
    """The methods that reader ends and writer ends have besides read and write."""

    def retire(self):
        shut(self, False, "it was retired")

    def die(self):
        shut(self, True, "its holder died")

    def poison(self, strength=1):
        if self.x:
            raise closed(self, "poison")
        self.c.x.spoil(strength)


def shut(end, died, how):
    """Closes an end; `how` is the reason, for messages about later uses of the end."""
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
        from ._iter import Iter

        return Iter(self)

    def extended(self):
        from ._ext import Ext

        return Ext(self)


def strange(p, what):
    """The core calls strange() for a process that has suspended itself, but not by an operation of
    Weft: it has yielded `what`. Returns the error to raise in the process."""
    if p.x is None:
        return TypeError(what)
    if ours is not None and what is None:
        from ._foreign import renew

        renew()
        return bad("FOREIGN", p.x.where)
    return bad("STRANGE", p.x.where)


def install(ended, failed):
    core.hooks(read, write, ended, failed, strange)
    core.methods(_Reader, _End)


def retire(*ends):
    """Retires these ends: releases each of them (rule 3)."""
    for end in ends:
        end.retire()


def poison(*ends, strength=1):
    """Poisons the channels of these ends, with a strength of 1 or more (rule 4)."""
    for end in ends:
        end.poison(strength)
