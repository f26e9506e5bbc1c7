"""Processes, groups and runs (rule 7).

Invariants
- A Process releases its ends before its group (class Party) is notified of its end (7.7).
- `Party.live` counts the processes of a group that have started and not finished. When it falls to
  0, the owner of the group, if it waits for them, is put into the run queue.
- `asked` is set from a request to end until its Cancelled is raised. Meanwhile a process that does
  not wait has `at` REQ.
- `_run` is the group of the outermost run, of which there is one at a time. `_all` contains the
  processes of that run that have not finished.
"""

import sys
from builtins import hasattr, int, isinstance, len

from . import _chan
from . import _core as core
from ._chan import ENDS, FLIGHT, LATE, REQ, bad, begin, cancelled, resume, shut
from .errors import Cancelled, NoRoom, Poisoned, Retired

_all = []
_roomy = 0  # the core's run queue has room for at least this many processes
_run = None
dead = None  # in weft.threads: the deadlock that was found
WRAPS = ()  # the classes of ends that weft.threads puts around the core's
shell = None  # inside asyncio's loop: the class that wraps each coroutine (_aio._Shell)


class Process:
    """A process: the function `fn` with its arguments. `fn` returns a coroutine or generator."""

    limits = ()  # the limits that the process is in, the outermost first (_limits)
    by = None  # if `asked`: the limit that cancelled the process; None: another request did
    flight = None  # the last Cancelled that was thrown to the process while it was in a limit
    watchers = ()  # the Nodes of selects that wait for its end
    watching = ()  # the processes that watch its end; None stands for ordinary code
    watch = 0  # 1: a select has waited for its end; 2: `watched`, its failure is its watchers'
    groups = 0  # the number of Group blocks that the process is in

    # Defaults of the class. A field of an instance costs memory, and is made only when its value
    # differs from the default.
    k = party = value = error = rots = fault = given = None
    asked = False
    args = ()
    kw = NO_NAMES = {}

    def __init__(self, fn, args, kw):
        self.fn, self.args = fn, args
        if kw:
            self.kw = kw
        self.ends = []
        hold(self.ends, args)
        if kw:
            hold(self.ends, kw.values())

    def named(self, name):
        self.given = name
        return self

    # The attributes that __getattr__ handles are not properties, because with a property in a class
    # MicroPython searches the class at every store to a field, and a process costs twice as much.
    def __getattr__(self, what):
        if what == "done":  # not a field: at the end of a process there might be no memory for one
            return self.ends == ()
        if what == "name":
            return self.given or name_of(self.fn)
        if what == "result":
            if self.error is None:
                return self.value
            from .errors import NoResult  # so that both cores use one class

            return NoResult.of(self)  # made on request, like `done` (7.1)
        # Weft itself uses `where`, which is the path (7.8): `path` of a thread takes the lock
        # first.
        if what != "path" and what != "where":
            raise AttributeError(what)
        name = self.name
        if self.party is None:
            return name
        alike = [k for k in self.party.kids if k.name == name]
        which = "[%d]" % alike.index(self) if len(alike) > 1 else ""
        return self.party.path() + "/" + name + which

    def __repr__(self):
        return "<process %s>" % self.path

    def __iter__(self):
        raise bad("AWAITED", name_of(self.fn))

    __await__ = __iter__

    def start(self, party):
        global _roomy
        if self.k or self.ends == ():  # never() has set `ends` to ()
            raise bad("STARTED", self.where)
        kw = self.kw
        try:
            g = self.fn(*self.args, **kw) if kw else self.fn(*self.args)
            if not hasattr(g, "send"):
                raise bad("COROUTINE", self.name)
            k = core.Proc(self)
            k.start(shell(g) if shell else g)
            n = len(_all) + 4
            if n > _roomy:  # the queue of the core in Python never shrinks
                core.room(n)
                _roomy = n
            _all.append(self)
        except MemoryError:
            raise NoRoom(
                "no memory for process %s; those that run can still be stopped" % self.name
            )
        del self.args  # the coroutine has the arguments; fields that follow use this memory
        if kw:
            self.kw = self.NO_NAMES
        self.k = k
        self.party = party
        party.kids.append(self)
        party.live += 1
        core.push(k)

    def cancel(self):
        """Cancels the process: its operation, or its next one, raises Cancelled (6.1)."""
        self.ask()

    def ended(self):
        """Returns the end of this process, as a guard; `await p.ended().wait()` waits for it
        (7.11).
        """
        from ._ended import End

        p = core.cur()
        return End(self, p and p.x)

    def flies(self):
        """Returns whether a Cancelled has been thrown to the process and not yet been raised in
        it."""
        return self.k is not None and self.k.at is FLIGHT and core.cur() is not self.k

    def ask(self, by=None):
        """Cancels the process, for the limit `by`, or None if the request is from elsewhere. Of
        several requests before the process has met one, the outermost counts (7.12)."""
        p = self.k
        if self.done:
            return
        if self.asked or self.flies():
            it = self if self.asked else self.flight
            if by is not None or it.by is not None:
                from ._limits import overtaken

                overtaken(it, by)
            return
        self.by = by
        self.asked = True
        if p is None:
            return
        if core.cur() is p or p.at is None:  # p runs, so a Cancelled in flight has been raised
            p.at = REQ
            return
        at = p.at
        e = Cancelled("%s was cancelled" % self.where)
        if isinstance(at, core.Rd):
            if not _unlink(at, False, p):
                p.at = LATE
                return
        elif isinstance(at, core.Wr):
            _unlink(at, True, p)
            e.value = p.v
        elif isinstance(at, str) or not at.give_up(p):
            return
        self.asked = False
        e.by, self.by = self.by, None
        p.at = None
        if self.limits:
            p.at = FLIGHT
            self.flight = e
        p.throw(e)
        core.push(p)


def _unlink(end, out, p):
    """Removes a waiting process from its channel's queue. The channel is that of `end.channel`,
    which exists even if the end has since been closed."""
    return end.channel.unlink(out, p)


def name_of(fn):
    return getattr(fn, "__name__", "process")


_KINDS = (list, tuple, set, dict)


def hold(ends, things):
    """Adds to `ends` the ends among `things` and in the containers among them; the process holds
    them from now on (2.3)."""
    for x in things:
        kind = x.__class__  # comparing the class is much quicker than isinstance
        if kind in WRAPS:
            x = x._end
            kind = x.__class__
        if kind in ENDS:
            x.h += 1
            ends.append(x)
        elif kind is not int and isinstance(x, _KINDS):
            hold(ends, x.values() if isinstance(x, dict) else x)


def let_go(proc, error):
    """Makes the process release its ends, and poisons them if `error` is a Poisoned (4.3)."""
    ends, proc.ends = proc.ends, ()
    for end in ends:
        end.h -= 1
        if end.x:
            continue
        if error is not None and isinstance(error, Poisoned):
            end.c.x.spoil(error.strength)
        if end.h <= 0 and end is not proc.value:
            shut(end, False, "its process %s has ended" % proc.name)


def ended(p, value):
    finish(p.x, value, None)


def failed(p, error):
    if p.x is None:
        raise error
    if isinstance(error, StopIteration):  # _aio._Shell raises this, since it is not a generator
        finish(p.x, error.value, None)
    else:
        finish(p.x, None, error)


def finish(proc, value, error):
    """Ends a process: it releases its ends, then its watchers are notified, then its group
    (7.7)."""
    p = proc.k
    at = p.at
    if isinstance(at, ENDS):
        # The process ended while it was in a queue: by a write that it did not await, or by Ctrl-C.
        _unlink(at, isinstance(at, core.Wr), p)
    p.at = None
    if value is not None:
        proc.value = value
    if error is not None:
        proc.error = error
    let_go(proc, error)
    # The search goes from both ends of `_all`; `remove` would compare with all processes before
    # this one.
    i, j = 0, len(_all)
    while i < j:
        j -= 1
        if _all[j] is proc:
            i = j
        if _all[i] is proc:
            del _all[i]
            break
        i += 1
    theirs = False
    if proc.watch:
        from ._ended import tell

        theirs = tell(proc)
    proc.party.over(proc, None if error is None or theirs or quiet(error) else error)


def quiet(error):
    """Returns whether `error` is not a failure: a cancellation, or the end of a channel that an
    operation met (3.5, 6.1).
    """
    return isinstance(error, Cancelled) or (
        isinstance(error, (Retired, Poisoned)) and getattr(error, "met", False)
    )


_chan.install(ended, failed)


def process(fn):
    """Decorates an async function: a call of the function returns a process object, which Parallel,
    run, … start.
    """

    def make(*args, **kw):
        return Process(fn, args, kw)

    try:
        make.__name__ = name_of(fn)
    except AttributeError:
        pass
    return make


def current_process():
    """Returns the process that runs. Raises BadUse in ordinary code."""
    p = core.cur()
    if p is None:
        raise bad("NOBODY")
    return p.x


def flatten(things, out):
    """Appends to `out` the processes in `things` and in the iterables in it; returns `out`. Raises
    BadUse for an item that is not a process."""
    for x in things:
        if isinstance(x, Process):
            out.append(x)
            continue
        try:
            if isinstance(x, (str, bytes) + ENDS):
                raise TypeError
            i = iter(x)
        except Exception:  # for example, a process of weft.threads gives an AttributeError
            raise bad("PROCESS", x)
        flatten(i, out)
    return out


class Party:
    """A group: processes that their owner waits for together. With `block` the owner runs the block
    of a Group beside them."""

    failed = waits = block = stopped = False
    mine = None  # True: this group has asked its owner to end the block

    def __init__(self, owner):
        self.owner = owner
        self.kids = []
        self.live = 0

    def path(self):
        return self.owner.where if self.owner else "main"

    def over(self, proc, error):
        self.live -= 1
        if error is not None:
            proc.fault = error
        if error is not None and not self.failed:
            self.failed = True
            self.stop()
            if self.block and not self.waits and not self.owner.asked:
                self.mine = True
                self.owner.ask()
        if not self.live and self.waits:
            self.waits = False
            core.push(self.owner.k)

    def stop(self):
        for kid in self.kids[:]:
            if not kid.done:
                kid.ask()

    def give_up(self, p):
        """Cancels the group because the process that waits for it is cancelled. The process still
        waits for the group (7.6)."""
        self.stopped = True
        self.stop()
        return False

    async def join(self):
        """Waits until all processes have finished."""
        if self.live:
            self.waits = True
            p = core.cur()
            p.at = self
            await core.ONCE
            resume(p)
            if self.stopped:
                raise cancelled(p)

    def verdict(self, also=None):
        """Returns the results in order. Raises the failure, or Failures if there are several (7.2);
        `also` is the failure of the block."""
        if self.failed or also is not None:
            wrong = [k.fault for k in self.kids if k.fault is not None]
            if also is not None:
                wrong.append(also)
            if len(wrong) > 1:
                from .errors import Failures

                raise Failures(wrong)
            raise wrong[0]
        return [k.value if k.error is None else k.result for k in self.kids]


async def Parallel(*processes):
    """Starts the processes in order, waits for all, and returns their results in order (7.1). A
    failure of one process cancels the other processes and is raised (7.2)."""
    p = core.cur()
    if p is None and _chan.outsider():
        return await _chan.outsider().parallel(processes)
    ps = flatten(processes, [])
    try:
        begin(p, "Parallel")
        party = Party(p.x)
        for x in ps:
            x.start(party)
    except BaseException as e:
        if p.at is None and not isinstance(e, Cancelled):
            party.stop()
            try:
                await party.join()
            except Cancelled:
                pass
        never(ps)
        raise e
    try:
        await party.join()
    except Cancelled:
        party.verdict()
        raise
    return party.verdict()


def never(ps):
    """Marks those of these processes that have not started as never to be started: they release
    their ends.
    """
    for x in ps:
        if not x.k:
            let_go(x, None)


# The following functions perform the outermost run.


def run(*processes, clock="steady", host="weft"):
    """Runs a network and waits for its end (7.1).

    Args:
        clock: "steady" or "virtual" (8.6).
        host: "weft", or "asyncio" to run in a loop of asyncio (13).

    Returns:
        The result of the process if there is one, else the list of results.

    Raises:
        Deadlock: no process can go on (10.1). A failure of a process is raised too (7.2).
    """
    if host == "asyncio":
        from . import _aio

        return _aio.run(processes)
    party = open_run(processes, clock)
    try:
        dead = None
        while True:
            try:
                core.loop(0)
                if not party.live:
                    break
                if core.time and core.time.idle():
                    continue
                raise dead or report().deadlock()
            except BaseException as e:  # the deadlock, or Ctrl-C between processes or in idle()
                if dead:
                    raise
                dead = e
            for x in _all[:]:
                x.ask()
        if dead:
            raise dead
        return close_run(party)
    finally:
        abandon()


def open_run(processes, clock):
    global _run
    if _run is not None:
        raise bad("WITHIN")
    ps = flatten(processes, [])
    if core.time or clock != "steady":
        from . import _time

        _time.begin(clock)
    _all.clear()
    if "asyncio.core" in sys.modules:
        from . import _foreign

        _foreign.enter()
    _run = Party(None)
    _run.n = len(ps)
    try:
        for x in ps:
            x.start(_run)
    except BaseException:
        _run.stop()
        core.loop(0)
        _run = None
        if _chan.ours is not None:
            _foreign_leave()
        raise
    return _run


def close_run(party):
    if party.n == 1 and not party.failed:
        e = party.kids[0].error
        if e is not None:
            raise e
    results = party.verdict()[: party.n]
    return results[0] if party.n == 1 else results


def abandon():
    """Clears up after a run, however it ended, so that no process is left over."""
    global _run
    _run = None
    core.at_once(None)
    core.setcur(None)
    try:
        for x in _all[:]:  # a second Ctrl-C, or an error in a hook, has left these processes over
            x.ask()
        core.loop(0)
        if _all:
            report().drop()
    finally:  # Ctrl-C might come once more, or there is no memory
        if core.time:
            core.time.leave()
        if _chan.ours is not None:
            _foreign_leave()
        _all.clear()
        core.setcur(None)
        while core.waiting():
            drain()


def _foreign_leave():
    from ._foreign import leave

    leave()


def report():
    from . import _report

    return _report


def drain():
    nothing = lambda p, v: None  # noqa: E731
    core.hooks(_chan.read, _chan.write, nothing, nothing, _chan.strange)
    core.loop(1)
    core.hooks(_chan.read, _chan.write, ended, failed, _chan.strange)
