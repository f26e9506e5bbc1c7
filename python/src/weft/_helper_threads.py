"""Keeps the set of helper threads. These threads hold no end at which a process waits, so they wake
no run (rule 10.3). strangers() returns whether there are other, foreign threads.

Invariants
- `_ours` has no lock: each change is one operation of a set. A signal handler that interrupts a
  thread here may wait for another thread that adds itself (rule 12.1).
- `_ours` is empty in the child of a fork: the threads in it were the parent's.
"""

from __future__ import annotations

import _thread
import os
import threading

from weft._extension import native as _native

__all__ = ["helps", "not_ours", "ours", "strangers"]

_ours: set[int] = set()


def ours() -> None:
    """Records that the calling thread is a helper thread, and holds no end at which a process
    waits."""
    _ours.add(threading.get_ident())


def not_ours(thread: int | None = None) -> None:
    _ours.discard(thread or threading.get_ident())


class _HelperMark:
    """Marks a thread as a helper thread. The object is local to the thread, so it is freed when the
    thread ends.
    """

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        _native._helper_thread(True)
        ours()

    def __del__(self) -> None:
        _ours.discard(self.thread)  # another thread may get the same identifier
        if threading.get_ident() == self.thread:
            _native._helper_thread(False)


_local = threading.local()


def helps() -> None:
    """Records that the calling thread is a helper thread, and wakes no run (rule 10.3), until it
    ends.
    """
    _local.helps = _HelperMark()


def strangers() -> bool:
    """Returns whether there are foreign threads, which are neither processes nor helper threads
    (rule 10.3).
    """
    strange, threads = _native._strangers()
    noted = _ours.copy()
    if strange:
        return not set(threads) <= noted
    known = noted.union(threads)
    # Without a GIL, threads can only be counted. Recorded threads that lived before and after the
    # count are counted too; a recorded thread that has ended is not counted.
    before = {thread.ident for thread in threading.enumerate()}
    count = _thread._count() + 1  # _count() does not count the main thread
    after = {thread.ident for thread in threading.enumerate()}
    return count > len(known & before & after)


os.register_at_fork(after_in_child=_ours.clear)
