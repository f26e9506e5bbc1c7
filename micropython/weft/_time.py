"""Time, and what comes from outside: deadlines, interrupts, other threads.

Invariants
- `_timers` is sorted by `t` (milliseconds of `now_ms`), equal ones in the order in which they were set (8.5).
- A thing in it has `t` and `fire()`. A deadline at FAR never comes and is in no list.
- `_sources` can bring events from outside the network (10.3). Each is asked (`look()`, true if
  something came) once a round of the run queue, and when nothing runs. A network without timers and
  sources pays nothing for this. One that has `still()` says by that whether it brings nothing before
  something here runs.
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


FAR = 1 << 60
core.time = sys.modules[__name__]
_timers = []
_sources = []
_poller = None
watcher = None  # inside asyncio's loop: watcher(s) makes the loop wait for the source s
virtual = False
_vt = 0
_ticking = False


def now_ms():
    return _vt if virtual else steady()


def now():
    """The time of the run's clock, in seconds."""
    return now_ms() / 1000


def ms(seconds):
    if seconds != seconds:
        raise BadUse("a time that is no number")
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
    while _sources:  # left over from calls that were given up
        s = _sources.pop()
        if _poller is not None:
            try:
                _poller.unregister(s)
            except (KeyError, TypeError, ValueError):
                pass  # it was never registered here


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
    """From now on every round looks at the clock and at the sources."""
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
    """Wakes what is due, and what the sources have brought. True if there was any."""
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
    """Adds or removes the source `s`. One that has `ioctl` or `fileno` is waited for by poll."""
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
    """Milliseconds to the next deadline; -1 if there is none."""
    return max(0, _timers[0].t - now_ms()) if _timers else -1


def _awaited():
    for s in _sources:
        if not hasattr(s, "still") or not s.still():
            return True
    return False


def idle():
    """Nothing can run: waits for a deadline or a source. False: there are none, nothing can
    come."""
    global _vt
    if virtual and _timers and not _awaited():
        _vt = max(_vt, _timers[0].t)
        look()
        return True
    if not _timers and not _sources:
        return False
    if not look():
        if not _timers and not _awaited():
            return False  # nothing of what is outside goes on before this run does
        wait(-1 if virtual or not _timers else _timers[0].t - now_ms())
        look()
    return True


def leave():
    """The run was left: what goes on beside it is to end."""
    for s in _sources[:]:
        if hasattr(s, "leave"):
            s.leave()


def wait(dt):
    if dt == 0:
        return
    dt = min(dt, 1 << 28)  # `steady` is to see each half turn of ticks_ms, 2**29
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
