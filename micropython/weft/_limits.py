"""Time limits as scopes (rule 7.12).

Invariants
- `limits` of a process has the scopes it is in, the outermost first; `depth` is a scope's place there.
- A scope asks its process to end once. The process records who asked (`by`, or `flight.by` once the
  Cancelled is thrown). Of several requests that were not met, the outermost scope's counts;
  somebody else's counts before any scope's.
"""

from . import _core as core
from . import _time
from ._chan import FLIGHT, REQ
from .errors import BadUse, Cancelled, TimeoutError


class Limit:
    """What `async with` gives. `expired`: inside the block, whether its time has come; after the
    block, whether it ended the block."""

    proc = None
    expired = False
    lost = False  # another request took the place of its own

    def __init__(self, t, quiet):
        self.t, self.quiet = t, quiet

    def __repr__(self):
        return "limit"

    def enter(self, proc):
        if self.proc is not None:
            raise BadUse("a limit is entered once: make another")
        self.proc = proc
        self.depth = len(proc.limits)
        proc.limits = proc.limits + (self,)
        self.arm()
        return self

    def arm(self):
        if self.t is None:
            return
        if self.t <= _time.now_ms():
            self.fire()
        else:
            _time.arm(self)

    def fire(self):
        self.expired = True
        self.proc.ask(self)

    def taken_back(self):
        """Takes back its request, if that was not met. True: it has."""
        p = self.proc
        if not p.asked or p.by is not self:
            return False
        p.asked = False
        p.by = None
        if p.k.at is REQ:
            p.k.at = None
        return True

    def reschedule(self, seconds):
        """Sets another time, in seconds from now; None: never. Bad use once the request was met."""
        if self.expired and not self.lost and not self.taken_back():
            raise BadUse("reschedule: the limit has ended its block")
        self.expired = self.lost = False
        _time.disarm(self)
        self.t = later(seconds)
        self.arm()

    def leave(self, proc, error):
        """The block is left. True: by this limit's own Cancelled, which ends here."""
        if not proc.limits or proc.limits[-1] is not self:
            raise BadUse("a limit is left in the process that entered it, the innermost first")
        proc.limits = proc.limits[:-1]
        if self.t is not None:
            _time.disarm(self)
        if proc.k.at is FLIGHT:  # it was met: the process runs
            proc.k.at = None
        self.taken_back()
        self.expired = isinstance(error, Cancelled) and error.by is self
        if self.expired and not self.quiet:
            raise TimeoutError("the time of the block was over")
        return self.expired

    async def __aenter__(self):
        return self.enter(here())

    async def __aexit__(self, kind, error, tb):
        return self.leave(here(), error)


def overtaken(it, by):
    """`it` has a request that was not met yet, and now comes another, for the limit `by` (None: for
    somebody else): the outermost's stays."""
    least = it.by
    if least is not None and (by is None or by.depth < least.depth):
        it.by = by
    else:
        least = by
    if least is not None:
        least.lost = True


def here():
    p = core.cur()
    if p is None:
        raise BadUse("a limit is for processes: start the network by run(...)")
    return p.x


def later(seconds):
    if seconds is None:
        return None
    n = _time.ms(seconds)
    return n if n >= _time.FAR else _time.now_ms() + n


class _Late(Limit):
    """A limit whose seconds count from when it is entered."""

    def enter(self, proc):
        self.t = later(self.t)
        return super().enter(proc)


def timeout(seconds):
    """`async with timeout(s)`: after s seconds (None: never) the block gives up what it waits for,
    and TimeoutError is raised."""
    return _Late(seconds, False)


def move_on_after(seconds):
    """As timeout, but raises nothing."""
    return _Late(seconds, True)


def deadline(t):
    """As timeout; `t` in seconds of the run's clock, as now()."""
    return Limit(None if t is None else _time.ms(t), False)
