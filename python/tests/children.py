"""Programs that a test starts. A program is ended when its block is left, and at the latest after
its `seconds`.

No test depends on `seconds`: they only end programs that hang, and even on a slow machine a working
program takes far less.

Invariant: nothing that waits for a program (for its output, for its end) waits longer than its
`seconds`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def child(*arguments: str, seconds: float = 280, **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Starts this Python with `arguments`; its outputs are pipes of text. After `seconds` the
    program is killed, so that a reader of its output sees an end.
    """
    given = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "encoding": "utf-8",
        **how,
    }
    p = subprocess.Popen([sys.executable, *arguments], **given)
    limit = threading.Timer(seconds, p.kill)
    limit.daemon = True
    limit.start()
    try:
        yield p
    finally:
        limit.cancel()
        p.kill()
        p.communicate()  # closes the pipes, and reaps the child


def _asleep(pid: int) -> dict[str, str] | None:
    """Returns, for each thread of the process, how often it has given up its CPU, if all its
    threads sleep; otherwise None.
    """
    slept = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has just ended
            status = (task / "status").read_text(errors="replace")
            state = status.partition("\nState:")[2].split()[0]
            assert state != "Z" or task.name != str(pid), "the program has ended"
            if state != "S":
                return None
            slept[task.name] = status.partition("\nvoluntary_ctxt_switches:")[2]
    return slept


def until_asleep(pid: int) -> None:
    """Returns once every thread of the process sleeps: a thread that is about to act does not
    sleep.

    The threads are checked one after another. A thread that was found asleep may since have been
    woken by another thread, which sleeps by the time it is checked. Therefore all threads must have
    slept from one check to the next.
    """
    before = None
    while (now := _asleep(pid)) is None or now != before:
        before = now
        os.sched_yield()


def weft(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command `weft` until it ends."""
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
