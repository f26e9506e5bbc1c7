"""What a host has to do outside any run (rule 10.3): its start, calls before and after their run,
and threads of ours that wait for the parent. While any of that goes on the host does not wait.

    at_work(1) … at_work(-1)              a call, say
    attends(end) … attends_no_more(end)   a thread, which has been counted by at_work(1)

Invariant: who is given something by such a thread is seen as working before the thread is seen as
done.
"""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple

from weft._extension import native as _native

__all__ = ["Look", "at_work", "attends", "attends_no_more", "look"]

_lock = threading.Lock()
_working = 0
_attended: set[Any] = set()  # readers at which these threads wait


class Look(NamedTuple):
    """How many are at work, where threads attend, and how many of these wait there."""

    working: int
    attended: frozenset[Any]
    idle: int

    @property
    def at_rest(self) -> bool:
        """Nobody is at work."""
        return self.working == self.idle

    @property
    def may_rest(self) -> bool:
        """None is at work but threads that attend: soon they wait, perhaps."""
        return self.working <= len(self.attended)


def at_work(change: int) -> None:
    """Changes the number of those that are at work."""
    global _working
    with _lock:
        _working += change


def attends(end: Any) -> None:
    """A thread, which counts as at work, waits at this reader for the parent from now on. While it
    waits there, and the parent knows that, it does not count. It counts again from the moment at
    which something has come there, for it carries out what comes.
    """
    with _lock:
        _attended.add(end)


def attends_no_more(end: Any) -> None:
    """The thread has carried out what came, and is at work no more. A second time this does
    nothing."""
    global _working
    with _lock:
        if end in _attended:
            _attended.remove(end)
            _working -= 1


def look() -> Look:
    """Who is at work now. Two looks that are equal had nobody begin or end in between."""
    with _lock:
        return Look(_working, frozenset(_attended), sum(map(_native._waits_at, _attended)))


def _forget() -> None:
    """In the child of a fork: that is the original's work."""
    global _lock, _working
    _lock = threading.Lock()
    _attended.clear()
    _working = 0


os.register_at_fork(after_in_child=_forget)
