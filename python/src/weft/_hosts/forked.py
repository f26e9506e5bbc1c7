"""What becomes of an OS process whose code has forked: rule 11.4, where no process of the runtime sees
to it.
"""

from __future__ import annotations

import os

from weft._extension import native as _native

__all__ = ["end_if_forked"]


def end_if_forked(before: int, error: BaseException | None) -> None:
    """To be called when code of the program has come to its end, by this exception if any. In the
    child of a fork that it made this program ends: its caller's work is the parent's.

    Args:
        before: os.getpid() before that code ran.
    """
    if os.getpid() != before:
        _native._end_program(error)
