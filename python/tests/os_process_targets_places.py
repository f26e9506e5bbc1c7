"""Writers in other OS processes, for test_processes_places.py."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

from weft.processes import process


@process
def answers(asked: Any, out: Any) -> None:
    for value in asked:
        out.write(value + 1)


@process
def stops_itself(go: Any, out: Any, last: bool = True) -> None:
    """Writes once for each value from `go`, and then stops until it is continued. With `last`,
    writes once more after that.
    """
    for _ in go:
        out.write(os.getpid())
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # stops this thread at this line
    if last:
        out.write("goes on")


@process
def dies(out: Any, n: int) -> None:
    for value in range(n):
        out.write(value)
    os.kill(os.getpid(), signal.SIGKILL)


@process
def keeps_the_lock(go: Any, out: Any, long: float) -> None:
    """Writes once for each value from `go`, and then holds the interpreter's lock for `long`
    seconds."""
    for value in go:
        out.write(value)
    until = time.monotonic() + long
    while time.monotonic() < until:
        sorted(range(3_000_000), reverse=True)
    out.write("late")
