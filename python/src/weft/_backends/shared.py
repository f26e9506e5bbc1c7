"""The names that all backends share: @process, run(), statistics of a channel, and operations on
several ends.

Code for operations that are awaited is in _backends/awaiting.py, for operations that block in
_backends/blocking.py.

Invariants
- The extension module is set up here, before any backend is used: the Python functions that the
  extension calls, and its clean-up after a fork.
- Ordinary code calls `stop_at_run` before it starts a network, in whatever way it does so.
- Other modules, which are imported only where they are needed, replace two names:
  _distributed_deadlock/rounds.py replaces `linked`, _hosts/child.py replaces `at_run`.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
from typing import Any, NamedTuple

from weft._backends import arrays as _arrays
from weft._backends.functions import is_coroutine, yields
from weft._extension import native as _native
from weft._watching.deadlocks import Action, watching_deadlocks
from weft.errors import BadUse

__all__ = [
    "ChannelArray",
    "ChannelStats",
    "check_clock",
    "poison",
    "process",
    "process_of",
    "retire",
    "run",
    "run_async",
    "statistics",
]

ChannelArray = _arrays.ChannelArray


# --- figures of a channel -------------------------------------------------------------------------


class ChannelStats(NamedTuple):
    """The statistics of one channel at one moment."""

    transfers: int  #: values passed so far
    dropped: int  #: values dropped by its buffer, by poison or by retirement
    readers: int  #: reader ends that are open
    writers: int  #: writer ends that are open
    waiting_readers: int  #: reads and selects that wait
    waiting_writers: int  #: writes and selects that wait
    buffered: int  #: values in its buffer


def statistics(channel: Any) -> ChannelStats:
    """Returns the statistics of `channel` at this moment.

    Raises:
        BadUse: `channel` is not a channel, or another program has made it (rule 14.8).
    """
    if not isinstance(channel, _native.Channel):
        raise BadUse(
            f"statistics: expected a channel, got {channel!r}; the channel of an end is end.channel"
        )
    stats: ChannelStats = channel.stats()
    return stats


# --- making processes -----------------------------------------------------------------------------


# the numbers are the values of Kind in process.hpp
_KINDS = {"coroutines": 0, "threads": 1, "greenlets": 2}


def process_of(function: Any, plain: str) -> Any:
    """Makes a process function of `function`. `plain` is the backend if `function` is not an `async
    def`.
    """
    if isinstance(function, _native.ProcessFunction):
        raise BadUse(f"@process twice on {function!r}: once is enough")
    if isinstance(function, type) or not callable(function):
        raise BadUse(f"@process must decorate a function, not {function!r}")
    if yields(function):
        raise BadUse(
            f"@process on {function!r}: a process cannot be a generator; give it a writer end, and write the values there"
        )
    name = getattr(function, "__name__", type(function).__name__)
    backend = "coroutines" if is_coroutine(function) else plain
    made: Any = _native.ProcessFunction(function, name, _KINDS[backend])
    functools.update_wrapper(made, function)
    # another OS process uses this backend to make the same process function
    made._weft_plain = plain
    return made


def process(function: Any) -> Any:
    """Makes a process function of a function: a call of it returns a Process, not started, that
    holds the ends in its arguments.

    An `async def` runs as a coroutine process on the scheduler of its network, a `def` on a thread
    of its own.

    Raises:
        BadUse: `function` is not a function, or is a generator function, or is a process function
            already.
    """
    return process_of(function, "threads")


# --- before a network starts ----------------------------------------------------------------------


def linked() -> bool:
    """Returns whether this program has other OS processes. The first of them imports
    _distributed_deadlock/rounds.py, which replaces this function.
    """
    return False


# A function that is called instead of a run. A child of weft.processes sets it while it imports the
# main module.
at_run: Any = None

# In a child of weft.processes: the module that the child imports for the function of a call. The
# processes of a network that this module starts inherit the variable.
imported_for_call: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "imported_for_call", default=None
)


def stop_at_run(*processes: Any) -> None:
    """Must be called before ordinary code starts a network. If a child is importing the main
    module, this function ends the processes and calls `at_run`, so that the network is not started.
    """
    if at_run is not None and _native.where() == 0:
        for p in _native.flatten(*processes):
            p._give_up()  # type: ignore[attr-defined]
        at_run(None)


def check_clock(clock: str) -> bool:
    """Returns whether the clock is the virtual one. Raises BadUse if `clock` names no clock, or if
    it is "virtual" and there are other OS processes.
    """
    if clock not in ("steady", "virtual"):
        raise BadUse(f"run: clock must be 'steady' or 'virtual', not {clock!r}")
    if clock == "virtual" and linked():
        raise BadUse(
            "run: clock='virtual' cannot be used while there are other OS processes, because virtual time would "
            "stand still as long as one of them lives (rule 8.6). Close the Hosts first, or use clock='steady'"
        )
    return clock == "virtual"


# --- running networks -----------------------------------------------------------------------------


def run(
    first: Any,
    *others: Any,
    clock: str = "steady",
    host: str = "weft",
    trace: str | os.PathLike[str] | None = None,
    watchdog: float | None = None,
    partial: Action | None = None,
) -> Any:
    """Runs a network to its end. Returns the result of the process or, if there are several, the
    list of results.

    Args:
        first, others: processes, or iterables of them.
        clock: "steady"; or "virtual", which jumps to the next deadline when nothing can run (rule
            8.6).
        host: "weft": Weft's own scheduler; or "asyncio": inside `asyncio.run`, so that processes
            may await objects of asyncio (rule 13). For another event loop, await `run_async` in it.
        trace: a file to which all events are written (:func:`tracing`).
        watchdog: seconds after which a process that has not returned to its scheduler is named
            (:func:`watchdog`).
        partial: "warn" or "raise" when processes are stuck forever while others go on
            (:func:`watching_deadlocks`).
    Raises:
        What failed in the network (several failures: an ExceptionGroup); for exactly one process
        also the Retired, Poisoned or Cancelled that left it (rule 7.1); Deadlock; BadUse;
        KeyboardInterrupt, once the network has been cancelled.
    """
    if host not in ("weft", "asyncio"):
        raise BadUse(f"run: host must be 'weft' or 'asyncio', not {host!r}")
    if host == "asyncio" and _native.where() != 0:
        raise BadUse("run(host='asyncio') is for ordinary code: here use `await Parallel(...)`")
    if host == "asyncio" and partial is not None:
        raise BadUse(
            "run(partial=…) looks when a scheduler falls asleep, which a guest of asyncio never does: ask weft.observe.deadlocks()"
        )
    virtual = check_clock(clock)
    stop_at_run(first, *others)
    with contextlib.ExitStack() as observers:
        if watchdog is not None:
            from weft._watching.watchdog import watchdog as watch_schedulers

            observers.enter_context(watch_schedulers(watchdog))
        if partial is not None:
            observers.enter_context(watching_deadlocks(partial))
        if trace is not None:
            from weft._watching.trace import tracing

            observers.enter_context(tracing(trace))
        if host == "asyncio":
            import asyncio

            return asyncio.run(run_async(first, *others, clock=clock))
        alone = not others and isinstance(first, _native.Process)
        results = _native.run((first, *others), virtual, alone)
    return results[0] if alone else results


async def run_async(first: Any, *others: Any, clock: str = "steady") -> Any:
    """Runs a network inside the running event loop (rule 13), and returns the same as `run`. An
    asyncio task awaits the call.

    Args:
        first, others: processes, or iterables of them.
        clock: "steady"; or "virtual", which jumps when nothing can run in the network and nothing
            else is on the event loop.
    Raises:
        What failed in the network (several failures: an ExceptionGroup); for exactly one process
        also what left it quietly (rule 7.1); asyncio.CancelledError, once all processes have ended,
        if the task was cancelled; Deadlock, if nothing else on the event loop could wake any
        process; BadUse.
    """
    virtual = check_clock(clock)
    if _native.where() != 4:
        raise BadUse(
            "run_async is awaited in an asyncio task: here use run(...), or `await Parallel(...)`"
        )
    from weft._backends import asyncio as _asyncio

    return await _asyncio.run(first, others, virtual)


def never_run(processes: Any) -> None:
    """Ends the processes that a Sequence has not reached. They end without having run, and release
    their ends (rules 2.3, 7.3), even if something still refers to them.
    """
    for p in processes:
        p._never_run()


# --- several ends at once -------------------------------------------------------------------------


def poison(*ends: Any, strength: int = 1) -> None:
    """Poisons every given end or channel (rule 4).

    Args:
        strength: from 1 to 255.
    Raises:
        BadUse: one of the arguments is neither an end nor a channel; then none is poisoned. Or an
            end is closed, or the strength is out of range.
    """
    _check_each("poison", "channels and ends of channels", ends)
    for end in ends:
        end.poison(strength)


def retire(*ends: Any) -> None:
    """Retires every given end (rule 3).

    Raises:
        BadUse: one of the arguments is not an end; then none is retired.
    """
    _check_each("retire", "ends of channels, reader() or writer()", ends, but=_native.Channel)
    for end in ends:
        end.retire()


def _check_each(verb: str, wanted: str, given: tuple[Any, ...], but: type | None = None) -> None:
    for one in given:
        if not hasattr(one, verb) or (but is not None and isinstance(one, but)):
            raise BadUse(f"{verb}: expected {wanted}, got {one!r}")


# --- setting up the extension module --------------------------------------------------------------

_native._set_stats(ChannelStats)
if hasattr(_native, "_set_watch"):  # only a Python without the GIL has this function
    from weft import _foreign_threads

    _native._set_watch(_foreign_threads.watch)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native._after_fork_in_child)
if os.environ.get("WEFT_FLIGHT", "0") not in ("", "0"):
    from weft._watching import flight as _flight

    _flight._from_environment()
if os.environ.get("WEFT_DEBUG", "0") not in ("", "0"):  # other OS processes inherit the variable
    from weft._watching import debug as _debug

    _debug._from_environment()
