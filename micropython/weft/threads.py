"""Processes as threads. The names are those of weft.coroutines, but operations block and are not
awaited. _machine.py runs the processes.

Invariants
- `_lock` is held whenever a thread uses the core or other data of Weft; no user code runs under it.
- Every module that an operation may need is loaded here, so that no thread loads one while others
  run.
- The last process of a Parallel runs on its caller's thread, so that two processes need only one
  more thread.
"""

from . import (  # noqa: F401
    _alt,
    _chan,
    _ext,
    _limits,
    _machine,
    _proc,
    _report,
    _sentences,
    _standing,
    _time,
    _wait,
)
from . import _core as core
from ._alt import Input as _Input
from ._alt import Output as _Output
from ._alt import after, at, skip  # noqa: F401
from ._chan import REQ
from ._ended import watched  # noqa: F401
from ._group import Group as _Group
from ._machine import Thread, bare, get_ident
from ._machine import do as _do
from ._machine import flush as _flush
from ._machine import here as _here
from ._machine import lock as _lock
from ._machine import locked as _locked
from ._machine import mine as _mine
from ._machine import parked as _parked
from ._machine import pause as _pause
from ._machine import whole as _whole
from ._proc import current_process as _current
from ._time import now as _now
from .errors import (  # noqa: F401
    BadUse,
    Cancelled,
    ChannelEnd,
    Deadlock,
    Failures,
    NoResult,
    NoRoom,
    PeerDied,
    Poisoned,
    Retired,
    TimeoutError,
    WeftError,
)

# The ends of channels.


# Reader.read and Writer.write have few variables, because MicroPython allocates a call's state on
# the heap if it is larger than 11 words; a `try` takes 3 of these.


def _waits_to_read(p, rd):
    k = rd.c
    me = p.k
    me.at = rd
    me.nx = None
    if k.r is None:
        k.r = me
    else:
        (k.rt if k.r.nx else k.r).nx = me
    k.rt = me
    _parked(p)
    if me.at is rd:
        me.at = None
        return wrap(me.v)
    return wrap(_chan.read(rd, me)[0])


def _waits_to_write(p, wr, v):
    k = wr.c
    me = p.k
    me.at = wr
    me.v = v
    me.nx = None
    if k.w is None:
        k.w = me
    else:
        (k.wt if k.w.nx else k.w).nx = me
    k.wt = me
    _parked(p)


def _writes(wr, v):
    """Performs a write that needs more than a plain rendezvous."""
    try:
        _do(lambda: wr.write(bare(v)))
    except (Exception, Cancelled) as e:
        if v is not bare(v) and getattr(e, "value", None) is bare(v):
            e.value = v
        raise


class Reader:
    """A reader end for threads: its operations block."""

    def __init__(self, end):
        self._end = end

    def read(self):
        _lock.acquire()
        try:
            p = _here.get(get_ident())
            k = self._end.c
            if p is None or not k.ok or p.k.at is not None:
                p = None
            elif k.w is None:
                return _waits_to_read(p, self._end)
            else:
                p = k.w
                k.w = p.nx
                p.at = None
                v = p.v
                p = p.x
                p.wake()
        finally:
            _lock.release()
        if p is None:
            return wrap(_do(self._end.read))
        p.poke()
        return v

    __call__ = read

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.read()
        except Retired:
            raise StopIteration

    def extended(self):
        return _Extended(self._end)


class Writer:
    """A writer end for threads: its operations block."""

    def __init__(self, end):
        self._end = end

    def write(self, v):
        _lock.acquire()
        try:
            k = v.__class__
            p = None if k is Reader or k is Writer else _here.get(get_ident())
            k = self._end.c
            if p is None or not k.ok or p.k.at is not None:
                p = None
            elif k.r is None:
                _waits_to_write(p, self._end, v)
                return
            else:
                p = k.r
                k.r = p.nx
                p.v = v
                p = p.x
                p.wake()
        finally:
            _lock.release()
        if p is None:
            _writes(self._end, v)
        else:
            p.poke()

    __call__ = write


for _kind in (Reader, Writer):
    _kind.retire = _locked(lambda self: self._end.retire())
    _kind.die = _locked(lambda self: self._end.die())
    _kind.poison = _locked(lambda self, strength=1: self._end.poison(strength))
    _kind.closed = property(lambda self: self._end.closed)
    _kind.channel = property(_locked(lambda self: self._end.channel))

_proc.WRAPS = (Reader, Writer)


def wrap(x):
    if isinstance(x, core.Rd):
        return Reader(x)
    if isinstance(x, core.Wr):
        return Writer(x)
    return x


class Channel(_chan.Channel):
    def __init__(self, name=None, *, capacity=0, overflow="block", immunity=0):
        _whole(self, _chan.Channel)
        with _lock:
            super().__init__(name, capacity=capacity, overflow=overflow, immunity=immunity)

    reader = __pos__ = _locked(lambda self: Reader(_chan.Channel.reader(self)))
    writer = __neg__ = _locked(lambda self: Writer(_chan.Channel.writer(self)))
    poison = _locked(_chan.Channel.spoil)
    stats = _locked(_chan.Channel.stats)


class _Extended:
    def __init__(self, end):
        self.ext = end.extended()

    def __enter__(self):
        return wrap(_do(self.ext.__aenter__))

    def __exit__(self, *error):
        _do(lambda: self.ext.__aexit__(*error))


def Input(reader, ended="silent"):
    return _Input(bare(reader), ended)


def Output(writer, value=None, make=None, ended="silent"):
    return _Output(bare(writer), bare(value), make, ended)


def select(*guards, mode="fair", ended="silent"):
    i, v = _do(lambda: _alt.select(*[bare(g) for g in guards], mode=mode, ended=ended))
    return i, wrap(v)


class Alternative:
    def __init__(self, *guards, ended="silent"):
        self._alt = _alt.Alternative(*[bare(g) for g in guards], ended=ended)

    def __enter__(self):
        _locked(self._alt.__enter__)()
        return self

    def __exit__(self, *_):
        _locked(self._alt.__exit__)()

    enable = _locked(lambda self, index, on: self._alt.enable(index, on))

    def select(self):
        i, v = _do(self._alt.select)
        return i, wrap(v)


class Barrier(_wait.Barrier):
    def sync(self):
        _do(lambda: _wait.Barrier.sync(self))

    enrol = _locked(_wait.Barrier.enrol)
    resign = _locked(_wait.Barrier.resign)


class Timer(_wait.Timer):
    __init__ = _locked(_wait.Timer.__init__)

    def tick(self):
        return _do(lambda: _wait.Timer.tick(self))


class _Limit:
    def __init__(self, limit):
        self._limit = limit

    def __enter__(self):
        self._by(self._limit.enter)
        return self

    def __exit__(self, kind, error, tb):
        return self._by(self._limit.leave, error)

    def _by(self, what, *args):
        _lock.acquire()
        p = _mine()
        try:
            return what(p, *args)
        finally:
            _flush()
            _lock.release()

    expired = property(_locked(lambda self: self._limit.expired))
    reschedule = _locked(lambda self, seconds: self._limit.reschedule(seconds))


def timeout(seconds):
    """Limits a block, `with timeout(s)`: after s seconds the operation for which the block waits is
    cancelled, and the block raises TimeoutError. None means never.
    """
    return _Limit(_limits.timeout(seconds))


def move_on_after(seconds):
    """Limits a block like `timeout`, but the block ends without an error."""
    return _Limit(_limits.move_on_after(seconds))


def deadline(time):
    """Limits a block like `timeout`, until `time`, in seconds of the run's clock as now()
    returns it."""
    return _Limit(_limits.deadline(time))


_made = _locked(Thread)


def process(fn):
    """Decorates a function: a call of the function returns a process object, which runs on a
    thread.
    """

    def make(*args, **kw):
        return _made(fn, args, kw)

    try:
        make.__name__ = _proc.name_of(fn)
    except AttributeError:
        pass
    return make


def current_process():
    with _lock:
        p = _here.get(get_ident())
    return p if p is not None else _current()


now = _locked(_now)


def sleep(seconds):
    _do(lambda: _wait.sleep(seconds))


def sleep_ms(n):
    _do(lambda: _wait.sleep_ms(n))


def yield_():
    _do(_wait.yield_)


def io(fn):
    """Returns fn itself, because a thread may simply call a function that blocks."""
    return fn


def _begin(ps, party, p=None):
    """Starts the processes. The last of them runs on this thread, while p, if given, waits."""
    _machine.fit(ps)
    with _lock:
        for x in ps:
            x.start(party)
        if p is not None and ps:  # under the same lock, so that some process counts as running
            _machine.running -= 1
            p.k.at = party
    begun = 0
    try:
        for x in ps[:-1]:
            x.launch()
            begun += 1
    except NoRoom as e:
        with _lock:  # the processes without a thread never run; the others are cancelled
            if p is not None:
                _machine.running += 1
                p.k.at = REQ if p.asked and not party.stopped else None
            for x in ps[begun:]:
                _machine.running -= 1
                _proc.finish(x, None, e if x is ps[begun] else Cancelled("never ran"))
            _flush()
        return
    if ps:
        ps[-1].on_this_thread()


def Parallel(*processes):
    """Starts the processes, waits for all, and returns their results in order. In ordinary code a
    Parallel is a run (7.1)."""
    with _lock:
        p = _here.get(get_ident())
    if p is None:
        return run(*processes, whole=True)
    ps = _proc.flatten(processes, [])
    with _lock:
        if p.k.at is REQ:
            _proc.never(ps)
            _flush()
            raise _chan.cancelled(p.k)
        party = _proc.Party(p)
    _begin(ps, party, p)
    _join(party)
    return party.verdict()


def _join(party):
    async def join():
        await party.join()

    try:
        _do(join)
        if party.stopped:
            with _lock:
                e = _chan.cancelled(party.owner.k)
            raise e
    except Cancelled:
        party.verdict()
        raise


def Sequence(*processes):
    waiting = _proc.flatten(processes, [])
    results = []
    try:
        while waiting:
            results.append(Parallel(waiting.pop(0))[0])
    finally:
        with _lock:
            _proc.never(waiting)
            _flush()
    return results


def Spawn(*processes):
    if _proc._run is None:
        raise BadUse("Spawn outside a run")
    ps = _proc.flatten(processes, [])
    _machine.fit(ps)
    for x in ps:
        _start(x, _proc._run)


def _start(x, party):
    """Starts a process on a thread of its own. If there is no thread, the process fails with
    NoRoom."""
    with _lock:
        x.start(party)
        if party.failed:
            x.ask()
    try:
        x.launch()
    except NoRoom as e:
        with _lock:
            _machine.running -= 1
            _proc.finish(x, None, e)
            _flush()


class Group(_Group):
    """A block that may start processes at any time, in a process: `with Group() as g: g.start(p)`.
    Leaving the block waits for all of them."""

    def __enter__(self):
        return _do(self.__aenter__)

    def start(self, *processes):
        ps = _proc.flatten(processes, [])
        _machine.fit(ps)
        for x in ps:
            _start(x, self.party)
        return ps[0] if len(ps) == 1 else ps

    cancel = _locked(lambda self: self.party.stop())

    def __exit__(self, kind, error, tb):
        return _do(lambda: self.__aexit__(kind, error, tb))


@_locked
def _stop_all():
    for x in _proc._all[:]:
        x.ask()


def run(*processes, clock="steady", whole=False):
    """Runs a network and waits for its end. Returns the result of its process if there is one, else
    the list of results; with `whole` always the list."""
    ps = _proc.flatten(processes, [])
    with _lock:
        if _proc._run is not None:
            raise BadUse("a run within a run: Parallel(...)")
        _time.begin(clock)
        _proc._all.clear()
        _proc.dead = None
        _machine.running = 0
        party = _proc._run = _proc.Party(None)
        party.n = len(ps)
    try:
        _machine.on = True
        stop = None
        try:
            _begin(ps, party)
        except KeyboardInterrupt as e:
            stop = e
            _stop_all()
        while True:
            try:
                with _lock:
                    if not party.live:
                        break
                    if _time._timers or _time._sources:
                        _time.look()
                        _flush()
                _pause(1)
            except KeyboardInterrupt as e:  # the first Ctrl-C cancels, a second one ends the run
                if stop is not None or party.failed:
                    raise
                stop = e
                _stop_all()
        if stop is not None:
            raise stop
        if _proc.dead is not None:
            raise _proc.dead
        if whole:
            return party.verdict()
        return _proc.close_run(party)
    finally:
        _machine.on = False
        _proc._run = None
        _proc.dead = None


def retire(*ends):
    for end in ends:
        end.retire()


def poison(*ends, strength=1):
    for end in ends:
        end.poison(strength)
