"""PyCSP-locksharing's names (module `pycsp`) on Weft: every process is a thread
(compat/docs/pycsp.md).

A process object becomes a native process when it is started or run by a Parallel. Its `run` runs
the process within the caller's.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from weft import threads as _weft
from weft.compat import _main
from weft.compat._alternatives import (
    AnyAlternative,
    AnyChannel,
    ChannelEnd,
    Guard,
    PendingChanWriteGuard,
    PoisonException,
    Skip,
    Timer,
)
from weft.compat.pycsp_locks.cfutures import CFuture
from weft.errors import BadUse, Cancelled, Deadlock, Retired

__all__ = [
    "CSP",
    "Alternative",
    "BufferedChannel",
    "CFuture",
    "Channel",
    "ChannelEnd",
    "ChannelReadEnd",
    "ChannelWriteEnd",
    "Deadlock",
    "Guard",
    "Parallel",
    "PendingChanWriteGuard",
    "PoisonException",
    "Process",
    "Sequence",
    "Skip",
    "Spawn",
    "Timer",
    "poison_channel",
    "process",
]


# --- channels -------------------------------------------------------------------------------------


class ChannelReadEnd(ChannelEnd, Guard):
    """The read end: a call reads, and iterating reads until the channel is poisoned. The end
    itself is an input guard."""

    def __init__(self, chan: Channel) -> None:
        super().__init__(chan)
        self._native = chan._reader

    def __call__(self) -> Any:
        """Returns the next value.

        Raises:
            PoisonException; Deadlock in the main program.
        """
        try:
            return self._native.read()
        except Cancelled as error:
            _main.left_by(error)
            raise

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                yield self()
        except PoisonException:
            return

    def poison(self) -> None:
        self._chan.poison()


class ChannelWriteEnd(ChannelEnd):
    """The write end: a call with a value writes, and returns 0."""

    def __call__(self, val: Any) -> int:
        """Returns when a reader has read the value.

        Raises:
            PoisonException; Deadlock in the main program.
        """
        try:
            self._chan._writer.write(val)
        except Cancelled as error:
            _main.left_by(error)
            raise
        return 0

    def alt_pending_write(self, obj: Any) -> PendingChanWriteGuard:
        """Returns a guard that writes `obj` if it is chosen."""
        return PendingChanWriteGuard(self._chan, obj)

    def poison(self) -> None:
        self._chan.poison()


class _BufferedWriteEnd(ChannelWriteEnd):
    """The write end of a buffered channel, which counts writes."""

    def __call__(self, val: Any) -> int:
        super().__call__(val)
        self._chan._sent += 1
        return 0


class Channel(AnyChannel):
    """A rendezvous between any number of readers and writers: `ch.read()`, `ch.write(value)`."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.read = self._read = ChannelReadEnd(self)  # benchmark programs use the private names
        self.write = self._write = ChannelWriteEnd(self)

    def poison(self) -> None:
        """Poisons the channel: every operation on it, even one that already waits, raises
        PoisonException, and values in a buffer are lost."""
        self._poison()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read)


class BufferedChannel(Channel):
    """A channel whose writes never wait."""

    _limit = {"capacity": 16, "overflow": "unbounded"}  # noqa: RUF012

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.write = self._write = _BufferedWriteEnd(self)


def poison_channel(ch: Any) -> None:
    """Poisons a channel, or the channel of an end."""
    ch.poison()


class Alternative(AnyAlternative):
    """A choice: `g, value = alt.select()`, or `with alt as (g, value):`."""

    def select(self) -> tuple[Any, Any]:
        """Selects as pri_select() does."""
        return self.pri_select()

    def pri_select(self) -> tuple[Any, Any]:
        """Waits for a guard; if several are ready, takes the first. Returns the guard, and the
        value read, 0 for a write, None otherwise.

        Raises:
            PoisonException; BadUse: the guards are both ends of one channel; Deadlock in the
            main program.
        """
        try:
            return self._outcome(*_weft.select(*self._natives, mode="priority", ended="raise"))
        except Cancelled as error:
            _main.left_by(error)
            raise

    def __enter__(self) -> tuple[Any, Any]:
        return self.select()

    def __exit__(self, *_: Any) -> None:
        return None


# --- processes ------------------------------------------------------------------------------------


@_weft.process
def _body(p: Process, done: Any) -> Any:
    """Runs p; the writer end `done` retires when p has ended, and join() waits for that."""
    token = _main.current.set(p)
    try:
        p.run()
    finally:
        _main.current.reset(token)
    return p.retval


class Process:
    """A function with its arguments, as a process.

    Args:
        fn: the function that it runs.
        verbose_poison: print a line when poison ends the process.
        args, kwargs: the function's arguments.
    Attributes:
        retval: the result of the process; None before its end, and if it was poisoned. poisoned:
        whether poison ended it.
    """

    def __init__(self, fn: Any, verbose_poison: bool = False, *args: Any, **kwargs: Any) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.verbose_poison = verbose_poison
        self.poisoned = False
        self.retval: Any = None
        self.name = getattr(fn, "__name__", type(self).__name__)
        self._ended: Any = None

    def run(self) -> Any:
        """Runs the function in the caller's process; returns this process."""
        self.retval = None
        try:
            self.retval = self.fn(*self.args, **self.kwargs)
        except PoisonException:
            if self.verbose_poison:
                print(f"Process poisoned: {self.fn}({self.args=}, {self.kwargs=})")
            self.poisoned = True
        return self

    def _native(self) -> Any:
        if self._ended is not None:
            raise BadUse(f"process {self.name} was started already: make another")
        done: Any = _weft.Channel(f"the end of {self.name}")
        self._ended = done.reader()
        return _body(self, done.writer()).named(self.name)

    def start(self) -> None:
        """Starts the process in the background.

        Raises:
            BadUse: the process has already been started.
        """
        _main.spawn(_weft, [self._native()])

    def join(self) -> None:
        """Waits until the process has ended.

        Raises:
            BadUse: the process was not started.
        """
        if self._ended is None:
            raise BadUse(f"join of process {self.name}, which was not started: start() it first")
        try:
            self._ended.read()
        except Retired:
            pass
        except Cancelled as error:
            _main.left_by(error)
            raise

    def is_alive(self) -> bool:
        return self._ended is not None and self._ended.channel.stats().writers > 0


class Parallel(Process):
    """Processes that `run` runs together; `retval` is then the list of their results, in order."""

    def __init__(self, *processes: Any, check_poison: bool = False) -> None:
        super().__init__(None)
        self.processes = processes
        self.check_poison = check_poison

    def run(self) -> Any:
        """Runs the processes and waits for all of them.

        Raises:
            the failure of one, after the others were cancelled; Deadlock.
        """
        natives = [p._native() for p in self.processes]
        try:
            self.retval = list(_weft.Parallel(natives))
        except Cancelled as error:
            _main.left_by(error)
            raise
        return self


class Sequence(Process):
    """Processes that `run` runs one after another; `retval` is then the list of their results."""

    def __init__(self, *processes: Any) -> None:
        super().__init__(None)
        self.processes = processes

    def run(self) -> Any:
        """Runs the processes in the caller's process."""
        self.retval = [p.run().retval for p in self.processes]
        return self


def CSP(*procs: Any) -> Any:
    """Runs one process and returns its result; or several in parallel, and returns the list of
    their results."""
    return procs[0].run().retval if len(procs) == 1 else Parallel(*procs).run().retval


def Spawn(proc: Any) -> Any:
    """Starts a process in the background and returns it."""
    proc.start()
    return proc


def process(verbose_poison: Any = False) -> Any:
    """@process, or @process(verbose_poison=True): makes a function that makes processes.

    Raises:
        BadUse: the function is a coroutine function.
    """

    def decorate(
        func: Callable[..., Any], verbose: bool = bool(verbose_poison)
    ) -> Callable[..., Process]:
        if inspect.iscoroutinefunction(func):
            raise BadUse(
                f"@process on {func.__name__}, which is `async def`: use weft.compat.apycsp"
            )

        @functools.wraps(func)
        def make(*args: Any, **kwargs: Any) -> Process:
            return Process(func, verbose, *args, **kwargs)

        return make

    return decorate(verbose_poison, False) if callable(verbose_poison) else decorate
