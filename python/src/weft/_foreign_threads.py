"""Waits until foreign threads have ended. Then a run that stood still because of them checks again
(rule 10.3). Only builds of CPython without the GIL need this module: in other builds
python/native/interpreter/foreign_threads.cpp notices the end of such threads.

Invariants
- The module waits for one thread at a time: while any foreign thread exists, no run concludes
  anything.
- The module does not wait for the main thread, since the interpreter ends with that thread; nor for
  threads that `threading` has not started, since nothing reports their end.
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
        own = thread.ident is not None and _native._is_own_thread(thread.ident)
        if not (
            own or thread is threading.main_thread() or isinstance(thread, threading._DummyThread)
        ):
            return thread
    return None


def _wait() -> None:
    _native._helper_thread(True)
    try:
        while _native._foreign_threads_wanted():
            while (thread := _one()) is not None:
                with contextlib.suppress(RuntimeError):  # raised while the thread is being started
                    thread.join()
                if thread.is_alive():
                    time.sleep(0.001)
                else:
                    # An object that another thread made and this thread drops is freed only when
                    # the other thread runs Python code again. But that thread may sleep until an
                    # end in the object is retired. A collection frees all such objects.
                    gc.collect()
                    _native._look_again()
                del thread
    finally:
        _native._helper_thread(False)


def watch() -> None:
    """Starts a thread that waits for foreign threads to end. The extension module calls watch()
    when a run stands still because of a foreign thread.
    """
    threading.Thread(target=_wait, name="weft foreign threads", daemon=True).start()
