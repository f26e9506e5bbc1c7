"""Limits of time as scopes (rule 7.12).

Invariants
- `limits` of a process has the scopes it is in, the outermost first; `depth` is a scope's place there.
- A scope asks its process once (`asked`). The request is the process's (`by`, or `flight.by` once it is on its way), and of several
  that were not met the outermost scope's, or an outsider's.
"""

from . import _core as core
from . import _time
from ._chan import FLIGHT, REQ
from .errors import BadUse, Cancelled, TimeoutError


class Limit:
    """`async with` gives it. `expired`: in the block, has it asked; after it, was the block ended by it."""

    proc = None
    expired = False
    lost = False  # another's request took the place of its own

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
        """Its request, if it was not met: is it taken back?"""
        p = self.proc
        if not p.asked or p.by is not self:
            return False
        p.asked = False
        p.by = None
        if p.k.at is REQ:
            p.k.at = None
        return True

    def reschedule(self, seconds):
        """Another time, in seconds from now; None: never. Bad use once the request was met."""
        if self.expired and not self.lost and not self.taken_back():
            raise BadUse("reschedule: the limit has ended its block")
        self.expired = self.lost = False
        _time.disarm(self)
        self.t = later(seconds)
        self.arm()

    def leave(self, proc, error):
        """True: its own Cancelled ends here."""
        if not proc.limits or proc.limits[-1] is not self:
            raise BadUse("a limit is left in the process that entered it, the innermost first")
        proc.limits = proc.limits[:-1]
        if self.t is not None:
            _time.disarm(self)
        if proc.k.at is FLIGHT:  # it was met: this runs
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
    """`it`, a request that was not met yet, and another for the limit `by` (None: somebody else's): the outermost's stays."""
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
    """Its seconds count from where it is entered."""

    def enter(self, proc):
        self.t = later(self.t)
        return super().enter(proc)


def timeout(seconds):
    """`async with timeout(s)`: what the block waits for is given up after s seconds; TimeoutError then. None: never."""
    return _Late(seconds, False)


def move_on_after(seconds):
    """As timeout, and raises nothing."""
    return _Late(seconds, True)


def deadline(t):
    """As timeout; `t` in seconds of the run's clock, as now()."""
    return Limit(None if t is None else _time.ms(t), False)
