"""Prints where every process is when a signal arrives; the program continues (rule 14.10).

    the signal ──a handler in C──► a thread in C, which slept ──► say(): each process, on stderr

Invariant: Python knows no handler for the signal. So the handler does not count as outside (rule
10.3), no code of the program is interrupted, and the list is printed also while the main thread
computes.
"""

from __future__ import annotations

import signal
import sys

from weft._extension import native as _native
from weft.errors import BadUse

_MAX_LINES = 40  # the largest number of processes that are printed


def on_signal(number: int = getattr(signal, "SIGUSR1", 10)) -> None:
    """Makes a signal print on stderr where each process is. The program goes on.

    Args:
        number: the signal; SIGUSR1 by default. A handler that was set before is replaced.
    Raises:
        BadUse: this signal cannot be used for that.
    """
    if not hasattr(_native, "_on_signal"):
        raise BadUse("on_signal needs Weft's extension module, which pure Python does not have")
    fatal = {"SIGKILL", "SIGSTOP", "SIGSEGV", "SIGFPE", "SIGILL", "SIGBUS", "SIGABRT", "SIGINT"}
    try:
        name = signal.Signals(number).name
    except ValueError:
        raise BadUse(
            f"on_signal: {number!r} is not a signal: take signal.SIGUSR1 or SIGUSR2"
        ) from None
    if name in fatal:
        raise BadUse(f"on_signal: {name} has a meaning of its own: take signal.SIGUSR1 or SIGUSR2")
    _native._on_signal(int(number))


def say() -> None:
    """Prints the list. This function is called on a helper thread."""
    rows = _native._where()
    rounds = sys.modules.get("weft._distributed_deadlock.rounds")
    here = [f"{path}: {does}" for _, path, does in rows]
    lines = here if rounds is None else rounds._everywhere(rows)
    message = "weft: the processes are:" if lines else "weft: no network runs"
    more = [f"  … and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES else []
    text = "\n".join([message, *(f"  {line}" for line in lines[:_MAX_LINES]), *more]) + "\n"
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
