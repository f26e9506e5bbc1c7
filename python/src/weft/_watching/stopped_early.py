"""Readers that stopped early (rule 3.6): python/native/watching/stopped_early.cpp notices them."""

from __future__ import annotations

import logging
from typing import Any

_logger = logging.getLogger("weft")
_told: set[str] = set()  #: the lines that were told


def tell(why: Any) -> None:
    """Warns, once for each line of the program. `why`: how the process that wrote ended, with the
    names of a NoResult."""
    if why.where in _told:
        return
    _told.add(why.where)
    _logger.warning(
        "process %s was left by Retired at %s (%s): all who could read there had returned after one read each. "
        "If they are to read more, read in a loop: `for value in reader` (`async for` in a coroutine process); if not, "
        "retire the reader end, and this is not told",
        why.process,
        why.where,
        why.reason,
    )
