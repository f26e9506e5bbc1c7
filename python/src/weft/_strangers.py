"""Waits until threads that are no processes have ended; then a run that stood still because of them
looks again (rule 10.3).

Invariants
- One at a time is waited for: while any of them lives, no run concludes anything.
- The main thread is not, for the interpreter ends with it; nor are threads that `threading` has not
  started, for nobody hears of their ends.
"""

from __future__ import annotations

import contextlib
import threading
import time

from weft._extension import native as _native

__all__ = ["watch"]


def _one() -> threading.Thread | None:
    for thread in threading.enumerate():
        ours = thread.ident is not None and _native._is_ours(thread.ident)
        if not (
            ours or thread is threading.main_thread() or isinstance(thread, threading._DummyThread)
        ):
            return thread
    return None


def _wait() -> None:
    _native._helper_thread(True)
    try:
        while _native._strangers_wanted():
            while (thread := _one()) is not None:
                with contextlib.suppress(RuntimeError):  # it is being started yet
                    thread.join()
                if thread.is_alive():
                    time.sleep(0.001)
                else:
                    _native._look_again()
                del thread
    finally:
        _native._helper_thread(False)


def watch() -> None:
    """What the extension module calls, on a thread of its own, when a run stands still for such a
    thread.
    """
    threading.Thread(target=_wait, name="weft strangers", daemon=True).start()
