"""Which threads are Weft's own: they hold no end at which a process waits, so they wake no run (rule
10.3), and strangers() are all the others that are no processes.

Invariants
- `_ours` has no lock: each change is one operation of a set. A signal handler that interrupts a
  thread here may wait for another thread that notes itself (rule 12.1).
- In the child of a fork there are none: they were the parent's.
"""

from __future__ import annotations

import _thread
import os
import threading

from weft._extension import native as _native

__all__ = ["helps", "not_ours", "ours", "strangers"]

_ours: set[int] = set()


def ours() -> None:
    """Notes that the calling thread is Weft's own, and holds no end at which a process waits."""
    _ours.add(threading.get_ident())


def not_ours(thread: int | None = None) -> None:
    _ours.discard(thread or threading.get_ident())


class _Helps:
    """Of a thread that helps: when it ends, what is local to it goes, and this too."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        _native._helper_thread(True)
        ours()

    def __del__(self) -> None:
        _ours.discard(self.thread)  # another thread may get its number
        if threading.get_ident() == self.thread:
            _native._helper_thread(False)


_local = threading.local()


def helps() -> None:
    """Notes that the calling thread is Weft's own, and wakes no run (rule 10.3), until it ends."""
    _local.helps = _Helps()


def strangers() -> bool:
    """Are there threads that are no process and not Weft's own (rule 10.3)?"""
    strange, threads = _native._strangers()
    noted = _ours.copy()
    if strange:
        return not set(threads) <= noted
    known = noted.union(threads)
    # Without a GIL threads can only be counted. Those of ours that lived before and after that are
    # among them; what is noted of one that has ended is not.
    before = {thread.ident for thread in threading.enumerate()}
    count = _thread._count() + 1  # it does not count the main thread
    after = {thread.ident for thread in threading.enumerate()}
    return count > len(known & before & after)


os.register_at_fork(after_in_child=_ours.clear)
