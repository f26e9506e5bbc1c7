"""Simulated hosts: while a function is checked, a process that would run in another OS process runs
in this one, and faults may happen to it (rule 17.10).

A process on a host is a thread process that calls _hosts.host.Host.call(). During a check the class
Here takes the place of Host, and calls the function in this OS process. Arguments and results are
pickled, and the channels of such a process carry pickles in any case (rule 9.1), so values are
copied.

    runs ──kill, partition──► dead: its ends have died, so each operation at them fails; when its
      │                       function is left, in whatever way, its caller gets ProcessDied
      └──slow──► before each operation it waits for a time, which comes when no other can go on

Invariants
- Each fault is a decision of the engine, made where the process reaches an operation.
- A dead process has no effect on others: its `finally` blocks run, but reach no other process.
- A Supervisor makes several attempts. An attempt that is not the last has ends of its own, beside
  those that the supervisor holds, so the channels outlive the death of that attempt (rule 7.13).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import io
import pickle
import signal
import sys
from collections.abc import Iterator
from typing import Any

from weft._checking import engine as _engine
from weft._checking import patches as _patches
from weft._checking.options import Faults
from weft._extension import native as _native
from weft.errors import BadUse, Cancelled, ChannelEnd, ProcessDied

_HOST = "weft._hosts.host"
_FIRST_PID = 1_000_001  # the first simulated pid: above the numbers that the system uses
_ENDS = (_native.Reader, _native.Writer)
_OF_WEFT = (*_ENDS, _native.Channel, _native.Barrier)


class _Run:
    """The faults that can still happen in the run that is under way."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.deaths = 0
        self.partitions = 0
        self.slow = 0
        self.pid = _FIRST_PID


_run = _Run()
calls = 0  #: how many calls simulated hosts have run: faults are bad use if there are no hosts


@contextlib.contextmanager
def simulated(faults: Faults) -> Iterator[None]:
    """Lets these faults happen in the run that the block contains."""
    _run.faults = faults
    _run.deaths, _run.partitions, _run.slow = faults.kill, int(faults.partition), int(faults.slow)
    _run.pid = _FIRST_PID
    try:
        yield
    finally:
        _run.__init__()  # type: ignore[misc]


@contextlib.contextmanager
def hosts_here() -> Iterator[None]:
    """Simulates the hosts, so that the check in the block starts no OS process. weft._hosts is
    replaced only when the program imports it: most programs have no hosts.
    """
    with contextlib.ExitStack() as stack:
        if _HOST in sys.modules:
            stack.enter_context(_replaced())
        else:
            stack.enter_context(
                _patches.when_imported(_HOST, lambda: stack.enter_context(_replaced()))
            )
        yield


@contextlib.contextmanager
def _replaced() -> Iterator[None]:
    from weft._hosts import host as _host

    real, call = _host.Host, _host.Host.call

    def refuse(self: Any, *args: Any, **named: Any) -> Any:
        if _engine.is_checking():
            raise BadUse(
                "these Hosts were made outside of the checked function, and are OS processes: make them in the function, "
                "where they are simulated"
            )
        return call(self, *args, **named)

    real.call = refuse  # type: ignore[method-assign]
    _host.Host = Here  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        _host.Host = real  # type: ignore[misc]
        real.call = call  # type: ignore[method-assign]


class Here:
    """Takes the place of _hosts.host.Host during a check."""

    def __init__(self, setting: Any = None) -> None:
        self.setting = setting
        self.running = self.begun = 0
        self.pid = 0

    def begin(self, later: bool = False) -> None:
        self.pid = _run.pid
        _run.pid += 1

    def join(self) -> None: ...

    def let_go(self) -> None: ...

    def close(self) -> None: ...

    def kill(self) -> None: ...

    def call(
        self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any], attempt: Any = None
    ) -> Any:
        """Runs the function in this OS process, as a host would do in another.

        Raises:
            ProcessDied: a fault has killed the process.
            BadUse: an argument or the result cannot be pickled.
            BaseException: what the function raised.
        """
        global calls
        calls += 1
        name = getattr(function, "__name__", "process")
        own: list[Any] | None = [] if attempt is not None and not attempt.last else None
        args, keywords = _copied((args, keywords), f"the arguments of {name}", own)
        mortal = _Mortal(own if own is not None else list(_ends_in((args, keywords))))
        try:
            if inspect.iscoroutinefunction(function):
                from weft import threads
                from weft.coroutines import process as coroutine

                marked = coroutine(_marked(function, mortal))
                value = threads.Parallel(marked(*args, **keywords))[0]
            else:
                with mortal:
                    value = function(*args, **keywords)
        except BaseException:
            if not mortal.dead:
                raise
        finally:
            for end in own or ():
                end.retire()
        if mortal.dead:
            if attempt is not None:
                attempt.died = True
            raise ProcessDied(name, self.pid, -signal.SIGKILL, refused=mortal.why)
        return _copied(value, f"the result of {name}")


def _marked(function: Any, mortal: _Mortal) -> Any:
    """Returns the coroutine function, changed so that faults can happen to its process."""

    @functools.wraps(function)
    async def marked(*args: Any, **named: Any) -> Any:
        mortal.waits = False
        with mortal:
            return await function(*args, **named)

    return marked


class _Mortal:
    """A process to which faults may happen, in the `with` block of this object.

    Attributes:
        waits: the process has a stack of its own, so it can wait where it is (`slow`).
    """

    def __init__(self, ends: list[Any]) -> None:
        self.waits = True
        self.dead = False
        self.why = ""  #: why the session with this process has ended
        self._ends = ends
        self._slow: bool | None = None
        # Whether the process is in the operation that keeps a slow process waiting.
        self._within = False

    def __enter__(self) -> None:
        if _run.faults:
            _engine.mark(self.before_operation)

    def __exit__(self, *_: object) -> None:
        if _run.faults:
            _engine.mark(None)

    def before_operation(self) -> None:
        """Called by the engine in the process, before each of the process's operations."""
        if self._within or self.dead:
            return None
        if _run.deaths and _engine.choose(2, "fault"):
            _run.deaths -= 1
            return self._die()
        if _run.partitions and _engine.choose(2, "fault"):
            _run.partitions -= 1
            self.why = "a partition, made by the check"
            return self._die()
        if self._slow is None and _run.faults.slow and self.waits:
            self._slow = bool(_run.slow and _engine.choose(2, "fault"))
            _run.slow -= self._slow
        if self._slow:
            self._within = True
            try:
                _native.sleep(1e-9)
            except Cancelled:
                # The request to cancel is meant for the operation that is about to begin.
                process = _native.current_process()
                if process is not None:
                    process.cancel()
            finally:
                self._within = False
        return None

    def _die(self) -> None:
        self.dead = True
        for end in self._ends:
            end.die()


# --- values ---------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, kept: list[Any]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._kept = kept

    def persistent_id(self, it: Any) -> int | None:
        if isinstance(it, _OF_WEFT):
            self._kept.append(it)
            return len(self._kept) - 1
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, kept: list[Any], own: list[Any] | None) -> None:
        super().__init__(file)
        self._kept = kept
        self._own = own

    def persistent_load(self, number: int) -> Any:
        it = self._kept[number]
        if self._own is None or not isinstance(it, _ENDS):
            return it
        try:
            end = it.channel.reader() if isinstance(it, _native.Reader) else it.channel.writer()
        except ChannelEnd:  # the channel has ended, so one more end would have no effect
            return it
        self._own.append(end)
        return end


def _copied(value: Any, what: str, own: list[Any] | None = None) -> Any:
    """Returns a copy of the value, as it would arrive in another OS process. The copy contains the
    same ends; or, if the list `own` is given, new ends, which are added to `own`.

    Raises:
        BadUse: the value cannot be pickled.
    """
    kept: list[Any] = []
    file = io.BytesIO()
    try:
        _Pickler(file, kept).dump(value)
    except Exception as error:
        raise BadUse(f"{what} cannot be sent to another OS process: {error}") from None
    file.seek(0)
    return _Unpickler(file, kept, own).load()


def _ends_in(value: Any) -> Iterator[Any]:
    """Yields the ends that a value contains."""
    seen: set[int] = set()
    left = [value]
    while left and len(seen) < 10_000:
        it = left.pop()
        if id(it) in seen:
            continue
        seen.add(id(it))
        if isinstance(it, _ENDS):
            yield it
        elif isinstance(it, (tuple, list, dict, set, frozenset)) or (
            hasattr(it, "__dict__") and not isinstance(it, type) and not inspect.ismodule(it)
        ):
            left.extend(r for r in gc.get_referents(it) if r is not type(it))
