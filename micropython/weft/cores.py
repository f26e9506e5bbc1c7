"""A second scheduler, on core 1 (on unix: on a thread), and lines: channels between the two cores
(README.md, *Two cores*).

Core 1 does the plain reads and writes of its own processes. Core 0 does all other work for core 1
(a closed end, the end of a process, a cancellation) between two of its own steps, while core 1
waits (`ask`, `serve`).

Invariants
- Core 1 runs with the heap locked for it. It cannot allocate, and so never starts a collection. The
  objects that it needs are made before it starts.
- Core 0 uses core 1's data (`_twin`'s run queue, core 1's channels and processes) only before core
  1 starts, after it has ended, and while it is in `ask`. `turn` says which core may use them: 1
  core 1, 0 core 0. Each core hands over by setting `turn`, after all its other stores.
- The slots of a line have one producer and one consumer, like those of a Ring. A line has a channel
  on each core; when one of the two channels ends, the other ends in the same way (`tend`).
- Core 1's run queue is not empty before its last process has ended: its keeper (`beat`) is in it.
- `steps` counts changes by core 0 that core 1 may have to see. When core 1 finds nothing to do, it
  puts the count that it had read beforehand into `quiet`. While `quiet` equals `steps`, core 1 does
  nothing before core 0 does. Then core 1 sleeps (`asleep`), and core 0 wakes it at the next change
  (`did`). Each core writes its own of `steps` and `asleep` before it reads the other's; a lock in
  between orders the accesses. A superfluous wake-up does no harm.
- Code on core 1 uses no bound method as a value, sets no new field and builds no tuple, because
  each of these allocates.
"""

from time import sleep_us, ticks_add, ticks_diff, ticks_ms

from micropython import heap_lock, heap_unlock

from . import _beside, _chan, _proc, _time
from . import _core as core
from ._beside import allocate_lock, stack_size
from ._chan import begin, resume
from ._twin import _chan as chan1
from ._twin import _core as core1_
from ._twin import _proc as proc1
from .errors import BadUse, Cancelled, ChannelEnd, Deadlock, NoRoom
from .isr import IOBase, Ring


def _on_core1():
    """Returns whether the caller runs on core 1, which is where the heap is locked. Allocates
    nothing."""
    heap_lock()
    return heap_unlock() > 0


_NAP = 50  # µs between two polls of a core that waits for the other core, or for a sleeper
_STACK = 8192  # bytes of the stack of rp2's core 1
_ENDS = core.Rd, core.Wr, core1_.Rd, core1_.Wr
_AWAITED = BadUse("on core 1 a process is a generator: v = yield r.read(), not await")

_bell = allocate_lock()
_bed = allocate_lock()  # held while core 1 runs; core 1 sleeps by acquiring this lock once more


def _wake():
    """Wakes core 0. On rp2 the release of a lock is an event on both cores, and poll() sleeps until
    there is an event."""
    _bell.acquire()
    _bell.release()


class _There(chan1.Channel):
    """A channel of core 1."""

    lines = 0  # how many ends of the channel a line holds

    def __init__(self, name=None):
        super().__init__(name)
        self.k.rt = self.k.wt = None  # set before core 1 starts, because core 1 cannot add a field
        core1.channels.append(self)

    def spoil(self, strength=1):
        if core1.turn and core1.on:
            raise BadUse("channel %r is core 1's: poison an end, in a process there" % self.name)
        super().spoil(strength)

    poison = spoil


class _Here(_chan.Channel):
    """Core 0's channel of a line."""

    def put(self, v, p):
        if isinstance(v, _ENDS):
            raise BadUse("line %r: an end of a channel cannot go to another core" % self.name)
        return super().put(v, p)


class _Line:
    """A line. `here` is core 0's channel, which has a buffer; `there` is core 1's; `ring` is
    between them. `mine` and `its` are the ends of `here` and `there` that the line itself holds."""

    # Whether core 1 has ended the line, so that the values in `ring` are the last ones.
    last = False

    def __init__(self, slots, name):
        if not isinstance(slots, int) or slots < 1:
            raise BadUse("a line has 1 slot or more, not %r" % (slots,))
        self.ring = Ring(slots)
        self.here = _Here(name, capacity=slots)
        self.there = _There(self.here.name)
        self.there.lines = 1
        core1.lines.append(self)

    def writer(self):
        return self.source.writer()

    def reader(self):
        return self.sink.reader()

    __neg__ = writer
    __pos__ = reader

    def drop(self):
        while self.ring.any():
            self.ring.take()

    def poisoned(self):
        """Extends the poison of one channel to both, while core 1 waits. Returns the strength."""
        a, b = self.here.pz, self.there.pz
        if a != b:
            self.drop()
            if a < b:
                self.here.poison(b)
            else:
                self.there.poison(a)
        return a or b


def _close(end, died):
    if not end.x:
        (end.die if died else end.retire)()


class _ToMain(_Line):
    """A line whose writers are on core 1 and whose readers are on core 0."""

    def __init__(self, slots, name):
        super().__init__(slots, name)
        self.source, self.sink = self.there, self.here
        self.mine, self.its = self.here.writer(), self.there.reader()

    def pump(self):
        """On core 1: moves waiting writers' values into the slots. Returns whether any moved."""
        k, ring = self.there.k, self.ring
        some = False
        while True:
            p = k.w
            if p is None or not ring.room():
                return some
            ring.put(p.v)
            k.w = p.nx
            p.at = None
            core1_.push(p)
            some = True

    def ready(self):
        """Returns, on core 0, whether a value can move."""
        return self.ring.any() and not self.here.full() or self.last and not self.ring.any()

    def move(self):
        """On core 0: moves values from the slots into its channel. Returns whether any moved."""
        c, ring, some = self.here, self.ring, False
        while ring.any() and not c.full():
            v = ring.take()
            if not self.mine.x:
                c.put(v, None)
            some = True
        if self.last and not ring.any():
            self.last, some = False, True
            _close(self.mine, self.there.dw)
        return some

    def uneven(self):
        return self.here.pz != self.there.pz or (self.here.nr == 0 and not self.its.x)

    def tend(self):
        if not self.poisoned():
            if self.there.nw == 0 and not self.mine.x and self.there.k.w is None:
                self.last = True
            if self.here.nr == 0:
                _close(self.its, self.here.dr)
                self.drop()

    def settle(self):
        """Moves the last values after core 1 has ended, whether or not there is room for them."""
        self.here.over = 3
        self.here._look()
        self.move()

    def awaits(self):
        """Returns, on core 1, whether a process waits at this line for core 0."""
        return self.there.k.w is not None


class _FromMain(_Line):
    """A line whose writers are on core 0 and whose readers are on core 1."""

    def __init__(self, slots, name):
        super().__init__(slots, name)
        self.source, self.sink = self.here, self.there
        self.mine, self.its = self.here.reader(), self.there.writer()

    def pump(self):
        k, ring = self.there.k, self.ring
        some = False
        while True:
            p = k.r
            if p is None or not ring.any():
                return some
            k.r = p.nx
            p.v = ring.take()
            core1_.push(p)
            some = True

    def ready(self):
        return self.here.buf and self.ring.room()

    def move(self):
        c, ring, some = self.here, self.ring, False
        while c.buf and ring.room():
            ring.put(c.get(None, None))
            some = True
        return some

    def ended(self):
        c = self.here
        return c.nw == 0 and not c.buf and not c.owed and not self.ring.any()

    def uneven(self):
        return self.here.pz != self.there.pz or (not self.its.x and self.ended())

    def tend(self):
        if not self.poisoned():
            if self.ended():
                _close(self.its, self.here.dw)
            if self.there.nr == 0:
                _close(self.mine, self.there.dr)

    def settle(self):
        pass

    def awaits(self):
        return self.there.k.r is not None


class _Sleeping:
    """The processes that sleep on core 1, linked by `nx`; `v` of each is the time to wake."""

    def __init__(self):
        self.first = None

    def __repr__(self):
        return "sleep"

    def give_up(self, p):
        before, x = None, self.first
        while x is not p:
            if x is None:
                return False
            before, x = x, x.nx
        if before is None:
            self.first = p.nx
        else:
            before.nx = p.nx
        return True

    def look(self):
        some, x = False, self.first
        now = ticks_ms()
        while x is not None:
            p, x = x, x.nx
            if ticks_diff(p.v, now) <= 0:
                self.give_up(p)
                p.at = None
                core1_.push(p)
                some = True
        return some


class _Core1(IOBase):
    """Core 1. The only instance is `core1`."""

    def __init__(self):
        # The lines and channels that were made since the last network began.
        self.lines, self.channels = [], []
        self.joined = ()  # the lines of the network that runs
        self.sleeping = _Sleeping()
        self.keeper = core1_.Proc(None)
        self.keeper.go = self.beat
        self.process = proc1.process
        self.party = self.me = self.what = self.a = self.b = self.c = self.v = self.e = None
        self.value = self.crash = self.dead = None
        self.on = self.over = self.wanted = self.stopped = False
        self.turn, self.steps, self.quiet, self.told = 1, 0, -1, -1
        self.ps, self.asleep = (), False

    def Channel(self, name=None):
        """Returns a rendezvous channel between processes of core 1."""
        return _There(name)

    def to_main(self, slots=16, name=None):
        """Returns a line whose writers are on core 1 and whose readers are on core 0, with room for
        `slots` values. Raises BadUse for fewer than 1."""
        return _ToMain(slots, name)

    def from_main(self, slots=16, name=None):
        """Returns a line whose writers are on core 0 and whose readers are on core 1, with room for
        `slots` values. Raises BadUse for fewer than 1."""
        return _FromMain(slots, name)

    def run(self, *processes):
        """Returns a process of core 0 that runs these processes as a network on core 1. Its result
        is the list of their results."""
        return _proc.process(self.network)(processes).named("core1")

    def sleep_ms(self, n):
        """Sleeps for n milliseconds; a process of core 1 yields what sleep_ms returns."""
        p = core1_.cur()
        if p is None or not _on_core1():
            raise BadUse("core1.sleep_ms is for processes on core 1")
        if p.at is not None:
            self.ask(_begins, p, None, None)
        p.v = ticks_add(ticks_ms(), n + 1 if n > 0 else n)  # never early (8.5)
        p.at = self.sleeping
        p.nx = self.sleeping.first
        self.sleeping.first = p
        return core1_.ONCE

    # The next methods run on core 0.

    async def network(self, processes):
        p = core.cur()
        begin(p, "core1.run")
        if self.party is not None:
            raise BadUse("%s: core 1 runs a network already, one at a time" % p.x.path)
        lines, channels = self.lines, self.channels
        self.lines, self.channels = [], []
        ps = proc1.flatten(processes, [])
        self.fit(ps, channels)
        self.joined = lines
        party = self.party = proc1._run = proc1.Party(p.x)
        self.me = p
        self.on = self.wanted = self.stopped = False
        self.over, self.turn, self.crash, self.dead = True, 1, None, None
        self.steps, self.quiet, self.told, self.ps = 0, -1, -1, ps
        try:
            proc1._all.clear()
            core1_.push(self.keeper)  # the keeper runs first, and locks the heap
            for x in ps:
                x.start(party)
            _time.source(self, True)
            stack_size(_STACK if _beside.LIMIT == 1 else 0)
            self.over = self.asleep = False
            _bed.acquire(0)
            e = _beside.begin(self.body)
            stack_size(0)
            if e is not None:
                _beside.refuse(p.x.path, e)
            p.at = self
            await core.ONCE
            resume(p)
        finally:
            self.close()
        if self.stopped:
            raise _chan.cancelled(p)
        if self.crash is not None or self.dead is not None:
            raise self.crash or self.dead
        return party.verdict()

    def close(self):
        """Clears up after core 1 has ended, or if it never began."""
        self.on, self.me = False, None
        while core1_.waiting():
            core1_._pop()
        proc1.never(self.ps)
        for x in self.ps:
            proc1.let_go(x, None)
        for line in self.joined:
            line.tend()
            line.settle()
        _time.source(self, False)
        self.joined = self.ps = ()
        self.party = proc1._run = None

    def leave(self):
        """Cancels core 1's processes and waits for them after an exception, such as Ctrl-C, has
        left the run. A further Ctrl-C leaves core 1 running."""
        self.stop()
        while not self.over:
            if not self.turn:
                self.serve()
            sleep_us(_NAP)
        self.close()

    def stop(self):
        self.stopped = self.wanted = True
        self.did()

    def fit(self, ps, channels):
        """Checks, before any process is started, that these processes hold every end of core 1's
        channels and no end of core 0's."""
        held = []
        for x in ps:
            theirs = []
            _proc.hold(theirs, x.args)
            _proc.hold(theirs, x.kw.values())
            for end in theirs:
                end.h -= 1
                raise BadUse(
                    "process %s is core 1's, its end of %r core 0's: join them by core1.to_main"
                    " or core1.from_main" % (x.name, end.channel.name)
                )
            held.extend(e for e in x.ends if e not in held)
        for c in channels:
            n = sum(1 for e in held if e.c.x is c)
            if n + c.lines != (c.nr or 0) + (c.nw or 0):
                raise BadUse("an end of %r is with no process that core 1 is to run" % c.name)

    def ioctl(self, request, flags):
        if request != 3:
            return -1  # there is no file descriptor
        some = not self.turn or self.over or self.moves() or self.told != self.quiet == self.steps
        return flags if some else 0

    def moves(self):
        for line in self.joined:
            if line.ready() or (line.uneven() and not self.wanted):
                return True
        return False

    def look(self):
        """Serves core 1 and moves values, between two steps of core 0. Returns whether anything was
        done."""
        some = False
        if not self.turn:
            self.serve()
            some = True
        for line in self.joined:
            some = line.move() or some
            if line.uneven() and not self.wanted:
                self.wanted = some = True
        self.told = self.quiet
        if self.over and self.me is not None:
            core.push(self.me)
            self.me = None
            some = True
        if some:
            self.did()
        return some

    def did(self):
        """Informs core 1 that core 0 has changed something that core 1 might have to see."""
        self.steps += 1
        _wake()
        if self.asleep:
            self.asleep = False
            try:
                _bed.release()
            except RuntimeError:
                pass  # core 1 was awake already

    def still(self):
        """Returns whether core 1 does nothing until core 0 has changed something."""
        return self.quiet == self.steps and self.turn and not self.over and not self.moves()

    def places(self):
        """Returns (path, where it waits) for each process of core 1, for a report."""
        return [(x.path, _place(x.k.at)) for x in proc1._all]

    def sides(self):
        """Returns what core 0 could do for processes that wait on core 1: (channel, whether a
        writer could)."""
        return [(n.here, n.sink is n.there) for n in self.joined if n.awaits()]

    def ends(self):
        return [end for n in self.joined for end in (n.mine, n.its) if not end.x]

    def serve(self):
        what, self.e = self.what, None
        try:
            self.v = what(self.a, self.b, self.c)
        except BaseException as e:
            self.e = e
        self.tend()
        self.turn = 1

    def tend(self, *_):
        for line in self.joined:
            line.tend()

    def give_up(self, p):
        """Cancels the network because the process that waits for it is cancelled. The process still
        waits for the network (7.6)."""
        self.stop()
        return False

    # The next methods run on core 1.

    def body(self):
        try:
            core1_.loop(0)
        except BaseException as e:
            self.crash = e
        if self.on:
            heap_unlock()
        self.over = True
        _wake()

    def beat(self, _):
        """The keeper's step, once in a round of core 1's run queue: checks sleepers and lines, and
        sleeps if there is nothing to do."""
        if not self.on:
            heap_lock()
            self.on = True
        seen = self.steps
        some = self.sleeping.look() if self.sleeping.first is not None else False
        if self.wanted:
            self.wanted = False
            self.ask(_heed, None, None, None)
            some = True
        moved = False
        for line in self.joined:
            moved = line.pump() or moved
        if moved:
            _wake()
        if not self.party.live:
            return  # the keeper is not pushed again, so the loop ends
        if not some and not moved and not core1_.waiting():
            if self.sleeping.first is not None:
                sleep_us(_NAP)
            elif self.waits():
                self.quiet = seen
                self.asleep = True
                _wake()
                if seen == self.steps:
                    _bed.acquire()
                self.asleep = False
            elif not self.ask(_stuck, None, None, None):
                return
        core1_.push(self.keeper)

    def waits(self):
        """Returns whether a process on core 1 waits for core 0."""
        for line in self.joined:
            if line.awaits():
                return True
        return False

    def ask(self, what, a, b, c):
        """Makes core 0 call what(a, b, c). Returns the result, or raises the error."""
        if self.on and not _on_core1():
            raise BadUse("this end belongs to core 1, which is running")
        self.what, self.a = what, a
        self.b, self.c = b, c
        self.turn = 0
        _wake()
        while not self.turn:
            sleep_us(_NAP)
        e = self.e
        if e is not None:
            raise e
        return self.v


def _place(at):
    if isinstance(at, core1_.Rd):
        return "read of %r" % at.channel.name
    if isinstance(at, core1_.Wr):
        return "write to %r" % at.channel.name
    return str(at)


core1 = _Core1()

# Core 0 calls these functions for core 1, which waits. A bound method would need memory.


def _heed(*_):
    """Stops the network if core 0 has requested that. (`serve` tends the lines after each call.)"""
    if core1.stopped:
        core1.party.stop()


def _begins(p, *_):
    chan1.begin(p, "sleep")


def _ended_(p, value, _):
    proc1.ended(p, value)


def _failed_(p, e, _):
    path = p.x.path
    if isinstance(e, MemoryError):
        e = NoRoom("process %s allocated: core 1 may not, make it before" % path)
    elif not isinstance(e, (ChannelEnd, Cancelled, BadUse)) and not e.args:
        e = type(e)("process %s, on core 1" % path)  # core 1 has no memory for a text
    proc1.failed(p, e)


def _stuck(*_):
    """Records a deadlock (10.1) and cancels the processes of core 1: none of them can go on, and
    none waits for core 0. Returns False if the deadlock was recorded before."""
    if core1.dead is not None:
        return False
    paths = [x.path for x in proc1._all]
    lines = ["  %s: %s" % x for x in core1.places()]
    core1.dead = Deadlock("nothing can go on\n" + "\n".join(lines), paths, paths)
    for x in proc1._all[:]:
        x.ask()
    return True


def _again(p, *_):
    p.go = p.g.send
    p.e = None


# The next functions run on core 1.


def _whole(g):
    """Runs the generator of a process of core 1, and stores the value that it returns. A
    StopIteration with the value would need memory."""
    core1.value = yield from g


def _read(rd, p):
    return core1.ask(_read_, rd, p, None)


def _read_(rd, p, _):
    return chan1.read(rd, p)


def _write(wr, v, p):
    return core1.ask(_write_, wr, v, p)


def _write_(wr, v, p):
    if isinstance(v, _ENDS):
        raise BadUse("%s: write: an end of a channel stays with its process on core 1" % p.x.path)
    return chan1.write(wr, v, p)


def _ended(p, _):
    v, core1.value = core1.value, None
    core1.ask(_ended_, p, v, None)


def _failed(p, e):
    if p is core1.keeper:
        raise e
    core1.ask(_failed_, p, e, None)


_STRANGE = BadUse("a process of core 1 yields a read or a write of its core, or core1.sleep_ms")


def _strange(p, _):  # core 1 makes nothing, so this error was made on core 0
    return _STRANGE


def _boom(p, _):
    """Takes the place of Proc._boom: the bound method p.g.send is made on core 0."""
    e = p.e
    core1.ask(_again, p, None, None)
    return p.g.throw(e) if e else p.go(None)


def _refuse(self):
    raise _AWAITED


def _told(how):
    """Returns a method of ends that calls how(end, strength), on core 0 while core 1 runs."""

    def do(end, strength, _):
        how(end, strength)

    def method(self, strength=1):
        if core1.on and core1.turn:
            core1.ask(do, self, strength, None)
        else:
            how(self, strength)

    return method


for _end in (core1_.Rd, core1_.Wr):
    _end.retire = _told(lambda end, _: chan1._End.retire(end))
    _end.die = _told(lambda end, _: chan1._End.die(end))
    _end.poison = _told(chan1._End.poison)
core1_.Rd.__iter__ = core1_.Rd.__await__ = core1_.Rd.__aiter__ = _refuse
core1_.Proc._boom = _boom
core1_.hooks(_read, _write, _ended, _failed, _strange)
proc1.shell = _whole
