"""Counts, for `weft.metrics`, how many processes were lost with their OS process, and how often a
process was started again. Both events are rare, so they are always counted.
"""

from __future__ import annotations

import threading

_lock = threading.RLock()  # the lock is re-entrant: a signal handler can start a process
counts = {"deaths": 0, "restarts": 0}


def note(what: str) -> None:
    with _lock:
        counts[what] += 1
