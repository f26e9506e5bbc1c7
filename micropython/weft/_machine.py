"""Runs processes as threads (weft.threads): the one lock, waking, waiting, deadlock.

Invariants
- `lock` is held whenever the core or anything of Weft's is touched; no code of the user runs under it. No GIL is assumed.
- A thread process blocks on its own lock, `sem`. The thread that sets its `woken`, under `lock`,
  also releases `sem` (`poke`). Where speed matters it does so once `lock` is free again, since the
  woken thread takes `lock` at once. A thread may find its `sem` released although it was not woken:
  then it waits again.
- A Thread has all its fields from the beginning, and so has a channel of threads: on a MicroPython
  without a GIL a thread that looks a field up while another one adds one may not find it. What grows
  later (a party's `kids`) is looked at under `lock` alone.
- `running` counts the processes that do not wait. The thread that makes it 0 looks whether anything
  can come (deadlock, 10.1).
- Of the processes that wait at most one leads: it looks at the clock for all, since a lock cannot
  be waited for with a limit here.
- Ctrl-C lands in the main program's thread, wherever that is. Whatever takes `lock` lets go of it then
  too. A process that waits is asked to end by it (`wait`), and has failed by it.
"""

from . import _alt, _beside, _proc, _time
from . import _core as core
from ._beside import allocate_lock, get_ident, pause
from ._chan import FLIGHT, REQ, bad, cancelled
from .errors import BadUse, NoRoom

lock = allocate_lock()
here = {}  # thread → the process that runs on it; under lock
running = 0
on = False  # whether the run is one of threads
leader = None
threads = 0


def whole(x, kind):
    """Gives x fields of its own for all defaults of this class of it."""
    for name in dir(kind):
        v = getattr(kind, name)
        if name[0] != "_" and not callable(v):
            setattr(x, name, v)


def locked(f):
    """f under the lock; whom it lets go on is woken."""

    def call(*args, **kw):
        with lock:
            try:
                return f(*args, **kw)
            finally:
                if on:
                    flush()

    try:
        call.__wrapped__ = f  # its signature, for CPython's `inspect`
    except AttributeError:
        pass
    return call


class Thread(_proc.Process):
    """A process on a thread; to the core its `generator` is this object itself."""

    woken = False
    e = sem = None

    def __init__(self, fn, args, kw):
        whole(self, Thread)
        super().__init__(fn, args, kw)

    def __getattr__(self, what):
        if what == "path":
            with lock:
                return self.where
        return super().__getattr__(what)

    def ended(self):
        """Its end: a guard; `p.ended().wait()` waits for it (7.11)."""
        from ._ended import End

        class Blocking(End):
            def wait(self):
                return do(lambda: _alt.select(self))[1]

        with lock:
            return Blocking(self, here.get(get_ident()))

    def flies(self):
        return self.k is not None and self.k.at is FLIGHT

    def start(self, party):
        global running
        if not on:
            mixed("process %s is a thread's, the run is weft.coroutines'" % self.name)
        if self.done or self.k:
            raise bad("STARTED", self.where)
        try:
            self.sem = allocate_lock()
            self.sem.acquire()
            k = core.Proc(self)
            k.start(self)
            core.room(len(_proc._all) + 4)
            _proc._all.append(self)
        except MemoryError:
            raise NoRoom("no memory for process %s; the others can still be stopped" % self.name)
        self.k = k
        self.party = party
        party.kids.append(self)
        party.live += 1
        running += 1

    def launch(self):
        """Starts it on a thread of its own. Called without the lock."""
        global threads
        with lock:
            full = threads >= _beside.MOST
            threads += not full
        e = None if full else _beside.begin(self.body)
        if not full:
            if e is None:
                return
            with lock:
                threads -= 1
        _beside.refuse(self.path, e)

    def body(self):
        self.on_this_thread(1)

    def on_this_thread(self, own=0):
        """Runs the function, and tells the party; own: 1 if the thread was made for it."""
        global running, threads
        me = get_ident()
        value = error = None
        try:
            with lock:
                before = here.get(me)
                here[me] = self
                if self.k.at is REQ:
                    raise cancelled(self.k)
            value = self.fn(*self.args, **self.kw)
        except BaseException as e:
            error = e
        self.args, self.kw = (), self.NO_NAMES
        with lock:
            threads -= own  # before the party is told: the next network may begin at once
            _proc.finish(self, value, error)
            if before is None:
                del here[me]
                running -= 1
            else:  # its caller, who waited for it, goes on
                here[me] = before
                before.k.at = REQ if before.asked and not self.party.stopped else None
            flush()

    # the core goes on with this process: it is woken

    def send(self, _):
        self.wake()
        self.poke()

    # The natmod resumes by this where it can; without it __getattr__ would raise.
    def __next__(self):
        self.send(None)

    def wake(self):
        """It may go on, and does once it is poked. That is done without the lock if possible, since
        it takes the lock first."""
        global running
        running += 1
        self.woken = True

    def throw(self, e):
        self.e = e
        self.send(None)

    def poke(self):
        sem = self.sem
        if sem.locked():  # else it was poked before, and has not looked yet
            try:
                sem.release()
            except RuntimeError:  # two poked it in one moment
                pass

    def ask(self, by=None):
        super().ask(by)
        if self.woken:  # by one that was interrupted before it poked
            self.poke()

    cancel = locked(lambda self: self.ask())


def mixed(what):
    raise BadUse(
        "%s: one run is of threads or of coroutines, import all names from one of the two; a Ring (weft.isr) joins"
        " a thread to coroutines" % what
    )


def fit(ps):
    """Called before any is started: checks that they are threads, and have ends of threads."""
    for p in ps:
        if not isinstance(p, Thread):
            mixed("process %s is a coroutine, the run is weft.threads'" % p.name)
        for x in list(p.args) + list(p.kw.values()):
            if isinstance(x, (core.Rd, core.Wr)):
                mixed(
                    "process %s is a thread, its end of %r a coroutine's" % (p.name, x.channel.name)
                )


def bare(x):
    """The core's end inside one of weft.threads."""
    return x._end if isinstance(x, _proc.WRAPS) else x


def flush():
    """Wakes the processes that were pushed. If none runs then, waits for time or finds a
    deadlock."""
    core.setcur(None)
    while True:
        core.loop(0)
        if running > 0 or not _proc._all:
            return
        if _time.virtual and _time._timers:
            _time.idle()
        elif _time._timers or _time._sources:
            return
        elif _proc.dead is None:
            _proc.dead = _proc.report().deadlock()
            for x in _proc._all[:]:
                x.ask()
        else:
            return


def mine():
    p = here.get(get_ident())
    if p is None:
        lock.release()
        if core.cur() is not None and not on:
            mixed("an operation of weft.threads in a coroutine")
        raise bad("ORDINARY", "an operation")
    return p


def wait(p):
    """The process has parked, the lock is held: blocks until it is woken, and holds the lock again."""
    global running
    running -= 1
    p.woken = False
    stop = None
    while True:
        try:
            flush()
            while not p.woken:
                if leader is None and (_time._sources or (_time._timers and not _time.virtual)):
                    lead(p)
                else:
                    asleep(p.sem.acquire)
            break
        except BaseException as e:  # Ctrl-C: as if it were cancelled; once more: now
            if stop is not None:
                running += 1
                break
            stop = e
            p.ask()
    if p.sem.locked() is False:
        p.sem.acquire()
    if stop is not None:
        p.e, p.asked = stop, False
        p.k.at = FLIGHT
    goes_on(p)


def asleep(f, *args):
    lock.release()
    try:
        f(*args)
    finally:
        lock.acquire()


def lead(p):
    """Looks at the clock for all, until p is woken or there is nothing to look for."""
    global leader
    leader = p
    try:
        while not p.woken and (_time._sources or _time._timers):
            dt = _time.due()
            if dt:
                asleep(pause, dt if 0 < dt < 5 else 5)
            _time.look()
            flush()
    finally:
        leader = None
        for x in _proc._all:  # now another may lead
            if x is not p and not x.woken and x.k.at is not None:
                x.poke()
                break


def goes_on(p):
    e, p.e = p.e, None
    if e is not None:
        if p.k.at is FLIGHT:
            p.k.at = None
        raise e


def unlocked(make):
    """Calls the function of an output guard without the lock, since it is the user's code
    (12.1)."""
    p = core.cur()
    if p is None or not isinstance(p.x, Thread):
        return make()
    core.setcur(None)
    flush()
    lock.release()
    try:
        return bare(make())
    finally:
        lock.acquire()
        core.setcur(p)


_alt.unlocked = unlocked


def do(make):
    """Runs an operation of weft.coroutines on this thread."""
    lock.acquire()
    p = mine()
    try:
        core.setcur(p.k)
        it = make()
        if it is core.DONE:
            return None
        if it is core.ONCE:
            wait(p)
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
                wait(p)
            except BaseException as error:
                e = error
    finally:
        try:
            flush()
        finally:
            lock.release()


def parked(p):
    """As wait, for the usual case: takes one lock to go to sleep, and one to wake."""
    global running
    if running > 1 and not _time._timers and not _time._sources:
        running -= 1
        p.woken = False
        lock.release()
        p.sem.acquire()
        lock.acquire()
        if p.woken:
            if p.e is not None:
                goes_on(p)
            return
        running += 1  # it was poked to lead, not woken
    wait(p)
