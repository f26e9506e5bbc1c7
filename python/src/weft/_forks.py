"""os.fork() without the loss of a signal.

os.fork() calls functions that modules have registered (logging does). If the handler of a signal
raises in such a function, Python prints the exception and drops it, so a Ctrl-C would do nothing.
And if the handler raises after the fork, before the caller has noted the pid, no code knows of the
child.

Invariants
- No handler that may raise runs from before the fork until `noted` has returned in the parent, and
  until fork() ends in the child.
- A signal that arrives meanwhile is handled once, afterwards, in the process that received it.
- The child of a fork never runs what follows an exception of fork().
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["fork"]

_Handler = Callable[[int, "FrameType | None"], Any]


def fork(noted: Callable[[int], object]) -> int:
    """Does what os.fork() does. `noted` is called with the pid in the parent, before any handler of
    a signal can raise. So if this function raises after the call of `noted`, there is a child.

    Raises:
        OSError: the system cannot start a process.
        BaseException: in the parent, a handler has raised it. In the child such an exception ends
            the child, with the status 1.
    """
    original = os.getpid()
    try:
        with _signals_later():
            if pid := os.fork():
                noted(pid)
    except BaseException:
        if os.getpid() != original:
            os._exit(1)
        raise
    return pid


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Delays the handlers of signals until the block has ended. Python runs handlers in the main
    thread alone, so in another thread the block changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, int]] = []  # the OS process, and the number of the signal

    def note(number: int, frame: FrameType | None) -> None:
        came.append((os.getpid(), number))

    before: list[tuple[int, _Handler]] = []
    try:
        for number in signal.valid_signals():
            # Handlers that are not functions of Python's, as SIG_DFL, raise nothing.
            if callable(handler := signal.getsignal(number)) and number not in _NOT_HANDLED:
                before.append((number, handler))
                signal.signal(number, note)
        yield
    finally:
        handlers = dict(before)
        _put_back(before)
        _handle([(number, handlers[number]) for pid, number in came if pid == os.getpid()])


# No handler can be set for these two.
_NOT_HANDLED = {getattr(signal, name) for name in ("SIGKILL", "SIGSTOP") if hasattr(signal, name)}


def _put_back(before: list[tuple[int, _Handler]]) -> None:
    """Sets all of these handlers again, even if a handler that is already set raises meanwhile."""
    while before:
        number, handler = before.pop()
        try:
            signal.signal(number, handler)
        except BaseException:
            signal.signal(number, handler)
            _put_back(before)
            raise


def _handle(came: list[tuple[int, _Handler]]) -> None:
    """Calls the handlers of these signals, in the order in which the signals arrived. If one
    raises, the others are called all the same, as Python would.

    The handlers are called here, since a signal that is sent again would be reported twice to a
    loop that has called signal.set_wakeup_fd().
    """
    if not came:
        return
    number, handler = came[0]
    try:
        handler(number, sys._getframe())
    finally:
        _handle(came[1:])
