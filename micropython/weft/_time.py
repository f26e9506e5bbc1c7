"""Time and events from outside the network: deadlines, interrupts, other threads.

Invariants
- `_timers` is sorted by `t` (milliseconds of `now_ms`); timers with the same `t` are in the order
  in which they were set (8.5). A timer has `t` and `fire()`. A timer whose time is FAR never fires,
  and is not in `_timers`.
- `_sources` contains the objects that can bring events from outside the network (10.3). `look()` of
  each source is called once in a round of the run queue, and when no process can run. It returns
  whether an event came. A network without timers and sources spends no time on this.
- A source may have `still()`, which returns whether the source brings no event before a process of
  this network runs.
"""

import sys

from . import _core as core
from .errors import BadUse

try:
    from time import ticks_diff, ticks_ms

    _last, _base = ticks_ms(), 0

    def steady():
        global _last, _base
        t = ticks_ms()
        _base += ticks_diff(t, _last)
        _last = t
        return _base

except ImportError:
    from time import monotonic_ns

    def steady():
        return monotonic_ns() // 1000000


FAR = 1 << 60  # a time that never comes, in milliseconds
core.time = sys.modules[__name__]
_timers = []
_sources = []
_poller = None
watcher = None  # set in a guest of asyncio: watcher(s) makes asyncio wait for the source s
virtual = False
_vt = 0
_ticking = False


def now_ms():
    return _vt if virtual else steady()


def later(n):
    """Returns the time n milliseconds from now, for a timer, which is never
    early (8.5). `now_ms` is rounded down, so one millisecond is added to a
    future time.
    """
    t = now_ms() + n
    return t if virtual or n <= 0 else t + 1


def now():
    """Returns the time of the run's clock, in seconds."""
    return (now_ms() if virtual else now_ms() + 1) / 1000  # rounded up: now() + s is never early


def ms(seconds):
    """Returns the seconds in milliseconds, rounded up, or FAR. Raises BadUse for a NaN."""
    if seconds != seconds:
        raise BadUse("a time that is not a number")
    if seconds >= 1e15:
        return FAR
    if isinstance(seconds, int):
        return seconds * 1000
    n = int(seconds * 1000)
    return n + 1 if seconds * 1000 > n + 0.001 else n


def begin(clock):
    global virtual, _vt, _ticking
    if clock not in ("steady", "virtual"):
        raise BadUse('clock is "steady" or "virtual", not %r' % (clock,))
    virtual, _vt, _ticking = clock == "virtual", 0, False
    _timers.clear()
    while _sources:  # sources of abandoned io calls can remain
        s = _sources.pop()
        if _poller is not None:
            try:
                _poller.unregister(s)
            except (KeyError, TypeError, ValueError):
                pass  # the source has never been registered


def arm(x):
    if x.t >= FAR:
        return
    i = len(_timers)
    while i and _timers[i - 1].t > x.t:
        i -= 1
    _timers.insert(i, x)
    if not virtual:
        awake()


def disarm(x):
    if x in _timers:
        _timers.remove(x)


def awake():
    """Makes every round of the run queue check the clock and the sources from now on."""
    global _ticking
    if not _ticking:
        _ticking = True
        core.push(_tick)


def _on_tick(_):
    global _ticking
    _ticking = False
    look()
    if core.waiting() and ((_timers and not virtual) or _sources):
        awake()


_tick = core.Proc(None)
_tick.go = _on_tick


def look():
    """Fires the timers that are due, and polls the sources. Returns whether an event came."""
    came = False
    i = len(_sources)
    while i:
        i -= 1
        came = _sources[i].look() or came
    t = now_ms()
    while _timers and _timers[0].t <= t:
        _timers.pop(0).fire()
        came = True
    return came


def source(s, on):
    """Adds or removes the source `s`. `poll` waits for a source that has `ioctl` or `fileno`."""
    global _poller
    if on:
        _sources.append(s)
        if watcher:
            watcher(s)
            return
        awake()
    elif s in _sources:
        _sources.remove(s)
    else:
        return
    if watcher:
        return
    if hasattr(s, "ioctl") or hasattr(s, "fileno"):
        import select

        if _poller is None:
            _poller = select.poll()
        if on:
            _poller.register(s, select.POLLIN)
        else:
            _poller.unregister(s)


def due():
    """Returns the milliseconds to the next deadline, or -1 if there is none."""
    return max(0, _timers[0].t - now_ms()) if _timers else -1


def _awaited():
    for s in _sources:
        if not hasattr(s, "still") or not s.still():
            return True
    return False


def idle():
    """Waits for a deadline or a source while no process can run. Returns False if there is nothing
    to wait for: a deadlock."""
    global _vt
    if virtual and _timers and not _awaited():
        _vt = max(_vt, _timers[0].t)
        look()
        return True
    if not _timers and not _sources:
        return False
    if not look():
        if not _timers and not _awaited():
            return False  # no source brings an event before a process runs
        wait(-1 if virtual or not _timers else _timers[0].t - now_ms())
        look()
    return True


def leave():
    """Ends the sources that outlive a run, such as a network on core 1, after the run has been
    left."""
    for s in _sources[:]:
        if hasattr(s, "leave"):
            s.leave()


def wait(dt):
    if dt == 0:
        return
    dt = min(dt, 1 << 28)  # `steady` must read ticks_ms at least once in 2**29 ms
    if _poller is not None:
        for _ in _poller.poll(dt if dt > 0 else 1 << 28):
            pass
    elif dt > 0:
        try:
            from time import sleep_ms
        except ImportError:
            from time import sleep

            sleep(dt / 1000)
        else:
            sleep_ms(dt)
