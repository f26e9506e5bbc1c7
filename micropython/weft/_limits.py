"""Time limits as scopes (rule 7.12).

Invariants
- `limits` of a process contains the limits that it is in, the outermost first; `depth` is the index
  of a limit in `limits`.
- A limit cancels its process once. The process records the limit that cancelled it: in `by`, or in
  `flight.by` once the Cancelled is thrown. None stands for a request from elsewhere. Of several
  unserved requests, a request from elsewhere counts, or else that of the outermost limit.
"""

from . import _core as core
from . import _time
from ._chan import FLIGHT, REQ
from .errors import BadUse, Cancelled, TimeoutError


class Limit:
    """A limit, for `async with`. Within the block `expired` is whether the limit's time has come;
    after the block it is whether the limit has ended the block."""

    proc = None
    expired = False
    lost = False  # whether another request took the place of this limit's request

    def __init__(self, t, quiet):
        self.t, self.quiet = t, quiet

    def __repr__(self):
        return "limit"

    def enter(self, proc):
        if self.proc is not None:
            raise BadUse("a limit can be entered only once: make another")
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
        """Withdraws this limit's request to end if the request is still pending. Returns whether it
        was withdrawn."""
        p = self.proc
        if not p.asked or p.by is not self:
            return False
        p.asked = False
        p.by = None
        if p.k.at is REQ:
            p.k.at = None
        return True

    def reschedule(self, seconds):
        """Moves the limit to `seconds` from now; None means never. Raises BadUse if the limit has
        already ended its block."""
        if self.expired and not self.lost and not self.taken_back():
            raise BadUse("reschedule: the limit has ended its block")
        self.expired = self.lost = False
        _time.disarm(self)
        self.t = later(seconds)
        self.arm()

    def leave(self, proc, error):
        """Leaves the block. Returns True if this limit's own Cancelled left the block, which must
        not propagate.

        Raises:
            TimeoutError: in the same case, if `timeout` or `deadline` made the limit.
            BadUse: the caller is another process, or an inner limit has not been left.
        """
        if self not in proc.limits:
            raise BadUse("this limit was entered by another process: leave it there")
        if proc.limits[-1] is not self:
            raise BadUse("a limit entered within this one is still open: leave that first")
        proc.limits = proc.limits[:-1]
        if self.t is not None:
            _time.disarm(self)
        if proc.k.at is FLIGHT:  # the process runs, so the Cancelled has been raised
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
    """Decides between the present request of `it` and a new request, from the limit `by` or, with
    None, from elsewhere. Keeps the request that counts.
    """
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
    return n if n >= _time.FAR else _time.later(n)


class _Late(Limit):
    """A limit whose seconds count from the moment when it is entered."""

    def enter(self, proc):
        self.t = later(self.t)
        return super().enter(proc)


def timeout(seconds):
    """Limits a block, `async with timeout(s)`: after s seconds the operation for which the block
    waits is cancelled, and the block raises TimeoutError. None means never.
    """
    return _Late(seconds, False)


def move_on_after(seconds):
    """Limits a block like `timeout`, but the block ends without an error."""
    return _Late(seconds, True)


def deadline(time):
    """Limits a block like `timeout`, until `time`, in seconds of the run's clock as now()
    returns it."""
    return Limit(None if time is None else _time.ms(time), False)
