"""Choice (rule 5): guards and select. The standing Alternative is in _standing.

Invariants
- An Alt is `live` from its enrolment to its commit. Only a live Alt may be committed by a partner.
  `commit` takes all its nodes out of their queues. The nodes of a standing Alternative stay in
  their queues, and are skipped while the Alternative is not live.
- `won` is the index of the guard that committed, or -1; `v` is its value and `e` its error.
- A retired guard is `gone` for the select that waits: it is in no queue, and never ready (5.6).
- A `quick` Alt is a waiting select whose guards are all inputs that are on and not gone. Its
  readers were plain and open when it began to wait. `spare` has a few quick Alts whose selects
  have ended; the next such selects use them again.
"""

import random
from builtins import id, isinstance, len, range

from . import _core as core
from . import _time as time
from ._chan import HELD, LATER, NOTHING, at_once, begin, closed, resume, turn
from ._core import Rd, Wr
from ._full import Node
from .errors import BadUse

try:
    from micropython import const  # the compiler puts these numbers into the code
except ImportError:
    const = int

IN = const(0)
OUT = const(1)
TIME = const(2)
SKIP = const(3)
SYNC = const(4)
END = const(5)
KINDS = ("input", "output", "timeout", "skip", "barrier", "the end of")
_NO = const(0)  # the states of a guard
READY = const(1)
ENDED = const(2)
SILENT = const(3)
_AWAY = const(4)
_PAST = const(5)
unlocked = None  # weft.threads sets it to a function that calls user code with the lock released
MODES = ("fair", "priority", "random")
WAITS = -2  # a result of plain()
spare = []


def where(p):
    """Returns the path of process `p`, for messages."""
    return p.x.where if p is not None and p.x is not None else "ordinary code"


def refusal(why):
    return BadUse("%s: select: %s" % (where(core.cur()), why))


class Guard:
    """A guard of a select; `when(condition)` returns a copy of it that is on or off."""

    def __init__(self, kind, end=None, v=None, make=None, ended="silent"):
        self.kind, self.end, self.v, self.make = kind, end, v, make
        self.on, self.loud = True, loud(ended)

    def when(self, condition):
        g = Guard(self.kind, self.end, self.v, self.make)
        g.on, g.loud = bool(condition), self.loud
        return g


def loud(ended):
    if ended not in ("silent", "raise"):
        raise BadUse('ended is "silent" or "raise", not %r' % (ended,))
    return ended == "raise"


def Input(reader, ended="silent"):
    """Returns an input guard at `reader`. `ended` is "silent", or "raise" for a select that raises
    Retired as soon as this channel retires."""
    if not isinstance(reader, Rd):
        raise BadUse("an input guard needs a reader, not %r" % (reader,))
    return Guard(IN, reader, ended=ended)


def Output(writer, value=None, make=None, ended="silent"):
    """Returns an output guard at `writer` with a value. If `make` is given, `make()` makes the
    value after the commit (5.8). `ended` is as for Input."""
    if not isinstance(writer, Wr):
        raise BadUse("an output guard needs a writer, not %r" % (writer,))
    return Guard(OUT, writer, value, make, ended)


def after(seconds):
    """Returns a guard that is ready `seconds` after the select began."""
    return Guard(TIME, None, time.ms(seconds))


def at(time):
    """Returns a guard that is ready at `time`, in seconds of the run's clock."""
    g = after(time)
    g.end = time
    return g


def skip():
    """Returns a guard that is always ready."""
    return Guard(SKIP)


class Alt:
    """A select. `ended` is as for Input, and holds for all guards."""

    # A field of an instance costs time; a field that a partner sets must be there, since there might
    # be no memory for it.
    ext = live = standing = hold_in = hold_out = quick = False
    writer = holder = p = t = None  # holder: the extended read for which this select makes a value
    rot = 0

    def __init__(self, guards, ended):
        every = loud(ended)
        self.nodes = []
        self.won = -1
        self.v = self.e = self.to = None
        for i, g in enumerate(guards):
            end = g
            if isinstance(g, Rd):
                kind, g = IN, None
            elif isinstance(g, Guard):
                kind, end = g.kind, g.end
            elif hasattr(g, "parties"):
                kind, g = SYNC, None
            else:
                raise BadUse("guard %d cannot be %r (a writer needs Output)" % (i, g))
            n = Node(self, i, None, kind == OUT)
            n.kind, n.end = kind, end
            if g:
                n.v, n.make, n.on, n.loud = g.v, g.make, g.on, g.loud
            if every:
                n.loud = True
            if kind < TIME:
                n.c = end.channel
            self.nodes.append(n)

    def check(self):
        """Raises BadUse if the guards that are on cannot be selected together (5.5)."""
        marks, some = (), False
        Alt.mark += 4
        for n in self.nodes:
            if not n.on:
                continue
            some = True
            end = n.end
            if n.kind == SYNC:
                if end in marks:
                    raise refusal("one barrier twice")
                if not end.parties:
                    raise refusal("nobody is enrolled at the barrier")
                marks += (end,)
            elif n.kind == END:
                p = core.cur()
                if p is not None and p.x is end:
                    raise refusal("a process cannot wait for its own end")
            elif n.kind < TIME:
                c = n.c
                if end.x:
                    raise closed(end, "%s: select, guard %d" % (where(core.cur()), n.i))
                if c.mark == Alt.mark + 1 - n.kind:
                    raise refusal("both ends of channel %r in one choice" % c.name)
                c.mark = Alt.mark + n.kind
        if not some:
            raise refusal("no guard, or none that is on")

    mark = 0

    # The following methods find out which guards are ready.

    def state(self, n):
        k = n.kind
        if k < TIME:
            c = n.c
            if c.pz:
                return ENDED
            if k == IN:
                if c.buf or c.first(True) is not None:
                    return READY
            elif c.nr == 0:
                if not c.cap and not c.over and c.first(False) is not None:
                    return READY
            elif c.cap or c.over:
                if c.over or not c.full() or (not n.make and c.direct()):
                    return READY
            elif c.first(False) is not None:
                return READY
            if not c.ended(k):
                return _NO
            return ENDED if n.loud or (c.dr if k else c.dw) else SILENT
        if k == SKIP:
            return _AWAY
        if k == SYNC:
            return READY if n.end.lacks() == 1 else _NO
        if k == END:
            return READY if n.end.over() else _NO
        if n.end is None:
            return _AWAY if n.v <= 0 else _NO
        return _PAST if n.v <= time.now_ms() else _NO

    def retired(self, n):
        return n.gone or self.state(n) == SILENT

    def whole(self):
        """Returns whether all guards that decide have retired, and no guard holds the select open
        (5.6)."""
        out = sync = False
        for n in self.nodes:
            if n.on:
                out = out or n.kind == OUT
                sync = sync or n.kind >= SYNC
        if sync and not out:
            return False
        some = opens = False
        for n in self.nodes:
            if n.on and n.kind < TIME:
                if (n.kind == OUT) == out:
                    some = True
                    if not self.retired(n):
                        return False
                elif n.kind == IN and not self.retired(n):
                    opens = True
        return some and not self.hold_in and not (self.hold_out and opens)

    def decides(self, n):
        for m in self.nodes:
            if m.on and m.kind == OUT:
                return n.kind == OUT
        return n.kind == IN

    def holds(self):
        """Notes, at the beginning of the select, whether guards that are off hold it open (5.6)."""
        self.hold_in = self.hold_out = timed = False
        for n in self.nodes:
            if n.on:
                timed = timed or n.kind in (TIME, SKIP)
            elif n.kind < TIME and not n.end.x and self.state(n) not in (ENDED, SILENT):
                if n.kind == OUT:
                    self.hold_out = True
                else:
                    self.hold_in = True
        self.hold_in = self.hold_in and timed

    def scan(self, mode):
        nodes, size = self.nodes, len(self.nodes)
        away = past = -1
        ready = [] if mode == "random" else None
        whole = None
        start = 0 if mode == "priority" else self.rot
        for j in range(size):
            i = start + j
            if i >= size:
                i -= size
            n = nodes[i]
            if not n.on:
                continue
            s = self.state(n)
            if s == SILENT:
                if whole is None:
                    self.holds()
                    whole = self.whole()
                if whole and self.decides(n):
                    s = ENDED
            if s == READY or s == ENDED:
                if ready is None:
                    return i
                ready.append(i)
            elif s == _AWAY:
                if mode == "priority":
                    return i
                if away < 0:
                    away = i
            elif s == _PAST and past < 0:
                past = i
        if ready:
            return random.choice(ready)
        return away if away >= 0 else past

    # The following methods commit the select.

    def take(self, i, p):
        """Commits to guard i immediately: the process runs, and the select is in no queue. Returns
        True if the process must wait after the commit."""
        n = self.nodes[i]
        if n.kind < TIME and n.end.x:
            raise closed(n.end, "%s: select, guard %d" % (where(p), i))
        self.won, self.p = i, p
        if n.kind == SYNC:
            n.end.release()
        elif n.kind == END:
            self.v = n.end.over()
        if n.kind >= TIME:
            return False
        c = n.c
        if n.kind == IN:
            v = NOTHING if c.pz else c.get(p, self.given)
            if v is LATER:
                return True
            if v is not NOTHING:
                self.v = v
                return False
        elif not c.pz and (self.state(n) == READY):
            if n.make:
                to, ext = c.claim()
                self.deliver(n, to)
                if ext is None:
                    return False
                ext.writer = p
                return True
            if c.put(n.v, p) is HELD:
                return True
            return False
        self.e = c.error(n.kind == IN, n.v if n.kind else None, i)
        return False

    def deliver(self, n, to):
        """Makes the value of the output guard n, which has committed, and calls to(v, None) (5.8).
        If make() fails, calls to(None, PeerDied) and raises the error."""
        try:
            v = unlocked(n.make) if unlocked else n.make()
        except BaseException as e:
            from .errors import PeerDied

            dead = PeerDied("the value for channel %r could not be made" % n.c.name)
            dead.channel = n.c
            to(None, dead)
            raise e
        to(v, None)

    def commit(self, n, ext=None):
        """Commits this waiting select to guard n; a partner calls commit(). If the partner is the
        extended read `ext`, the select's process is held by it."""
        self.withdraw()
        self.won = n.i
        if ext:
            ext.writer = self.p
            self.p.at = HELD
        else:
            core.push(self.p)

    def given(self, v, e):
        """Receives the value or the error for which this select has waited since its commit."""
        from ._chan import keep, moved

        if e is None:
            self.v = keep(self.p, moved(v))
        else:
            e.guard = self.won
            self.e = e
        core.push(self.p)

    def fire(self):
        """Commits to the first guard whose deadline has passed."""
        best = None
        for n in self.nodes:
            if n.on and n.kind == TIME and self.due(n) == self.t and best is None:
                best = n
        self.commit(best)

    def due(self, n):
        return n.v if n.end is not None else self.begun + n.v

    def told(self, n):
        """Handles the end of the channel of guard n: commits to n, or marks n as gone."""
        if not self.live or not n.on or n.gone:
            self.note(n)
            return
        c = n.c
        if c.pz or n.loud or (c.dr if n.kind else c.dw):
            self.finish(n)
            return
        n.gone = True
        self.quick = False
        if not self.standing:
            c.unlink(n.out, n)
        self.note(n)
        if self.whole():
            for m in self.nodes:
                if m.on and m.gone and self.decides(m):
                    self.finish(m)
                    return

    def finish(self, n):
        self.e = n.c.error(n.kind == IN, n.v if n.kind else None, n.i)
        self.commit(n)

    def note(self, n):
        pass

    # The following methods wait.

    def enrol(self, p):
        self.p = p
        self.holds()
        self.live = True
        self.t = None
        self.begun = time.later(1) - 1  # so no timer is early, whatever time a guard adds
        for n in self.nodes:
            if not n.on:
                continue
            if n.kind < TIME:
                if not self.standing:
                    n.gone = self.state(n) == SILENT
                    if n.gone:
                        continue
                    n.c.link(n.out, n)
                n.c.note(not n.out)
            elif n.kind >= SYNC:
                n.end.enter(n)
            elif n.kind == TIME:
                t = self.due(n)
                if self.t is None or t < self.t:
                    self.t = t
        if self.t is not None:
            time.arm(self)
        p.at = self

    def withdraw(self):
        self.live = False
        if self.t is not None:
            time.disarm(self)
        for n in self.nodes:
            if self.quick:
                n.c.unlink(False, n)
            elif n.kind < TIME:
                if not self.standing and n.on and not n.gone:
                    n.c.unlink(n.out, n)
            elif n.kind >= SYNC and n.on:
                n.end.leave(n)

    def give_up(self, p):
        if not self.live:
            return False
        self.withdraw()
        return True

    async def outcome(self, i, p):
        """Commits to guard i or, if i is -1, waits until a partner commits the select. Returns the
        guard's index and its value."""
        self.won, self.e, self.v = -1, None, None
        if i < 0:
            self.enrol(p)
            await core.ONCE
            resume(p)
        elif self.take(i, p):
            p.at = self
            await core.ONCE
            resume(p)
        elif at_once(p):
            await turn(p)
        n = self.nodes[self.won]
        if self.to and n.make and self.e is None:
            to, self.to = self.to, None
            self.deliver(n, to)
            ext, self.holder = self.holder, None
            if ext is not None:
                ext.writer = p
                p.at = self
                await core.ONCE
                resume(p)
        if self.e is not None:
            e, self.e = self.e, None
            e.met = True
            raise e
        v, self.v = self.v, None
        return self.won, v


async def select(*guards, mode="fair", ended="silent"):
    """Waits for one of the guards, and returns (index, value); the value is None but for an input.

    Args:
        mode: "fair", "priority" or "random" (5.4).
        ended: as for Input, for all guards.

    Raises:
        Poisoned, PeerDied, Retired: the channel of the chosen guard has ended (5.6).
        BadUse: no guard is on, or the guards cannot be selected together (5.5).
    """
    p = core.cur()
    if p is None:
        from ._chan import outsider

        if outsider():
            return await outsider().select(guards, mode, ended)
    if p is None or p.at is not None:
        begin(p, "select")
    rots, rot = None, 0
    n = key = len(guards)
    if mode == "fair":
        if n:
            rots = p.x.rots
            if rots is None or len(rots) > 8:
                rots = p.x.rots = {}
            g, last = guards[0], guards[-1]
            key += id(g) ^ id(last)
            if last.__class__ is Rd and g.__class__ is Rd:  # much quicker than isinstance
                rot = rots.get(key, 0)
                i = plain(guards, rot) if ended == "silent" else -1
                if i >= 0:
                    rots[key] = i + 1 if i + 1 < n else 0
                    k = guards[i].c
                    w = k.w
                    k.w = w.nx
                    w.at = None
                    core.push(w)
                    return i, w.v
                if i == WAITS:
                    alt = waiting(guards, p)
                    await core.ONCE
                    rots[key] = alt.won + 1 if alt.won + 1 < n else 0
                    return _chosen(alt, p)
            else:
                if isinstance(g, Guard) or isinstance(last, Guard):
                    # A program can make new guards for each select, so the key is made of the ends.
                    key = n + sum([id(g.end) if isinstance(g, Guard) else id(g) for g in guards])
                rot = rots.get(key, 0)
    elif mode not in MODES:
        raise BadUse("mode is one of %s, not %r" % (", ".join(MODES), mode))
    alt = Alt(guards, ended)
    alt.check()
    alt.rot = rot
    try:
        return await alt.outcome(alt.scan(mode), p)
    finally:
        if rots is not None and alt.won >= 0:
            rots[key] = (alt.won + 1) % len(guards)


def plain(guards, rot):
    """Returns the index of the first guard, from `rot` on, at which a writer waits. Returns WAITS
    if all guards are plain open readers and no writer waits, or -1 if the select needs more than
    this. A select that need not wait allocates nothing."""
    n, reader = len(guards), Rd
    for i in range(rot, rot + n):
        if i >= n:
            i -= n
        g = guards[i]
        if g.__class__ is not reader or not g.c.ok:
            return -1
        if g.c.w is not None:
            for g in guards:
                if g.__class__ is not reader or g.x:
                    return -1
            return i
    return WAITS


def waiting(guards, p):
    """Makes p wait for one of the guards; plain() has returned WAITS for them. Returns the Alt."""
    if spare and len(spare[-1].nodes) == len(guards):
        alt = spare.pop()
        alt.won = -1
    else:
        alt = Alt(guards, "silent")
        alt.quick = True
    alt.p = p
    alt.live = True
    i = 0
    for n in alt.nodes:
        g = n.end = guards[i]
        i += 1
        n.c = g.c.x
        n.c.link(False, n)
    p.at = alt
    return alt


async def send(wr, v):
    """Writes the channel end `v`, where the write must wait. The write is a choice with one guard,
    because the end moves only when the write commits (2.4)."""
    from .errors import Cancelled

    p = core.cur()
    alt = Alt((Output(wr, v),), "raise")
    try:
        await alt.outcome(-1, p)
    except Cancelled as e:
        e.value = v
        raise
    except Exception as e:
        e.guard = None
        raise


def __getattr__(name):
    """Loads the standing Alternative when it is first named."""
    if name != "Alternative":
        raise AttributeError(name)
    from ._standing import Alternative

    return Alternative


def _settle(guards, p, won, v):
    """Puts an Alternative in the place of a select that the native core performs: p then waits at
    the Alternative, or the Alternative has committed to the guard `won`, with the value v."""
    alt = Alt(guards, "silent")
    if won < 0:
        alt.enrol(p)
    else:
        alt.won, alt.v, alt.p = won, v, p
        p.at = alt
    return alt


def _chosen(alt, p):
    """Ends the wait of p at this Alternative."""
    resume(p)
    if alt.e is not None:
        alt.e.met = True
        raise alt.e
    v, alt.v, alt.p = alt.v, None, None
    # A list of up to four needs no new memory. The Alt of a large select would keep much memory.
    if alt.quick and len(spare) < 4 and len(alt.nodes) < 9:
        spare.append(alt)
    return alt.won, v


if hasattr(core, "choices"):
    core.choices(select, _settle, _chosen)
    select = core.select
