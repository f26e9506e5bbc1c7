"""Finds out which of several descriptors have something to read.

select.select accepts no descriptor above 1,023, which a program with some 170 hosts exceeds.
multiprocessing.connection.wait does the same as this module, but its import takes 8 ms, in each
host.
"""

from __future__ import annotations

import math
import select
from collections.abc import Iterable
from typing import Any

__all__ = ["readable"]


def readable(those: Iterable[Any], timeout: float | None = None) -> list[Any]:
    """Returns the items of `those` that have something to be read, or have ended.

    Args:
        those: descriptors, or objects with a fileno().
        timeout: seconds after which [] is returned; None: waits until there is such an item.
    Raises:
        OSError, ValueError: a descriptor is closed.
    """
    poll, by = select.poll(), {}
    for each in those:
        descriptor = each if isinstance(each, int) else each.fileno()
        by[descriptor] = each
        poll.register(descriptor, select.POLLIN)
    found = poll.poll(None if timeout is None else math.ceil(timeout * 1000))
    if any(how & select.POLLNVAL for _, how in found):
        closed = [descriptor for descriptor, how in found if how & select.POLLNVAL]
        raise OSError(f"descriptor {closed[0]} was closed before or while it was waited for")
    return [by[descriptor] for descriptor, _ in found]
