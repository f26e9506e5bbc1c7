"""A standstill (rule 10.6): nothing can run, nothing is due, and yet no deadlock is proven.

A standstill is reported once in a run for the same places, as a warning of the logger ``weft``. The
report is made from the facts of one moment (python/native/rounds/partial.cpp);
cpp/include/weft/runtime/run.hpp says how a standstill is noticed. If ordinary code waits outside
any run (python/native/processes/caller.cpp), the wait is reported once for each line.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

from weft._extension import native as _native
from weft._watching import deadlocks as _deadlocks
from weft._watching.deadlocks import Place, Waiter
from weft._watching.quiet_ends import caller

_LINES = 40  #: the largest number of processes that a report lists

_logger = logging.getLogger("weft")


def text(
    waiters: list[Waiter],
    places: dict[int, Place],
    others: list[str],
    handlers: list[str],
    tokens: int,
    seconds: float,
) -> str:
    """Returns the report: which processes wait where, and what might still wake them.

    Args:
        others: threads that are not processes.
        handlers: signals whose handlers may act.
        tokens: how many open `Outside` tokens there are.
        seconds: the time for which nothing has run.
    """
    paths = {w.id: w.path for w in waiters}
    waiting = sorted(
        (w for w in waiters if w.state == "places"), key=lambda w: (w.path, w.operation, w.id)
    )
    n = len(waiting)
    lines = [
        f"standstill: nothing has run for {seconds:g} s, and no timer, io call or socket is due; "
        f"{n} process{' waits' if n == 1 else 'es wait'}"
    ]
    for w in waiting[:_LINES]:
        holders: set[int] = set()
        unknown = []
        for key, writing in w.places:
            place = places[key]
            holders.update(place.readers if writing else place.writers)
            if (place.unknown_readers if writing else place.unknown_writers) or (
                place.is_channel and not (place.readers if writing else place.writers)
            ):
                unknown.append(place.name)
        line = "  " + _deadlocks.line(w.path, w.operation, w.names(places), w.at)
        if holders:
            line += (
                f"; held by {' and '.join(sorted(paths.get(i, 'another run') for i in holders))}"
            )
        if unknown:
            line += f"; an end of {', '.join(unknown)} is held by no process"
        lines.append(line)
    if n > _LINES:
        lines.append(f"  … and {n - _LINES} more")
    threads = f" ({', '.join(others)})" if others else ""
    may = signals_and_tokens(handlers, tokens)
    if others or not may:
        may.insert(
            0,
            f"a thread that is no process of this run{threads}, if it has an end that no process holds",
        )
    lines.append(f"what may still wake them: {', or '.join(may)}")
    return "\n".join(lines)


def signals_and_tokens(handlers: list[str], tokens: int) -> list[str]:
    """Returns, for a report, what can act besides threads."""
    may = []
    if handlers:
        may.append(f"the handler of {' or '.join(handlers)}")
    if tokens:
        may.append(
            f"what {tokens} weft.Outside stand{'s' if tokens == 1 else ''} for "
            "(say Outside(due=True) where that takes its time)"
        )
    return may


def handlers() -> list[str]:
    """Returns the signals whose handlers can act (rule 10.3), also those of the running event
    loop.
    """
    asyncio = sys.modules.get("weft._backends.asyncio")
    loop = asyncio.running_here() if asyncio is not None else None
    of_loop = asyncio.handlers_of(loop) if asyncio is not None and loop is not None else {}
    return [_name(n) for n in _native._handlers_that_act(of_loop)]


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # of the real-time signals, only two have names
        return f"signal {number}"


def _names(idents: Iterable[int]) -> list[str]:
    names = {t.ident: t.name for t in threading.enumerate()}
    return sorted({names.get(i, f"thread {i}") for i in idents})


def tell(facts: tuple[Any, Any], idents: Iterable[int], tokens: int, seconds: float) -> None:
    message = text(*_deadlocks.parsed(facts), _names(idents), handlers(), tokens, seconds)
    _logger.warning("%s", message)


_alone: set[tuple[str, str, int]] = set()  #: the operations and lines that have been reported


def alone(
    verb: str, places: str, idents: Iterable[int], signals: bool, tokens: int, seconds: float
) -> bool:
    """Reports that ordinary code waits outside any run, on the calling thread. Returns true if the
    extension must call again, because it is too early to report anything, or because the thread,
    handler or token that may still wake the code may end.

    Args:
        places: the names of the places where the code waits, each with a space before it.
        signals: whether signal handlers run on this thread.
        tokens: how many open `Outside` tokens there are.
        seconds: the time for which the code has waited.
    """
    if threading.current_thread().name.startswith("weft: "):
        return False  # this is a helper thread, which waits for other threads to act
    loops = getattr(sys.modules.get("weft._backends.asyncio"), "running_loops", None)
    if loops is not None and loops():
        return True  # an event loop that waits for its sockets is not a standstill
    file, line = caller()
    if (verb, file, line) in _alone:
        return True
    _alone.add((verb, file, line))
    others = _names(idents)
    may = [f"another thread ({', '.join(others)})"] if others else []
    may += signals_and_tokens(handlers() if signals else [], tokens)
    _logger.warning(
        "standstill: ordinary code outside any run has waited for %g s, and no run goes on that could wake it\n"
        "  %s: %s%s at %s:%d\n"
        "what may still wake it: %s. If it is to meet a process: do it in a process that run(...) starts; a coroutine "
        "process awaits it (`await`)",
        seconds,
        threading.current_thread().name,
        verb,
        places,
        file,
        line,
        " or ".join(may) if may else "nothing that is known",
    )
    return True
