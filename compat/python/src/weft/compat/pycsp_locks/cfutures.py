"""A future that shares its lock with others."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["CFuture"]


class CFuture:
    """A result for which one thread waits and which another one sets; both hold a lock that many
    futures share.

    `with CFuture() as f:` holds the lock. `f.wait()` in the block releases the lock, and the block
    ends without the lock; `f.set_result(…)` and `f.set_exception(…)` are called while holding the
    lock. Weft itself does not use this class, but old programs may. The deadlock report does not
    know a thread in `wait`.

    Args:
        lock: an RLock; by default, a lock that all futures without one share.
    """

    _shared = threading.RLock()

    def __init__(self, lock: Any = None) -> None:
        self._lock = self._shared if lock is None else lock
        self._set = threading.Event()
        self._holding = False
        self.result: Any = None
        self.exception: BaseException | None = None
        self.waited = False

    def done(self) -> bool:
        """Returns whether a result or an exception was set."""
        return self._set.is_set()

    def set_result(self, res: Any) -> None:
        self.result = res
        self._set.set()

    def set_exception(self, exc: BaseException) -> None:
        """Sets an exception, which `wait` raises."""
        self.exception = exc
        self._set.set()

    def wait(self) -> Any:
        """Releases the lock, waits, and returns the result."""
        if not self._holding or self.waited:
            raise RuntimeError(
                "CFuture.wait outside of the future's `with` block, or a second time"
            )
        self.waited = True
        self._lock.release()
        self._set.wait()
        if self.exception is not None:
            raise self.exception
        return self.result

    def __enter__(self) -> CFuture:
        self._lock.acquire()
        self._holding = True
        return self

    def __exit__(self, *_: Any) -> None:
        self._holding = False
        if not self.waited:
            self._lock.release()
