"""Warns about readers that stopped early (rule 3.6). python/native/watching/stopped_early.cpp
notices them.
"""

from __future__ import annotations

import logging
from typing import Any

_logger = logging.getLogger("weft")
_reported: set[str] = set()  #: the lines of the program that have been warned about


def tell(why: Any) -> None:
    """Warns, once for each line of the program. `why`, which has the attributes of a NoResult, says
    how the writing process ended.
    """
    if why.where in _reported:
        return
    _reported.add(why.where)
    _logger.warning(
        "process %s ended at %s (%s): each process that could read there returned after one read. "
        "If the other values were lost by that, read in a loop: `for value in reader` "
        "(`async for` in a coroutine process). If one read was meant, retire the reader after it; "
        "then there is no warning",
        why.process,
        why.where,
        why.reason,
    )
