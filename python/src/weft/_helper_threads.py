"""Keeps the set of helper threads. These threads hold no end at which a process waits, so they wake
no run (rule 10.3). foreign_threads() returns whether there are other, foreign threads.

Invariants
- `_helpers` has no lock: each change is one operation of a set. A signal handler that interrupts a
  thread here may wait for another thread that adds itself (rule 12.1).
- `_helpers` is empty in the child of a fork: the threads in it were the parent's.
"""

from __future__ import annotations

import _thread
import os
import threading

from weft._extension import native as _native

__all__ = ["add", "add_until_end", "foreign_threads", "remove"]

_helpers: set[int] = set()


def add() -> None:
    """Records that the calling thread is a helper thread, which holds no end at which a process
    waits, until remove() is called."""
    _helpers.add(threading.get_ident())


def remove(thread: int | None = None) -> None:
    """Removes what add() has recorded for a thread, by default for the calling thread."""
    _helpers.discard(thread or threading.get_ident())


class _HelperMark:
    """Marks a thread as a helper thread. The object is local to the thread, so it is freed when the
    thread ends.
    """

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        _native._helper_thread(True)
        add()

    def __del__(self) -> None:
        _helpers.discard(self.thread)  # another thread may get the same identifier
        if threading.get_ident() == self.thread:
            _native._helper_thread(False)


_local = threading.local()


def add_until_end() -> None:
    """Records that the calling thread is a helper thread, and wakes no run (rule 10.3), until it
    ends.
    """
    _local.mark = _HelperMark()


def foreign_threads() -> bool:
    """Returns whether there are foreign threads, which are neither processes nor helper threads
    (rule 10.3).
    """
    foreign, threads = _native._foreign_threads()
    noted = _helpers.copy()
    if foreign:
        return not set(threads) <= noted
    known = noted.union(threads)
    # Without a GIL, threads can only be counted. Recorded threads that existed before and after the
    # count are counted too; a recorded thread that has ended is not counted.
    before = {thread.ident for thread in threading.enumerate()}
    count = _thread._count() + 1  # _count() does not count the main thread
    after = {thread.ident for thread in threading.enumerate()}
    return count > len(known & before & after)


os.register_at_fork(after_in_child=_helpers.clear)
