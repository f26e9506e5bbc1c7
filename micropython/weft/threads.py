"""Processes as threads: the names of weft.coroutines, and nothing is awaited.

Invariants
- `_lock` is held whenever the core or anything of Weft's is touched; no code of the user runs under it. No GIL is assumed.
- A thread process blocks on its own lock, `sem`, which is released once for each time that it is to go on.
- `_running` counts the processes that do not wait. Who makes it 0 looks whether anything can come (deadlock, 10.1).
- Of the processes that wait, one at most leads: it looks at the clock for all, for a lock here cannot wait for a time.
- The last process of a Parallel runs on its caller's thread: two processes need one thread more.
"""

import sys

try:
    from _thread import allocate_lock, get_ident, start_new_thread
except ImportError:
    raise ImportError("weft.threads: this port has no threads; use weft.coroutines")

from . import _alt, _chan, _proc, _time
from . import _core as core
from ._alt import Input as _Input
from ._alt import Output as _Output
from ._alt import after, at, skip  # noqa: F401
from ._chan import REQ
from ._proc import current_process as _current
from ._time import now as _now
from .errors import (  # noqa: F401
    BadUse,
    Cancelled,
    ChannelEnd,
    Deadlock,
    Failures,
    NoRoom,
    PeerDied,
    Poisoned,
    Retired,
    WeftError,
)

try:
    from time import sleep_ms as _pause
except ImportError:
    from time import sleep as _seconds

    def _pause(n):
        _seconds(n / 1000)


_lock = allocate_lock()
_here = {}  # thread → the process that runs on it; under _lock
_running = 0
_leader = None
_threads = 0
MOST = 1 if sys.platform == "rp2" else 1 << 30  # threads besides the main program
TRIES = 10 if MOST == 1 else 1  # a millisecond between them


class Thread(_proc.Process):
    """A process on a thread; to the core its `generator` is this object itself."""

    woken = False

    def start(self, party):
        global _running
        if self.begun:
            raise BadUse("process %s was started before: make another" % self.path)
        try:
            self.sem = allocate_lock()
            self.sem.acquire()
            self.e = None
            k = core.Proc(self)
            k.start(self)
            core.room(len(_proc._all) + 4)
            _proc._all.append(self)
        except MemoryError:
            raise NoRoom("no memory for process %s; the others can still be stopped" % self.name)
        self.k = k
        self.begun = True
        self.party = party
        self.index = party.names.get(self.name, 0)
        party.names[self.name] = self.index + 1
        party.kids.append(self)
        party.live += 1
        _running += 1

    def launch(self):
        """On a thread of its own; without the lock."""
        global _threads
        with _lock:
            full = _threads >= MOST
            _threads += not full
        e = None
        for _ in range(0 if full else TRIES):
            try:
                start_new_thread(self.body, ())
                return
            except OSError as error:  # rp2: core 1 may not be quite out of the thread before
                e = error
                _pause(1)
            except (MemoryError, RuntimeError) as error:
                e = error
                break
        if not full:
            with _lock:
                _threads -= 1
        self.refuse(e)

    def refuse(self, e):
        raise NoRoom(
            "process %s: this port has %s; use weft.coroutines for more processes"
            % (
                self.path,
                "one thread besides the main program, so at most two processes at a time"
                if MOST == 1
                else "no room for one more thread (%r)" % (e,),
            )
        )

    def body(self):
        self.on_this_thread(1)

    def on_this_thread(self, own=0):
        """Runs the function, and tells the party; own: 1 if the thread was made for it."""
        global _running, _threads
        me = get_ident()
        value = error = None
        with _lock:
            before = _here.get(me)
            _here[me] = self
            if self.k.at is REQ:
                self.k.at = None
                self.asked = False
                error = Cancelled("%s was cancelled" % self.path)
        if error is None:
            try:
                value = self.fn(*self.args, **self.kw)
            except BaseException as e:
                error = e
        with _lock:
            _threads -= own  # before the party is told: the next network may begin at once
            _proc.finish(self, value, error)
            if before is None:
                del _here[me]
                _running -= 1
            else:  # its caller, who waited for it, goes on
                _here[me] = before
                before.k.at = REQ if before.asked and not self.party.stopped else None
            _flush()

    # the core goes on with this process: it is woken

    def send(self, _):
        global _running
        _running += 1
        self.woken = True
        self.poke()

    def throw(self, e):
        self.e = e
        self.send(None)

    def poke(self):
        if self.sem.locked():  # else it was poked before, and has not looked yet
            self.sem.release()

    def cancel(self):
        with _lock:
            self.ask()
            _flush()


def _flush():
    """Those that were pushed are woken; if nobody runs, time or a deadlock comes."""
    core.setcur(None)
    while True:
        core.loop(0)
        if _running > 0 or not _proc._all:
            return
        if _time.virtual and _time._timers:
            _time.idle()
        elif _time._timers or _time._sources:
            return
        elif _proc.dead is None:
            _proc.dead = _proc.deadlock()
            for x in _proc._all[:]:
                x.ask()
        else:
            return


def _mine():
    p = _here.get(get_ident())
    if p is None:
        _lock.release()
        raise BadUse("an operation in ordinary code: start the network by run(...)")
    return p


def _wait(p):
    """The process has parked, the lock is held: blocks until it is woken, and holds the lock again."""
    global _running, _leader
    _running -= 1
    p.woken = False
    _flush()
    while not p.woken:
        if _leader is None and (_time._sources or (_time._timers and not _time.virtual)):
            _leader = p
            while not p.woken and (_time._sources or _time._timers):
                dt = _time.due()
                if dt == 0:
                    _time.look()
                else:
                    _lock.release()
                    _pause(dt if 0 < dt < 5 else 5)
                    _lock.acquire()
                    _time.look()
                _flush()
            _leader = None
            for x in _proc._all:  # another leads
                if x is not p and not x.woken and x.k.at is not None:
                    x.poke()
                    break
        else:
            _lock.release()
            p.sem.acquire()
            _lock.acquire()
    if p.sem.locked() is False:
        p.sem.acquire()
    e, p.e = p.e, None
    if e is not None:
        raise e


def _unlocked(make):
    """An output guard's function is the user's: not under the lock (12.1)."""
    p = core.cur()
    if p is None or not isinstance(p.x, Thread):
        return make()
    core.setcur(None)
    _flush()
    _lock.release()
    try:
        return bare(make())
    finally:
        _lock.acquire()
        core.setcur(p)


_alt.unlocked = _unlocked


def _do(make):
    """Runs an operation of weft.coroutines on this thread."""
    _lock.acquire()
    p = _mine()
    try:
        core.setcur(p.k)
        it = make()
        if it is core.DONE:
            return None
        if it is core.ONCE:
            _wait(p)
            return None
        if hasattr(it, "__await__"):
            it = it.__await__()
        e = None
        while True:
            core.setcur(p.k)
            try:
                if e is not None:
                    if not hasattr(it, "throw"):
                        raise e
                    it.throw(e)
                elif hasattr(it, "send"):
                    it.send(None)
                else:
                    next(it)
            except StopIteration as stop:
                return stop.value
            e = None
            try:
                _wait(p)
            except BaseException as error:
                e = error
    finally:
        _flush()
        _lock.release()


# ends


class Reader:
    """A reader end in threads: its operations block."""

    def __init__(self, end):
        self._end = end

    def read(self):
        _lock.acquire()
        p = _here.get(get_ident())
        rd = self._end
        k = rd.c
        if p is None or not k.ok or p.k.at is not None:
            _lock.release()
            return wrap(_do(lambda: rd))
        w = k.w
        if w is not None:
            k.w = w.nx
            w.at = None
            v = w.v
            w.x.send(None)
            _lock.release()
            return v
        me = p.k
        me.at = rd
        me.nx = None
        if k.r is None:
            k.r = me
        else:
            (k.rt if k.r.nx else k.r).nx = me
        k.rt = me
        v = _parked(p)
        if me.at is rd:
            me.at = None
            v = me.v
        else:
            v = _chan.read(rd, me)[0]
        _lock.release()
        return wrap(v)

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
    """A writer end in threads."""

    def __init__(self, end):
        self._end = end

    def write(self, v):
        _lock.acquire()
        p = _here.get(get_ident())
        wr = self._end
        k = wr.c
        if p is None or not k.ok or p.k.at is not None or isinstance(v, (Reader, Writer)):
            _lock.release()
            try:
                _do(lambda: wr.write(bare(v)))
            except (Exception, Cancelled) as e:
                if v is not bare(v) and getattr(e, "value", None) is bare(v):
                    e.value = v
                raise
            return
        r = k.r
        if r is not None:
            k.r = r.nx
            r.v = v
            r.x.send(None)
            _lock.release()
            return
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
        _lock.release()

    __call__ = write


def _parked(p):
    """As _wait, for the case that all is well: one lock to go to sleep, one to wake."""
    global _running
    if _running == 1 or _time._timers or _time._sources:
        try:
            _wait(p)
        except BaseException:
            _lock.release()
            raise
        return
    _running -= 1
    p.woken = False
    _lock.release()
    p.sem.acquire()
    _lock.acquire()
    if not p.woken:  # it was woken to lead
        _running += 1
        try:
            _wait(p)
        except BaseException:
            _lock.release()
            raise
        return
    e, p.e = p.e, None
    if e is not None:
        _lock.release()
        raise e


def _retire(self):
    with _lock:
        self._end.retire()
        _flush()


def _die(self):
    with _lock:
        self._end.die()
        _flush()


def _poison(self, strength=1):
    with _lock:
        self._end.poison(strength)
        _flush()


for _kind in (Reader, Writer):
    _kind.retire, _kind.die, _kind.poison = _retire, _die, _poison
    _kind.closed = property(lambda self: self._end.closed)
    _kind.channel = property(lambda self: self._end.channel)

_proc.WRAPS = (Reader, Writer)


def bare(x):
    return x._end if isinstance(x, (Reader, Writer)) else x


def wrap(x):
    if isinstance(x, core.Rd):
        return Reader(x)
    if isinstance(x, core.Wr):
        return Writer(x)
    return x


class Channel(_chan.Channel):
    def reader(self):
        with _lock:
            return Reader(super().reader())

    def writer(self):
        with _lock:
            return Writer(super().writer())

    __pos__ = reader
    __neg__ = writer

    def poison(self, strength=1):
        if core.cur() is not None or _lock.locked():
            super().poison(strength)
            return
        with _lock:
            super().poison(strength)
            _flush()

    def stats(self):
        with _lock:
            return super().stats()


class _Extended:
    def __init__(self, end):
        self.ext = _chan.Ext(end)

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
        with _lock:
            self._alt.__enter__()
        return self

    def __exit__(self, *_):
        with _lock:
            self._alt.__exit__()

    def enable(self, i, on):
        with _lock:
            self._alt.enable(i, on)

    def select(self):
        i, v = _do(self._alt.select)
        return i, wrap(v)


class Barrier(_proc.Barrier):
    def sync(self):
        _do(lambda: _proc.Barrier.sync(self))

    def enrol(self):
        with _lock:
            super().enrol()

    def resign(self):
        with _lock:
            super().resign()
            _flush()


class Timer(_proc.Timer):
    def tick(self):
        return _do(lambda: _proc.Timer.tick(self))


def process(fn):
    """`@process`: calling the function makes a process object, which runs on a thread."""

    def make(*args, **kw):
        with _lock:
            return Thread(fn, args, kw)

    try:
        make.__name__ = _proc.name_of(fn)
    except AttributeError:
        pass
    return make


def current_process():
    with _lock:
        p = _here.get(get_ident())
    return p if p is not None else _current()


def now():
    return _now()


def sleep(seconds):
    _do(lambda: _proc.sleep(seconds))


def sleep_ms(n):
    _do(lambda: _proc.sleep_ms(n))


def yield_():
    _do(_proc.yield_)


def io(fn):
    """A thread simply calls what blocks."""
    return fn


def _begin(ps, party, p=None):
    """Starts all; the last of them runs here, while p waits."""
    global _running
    with _lock:
        for x in ps:
            x.start(party)
        if p is not None and ps:  # in one go: it must not seem that nobody runs
            _running -= 1
            p.k.at = party
    begun = 0
    try:
        for x in ps[:-1]:
            x.launch()
            begun += 1
    except NoRoom as e:
        with _lock:  # those that have no thread never run; the others are stopped
            if p is not None:
                _running += 1
                p.k.at = REQ if p.asked and not party.stopped else None
            for x in ps[begun:]:
                _running -= 1
                _proc.finish(x, None, e if x is ps[begun] else Cancelled("never ran"))
            _flush()
        return
    if ps:
        ps[-1].on_this_thread()


def Parallel(*processes):
    """Starts the processes, waits for all, gives their results in order; in ordinary code it is a run (7.1)."""
    with _lock:
        p = _here.get(get_ident())
    if p is None:
        return run(*processes, whole=True)
    ps = _proc.flatten(processes, [])
    with _lock:
        if p.k.at is REQ:
            p.k.at = None
            p.asked = False
            raise Cancelled("%s was cancelled" % p.path)
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
                party.owner.asked = False
                party.owner.k.at = None
            raise Cancelled("%s was cancelled" % party.owner.path)
    except Cancelled:
        party.verdict()
        raise


def Sequence(*processes):
    results = []
    for x in _proc.flatten(processes, []):
        results.append(Parallel(x)[0])
    return results


def Spawn(*processes):
    if _proc._run is None:
        raise BadUse("Spawn outside a run")
    for x in _proc.flatten(processes, []):
        with _lock:
            x.start(_proc._run)
        x.launch()


class Group(_proc.Group):
    """`with Group() as g: g.start(p)`, in a process."""

    def __enter__(self):
        return _do(self.__aenter__)

    def start(self, *processes):
        ps = _proc.flatten(processes, [])
        for x in ps:
            with _lock:
                x.start(self.party)
                if self.party.failed:
                    x.ask()
            try:
                x.launch()
            except NoRoom as e:
                with _lock:
                    global _running
                    _running -= 1
                    _proc.finish(x, None, e)
                    _flush()
        return ps[0] if len(ps) == 1 else ps

    def cancel(self):
        with _lock:
            self.party.stop()
            _flush()

    def __exit__(self, kind, error, tb):
        return _do(lambda: self.__aexit__(kind, error, tb))


def run(*processes, clock="steady", whole=False):
    """The outermost network; the result of its process, or the list of results."""
    global _running
    ps = _proc.flatten(processes, [])
    with _lock:
        if _proc._run is not None:
            raise BadUse("a run within a run: Parallel(...)")
        _time.begin(clock)
        _proc._all.clear()
        _proc.dead = None
        _running = 0
        party = _proc._run = _proc.Party(None)
        party.n = len(ps)
    try:
        _begin(ps, party)
        while True:
            with _lock:
                if not party.live:
                    break
                if _time._timers or _time._sources:
                    _time.look()
                    _flush()
            _pause(1)
        if _proc.dead is not None:
            raise _proc.dead
        if whole:
            return party.verdict()
        return _proc.close_run(party)
    finally:
        _proc._run = None
        _proc.dead = None


def retire(*ends):
    for end in ends:
        end.retire()


def poison(*ends, strength=1):
    for end in ends:
        end.poison(strength)
