"""Runs processes as guests of MicroPython's asyncio (rule 13). A task of asyncio, the driver, steps
the processes. Other tasks of asyncio may use channels too (rule 6.6).

Invariants
- The driver exists while there is a process, or something in the run queue. While no process can
  run, the driver waits (`_rest`) for the next deadline. Code outside the driver that pushes a
  process must call `kick`.
- Each process has a Task of asyncio (`_Shell.task`), which is asyncio's `cur_task` while the
  process runs. So a process may await asyncio's awaitables. When one is due, asyncio queues the
  Task, whose `coro` (_Resume) only pushes the process.
- A task that waits at a channel is not in asyncio's queue: its `data` is a `_Wait`. A writer never
  gives such a reader a value. The writer skips the reader's node and calls `note`, as it does for
  an Alternative; the task takes the value when it runs, or leaves without one.
"""

import asyncio
from asyncio import core as aio

from . import _alt, _chan, _proc, _time
from . import _core as core
from .errors import BadUse

TURN = 64  # how many processes the driver resumes before asyncio's other tasks run


class _Wait:
    """A place where a task waits outside asyncio's queue."""

    def __init__(self):
        self.task = None
        self.timed = False

    def wait(self, dt=-1):
        t = self.task = aio.cur_task
        self.timed = dt >= 0
        if self.timed:
            aio._task_queue.push(t, aio.ticks_add(aio.ticks(), dt))
        else:
            t.data = self
        yield
        self.task = None

    def wake(self):
        t, self.task = self.task, None
        if t is not None:
            if self.timed:
                aio._task_queue.remove(t)
            else:
                t.data = None
            aio._task_queue.push(t)

    def remove(self, task):
        """asyncio calls remove() when it cancels the task; asyncio then queues the task."""
        self.task = None


_rest = _Wait()
_driver = None


class _Resume:
    """The `coro` of a process's Task: asyncio resumes it when the Task is due."""

    def __init__(self, p):
        self.p = p

    def send(self, v):
        p = self.p
        p.at = None
        core.push(p)
        kick()

    def throw(self, e):
        self.p.throw(e)
        self.send(None)


class _Shell:
    """A process's coroutine, wrapped so that it runs as a Task of asyncio."""

    def __init__(self, g):
        self.g = g
        self.task = self.p = None

    def send(self, v):
        return self.step(self.g.send, v)

    def throw(self, e):
        return self.step(self.g.throw, e)

    def step(self, do, what):
        p = core.cur()
        if self.task is None:
            self.task = aio.Task(_Resume(p), aio.__dict__)
        was, aio.cur_task = aio.cur_task, self.task
        core.setcur(p)
        try:
            y = do(what)
        finally:
            aio.cur_task = was
        if y is None and p.at is None:
            p.at = self
        return y

    def __repr__(self):
        return "something of asyncio's"

    def give_up(self, p):
        t = self.task
        if hasattr(t.data, "remove"):
            t.data.remove(t)
            t.data = None
        else:
            aio._task_queue.remove(t)
        return True


async def _drive():
    global _driver
    try:
        while True:
            core.loop(TURN)
            if core.waiting():
                await asyncio.sleep_ms(0)
            elif not _proc._all:
                return
            else:
                dt = _time.due()
                if dt == 0:
                    _time.look()
                else:
                    await _rest.wait(dt)
    finally:
        _driver = None


def kick():
    """Starts the driver, or wakes it if it waits. Call kick() after a push outside the driver."""
    global _driver
    if _driver is None:
        _driver = asyncio.create_task(_drive())
    else:
        _rest.wake()


async def _watch(s):
    while s in _time._sources:
        yield aio._io_queue.queue_read(s)
        _time.look()
        kick()


def _watched(s):
    asyncio.create_task(_watch(s))


_guests = []


def guest(party, wrap):
    """Begins a run of the group `party` as a guest. Several tasks of asyncio can have a run as a
    guest at the same time."""
    if _proc._run is None:
        _time.begin("steady")
        _proc._all.clear()
        _proc._run, _proc.shell = party, wrap
    elif _proc.shell is None:
        raise BadUse("a run within a run: await Parallel(...) in a process")
    _guests.append(party)


def guest_over(party):
    _guests.remove(party)
    if _proc._run is party:
        _proc._run = _guests[0] if _guests else None
    if _proc._run is None:
        _proc.shell = None
        _time.watcher = None


class _Party(_proc.Party):
    """A group of processes that a task of asyncio waits for."""

    def __init__(self):
        super().__init__(None)
        self.done = _Wait()

    def over(self, proc, error):
        super().over(proc, error)
        if not self.live:
            self.done.wake()


def run(processes):
    """Runs the processes in an asyncio loop of their own; returns as `run_async` does."""
    try:
        return asyncio.run(run_async(*processes))
    finally:
        _time.leave()


async def run_async(*processes):
    """Runs a network inside the running loop. Returns the result of its one process, or the list of
    results in order."""
    results = await parallel(processes, True)
    return results[0] if len(results) == 1 else results


async def parallel(processes, one=False):
    ps = _proc.flatten(processes, [])
    party = _Party()
    party.n = len(ps)
    guest(party, _Shell)
    _time.watcher = _watched
    try:
        try:
            for p in ps:
                p.start(party)
        except BaseException:
            party.stop()
            raise
        kick()
        while party.live:
            await party.done.wait()
    finally:
        party.stop()
        cancelled = None
        kick()
        while party.live:  # no process outlives this call, not even if the task is cancelled
            try:
                await party.done.wait()
            except asyncio.CancelledError as e:
                cancelled = e
        guest_over(party)
        if cancelled:
            raise cancelled
    if one and len(ps) == 1 and not party.failed and ps[0].error is not None:
        raise ps[0].error
    return party.verdict()


# Tasks of asyncio that use channels.


def task():
    t = getattr(aio, "cur_task", None)
    if t is None:
        raise _chan.bad("ORDINARY", "an operation")
    return t


class _Look:
    """A task that waits to read: `note` wakes it, and no writer gives it a value."""

    ext = live = quick = False
    standing = True

    def __init__(self, c):
        self.w = _Wait()
        self.node = _chan.Node(self, 0, c, False)
        self.late = None

    def note(self, n):
        self.w.wake()

    told = note

    def remove(self, t):
        """asyncio calls remove() when it cancels the task, which then leaves the waiting queue
        without a value.
        """
        self.w.task = None
        self.node.c.unlink(False, self.node)
        _waits.pop(id(t), None)

    def given(self, v, e):
        self.late = (v, e)
        self.w.wake()


_waits = {}  # id of a task that waits to read → its _Look


def read(rd):
    """The core's hook for a read by a task: returns `(v,)`, or None if the task must wait."""
    t = task()
    if id(t) not in _waits:
        point()
    if rd.x:
        raise _chan.closed(rd, "read by a task of asyncio")
    c = rd.c.x
    look = _waits.get(id(t))
    v, error = _chan.NOTHING, None
    if look and look.late:
        v, error = look.late
    elif not c.pz:
        look = look or _Look(c)
        v = c.get(None, look.given)
    if error is None and v is _chan.NOTHING and c.ended(False):
        error = c.error(True)
    if error is None and (v is _chan.NOTHING or v is _chan.LATER):
        if id(t) not in _waits:
            _waits[id(t)] = look
            c.link(False, look.node)
            c.note(True)
        look.w.task, look.w.timed = t, False
        t.data = look
        return None
    if id(t) in _waits:
        del _waits[id(t)]
        c.unlink(False, look.node)
    if core.waiting():
        kick()
    if error is not None:
        error.met = True
        raise error
    return (v,)


class _Task:
    """Stands for the `Process` where a task waits, with the fields that the hooks use."""

    asked = False
    path = name = "a task of asyncio"
    rots = None

    def __init__(self):
        self.ends = []
        self.w = _Wait()
        self.e = None
        self.p = core.Proc(self)
        self.p.go = self.go
        self.p.start(self)

    def send(self, _):
        self.w.wake()
        self.w.woken = True
        return core.ONCE

    go = send

    def throw(self, e):
        self.e = e
        return self.send(None)


async def write(wr, v):
    point()
    if wr.x:
        raise _chan.closed(wr, "write by a task of asyncio")
    c = wr.c.x
    if c.ended(True) and (c.pz or c.first(False) is None):
        e = c.error(False, v)
        e.met = True
        raise e
    if c.put(v, None) is not False:
        kick()
        return
    me = _Task()
    me.w.woken = False
    p = me.p
    p.at, p.v = wr, v
    end = isinstance(v, _chan.ENDS)
    if end:
        alt = _alt.Alt((_alt.Output(wr, v),), "raise")
        alt.enrol(p)
    else:
        c.link(True, p)
        c.note(False)
    kick()
    try:
        while not me.w.woken:
            await me.w.wait()
    except asyncio.CancelledError:
        withdrawn = alt.live if end else c.unlink(True, p)
        if withdrawn:
            if end:
                alt.withdraw()
            raise
        again(
            task()
        )  # the write had committed, so it completes; the next operation is cancelled (6.3)
        while not me.w.woken:
            await me.w.wait()
    if me.e is not None:
        raise me.e
    if end and alt.e is not None:
        alt.e.met = True
        raise alt.e


_asked = []  # tasks cancelled after a commit; their next operation raises Cancelled (6.3)


def again(t):
    _asked.append(t)

    async def cancel():
        if t in _asked:
            _asked.remove(t)
            if not t.done():
                t.cancel()

    asyncio.create_task(cancel())


def point():
    """Begins an operation of the running task. Returns the task. Raises a deferred
    cancellation."""
    t = task()
    if t in _asked:
        _asked.remove(t)
        raise asyncio.CancelledError
    return t


async def select(guards, mode, ended):
    """Performs a select in a task: checks the guards, and waits until one of their channels
    changes. Raises BadUse for a barrier or the end of a process.
    """
    point()
    alt = _alt.Alt(guards, ended)
    me = _Task()
    begun = _time.later(1) - 1
    alt.check()
    alt.begun = begun
    soonest = None
    for n in alt.nodes:
        if n.on and n.kind >= _alt.SYNC:
            what = "a barrier" if n.kind == _alt.SYNC else "a process's end"
            raise BadUse("a task of asyncio cannot select %s: do it in a process" % what)
        if n.on and n.kind == _alt.TIME:
            t = alt.due(n)
            soonest = t if soonest is None else min(t, soonest)

    alt.note = alt.told = lambda n: me.w.wake()
    alt.standing = True
    for n in alt.nodes:
        if n.kind < _alt.TIME:
            n.c.link(n.out, n)
    try:
        while True:
            i = alt.scan(mode)
            if i < 0 and soonest is not None and _time.now_ms() >= soonest:
                for n in alt.nodes:
                    if n.on and n.kind == _alt.TIME and alt.due(n) <= soonest:
                        i = n.i
                        break
            if i >= 0:
                if alt.take(i, me.p):
                    while not getattr(me.w, "woken", False):
                        await me.w.wait()
                kick()
                if alt.e is not None:
                    alt.e.met = True
                    raise alt.e
                return alt.won, alt.v
            for n in alt.nodes:
                if n.kind < _alt.TIME and n.on:
                    n.c.note(not n.out)
            await me.w.wait(-1 if soonest is None else max(1, soonest - _time.now_ms()))
    finally:
        for n in alt.nodes:
            if n.kind < _alt.TIME:
                n.c.unlink(n.out, n)


async def sleep(n):
    await asyncio.sleep_ms(max(0, n))
