"""Counts the pieces of work of a host outside any run (rule 10.3): its start, the steps of a call
before and after its run, and helper threads that wait for the parent. While any of these is at
work, the host does not report that it waits.

    at_work(1) … at_work(-1)              a piece of work, such as the start of a call
    attends(end) … attends_no_more(end)   a thread, which has been counted by at_work(1)

Invariant: when such a thread passes something on, the receiver is seen as working before the thread
is seen as done.
"""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple

from weft._extension import native as _native

__all__ = ["Look", "at_work", "attends", "attends_no_more", "look"]

_lock = threading.Lock()
_working = 0
_attended: set[Any] = set()  # the readers at which attending threads wait


class Look(NamedTuple):
    """The work at one moment: how many pieces of it are under way, the readers at which threads
    attend, and how many of these threads wait at those readers.
    """

    working: int
    attended: frozenset[Any]
    idle: int

    @property
    def at_rest(self) -> bool:
        """Whether nothing is at work."""
        return self.working == self.idle

    @property
    def may_rest(self) -> bool:
        """Whether only attending threads are at work. These threads might soon wait again."""
        return self.working <= len(self.attended)


def at_work(change: int) -> None:
    """Adds `change` to the number of pieces of work that are under way."""
    global _working
    with _lock:
        _working += change


def attends(end: Any) -> None:
    """Records that from now on a thread waits at this reader for orders of the parent. The thread
    has already been counted as at work. While it waits there, and the parent knows that, it does
    not count. Once an order has arrived at the reader, the thread counts again, because it carries
    out that order.
    """
    with _lock:
        _attended.add(end)


def attends_no_more(end: Any) -> None:
    """Records that the thread has carried out the order, and is no longer at work. A second call
    does nothing.
    """
    global _working
    with _lock:
        if end in _attended:
            _attended.remove(end)
            _working -= 1


def look() -> Look:
    """Returns the work that is under way now. If two results are equal, nothing began or ended
    between them.
    """
    with _lock:
        return Look(_working, frozenset(_attended), sum(map(_native._waits_at, _attended)))


def _forget() -> None:
    """Resets the counts in the child of a fork: the work belongs to the original."""
    global _lock, _working
    _lock = threading.Lock()
    _attended.clear()
    _working = 0


os.register_at_fork(after_in_child=_forget)
