"""What the backends have in common: @process, run(), figures of a channel, and ends of several.

What awaits is in _backends/awaiting.py, what blocks in _backends/blocking.py.

Invariants
- The extension module is set up here, before any backend is used: what it calls of Python, and what
  it does after a fork.
- Ordinary code comes through `stop_at_run` before it starts a network, whichever way it starts it.
- Two names are replaced by other modules, which are imported only where they are needed: `linked`
  by _distributed_deadlock/rounds.py, `at_run` by _hosts/child.py.
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
    """Figures of one channel at one moment."""

    transfers: int  #: values passed so far
    dropped: int  #: values dropped by its buffer, by poison or by retirement
    readers: int  #: reader ends that are open
    writers: int  #: writer ends that are open
    waiting_readers: int  #: reads and selects that wait
    waiting_writers: int  #: writes and selects that wait
    buffered: int  #: values in its buffer


def statistics(channel: Any) -> ChannelStats:
    """The figures of `channel` at this moment.

    Raises:
        BadUse: it is not a channel; another program has made it, and is the one to ask (rule 14.8).
    """
    if not isinstance(channel, _native.Channel):
        raise BadUse(f"statistics of {channel!r}: give a channel; an end has it as .channel")
    stats: ChannelStats = channel.stats()
    return stats


# --- making processes -----------------------------------------------------------------------------


_KINDS = {"coroutines": 0, "threads": 1, "greenlets": 2}  # as in process.hpp


def process_of(function: Any, plain: str) -> Any:
    """A function as a process; `plain`: the backend if it is not an `async def`."""
    if isinstance(function, _native.ProcessFunction):
        raise BadUse(f"@process twice on {function!r}: once is enough")
    if isinstance(function, type) or not callable(function):
        raise BadUse(f"@process on {function!r}: decorate a function")
    if yields(function):
        raise BadUse(f"@process on {function!r}: a process does not yield; give it a writer end")
    name = getattr(function, "__name__", type(function).__name__)
    backend = "coroutines" if is_coroutine(function) else plain
    made: Any = _native.ProcessFunction(function, name, _KINDS[backend])
    functools.update_wrapper(made, function)
    made._weft_plain = plain  # to make it again in another OS process
    return made


def process(function: Any) -> Any:
    """Makes a function a process: when called, it returns a Process, not started, that holds the
    ends in its arguments.

    An `async def` runs as a coroutine process on the scheduler of its network, a `def` on a thread
    of its own.

    Raises:
        BadUse: it is not a function, or it is a generator, or a process already.
    """
    return process_of(function, "threads")


# --- before a network starts ----------------------------------------------------------------------


def linked() -> bool:
    """Are there other OS processes of this program? There are none until _distributed_deadlock/rounds.py, which is
    imported with the first one, replaces this.
    """
    return False


# Called in place of a run in a child of weft.processes, while that imports the main module.
at_run: Any = None

# In a child of weft.processes: the module that it is importing for the function of a call. The
# processes of a network see it.
imported_for_call: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "imported_for_call", default=None
)


def stop_at_run(*processes: Any) -> None:
    """Called before ordinary code starts a network: stops that if the main module is only being
    imported by a child (`at_run`).
    """
    if at_run is not None and _native.where() == 0:
        for p in _native.flatten(*processes):
            p._give_up()  # type: ignore[attr-defined]
        at_run(None)


def check_clock(clock: str) -> bool:
    """Checks the name of a clock. True: it is the virtual clock."""
    if clock not in ("steady", "virtual"):
        raise BadUse(f"run: clock must be 'steady' or 'virtual', not {clock!r}")
    if clock == "virtual" and linked():
        raise BadUse(
            "virtual time beside other OS processes: it would stand still as long as one of them lives (rule 8.6). "
            "Close the Hosts first, or use clock='steady'"
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
    """Runs a network to its end. Gives the result of the process or, if there are several, the list
    of results.

    Args:
        first, others: processes, or iterables of them.
        clock: "steady"; or "virtual", which jumps to the next deadline when nothing can run (rule
            8.6).
        host: "weft": Weft's own scheduler; or "asyncio": inside `asyncio.run`, so that processes
            may await what asyncio has (rule 13). For another loop, await `run_async` in it.
        trace: a file to which everything that happens is written (:func:`tracing`).
        watchdog: seconds after which a process that has not returned to its scheduler is named
            (:func:`watchdog`).
        partial: "warn" or "raise" when processes are stuck for ever while others go on
            (:func:`watching_deadlocks`).
    Raises:
        what failed in it (several failures: an ExceptionGroup); for exactly one process also the
        Retired, Poisoned or Cancelled that left it (rule 7.1); Deadlock; BadUse; KeyboardInterrupt,
        once the network was cancelled.
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
    """Awaited in an asyncio task: runs a network inside the running loop (rule 13). Gives what
    `run` does.

    Args:
        first, others: processes, or iterables of them.
        clock: "steady"; or "virtual", which jumps when nothing can run in the network and nothing
            else is on the loop.
    Raises:
        what failed in it (several failures: an ExceptionGroup); for exactly one process also what
        left it quietly (rule 7.1); asyncio.CancelledError, once all processes have ended, if the
        task was cancelled; Deadlock, if nothing else on the loop could wake any process; BadUse.
    """
    virtual = check_clock(clock)
    if _native.where() != 4:
        raise BadUse(
            "run_async is awaited in an asyncio task: here use run(...), or `await Parallel(...)`"
        )
    from weft._backends import asyncio as _asyncio

    return await _asyncio.run(first, others, virtual)


def never_run(processes: Any) -> None:
    """Those that a Sequence did not reach have ended without having run, and have let go of their
    ends (rules 2.3, 7.3), whoever still has the processes.
    """
    for p in processes:
        p._never_run()


# --- several ends at once -------------------------------------------------------------------------


def poison(*ends: Any, strength: int = 1) -> None:
    """Poisons every end or channel given (rule 4).

    Raises:
        BadUse: one of them is neither an end nor a channel; then none is poisoned. Or an end is
            closed, or the strength is not from 1 to 255.
    """
    _check_each("poison", "channels and ends of channels", ends)
    for end in ends:
        end.poison(strength)


def retire(*ends: Any) -> None:
    """Retires every end given (rule 3).

    Raises:
        BadUse: one of them is not an end; then none is retired.
    """
    _check_each("retire", "ends of channels, reader() or writer()", ends, but=_native.Channel)
    for end in ends:
        end.retire()


def _check_each(verb: str, wanted: str, given: tuple[Any, ...], but: type | None = None) -> None:
    for one in given:
        if not hasattr(one, verb) or (but is not None and isinstance(one, but)):
            raise BadUse(f"{verb} of {one!r}: give {wanted}")


# --- setting up the extension module --------------------------------------------------------------

_native._set_stats(ChannelStats)
if hasattr(_native, "_set_watch"):  # where there is no lock of the interpreter
    from weft import _foreign_threads

    _native._set_watch(_foreign_threads.watch)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native._after_fork_in_child)
if os.environ.get("WEFT_DEBUG", "0") not in ("", "0"):  # other OS processes have it too
    from weft._watching import debug as _debug

    _debug._from_environment()
