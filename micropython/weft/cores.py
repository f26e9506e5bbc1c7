"""A second scheduler, on core 1 (on unix: on a thread), and lines between the two cores. README.md,
*Two cores*.

Core 1 does plain reads and writes of its own processes itself. All else (an end that is closed, a
process that ends, a cancellation) core 0 does for it, between two of its own steps, while core 1
waits (`ask`, `serve`).

Invariants
- Core 1 runs under a heap lock of its own: it cannot allocate, and so begins no collection. What it
  needs is made before it starts.
- What core 1 has (`_twin`'s run queue, its channels and processes) core 0 touches only before it
  starts, after it has ended, and while core 1 is in `ask`. `turn` says whose it is: 1 core 1's, 0
  core 0's to serve. Each of the two sets it to the other's, last of all.
- The slots of a line have one producer and one consumer, as those of a Ring. Both of its channels,
  one on each core, end as one does (`tend`).
- Core 1's queue is not empty before its last process has ended: its keeper (`beat`) is in it.
- `steps` counts what core 0 did that core 1 may have to see. Core 1 notes in `quiet` the count that it
  had read before it found nothing to do, and no sleeper: while the two are the same, core 1 does
  nothing before core 0 does. So it sleeps, `asleep`; who counts then wakes it (`did`). Each writes its
  own of `steps` and `asleep` before it reads the other's, with a lock in between for the order in
  memory. A wake-up too many is one more look.
- What runs on core 1 names no method as a value, sets no new field and builds no tuple: each of
  these allocates.
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
    """Whether the heap is locked for who calls. Allocates nothing."""
    heap_lock()
    return heap_unlock() > 0


_NAP = 50  # µs between two looks of a core that waits for the other, or for work
_STACK = 8192  # bytes, of rp2's core 1
_ENDS = core.Rd, core.Wr, core1_.Rd, core1_.Wr
_AWAITED = BadUse("on core 1 a process is a generator: v = yield r.read(), not await")


_bell = allocate_lock()
_bed = allocate_lock()  # held while core 1 runs: there it waits to be woken


def _wake():
    """Core 1 wakes core 0: to let go of a lock is an event on both cores of rp2, whose poll()
    sleeps until there is one."""
    _bell.acquire()
    _bell.release()


class _There(chan1.Channel):
    """A channel of core 1."""

    lines = 0  # ends of it that a line has

    def __init__(self, name=None):
        super().__init__(name)
        self.k.rt = self.k.wt = None  # fields that core 1 could not make
        core1.channels.append(self)

    def spoil(self, strength=1):
        if core1.turn and core1.on:
            raise BadUse("channel %r is core 1's: poison an end, in a process there" % self.name)
        super().spoil(strength)

    poison = spoil


class _Here(_chan.Channel):
    """Core 0's side of a line."""

    def put(self, v, p):
        if isinstance(v, _ENDS):
            raise BadUse("line %r: an end of a channel cannot go to another core" % self.name)
        return super().put(v, p)


class _Line:
    """`here` is core 0's channel, with a buffer; `there` core 1's; between them `ring`. `mine` and
    `its` are the ends that the line has of the two."""

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
        """Core 1 waits: poison on one side is poison on both."""
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
    def __init__(self, slots, name):
        super().__init__(slots, name)
        self.source, self.sink = self.there, self.here
        self.mine, self.its = self.here.writer(), self.there.reader()

    def pump(self):
        """Core 1: what its writers have goes into the slots."""
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
        """Core 0: something can move."""
        return self.ring.any() and not self.here.full() or self.last and not self.ring.any()

    def move(self):
        """Core 0: the slots into its channel."""
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
        """Core 1 has ended: its last values go on, whether or not there is room for them."""
        self.here.over = 3
        self.move()

    def awaits(self):
        """Core 1: somebody there waits for what core 0 does."""
        return self.there.k.w is not None


class _FromMain(_Line):
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
    """Who sleeps on core 1, linked by `nx`; the time is in `v`."""

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
    """Core 1, of which there is one: `core1`."""

    def __init__(self):
        self.lines, self.channels = [], []  # made since the last network
        self.joined = ()  # the lines of the one that runs
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
        """A rendezvous between processes of core 1."""
        return _There(name)

    def to_main(self, slots=16, name=None):
        """A line whose writers are core 1's and whose readers are core 0's."""
        return _ToMain(slots, name)

    def from_main(self, slots=16, name=None):
        """A line whose writers are core 0's and whose readers are core 1's."""
        return _FromMain(slots, name)

    def run(self, *processes):
        """A process of core 0 that is the network of these on core 1: its result is theirs, in
        order."""
        return _proc.process(self.network)(processes).named("core1")

    def sleep_ms(self, n):
        """Yielded by a process of core 1."""
        p = core1_.cur()
        if p is None or not _on_core1():
            raise BadUse("core1.sleep_ms is for processes on core 1")
        if p.at is not None:
            self.ask(_begins, p, None, None)
        p.v = ticks_add(ticks_ms(), n)
        p.at = self.sleeping
        p.nx = self.sleeping.first
        self.sleeping.first = p
        return core1_.ONCE

    # core 0

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
            core1_.push(self.keeper)  # the first: all others run under the lock
            for x in ps:
                x.start(party)
            _time.source(self, True)
            stack_size(_STACK if _beside.MOST == 1 else 0)
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
        """Core 1 has ended, or never begun."""
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
        """The run was left by an exception, as Ctrl-C is one: core 1's processes are cancelled, and
        waited for. One more Ctrl-C leaves core 1 running."""
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
        """Before any is started: every end of core 1's channels is one of these processes', and
        none of core 0's is."""
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
            return -1  # above all no file descriptor
        some = not self.turn or self.over or self.moves() or self.told != self.quiet == self.steps
        return flags if some else 0

    def moves(self):
        for line in self.joined:
            if line.ready() or (line.uneven() and not self.wanted):
                return True
        return False

    def look(self):
        """Core 0, between two steps of its own."""
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
        """Core 0: something that core 1 may have to see."""
        self.steps += 1
        _wake()
        if self.asleep:
            self.asleep = False
            try:
                _bed.release()
            except RuntimeError:
                pass  # it was awake already

    def still(self):
        """Core 1 does nothing before core 0 does."""
        return self.quiet == self.steps and self.turn and not self.over and not self.moves()

    def places(self):
        """For a report: core 1's processes, and where they wait."""
        return [(x.path, _place(x.k.at)) for x in proc1._all]

    def sides(self):
        """What core 0 could do for those who wait here: (channel, whether a writer could)."""
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
        """Who waits for the network is cancelled: the network is, and is waited for still (7.6)."""
        self.stop()
        return False

    # core 1

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
        """The keeper's: once a round of core 1's run queue."""
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
            return  # not in the queue any more: the loop ends
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
        """Somebody on core 1 waits for core 0."""
        for line in self.joined:
            if line.awaits():
                return True
        return False

    def ask(self, what, a, b, c):
        """Has core 0 do what(a, b, c), and gives or raises what comes of it."""
        if self.on and not _on_core1():
            raise BadUse("this end is core 1's, and core 1 runs")
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

# What core 0 does for core 1, which waits. (Functions: to name a method would allocate.)


def _heed(*_):
    """Something is wanted: the lines are tended in any case."""
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
        e = type(e)("process %s, on core 1" % path)  # there was no memory for its text
    proc1.failed(p, e)


def _stuck(*_):
    """Nobody on core 1 can go on, and none of them waits for core 0 (10.1). False: they were told
    before."""
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


# Core 1


def _whole(g):
    """What a process of core 1 returns, without the StopIteration for which there is no memory."""
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


def _boom(p, _):
    """As Proc._boom, whose bound method core 0 makes."""
    e = p.e
    core1.ask(_again, p, None, None)
    return p.g.throw(e) if e else p.go(None)


def _refuse(self):
    raise _AWAITED


def _told(how):
    """A method of ends: done by core 0 while core 1 runs."""

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
core1_.hooks(_read, _write, _ended, _failed)
proc1.shell = _whole
