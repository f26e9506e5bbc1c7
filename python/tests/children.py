"""Programs that a test starts: they are ended with the block, however it is left, and after a time
in any case.

No test is about that time: it ends what hangs, and a slow machine does not come near it.

Invariant: nothing that waits for such a program (its output, its end) waits longer than its
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
    """This Python with `arguments`; its outputs are pipes of text. After `seconds` it is killed:
    what reads from it sees the end."""
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
        p.communicate()  # closes the pipes and reaps it


def until_asleep(pid: int) -> None:
    """Returns once every thread of the process sleeps: whoever is about to do something runs, or
    holds the lock and runs."""
    while True:
        states = set()
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # it has just ended
                states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
        if states == {"S"}:
            return
        assert states != {"Z"}, "the program has ended"
        os.sched_yield()
