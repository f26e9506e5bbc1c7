"""A backend that hangs: weft.threads, except that the second write of a process never returns. When
the write hangs, it ends the time of its network at once, so no test must guess how long the network
takes to reach that write.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

from weft.threads import *  # noqa: F403
from weft.threads import Channel as _Channel
from weft.threads import process as process


class _Writer:
    def __init__(self) -> None:
        self.writes = 0

    def write(self, value: str) -> None:
        self.writes += 1
        if self.writes == 2:
            signal.setitimer(signal.ITIMER_REAL, 1e-6)  # the signal by which serve() ends a network
            threading.Event().wait()


class Channel:
    def __init__(self, **spec: Any) -> None:
        self.real = _Channel(**spec)

    def reader(self) -> Any:
        return self.real.reader()

    def writer(self) -> Any:
        return _Writer()
