"""Runs processes as threads (weft.threads): the lock, waiting and waking, deadlock.

Invariants
- `lock` is held whenever a thread uses the core or other data of Weft; no user code runs under it.
  The code does not rely on a GIL.
- A thread process blocks on its own lock, `sem`. The thread that sets its `woken`, under `lock`,
  also releases `sem` (`poke`). Where speed matters it does so after it has released `lock`, because
  the woken thread takes `lock` at once. A thread may find its `sem` released although it was not
  woken; then it waits again.
- A Thread has all its fields from the beginning, and so has a channel of weft.threads. On a
  MicroPython without a GIL, a thread that looks up a field while another thread adds one may not
  find it. Data that grow later (`kids` of a group) are used only under `lock`.
- `running` counts the processes that do not wait. The thread that makes it 0 checks whether
  anything can still happen, or declares deadlock (10.1).
- At most one of the waiting processes leads: it checks the clock for all, because a lock has no
  acquire with a time limit here.
- Ctrl-C is raised in the main program's thread, wherever that thread is. All code that takes `lock`
  also releases it then. If that thread runs a process that waits, the process is cancelled
  (`wait`), and has failed with the KeyboardInterrupt.
"""

from . import _alt, _beside, _proc, _time
from . import _core as core
from ._beside import allocate_lock, get_ident, pause
from ._chan import FLIGHT, REQ, bad, cancelled
from .errors import BadUse, NoRoom

lock = allocate_lock()
here = {}  # thread → the process that runs on it; protected by `lock`
running = 0
on = False  # whether a run of weft.threads is under way
leader = None
threads = 0


def whole(x, kind):
    """Gives the object x fields of its own for all defaults of its class `kind`."""
    for name in dir(kind):
        v = getattr(kind, name)
        if name[0] != "_" and not callable(v):
            setattr(x, name, v)


def locked(f):
    """Returns a function that calls f under the lock, and then wakes the processes that f has
    pushed.
    """

    def call(*args, **kw):
        with lock:
            try:
                return f(*args, **kw)
            finally:
                if on:
                    flush()

    try:
        call.__wrapped__ = f  # gives CPython's `inspect` the signature
    except AttributeError:
        pass
    return call


class Thread(_proc.Process):
    """A process on a thread. The core uses this object in place of a generator."""

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
        """Returns the end of this process, as a guard; `p.ended().wait()` waits for it (7.11)."""
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
            mixed(
                "process %s is of weft.threads, and the run of weft.coroutines: use one of the two"
                % self.name
            )
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
        """Starts the process on a thread of its own. The caller must not hold the lock. Raises
        NoRoom if there is no thread."""
        global threads
        with lock:
            full = threads >= _beside.LIMIT
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
        """Runs the function on this thread, and notifies the group. `own` is 1 if the thread was
        started for this process."""
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
            threads -= own  # before the group is notified, since the next network can begin then
            _proc.finish(self, value, error)
            if before is None:
                del here[me]
                running -= 1
            else:  # the process that called and waited goes on
                here[me] = before
                before.k.at = REQ if before.asked and not self.party.stopped else None
            flush()

    # The core calls the next methods to resume the process. They wake the process's thread.

    def send(self, _):
        self.wake()
        self.poke()
        return core.ONCE  # the thread of the process waits at its own lock

    # The natmod resumes with __next__ if it can. Without this method __getattr__ would raise.
    def __next__(self):
        return self.send(None)

    def wake(self):
        """Marks the process as woken; it goes on once it is poked. Call `poke` without the lock if
        possible, because the woken thread acquires the lock first."""
        global running
        running += 1
        self.woken = True

    def throw(self, e):
        self.e = e
        return self.send(None)

    def poke(self):
        sem = self.sem
        if sem.locked():  # otherwise the process was poked before, and has not noticed yet
            try:
                sem.release()
            except RuntimeError:  # two threads poked the process at the same moment
                pass

    def ask(self, by=None):
        super().ask(by)
        if self.woken:  # the waking thread might have been interrupted before it poked
            self.poke()

    cancel = locked(lambda self: self.ask())


def mixed(what):
    raise BadUse(
        "%s: one run is of threads or of coroutines, import all names from one of the two; a Ring (weft.isr) joins"
        " a thread to coroutines" % what
    )


def fit(ps):
    """Checks, before any of the processes is started, that they are processes of weft.threads and
    have ends of weft.threads."""
    for p in ps:
        if not isinstance(p, Thread):
            mixed(
                "process %s is of weft.coroutines, and the run of weft.threads: use one of the two"
                % p.name
            )
        for x in list(p.args) + list(p.kw.values()):
            if isinstance(x, (core.Rd, core.Wr)):
                mixed(
                    "process %s is a thread, and its end of %r belongs to a coroutine"
                    % (p.name, x.channel.name)
                )


def bare(x):
    """Returns the core's end inside the end x of weft.threads; any other x is returned as it is."""
    return x._end if isinstance(x, _proc.WRAPS) else x


def flush():
    """Wakes the processes that were pushed. If no process runs then, lets virtual time jump, or
    declares a deadlock and cancels all processes."""
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
    """Returns the process that runs on this thread. If no process does, releases the lock and
    raises BadUse.
    """
    p = here.get(get_ident())
    if p is None:
        lock.release()
        if core.cur() is not None and not on:
            mixed("an operation of weft.threads in a coroutine")
        raise bad("ORDINARY", "an operation")
    return p


def wait(p):
    """Blocks until the parked process p, which runs on this thread, is woken. The caller holds the
    lock before and after."""
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
        except BaseException as e:  # Ctrl-C cancels the process; a second one ends the wait
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
    """Checks the clock and the sources for all processes, until p is woken or nothing is due."""
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
        for x in _proc._all:  # another process might lead now
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
    """Calls the function of an output guard without the lock, because it is user code (12.1)."""
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
    """Runs an operation of weft.coroutines, the awaitable that make() returns, on this thread;
    returns its result."""
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
    """Does the same as `wait`, with fewer uses of locks in the usual case."""
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
        running += 1  # p was poked to lead, not woken
    wait(p)
