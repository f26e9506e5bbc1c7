"""Barriers and time (rule 8): what a process can wait for besides channels.

Invariants
- A Barrier's `line` has the Procs that sync and the Nodes of selects that wait; it is empty once `lacks()` is 0.
- Whatever a process waits for has `give_up(p)`, which withdraws p. False: its operation has
  committed and will complete (6.3).
"""

from . import _alt, _chan, _time
from . import _core as core
from ._chan import HELD, begin, resume
from .errors import BadUse


class Barrier:
    """So many `parties` wait for each other (8.1)."""

    def __init__(self, parties):
        if not isinstance(parties, int) or parties < 0:
            raise BadUse("a barrier has 0 parties or more, not %r" % (parties,))
        self.parties = parties
        self.line = []  # Procs that sync, and Nodes of selects that wait
        self.users = []

    def when(self, on):
        g = _alt.Guard(_alt.SYNC, self)
        return g.when(on)

    def lacks(self):
        return self.parties - len(self.line)

    def enrol(self):
        self.parties += 1

    def resign(self):
        if not self.parties:
            raise BadUse("resign: nobody is enrolled at the barrier")
        self.parties -= 1
        if self.line and self.lacks() <= 0:
            self.release()

    def release(self):
        line, self.line = self.line, []
        for x in line:
            if isinstance(x, _chan.Node):
                x.alt.commit(x)
            else:
                core.push(x)

    def enter(self, n):
        self.line.append(n)

    def leave(self, n):
        if n in self.line:
            self.line.remove(n)

    def give_up(self, p):
        if p in self.line:
            self.line.remove(p)
            return True
        return False

    async def sync(self):
        """Waits until all parties have arrived; then all go on (8.1)."""
        p = core.cur()
        begin(p, "sync")
        if not self.parties:
            raise BadUse("sync: nobody is enrolled at the barrier")
        if self.lacks() <= 1:
            self.release()
            return
        if p.x not in self.users:
            self.users.append(p.x)
        self.line.append(p)
        p.at = self
        await core.ONCE
        resume(p)


class _Sleep:
    def __init__(self, p, t):
        self.p, self.t = p, t
        self.slept = False

    def __repr__(self):
        return "sleep"

    def fire(self):
        self.slept = True
        core.push(self.p)

    def give_up(self, p):
        if self.slept:
            return False
        _time.disarm(self)
        return True


async def sleep_ms(n):
    await sleep_until(_time.now_ms() + n)


async def sleep(seconds):
    """Sleeps for at least `seconds` (8.5)."""
    n = _time.ms(seconds)
    await sleep_until(n if n >= _time.FAR else _time.now_ms() + n)


async def sleep_until(t):
    p = core.cur()
    if p is None and _chan.outsider():
        return await _chan.outsider().sleep(t - _time.now_ms())
    begin(p, "sleep")
    if t <= _time.now_ms():
        await yield_()
        return
    p.at = s = _Sleep(p, t)
    _time.arm(s)
    await core.ONCE
    resume(p)


async def yield_():
    """Lets every other runnable process run before it returns (7.7)."""
    p = core.cur()
    begin(p, "yield_")
    core.push(p)
    p.at = HELD
    await core.ONCE
    resume(p)


class Timer:
    """Ticks every `period` seconds, without drift (8.5)."""

    def __init__(self, period):
        self.period = _time.ms(period)
        if self.period <= 0:
            raise BadUse("a timer's period is more than 0")
        self.next = _time.now_ms() + self.period

    async def tick(self):
        """Waits for the next tick; gives how many have come since the last one it gave."""
        await sleep_until(self.next)
        n = 1
        now = _time.now_ms()
        if now >= self.next + self.period:
            n += (now - self.next) // self.period
        self.next += n * self.period
        return n
