"""Barriers, sleeps and timers (rule 8).

Invariants
- `line` of a Barrier is its waiting queue: the Procs that sync and the Nodes of selects that wait.
  It is empty once `lacks()` is 0.
- Every object at which a process can wait has `give_up(p)`, which withdraws p. It returns False if
  the operation of p has committed and will complete (6.3).
"""

from . import _alt, _chan, _time
from . import _core as core
from ._chan import HELD, begin, resume
from .errors import BadUse


class Barrier:
    """A barrier: `parties` processes wait for each other (8.1). Raises BadUse for a negative
    number."""

    def __init__(self, parties):
        if not isinstance(parties, int) or parties < 0:
            raise BadUse("a barrier has 0 parties or more, not %r" % (parties,))
        self.parties = parties
        self.line = []
        self.users = []  # the processes that have ever waited at this barrier, for reports

    def when(self, condition):
        return _alt.Guard(_alt.SYNC, self).when(condition)

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
        """Waits until all parties have arrived; then all go on (8.1). Raises BadUse if no party is
        enrolled."""
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
    await sleep_until(_time.later(n))


async def sleep(seconds):
    """Sleeps for at least `seconds` (8.5)."""
    n = _time.ms(seconds)
    await sleep_until(n if n >= _time.FAR else _time.later(n))


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
    """Lets every other process that is ready run before it returns (7.7)."""
    p = core.cur()
    begin(p, "yield_")
    core.push(p)
    p.at = HELD
    await core.ONCE
    resume(p)


class Timer:
    """A timer that ticks every `period` seconds, without drift (8.5). Raises BadUse for a period of
    0 or less."""

    def __init__(self, period):
        self.period = _time.ms(period)
        if self.period <= 0:
            raise BadUse("a timer's period is more than 0")
        self.next = _time.later(self.period)

    async def tick(self):
        """Waits for the next tick. Returns the number of ticks since the last call: missed ticks
        are counted, not queued."""
        await sleep_until(self.next)
        n = 1
        now = _time.now_ms()
        if now >= self.next + self.period:
            n += (now - self.next) // self.period
        self.next += n * self.period
        return n
