"""A watchdog, which finds processes that compute for a long time without an operation. With
coroutines no other process runs in that time.

    w = Watchdog(50)                       # looks every 50 ms, by a machine.Timer
    …
    print(w.hogs)                          # {"main/crunch": 3}: how often each was found

A tick notes the process that runs, and puts a mark into the run queue if there is no mark in it. If
at the next tick the mark is still in the queue and the same process runs, that process has run all
the time, because a process that lets others run is queued again behind the mark.
"""

from . import _core as core
from .errors import BadUse


class Watchdog:
    """Looks every `period` milliseconds for a process that does not let others run (a hog).

    Args: tell: called as tell(path) for each hog found, from the timer's soft callback. start:
    called as start(period, tick) to start a timer that is no machine.Timer. The timer must call
    tick(anything) between two bytecodes of the program, never in a hard interrupt.

    Raises:
        BadUse: the period is 0 or less, or the port has no machine.Timer and `start` is not given.
    """

    def __init__(self, period, tell=None, start=None):
        if period <= 0:
            raise BadUse("a watchdog's period is more than 0")
        self.tell = tell
        self.hogs = {}
        self.seen = None  # the process that ran at the last tick, when the mark was in the queue
        self.queued = False
        self.mark = core.Proc(None)
        self.mark.go = self._turn
        self.timer = (start or _timer)(period, self.tick)

    def _turn(self, _):
        self.queued = False

    def tick(self, _):
        p = core.cur()
        if p is None or p is self.mark or p.x is None:  # no process of the program runs
            return
        if not self.queued:
            self.queued = True
            core.push(self.mark)
        elif p is self.seen:
            path = p.x.path
            self.hogs[path] = self.hogs.get(path, 0) + 1
            if self.tell:
                self.tell(path)
        self.seen = p

    def stop(self):
        """Stops the ticks, if the timer can be stopped."""
        if hasattr(self.timer, "deinit"):
            self.timer.deinit()


def _timer(period, tick):
    try:
        from machine import Timer
    except ImportError:
        raise BadUse("this port has no machine.Timer: give the watchdog one as start=")
    try:
        timer = Timer(-1)  # a virtual timer
    except (TypeError, ValueError):
        timer = Timer(0)
    timer.init(period=period, mode=Timer.PERIODIC, callback=tick)
    return timer
