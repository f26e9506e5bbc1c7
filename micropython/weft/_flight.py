"""Notes what coroutine processes do, for the flight recorder (flight.py).

Invariants
- Without `begin` no other module of Weft knows of this one. `begin` puts functions of this module
  in the place of some functions of _chan, _proc, _alt and others.
- From then on `ok` of every channel is False and `q` is None, so that the core gives each operation
  to `_read` or `_write`. Each process's generator is in a `_Seen`, through which all its steps go.
- `op` of a _Seen is the operation at which its process waits, or -1. An operation that need not
  wait is one event, OVER. One that waits is two, WAITS and GOES_ON.
- `noted` counts the events that were put into the ring, which keeps the last of them. While `on`
  is False, no event is put into the ring, and `lost` counts the events.
- A name keeps its number. A process that starts takes the number of a process with the same path
  that has ended, if there is one.
"""

import sys
from array import array
from builtins import BaseException, getattr, hasattr, isinstance  # for speed, as in _chan

from . import _chan, _proc
from . import _core as core
from ._core import DONE, ONCE, Rd, Wr, cur, push
from .errors import BadUse, PeerDied, Poisoned, Retired

try:
    from time import ticks_us
except ImportError:
    from time import monotonic_ns

    def ticks_us():
        return monotonic_ns() // 1000


START, END, WAITS, OVER, GOES_ON = 1, 2, 3, 4, 5
READ, WRITE, EXTENDED, SELECT_IN, SELECT_OUT, SELECT, SYNC, SLEEP, OTHER = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    10,
)
BUFFERED, DROPS = 1 << 24, 1 << 25
TICKS = (1 << 30) - 1  # a time in the ring is ticks_us() & TICKS, a small integer on every port

ring = None
mask = noted = lost = 0
on = False
hidden = None  # the function of the process that answers the PC, which is not recorded
people, places = [], []  # names of processes and channels, by their numbers
_limit = 0  # how many names each of these two can have
_channels = 0  # how many channels have numbers
_free = {}  # for each path of a process: the numbers that no process has now
_old_read = _old_write = _old_start = None
_patched = []
_package = __name__.rpartition(".")[0]


def begin(events, names):
    """Begins to note, with room for so many events and names."""
    global ring, mask, on, _limit, _old_read, _old_write, _old_start
    ring = array("I", bytes(16 * events))
    mask, _limit = events - 1, names
    _old_read, _old_write, _old_start = _chan.read, _chan.write, _proc.Process.start
    _chan.read, _chan.write = _read, _write
    core.hooks(_read, _write, _proc.ended, _proc.failed, _chan.strange)
    channel = _chan.Channel
    channel._look, channel.flat, channel.flight, channel.kind = _look, False, None, 0
    _proc.Process.start = _start
    _counted(_chan)
    _more()
    on = True


def note(who, place, what):
    global noted, lost
    if not on:
        lost += 1
        return
    r, i = ring, (noted & mask) << 2
    r[i] = ticks_us() & TICKS
    r[i + 1] = who
    r[i + 2] = place
    r[i + 3] = what
    noted += 1


class _Seen:
    """Wraps the generator of a process, to note its steps."""

    op = -1
    turned = False  # the operation is over, and the process waits only for its turn
    why = 0  # if `turned`: the outcome of the operation
    at = c = None

    def __init__(self, g, who, path):
        self.g, self.who, self.path, self.go = g, who, path, g.send

    def send(self, v):
        op = self.op
        if op >= 0:
            if op < 2:
                self.op = -1
                c = self.c
                note(self.who, c.flight, c.kind | GOES_ON | op << 8)
            else:
                self.goes_on(None)
        try:
            y = self.go(v)
        except BaseException as e:
            self.ends(e)
        if self.op < 0:
            self.parks()
        return y

    def throw(self, e):
        if self.op >= 0:
            self.goes_on(e)
        try:
            y = self.g.throw(e)
        except BaseException as e:
            self.ends(e)
        if self.op < 0:
            self.parks()
        return y

    def ends(self, e):
        note(self.who, 0, END | _ended(e) << 8)
        _free[self.path].append(self.who)
        raise e

    def parks(self):
        """Notes where the process waits, unless it waits at a channel."""
        if self.turned:
            self.turned = False
            return
        p = cur()
        at = p and p.at
        # If `at` is text, the process waits for its turn. If `at` is an end, a module has done this
        # read or write without the functions below.
        if at is not None and not isinstance(at, (str, core.Rd, core.Wr)):
            self.waits_at(at)
        if len(_patched) < len(LATER):
            _more()

    def waits(self, op, c):
        self.op, self.c = op, c
        note(self.who, c.flight if c else 0, WAITS | op << 8 | (c.kind if c else 0))

    def waits_at(self, at):
        self.at = at
        if hasattr(at, "nodes") or hasattr(at, "plain"):  # a select, here or over a link
            self.waits(SELECT, None)
        elif hasattr(at, "rd"):
            self.waits(EXTENDED, _known(at.c))
        elif hasattr(at, "slept"):
            self.waits(SLEEP, None)
        else:
            self.waits(SYNC if hasattr(at, "parties") else OTHER, None)

    def goes_on(self, e):
        op, c, at = self.op, self.c, self.at
        self.op, self.c, self.at = -1, None, None
        if op == SELECT and e is None:
            if hasattr(at, "nodes"):
                op, c = _chosen(at)
            elif at.won >= 0:
                c, writes = at.at[at.won]
                op = SELECT_OUT if writes else SELECT_IN
        if e is None:
            e = getattr(at, "e", None)
        self.event(GOES_ON, op, c, _status(e))

    def event(self, kind, op, c, status):
        what = kind | op << 8 | status << 16
        if c is None:
            note(self.who, 0, what)
        else:
            _known(c)
            note(self.who, c.flight, what | c.kind)


def _seen(p):
    g = getattr(p, "g", None)
    return g if isinstance(g, _Seen) else None


def _known(c):
    """Gives channel `c` a number, if it has none. Returns c."""
    if c.flight is None:
        global _channels
        _channels += 1
        c.flight = _channels
        if len(places) < _limit:
            places.append(c.name)
        if c.over in (1, 2):
            c.kind = BUFFERED | DROPS
        elif c.cap or c.over:
            c.kind = BUFFERED
    return c


def _status(e):
    """Returns the outcome of an operation that raises `e`, by the numbers of weft::Status."""
    if e is None:
        return 0
    if isinstance(e, Retired):
        return 2
    if isinstance(e, Poisoned):
        return 3
    return 4 if isinstance(e, PeerDied) else 5


def _ended(e):
    """Returns how a process ended that raised `e`, by the numbers of docs/flight.md."""
    if isinstance(e, StopIteration):
        return 0
    if not _proc.quiet(e):
        return 4
    return 1 if isinstance(e, Retired) else 2 if isinstance(e, Poisoned) else 3


def _chosen(alt):
    n = alt.nodes[alt.won]
    if n.kind > 1:
        return SELECT, None
    return (SELECT_OUT if n.out else SELECT_IN), n.c


# --- what takes the place of functions of other modules


def _start(self, party):
    _old_start(self, party)
    _more()
    k = self.k
    if self.fn is hidden:
        return
    for end in self.ends:
        end.c.x._look()  # a channel may have been made before record()
    path = party.path() + "/" + self.name
    free = _free.get(path)
    if free is None:
        free = _free[path] = []
    if free:
        who = free.pop()
    else:
        if len(people) < _limit:
            people.append(path)
        who = len(people)
    k.start(_Seen(k.g, who, path))
    note(who, 0, START)


def _look(self):
    k = self.k
    k.r  # noqa: B018 (a select that the native core does becomes an Alternative)
    k.ok = False
    k.q = None
    self.flat = not (self.pz or self.nodes or self.nr == 0 or self.nw == 0 or self.cap or self.over)
    _known(self)


_uncounted = False


def _counted(module):
    """Notes which operations are over, though their processes wait for their turns (rule 7.7)."""
    count, turn = core.at_once, module.turn

    def at_once(p):
        if _uncounted or not count(p):
            return False
        s = _seen(p)
        if s:
            s.turned, s.why = True, 0
        return True

    def turns(p, e=None):
        s = _seen(p)
        if s:
            s.why = _status(e)
        return turn(p, e)

    module.at_once, module.turn = at_once, turns


def _read(rd, p):
    s = p.g if p else None
    if s.__class__ is not _Seen or s.op >= 0:
        return _old_read(rd, p)
    k = rd.c
    c = k.x
    if p.at is None and c and c.flat:  # as the core does it: _plain.Rd.__next__
        w = k.w
        if w is None:
            p.at = rd
            p.nx = None
            w = k.r
            if w is None:
                k.r = p
            else:
                (k.rt if w.nx else w).nx = p
                k.rt = p
            s.op = READ
            s.c = c
            note(s.who, c.flight, WAITS)
            return None
        k.w = w.nx
        w.at = None
        push(w)
        note(s.who, c.flight, OVER)
        return (w.v,)
    if p.at is _chan.LATE:
        return _old_read(rd, p)
    return _other(s, READ, rd.channel, _old_read, (rd, p))


def _write(wr, v, p):
    s = p.g if p else None
    if s.__class__ is not _Seen or s.op >= 0:
        return _old_write(wr, v, p)
    k = wr.c
    c = k.x
    kind = v.__class__
    if p.at is None and c and c.flat and kind is not Rd and kind is not Wr:
        r = k.r
        if r is None:
            p.at = wr
            p.v = v
            p.nx = None
            r = k.w
            if r is None:
                k.w = p
            else:
                (k.wt if r.nx else r).nx = p
                k.wt = p
            s.op = WRITE
            s.c = c
            note(s.who, c.flight, WAITS | WRITE << 8)
            return ONCE
        k.r = r.nx
        r.v = v
        push(r)
        note(s.who, c.flight, OVER | WRITE << 8)
        return DONE
    return _other(s, WRITE, wr.channel, _old_write, (wr, v, p))


def _other(s, op, c, do, args):
    """Does a read or a write that is not a plain one."""
    global _uncounted
    _known(c)
    _uncounted = c.flat
    try:
        got = do(*args)
    except BaseException as e:
        if not isinstance(e, BadUse):
            s.event(OVER, op, c, _status(e))
        raise e
    finally:
        _uncounted = False
    if s.turned:
        s.event(OVER, op, c, s.why)
    elif got is None or got is not DONE and op == WRITE:
        s.waits(op, c)
    else:
        s.event(OVER, op, c, 0)
    return got


def _alt(m):
    """Notes selects that need not wait; _Seen notes those that wait."""
    take = m.Alt.take

    def seen_take(self, i, p):
        waits = take(self, i, p)
        s = None if waits else _seen(p)
        if s:
            op, c = _chosen(self)
            s.event(OVER, op, c, _status(self.e))
        return waits

    m.Alt.take = seen_take
    _counted(m)


def _standing(m):
    def step(self):  # without the quick path of Alternative.__next__
        if self.steps is None:
            self.steps = self.selecting()
            if hasattr(self.steps, "__await__"):  # CPython
                self.steps = self.steps.__await__()
        return self.steps.send(None)

    m.Alternative.__next__ = step


def _ext(m):
    enter = m.Ext.__aenter__

    async def __aenter__(self):
        s = _seen(cur())
        n = noted
        v = await enter(self)
        if s and n == noted:  # it did not wait
            s.event(OVER, EXTENDED, self.c, 0)
        return v

    m.Ext.__aenter__ = __aenter__


def _wait(m):
    sync = m.Barrier.sync

    async def seen_sync(self):
        s = _seen(cur())
        n = noted
        await sync(self)
        if s and n == noted:
            s.event(OVER, SYNC, None, 0)

    m.Barrier.sync = seen_sync


def _link(m):
    enter = m.Link.__aenter__

    async def __aenter__(self):
        await enter(self)
        _proc.Process(hidden, (self,), {}).start(_proc._run)
        return self

    m.Link.__aenter__ = __aenter__


LATER = (
    ("_alt", _alt),
    ("_standing", _standing),
    ("_ext", _ext),
    ("_wait", _wait),
    ("link", _link),
)


def _more():
    """Patches the modules that were loaded since the last call."""
    for name, see in LATER:
        m = sys.modules.get(_package + "." + name)
        if m is not None and name not in _patched:
            _patched.append(name)
            see(m)
