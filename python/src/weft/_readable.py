"""Which of several descriptors have something to read.

select.select has none beyond 1,023, and so a program with some 170 hosts came to an end of it;
multiprocessing.connection.wait does the same as this and takes 8 ms to import, in each host.
"""

from __future__ import annotations

import math
import select
from collections.abc import Iterable
from typing import Any

__all__ = ["readable"]


def readable(those: Iterable[Any], timeout: float | None = None) -> list[Any]:
    """Those (descriptors, or what has a fileno()) that have something to read, or have ended; []:
    none within `timeout` seconds; None: waits for one.

    Raises:
        OSError, ValueError: one is closed.
    """
    poll, by = select.poll(), {}
    for each in those:
        descriptor = each if isinstance(each, int) else each.fileno()
        by[descriptor] = each
        poll.register(descriptor, select.POLLIN)
    found = poll.poll(None if timeout is None else math.ceil(timeout * 1000))
    if any(how & select.POLLNVAL for _, how in found):
        raise OSError("a descriptor that is waited for is closed")
    return [by[descriptor] for descriptor, _ in found]
