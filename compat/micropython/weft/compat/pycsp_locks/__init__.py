"""The names and behaviour of PyCSP-locksharing and uPyCSP. Write `from weft.compat.pycsp_locks
import *` in place of `from pycsp import *`.

A process object becomes a process of Weft when it is started, or when a Parallel runs it. Its `run`
runs it within the process of the caller, and outside a network in a run of its own.
"""

from ... import _proc
from ... import threads as weft
from .._shared import (  # noqa: F401
    AnyAlternative,
    AnyChannel,
    ChannelEnd,
    ChannelPoisonException,
    End,
    Guard,
    PendingChanWriteGuard,
    PendingWrite,
    PoisonException,
    ReadEnd,
    Skip,
    Timer,
    poison_ends,
)


def _in_a_run(f):
    """Calls a function in the caller's process or, outside a network, in that of a new run."""
    try:
        weft.current_process()
    except weft.BadUse:
        return weft.run(weft.process(f)())
    return f()


def _flat(processes):
    found = []
    for p in processes:
        if isinstance(p, Process):
            found.append(p)
        elif isinstance(p, (list, tuple)):
            found += _flat(p)
        else:
            raise weft.BadUse("expected a process, got %r (@process?)" % (p,))
    return found


class ChannelReadEnd(ReadEnd):
    def __call__(self):
        return self.native.read()

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.native.read()
        except PoisonException:
            raise StopIteration


class ChannelWriteEnd(End):
    """A call with a value writes, and gives 0."""

    def __call__(self, value):
        self.native.write(value)
        return 0


class Channel(AnyChannel):
    Native = weft.Channel
    Reads = ChannelReadEnd
    Writes = ChannelWriteEnd

    def poison(self):
        self.spoil()

    def __iter__(self):
        return self.read


class BufferedChannel(Channel):
    capacity = 4
    overflow = "unbounded"


def poison_channel(ch):
    ch.poison()


class Alternative(AnyAlternative):
    def _select(self):
        return self.outcome(*weft._do(self.native().select))

    def select(self):
        return _in_a_run(self._select)

    pri_select = priSelect = select

    def __enter__(self):
        return self.select()

    def __exit__(self, *_):
        return False


@weft.process
def _body(p, done):
    """Runs p. The writer end `done` retires when p has ended, and join() waits for that."""
    p.within()
    return p.retval


class Process:
    """A process: a function with its arguments. `retval` is the result of the function; it is None
    before the process has ended, and if poison ended it. `poisoned` says whether poison ended it.
    """

    def __init__(self, fn, verbose_poison=False, *args, **kwargs):
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.verbose_poison = verbose_poison
        self.poisoned = False
        self.retval = self.ended = None

    @property
    def name(self):
        return _proc.name_of(self.fn) if self.fn else type(self).__name__

    def run(self):
        """Runs the process within the process of the caller. Returns this object."""
        _in_a_run(self.within)
        return self

    def within(self):
        self.retval = None
        try:
            self.retval = self.fn(*self.args, **self.kwargs)
        except PoisonException:
            if self.verbose_poison:
                print("poisoned:", self.name)
            self.poisoned = True
            poison_ends(self.args)
            poison_ends(self.kwargs.values())

    def native(self):
        if self.ended is not None:
            raise weft.BadUse("process %s was started already: make another" % self.name)
        done = weft.Channel("the end of " + self.name)
        self.ended = done.reader()
        return _body(self, done.writer()).named(self.name)

    def start(self):
        """Starts the process in the background, in a network."""
        weft.Spawn(self.native())

    def join(self):
        """Waits until the process has ended."""
        if self.ended is None:
            raise weft.BadUse("join of process %s, which was not started" % self.name)
        try:
            self.ended.read()
        except weft.Retired:
            pass


class Parallel(Process):
    """Processes that `run` runs together; `retval` is then the list of their results. With
    `check_poison`, `run` raises PoisonException if one of them was poisoned.
    """

    def __init__(self, *processes, check_poison=False):
        super().__init__(None)
        self.processes = _flat(processes)
        self.check_poison = check_poison

    def run(self):
        self.within()
        return self

    def within(self):
        self.retval = list(weft.Parallel([p.native() for p in self.processes]))
        if self.check_poison and any(p.poisoned for p in self.processes):
            raise PoisonException("a process of a Parallel was poisoned")


class Sequence(Process):
    """Processes that `run` runs one after another; `retval` is then the list of their results."""

    def __init__(self, *processes):
        super().__init__(None)
        self.processes = _flat(processes)

    def within(self):
        self.retval = [p.run().retval for p in self.processes]


def process(function=True, verbose_poison=False):
    """Decorates a process function: `@process`, `@process()` or `@process(verbose_poison=True)`."""

    def decorate(fn):
        def make(*args, **kw):
            return Process(fn, verbose_poison, *args, **kw)

        return make

    return decorate if isinstance(function, bool) else decorate(function)


def Spawn(process):
    """Starts a process in the background of a network, and returns it."""
    process.start()
    return process


def CSP(*processes):
    """Runs one process and returns its result; or several together, and returns their results."""
    return (processes[0] if len(processes) == 1 else Parallel(*processes)).run().retval
