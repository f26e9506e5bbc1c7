"""Waits until threads that are not processes have ended. Then a run that stood still because of
them looks again (rule 10.3). Only for builds without the interpreter's lock: on others
python/native/interpreter/strangers.cpp sees them end.

Invariants
- It waits for one at a time: while any of them lives, no run concludes anything.
- It does not wait for the main thread, since the interpreter ends with that; nor for threads that
  `threading` has not started, since nothing tells when they end.
"""

from __future__ import annotations

import contextlib
import gc
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
                with contextlib.suppress(RuntimeError):  # it is still being started
                    thread.join()
                if thread.is_alive():
                    time.sleep(0.001)
                else:
                    # An object that one thread drops and another made is freed when the maker runs
                    # Python code again. But the maker may sleep until an end in that object goes. A
                    # collection frees all of these.
                    gc.collect()
                    _native._look_again()
                del thread
    finally:
        _native._helper_thread(False)


def watch() -> None:
    """Called by the extension module, when a run stands still because of such a thread. Starts a
    thread that waits.
    """
    threading.Thread(target=_wait, name="weft strangers", daemon=True).start()
